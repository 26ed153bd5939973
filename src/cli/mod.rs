//! The command line: thin glue between sources, the screen and the reports.
//!
//! Each command is a function that returns an exit code or an `Ending`. Only the requested output goes to standard
//! output; messages, progress and help go to standard error.

pub mod args;
mod attach;
mod calibrate;
mod check;
mod collect;
mod compare;
mod default_command;
mod doctor;
mod exit;
mod help;
mod job;
mod once;
mod playback;
mod profile;
mod redaction;
mod report;
mod run;
mod scenario_file;
mod screen;
mod trace;
mod whatif;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{FromArgMatches as _, Parser as _};

use crate::report::Report;
use crate::report::gates::Gate;
use crate::report::text::{self, Options, Parts};
use args::{Cli, Command, Json, Printed};
use exit::Ending;

use activity::text::printable_lines;

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    exit::survive_file_size_limits();
    help::answer_a_shell();
    let cli = match parse(std::env::args_os().collect()) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    match cli.command {
        // The processes that are started have exit codes of their own.
        Some(Command::RunPlan) => live::runner::process_main(crate::bundled::LIBRARY),
        Some(Command::SampleCounters) => live::counters::process_main(),
        Some(Command::TryInjection) => live::attach::trial::process_main(),
        Some(Command::ServeRecordings) => hosts::process_main(),
        _ => match dispatch(cli) {
            Ok(code) => ExitCode::from(code),
            Err(ending) => ending.report(),
        },
    }
}

/// Parses the command line, and adds the command for a bare scenario or trace. It prints what is wrong with it.
fn parse(line: Vec<OsString>) -> Result<Cli, ExitCode> {
    let matches = args::command().try_get_matches_from(&line);
    let cli = match matches.and_then(|it| Cli::from_arg_matches(&it)) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are output; everything else is a mistake on the command line.
            let code = if error.use_stderr() {
                exit::INPUT
            } else {
                exit::FINE
            };
            let text = error.render().to_string();
            match printable_lines(&text) {
                // What was typed is quoted, and must not steer the terminal.
                plain if plain != text => eprint(&plain),
                _ => drop(error.print()),
            }
            return Err(ExitCode::from(code));
        }
    };
    match &cli.command {
        Some(Command::Bare(bare)) => match default_command::complete(line, bare) {
            Ok(line) => parse(line),
            Err(ending) => Err(ending.report()),
        },
        _ => Ok(cli),
    }
}

fn dispatch(cli: Cli) -> Result<u8, Ending> {
    args::SCREEN.get_or_init(|| cli.screen);
    match cli.command {
        Some(_) if cli.once => Err(Ending::input("--once is for cuptop without a command")),
        None if cli.once => once::once(cli.json),
        None => run::pick(None),
        Some(Command::Run(args)) => run::run(&args),
        Some(Command::Trace(args)) => trace::trace(&args),
        Some(Command::Attach(args)) => attach::attach(&args),
        Some(Command::Job(args)) => job::job(&args),
        Some(Command::Open(args)) => report::open(&args),
        Some(Command::Report(args)) => report::report(&args),
        Some(Command::Compare(args)) => compare::compare(&args),
        Some(Command::Whatif(args)) => whatif::whatif(&args),
        Some(Command::Export(args)) => report::export(&args),
        Some(Command::Check(args)) => check::check(&args),
        Some(Command::New(args)) => scenario_file::new(&args),
        Some(Command::List) => check::list(),
        Some(Command::Schema) => check::schema(),
        Some(Command::Calibrate(args)) => calibrate::calibrate(&args),
        Some(Command::Doctor(args)) => doctor::doctor(&args),
        Some(Command::Skill) => help::skill(),
        Some(Command::Help(args)) => help::help(&args),
        Some(Command::Man(args)) => help::man(&args),
        Some(Command::Completions(args)) => help::completions(&args),
        // None is left by now: `main` starts the processes, and `parse` puts a command in the place of a bare word.
        Some(
            Command::RunPlan
            | Command::SampleCounters
            | Command::TryInjection
            | Command::ServeRecordings
            | Command::Bare(_),
        ) => Ok(exit::FINE),
    }
}

