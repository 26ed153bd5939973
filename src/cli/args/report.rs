//! `cuptop report`.

use std::path::PathBuf;

use clap::Args;

/// `cuptop report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Traces; several make one timeline. `-` is standard input.
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Leave out command lines, folders of paths and names of hosts, for handing it to others; says what it leaves out.
    #[arg(long)]
    pub anonymous: bool,
}
