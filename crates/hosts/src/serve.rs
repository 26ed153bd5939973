//! The far side: `cuptop serve-recordings`, which ssh starts on another machine.
//!
//! It sends what the requested files hold, ends when requests stop, and writes nothing but to its standard output.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use recording::file::{Entry, HEADER, OpenError, Reader, State, Wait};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::frame::{Frames, PAGE, PIECE, Request, Response, TEXT, decode, encode, encode_hello};
use recording::pace::{self, Due};
use recording::{files, is_recording, may_become_one};

/// The near side speaks every few seconds. After this long the link is gone, whatever the system thinks.
const PATIENCE: Duration = Duration::from_secs(60);

/// Serves standard input until it ends.
pub fn process_main() -> ExitCode {
    let mut out = BufWriter::with_capacity(2 * PIECE, io::stdout().lock());
    match serve(&mut out) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader is gone: that is how links end.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "cuptop: {error}");
            ExitCode::from(3)
        }
    }
}

fn serve(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&encode_hello(env!("CARGO_PKG_VERSION")))?;
    out.flush()?;
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (mut frames, mut bytes) = (Frames::default(), vec![0; 64 << 10]);
    let mut server = Server::default();
    loop {
        let patience = Timespec::try_from(PATIENCE).unwrap_or_default();
        let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
        match rustix::event::poll(&mut watched, Some(&patience)) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let count = match stdin.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        frames.add(&bytes[..count]);
        let senseless = |broken| {
            let text = format!(
                "{broken} on standard input: this command is started by `cuptop open HOST:DIR`"
            );
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        while let Some(payload) = frames.next().map_err(senseless)? {
            let request: Request = decode(payload).map_err(senseless)?;
            server.answer(request, out)?;
        }
    }
}

/// What one link serves.
#[derive(Default)]
struct Server {
    place: Option<PathBuf>,
    /// How much has arrived on an earlier link, by name.
    arrived: HashMap<String, u64>,
    files: Vec<ServedFile>,
    /// Files that are announced; or those that cannot be read, and why.
    known: HashMap<PathBuf, Option<String>>,
    listing: Option<Due>,
    is_shared: bool,
}

impl Server {
    fn answer(&mut self, request: Request, out: &mut impl Write) -> io::Result<()> {
        match request {
            Request::Open(path) => self.open(Path::new(std::ffi::OsStr::from_bytes(&path)), out),
            Request::Have { offset, name } => {
                self.arrived.insert(name, offset);
                Ok(())
            }
            Request::Next { budget } => self.next(budget as usize, out),
        }
    }

    fn open(&mut self, path: &Path, out: &mut impl Write) -> io::Result<()> {
        // A shell would have done this.
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let path = match (path.strip_prefix("~"), home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.to_path_buf(),
        };
        let why = match path.metadata() {
            Err(error) => Some(error.to_string()),
            Ok(_) if is_recording(&path) || may_become_one(&path) => None,
            Ok(about) if about.is_dir() => Some("a folder that is no recording".to_owned()),
            Ok(_) => Some("no recording of cuptop".to_owned()),
        };
        if let Some(why) = why {
            let text = format!("{}: {why}", path.display());
            trouble(true, text, out)?;
            return out.flush();
        }
        self.is_shared = files::is_shared(&path);
        self.place = Some(path);
        Ok(())
    }

    /// Sends what is new since the last response, at most `budget` bytes of files.
    fn next(&mut self, mut budget: usize, out: &mut impl Write) -> io::Result<()> {
        let now = Instant::now();
        self.list(now, out)?;
        let grow = self.files.iter().filter(|file| !file.is_done()).count();
        let period = pace::period(grow, self.is_shared);
        let mut has_more = false;
        for file in &mut self.files {
            if file.is_done() || !(file.has_more || file.due.is(now)) {
                continue;
            }
            let before = budget;
            if let Err(error) = file.send_new(&mut budget, out) {
                if error.kind() == io::ErrorKind::BrokenPipe {
                    return Err(error);
                }
                let text = format!("{} cannot be read any more: {error}", file.name);
                file.reader = None;
                trouble(false, text, out)?;
            }
            file.due.polled(now, budget != before, period);
            has_more |= file.has_more;
        }
        send(&Response::End { has_more }, out)?;
        out.flush()
    }

