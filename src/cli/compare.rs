//! `cuptop compare`: whether one side is faster, and why.

use crate::report::text::Options;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;

use super::args::{Compare, First, OnClock, Open, Picture, ReplayOptions, ScreenArgs};
use super::exit::{self, Ending};
use super::print;
use super::redaction::Redaction;
use super::report::load_redacted;
use super::screen::{self, Shot};
use crate::report::compare::{Answer, Run};
use crate::tui::{self, NextRun, OtherRun, Pair, StillTimeline};
use activity::text::printable;

/// Prints how B compares with A. Exits 1 only when `--fail-over` is decided against B.
pub(super) fn compare(args: &Compare, screen_args: &ScreenArgs) -> Result<u8, Ending> {
    let shot = screen::shot(&args.picture, ReplayOptions::default())?;
    if args.screen || shot.is_some() {
        let redaction = Redaction::new(args.anonymous);
        return above_each_other(
            [&args.a, &args.b],
            &redaction,
            &args.picture,
            &args.first,
            screen_args,
        );
    }
    if let Some(option) = args.first.given() {
        return Err(Ending::input(format!(
            "{option} needs --screen or --screenshot FILE"
        )));
    }
    let redaction = Redaction::new(args.anonymous);
    let (a, code_a) = side(&args.a, &redaction)?;
    let (b, code_b) = side(&args.b, &redaction)?;
    let nothing = || Ending::input("there is no operation of a GPU to compare");
    let answer = Answer::new(&a, &b, args.fail_over).ok_or_else(nothing)?;
    if args.json {
        let mut text = answer.json().map_err(Ending::input)?;
        text.push('\n');
        print(&text)?;
    } else {
        let markdown = args.markdown;
        print(&answer.text(&Options {
            markdown,
            ..super::text_options()
        }))?;
    }
    let regressed = if answer.has_regressed() {
        exit::EXPECTATION
    } else {
        exit::FINE
    };
    Ok(code_a.max(code_b).max(regressed))
}

/// Whether the user wants `open` to compare two timelines: then they are no parts of one.
pub(super) fn is_meant(args: &Open) -> bool {
    args.traces.len() == 2
        && args.first.view.is_some()
        && args.first.view == tui::view_named("compare").ok()
        && args.replayed.replay.is_none()
}

/// `open` for two timelines to compare.
pub(super) fn opened(args: &Open, screen_args: &ScreenArgs) -> Result<u8, Ending> {
    let [a, b] = &args.traces[..] else {
        return Err(Ending::input("two timelines are compared"));
    };
    let redaction = Redaction::default();
    above_each_other([a, b], &redaction, &args.picture, &args.first, screen_args)
}

/// Shows two timelines above each other, on the screen or as a picture.
fn above_each_other(
    [a, b]: [&Path; 2],
    redaction: &Redaction,
    picture: &Picture,
    first: &First,
    screen_args: &ScreenArgs,
) -> Result<u8, Ending> {
    if screen::shot(picture, ReplayOptions::default())? == Some(Shot::Cast) {
        return Err(Ending::input("a .cast is of one timeline"));
    }
    let ([a], [b]) = (&paths(a)[..], &paths(b)[..]) else {
        let message = "one run a side can be shown above each other";
        return Err(Ending::input(message).help("without --screen several are compared, as text"));
    };
    let load = |path| load_redacted(from_ref(path), redaction.for_another(), OnClock::default());
    let ((trace_a, code_a), (trace_b, code_b)) = (load(a)?, load(b)?);
    let code = code_a.max(code_b);
    let nothing = || Ending::input("there is no operation of a GPU to compare");
    let runs = [Run::of(&trace_a), Run::of(&trace_b)];
    let answer = Answer::new(&runs[..1], &runs[1..], None).ok_or_else(nothing)?;
    let beside = Arc::new(OtherRun {
        names: [&trace_a, &trace_b].map(|trace| trace.source.title.clone()),
        trace: Arc::new(trace_a),
        headline: answer.text.clone(),
        pairs: answer.rows.iter().map(Pair::from).collect(),
    });
    for warning in &answer.warnings {
        super::eprint(&format!("cuptop: {}\n", printable(warning)));
    }
    let mut first = first.clone();
    // The view that compares them.
    first.view = first.view.or(tui::view_named("compare").ok());
    if picture.screenshot.is_some() {
        let shown = StillTimeline {
            beside: Some(beside),
            ..StillTimeline::of(trace_b)
        };
        screen::take_picture(shown, picture, &first, screen_args)?;
        return Ok(code);
    }
    drop(trace_b);
    let opened = screen::open(
        super::report::opener(
            vec![b.clone()],
            Some(beside),
            super::DEFAULT_MEMORY,
            OnClock::default(),
        )?,
        Some(NextRun::Same),
        screen::no_scenario(),
        &first,
        screen_args,
    )?;
    Ok(code.max(opened))
}

/// The runs of a side: of one file, or of several with commas between them.
fn side(text: &Path, redaction: &Redaction) -> Result<(Vec<Run>, u8), Ending> {
    let mut runs = Vec::new();
    let mut code = exit::FINE;
    for path in paths(text) {
        // One after another, so that only one timeline is in memory.
        let (trace, damaged) = load_redacted(&[path], redaction.for_another(), OnClock::default())?;
        runs.push(Run::of(&trace));
        code = code.max(damaged);
    }
    Ok((runs, code))
}

/// A name with a comma in it is one file when there is such a file.
fn paths(text: &Path) -> Vec<PathBuf> {
    match text.to_str() {
        Some(several) if several.contains(',') && !text.exists() => {
            let parts = several.split(',').filter(|part| !part.is_empty());
            parts.map(PathBuf::from).collect()
        }
        _ => vec![text.to_path_buf()],
    }
}
