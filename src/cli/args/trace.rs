//! `cuptop trace`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::clock::OnClock;
use super::first::First;
use super::values::{GraphRecords, Picture, PythonLooks, Switch, size_of_memory, time};

/// Whether `cuptop trace` records waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WaitRecords {
    /// For short whiles, a twentieth of the time.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// `cuptop trace`.
#[derive(Debug, Args)]
pub struct Trace {
    /// Print a report when the program ends instead of opening the screen; its output stays where it is.
    #[arg(long)]
    pub headless: bool,
    /// With --headless: print the report as JSON.
    #[arg(long, requires = "headless")]
    pub json: bool,
    /// Keep the recording in this directory (see `cuptop open`).
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Keep the recording in a folder of its own in this directory, which the ranks and hosts of a job share: start each with its
    /// own `cuptop trace --headless --out DIR`, and `cuptop open DIR` follows them all.
    #[arg(long, value_name = "DIR", conflicts_with = "save")]
    pub out: Option<PathBuf>,
    /// How often the collector asks CUPTI for finished records, in ms.
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub flush: u64,
    /// Record what streams and threads wait for, so that a gap can name the event of another stream: for short
    /// whiles (a twentieth of the time), always, or never. Either costs programs that are bound by launches 6 to 30 %.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = WaitRecords::Off, num_args = 0..=1, default_missing_value = "on")]
    pub waits: WaitRecords,
    /// Begin to record when the program has run this long ("30s").
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub delay: Option<Duration>,
    /// Record for this long ("10s"), from the first operation on a GPU (or the end of --delay) on; the program goes on.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Record only inside NVTX ranges of this name ("step*": of those that begin so). Begins up to a flush period
    /// after the range does.
    #[arg(long, value_name = "NAME")]
    pub range: Option<String>,
    /// How CUDA graphs are recorded: each of their nodes, or one record for each launch, which costs less.
    #[arg(long, value_enum, default_value_t)]
    pub graphs: GraphRecords,
    /// How many times a second the stacks of Python programs are looked at from outside, 1 to 1000, or off. It is done more
    /// rarely by itself where it would take more than a tenth of one core. SIGUSR2 to cuptop pauses this and --hardware, and
    /// goes on with them.
    #[arg(long, value_name = "HZ|off", default_value_t)]
    pub python: PythonLooks,
    /// Read the GPU's counters, clocks and power (NVML), and what launching threads do off their processors, about ten
    /// times a second; takes at most 2 % of one core.
    #[arg(long, value_enum, default_value_t)]
    pub hardware: Switch,
    /// Stop recording a process after this much ("500 MiB"), or with --keep let go of its oldest part; the program
    /// goes on, what is lost is counted.
    #[arg(long, value_name = "SIZE")]
    pub max_size: Option<String>,
    /// How much memory this program may take; beyond, single records of the oldest stretch are let go, and their
    /// sums stay.
    #[arg(long, value_name = "SIZE", default_value = "2 GiB", value_parser = size_of_memory)]
    pub memory: u64,
    /// Keep only the last of each process's recording: at least this many minutes, at most twice as many; with
    /// --max-size no more than that. Without --save and either of them, half an hour and 512 MiB.
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub keep: Option<u64>,
    /// On which clock it is shown.
    #[command(flatten)]
    pub clock: OnClock,
    /// Where the picture goes, if one is wanted.
    #[command(flatten)]
    pub picture: Picture,
    /// What is shown first.
    #[command(flatten)]
    pub first: First,
    /// The program and its arguments.
    #[arg(required = true, last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
