//! `cuptop open`, `report` and `export`: timelines that exist already.

use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::{Export, Open, ReportArgs};
use super::collect::collect_into;
use super::exit::{self, Ending};
use super::playback::Playback;
use super::redaction::Redaction;
use super::screen::Shot;
use super::{print, screen};
use crate::export::{self, Readers, TimelineFormat};
use crate::report::Report;
use crate::tui::{OtherRun, Running, StartFn, StillTimeline};
use activity::feed::Outcome;
use activity::text::counted;
use activity::{Batch, Span, units};
use hosts::Place;
use readers::file::{self, OpenTrace};
use scenario::view::View as Part;
use trace::{Clocks, SourceInfo, SourceKind, Trace};

pub(super) fn open(args: &Open) -> Result<u8, Ending> {
    match (
        screen::shot(&args.picture, args.replayed)?,
        args.replayed.replay,
    ) {
        (Some(Shot::Cast), _) => {
            let played = play(&args.traces, Redaction::default())?;
            played.write(&args.picture, args.replayed, &args.first)?;
            return Ok(code_of(played.outcome));
        }
        (None, Some(speed)) => {
            let (file, first) = (screen::no_scenario(), &args.first);
            let played = play(&args.traces, Redaction::default())?;
            return played.on_screen(speed, file, first);
        }
        (Some(Shot::Picture(_)), _) | (None, None) => {}
    }
    if args.picture.screenshot.is_some() {
        let (trace, code) = load_redacted(&args.traces, Redaction::default())?;
        screen::take_picture(StillTimeline::of(trace), &args.picture, &args.first)?;
        return Ok(code);
    }
    screen::open(
        opener(args.traces.clone(), None, args.memory)?,
        screen::no_scenario(),
        &args.first,
    )
}

/// Opens traces for the screen, again for each rerun. It reports what it cannot open before the screen takes the
/// terminal. A job that still runs is kept within `memory` bytes, as `cuptop trace` keeps one.
pub(super) fn opener(
    paths: Vec<PathBuf>,
    beside: Option<Arc<OtherRun>>,
    memory: u64,
) -> Result<StartFn<'static>, Ending> {
    let first = file::open_live(&paths, Some(&mut super::say)).map_err(Ending::input)?;
    Ok(reopener(Some(first), paths, beside, memory))
}

/// The same while the screen has the terminal: nothing is asked there. What cannot be opened is said when it is started.
pub(super) fn reopener(
    mut first: Option<OpenTrace>,
    paths: Vec<PathBuf>,
    beside: Option<Arc<OtherRun>>,
    memory: u64,
) -> StartFn<'static> {
    Box::new(move |_| {
        let opened = match first.take() {
            Some(opened) => opened,
            None => file::open_live(&paths, None).map_err(Ending::input)?,
        };
        let source = source_info(&opened, &paths);
        Ok(Running {
            // The user chose the size of a run that has ended.
            memory: opened.is_growing.then(|| super::rows_memory(memory)),
            beside: beside.clone(),
            gpus: super::profile::kept(),
            ..Running::new(opened.feed, source)
        })
    })
}

/// Prints the figures of traces.
pub(super) fn report(args: &ReportArgs) -> Result<u8, Ending> {
    let (trace, code) = load_redacted(&args.traces, Redaction::new(args.anonymous))?;
    let report = Report::new(&trace, None, super::profile::kept());
    print(&super::printed(&report, &args.printed)?)?;
    let gates = super::gates(&report, &args.fail_if);
    Ok(if code == exit::FINE { gates } else { code })
}

/// Writes traces for other programs, or as a picture.
pub(super) fn export(args: &Export) -> Result<u8, Ending> {
    let format = format(args, io::stdout().is_terminal())?;
    if let Some(path) = &args.output {
        refuse_source(path, &args.traces)?;
    }
    refuse_options(args, &format)?;
    let (first, redaction) = (&args.first, Redaction::new(args.anonymous));
    // Whole timelines hold command lines, as reports do.
    let readers = match format.format {
        export::Format::Timeline(TimelineFormat::Chrome) | export::Format::Page
            if !args.anonymous =>
        {
            Readers::Owner
        }
        _ => Readers::AsUmask,
    };
    match format.format {
        export::Format::Cast => {
            let played = play(&args.traces, redaction)?;
            let film = played.film(args.replayed.replay, args.size, first)?;
            write(args, readers, film)?;
            Ok(code_of(played.outcome))
        }
        export::Format::Timeline(format) => {
            let (mut trace, mut code) = load_redacted(&args.traces, redaction)?;
            if let Some(part) = args.first.opening.zoom {
                (trace, code) = cut_out(args, part, &trace)?;
            }
            let gpus = super::profile::kept();
            write(args, readers, |out| {
                export::write_data(format, &trace, &gpus, out)
            })?;
            Ok(code)
        }
        export::Format::Page => {
            let (trace, code) = load_redacted(&args.traces, redaction)?;
            screen::page(trace, args.size, first, |page| {
                write(args, readers, |out| page.write(out))
            })?;
            Ok(code)
        }
        export::Format::Screen(format) => {
            let (trace, code) = load_redacted(&args.traces, redaction)?;
            let drawn = screen::draw(StillTimeline::of(trace), args.size, first)?;
            write(args, readers, |out| {
                export::screen::write(format, &drawn, out)
            })?;
            Ok(code)
        }
    }
}

