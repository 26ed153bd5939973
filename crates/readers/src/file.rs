//! Trace files: what kind each one is, told by its content, and all of them as one timeline.

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::thread::Scope;

use tempfile::TempPath;

use crate::gather::notice;
use crate::kineto::Loaded;
pub use crate::stream::STDIN;
use crate::stream::Stream;
use crate::{kineto, nsys};
use activity::feed::{Failure, FailureKind, Feed, Message, Outcome, Outlet};
use activity::text::printable;
use hosts::{self, Host, Place};
use recording::{Following, Inlet};

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
    /// Whether it is followed while it grows: recordings that are being written, or that have not come yet.
    pub is_growing: bool,
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
    #[error(
        "{path} is not a trace that cuptop understands ({what})\n{}",
        advice(path)
    )]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        what: String,
    },
    /// What lies on another machine cannot be followed.
    #[error("{0}")]
    Host(String),
    /// No file was named.
    #[error("no trace file was named")]
    Nothing,
}

/// What can be opened, for error messages and help.
pub const UNDERSTOOD: &str = "understood are: PyTorch/Kineto and other Chrome JSON traces (.json, .json.gz), \
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

/// A file of which it is known what it is.
struct Found {
    /// What to call it.
    name: String,
    format: Format,
    simulated: bool,
    input: Input,
}

/// Where its content is.
enum Input {
    Path(PathBuf),
    /// A copy of what came out of a pipe, for what cannot be read from front to back.
    Copied(TempPath),
    Stream(Stream),
}

impl Input {
    fn path(&self) -> &Path {
        match self {
            Input::Path(path) => path,
            Input::Copied(path) => path,
            Input::Stream(_) => Path::new(""),
        }
    }
}

/// Opens trace files as one timeline: their processes stand side by side, on the one clock. A path `-` is standard
/// input; it and other pipes are read once, as they come. `HOST:PATH` is a recording on another machine; what is to be said before it
/// can be read, and what ssh says, is handed to `say`.
///
/// Reading goes on behind the feed, with progress messages; a file that breaks off keeps what was read.
///
/// # Errors
/// When a file cannot be read or is no trace, or the system gives no thread.
pub fn open(paths: &[PathBuf], say: &mut dyn FnMut(&str)) -> Result<Opened, OpenError> {
    open_by(paths, false, Some(say))
}

/// [`open`] for the screen: recordings of a job are followed as it goes. A folder may still be empty, and ranks may come later.
/// Without `say` the terminal is taken: nothing is asked there, and a machine that cannot be reached is tried again and again.
///
/// # Errors
/// As [`open`].
pub fn open_live(
    paths: &[PathBuf],
    say: Option<&mut dyn FnMut(&str)>,
) -> Result<Opened, OpenError> {
    open_by(paths, true, say)
}

