//! What the command line accepts.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::export::FORMATS;

/// A terminal timeline for CUDA: see why the GPU is idle, over SSH.
#[derive(Debug, Parser)]
#[command(name = "cuptop", version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Cli {
    /// What to do; without it, a picker of the bundled scenarios.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// How the screen is drawn.
    #[command(flatten)]
    pub screen: ScreenArgs,
}

const AFTER_HELP: &str = "\
Exit codes: 0 fine · 1 an expectation failed, or a regression over --fail-over · 2 the input or the command line is wrong ·
3 the machine cannot do it · 4 the watched program failed (or its own code)";

/// How the screen is drawn.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Screen")]
pub struct ScreenArgs {
    /// Colours to use.
    #[arg(long, global = true, value_enum, default_value_t)]
    pub color: Color,
    /// Use ASCII instead of block and box characters.
    #[arg(long, global = true)]
    pub ascii: bool,
}

/// Colours to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// What the terminal can do; none with `NO_COLOR`.
    #[default]
    Auto,
    /// 24-bit colours.
    Truecolor,
    /// 256 colours.
    #[value(name = "256")]
    Indexed,
    /// 16 colours.
    #[value(name = "16")]
    Basic,
    /// No colour.
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario and show its timeline, live.
    Run(Run),
    /// Run any CUDA program and show its timeline, live: cuptop trace -- python train.py
    Trace(Trace),
    /// Show a recording, a Kineto/Chrome JSON trace, or an Nsight Systems SQLite export.
    Open(Open),
    /// Print a trace's figures and findings.
    Report(Report),
    /// Say whether one trace is faster than another, why, and what changed.
    Compare(Compare),
    /// Say what a run would take with something changed, by replaying it.
    Whatif(WhatIf),
    /// Write a trace for another program, or its picture.
    Export(Export),
    /// Check scenario files: errors, warnings, races between streams.
    Check(Check),
    /// Write a commented scenario file to start from.
    New(New),
    /// List the bundled scenarios and kernels.
    List,
    /// Print the JSON schema of scenario files, for editors.
    Schema,
    /// Measure this GPU and write the profile that the simulator and "% of peak" use.
    Calibrate(Calibrate),
    /// Say what was found (driver, GPU, libcupti, NVRTC, terminal) and what each lack costs.
    Doctor,
    /// The process that uses CUDA (started by `run`, `doctor` and `calibrate`; its job comes on stdin).
    #[command(hide = true)]
    RunPlan,
}

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

/// Picture of the screen without a terminal.
#[derive(Clone, Debug, Default, Args)]
pub struct Picture {
    /// When done, save the screen to this file (.svg, .png, .txt or .ansi) instead of showing it.
    #[arg(long, value_name = "FILE")]
    pub screenshot: Option<PathBuf>,
    /// Size of that screen in columns and rows.
    #[arg(long, value_name = "COLSxROWS", default_value = "120x40", value_parser = size)]
    pub size: (u16, u16),
}

/// `cuptop run`.
#[derive(Debug, Args)]
pub struct Run {
    /// A scenario file, or the name of a bundled one (see `cuptop list`).
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
    /// Print a report instead of opening the screen; fails when an expectation does.
    #[arg(long)]
    pub headless: bool,
    /// With --headless: print JSON.
    #[arg(long, requires = "headless")]
    pub json: bool,
    /// Keep the recording in this directory (see `cuptop open`).
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Do not run again when the file is saved.
    #[arg(long)]
    pub no_watch: bool,
    /// How often the collector asks CUPTI for finished records, in ms.
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub flush: u64,
    /// Use this GPU profile for the simulator and "% of peak" (see `cuptop calibrate`).
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Where the picture goes, if one is wanted.
    #[command(flatten)]
    pub picture: Picture,
}

impl Run {
    /// What the picker starts with: nothing chosen, everything as by default.
    #[must_use]
    pub fn bundled() -> Run {
        Run {
            scenario: String::new(),
            backend: Backend::Auto,
            variant: None,
            set: Vec::new(),
            headless: false,
            json: false,
            save: None,
            no_watch: false,
            flush: 20,
            profile: None,
            picture: Picture::default(),
        }
    }
}

/// How `cuptop trace` records CUDA graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphRecords {
    /// Every kernel, copy and memset in them.
    Nodes,
    /// One record for each launch.
    Whole,
}

