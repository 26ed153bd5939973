//! Following a recording, live or afterwards.
//!
//! The file is not trusted: it may be cut short, half written, or made to do harm. Memory is bounded by
//! one buffer, ids are checked before anybody sees them, and what cannot be read is counted.

use std::fs::{File, TryLockError};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use activity::entry::{self, Entry, UNIT, Unreadable};
use activity::{SampleDef, door};

use super::HEADER;
use super::block::{Block, NAMES, SHAPES};
use super::header::{Identity, OpenError, Status};

/// Bytes read at a time; several blocks.
const CHUNK: usize = 1 << 20;
/// Room that a reader keeps between two looks: hundreds of recordings may be followed at a time.
const KEPT: usize = 64 << 10;

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
    pub file: File,
    path: PathBuf,
    /// Who wrote it.
    pub identity: Identity,
    /// How far it had come at the last [`Reader::refresh`].
    pub status: Status,
    /// Up to where it was read, in bytes.
    pub offset: u64,
    /// As [`Counts::ids`](super::block::Counts::ids) has them.
    ids: [Ids; 4],
    /// Records up to `sound`, the end of the last block that was read.
    records: u64,
    sound: u64,
    /// Records that this reader could not read.
    pub lost: u64,
    /// Records of a kind that this reader does not know.
    pub unknown: u64,
    damage: Damage,
    /// What is waited for from now on.
    pub wait: Wait,
    buffer: Vec<u8>,
}

impl Reader {
    /// Opens a recording.
    ///
    /// # Errors
    /// When the file cannot be read or is no recording.
    pub fn open(path: &Path) -> Result<Reader, OpenError> {
        let file = door::open_any(path);
        Reader::from_file(
            file.map_err(|error| OpenError::Io(path.to_path_buf(), error))?,
            path,
        )
    }

    /// Reads a file that was opened at this path, and that may be gone from there by now.
    pub(crate) fn from_file(file: File, path: &Path) -> Result<Reader, OpenError> {
        let io = |error| OpenError::Io(path.to_path_buf(), error);
        if !file.metadata().map_err(io)?.is_file() {
            return Err(OpenError::NotARecording(path.to_path_buf()));
        }
        let page = read_page(&file)
            .map_err(io)?
            .ok_or_else(|| OpenError::NotARecording(path.to_path_buf()))?;
        let path = path.to_path_buf();
        let mut reader = Reader {
            file,
            identity: Identity::decode(&page, &path)?,
            path,
            status: Status::default(),
            offset: HEADER as u64,
            ids: Default::default(),
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
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether something is waited for that is published.
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
        if page.is_some_and(|page| {
            Identity::decode(&page, &self.path).is_ok_and(|it| it == self.identity)
        }) {
            self.file = file;
        }
    }

    /// How many names and shapes it has defined so far.
    pub fn definitions(&self) -> (u32, u32) {
        (self.ids[NAMES].count, self.ids[SHAPES].count)
    }

    /// Whether all that is published has been read.
    pub fn is_at_end(&self) -> bool {
        self.damage.is_cut_short || self.offset + UNIT as u64 > self.status.published
    }

    /// What is wrong with the file. While it is being written, its status may look damaged for a moment.
    pub fn damage(&self) -> Option<Damage> {
        Some(self.damage).filter(|damage| *damage != Damage::default())
    }

    /// Whether the writer still lives: `None` when the file does not tell.
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
        let mut ids = self.ids.iter().zip(block.before.ids);
        here + (UNIT + block.length) as u64 <= valid
            && block.before.records >= self.records
            && ids.all(|(ids, before)| ids.may_go_on(before, here - self.sound))
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
        for (ids, before) in self.ids.iter_mut().zip(block.before.ids) {
            ids.arrive(before);
        }
    }

    /// There should have been `records` up to `end`. A made-up number must not become a made-up loss.
    fn miss(&mut self, records: u64, end: u64) {
        let room = end.saturating_sub(self.sound) / UNIT as u64;
        let most = room.min(self.status.health.received.max(self.status.records).max(1));
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
        let [names, shapes, frames, stacks] = &mut self.ids;
        match *entry {
            Entry::Name(id, _) => names.define(id),
            Entry::Shape(id, shape) => {
                let fits = shapes.define(id);
                let is_named = names.has(shape.name);
                if fits && !is_named {
                    shapes.lost.push(id..=id);
                }
                fits && is_named
            }
            Entry::SampleDef(SampleDef::Frame { id, .. }) => frames.define(id),
            Entry::SampleDef(SampleDef::Stack { id, caller, frame }) => {
                // A stack that is its own caller would have no end. What was lost is shown as unknown.
                stacks.define(id) && caller < id && frame <= frames.count
            }
            Entry::StackSample(ref look) => look.changed.iter().all(|it| it.stack <= stacks.count),
            Entry::Collective(shape, _) => shapes.has(shape),
            Entry::Record(mut record) => {
                if let Some(id) = record.what.name_mut() {
                    return names.has(*id);
                }
                let shape = record.what.shape_mut();
                shape.is_none_or(|id| shapes.has(*id))
            }
            _ => true,
        }
    }
}

/// Ids that count up from 1.
#[derive(Debug, Default)]
struct Ids {
    /// Defined so far.
    count: u32,
    /// Those that were defined in what could not be read, in order.
    lost: Vec<RangeInclusive<u32>>,
}

impl Ids {
    #[inline]
    fn has(&self, id: u32) -> bool {
        (1..=self.count).contains(&id) && !self.is_lost(id)
    }

    fn is_lost(&self, id: u32) -> bool {
        let at = self.lost.partition_point(|range| *range.end() < id);
        self.lost.get(at).is_some_and(|range| range.contains(&id))
    }

    /// Whether this is the next one, which then is defined.
    fn define(&mut self, id: u32) -> bool {
        let fits = self.count.checked_add(1) == Some(id);
        self.count += u32::from(fits);
        fits
    }

    /// Whether there can be `before` of them behind as many bytes that could not be read.
    fn may_go_on(&self, before: u32, bytes: u64) -> bool {
        let missed = before.checked_sub(self.count);
        missed.is_some_and(|missed| u64::from(missed) <= bytes / UNIT as u64)
    }

    /// Takes over those that were defined in what could not be read.
    fn arrive(&mut self, before: u32) {
        if before > self.count {
            self.lost.push(self.count + 1..=before);
            self.count = before;
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
