//! `cuptop new`.

use clap::Args;

/// `cuptop new`.
#[derive(Debug, Args)]
pub struct New {
    /// The scenario's name; the file is NAME.toml in this directory.
    pub name: String,
}