/// `cuptop trace`.
#[derive(Debug, Args)]
pub struct Trace {
    /// Print a report when the program ends instead of opening the screen; its output stays where it is.
    #[arg(long)]
    pub headless: bool,
    /// With --headless: print the report as JSON.
    #[arg(long, requires = "headless")]
    pub json: bool,
    /// Keep the recording in this directory (see `cuptop open`).
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// How often the collector asks CUPTI for finished records, in ms.
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub flush: u64,
    /// Also record what streams and threads wait for, so that a gap can name the event it waited for. Costs
    /// programs that are bound by launches some 10 %.
    #[arg(long)]
    pub waits: bool,
    /// How CUDA graphs are recorded: each of their nodes, or one record for each launch, which costs less.
    #[arg(long, value_enum, default_value_t = GraphRecords::Nodes)]
    pub graphs: GraphRecords,
    /// Stop recording a process after this much ("500 MiB"); the program goes on, what is lost is counted.
    #[arg(long, value_name = "SIZE")]
    pub max_size: Option<String>,
    /// Keep only the last of each process's recording: at least this many minutes, at most twice as many.
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub keep: Option<u64>,
    /// Where the picture goes, if one is wanted.
    #[command(flatten)]
    pub picture: Picture,
    /// The program and its arguments.
    #[arg(required = true, last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `cuptop open`.
#[derive(Debug, Args)]
pub struct Open {
    /// Traces; several make one timeline.
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
    /// Where the picture goes, if one is wanted.
    #[command(flatten)]
    pub picture: Picture,
}

/// `cuptop report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Traces; several make one timeline.
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

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
}

/// `cuptop whatif`.
#[derive(Debug, Args)]
#[command(after_help = EDITS_HELP)]
pub struct WhatIf {
    /// Traces; several make one timeline.
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
    /// What to change; several joined by `+` are made together. May be given several times, for a prediction
    /// each; without it, every edit that finds something to change is tried.
    #[arg(long, value_name = "EDIT")]
    pub edit: Vec<String>,
    /// Which variant of a scenario's run.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Take rates and delays of the GPU from this profile (see `cuptop calibrate`); it is used when the trace is
    /// of that GPU.
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

const EDITS_HELP: &str = "\
Edits: pin, pin:55GB/s · async · no-sync · own-stream · merge-copies · graph · fuse, fuse:once · reuse ·
scale:NAME=0.5 · drop:NAME. `@RANGE` behind one limits it to a range's or function's name.";

/// `cuptop export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Traces; several make one timeline.
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
    /// The format; without it, what the ending of the file's name asks for.
    #[arg(long, value_name = "FORMAT", required_unless_present = "output", value_parser = PossibleValuesParser::new(FORMATS.map(|format| format.name)))]
    pub to: Option<String>,
    /// The file to write; standard output without it.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Size of the screen for svg, png and txt.
    #[arg(long, value_name = "COLSxROWS", default_value = "120x40", value_parser = size)]
    pub size: (u16, u16),
}

/// `cuptop check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Scenario files, or names of bundled ones.
    #[arg(required = true)]
    pub scenarios: Vec<String>,
    /// Set a parameter; may be given several times.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
}

/// `cuptop new`.
#[derive(Debug, Args)]
pub struct New {
    /// The scenario's name; the file is NAME.toml in this directory.
    pub name: String,
}

/// `cuptop calibrate`.
#[derive(Debug, Args)]
pub struct Calibrate {
    /// The profile to write; standard output without it.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// "5%" as 0.05.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').unwrap_or(text.trim());
    match number.trim().parse::<f64>() {
        Ok(percent) if (0.0..1e6).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected a percentage, for example 5%".to_owned()),
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME=VALUE, for example n=4096".to_owned()),
    }
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let parse = || {
        let (columns, rows) = text.split_once(['x', 'X'])?;
        let (columns, rows) = (columns.parse().ok()?, rows.parse().ok()?);
        ((1..=1000).contains(&columns) && (1..=500).contains(&rows)).then_some((columns, rows))
    };
    parse().ok_or_else(|| "expected COLSxROWS, for example 120x40 (at most 1000x500)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn percentages_are_read() {
        assert_eq!(
            (share("5%"), share("2.5 %"), share("0")),
            (Ok(0.05), Ok(0.025), Ok(0.0))
        );
        assert!(share("-1%").is_err() && share("x").is_err() && share("nan").is_err());
    }

    #[test]
    fn sizes_and_assignments_are_read() {
        assert_eq!(size("80x24"), Ok((80, 24)));
        assert!(size("80").is_err() && size("0x5").is_err() && size("80x99999").is_err());
        assert_eq!(assignment("n = 4"), Ok(("n".to_owned(), "4".to_owned())));
        assert!(assignment("n").is_err() && assignment("=4").is_err());
    }
}
