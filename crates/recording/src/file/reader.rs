//! Following a recording, live or afterwards.
//!
//! The file is not trusted: it may be cut short, half written, or made to do harm. Memory is bounded by
//! one buffer, ids are checked before anybody sees them, and what cannot be read is counted.

use std::fs::{File, TryLockError};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use activity::door;
use activity::entry::{self, Entry, UNIT, Unreadable};

use super::HEADER;
use super::block::Block;
use super::header::{Identity, NoHeader, Status, VERSION};

/// Bytes read at a time; several blocks.
const CHUNK: usize = 1 << 20;
/// Room that a reader keeps between two looks: hundreds of recordings may be followed at a time.
const KEPT: usize = 64 << 10;

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
    #[error("{path} is a recording of format {version}; this version of cuptop reads format {VERSION}", path = .0.display(), version = .1)]
    OtherVersion(PathBuf, u32),
    /// Its header is not as it was written.
    #[error("the header of {path} is damaged", path = .0.display())]
    DamagedHeader(PathBuf),
}

/// What of a recording could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins.
    at: u64,
    /// Bytes skipped.
    skipped: u64,
    /// The file ends before what was published.
    is_cut_short: bool,
    /// The last word on how far it had come is not as it was written.
    status: bool,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (at, skipped) = (self.at, self.skipped);
        let also = if self.is_cut_short {
            ", and it is cut short"
        } else {
            ""
        };
        match (skipped > 0, self.is_cut_short) {
            (true, _) => write!(
                f,
                "it is damaged at byte {at}: {skipped} bytes were skipped{also}"
            ),
            (false, true) => write!(f, "it is cut short"),
            (false, false) => write!(
                f,
                "its status is damaged: what was written last may be missing"
            ),
        }
    }
}

/// What of a recording is waited for, that is published and not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Nothing: on one machine all is there. What is not whole is damage, and skipped.
    #[default]
    Never,
    /// Bytes behind the file's end: somebody copies it here, from front to back.
    Bytes,
    /// Blocks that are not whole: through a network file system the length that a page publishes may arrive before the blocks
    /// that it is of.
    Blocks,
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
    /// Ids that were defined in what could not be read, in order.
    lost_names: Vec<RangeInclusive<u32>>,
    lost_shapes: Vec<RangeInclusive<u32>>,
    /// Records up to `sound`, the end of the last block that was read.
    records: u64,
    sound: u64,
    lost: u64,
    unknown: u64,
    damage: Damage,
    wait: Wait,
    buffer: Vec<u8>,
}

impl Reader {
    /// Opens a recording.
    ///
    /// # Errors
    /// When the file cannot be read or is no recording.
    pub fn open(path: &Path) -> Result<Reader, OpenError> {
        let io = |error| OpenError::Io(path.to_path_buf(), error);
        let file = door::open_any(path).map_err(io)?;
        if !file.metadata().map_err(io)?.is_file() {
            return Err(OpenError::NotARecording(path.to_path_buf()));
        }
        let page = read_page(&file)
            .map_err(io)?
            .ok_or_else(|| OpenError::NotARecording(path.to_path_buf()))?;
        let path = path.to_path_buf();
        let identity = match Identity::decode(&page) {
            Ok(identity) => identity,
            Err(NoHeader::NotARecording) => return Err(OpenError::NotARecording(path)),
            Err(NoHeader::OtherVersion(version)) => {
                return Err(OpenError::OtherVersion(path, version));
            }
            Err(NoHeader::Damaged) => return Err(OpenError::DamagedHeader(path)),
        };
        let mut reader = Reader {
            file,
            path,
            identity,
            status: Status::default(),
            offset: HEADER as u64,
            names: 0,
            shapes: 0,
            lost_names: Vec::new(),
            lost_shapes: Vec::new(),
            records: 0,
            sound: HEADER as u64,
            lost: 0,
            unknown: 0,
            damage: Damage::default(),
            wait: Wait::Never,
            buffer: Vec::new(),
        };
        match reader.take_status(&page) {
            Ok(()) => Ok(reader),
            Err(error) => Err(OpenError::Io(reader.path, error)),
        }
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

    /// Up to where it was read, in bytes.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.offset
    }

    /// Says what is waited for from now on.
    pub fn wait_for(&mut self, wait: Wait) {
        self.wait = wait;
    }

