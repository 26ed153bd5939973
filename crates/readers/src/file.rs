//! Trace files: their content tells each one's kind, and all of them become one timeline.

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::thread::Scope;

use tempfile::TempPath;

use crate::gather::notice;
use crate::kineto::LoadedTrace;
pub use crate::pipe::STDIN;
use crate::{kineto, nsys, pipe};
use activity::door;
use activity::feed::{Failure, FailureKind, Feed, Gone, Message, Outcome, Outlet};
use activity::text::printable;
use hosts::{self, Host, Place};
use recording::{Following, Inlet};

/// The format of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Kineto or Chrome JSON, gzipped or not.
    Kineto,
    /// An SQLite export of Nsight Systems.
    Nsys,
    /// A recording of cuptop: a directory or a single file.
    Recording,
}

/// A timeline that a reader fills.
#[derive(Debug)]
pub struct OpenTrace {
    /// Where the activities come from.
    pub feed: Feed,
    /// The format of the first file.
    pub format: Format,
    /// Whether one of the files was made without a GPU, by its own account.
    pub simulated: bool,
    /// Whether it is followed while it grows: its recordings are still written, or have not come yet.
    pub is_growing: bool,
}

/// Why a file can not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refused to read it.
    #[error("cannot read {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is something else.
    #[error(
        "{path} is not a trace that cuptop understands ({what})\n  help: {}",
        advice(path)
    )]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        what: String,
    },
    /// A recording on another machine cannot be followed.
    #[error("{0}")]
    Host(String),
    /// No file was named.
    #[error("no trace file was named")]
    Nothing,
}

/// What cuptop can open, for error messages and help.
pub const UNDERSTOOD: &str = "understood are: PyTorch/Kineto, JAX/XLA and other Chrome JSON traces (.json, .json.gz), \
     Nsight Systems exports (.sqlite, from `nsys export --type sqlite`), folders of such files, and recordings of cuptop";

/// What to do about a file that is no trace.
fn advice(path: &Path) -> String {
    if path
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        return format!("a scenario is run: cuptop run {}", path.display());
    }
    UNDERSTOOD.to_owned()
}

/// A file of known format.
struct TraceFile {
    /// The name that messages use.
    name: String,
    format: Format,
    simulated: bool,
    /// Where its content is.
    path: PathBuf,
    /// Keeps what came through a pipe.
    copy: Option<TempPath>,
}

/// Opens trace files as one timeline: their processes stand side by side, on the one clock. A path `-` is standard
/// input; it and other pipes are copied to a file first. `HOST:PATH` is a recording on another machine. `say` receives
/// ssh's messages, and others that come before the reading.
///
/// Reading goes on behind the feed, with progress messages; a file that breaks off keeps what was read.
///
/// # Errors
/// When a file cannot be read or is no trace, or the system gives no thread.
pub fn open(paths: &[PathBuf], say: &mut dyn FnMut(&str)) -> Result<OpenTrace, OpenError> {
    open_by(paths, false, Some(say))
}

/// [`open`] for the screen: it follows recordings of a job as they grow. A folder may still be empty, and ranks may come later.
/// Without `say` the screen has the terminal: nothing is asked there, and a machine out of reach is tried again and again.
///
/// # Errors
/// As [`open`].
pub fn open_live(
    paths: &[PathBuf],
    say: Option<&mut dyn FnMut(&str)>,
) -> Result<OpenTrace, OpenError> {
    open_by(paths, true, say)
}

