//! `cuptop trace`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::values::Picture;

/// How `cuptop trace` records CUDA graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphRecords {
    /// Every kernel, copy and memset in them.
    Nodes,
    /// One record for each launch.
    Whole,
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
    /// How often the collector asks CUPTI for finished records, in ms.
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub flush: u64,
    /// Also record what streams and threads wait for, so that a gap can name the event it waited for. Costs
    /// programs that are bound by launches some 10 %.
    #[arg(long)]
    pub waits: bool,
    /// How CUDA graphs are recorded: each of their nodes, or one record for each launch, which costs less.
    #[arg(long, value_enum, default_value_t = GraphRecords::Nodes)]
    pub graphs: GraphRecords,
    /// Stop recording a process after this much ("500 MiB"); the program goes on, what is lost is counted.
    #[arg(long, value_name = "SIZE")]
    pub max_size: Option<String>,
    /// Keep only the last of each process's recording: at least this many minutes, at most twice as many.
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub keep: Option<u64>,
    /// Where the picture goes, if one is wanted.
    #[command(flatten)]
    pub picture: Picture,
    /// The program and its arguments.
    #[arg(required = true, last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
