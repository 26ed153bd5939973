//! Commands that watch programs: `cuptop trace` and `attach`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::screen::{First, PictureArgs, Printed};
use crate::report::gates::Gate;
use live::attach::{Collect, Graphs, Lines};
use live::counters::Counters;
use live::python;

/// `cuptop trace`.
#[derive(Debug, Args)]
#[command(mut_group("Printed", |it| it.requires("headless")))]
pub struct Trace {
    /// Print a report when the program ends instead of opening the screen; its output stays where it is.
    #[arg(long)]
    pub headless: bool,
    #[command(flatten)]
    pub printed: Printed,
    /// Exit with 1 where this holds ("idle > 30 %": of the steady steps); may be given several times. The program's own failure goes
    /// first.
    #[arg(long, value_name = "CONDITION", value_parser = Gate::parse, requires = "headless")]
    pub fail_if: Vec<Gate>,
    /// Keep the recording in this directory (see `cuptop open`).
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Keep the recording in a folder of its own in this directory, which the ranks and hosts of a job share: start each with its
    /// own `cuptop trace --headless --out DIR`, and `cuptop open DIR` follows them all. As --save-baseline it is for
    /// `cuptop compare --baseline DIR`, which takes each folder as a run.
    #[arg(
        long,
        visible_alias = "save-baseline",
        value_name = "DIR",
        conflicts_with = "save"
    )]
    pub out: Option<PathBuf>,
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
    /// Stop recording a process after this much ("500 MiB"), or with --keep let go of its oldest part; the program
    /// goes on, what is lost is counted.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<u64>,
    /// Keep only the last of each process's recording: at least this many minutes, at most twice as many; with
    /// --max-size no more than that. Without --save and either of them, half an hour and 512 MiB.
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub keep: Option<u64>,
    #[command(flatten)]
    pub watched: Watched,
    #[command(flatten)]
    pub picture: PictureArgs,
    #[command(flatten)]
    pub first: First,
    /// The program and its arguments; cuptop's own options come before it. `--` may stand between them.
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `cuptop attach`.
#[derive(Clone, Debug, Args)]
#[command(mut_group("Printed", |it| it.requires("headless")))]
pub struct Attach {
    /// The process; its descendants (torchrun's ranks, DataLoader workers) are looked at too.
    #[arg(value_name = "PID")]
    pub pid: Option<u32>,
    /// Leave the program as it is: Python stacks and hardware from outside, no kernels and copies.
    #[arg(long)]
    pub stacks_only: bool,
    /// Look for this long ("10s"); the program goes on.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Keep what was seen in this directory (see `cuptop open`).
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Print a report at the end instead of opening the screen; with --stacks-only, only keep what is seen.
    #[arg(long)]
    pub headless: bool,
    #[command(flatten)]
    pub printed: Printed,
    #[command(flatten)]
    pub watched: Watched,
    #[command(flatten)]
    pub first: First,
}

/// `cuptop job`. Exit code 1: it stands still.
#[derive(Clone, Debug, Args)]
pub struct JobArgs {
    /// A rank, a launcher (torchrun) or another program; without it, all that use CUDA here.
    #[arg(value_name = "PID")]
    pub pid: Option<u32>,
    /// Look for this long ("30s"); without it, until the looks prove something or 5 s are over.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Ask NCCL's service (RAS) whatever its version: some versions crash the job that is asked. Without it only those are asked
    /// that are not known to, and only where something stands.
    #[arg(long, conflicts_with = "no_ras")]
    pub ras: bool,
    /// Do not ask NCCL's service.
    #[arg(long)]
    pub no_ras: bool,
    /// Print once and end, as it is done without a terminal; the options above and below do so, too.
    #[arg(long)]
    pub headless: bool,
    /// Print all that was seen as JSON.
    #[arg(long)]
    pub json: bool,
    /// Keep it as JSON in this file.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

/// How a program is watched that is not a scenario.
#[derive(Clone, Debug, Args)]
pub struct Watched {
    #[command(flatten)]
    pub recorded: Recorded,
    /// Record what streams and threads wait for, so that a gap can name the event of another stream. It costs programs that
    /// are bound by launches 7 to 12 %, also while recording is off after it was on.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Switch::Off, num_args = 0..=1, default_missing_value = "on")]
    pub waits: Switch,
    /// Sample what the warps of each kernel wait for, on the GPU and in the running program. Nobody else may use the GPU's counters
    /// then, so --counters auto is off. It needs CUPTI 13.0.1 and driver 580. A program that was attached to keeps the counters until it
    /// ends, and cannot be recorded again.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Switch::Off, num_args = 0..=1, default_missing_value = "on")]
    pub stalls: Switch,
    /// What gets the Python line that asked for it, read by the program's own thread: on: each launch, which takes 1 to 3 µs longer,
    /// and what CUDA graphs run; graphs: these alone; off: nothing.
    #[arg(long, value_name = "on|graphs|off", default_value = "graphs", value_parser = lines)]
    pub lines: Lines,
    /// How many times a second the stacks of Python programs are looked at from outside, 1 to 1000, or off. It is done more
    /// rarely by itself where it would take more than a tenth of one core. SIGUSR2 to cuptop pauses this and --hardware, and
    /// goes on with them.
    #[arg(long, value_name = "HZ|off", default_value_t = python::HZ, value_parser = looks)]
    pub python: u32,
    /// How much memory this program may take; beyond, single records of the oldest stretch are let go, and their
    /// sums stay.
    #[arg(long, value_name = "SIZE", default_value = "2 GiB", value_parser = size_of_memory)]
    pub memory: u64,
}

impl Watched {
    /// What is collected, where so much of it is kept.
    pub(crate) fn collect(&self, keep: Option<Duration>, max_bytes: u64) -> Collect {
        Collect {
            library: crate::inject::LIBRARY,
            flush_period: Duration::from_millis(self.recorded.flush),
            max_bytes,
            keep,
            waits: self.waits == Switch::On,
            stalls: self.stalls == Switch::On,
            graphs: self.recorded.graphs.into(),
            lines: self.lines,
        }
    }