/// What `cuptop attach PID` attaches to without options.
fn running_program(pid: u32) -> Result<attach::RunningProgram, Ending> {
    let line = ["cuptop", "attach", &pid.to_string()].map(str::to_owned);
    match Cli::try_parse_from(line).map(|cli| cli.command) {
        Ok(Some(Command::Attach(args))) => Ok(attach::RunningProgram::new(pid, args)),
        _ => Err(Ending::input(format!("there is no process {pid}"))),
    }
}

/// Writes to standard output, which is all that many commands do: the exit code is that of those.
fn print(text: &str) -> Result<u8, Ending> {
    let mut out = std::io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What came of writing to standard output. A reader that went away is no error: it has seen what it wanted.
fn written(result: std::io::Result<()>) -> Result<u8, Ending> {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Ending::input(
            format!("cannot write to standard output: {error}"),
        )),
        _ => Ok(exit::FINE),
    }
}

/// Prints a message beside the output. It may be from another machine or hold a path, and is made safe to show.
fn say(text: &str) {
    eprint(&format!("cuptop: {}\n", activity::text::printable(text)));
}

fn eprint(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// A recording is never written over: the `n`th rerun goes beside it, as DIR-2, DIR-3 …
fn numbered(directory: &Path, reruns: usize) -> PathBuf {
    if reruns == 0 {
        return directory.to_path_buf();
    }
    let mut name = directory.as_os_str().to_owned();
    name.push(format!("-{}", reruns + 1));
    PathBuf::from(name)
}

/// The default of `--memory`, in bytes: how much a program may take that follows a source without an end.
const DEFAULT_MEMORY: u64 = 2 << 30;

/// Bytes that the timeline itself may take of `memory`. With the final report on all of it, the program took up to 5.6
/// times as much, and 25 MiB besides.
fn rows_memory(memory: u64) -> usize {
    usize::try_from(memory / 8).unwrap_or(usize::MAX)
}

/// How reports are laid out: as wide as the terminal, coloured only there.
fn text_options() -> Options {
    let width = crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns));
    Options {
        width: width.clamp(60, 140),
        color: stdout_has_color(),
        ..Options::default()
    }
}

/// The same where standard output is the program's: what is for people goes beside it.
fn print_beside(report: &Report, how: &Printed) -> Result<(), Ending> {
    let text = printed(report, how)?;
    match how.json.is_some() || how.markdown {
        true => drop(print(&text)?),
        false => eprint(&text),
    }
    Ok(())
}

/// Says what came of each condition that a report is to fail by, and the exit code of them.
fn gates(report: &Report, gates: &[Gate]) -> u8 {
    let judged: Vec<_> = gates.iter().map(|gate| report.judge(gate)).collect();
    judged.iter().for_each(|it| say(&it.text));
    let any = |of: Option<bool>| judged.iter().any(|it| it.fails == of);
    match (any(Some(true)), any(None)) {
        (true, _) => exit::EXPECTATION,
        (false, true) => exit::MACHINE,
        (false, false) => exit::FINE,
    }
}

/// A report as the command line asks for it, every line ended.
fn printed(report: &Report, how: &Printed) -> Result<String, Ending> {
    if let Some(form) = how.json {
        let text = match form {
            Json::Full => report.json(),
            Json::Brief => report.brief(),
        };
        return Ok(text.map_err(Ending::input)? + "\n");
    }
    let parts = match how.only.as_slice() {
        [] if how.all => Parts::All,
        [] => Parts::Summary,
        only => Parts::Only(only.iter().fold(0, |bits, it| bits | it.bit())),
    };
    let plain = text_options();
    let options = Options {
        parts,
        markdown: how.markdown,
        rows: how.rows.map_or(plain.rows, NonZeroUsize::get),
        ..plain
    };
    Ok(text::render(report, &options))
}

fn stdout_has_color() -> bool {
    std::io::stdout().is_terminal() && may_color()
}

fn stderr_has_color() -> bool {
    std::io::stderr().is_terminal() && may_color()
}

/// <https://no-color.org>: set and not empty means no colour.
fn may_color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
