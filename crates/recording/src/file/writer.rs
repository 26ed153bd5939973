//! Appending to a recording.
//!
//! Written with `pwrite`, never through a mapping: a full disk has to be an error, not a SIGBUS in the program that is
//! being watched. After the first error it only writes the counters in the header page, whose space exists already. The
//! program goes on, and losses are counted.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use activity::door;
use activity::entry::{Entry, UNIT, encode_record, shortened};
use activity::{Activity, Health, LaunchShape, SampleDef};

use super::block::{self, Counts, FRAMES, NAMES, SHAPES, STACKS};
use super::header::{Clocks, Identity, SLOTS, State, Status, WriteError};
use super::intern::Interner;
use super::parts::{Defined, Parts};
use super::steps;
use super::{EXTENSION, HEADER, OUTSIDE};

/// Different names and shapes that are remembered at a time (a few MiB each).
const MOST_NAMES: usize = 1 << 16;
const MOST_SHAPES: usize = 1 << 18;

/// Writes one recording.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    /// Whose it is, and which part of the recording is being written. Ids of names and shapes are those of one part.
    pub identity: Identity,
    parts: Option<Parts>,
    retired: Option<File>,
    defined: Defined,
    max_bytes: u64,
    /// Where the next bytes go: the block that is being put together.
    pub(super) end: u64,
    /// The block that comes next: room for its first unit, then entries.
    pending: Vec<u8>,
    /// What this part holds up to the pending block, and with it.
    sealed: Counts,
    so_far: Counts,
    /// What keeps it from writing, if anything does. Nothing more is written then but the counters.
    pub status: Status,
    names: Interner<Box<[u8]>, MOST_NAMES>,
    shapes: Interner<LaunchShape, MOST_SHAPES>,
    /// Records that could not be written.
    lost: u64,
}

impl Writer {
    /// Creates a recording of what is seen of a process (0: of the whole machine) from outside since `start`, in `directory`, which
    /// must exist.
    ///
    /// # Errors
    /// When the file cannot be created or its header cannot be written.
    pub fn outside(directory: &Path, pid: u32, start: Clocks) -> io::Result<Writer> {
        let identity = Identity {
            pid,
            outside: true,
            start,
            ..Identity::default()
        };
        Writer::create(directory, identity, 0)
    }

    /// Creates a recording in `directory`, which must exist. `max_bytes` limits the file; 0 means no limit.
    ///
    /// # Errors
    /// When the file cannot be created or its header cannot be written.
    pub fn create(directory: &Path, mut identity: Identity, max_bytes: u64) -> io::Result<Writer> {
        let (file, path) = create_file(directory, &mut identity)?;
        let mut writer = Writer {
            file,
            path,
            identity,
            parts: None,
            retired: None,
            defined: Defined::default(),
            max_bytes: if max_bytes == 0 { u64::MAX } else { max_bytes },
            end: HEADER as u64,
            pending: Vec::with_capacity(block::LONGEST),
            sealed: Counts::default(),
            so_far: Counts::default(),
            status: Status {
                published: HEADER as u64,
                ..Status::default()
            },
            names: Interner::default(),
            shapes: Interner::default(),
            lost: 0,
        };
        writer.pending.resize(UNIT, 0);
        writer.write_status()?;
        Ok(writer)
    }

    /// Keeps only the last of it. That is at least as much as happened within `age`, at most twice that, and no more
    /// than the limit of its size. Older parts of the recording are deleted.
    pub fn keep_last(&mut self, age: Duration) {
        self.parts = Some(Parts::new(age));
    }

    /// Whether the present part is as long as a part may be, where only the last of it is kept. That is half of what
    /// the recording may have. The next [`Writer::publish`] begins another.
    pub fn is_part_full(&self) -> bool {
        let room = (block::LONGEST as u64).min(self.max_bytes / 8);
        self.parts.is_some()
            && self.max_bytes != u64::MAX
            && self.end + self.pending.len() as u64 >= self.max_bytes / 2 - room
    }

