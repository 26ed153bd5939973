//! Trace files: what kind each one is, told by its content, and all of them as one timeline.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::activity::feed::{Failure, FailureKind, Feed, Message, Outcome, Outlet};
use crate::source::{kineto, nsys, recording};
use crate::text::printable;

/// What kind of trace a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Kineto or Chrome JSON, gzipped or not.
    Kineto,
    /// An SQLite export of Nsight Systems.
    Nsys,
    /// A recording of cuptop: a directory or a single file.
    Recording,
}

/// A timeline that is being read.
#[derive(Debug)]
pub struct Opened {
    /// Where the activities come from.
    pub feed: Feed,
    /// What the first file is.
    pub format: Format,
    /// Whether one of the files says that no GPU was involved.
    pub simulated: bool,
}

/// Why a file can not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system would not let it be read.
    #[error("cannot read {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is something else.
    #[error("{path} is not a trace that cuptop understands ({what})\n{UNDERSTOOD}")]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        what: String,
    },
    /// No file was named.
    #[error("no trace file was named")]
    Nothing,
}

/// What can be opened, for error messages and help.
pub const UNDERSTOOD: &str = "understood are: PyTorch/Kineto and other Chrome JSON traces (.json, .json.gz), \
     Nsight Systems exports (.sqlite, from `nsys export --type sqlite`), and recordings of cuptop";

/// Opens trace files as one timeline: their processes stand side by side, on the one clock.
///
/// Reading goes on behind the feed, with progress messages; a file that breaks off keeps what was read.
///
/// # Errors
/// When a file cannot be read or is no trace, or the system gives no thread.
pub fn open(paths: &[PathBuf]) -> Result<Opened, OpenError> {
    let mut files = Vec::new();
    let mut simulated = false;
    for path in paths {
        let (format, is_simulated) = detect(path)?;
        simulated |= is_simulated;
        files.push((path.clone(), format));
    }
    let Some((first, format)) = files.first().cloned() else {
        return Err(OpenError::Nothing);
    };
    // Recordings are followed as long as they grow, so they are opened together.
    let feed = match files.iter().all(|(_, f)| *f == Format::Recording) {
        true => recording::open(paths),
        false => Feed::spawn("file-reader", move |outlet| read_all(&files, outlet)),
    }
    .map_err(|error| OpenError::Io { path: first, error })?;
    Ok(Opened {
        feed,
        format,
        simulated,
    })
}

fn read_all(files: &[(PathBuf, Format)], outlet: &Outlet) -> Outcome {
    let mut next = 0;
    let mut outcome = Outcome::Complete;
    for (path, format) in files {
        let this = match format {
            Format::Kineto => kineto::read(path, &mut next, outlet),
            Format::Nsys => nsys::read(path, &mut next, outlet),
            Format::Recording => read_recording(path, &mut next, outlet),
        };
        match this {
            Outcome::Complete => {}
            Outcome::Stopped => return Outcome::Stopped,
            // The other files are of use all the same; the first failure is told.
            Outcome::Failed(failure) => {
                if outcome == Outcome::Complete {
                    outcome = Outcome::Failed(failure);
                }
            }
        }
    }
    outcome
}

/// Passes a recording on, as the processes from `*next` on.
fn read_recording(path: &Path, next: &mut u32, outlet: &Outlet) -> Outcome {
    let feed = match recording::open(&[path.to_owned()]) {
        Ok(feed) => feed,
        Err(error) => {
            return Outcome::Failed(Failure {
                kind: FailureKind::Input,
                message: printable(&format!("cannot read {}: {error}", path.display())),
                help: String::new(),
            });
        }
    };
    let first = *next;
    for mut message in feed.receiver() {
        match &mut message {
            Message::Batch(batch) => {
                batch.process = batch.process.saturating_add(first);
                *next = (*next).max(batch.process.saturating_add(1));
            }
            Message::Finished(outcome) => return outcome.clone(),
            _ => {}
        }
        if outlet.stop.is_stopped() || outlet.send(message).is_err() {
            return Outcome::Stopped;
        }
    }
    Outcome::Stopped
}

/// What a file is, and whether it says that it was simulated.
fn detect(path: &Path) -> Result<(Format, bool), OpenError> {
    let failed = |error| OpenError::Io {
        path: path.to_owned(),
        error,
    };
    let is_not = |what: &str| OpenError::NotATrace {
        path: path.to_owned(),
        what: what.to_owned(),
    };
    let kind = std::fs::metadata(path).map_err(failed)?;
    if recording::is_recording(path) {
        let is_simulated = recording::is_simulated(&[path.to_owned()]);
        return Ok((Format::Recording, is_simulated));
    }
    if kind.is_dir() {
        return Err(is_not("a folder that is no recording"));
    }
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(64).read_to_end(&mut head))
        .map_err(failed)?;
    if head.is_empty() {
        return Err(is_not("it is empty"));
    }
    if head.starts_with(nsys::MAGIC) {
        return match nsys::is_export(path) {
            Ok(true) => Ok((Format::Nsys, false)),
            Ok(false) => Err(is_not(
                "an SQLite database without the tables of Nsight Systems",
            )),
            Err(error) => Err(is_not(&format!(
                "an SQLite database that is damaged: {error}"
            ))),
        };
    }
    match kineto::peek(path) {
        Ok(Some(peek)) => Ok((Format::Kineto, peek.simulated)),
        Ok(None) => Err(is_not(looks_like(path, &head))),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Err(is_not("gzip data that is damaged"))
        }
        Err(error) => Err(failed(error)),
    }
}

fn looks_like(path: &Path, head: &[u8]) -> &'static str {
    let extension = path
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or_default();
    match head {
        _ if matches!(extension, "nsys-rep" | "qdrep") => {
            "a report of Nsight Systems: export it first"
        }
        [0x1f, 0x8b, ..] => "gzip data, but no JSON trace inside",
        [b'{' | b'[', ..] => "JSON, but without \"traceEvents\"",
        _ => "neither JSON nor SQLite nor a recording",
    }
}
