//! `cuptop check`.

use clap::Args;

use super::complete;
use super::values::assignment;

/// `cuptop check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Scenario files, or names of bundled ones.
    #[arg(required = true, add = complete::scenarios())]
    pub scenarios: Vec<String>,
    /// End with 1 when there is a warning (a race, say).
    #[arg(long)]
    pub deny: bool,
    /// Set a parameter; may be given several times.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
}
