//! Commands that read traces: `cuptop open`, `report`, `compare`, `whatif` and `export`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::screen::{First, PictureArgs, Printed, ReplayOptions, size};
use super::trace::size_of_memory;
use crate::export::FORMATS;
use crate::report::gates::Gate;

/// `cuptop open`.
#[derive(Debug, Args)]
pub struct Open {
    /// Traces; several make one timeline. `-` is standard input. HOST:DIR is a recording, or a job's directory, on another machine: it is
    /// followed over ssh (CUPTOP_SSH names another program), with cuptop on that machine too.
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
    /// How much memory this program may take while it follows a job that still runs; beyond, single records of the oldest stretch
    /// are let go, and their sums stay.
    #[arg(long, value_name = "SIZE", default_value = "2 GiB", value_parser = size_of_memory)]
    pub memory: u64,
    #[command(flatten)]
    pub picture: PictureArgs,
    #[command(flatten)]
    pub first: First,
    #[command(flatten)]
    pub replayed: ReplayOptions,
}

/// `cuptop report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Traces; several make one timeline. `-` is standard input, HOST:DIR a recording on another machine, over ssh.
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
    #[command(flatten)]
    pub printed: Printed,
    /// Exit with 1 where this holds ("idle > 30 %": of the steady steps); may be given several times. `cuptop help scripts` has the
    /// figures. What cannot be measured exits with 3.
    #[arg(long, value_name = "CONDITION", value_parser = Gate::parse)]
    pub fail_if: Vec<Gate>,
    /// Leave out command lines, folders of paths and names of hosts, for handing it to others; says what it leaves out.
    #[arg(long)]
    pub anonymous: bool,
}

/// `cuptop compare`.
#[derive(Debug, Args)]
#[command(
    override_usage = "cuptop compare [OPTIONS] A B\n       cuptop compare [OPTIONS] --baseline DIR NEW..."
)]
pub struct CompareArgs {
    /// The two sides, each a trace, or several runs of the same with commas between them (A1,A2,A3). With --baseline
    /// the runs of the second side alone.
    #[arg(required = true, value_name = "TRACE")]
    pub sides: Vec<PathBuf>,
    /// Whatever lies in this folder are runs of the first side, the newest 30 of them. `--save-baseline DIR` of `run` and
    /// `trace` keeps a run there.
    #[arg(long, value_name = "DIR", conflicts_with = "screen")]
    pub baseline: Option<PathBuf>,
    /// Exit with 1 when B is shown to be slower than A by more than this ("5%"). What 6 runs a side do not decide is
    /// undecided, which is said, and the exit code is 0.
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
    #[command(flatten)]
    pub picture: PictureArgs,
    #[command(flatten)]
    pub first: First,
}

/// `cuptop whatif`.
#[derive(Debug, Args)]
#[command(after_help = EDITS_HELP)]
pub struct WhatIf {
    /// Traces; several make one timeline. `-` is standard input.
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
    /// What to change; several joined by `+` are made together. May be given several times, for a prediction
    /// each; without it, every edit that finds something to change is tried.
    #[arg(long, value_name = "EDIT")]
    pub edit: Vec<String>,
    /// Which variant of a scenario's run.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Take rates and delays of the GPU from this profile, a file or a part of the name of a GPU that `cuptop calibrate`
    /// measured here; it is used when the trace is of that GPU. Without it, the one that was measured here of the
    /// trace's GPU.
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Leave out command lines, folders of paths and names of hosts, for handing it to others; says what it leaves out.
    #[arg(long)]
    pub anonymous: bool,
}

const EDITS_HELP: &str = "\
Edits: pin, pin:55GB/s · async · no-sync · own-stream · merge-copies · graph · fuse, fuse:once · reuse ·
scale:NAME=0.5 · drop:NAME · prefetch:NAME, prefetch:NAME=4. `@RANGE` behind one limits it to a range's or function's name.";

/// `cuptop export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Traces; several make one timeline. `-` is standard input.
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
    /// The format; without it, what the ending of the file's name asks for. ui.perfetto.dev opens `chrome`.
    #[arg(long, value_name = "FORMAT", required_unless_present = "output", value_parser = PossibleValuesParser::new(FORMATS.map(|format| format.name)))]
    pub to: Option<String>,
    /// The file to write, compressed where its name ends in .gz; standard output without it.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Size of the screen for pictures.
    #[arg(long, value_name = "COLSxROWS", default_value = "120x40", value_parser = size)]
    pub size: (u16, u16),
    /// What is shown first, in pictures.
    #[command(flatten)]
    pub first: First,
    #[command(flatten)]
    pub replayed: ReplayOptions,
    /// Leave out command lines, folders of paths and names of hosts, for handing it to others; says what it leaves out.
    #[arg(long)]
    pub anonymous: bool,
}

/// "5%" as 0.05.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').unwrap_or(text.trim());
    match number.trim().parse::<f64>() {
        Ok(percent) if (0.0..1e6).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected a percentage, for example 5%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_read() {
        assert_eq!(
            (share("5%"), share("2.5 %"), share("0")),
            (Ok(0.05), Ok(0.025), Ok(0.0))
        );
        assert!(share("-1%").is_err() && share("x").is_err() && share("nan").is_err());
    }
}