fn open_by(
    paths: &[PathBuf],
    is_live: bool,
    say: Option<&mut dyn FnMut(&str)>,
) -> Result<OpenTrace, OpenError> {
    let (mut places, mut here) = (Vec::new(), Vec::new());
    for path in paths {
        match Place::parse(path) {
            Some(place) if places.contains(&place) => {}
            Some(place) => places.push(place),
            None => here.push(path.clone()),
        }
    }
    if !places.is_empty() {
        return open_hosts(&here, &places, is_live, say);
    }
    let (files, remarks) = find_files(paths, is_live)?;
    let Some((first, format)) = files.first().map(|f| (PathBuf::from(&f.name), f.format)) else {
        return Err(OpenError::Nothing);
    };
    let simulated = files.iter().any(|file| file.simulated);
    // Recordings are followed as long as they grow, so one follower opens them together.
    let are_recordings = |f: &TraceFile| f.format == Format::Recording && f.copy.is_none();
    let mut is_growing = false;
    let feed = match files.iter().all(are_recordings) {
        true => {
            let paths: Vec<_> = files.iter().map(|f| f.path.clone()).collect();
            let names: Vec<&str> = files.iter().map(|f| f.name.as_str()).collect();
            Following::new(&paths, Vec::new(), names.join(", "), is_live).and_then(|mut it| {
                is_growing = is_live && it.is_growing();
                it.start()
            })
        }
        false => Feed::spawn("file-reader", move |outlet| {
            read_all(files, &remarks, outlet)
        }),
    }
    .map_err(|error| OpenError::Io { path: first, error })?;
    Ok(OpenTrace {
        feed,
        format,
        simulated,
        is_growing,
    })
}

/// The files that paths stand for, each once, with remarks on what was left out.
fn find_files(
    paths: &[PathBuf],
    is_live: bool,
) -> Result<(Vec<TraceFile>, Vec<String>), OpenError> {
    let mut files: Vec<TraceFile> = Vec::new();
    let mut remarks = Vec::new();
    let mut seen = Vec::new();
    let mut is_stdin_taken = false;
    for path in paths {
        if path == Path::new(STDIN) && std::mem::replace(&mut is_stdin_taken, true) {
            remarks.push(named_twice("standard input"));
            continue;
        }
        // A pipe differs each time that it is opened.
        let about = std::fs::metadata(path)
            .ok()
            .filter(|about| !about.file_type().is_fifo());
        if let Some(id) = about.map(|about| (about.dev(), about.ino())) {
            if seen.contains(&id) {
                remarks.push(named_twice(&path.display().to_string()));
                continue;
            }
            seen.push(id);
        }
        // A folder that is no recording and cannot become one.
        let may_be = || is_live && recording::may_become_one(path);
        match path.is_dir() && !recording::is_recording(path) && !may_be() {
            true => files.extend(find_in_folder(path, &mut remarks)?),
            false => files.push(detect(path, is_live)?),
        }
    }
    Ok((files, remarks))
}

/// Recordings on other machines, and recordings here beside them.
fn open_hosts(
    here: &[PathBuf],
    places: &[Place],
    is_live: bool,
    say: Option<&mut dyn FnMut(&str)>,
) -> Result<OpenTrace, OpenError> {
    for path in here {
        let found = detect(path, is_live)?;
        if found.format != Format::Recording || found.copy.is_some() {
            let what = "and what is read beside recordings of other machines are recordings";
            return Err(OpenError::NotATrace {
                path: path.clone(),
                what: what.to_owned(),
            });
        }
    }
    let hosts = hosts::connect(places, say).map_err(OpenError::Host)?;
    let feed = follow_hosts(here, hosts, is_live).map_err(|error| OpenError::Io {
        path: PathBuf::from(places.first().map(Place::name).unwrap_or_default()),
        error,
    })?;
    Ok(OpenTrace {
        feed,
        format: Format::Recording,
        // Its batches tell that.
        simulated: false,
        is_growing: is_live,
    })
}

/// Recordings here and on other machines as one timeline.
pub fn follow_hosts(here: &[PathBuf], hosts: Vec<Host>, is_live: bool) -> io::Result<Feed> {
    let mut names: Vec<String> = here.iter().map(|it| it.display().to_string()).collect();
    names.extend(hosts.iter().map(|host| host.name.clone()));
    let inlets = hosts
        .into_iter()
        .map(|host| Box::new(host) as Box<dyn Inlet>);
    Following::new(here, inlets.collect(), names.join(", "), is_live)?.start()
}

/// A file that waits for its turn.
enum Waiting<'scope> {
    Unread(TraceFile),
    /// A thread reads it, beside others.
    Loading(std::thread::ScopedJoinHandle<'scope, LoadedTrace>),
    Failed(Failure),
}