    /// Whether something is waited for that is published.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.wait != Wait::Never && !self.is_at_end()
    }

    /// Opens the file anew, so that a network file system asks its server what it holds by now. When it is not there any more,
    /// or is another one, the one that was opened is read on.
    pub fn reopen(&mut self) {
        let Ok(file) = door::open(&self.path) else {
            return;
        };
        let page = read_page(&file).ok().flatten();
        if page.is_some_and(|page| Identity::decode(&page).is_ok_and(|it| it == self.identity)) {
            self.file = file;
        }
    }

    /// How many names and shapes it has defined so far.
    #[must_use]
    pub fn definitions(&self) -> (u32, u32) {
        (self.names, self.shapes)
    }

    /// Whether all that is published has been read.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.damage.is_cut_short || self.offset + UNIT as u64 > self.status.published
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

    /// What is wrong with the file. While it is being written, its status may look damaged for a moment.
    #[must_use]
    pub fn damage(&self) -> Option<Damage> {
        Some(self.damage).filter(|damage| *damage != Damage::default())
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
        match read_page(&self.file)? {
            Some(page) => self.take_status(&page),
            None => Ok(()),
        }
    }

    fn take_status(&mut self, page: &[u8; HEADER]) -> io::Result<()> {
        if let Some(status) = Status::newest(page)
            && status.sequence > self.status.sequence
        {
            self.status = status;
        }
        self.damage.status = Status::has_torn_slot(page);
        if self.damage.status && self.writer_lives() == Some(false) {
            // The blocks themselves say how far it had come.
            let length = self.file.metadata()?.len();
            self.status.published = self.status.published.max(length);
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
        if self.damage.is_cut_short || self.offset >= valid {
            return Ok(false);
        }
        let want = usize::try_from(valid - self.offset).map_or(CHUNK, |left| left.min(CHUNK));
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(want, 0);
        let got = read_at_most(&self.file, &mut buffer, self.offset)?;
        let mut at = 0;
        while at + UNIT <= got {
            let here = self.offset + at as u64;
            let block = Block::decode(&buffer[at..got], here)
                .filter(|block| self.follows(block, here, valid));
            let Some(block) = block else {
                if self.wait == Wait::Blocks {
                    break;
                }
                self.skip(here, UNIT);
                at += UNIT;
                continue;
            };
            let end = at + UNIT + block.length;
            let Some(entries) = buffer[..got].get(at + UNIT..end) else {
                // The rest of it comes with the next call.
                break;
            };
            if block.is_of(entries) {
                self.arrive(&block, here);
                self.take_all(entries, each);
                self.sound = here + (UNIT + block.length) as u64;
            } else if self.wait == Wait::Blocks {
                break;
            } else {
                self.skip(here, UNIT + block.length);
            }
            at = end;
        }
        self.offset += at as u64;
        if buffer.capacity() <= KEPT || self.offset < valid {
            self.buffer = buffer;
        }
        let is_short = self.wait == Wait::Blocks || (self.wait == Wait::Bytes && got < want);
        if is_short && self.offset < valid {
            // What is behind it may be there: then the next call comes to it.
            return Ok(at > 0);
        }
        if got < want {
            self.damage.is_cut_short = true;
            self.miss(self.status.records, valid);
            return Ok(false);
        }
        if self.offset >= valid && self.sound < valid {
            self.miss(self.status.records, valid);
            self.sound = valid;
        }
        Ok(self.offset < valid)
    }

    /// Whether a block at `here` can be the next one: what it says came before it is no less than what was read.
    fn follows(&self, block: &Block, here: u64, valid: u64) -> bool {
        here + (UNIT + block.length) as u64 <= valid
            && block.before.records >= self.records
            && block.before.names >= self.names
            && block.before.shapes >= self.shapes
    }

    fn skip(&mut self, at: u64, bytes: usize) {
        if self.damage.skipped == 0 {
            self.damage.at = at;
        }
        self.damage.skipped += bytes as u64;
    }

    /// Takes over from a block what was defined before it and could not be read.
    fn arrive(&mut self, block: &Block, here: u64) {
        self.miss(block.before.records, here);
        if block.before.names > self.names {
            self.lost_names.push(self.names + 1..=block.before.names);
            self.names = block.before.names;
        }
        if block.before.shapes > self.shapes {
            self.lost_shapes.push(self.shapes + 1..=block.before.shapes);
            self.shapes = block.before.shapes;
        }
    }

    /// There should have been `records` up to `end`. A made-up number must not become a made-up loss.
    fn miss(&mut self, records: u64, end: u64) {
        let room = end.saturating_sub(self.sound) / UNIT as u64;
        let most = room.min(self.status.health.received.max(1));
        self.lost += records.saturating_sub(self.records).min(most);
        self.records = self.records.max(records);
    }

    fn take_all(&mut self, mut entries: &[u8], each: &mut dyn FnMut(Entry<'_>)) {
        while let Some(length) = entry::length(entries) {
            let Some((bytes, rest)) = entries.split_at_checked(length) else {
                break;
            };
            self.records += u64::from(entry::is_record(bytes));
            self.take(Entry::decode(bytes), each);
            entries = rest;
        }
        if !entries.is_empty() {
            // Written so, by whoever wrote it.
            self.lost += 1;
        }
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
        let name = |id: u32| (1..=self.names).contains(&id) && !is_in(&self.lost_names, id);
        match *entry {
            Entry::Name(id, _) => {
                let fits = self.names.checked_add(1) == Some(id);
                self.names += u32::from(fits);
                fits
            }
            Entry::Shape(id, shape) => {
                let fits = self.shapes.checked_add(1) == Some(id);
                let is_named = name(shape.name);
                self.shapes += u32::from(fits);
                if fits && !is_named {
                    self.lost_shapes.push(id..=id);
                }
                fits && is_named
            }
            Entry::Collective(shape, _) => {
                (1..=self.shapes).contains(&shape) && !is_in(&self.lost_shapes, shape)
            }
            Entry::Record(mut record) => {
                if let Some(id) = record.what.name_mut() {
                    return name(*id);
                }
                record.what.shape_mut().is_none_or(|id| {
                    (1..=self.shapes).contains(id) && !is_in(&self.lost_shapes, *id)
                })
            }
            _ => true,
        }
    }
}

fn is_in(lost: &[RangeInclusive<u32>], id: u32) -> bool {
    let at = lost.partition_point(|range| *range.end() < id);
    lost.get(at).is_some_and(|range| range.contains(&id))
}

fn read_page(file: &File) -> io::Result<Option<[u8; HEADER]>> {
    let mut page = [0; HEADER];
    let got = read_at_most(file, &mut page, 0)?;
    Ok((got == HEADER).then_some(page))
}

pub(super) fn read_at_most(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
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
