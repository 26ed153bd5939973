//! `cuptop attach`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::first::First;
use super::values::{PythonLooks, Switch, size_of_memory, time};

/// `cuptop attach`.
#[derive(Debug, Args)]
pub struct Attach {
    /// The process; its descendants (torchrun's ranks, DataLoader workers) are looked at too.
    #[arg(value_name = "PID")]
    pub pid: u32,
    /// How many times a second Python stacks are looked at from outside, 1 to 1000, or off.
    #[arg(long, value_name = "HZ|off", default_value_t)]
    pub python: PythonLooks,
    /// Read counters, clocks and power of the GPUs that the process and those it started use (NVML), about ten times a second; takes
    /// at most 2 % of one core.
    #[arg(long, value_enum, default_value_t)]
    pub hardware: Switch,
    /// Look for this long ("10s"); the program goes on.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Keep what was seen in this directory (see `cuptop open`).
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Only keep what is seen, without a screen.
    #[arg(long, requires = "save")]
    pub headless: bool,
    /// How much memory this program may take; beyond, single records of the oldest stretch are let go.
    #[arg(long, value_name = "SIZE", default_value = "2 GiB", value_parser = size_of_memory)]
    pub memory: u64,
    /// What is shown first.
    #[command(flatten)]
    pub first: First,
}
