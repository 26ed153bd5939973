//! `cuptop run`: a scenario, on the GPU or on the simulator, with a screen or without.

mod start;

use std::cell::RefCell;
use std::sync::Arc;

use start::{Runner, place};

use super::args::{Backend, First, Run, ScreenArgs};
use super::drain::drain;
use super::exit::{self, Ending};
use super::{own, print, screen};
use crate::activity::feed::Outcome;
use crate::report::{Report, text};
use crate::scenario::plan::Plan;
use crate::source::sim::Pace;
use crate::trace::Trace;
use crate::tui::Wanted;

/// Runs a scenario.
pub(super) fn run(args: &Run, screen_args: &ScreenArgs) -> Result<u8, Ending> {
    let format = screen::picture_format(&args.picture)?;
    if args.headless || format.is_some() {
        return without_screen(args, screen_args);
    }
    // A scenario that does not exist is a mistake on the command line; one that does not compile is
    // shown on the screen, which waits for it to be mended.
    Runner::find(&args.scenario)?;
    let runner = Runner::new(args, place(args.backend)?, Pace::RealTime)?;
    on_screen(runner, Some(Wanted::Same), &args.first, screen_args)
}

/// Opens the picker of the bundled scenarios.
pub(super) fn pick(screen_args: &ScreenArgs) -> Result<u8, Ending> {
    let args = Run::bundled();
    let runner = Runner::new(&args, place(Backend::Auto)?, Pace::RealTime)?;
    on_screen(runner, None, &args.first, screen_args)
}

fn on_screen(
    runner: Runner,
    first: Option<Wanted>,
    show: &First,
    screen_args: &ScreenArgs,
) -> Result<u8, Ending> {
    let runner = RefCell::new(runner);
    screen::open(
        Box::new(|wanted| runner.borrow_mut().start_for_screen(wanted)),
        first,
        Box::new(|| own::editable(runner.borrow().current())),
        show,
        screen_args,
    )
}

fn without_screen(args: &Run, screen_args: &ScreenArgs) -> Result<u8, Ending> {
    Runner::find(&args.scenario)?;
    let place = place(args.backend)?;
    if let Some(why) = place.reason() {
        super::eprint(&format!("cuptop: simulating: {why}\n"));
    }
    let mut runner = Runner::new(args, place, Pace::AsFastAsPossible)?;
    let started = runner.start(&args.scenario, super::stderr_has_color())?;
    if !started.warnings.is_empty() {
        super::eprint(&started.warnings.render(super::stderr_has_color()));
    }
    let mut trace = Trace::new(started.info);
    let outcome = drain(&started.feed, &mut trace);
    drop(started.feed);
    let peaks = runner.peaks();
    let code = if args.headless {
        report(args, &trace, &started.plan, peaks.copies, &outcome)?
    } else {
        exit::FINE
    };
    let plan = Some(started.plan);
    screen::take_picture(trace, plan, peaks, &args.picture, &args.first, screen_args)?;
    match outcome {
        Outcome::Complete => Ok(code),
        Outcome::Stopped => Err(Ending::input("the run was stopped before its end")),
        Outcome::Failed(failure) => Err(failure.into()),
    }
}

/// Prints the report, also of a run that failed half way: what was collected is valid.
fn report(
    args: &Run,
    trace: &Trace,
    plan: &Arc<Plan>,
    peaks: crate::analysis::figures::Peaks,
    outcome: &Outcome,
) -> Result<u8, Ending> {
    let report = Report::new(trace, Some(plan), peaks);
    if args.json {
        print(&super::report::json(&report)?)?;
    } else {
        print(&text::render(&report, &super::text_options()))?;
    }
    let is_complete = *outcome == Outcome::Complete;
    Ok(if is_complete && !report.is_as_expected() {
        exit::EXPECTATION
    } else {
        exit::FINE
    })
}
