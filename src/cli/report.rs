//! `cuptop report` and `cuptop compare`: figures of traces.

use std::path::PathBuf;

use super::args::{Compare, Report as ReportArgs};
use super::drain::drain;
use super::exit::{self, Ending};
use super::print;
use crate::activity::feed::Outcome;
use crate::analysis::figures::Peaks;
use crate::report::compare::Comparison;
use crate::report::{Report, text};
use crate::source::file::{self, Opened};
use crate::trace::{SourceInfo, SourceKind, Trace};

/// Prints the figures of traces.
pub(super) fn report(args: &ReportArgs) -> Result<u8, Ending> {
    let (report, code) = of(&args.traces)?;
    if args.json {
        print(&super::run::json(&report)?)?;
    } else {
        print(&text::render(&report, &super::text_options()))?;
    }
    Ok(code)
}

/// Prints two traces' figures side by side.
pub(super) fn compare(args: &Compare) -> Result<u8, Ending> {
    let (a, code_a) = of(std::slice::from_ref(&args.a))?;
    let (b, code_b) = of(std::slice::from_ref(&args.b))?;
    let comparison = Comparison::new(&a, &b);
    if args.json {
        let mut text = comparison.json().map_err(Ending::input)?;
        text.push('\n');
        print(&text)?;
    } else {
        print(&comparison.text(&super::text_options()))?;
    }
    Ok(code_a.max(code_b))
}

fn of(paths: &[PathBuf]) -> Result<(Report, u8), Ending> {
    let (trace, code) = load(paths)?;
    // "% of peak" would need to know which GPU the trace is from, and its calibrated profile.
    Ok((Report::new(&trace, None, Peaks::default()), code))
}

/// Reads traces to their end. What a damaged file held before its damage is kept, said, and exits 2.
pub(super) fn load(paths: &[PathBuf]) -> Result<(Trace, u8), Ending> {
    let opened = file::open(paths).map_err(Ending::input)?;
    let mut trace = Trace::new(source_info(&opened, paths));
    let outcome = drain(&opened.feed, &mut trace);
    match outcome {
        Outcome::Complete | Outcome::Stopped => Ok((trace, exit::FINE)),
        Outcome::Failed(failure) if trace.extent().is_none() => Err(failure.into()),
        Outcome::Failed(failure) => {
            let ending = Ending::from(failure);
            let _ = ending.report();
            Ok((trace, ending.code))
        }
    }
}

/// How the timeline is labelled.
pub(super) fn source_info(opened: &Opened, paths: &[PathBuf]) -> SourceInfo {
    let first = paths.first();
    let mut title = first
        .and_then(|path| path.file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    if paths.len() > 1 {
        title.push_str(&format!(" and {} more", paths.len() - 1));
    }
    SourceInfo {
        kind: match opened.format {
            file::Format::Kineto => SourceKind::Kineto,
            file::Format::Nsys => SourceKind::Nsys,
        },
        title,
        path: first.cloned(),
        simulated: opened.simulated,
    }
}
