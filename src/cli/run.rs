//! `cuptop run`: a scenario, on the GPU or on the simulator, with a screen or without.

mod start;

use std::cell::RefCell;
use std::sync::Arc;

use start::{Runner, StartedRun, choose_target};

use super::args::{Backend, First, RunArgs, counters_beside};
use super::collect::collect;
use super::exit::{self, Ending};
use super::playback::Playback;
use super::redaction::Redaction;
use super::screen::{Beside, Shot};
use super::{print, scenario_file, screen};
use crate::board;
use crate::report::{KnownGpus, Report};
use crate::tui::{Exit, NextRun, StillTimeline};
use activity::feed::Outcome;
use scenario::plan::Plan;
use sim::Pace;
use trace::Trace;

pub(super) fn run(args: &RunArgs) -> Result<u8, Ending> {
    let shot = screen::shot(&args.picture, args.replayed)?;
    counters_beside(args.stalls, args.recorded.counters).map_err(Ending::input)?;
    if args.headless && shot != Some(Shot::Cast) && args.replayed.replay.is_some() {
        return Err(Ending::input(
            "--replay is for the screen, which --headless does without",
        ));
    }
    if args.headless || shot.is_some() {
        return without_screen(args, shot);
    }
    if let Some(speed) = args.replayed.replay {
        let played = play(args)?;
        let file = Box::new(|| scenario_file::editable(&args.scenario));
        return played.on_screen(speed, file, &args.first);
    }
    // A scenario that does not exist is a mistake on the command line. One that does not compile is shown on the
    // screen, which waits for the user to correct it.
    Runner::find(&args.scenario)?;
    let runner = Runner::new(args, choose_target(args.backend)?, Pace::RealTime)?;
    let exit = on_screen(runner, Some(NextRun::Same), Beside::default(), &args.first)?;
    screen::code_of(exit)
}

/// Opens the picker: the programs on this machine's GPUs, and the bundled scenarios. Above it may lie how a job stands.
pub(super) fn pick(first: Option<NextRun>) -> Result<u8, Ending> {
    // The first look happens while the driver is asked below.
    let machine = live::machine::watch().ok();
    let args = RunArgs::bundled();
    let runner = Runner::new(&args, choose_target(Backend::Auto)?, Pace::RealTime)?;
    let board = std::env::current_dir().and_then(board::watch).ok();
    let exit = on_screen(runner, first, (machine, board), &args.first)?;
    if let Some(two) = &exit.compare {
        return super::compare::show(two, &args.picture, &args.first);
    }
    screen::code_of(exit)
}

fn on_screen(
    runner: Runner<'_>,
    first: Option<NextRun>,
    beside: Beside,
    show: &First,
) -> Result<Exit, Ending> {
    let runner = RefCell::new(runner);
    let (mut program, mut trace) = (None, None);
    screen::stay(
        Box::new(|wanted| {
            match wanted {
                NextRun::Same | NextRun::Look(_) | NextRun::Compare(_) => {}
                NextRun::Scenario(_) => (program, trace) = (None, None),
                NextRun::Process(pid) | NextRun::Enter(pid) => {
                    (program, trace) = (Some(super::running_program(*pid)?), None);
                }
                NextRun::Open(path) => {
                    let paths = vec![path.clone()];
                    let opener = super::report::reopener(None, paths, None, super::DEFAULT_MEMORY);
                    (program, trace) = (None, Some(opener));
                }
            }
            match (&mut program, &mut trace) {
                (Some(program), _) => program.start_for_screen(wanted),
                (_, Some(trace)) => trace(wanted),
                _ => runner.borrow_mut().start_for_screen(wanted),
            }
        }),
        first,
        beside,
        Box::new(|| scenario_file::editable(&runner.borrow().current)),
        show,
    )
}

/// Starts a scenario. Its screen, if there is one, comes later.
fn start(args: &RunArgs) -> Result<(StartedRun, KnownGpus), Ending> {
    Runner::find(&args.scenario)?;
    let place = choose_target(args.backend)?;
    let is_instead = place.reason().is_some();
    let mut runner = Runner::new(args, place, Pace::AsFastAsPossible)?;
    if is_instead {
        let device = &runner.profile.device.name;
        super::say(&format!(
            "no usable GPU: simulating {device} (cuptop doctor says why)"
        ));
    }
    let started = runner.start(&args.scenario, super::stderr_has_color())?;
    if !started.warnings.is_empty() {
        super::eprint(&started.warnings.render(super::stderr_has_color()));
    }
    Ok((started, runner.gpus()))
}

/// Runs a scenario to its end, for playing afterwards.
fn play(args: &RunArgs) -> Result<Playback, Ending> {
    let (started, gpus) = start(args)?;
    let all = Redaction::default();
    Playback::gather(&started.feed, started.info, Some(started.plan), gpus, all)
}

/// Runs a scenario and writes a cast of its screens.
fn film(args: &RunArgs) -> Result<u8, Ending> {
    let played = play(args)?;
    let mut code = exit::FINE;
    if let (true, Some(plan)) = (args.headless, &played.plan) {
        code = report(
            args,
            &played.trace(),
            plan,
            played.gpus.clone(),
            &played.outcome,
        )?;
    }
    played.write(&args.picture, args.replayed, &args.first)?;
    exit::ended(played.outcome, code)
}

fn without_screen(args: &RunArgs, shot: Option<Shot>) -> Result<u8, Ending> {
    if shot == Some(Shot::Cast) {
        return film(args);
    }
    let (started, gpus) = start(args)?;
    let (trace, outcome) = collect(started.feed, started.info, None);
    let code = if args.headless {
        report(args, &trace, &started.plan, gpus.clone(), &outcome)?
    } else {
        exit::FINE
    };
    let shown = StillTimeline {
        plan: Some(started.plan),
        gpus,
        ..StillTimeline::of(trace)
    };
    screen::take_picture(shown, &args.picture, &args.first)?;
    exit::ended(outcome, code)
}

/// Prints the report, also of a run that failed half way: the collected part is valid.
fn report(
    args: &RunArgs,
    trace: &Trace,
    plan: &Arc<Plan>,
    gpus: KnownGpus,
    outcome: &Outcome,
) -> Result<u8, Ending> {
    let report = Report::new(trace, Some(plan), gpus);
    print(&super::printed(&report, &args.printed)?)?;
    Ok(match *outcome == Outcome::Complete {
        true if !report.is_as_expected() => exit::EXPECTATION,
        true if !report.is_judged() => exit::MACHINE,
        _ => exit::FINE,
    })
}