    /// Where the recording lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's descriptor, to be closed in a forked child.
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Appends something that happened.
    pub fn record(&mut self, record: &Activity) {
        if self.status.error != WriteError::None {
            self.lost += 1;
            return;
        }
        encode_record(record, &mut self.pending);
        self.so_far.records += 1;
        self.write_when_full();
    }

    /// The id of a string; defines it when it is new. Very long ones are [`shortened`].
    pub fn name(&mut self, text: &[u8]) -> u32 {
        let text = &*shortened(text);
        if let Some(id) = self.names.get(text) {
            return id;
        }
        let id = self.names.add(text.into());
        self.so_far.ids[NAMES] = id;
        self.add(&Entry::Name(id, text));
        id
    }

    /// The id of a launch shape; defines it when it is new.
    pub fn shape(&mut self, shape: &LaunchShape) -> u32 {
        if let Some(id) = self.shapes.get(shape) {
            return id;
        }
        let id = self.shapes.add(*shape);
        self.so_far.ids[SHAPES] = id;
        self.add(&Entry::Shape(id, *shape));
        id
    }

    /// Leaves a word for the user.
    pub fn notice(&mut self, is_warning: bool, text: &str) {
        self.add(&Entry::Notice(is_warning, text.as_bytes()));
    }

    /// Appends an entry. Ids of names and shapes come from [`Writer::name`] and [`Writer::shape`], those of stacks from
    /// [`StackLog`](super::StackLog).
    pub fn add(&mut self, entry: &Entry<'_>) {
        match entry {
            Entry::Device(_) | Entry::Stream(_) | Entry::Thread(..) | Entry::Process(_) => {
                self.defined.add(entry);
            }
            Entry::Mode(mode) => self.defined.mode = Some(*mode),
            Entry::SampleDef(_) if self.parts.is_some() => self.defined.add(entry),
            _ => {}
        }
        let is_record = u64::from(entry.span().is_some());
        if self.status.error != WriteError::None {
            self.lost += is_record;
            return;
        }
        entry.encode(&mut self.pending);
        self.so_far.records += is_record;
        match entry {
            Entry::SampleDef(SampleDef::Frame { id, .. }) => self.so_far.ids[FRAMES] = *id,
            Entry::SampleDef(SampleDef::Stack { id, .. }) => self.so_far.ids[STACKS] = *id,
            _ => {}
        }
        self.write_when_full();
    }

    /// What it counts by itself: for who has no other counters.
    fn own_health(&self) -> Health {
        Health {
            received: self.so_far.records + self.lost,
            ..Health::default()
        }
    }

    /// Publishes what was added, with its own counters.
    ///
    /// # Errors
    /// When it cannot be written, now or before.
    pub fn flush(&mut self) -> io::Result<()> {
        self.publish(&self.own_health());
        match self.status.error.describe() {
            Some(text) => Err(io::Error::other(text)),
            None => Ok(()),
        }
    }

    /// Publishes the last of it, with its own counters.
    pub fn finish(self) {
        let health = self.own_health();
        self.close(&health, State::Closed);
    }

    fn write_when_full(&mut self) {
        if self.pending.len() >= UNIT + block::FULL {
            self.write_pending();
        }
    }

    fn write_pending(&mut self) {
        if self.pending.len() <= UNIT {
            return;
        }
        let length = self.pending.len() as u64;
        if self.end + length > self.max_bytes {
            self.give_up(WriteError::SizeLimit);
            return;
        }
        block::seal(&mut self.pending, self.end, self.sealed);
        match steps::write(&self.file, &self.pending, self.end) {
            Ok(()) => {
                self.end += length;
                self.pending.truncate(UNIT);
                self.sealed = self.so_far;
            }
            Err(error) => self.give_up(write_error(&error)),
        }
    }

    fn give_up(&mut self, error: WriteError) {
        self.lost += self.so_far.records - self.sealed.records;
        self.so_far = self.sealed;
        self.pending = Vec::new();
        self.status.error = error;
    }