fn read_all(files: Vec<TraceFile>, remarks: &[String], outlet: &Outlet) -> Outcome {
    let ahead = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut next = 0;
    let mut outcome = Outcome::Complete;
    let (mut anonymous, mut unread) = (0, 0);
    if warn(outlet, remarks).is_err() {
        return Outcome::Stopped;
    }
    let count = files.len();
    std::thread::scope(|scope| {
        let mut files = files.into_iter();
        let mut waiting: VecDeque<Waiting<'_>> = VecDeque::new();
        loop {
            // It sends files in order. It loads no more of them than there are processors, as loaded files lie in memory.
            while waiting.len() < ahead
                && outcome != Outcome::Stopped
                && let Some(file) = files.next()
            {
                waiting.push_back(start(scope, file, outlet));
            }
            let Some(first) = waiting.pop_front() else {
                break;
            };
            let this = match first {
                Waiting::Loading(thread) => match thread.join() {
                    Ok(mut loaded) => {
                        anonymous += usize::from(loaded.is_anonymous());
                        if count > 1 {
                            loaded.tell_apart();
                        }
                        loaded.send(&mut next, outlet)
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                },
                Waiting::Unread(..) if outcome == Outcome::Stopped => {
                    unread += 1;
                    continue;
                }
                Waiting::Unread(file) => read_one(&file, &mut next, outlet),
                Waiting::Failed(failure) => Outcome::Failed(failure),
            };
            match this {
                Outcome::Complete => {}
                // What was read of the files beside it until then is kept as well.
                Outcome::Stopped => outcome = Outcome::Stopped,
                // The other files are of use all the same; the message is about the first failure.
                Outcome::Failed(_) if outcome != Outcome::Complete => {}
                Outcome::Failed(failure) => outcome = Outcome::Failed(failure),
            }
        }
        unread += files.count();
        if warn(outlet, &remarks_behind(unread, count, anonymous)).is_err() {
            return Outcome::Stopped;
        }
        outcome
    })
}

/// What is to be said once all files were read.
fn remarks_behind(unread: usize, count: usize, anonymous: usize) -> Vec<String> {
    let mut remarks = Vec::new();
    if unread > 0 {
        remarks.push(format!(
            "reading was stopped before {unread} of {count} files was begun"
        ));
    }
    if anonymous > 1 {
        remarks.push(format!(
            "{anonymous} of these traces do not say which machine they are from: GPUs of one number and one name count \
             as one GPU. `cuptop compare A B` compares two of them"
        ));
    }
    remarks
}

fn warn(outlet: &Outlet, remarks: &[String]) -> Result<(), Gone> {
    let mut remarks = remarks.iter();
    remarks.try_for_each(|remark| notice(outlet, true, remark.clone()))
}

/// Begins to read a file, if files like it can be read beside each other.
fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    file: TraceFile,
    outlet: &'scope Outlet,
) -> Waiting<'scope> {
    if file.format != Format::Kineto {
        return Waiting::Unread(file);
    }
    let thread = std::thread::Builder::new().name("trace-load".to_owned());
    let load = move || {
        // All of it, with the copy.
        let file = file;
        kineto::load(&file.name, &file.path, outlet)
    };
    match thread.spawn_scoped(scope, load) {
        Ok(thread) => Waiting::Loading(thread),
        Err(error) => Waiting::Failed(Failure::machine(format!(
            "the system gives no thread: {error}"
        ))),
    }
}

fn read_one(file: &TraceFile, next: &mut u32, outlet: &Outlet) -> Outcome {
    match file.format {
        Format::Nsys => nsys::read(&file.path, next, outlet),
        _ => read_recording(&file.path, next, outlet),
    }
}

