//! `cuptop calibrate`.

use std::path::PathBuf;

use clap::Args;

/// `cuptop calibrate`.
#[derive(Debug, Args)]
pub struct Calibrate {
    /// The profile to write, `-` for standard output; without it, where everything that deals with a GPU of this name
    /// looks for it.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