/// Refuses options that say nothing to this format.
fn refuse_options(args: &Export, of: &export::FormatEntry) -> Result<(), Ending> {
    let name = of.name;
    let message = match (of.format, args.first.given()) {
        (export::Format::Timeline(_), Some(option)) => {
            format!("{option} is for pictures, and {name} has all of the timeline")
        }
        (export::Format::Cast, _) => return Ok(()),
        _ if args.replayed.replay.is_none() => return Ok(()),
        _ => format!("--replay is for .cast, and {name} stands still"),
    };
    Err(Ending::input(message))
}

/// Reads a part of the traces alone, and says what is cut at its edges.
fn cut_out(args: &Export, part: Part, whole: &Trace) -> Result<(Trace, u8), Ending> {
    let nothing =
        || Ending::input("nothing ran on a GPU in it, so --zoom has nothing to count from");
    let window = part.within_span(whole.operations_extent().ok_or_else(nothing)?);
    // Sources have the times that were recorded.
    let window = whole.recorded_hull(window);
    let (mut crossing, mut is_less) = (0_u64, false);
    let cut = |mut batch: Batch| {
        batch.items.retain_mut(|it| {
            let span = it.span;
            it.span = Span::new(
                span.start.max(window.start),
                span.end.min(window.end.max(span.start)),
            );
            let is_in = span.overlaps(window);
            crossing += u64::from(is_in && it.span != span);
            is_in
        });
        is_less |= batch.samples.take().is_some();
        is_less |= !(batch.hardware.is_empty() && batch.off_cpu.is_empty());
        (batch.hardware, batch.off_cpu) = (Vec::new(), Vec::new());
        batch
    };
    let redaction = Redaction::new(args.anonymous);
    let read = load_with(&args.traces, redaction, cut)?;
    let less = is_less.then_some("; samples and counters are left out");
    let less = less.unwrap_or_default();
    let length = units::duration(window.len());
    let crossing = counted(crossing, "record is cut off", "records are cut off");
    super::say(&format!("{length} of it; {crossing} at its edges{less}"));
    Ok(read)
}

/// Writes an export to the place that the user named.
fn write(
    args: &Export,
    readers: Readers,
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> Result<(), Ending> {
    let Some(path) = &args.output else {
        let mut out = BufWriter::new(io::stdout().lock());
        return super::written(write(&mut out).and_then(|()| out.flush())).map(drop);
    };
    let is_there = path.is_file();
    match export::is_compressed(path) {
        true => export::to_file(path, readers, |out| export::compressed(out, write)),
        false => export::to_file(path, readers, write),
    }
    .map_err(Ending::input)?;
    if is_there {
        let path = path.display();
        super::say(&format!("wrote {path} over the file that was there"));
    }
    Ok(())
}

/// Refuses to overwrite a source: a trace cannot be recorded again, and an export may hold less than it. So is a database
/// in use: SQLite would put what its journal holds into the new one.
fn refuse_source(path: &Path, traces: &[PathBuf]) -> Result<(), Ending> {
    for ending in ["-journal", "-wal"] {
        let mut journal = path.as_os_str().to_owned();
        journal.push(ending);
        if std::fs::metadata(&journal).is_ok_and(|it| it.len() > 0) {
            let help = "another program has that database open, or was stopped while it wrote: choose another name";
            let message = format!("{} lies beside the export", journal.display());
            return Err(Ending::input(message).help(help));
        }
    }
    let Ok(target) = path.canonicalize() else {
        return Ok(());
    };
    let is_source = |trace: &PathBuf| {
        trace
            .canonicalize()
            .is_ok_and(|trace| target.starts_with(trace))
    };
    match traces.iter().any(is_source) {
        true => Err(Ending::input(format!(
            "{} is what is read, and would be written over",
            path.display()
        ))
        .help("choose another name for the export")),
        false => Ok(()),
    }
}

/// The format that the user named, or the one of the file's name.
fn format(args: &Export, is_terminal: bool) -> Result<export::FormatEntry, Ending> {
    let format = match (&args.to, &args.output) {
        (Some(name), _) => export::FormatEntry::named(name),
        (None, Some(path)) => export::FormatEntry::of_path(path),
        (None, None) => None,
    };
    let names = export::FORMATS.map(|format| format.name).join(", ");
    let format = format.ok_or_else(|| {
        Ending::input("the file's name does not say in which format to write").help(format!(
            "add --to with one of {names}; https://ui.perfetto.dev opens -o trace.json"
        ))
    })?;
    if format.is_binary() && args.output.is_none() && is_terminal {
        return Err(Ending::input(format!(
            "{} is binary, and not written to a terminal",
            format.name
        ))
        .help("name a file with -o, or redirect standard output"));
    }
    Ok(format)
}

/// Reads traces to their end, redacted as wanted. A damaged file is kept up to its damage, with a message, and exits 2. It puts a job's ranks on one clock.
pub(super) fn load_redacted(
    paths: &[PathBuf],
    redaction: Redaction,
) -> Result<(Trace, u8), Ending> {
    load_with(paths, redaction, |batch| batch)
}

fn load_with(
    paths: &[PathBuf],
    mut redaction: Redaction,
    mut change: impl FnMut(Batch) -> Batch,
) -> Result<(Trace, u8), Ending> {
    let opened = file::open(paths, &mut super::say).map_err(Ending::input)?;
    let mut trace = Trace::new(redaction.label(source_info(&opened, paths)));
    let outcome = collect_into(&opened.feed, |batch| {
        trace.apply(change(redaction.apply(batch)));
    });
    jobs::align_clocks(&mut trace);
    match outcome {
        Outcome::Failed(failure) if trace.extent().is_none() => Err(failure.into()),
        outcome => Ok((trace, code_of(outcome))),
    }
}

/// Reads traces to their end for playing.
fn play(paths: &[PathBuf], redaction: Redaction) -> Result<Playback, Ending> {
    let opened = file::open(paths, &mut super::say).map_err(Ending::input)?;
    let source = redaction.label(source_info(&opened, paths));
    Playback::gather(
        &opened.feed,
        source,
        None,
        super::profile::kept(),
        redaction,
    )
}

/// The exit code after reading a damaged file up to its damage, which is said.
fn code_of(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Complete | Outcome::Stopped => exit::FINE,
        Outcome::Failed(failure) => {
            let code = failure.kind.code();
            let _ = Ending::from(failure).report();
            code
        }
    }
}

