//! `cuptop report`.

use std::path::PathBuf;

use clap::Args;

use super::clock::OnClock;
use super::values::share;

/// `cuptop report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Traces; several make one timeline. `-` is standard input, HOST:DIR a recording on another machine, over ssh.
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Exit with 1 when a rank of a job waits inside collectives for others, with nothing else running on its GPU, for more than this
    /// part of its time ("10%"); also when that is not known.
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub fail_wait: Option<f64>,
    /// On which clock it is shown.
    #[command(flatten)]
    pub clock: OnClock,
    /// Leave out command lines, folders of paths and names of hosts, for handing it to others; says what it leaves out.
    #[arg(long)]
    pub anonymous: bool,
}