    /// Whether counters are sampled, beside stalls or not.
    pub(crate) fn counters(&self) -> Result<Counters, &'static str> {
        counters_beside(self.stalls, self.recorded.counters)
    }

    /// How many times a second stacks are looked at.
    pub(crate) fn looks(&self) -> Option<u32> {
        Some(self.python).filter(|hz| *hz > 0)
    }
}

/// Whether counters are sampled: not beside stalls, as together no kernel would be recorded.
pub(crate) fn counters_beside(
    stalls: Switch,
    counters: Counters,
) -> Result<Counters, &'static str> {
    match (stalls, counters) {
        (Switch::Off, counters) => Ok(counters),
        (Switch::On, Counters::Auto | Counters::Off) => Ok(Counters::Off),
        (Switch::On, _) => {
            Err("--stalls and --counters use the same part of the GPU: ask for one of them")
        }
    }
}

/// How what runs on a GPU is recorded.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Recorded {
    /// How often the collector asks CUPTI for finished records, in ms.
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub flush: u64,
    /// How CUDA graphs of a GPU are recorded: each of their nodes, or one record for each launch, which costs less.
    #[arg(long, value_enum, default_value_t)]
    pub graphs: GraphRecords,
    /// Read the GPU's counters, clocks and power (NVML), and what launching threads do off their processors, about ten
    /// times a second; takes at most 2 % of one core.
    #[arg(long, value_enum, default_value_t)]
    pub hardware: Switch,
    /// Sample the counters of the GPUs (SM, DRAM, tensor cores, …) from a process of its own. on: in bursts, for at most a tenth of
    /// a core; 10 to 20000: so many times a second all the time; auto: on where no other user is on the GPU. Meanwhile nobody else
    /// can: ncu is refused, and DCGM's profiling stands still. Off with --hardware off.
    #[arg(long, value_name = "HZ|on|auto|off", default_value = "auto")]
    pub counters: Counters,
}

/// Whether something is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    // What they mean stands with each option.
    #[default]
    On,
    Off,
}

/// How CUDA graphs are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GraphRecords {
    /// Every kernel, copy and memset in them: 0.15 to 0.95 µs for each, measured on an H200.
    #[default]
    Nodes,
    /// One record for each launch: 4 to 28 µs, measured on an H200, however many nodes it has.
    Whole,
}

impl From<GraphRecords> for Graphs {
    fn from(wanted: GraphRecords) -> Graphs {
        match wanted {
            GraphRecords::Nodes => Graphs::Nodes,
            GraphRecords::Whole => Graphs::Whole,
        }
    }
}

fn lines(text: &str) -> Result<Lines, String> {
    let known = Lines::WORDS.into_iter().find(|it| it.0 == text);
    let lines = known.map(|it| it.1);
    lines.ok_or_else(|| "expected on, graphs or off".to_owned())
}

/// How many times a second Python stacks are looked at; 0 for "off".
fn looks(text: &str) -> Result<u32, String> {
    let most = python::MOST_HZ;
    match text.parse() {
        _ if text == "off" => Ok(0),
        Ok(hz) if (1..=most).contains(&hz) => Ok(hz),
        _ => Err(format!("expected 1 to {most} looks a second, or off")),
    }
}

/// "500 MiB" in bytes.
fn size(text: &str) -> Result<u64, String> {
    let bytes = scenario::value::parse_bytes(text);
    bytes.ok_or_else(|| "expected a size such as \"500 MiB\"".to_owned())
}

/// "2 GiB" in bytes; at least 64 MiB, in which some seconds of any program fit.
pub(super) fn size_of_memory(text: &str) -> Result<u64, String> {
    match scenario::value::parse_bytes(text) {
        Some(bytes) if bytes >= 64 << 20 => Ok(bytes),
        _ => Err("expected a size of at least 64 MiB, for example \"2 GiB\"".to_owned()),
    }
}

/// "30s", "500 ms" or "2min"; a number alone is of seconds.
fn time(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let seconds = match unit.trim() {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let most = 1e7;
    match number.parse::<f64>().map(|number| number * seconds) {
        Ok(seconds) if (0.0..most).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected a time, for example 30s, 500ms or 2min".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(time("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(time("1.5 min"), Ok(Duration::from_secs(90)));
        assert_eq!(
            (time("250ms"), time("2")),
            (Ok(Duration::from_millis(250)), Ok(Duration::from_secs(2)))
        );
        for wrong in ["", "s", "-1s", "1 day", "1e9h", "nan", "99999999999999h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
