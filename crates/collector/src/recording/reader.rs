//! Following a recording, live or afterwards.
//!
//! The file is not trusted: it may be cut short, half written, or made to do harm. Memory is bounded by
//! one buffer, ids are checked before anybody sees them, and what cannot be read is counted.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use activity::entry::{self, Entry, LONGEST, UNIT, Unreadable};
use activity::{HostCall, Overhead, Range, What};

use super::HEADER;
use super::header::{Identity, Status};

/// Bytes read at a time; several of the longest entries.
const CHUNK: usize = 16 * LONGEST;

/// Why a file is not a readable recording.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Io(PathBuf, io::Error),
    /// It is something else, or its header was never completed.
    #[error("{path} is not a recording of cuptop", path = .0.display())]
    NotARecording(PathBuf),
    /// It was written by another version.
    #[error("{path} is a recording of format {version}; this version of cuptop reads format 1", path = .0.display(), version = .1)]
    OtherVersion(PathBuf, u32),
}

/// Reads one recording.
#[derive(Debug)]
pub struct Reader {
    file: File,
    path: PathBuf,
    identity: Identity,
    status: Status,
    offset: u64,
    /// Ids defined so far.
    names: u32,
    shapes: u32,
    lost: u64,
    unknown: u64,
    damage: Option<&'static str>,
    buffer: Vec<u8>,
}

impl Reader {
    /// Opens a recording.
    ///
    /// # Errors
    /// When the file cannot be read or is no recording.
    pub fn open(path: &Path) -> Result<Reader, OpenError> {
        let io = |error| OpenError::Io(path.to_path_buf(), error);
        let file = File::open(path).map_err(io)?;
        if !file.metadata().map_err(io)?.is_file() {
            return Err(OpenError::NotARecording(path.to_path_buf()));
        }
        let page = read_page(&file)
            .map_err(io)?
            .ok_or_else(|| OpenError::NotARecording(path.to_path_buf()))?;
        let identity = match Identity::decode(&page) {
            None => return Err(OpenError::NotARecording(path.to_path_buf())),
            Some(Err(version)) => {
                return Err(OpenError::OtherVersion(path.to_path_buf(), version));
            }
            Some(Ok(identity)) => identity,
        };
        Ok(Reader {
            file,
            path: path.to_path_buf(),
            identity,
            status: Status::newest(&page).unwrap_or_default(),
            offset: HEADER as u64,
            names: 0,
            shapes: 0,
            lost: 0,
            unknown: 0,
            damage: None,
            buffer: Vec::new(),
        })
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who wrote it.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// How far it had come at the last [`Reader::refresh`].
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// How many names and shapes it has defined so far.
    #[must_use]
    pub fn definitions(&self) -> (u32, u32) {
        (self.names, self.shapes)
    }

    /// Whether all that is published has been read.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.damage.is_some() || self.offset + UNIT as u64 > self.status.published
    }

    /// Records that this reader could not read.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Records of a kind that this reader does not know.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// What is wrong with the file; nothing behind that place can be read.
    #[must_use]
    pub fn damage(&self) -> Option<&'static str> {
        self.damage
    }

    /// Whether the writer still lives: `None` when the file does not tell.
    #[must_use]
    pub fn writer_lives(&self) -> Option<bool> {
        if !self.identity.locked {
            return None;
        }
        match self.file.try_lock_shared() {
            Ok(()) => {
                let _ = self.file.unlock();
                Some(false)
            }
            Err(TryLockError::WouldBlock) => Some(true),
            Err(TryLockError::Error(_)) => None,
        }
    }

    /// Reads the header again.
    ///
    /// # Errors
    /// When the file cannot be read any more.
    pub fn refresh(&mut self) -> io::Result<()> {
        if let Some(page) = read_page(&self.file)?
            && let Some(status) = Status::newest(&page)
            && status.sequence > self.status.sequence
        {
            self.status = status;
        }
        Ok(())
    }

    /// Hands over the entries published since the last call, at most about 1 MiB of them, as of the last
    /// [`Reader::refresh`]. Returns whether there is more.
    ///
    /// # Errors
    /// When the file cannot be read any more.
    pub fn read(&mut self, each: &mut dyn FnMut(Entry<'_>)) -> io::Result<bool> {
        let valid = self.status.published - self.status.published % UNIT as u64;
        if self.damage.is_some() || self.offset >= valid {
            return Ok(false);
        }
        let want = usize::try_from(valid - self.offset).map_or(CHUNK, |left| left.min(CHUNK));
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(want, 0);
        let got = read_at_most(&self.file, &mut buffer, self.offset)?;
        let whole = got - got % UNIT;
        let mut at = 0;
        while at < whole {
            let Some(length) = entry::length(&buffer[at..whole]) else {
                self.stop("it is damaged", valid, at);
                break;
            };
            if at + length > whole {
                if self.offset + (at + length) as u64 > valid {
                    self.stop("it is damaged", valid, at);
                }
                break;
            }
            self.take(Entry::decode(&buffer[at..at + length]), each);
            at += length;
        }
        self.offset += at as u64;
        if got < want && at >= whole && self.damage.is_none() {
            self.stop("it is cut short", valid, 0);
        } else if at == 0 && self.damage.is_none() {
            // Less than one entry could be read although it was published.
            self.stop("it is cut short", valid, 0);
        }
        self.buffer = buffer;
        Ok(self.damage.is_none() && self.offset < valid)
    }

    /// Nothing behind this place can be read: it is counted in units, as most records are one.
    fn stop(&mut self, why: &'static str, valid: u64, at: usize) {
        self.damage = Some(why);
        let left = valid.saturating_sub(self.offset + at as u64) / UNIT as u64;
        // A made-up length must not become a made-up loss.
        self.lost += left.min(self.status.health.received.max(1));
    }

    fn take(&mut self, entry: Result<Entry<'_>, Unreadable>, each: &mut dyn FnMut(Entry<'_>)) {
        match entry {
            Ok(entry) if self.is_sound(&entry) => each(entry),
            Ok(_) | Err(Unreadable::Damaged) => self.lost += 1,
            Err(Unreadable::UnknownRecord) => self.unknown += 1,
            Err(Unreadable::UnknownDefinition) => {}
        }
    }

    /// Checks that ids are defined before they are used, and counts the definitions.
    fn is_sound(&mut self, entry: &Entry<'_>) -> bool {
        let name = |id: u32| (1..=self.names).contains(&id);
        match *entry {
            Entry::Name(id, _) => {
                let fits = self.names.checked_add(1) == Some(id);
                self.names += u32::from(fits);
                fits
            }
            Entry::Shape(id, shape) => {
                let fits = name(shape.name) && self.shapes.checked_add(1) == Some(id);
                self.shapes += u32::from(fits);
                fits
            }
            Entry::Record(record) => match record.what {
                What::Kernel(it) => (1..=self.shapes).contains(&it.shape),
                What::Call(HostCall { name: id, .. })
                | What::Overhead(Overhead { name: id, .. })
                | What::Range(Range { name: id, .. }) => name(id),
                _ => true,
            },
            _ => true,
        }
    }
}

fn read_page(file: &File) -> io::Result<Option<[u8; HEADER]>> {
    let mut page = [0; HEADER];
    let got = read_at_most(file, &mut page, 0)?;
    Ok((got == HEADER).then_some(page))
}

fn read_at_most(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match file.read_at(&mut buffer[got..], offset + got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