    /// Writes what is pending and publishes it together with the counters. `health.lost` is what the caller lost;
    /// what the writer lost is added.
    pub fn publish(&mut self, health: &Health) {
        self.publish_as(health, State::Running);
        if self.status.error == WriteError::None
            && (self.parts.as_ref().is_some_and(Parts::is_due) || self.is_part_full())
            && self.begin_part(health).is_err()
            && let Some(parts) = &mut self.parts
        {
            // The present part goes on.
            parts.begun = Instant::now();
        }
    }

    /// Goes on in a new file. The present one is only marked when the next one can be read.
    fn begin_part(&mut self, health: &Health) -> io::Result<()> {
        let Some(directory) = self.path.parent() else {
            return Ok(());
        };
        let mut identity = Identity {
            part: self.identity.part + 1,
            earlier: health.received,
            ..self.identity
        };
        let (file, path) = create_file(directory, &mut identity)?;
        let begin = |status: &mut Status| -> io::Result<Counts> {
            let (end, counts) = self.defined.write(&file, HEADER as u64)?;
            status.published = end;
            status.records = 0;
            status.sequence = 1;
            steps::write(&file, &status.encode(), SLOTS[1] as u64).map(|()| counts)
        };
        let mut status = self.status;
        let counts = begin(&mut status).inspect_err(|_| {
            let _ = std::fs::remove_file(&path);
        })?;
        self.status.state = State::Continued;
        let _ = self.write_status();
        self.end = status.published;
        self.status = status;
        self.identity = identity;
        (self.sealed, self.so_far) = (counts, counts);
        // Kept open until the next part: the caller knows its descriptor.
        self.retired = Some(std::mem::replace(&mut self.file, file));
        self.names = Interner::default();
        self.shapes = Interner::default();
        let ended = std::mem::replace(&mut self.path, path);
        if let Some(parts) = &mut self.parts {
            parts.advance(ended);
        }
        Ok(())
    }

    /// Publishes the last of it in the given state.
    pub fn close(mut self, health: &Health, state: State) {
        self.publish_as(health, state);
    }

    fn publish_as(&mut self, health: &Health, state: State) {
        if self.status.error == WriteError::None
            && self.file.metadata().is_ok_and(|it| it.nlink() == 0)
        {
            // Nobody can open it any more, and its blocks would be taken from the disk unseen.
            self.give_up(WriteError::Deleted);
        }
        self.write_pending();
        self.status.state = state;
        self.status.health = *health;
        self.status.health.lost += self.lost;
        self.status.published = self.end;
        self.status.records = self.sealed.records;
        // The page exists since the start, so only a failing disk fails here, and there is nobody left to tell.
        let _ = self.write_status();
    }

    fn write_status(&mut self) -> io::Result<()> {
        self.status.sequence += 1;
        self.status.clocks = Clocks::now();
        let slot = SLOTS[(self.status.sequence % 2) as usize];
        steps::write(&self.file, &self.status.encode(), slot as u64)
    }
}

/// Creates the file with its header, and locks it. Readers tell from the lock whether the writer lives, as it goes with
/// the process however that ends.
fn create_file(directory: &Path, identity: &mut Identity) -> io::Result<(File, PathBuf)> {
    // The start is only moved when two recordings of one process began within one tick of the clock.
    for _ in 0..1000 {
        let (pid, start) = (identity.pid, identity.start.realtime);
        let name = match identity.part {
            0 if identity.outside => format!("{pid}-{start:x}.{OUTSIDE}.{EXTENSION}"),
            0 => format!("{pid}-{start:x}.{EXTENSION}"),
            part => format!("{pid}-{start:x}.{part}.{EXTENSION}"),
        };
        let path = directory.join(name);
        match door::create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && identity.part == 0 => {
                identity.start.realtime += 1;
            }
            Err(error) => return Err(error),
            Ok(file) => {
                identity.locked = file.try_lock().is_ok();
                steps::write(&file, &identity.encode(), 0)?;
                return Ok((file, path));
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn write_error(error: &io::Error) -> WriteError {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => WriteError::NoSpace,
        _ => WriteError::Other,
    }
}