/// The timeline's label.
fn source_info(opened: &OpenTrace, paths: &[PathBuf]) -> SourceInfo {
    let first = paths.first();
    let name = |path: &PathBuf| match (Place::parse(path), path.file_name()) {
        (Some(place), _) => place.name(),
        (None, Some(name)) if name == file::STDIN => "standard input".to_owned(),
        (None, name) => name.unwrap_or_default().to_string_lossy().into_owned(),
    };
    let mut title = first.map(name).unwrap_or_default();
    if paths.len() > 1 {
        title.push_str(&format!(" and {} more", paths.len() - 1));
    }
    SourceInfo {
        kind: match opened.format {
            file::Format::Kineto => SourceKind::Kineto,
            file::Format::Nsys => SourceKind::Nsys,
            file::Format::Recording => SourceKind::Recording,
        },
        title,
        path: first.cloned(),
        simulated: opened.simulated,
        // Nsight Systems has all of a report on one clock.
        clocks: match (opened.format, paths) {
            (file::Format::Nsys, [one]) if !one.is_dir() => Clocks::One,
            _ => Clocks::Unknown,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(to: Option<&str>, output: Option<&str>) -> Export {
        Export {
            traces: Vec::new(),
            to: to.map(str::to_owned),
            output: output.map(PathBuf::from),
            size: (120, 40),
            first: crate::cli::args::First::default(),
            replayed: crate::cli::args::ReplayOptions::default(),
            anonymous: false,
        }
    }

    #[test]
    fn the_format_is_the_named_one_or_that_of_the_files_name() {
        let name = |to, output| format(&export(to, output), false).map(|format| format.name);
        assert_eq!(name(Some("csv"), Some("a.svg")), Ok("csv"));
        assert_eq!(name(None, Some("a.svg")), Ok("svg"));
        assert_eq!(name(None, Some("a.json")), Ok("chrome"));
        assert_eq!(name(None, Some("a.json.gz")), Ok("chrome"));
        assert_eq!(name(Some("svg"), Some("a.svg.gz")), Ok("svg"));
        // Help promises it of any of them.
        assert_eq!(name(None, Some("a.html.gz")), Ok("html"));
        assert_eq!(name(None, Some("a.svg.gz")), Ok("svg"));
        for output in ["a", "a.exe", "a.gz", "a.gz.svg.exe", "a.pftrace"] {
            assert_eq!(
                name(None, Some(output)).map_err(|e| e.failure.kind.code()),
                Err(exit::INPUT)
            );
        }
    }

    #[test]
    fn a_terminal_gets_no_binary_format() {
        for (to, output, is_terminal, is_fine) in [
            ("png", None, true, false),
            ("sqlite", None, true, false),
            ("csv", None, true, true),
            ("png", None, false, true),
            ("png", Some("a.png"), true, true),
        ] {
            let format = format(&export(Some(to), output), is_terminal);
            assert_eq!(format.is_ok(), is_fine, "{to} {output:?} {is_terminal}");
        }
    }
}
