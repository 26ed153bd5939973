//! `cuptop calibrate`.

use std::path::PathBuf;

use clap::Args;

/// `cuptop calibrate`.
#[derive(Debug, Args)]
pub struct Calibrate {
    /// The profile to write; standard output without it.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