/// Passes a recording on, as the processes from `*next` on.
fn read_recording(path: &Path, next: &mut u32, outlet: &Outlet) -> Outcome {
    let feed = match recording::open(&[path.to_owned()]) {
        Ok(feed) => feed,
        Err(error) => {
            let why = printable(&format!("cannot read {}: {error}", path.display()));
            return Outcome::Failed(Failure::new(FailureKind::Input, why, ""));
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

fn named_twice(name: &str) -> String {
    format!("{name} was named twice, and is read once")
}

/// File name endings of other profilers' traces, as `tensorboard_trace_handler` and one export for each rank leave them.
const ENDINGS: [&str; 3] = [".json", ".json.gz", ".sqlite"];

/// The files right in a folder that are traces by their names, in order of name.
///
/// # Errors
/// When the folder cannot be read.
fn list_traces(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // A link to a file counts, too.
        if ENDINGS.iter().any(|ending| name.ends_with(ending)) && path.is_file() {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// The traces of other profilers right in a folder. A file with the name of a trace that is none is left out, with a remark.
fn find_in_folder(folder: &Path, remarks: &mut Vec<String>) -> Result<Vec<TraceFile>, OpenError> {
    let paths = list_traces(folder).map_err(|error| OpenError::Io {
        path: folder.to_owned(),
        error,
    })?;
    let (mut found, mut others) = (Vec::new(), Vec::new());
    for path in &paths {
        match detect(path, false) {
            Ok(file) => found.push(file),
            Err(OpenError::NotATrace { .. }) => others.push(path),
            Err(error) => return Err(error),
        }
    }
    if found.is_empty() {
        return Err(OpenError::NotATrace {
            path: folder.to_owned(),
            what: "a folder that is no recording, and has no trace in it".to_owned(),
        });
    }
    if let Some(first) = others.first().and_then(|path| path.file_name()) {
        let more = match others.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let first = first.to_string_lossy();
        let folder = folder.display();
        remarks.push(format!("{folder}: no traces, and left out: {first}{more}"));
    }
    Ok(found)
}

/// Finds a file's format by its beginning. When it `is_live`, a folder may still become a recording.
fn detect(path: &Path, is_live: bool) -> Result<TraceFile, OpenError> {
    let name = match path == Path::new(STDIN) {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let failed = |error| OpenError::Io {
        path: PathBuf::from(&name),
        error,
    };
    let is_not = |what: &str| OpenError::NotATrace {
        path: PathBuf::from(&name),
        what: what.to_owned(),
    };
    let copy = match path.is_dir() {
        true => None,
        false => pipe::copied(path).map_err(failed)?,
    };
    let at = copy.as_deref().unwrap_or(path).to_owned();
    let (format, simulated) = match at.is_dir() {
        true if recording::is_recording(&at) || is_live && recording::may_become_one(&at) => {
            (Format::Recording, is_simulated(&at))
        }
        true => return Err(is_not("a folder that is no recording")),
        false => detect_file(path, &at, failed, is_not)?,
    };
    Ok(TraceFile {
        name,
        format,
        simulated,
        path: at,
        copy,
    })
}

fn is_simulated(recording: &PathBuf) -> bool {
    recording::is_simulated(std::slice::from_ref(recording))
}

/// The format of the file `at`, which `path` stands for, and whether it is simulated.
fn detect_file(
    path: &Path,
    at: &PathBuf,
    failed: impl FnOnce(io::Error) -> OpenError + Copy,
    is_not: impl Fn(&str) -> OpenError,
) -> Result<(Format, bool), OpenError> {
    if recording::is_recording(at) {
        return Ok((Format::Recording, is_simulated(at)));
    }
    let mut head = Vec::new();
    door::open(at)
        .and_then(|file| file.take(256).read_to_end(&mut head))
        .map_err(failed)?;
    if head.is_empty() {
        return Err(is_not("it is empty"));
    }
    if head.starts_with(&recording::file::MAGIC) {
        return Err(is_not("a recording that is damaged, or of another version"));
    }
    if head.starts_with(nsys::MAGIC) {
        let what = match nsys::is_export(at) {
            Ok(true) => return Ok((Format::Nsys, false)),
            Ok(false) => nsys::what_else(at),
            Err(error) => Err(error),
        };
        let damaged = |error| is_not(&format!("an SQLite database that is damaged: {error}"));
        return Err(what.map_or_else(damaged, &is_not));
    }
    match kineto::peek(at) {
        Ok(Some(is_simulated)) => Ok((Format::Kineto, is_simulated)),
        Ok(None) => Err(is_not(describe_content(path, &head))),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Err(is_not("gzip data that is damaged"))
        }
        Err(error) => Err(failed(error)),
    }
}

fn describe_content(path: &Path, head: &[u8]) -> &'static str {
    let extension = path
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or_default();
    match head {
        _ if matches!(extension, "nsys-rep" | "qdrep") => {
            "a report of Nsight Systems: export it first"
        }
        _ if head.starts_with(&kineto::GZIP) => "gzip data, but no JSON trace inside",
        [b'{', ..] => "JSON, but without \"traceEvents\"",
        [b'[', ..] => "a JSON list, but not of events",
        _ => "neither JSON nor SQLite nor a recording",
    }
}
