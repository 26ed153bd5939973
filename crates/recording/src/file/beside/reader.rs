//! Following a file beside a recording, live or afterwards. The file is not trusted.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use activity::door;

use super::super::reader::read_at_most;
use super::{HEAD, HEADER, Header, LONGEST, payload_of};

/// Bytes read at a time; room for the longest block.
const CHUNK: usize = 2 * LONGEST;
/// Room that a reader keeps between two looks: hundreds of files may be followed at a time.
const KEPT: usize = 64 << 10;

/// Why a file cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Io(PathBuf, io::Error),
    /// Its header is not there (yet).
    #[error("{path} has no header", path = .0.display())]
    NoHeader(PathBuf),
    /// Its header is not as a writer writes it.
    #[error("the header of {path} is damaged", path = .0.display())]
    Damaged(PathBuf),
}

/// What of a file could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Where the first of it is, in bytes from the start of the file.
    pub at: u64,
    /// Bytes that were skipped.
    pub skipped: u64,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Damage { at, skipped } = self;
        write!(
            f,
            "it is damaged at byte {at}: {skipped} bytes were skipped"
        )
    }
}

/// Reads one file beside a recording.
#[derive(Debug)]
pub struct Reader {
    file: File,
    path: PathBuf,
    header: Header,
    offset: u64,
    damage: Damage,
    /// Whether what is not whole is waited for.
    is_patient: bool,
    buffer: Vec<u8>,
}

impl Reader {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be read, or has no sound header.
    pub fn open(path: &Path) -> Result<Reader, OpenError> {
        let io = |error| OpenError::Io(path.to_path_buf(), error);
        let file = door::open_any(path).map_err(io)?;
        if !file.metadata().map_err(io)?.is_file() {
            return Err(OpenError::Damaged(path.to_path_buf()));
        }
        let mut bytes = [0; HEADER];
        if read_at_most(&file, &mut bytes, 0).map_err(io)? < HEADER {
            return Err(OpenError::NoHeader(path.to_path_buf()));
        }
        let header =
            Header::decode(&bytes).ok_or_else(|| OpenError::Damaged(path.to_path_buf()))?;
        Ok(Reader {
            file,
            path: path.to_path_buf(),
            header,
            offset: HEADER as u64,
            damage: Damage::default(),
            is_patient: false,
            buffer: Vec::new(),
        })
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether bytes that are no block (yet) are waited for: see [`Wait::Blocks`](super::super::Wait::Blocks).
    pub fn wait_for_blocks(&mut self, is_patient: bool) {
        self.is_patient = is_patient;
    }

    /// Up to where it was read, in bytes.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.offset
    }

    /// Opens the file anew, so that a network file system asks its server what it holds by now. When it is not there any more,
    /// or is another one, the one that was opened is read on.
    pub fn reopen(&mut self) {
        let Ok(file) = door::open(&self.path) else {
            return;
        };
        let mut bytes = [0; HEADER];
        let is_whole = read_at_most(&file, &mut bytes, 0).is_ok_and(|got| got == HEADER);
        if is_whole && Header::decode(&bytes).as_ref() == Some(&self.header) {
            self.file = file;
        }
    }

    /// What it holds, and of whom.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What was found damaged so far.
    #[must_use]
    pub fn damage(&self) -> Option<Damage> {
        Some(self.damage).filter(|damage| damage.skipped > 0)
    }

    /// Whether the writer still lives: `None` when the file does not tell.
    #[must_use]
    pub fn writer_lives(&self) -> Option<bool> {
        if !self.header.locked {
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

    /// Bytes at the end of the file that are no whole block: of one that is being written, or was when its writer ended.
    ///
    /// # Errors
    /// When the file cannot be asked any more.
    pub fn rest(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len().saturating_sub(self.offset))
    }

    /// Hands over the payloads that have come since the last call, at most about 2 MiB of them. Returns whether there may
    /// be more. A block that is not there to its last byte is left for a later call.
    ///
    /// # Errors
    /// When the file cannot be read any more.
    pub fn read(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let there = self.rest()?;
        buffer.resize(usize::try_from(there).map_or(CHUNK, |it| it.min(CHUNK)), 0);
        let got = read_at_most(&self.file, &mut buffer, self.offset)?;
        let mut at = 0;
        while let Some((length, sum)) = self.block(&buffer[..got], &mut at) {
            let end = at + HEAD + length.next_multiple_of(HEAD);
            let Some(payload) = buffer[..got].get(at + HEAD..end) else {
                break;
            };
            let payload = &payload[..length];
            if crc32fast::hash(payload) == sum {
                each(payload);
            } else if self.is_patient {
                break;
            } else {
                self.skip(self.offset + at as u64, end - at);
            }
            at = end;
        }
        self.offset += at as u64;
        if buffer.capacity() <= KEPT || got == CHUNK {
            self.buffer = buffer;
        }
        // What is left of a full buffer is less than the longest block.
        Ok(got == CHUNK && at > 0)
    }

    /// The next block at or behind `at`, which is moved there. `None` when none begins in these bytes.
    fn block(&mut self, bytes: &[u8], at: &mut usize) -> Option<(usize, u32)> {
        while let Some(head) = bytes.get(*at..*at + HEAD) {
            if let Some(found) = payload_of(head) {
                return Some(found);
            }
            if self.is_patient {
                return None;
            }
            self.skip(self.offset + *at as u64, HEAD);
            *at += HEAD;
        }
        None
    }

    fn skip(&mut self, at: u64, bytes: usize) {
        if self.damage.skipped == 0 {
            self.damage.at = at;
        }
        self.damage.skipped += bytes as u64;
    }
}
