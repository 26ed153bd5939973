//! `cuptop trace -- CMD`: any CUDA program, watched.

use std::io;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::args::{GraphRecords, ScreenArgs, Trace as TraceArgs};
use super::drain::drain;
use super::exit::{self, Ending};
use super::{print, screen};
use crate::activity::feed::{Feed, Outcome};
use crate::analysis::figures;
use crate::report::{Report, text};
use crate::scenario::value;
use crate::source::attach::{self, AttachRequest, Output};
use crate::source::recording::scratch;
use crate::trace::{SourceInfo, SourceKind, Trace};
use crate::tui::{Peaks, Running, Wanted};

/// Traces a program.
pub(super) fn trace(args: &TraceArgs, screen_args: &ScreenArgs) -> Result<u8, Ending> {
    let format = screen::picture_format(&args.picture)?;
    let mut watched = Watched {
        args,
        max_bytes: max_bytes(args)?,
        scratch: None,
        runs: 0,
    };
    if args.headless || format.is_some() {
        return headless(&mut watched, screen_args);
    }
    screen::open(
        Box::new(move |_| {
            let feed = watched.start(Output::Capture).map_err(|error| {
                Ending::machine(format!("cannot trace: {error}")).for_screen(None)
            })?;
            Ok(Running {
                feed,
                source: watched.info(),
                plan: None,
                peaks: Peaks::default(),
                warnings: Vec::new(),
                file: None,
            })
        }),
        Some(Wanted::Same),
        screen_args,
    )
}

/// The program keeps standard output and standard error; the report goes to standard error, or as JSON
/// to standard output, after all that the program printed.
fn headless(watched: &mut Watched<'_>, screen_args: &ScreenArgs) -> Result<u8, Ending> {
    let feed = watched
        .start(Output::Inherit)
        .map_err(|error| Ending::machine(format!("cannot trace: {error}")))?;
    let mut trace = Trace::new(watched.info());
    let outcome = drain(&feed, &mut trace);
    drop(feed);
    if watched.args.headless {
        let report = Report::new(&trace, None, figures::Peaks::default());
        if watched.args.json {
            print(&super::report::json(&report)?)?;
        } else {
            super::eprint(&text::render(&report, &super::text_options()));
        }
    }
    let picture = &watched.args.picture;
    screen::take_picture(trace, None, Peaks::default(), picture, screen_args)?;
    match outcome {
        Outcome::Complete => Ok(exit::FINE),
        Outcome::Stopped => Err(Ending::input("the program was stopped before its end")),
        Outcome::Failed(failure) => Err(failure.into()),
    }
}

/// The program, to be started again and again.
struct Watched<'a> {
    args: &'a TraceArgs,
    max_bytes: u64,
    /// Where the recording lies that nobody asked to keep. The run before has ended when it is replaced.
    scratch: Option<TempDir>,
    runs: usize,
}

impl Watched<'_> {
    fn start(&mut self, output: Output) -> io::Result<Feed> {
        let dir = match &self.args.save {
            Some(dir) => super::numbered(dir, self.runs),
            None => self.scratch.insert(scratch::directory()?).path().to_owned(),
        };
        let feed = attach::run(AttachRequest {
            command: self.args.command.clone(),
            dir,
            flush_period: Duration::from_millis(self.args.flush),
            max_bytes: self.max_bytes,
            keep: self
                .args
                .keep
                .map(|minutes| Duration::from_secs(60 * minutes)),
            waits: self.args.waits,
            graphs: match self.args.graphs {
                GraphRecords::Nodes => attach::Graphs::Nodes,
                GraphRecords::Whole => attach::Graphs::Whole,
            },
            output,
        })?;
        self.runs += 1;
        Ok(feed)
    }

    fn info(&self) -> SourceInfo {
        let words = self.args.command.iter().enumerate().map(|(i, word)| {
            let text = word.to_string_lossy();
            match Path::new(word).file_name() {
                // The program's folder says little and takes much room.
                Some(name) if i == 0 => name.to_string_lossy().into_owned(),
                _ => text.into_owned(),
            }
        });
        SourceInfo {
            kind: SourceKind::Traced,
            title: words.collect::<Vec<_>>().join(" "),
            path: None,
            simulated: false,
        }
    }
}

fn max_bytes(args: &TraceArgs) -> Result<u64, Ending> {
    match &args.max_size {
        None => Ok(0),
        Some(text) => value::parse_bytes(text).ok_or_else(|| {
            Ending::input(format!(
                "--max-size {text}: expected a size such as \"500 MiB\""
            ))
        }),
    }
}
