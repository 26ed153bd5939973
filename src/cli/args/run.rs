//! Commands for scenarios and the machine that they run on: `cuptop run`, `check`, `new` and `calibrate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::help::scenarios;
use super::screen::{First, PictureArgs, Printed, ReplayOptions};
use super::trace::{Recorded, Switch};
use crate::bundled::lessons;

/// Where a scenario runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The GPU when there is one, else the simulator.
    #[default]
    Auto,
    /// A real GPU.
    Cuda,
    /// A model of a GPU; everything shown is marked SIMULATED.
    Sim,
}

/// `cuptop run`.
#[derive(Debug, Default, Args)]
#[command(mut_group("Printed", |it| it.requires("headless")))]
#[command(mut_arg("counters", |it| it.default_value("off")))]
pub struct RunArgs {
    /// A scenario file, or the name of a bundled one or its beginning (see `cuptop list`).
    #[arg(add = scenarios())]
    pub scenario: String,
    /// Where to run it.
    #[arg(long, value_enum, default_value_t)]
    pub backend: Backend,
    /// Run only this variant.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Set a parameter; may be given several times.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
    /// How often each variant is measured, instead of what the scenario says.
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// Print a report instead of opening the screen; fails when an expectation does.
    #[arg(long)]
    pub headless: bool,
    #[command(flatten)]
    pub printed: Printed,
    /// Keep the recording in this directory (see `cuptop open`).
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Keep the recording in a folder of its own in this directory, for `cuptop compare --baseline DIR`.
    #[arg(long, value_name = "DIR", conflicts_with = "save")]
    pub save_baseline: Option<PathBuf>,
    /// Do not run again when the file is saved.
    #[arg(long)]
    pub no_watch: bool,
    #[command(flatten)]
    pub recorded: Recorded,
    /// Sample what the warps of each kernel wait for, on a GPU; --counters is off then. It needs CUPTI 13.0.1 and driver 580.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Switch::Off, num_args = 0..=1, default_missing_value = "on")]
    pub stalls: Switch,
    /// Use this GPU profile for the simulator and "% of peak": a file, or a part of the name of a GPU that `cuptop
    /// calibrate` measured here. Without it, a real GPU's own is used, and the simulator is an H200.
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    #[command(flatten)]
    pub picture: PictureArgs,
    #[command(flatten)]
    pub first: First,
    #[command(flatten)]
    pub replayed: ReplayOptions,
}

impl RunArgs {
    /// What the picker starts with: nothing chosen, everything as by default.
    pub fn bundled() -> RunArgs {
        RunArgs {
            recorded: Recorded {
                flush: 20,
                ..Recorded::default()
            },
            stalls: Switch::Off,
            ..RunArgs::default()
        }
    }
}

/// `cuptop check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Scenario files, or names of bundled ones.
    #[arg(required = true, add = scenarios())]
    pub scenarios: Vec<String>,
    /// End with 1 when there is a warning (a race, say).
    #[arg(long)]
    pub deny: bool,
    /// How to say what is wrong: laid out, a line each for editors and CI, or as JSON.
    #[arg(long, value_enum, default_value_t)]
    pub format: CheckFormat,
    /// Set a parameter; may be given several times.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
}

/// How `cuptop check` says what is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    #[default]
    Text,
    Short,
    Json,
}

/// `cuptop new`.
#[derive(Debug, Args)]
#[command(after_help = format!("Scenarios for --from:\n{}", lessons()))]
pub struct New {
    /// The scenario's name; the file is NAME.toml in this directory.
    pub name: String,
    /// Start from this scenario: a bundled one's name, or a file.
    #[arg(long, value_name = "SCENARIO", add = scenarios())]
    pub from: Option<String>,
}

/// `cuptop calibrate`.
#[derive(Debug, Args)]
pub struct Calibrate {
    /// The profile to write, `-` for standard output; without it, where everything that deals with a GPU of this name
    /// looks for it.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// "n=4" as a name and a value.
fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME=VALUE, for example n=4096".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_read() {
        assert_eq!(assignment("n = 4"), Ok(("n".to_owned(), "4".to_owned())));
        assert!(assignment("n").is_err() && assignment("=4").is_err());
    }
}
