//! `cuptop compare`.

use std::path::PathBuf;

use clap::Args;

use super::first::First;
use super::values::{Picture, share};

/// `cuptop compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// The first side: a trace, or several runs of the same with commas between them (A1,A2,A3).
    pub a: PathBuf,
    /// The second side.
    pub b: PathBuf,
    /// Exit with 1 when B is shown to be slower than A by more than this ("5%"). Needs 6 runs a side; with fewer
    /// it is undecided, which is said, and the exit code is 0.
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub fail_over: Option<f64>,
    /// Print JSON.
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print Markdown, for a pull request.
    #[arg(long)]
    pub markdown: bool,
    /// Leave out command lines, folders of paths and names of hosts, for handing it to others; says what it leaves out.
    #[arg(long, conflicts_with = "screen")]
    pub anonymous: bool,
    /// Open the screen: both above each other on one axis, and all of B in the other views. Takes one run a side.
    #[arg(long, conflicts_with_all = ["json", "markdown", "fail_over"])]
    pub screen: bool,
    /// Where the picture goes, if one is wanted.
    #[command(flatten)]
    pub picture: Picture,
    /// What is shown first.
    #[command(flatten)]
    pub first: First,
}