fn open_by(
    paths: &[PathBuf],
    is_live: bool,
    say: Option<&mut dyn FnMut(&str)>,
) -> Result<Opened, OpenError> {
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
    let mut files: Vec<Found> = Vec::new();
    let mut remarks = Vec::new();
    let mut seen = Vec::new();
    let mut is_stdin_taken = false;
    for path in paths {
        if path == Path::new(STDIN) && std::mem::replace(&mut is_stdin_taken, true) {
            remarks.push(named_twice("standard input"));
            continue;
        }
        // A pipe is another one each time that it is opened.
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
        match is_folder_of_others(path, is_live) {
            true => files.extend(in_folder(path, &mut remarks)?),
            false => files.push(detect(path, is_live)?),
        }
    }
    let Some((first, format)) = files.first().map(|f| (PathBuf::from(&f.name), f.format)) else {
        return Err(OpenError::Nothing);
    };
    let simulated = files.iter().any(|file| file.simulated);
    // Recordings are followed as long as they grow, so they are opened together.
    let are_recordings =
        |f: &Found| f.format == Format::Recording && matches!(f.input, Input::Path(_));
    let mut is_growing = false;
    let feed = match files.iter().all(are_recordings) {
        true => {
            let paths: Vec<_> = files.iter().map(|f| f.input.path().to_owned()).collect();
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
    Ok(Opened {
        feed,
        format,
        simulated,
        is_growing,
    })
}

/// Recordings on other machines, and recordings here beside them.
fn open_hosts(
    here: &[PathBuf],
    places: &[Place],
    is_live: bool,
    say: Option<&mut dyn FnMut(&str)>,
) -> Result<Opened, OpenError> {
    for path in here {
        let found = detect(path, is_live)?;
        if found.format != Format::Recording || !matches!(found.input, Input::Path(_)) {
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
    Ok(Opened {
        feed,
        format: Format::Recording,
        // Its batches say so.
        simulated: false,
        is_growing: is_live,
    })
}

/// Recordings here and on other machines as one timeline.
pub fn follow_hosts(here: &[PathBuf], hosts: Vec<Host>, is_live: bool) -> io::Result<Feed> {
    let mut names: Vec<String> = here.iter().map(|it| it.display().to_string()).collect();
    names.extend(hosts.iter().map(|host| host.name().to_owned()));
    let inlets = hosts
        .into_iter()
        .map(|host| Box::new(host) as Box<dyn Inlet>);
    Following::new(here, inlets.collect(), names.join(", "), is_live)?.start()
}

/// A file whose turn has not come.
enum Waiting<'scope> {
    Found(Found),
    /// It is being read, beside others.
    Loading(std::thread::ScopedJoinHandle<'scope, Loaded>),
    Failed(Failure),
}

fn read_all(files: Vec<Found>, remarks: &[String], outlet: &Outlet) -> Outcome {
    let ahead = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut next = 0;
    let mut outcome = Outcome::Complete;
    let (mut anonymous, mut unread) = (0, 0);
    for remark in remarks {
        if notice(outlet, true, remark.clone()).is_err() {
            return Outcome::Stopped;
        }
    }
    let count = files.len();
    std::thread::scope(|scope| {
        let mut files = files.into_iter();
        let mut waiting: VecDeque<Waiting<'_>> = VecDeque::new();
        loop {
            // In order, and no more of them than there are processors, as what was read ahead lies in memory.
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
                    Ok(loaded) => {
                        anonymous += usize::from(loaded.is_anonymous());
                        loaded.send(&mut next, outlet)
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                },
                Waiting::Found(..) if outcome == Outcome::Stopped => {
                    unread += 1;
                    continue;
                }
                Waiting::Found(file) => read_one(&file, &mut next, outlet),
                Waiting::Failed(failure) => Outcome::Failed(failure),
            };
            match this {
                Outcome::Complete => {}
                // What was read of the files beside it until then is kept as well.
                Outcome::Stopped => outcome = Outcome::Stopped,
                // The other files are of use all the same; the first failure is told.
                Outcome::Failed(failure) => {
                    if outcome == Outcome::Complete {
                        outcome = Outcome::Failed(failure);
                    }
                }
            }
        }
        unread += files.count();
        if unread > 0 {
            let text = format!("reading was stopped before {unread} of {count} files was begun");
            if notice(outlet, true, text).is_err() {
                return Outcome::Stopped;
            }
        }
        if anonymous > 1 {
            let text = format!(
                "{anonymous} of these traces do not say which machine they are from: GPUs of one number and one name count \
                 as one GPU"
            );
            if notice(outlet, true, text).is_err() {
                return Outcome::Stopped;
            }
        }
        outcome
    })
}

/// Begins to read a file, if files like it can be read beside each other.
fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    file: Found,
    outlet: &'scope Outlet,
) -> Waiting<'scope> {
    match (file.format, file.input) {
        (Format::Kineto, Input::Stream(stream)) => {
            let name = file.name;
            let thread = std::thread::Builder::new().name("trace-load".to_owned());
            match thread.spawn_scoped(scope, move || kineto::load(&name, stream, outlet)) {
                Ok(thread) => Waiting::Loading(thread),
                Err(error) => Waiting::Failed(Failure {
                    kind: FailureKind::Machine,
                    message: format!("the system gives no thread: {error}"),
                    help: String::new(),
                }),
            }
        }
        (format, input) => Waiting::Found(Found {
            format,
            input,
            ..file
        }),
    }
}

fn read_one(file: &Found, next: &mut u32, outlet: &Outlet) -> Outcome {
    let path = file.input.path();
    match file.format {
        Format::Nsys => nsys::read(path, next, outlet),
        _ => read_recording(path, next, outlet),
    }
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

fn named_twice(name: &str) -> String {
    format!("{name} was named twice, and is read once")
}

/// Whether it is a folder that neither is a recording nor, when it `is_live`, may become one.
fn is_folder_of_others(path: &Path, is_live: bool) -> bool {
    path.is_dir() && !recording::is_recording(path) && !(is_live && recording::may_become_one(path))
}

/// What the names of traces of other profilers end with, as `tensorboard_trace_handler` and one export for each rank leave them.
const ENDINGS: [&str; 3] = [".json", ".json.gz", ".sqlite"];

/// The files right in a folder that may be traces by their names, in order of name.
///
/// # Errors
/// When the folder cannot be read.
fn maybe_traces(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // What a link leads to counts, too.
        if ENDINGS.iter().any(|ending| name.ends_with(ending)) && path.is_file() {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// The traces of other profilers right in a folder. What has the name of a trace and is none is left out, and `remarks` says so.
fn in_folder(folder: &Path, remarks: &mut Vec<String>) -> Result<Vec<Found>, OpenError> {
    let name = || folder.display().to_string();
    let paths = maybe_traces(folder).map_err(|error| OpenError::Io {
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
        remarks.push(format!(
            "{}: no traces, and left out: {first}{more}",
            name()
        ));
    }
    Ok(found)
}

/// What a file is, told by how it begins. When it `is_live`, a folder may still become a recording.
fn detect(path: &Path, is_live: bool) -> Result<Found, OpenError> {
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
    if path.is_dir() {
        let may_be = || is_live && recording::may_become_one(path);
        return match recording::is_recording(path) || may_be() {
            true => Ok(of_recording(name.clone(), Input::Path(path.to_owned()))),
            false => Err(is_not("a folder that is no recording")),
        };
    }
    let mut stream = Stream::open(path).map_err(failed)?;
    let mut head = Vec::new();
    stream.keep();
    (&mut stream)
        .take(64)
        .read_to_end(&mut head)
        .map_err(failed)?;
    stream.rewind();
    if head.is_empty() {
        return Err(is_not("it is empty"));
    }
    let is_database = head.starts_with(nsys::MAGIC);
    if is_database || head.starts_with(&recording::file::MAGIC) {
        let input = match stream.is_pipe() || path == Path::new(STDIN) {
            true => Input::Copied(copied(&mut stream).map_err(failed)?),
            false => Input::Path(path.to_owned()),
        };
        if !is_database {
            return match recording::is_recording(input.path()) {
                true => Ok(of_recording(name.clone(), input)),
                false => Err(is_not("a recording that is damaged, or of another version")),
            };
        }
        return match nsys::is_export(input.path()) {
            Ok(true) => Ok(Found {
                name: name.clone(),
                format: Format::Nsys,
                simulated: false,
                input,
            }),
            Ok(false) => Err(is_not(
                "an SQLite database without the tables of Nsight Systems",
            )),
            Err(error) => Err(is_not(&format!(
                "an SQLite database that is damaged: {error}"
            ))),
        };
    }
    match kineto::peek(stream) {
        Ok((Some(peek), _)) if peek.of_rocprofv3 => Err(is_not(
            "JSON of rocprofv3, which is not read: have it write pftrace for Perfetto, or CSV",
        )),
        Ok((Some(peek), stream)) => Ok(Found {
            name: name.clone(),
            format: Format::Kineto,
            simulated: peek.simulated,
            input: Input::Stream(stream),
        }),
        Ok((None, _)) => Err(is_not(looks_like(path, &head))),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Err(is_not("gzip data that is damaged"))
        }
        Err(error) => Err(failed(error)),
    }
}

fn of_recording(name: String, input: Input) -> Found {
    Found {
        name,
        format: Format::Recording,
        simulated: recording::is_simulated(&[input.path().to_owned()]),
        input,
    }
}

/// All that comes out of a stream, as a file.
fn copied(stream: &mut Stream) -> io::Result<TempPath> {
    let mut file = tempfile::Builder::new().prefix("cuptop-").tempfile()?;
    io::copy(stream, &mut file)?;
    Ok(file.into_temp_path())
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
        _ if head.starts_with(&kineto::GZIP) => "gzip data, but no JSON trace inside",
        [b'{', ..] => "JSON, but without \"traceEvents\"",
        [b'[', ..] => "a JSON list, but not of events",
        _ => "neither JSON nor SQLite nor a recording",
    }
}
