//! `cuptop compare`: whether one side is faster, and why.

use crate::report::text::Options;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;

use super::args::{CompareArgs, First, PictureArgs, ReplayOptions};
use super::exit::{self, Ending};
use super::print;
use super::redaction::Redaction;
use super::report::load_redacted;
use super::screen::{self, Shot};
use crate::report::compare::{CompareReport, ComparedRun};
use crate::tui::{self, OtherRun, StillTimeline};
use trace::Trace;

/// Prints how B compares with A. Exits 1 only when `--fail-over` is decided against B.
pub(super) fn compare(args: &CompareArgs) -> Result<u8, Ending> {
    let shot = screen::shot(&args.picture, ReplayOptions::default())?;
    if args.screen || shot.is_some() {
        let redaction = Redaction::new(args.anonymous);
        let (picture, first) = (&args.picture, &args.first);
        return above_each_other(&args.sides, &redaction, picture, first);
    }
    if let Some(option) = args.first.given() {
        return Err(Ending::input(format!(
            "{option} needs --screen or --screenshot FILE"
        )));
    }
    let redaction = Redaction::new(args.anonymous);
    let [a, b] = match (&args.baseline, &args.sides[..]) {
        (Some(folder), new) => [
            baseline(folder)?,
            new.iter().flat_map(|it| paths(it)).collect(),
        ],
        (None, [a, b]) => [paths(a), paths(b)],
        (None, _) => {
            return Err(Ending::input("two sides are compared")
                .help("commas stand between runs of a side: A1,A2 B1,B2"));
        }
    };
    let (a, code_a) = side(&a, &redaction, args.baseline.is_some())?;
    let (b, code_b) = side(&b, &redaction, false)?;
    let nothing = || Ending::input("there is no operation of a GPU to compare");
    let answer = CompareReport::new(&a, &b, args.fail_over).ok_or_else(nothing)?;
    if args.json {
        print(&(answer.json().map_err(Ending::input)? + "\n"))?;
    } else {
        let markdown = args.markdown;
        print(&answer.text(&Options {
            markdown,
            ..super::text_options()
        }))?;
    }
    let regressed = u8::from(answer.has_regressed()) * exit::EXPECTATION;
    Ok(code_a.max(code_b).max(regressed))
}

/// Shows two traces that the picker marked.
pub(super) fn show(two: &[PathBuf; 2], picture: &PictureArgs, first: &First) -> Result<u8, Ending> {
    above_each_other(two, &Redaction::default(), picture, first)
}

/// Shows two timelines above each other, on the screen or as a picture.
fn above_each_other(
    sides: &[PathBuf],
    redaction: &Redaction,
    picture: &PictureArgs,
    first: &First,
) -> Result<u8, Ending> {
    if screen::shot(picture, ReplayOptions::default())? == Some(Shot::Cast) {
        return Err(Ending::input("a .cast is of one timeline"));
    }
    let [a, b] = sides else {
        return Err(Ending::input("two timelines are compared"));
    };
    let ([a], [b]) = (&paths(a)[..], &paths(b)[..]) else {
        let message = "one run a side can be shown above each other";
        return Err(Ending::input(message).help("without --screen several are compared, as text"));
    };
    let load = |path| load_redacted(from_ref(path), redaction.for_another());
    let ((trace_a, code_a), (trace_b, code_b)) = (load(a)?, load(b)?);
    let code = code_a.max(code_b);
    let nothing = || Ending::input("there is no operation of a GPU to compare");
    let runs = [ComparedRun::of(&trace_a), ComparedRun::of(&trace_b)];
    let answer = CompareReport::new(&runs[..1], &runs[1..], None).ok_or_else(nothing)?;
    let beside = Arc::new(OtherRun {
        names: [&trace_a, &trace_b].map(|trace| trace.source.title.clone()),
        trace: Arc::new(trace_a),
        headline: answer.text.clone(),
        pairs: answer.rows,
    });
    for warning in &answer.warnings {
        super::say(warning);
    }
    let mut first = first.clone();
    // The view that compares them.
    first.opening.view = first.opening.view.or(tui::view_named("compare").ok());
    if picture.screenshot.is_some() {
        let shown = StillTimeline {
            beside: Some(beside),
            ..StillTimeline::of(trace_b)
        };
        screen::take_picture(shown, picture, &first)?;
        return Ok(code);
    }
    drop(trace_b);
    let opened = screen::open(
        super::report::opener(vec![b.clone()], Some(beside), super::DEFAULT_MEMORY)?,
        screen::no_scenario(),
        &first,
    )?;
    Ok(code.max(opened))
}

/// Runs of a baseline's folder that are compared: all of one time take minutes, and old ones tell little of today.
const BASELINE_RUNS: usize = 30;

/// Whether it is a folder of folders that are no ranks of a job: old runs put aside.
fn are_several(path: &Path, trace: &Trace) -> bool {
    let mut entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    if !entries.any(|entry| entry.path().is_dir()) {
        return false;
    }
    let ranks = trace.processes().iter().map(|it| it.info.rank);
    let mut ranks: Vec<_> = ranks.collect();
    let all = ranks.len();
    ranks.sort_unstable();
    ranks.dedup();
    ranks.len() < all
}

fn leave_out(path: &Path) {
    super::say(&format!("{} is left out of the baseline", path.display()));
}

/// What lies in a baseline's folder, in the order of time.
fn baseline(folder: &Path) -> Result<Vec<PathBuf>, Ending> {
    let wrong = |error| Ending::input(format!("{}: {error}", folder.display()));
    let mut runs = Vec::new();
    let whole = folder.canonicalize().map_err(wrong)?;
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let path = entry.path();
        // Nothing is waited for, and a link to what it lies in is no run.
        let is_run = path.metadata().is_ok_and(|it| it.is_file() || it.is_dir())
            && !path.canonicalize().is_ok_and(|to| whole.starts_with(to));
        if is_run {
            let changed = entry.metadata().and_then(|it| it.modified());
            runs.push((changed.map_err(wrong)?, path));
        } else {
            leave_out(&path);
        }
    }
    runs.sort();
    let old = runs.len().saturating_sub(BASELINE_RUNS);
    if runs.is_empty() {
        let message = format!("{}: there is no run in it", folder.display());
        return Err(
            Ending::input(message).help("`--save-baseline DIR` of `run` and `trace` keeps one")
        );
    }
    Ok(runs.into_iter().skip(old).map(|it| it.1).collect())
}

/// The runs of a side. Of a baseline those that are damaged or hold nothing to compare are left out.
fn side(
    paths: &[PathBuf],
    redaction: &Redaction,
    is_baseline: bool,
) -> Result<(Vec<ComparedRun>, u8), Ending> {
    let mut runs = Vec::new();
    let mut code = exit::FINE;
    for path in paths {
        // One after another, so that only one timeline is in memory.
        let loaded = load_redacted(from_ref(path), redaction.for_another());
        let (trace, damaged) = match loaded {
            Err(ending) if is_baseline => {
                let _ = ending.report();
                continue;
            }
            loaded => loaded?,
        };
        let is_none = trace.operations_extent().is_none() || are_several(path, &trace);
        if is_baseline && (damaged != exit::FINE || is_none) {
            leave_out(path);
            continue;
        }
        runs.push(ComparedRun::of(&trace));
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
