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
}