    /// Announces files that have appeared.
    fn list(&mut self, now: Instant, out: &mut impl Write) -> io::Result<()> {
        let Some(place) = &self.place else {
            return Ok(());
        };
        let listing = self.listing.get_or_insert_with(Due::now);
        if !listing.is(now) {
            return Ok(());
        }
        let root = match place.is_dir() {
            true => place.as_path(),
            false => place.parent().unwrap_or(Path::new("")),
        };
        let paths = files::paths_of(place);
        let folders = paths.len().max(25) * 10;
        listing.polled(now, true, pace::period(folders, self.is_shared));
        for path in paths {
            if matches!(self.known.get(&path), Some(None)) {
                continue;
            }
            // The files here are the user's, and so are their names.
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
            let id = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
            let sent = self.arrived.get(&*name).copied().unwrap_or(0);
            match ServedFile::open(id, &name, &path, sent, self.is_shared) {
                Ok(file) => {
                    let name = name.into_owned();
                    send(&Response::File { id, name }, out)?;
                    self.files.push(file);
                    self.known.insert(path, None);
                }
                // A new file has no header yet.
                Err(None) => {}
                Err(Some(why)) => {
                    if self.known.get(&path) != Some(&Some(why.clone())) {
                        trouble(false, why.clone(), out)?;
                        self.known.insert(path, Some(why));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reports what is wrong: with all when it `is_last`, else with one file, and the others go on.
fn trouble(is_last: bool, mut text: String, out: &mut impl Write) -> io::Result<()> {
    text.truncate(text.floor_char_boundary(TEXT));
    send(&Response::Trouble { is_last, text }, out)
}

fn send(response: &Response, out: &mut impl Write) -> io::Result<()> {
    out.write_all(&encode(response))
}

/// An announced file.
struct ServedFile {
    id: u32,
    name: String,
    /// `None` when all of it was sent, and no more comes.
    reader: Option<Reader>,
    /// How far it was sent.
    sent: u64,
    page: Option<Vec<u8>>,
    life: Option<Option<bool>>,
    has_more: bool,
    due: Due,
    is_shared: bool,
    /// The machine that wrote it, where that was looked up.
    host: String,
}

impl ServedFile {
    /// Opens a file. `Err(None)` when it has no header yet.
    fn open(
        id: u32,
        name: &str,
        path: &Path,
        sent: u64,
        is_shared: bool,
    ) -> Result<ServedFile, Option<String>> {
        let mut reader = match Reader::open(path) {
            Ok(reader) => reader,
            Err(OpenError::NotARecording(_)) => return Err(None),
            Err(error) => return Err(Some(error.to_string())),
        };
        reader.wait = Wait::Blocks;
        Ok(ServedFile {
            id,
            name: name.to_owned(),
            reader: Some(reader),
            // The page is sent by itself.
            sent: sent.max(HEADER as u64),
            page: None,
            life: None,
            has_more: true,
            due: Due::now(),
            is_shared,
            host: String::new(),
        })
    }

    fn is_done(&self) -> bool {
        self.reader.is_none()
    }

    /// Sends what is new in it.
    fn send_new(&mut self, budget: &mut usize, out: &mut impl Write) -> io::Result<()> {
        // This comes before reading: so what a process writes until it ends is still read.
        let life = self.life();
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        if self.is_shared {
            reader.reopen();
        }
        let mut page = vec![0; PAGE];
        reader.file.read_exact_at(&mut page, 0)?;
        let is_same = self.page.as_ref() == Some(&page);
        if !is_same {
            let (id, page) = (self.id, page.clone());
            send(&Response::Page { id, page }, out)?;
        }
        self.page = Some(page);
        reader.refresh()?;
        let status = reader.status;
        let host = &mut self.host;
        let limit = if self.is_shared {
            // Published entries that have not arrived here must not be sent as it is.
            while reader.read(&mut |entry| {
                if let Entry::Process(process) = entry {
                    *host = process.host;
                }
            })? {}
            reader.offset
        } else {
            status.published
        };
        self.send(limit, budget, out)?;
        self.has_more = self.sent < limit;
        if !self.has_more && self.life != Some(life) {
            let (id, lives) = (self.id, life);
            send(&Response::Life { id, lives }, out)?;
            self.life = Some(life);
        }
        // All of the file that this page describes has been sent.
        if status.state != State::Running && is_same && !self.has_more {
            if life != Some(false) {
                let lives = Some(false);
                send(&Response::Life { id: self.id, lives }, out)?;
            }
            self.reader = None;
        }
        Ok(())
    }

    fn send(&mut self, limit: u64, budget: &mut usize, out: &mut impl Write) -> io::Result<()> {
        let Some(reader) = &self.reader else {
            return Ok(());
        };
        while self.sent < limit && *budget > 0 {
            let room = PIECE.min(*budget);
            let want = usize::try_from(limit - self.sent).map_or(room, |left| left.min(room));
            let mut bytes = vec![0; want];
            let got = reader.file.read_at(&mut bytes, self.sent)?;
            if got == 0 {
                // Cut short, or not here yet.
                break;
            }
            bytes.truncate(got);
            let response = Response::Data {
                id: self.id,
                offset: self.sent,
                bytes,
            };
            send(&response, out)?;
            self.sent += got as u64;
            *budget -= got;
        }
        Ok(())
    }

    /// Whether its writer lives, as far as this machine can tell.
    fn life(&self) -> Option<bool> {
        let lock = match &self.reader {
            Some(reader) => reader.writer_lives(),
            None => Some(false),
        };
        let is_here = rustix::system::uname().nodename().to_bytes() == self.host.as_bytes();
        lock.filter(|lives| *lives || !self.is_shared || is_here)
    }
}
