//! `cuptop new`.

use clap::Args;

use super::complete;

/// `cuptop new`.
#[derive(Debug, Args)]
pub struct New {
    /// The scenario's name; the file is NAME.toml in this directory.
    pub name: String,
    /// Start from this scenario: a bundled one's name, or a file.
    #[arg(long, value_name = "SCENARIO", add = complete::scenarios())]
    pub from: Option<String>,
}
