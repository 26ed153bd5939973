//! What the command line accepts: a file for commands that change together.

mod help;
mod open;
mod run;
mod screen;
mod trace;

use std::ffi::OsString;

use clap::{CommandFactory as _, Parser, Subcommand};

pub use help::{Completions, Doctor, Help, Man};
pub use open::{CompareArgs, Export, Open, ReportArgs, WhatIf};
pub use run::{Backend, Calibrate, Check, CheckFormat, New, RunArgs};
pub use screen::{
    Color, First, Json, PaletteName, PictureArgs, Printed, ReplayOptions, ScreenArgs,
};
pub(crate) use screen::{SCREEN, screen_args};
pub(crate) use trace::counters_beside;
pub use trace::{Attach, JobArgs, Switch, Trace};

/// A terminal timeline for CUDA: see why the GPU is idle, over SSH.
#[derive(Debug, Parser)]
#[command(name = "cuptop", version, max_term_width = 100, disable_help_subcommand = true, after_help = AFTER_HELP)]
#[command(add = help::bare_words())]
pub struct Cli {
    /// What to do; without it, what runs on this machine's GPUs, and the bundled scenarios.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Print what the first screen shows, and end: what runs on this machine's GPUs, and this folder's traces.
    #[arg(long)]
    pub once: bool,
    /// With --once: as JSON.
    #[arg(long, requires = "once")]
    pub json: bool,
    #[command(flatten)]
    pub screen: ScreenArgs,
}

const AFTER_HELP: &str = "\
cuptop FILE opens a trace or runs a scenario's .toml; cuptop pipeline (or the beginning of a name) runs a bundled scenario.

Exit codes: 0 fine · 1 an expectation failed, or a regression over --fail-over · 2 the input or the command line is wrong ·
3 the machine cannot do it · 4 the watched program failed (or its own code)";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario and show its timeline, live.
    Run(RunArgs),
    /// Run any CUDA program and show its timeline, live: cuptop trace python train.py
    Trace(Trace),
    /// Record a CUDA program that already runs, from now on, and show its timeline.
    Attach(Attach),
    /// Say how a job stands: what the threads of all its ranks do, who waits for whom. Enters no process and stops none.
    Job(JobArgs),
    /// Show a recording, a Kineto/Chrome JSON trace, or an Nsight Systems SQLite export.
    Open(Open),
    /// Print a trace's figures and findings.
    Report(ReportArgs),
    /// Say whether one trace is faster than another, why, and what changed.
    Compare(CompareArgs),
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
    /// Say what was found (driver, GPU, libcupti, NVRTC, terminal), whether a program can be traced, and what a missing part costs.
    Doctor(Doctor),
    /// Print a skill file (SKILL.md) for agents: which command answers which question, and what not to conclude.
    Skill,
    /// Print the help of a command, or a page of the documentation: scenarios, findings, json, scripts.
    Help(Help),
    /// Write manual pages into a folder.
    Man(Man),
    /// Print what a shell (bash, zsh, fish) needs to complete cuptop's command lines.
    Completions(Completions),
    /// The process that uses CUDA (started by `run`, `doctor` and `calibrate`; its job comes on stdin).
    #[command(hide = true)]
    RunPlan,
    /// The process that samples a GPU's counters (started by `trace`, `attach` and `run`; its job comes on stdin).
    #[command(hide = true)]
    SampleCounters,
    /// The process that `doctor` traces on trial.
    #[command(hide = true)]
    TryInjection,
    /// The far side of `cuptop open HOST:DIR`, which ssh starts there; what it is to serve comes on stdin.
    #[command(hide = true)]
    ServeRecordings,
    /// A scenario or a trace without a command.
    #[command(external_subcommand)]
    Bare(Vec<OsString>),
}

/// Verbs by what one wants, as the help lists them.
const VERBS: [(&str, &str); 4] = [
    ("Look", "run trace attach job open report export"),
    ("Compare and predict", "compare whatif"),
    ("Scenarios", "new check list schema"),
    ("Set-up", "doctor calibrate completions man skill help"),
];

/// The command line. What is for every command stands in the help of the program alone.
pub fn command() -> clap::Command {
    let root = Cli::command();
    let global = root.get_arguments().filter(|it| it.is_global_set());
    let global: Vec<clap::Arg> = global.map(|it| it.clone().hide(true)).collect();
    let mut verbs = String::new();
    for (title, names) in VERBS {
        verbs += &format!("{title}:\n");
        for command in names
            .split(' ')
            .filter_map(|name| root.find_subcommand(name))
        {
            let about = command
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            verbs += &format!("  {:<12} {about}\n", command.get_name());
        }
        verbs.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}Options:\n{{options}}{{after-help}}"
    );
    root.help_template(template)
        .mut_subcommands(|it| it.args(global.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
        // Every verb that is not hidden stands in one group.
        let root = Cli::command();
        let shown = root.get_subcommands().filter(|it| !it.is_hide_set());
        let mut shown: Vec<&str> = shown.map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = VERBS.iter().flat_map(|it| it.1.split(' ')).collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, shown);
    }

    #[test]
    fn a_switch_lists_its_values_and_says_nothing_of_them() {
        let mut root = command();
        root.build();
        for name in ["trace", "attach"] {
            let verb = root.find_subcommand(name).expect("a verb");
            for option in ["hardware", "waits"] {
                let mut all = verb.get_arguments();
                let option = all.find(|it| it.get_long() == Some(option));
                let values = option.expect("an option").get_possible_values();
                let seen: Vec<_> = values
                    .iter()
                    .map(|it| (it.get_name(), it.get_help()))
                    .collect();
                assert!(
                    matches!(seen[..], [("on", None), ("off", None)]),
                    "{name}: {seen:?}"
                );
            }
        }
    }

    #[test]
    fn what_follows_the_traced_program_is_its_own() {
        for between in [&[][..], &["--"]] {
            let before = ["cuptop", "trace", "--headless"];
            let program = ["python", "train.py", "--json", "--", "-v"];
            let cli = Cli::try_parse_from(before.iter().chain(between).chain(&program))
                .expect("a command line");
            let Some(Command::Trace(trace)) = cli.command else {
                panic!("another command");
            };
            assert!(trace.headless && trace.printed.json.is_none() && !cli.screen.verbose);
            assert_eq!(trace.command, program.map(OsString::from));
        }
        let typo = Cli::try_parse_from(["cuptop", "trace", "--hedless", "python"]);
        assert!(typo.is_err(), "an option of cuptop's that there is not");
    }
}
