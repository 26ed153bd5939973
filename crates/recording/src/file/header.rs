//! The header page: who wrote the recording, and how far it has come.

use std::io;
use std::path::{Path, PathBuf};

use activity::entry::{Field, Fields, fingerprint};
use activity::{Health, codes, fields};
use rustix::time::ClockId;

use super::HEADER;

/// What a recording begins with.
pub const MAGIC: [u8; 8] = *b"cuptop\x1a\n";
pub(super) const VERSION: u32 = 2;
/// More records than any process makes: sums of such numbers fit.
pub(super) const RECORDS_MAX: u64 = 1 << 48;
/// The bytes of the header page that its checksum covers.
const IDENTITY: usize = 64;
pub(super) const SLOTS: [usize; 2] = [512, 1024];
pub(super) const SLOT: usize = 160;

/// The same moment on three clocks, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// `CLOCK_REALTIME`, CUPTI's clock: it may be stepped.
    pub realtime: i64,
    /// `CLOCK_MONOTONIC`: its rate is adjusted, it is never stepped.
    pub monotonic: i64,
    /// `CLOCK_MONOTONIC_RAW`.
    pub raw: i64,
}

impl Clocks {
    /// Now.
    pub fn now() -> Clocks {
        Clocks {
            realtime: wall_time(),
            monotonic: read_clock(ClockId::Monotonic),
            raw: read_clock(ClockId::MonotonicRaw),
        }
    }
}

/// `CLOCK_REALTIME` in nanoseconds, the clock of recordings.
pub fn wall_time() -> i64 {
    read_clock(ClockId::Realtime)
}

/// `CLOCK_BOOTTIME` in nanoseconds, which nobody can set and which goes on while the machine sleeps.
pub fn boot_time() -> i64 {
    read_clock(ClockId::Boottime)
}

fn read_clock(clock: ClockId) -> i64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Who writes a recording. Never changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub pid: u32,
    /// Whether a model made it.
    pub simulated: bool,
    /// Whether the writer holds a lock on the file as long as it lives.
    pub locked: bool,
    /// Whether somebody else wrote it, who watched the process (0: the whole machine) from outside.
    pub outside: bool,
    /// When it began.
    pub start: Clocks,
    /// Which part of the process's recording this file is, from 0.
    pub part: u32,
    /// Records that the process received before this part.
    pub earlier: u64,
}

codes! {
    /// Whether the writer is still at work.
    #[derive(Default)]
    pub enum State {
        /// More may come.
        #[default]
        Running = 0,
        /// Closed in good order.
        Closed = 1,
        /// The process runs untraced; a notice says why.
        Refused = 2,
        /// It goes on in the next part.
        Continued = 3,
    }

    /// What kept the writer from writing.
    #[derive(Default)]
    pub enum WriteError {
        /// Nothing.
        #[default]
        None = 0,
        /// No space left on the device, or a quota or file size limit of the system.
        NoSpace = 1,
        /// The size limit that the user set.
        SizeLimit = 2,
        /// The file has been deleted.
        Deleted = 3,
        /// Another error.
        Other = 4,
    }
}

impl WriteError {
    /// In words for people; `None` when there is none.
    pub fn describe(self) -> Option<&'static str> {
        match self {
            WriteError::None => None,
            WriteError::NoSpace => Some("no space was left for the recording"),
            WriteError::SizeLimit => Some("the recording reached its size limit"),
            WriteError::Deleted => Some("the recording was deleted while it was being written"),
            WriteError::Other => Some("the recording could not be written"),
        }
    }
}

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

/// How far a recording has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Counts the status slots written.
    pub sequence: u64,
    /// All before this offset is complete.
    pub published: u64,
    /// Whether more may come.
    pub state: State,
    /// What kept the writer from writing.
    pub error: WriteError,
    /// The counters.
    pub health: Health,
    /// When this was.
    pub clocks: Clocks,
    /// Records in this part.
    pub records: u64,
}

fields! {
    Identity { pid @ 16, start.realtime @ 24, start.monotonic @ 32, start.raw @ 40, part @ 48, earlier @ 56 }
    Status {
        sequence @ 0, published @ 8, health.received @ 24, health.dropped @ 32, health.lost @ 40,
        health.no_timestamp @ 48, health.end_before_start @ 56, health.bad_clock @ 64, health.unknown @ 72,
        clocks.realtime @ 88, clocks.monotonic @ 96, clocks.raw @ 104, records @ 112
    }
}

impl Identity {
    pub(super) fn encode(&self) -> [u8; HEADER] {
        let mut page = [0; HEADER];
        page[..8].copy_from_slice(&MAGIC);
        VERSION.put(&mut page, 8);
        (HEADER as u32).put(&mut page, 12);
        let flags =
            u32::from(self.simulated) | u32::from(self.locked) << 1 | u32::from(self.outside) << 2;
        flags.put(&mut page, 20);
        self.put_fields(&mut page);
        crc32fast::hash(&page[..IDENTITY]).put(&mut page, IDENTITY);
        page
    }

    pub(super) fn decode(page: &[u8; HEADER], path: &Path) -> Result<Identity, OpenError> {
        let path = || path.to_path_buf();
        if page[..8] != MAGIC {
            return Err(OpenError::NotARecording(path()));
        }
        let number = |at| u32::get(page, at).unwrap_or(0);
        if number(8) != VERSION {
            return Err(OpenError::OtherVersion(path(), number(8)));
        }
        let is_sound = number(IDENTITY) == crc32fast::hash(&page[..IDENTITY]);
        let earlier = u64::get(page, 56).unwrap_or(u64::MAX);
        if !is_sound || number(12) != HEADER as u32 || earlier > RECORDS_MAX {
            return Err(OpenError::DamagedHeader(path()));
        }
        Ok(Identity {
            simulated: number(20) & 1 != 0,
            locked: number(20) & 2 != 0,
            outside: number(20) & 4 != 0,
            ..Fields::fields(page).ok_or_else(|| OpenError::DamagedHeader(path()))?
        })
    }
}

impl Status {
    pub(super) fn encode(&self) -> [u8; SLOT] {
        let mut slot = [0; SLOT];
        self.put_fields(&mut slot);
        self.state.put(&mut slot, 16);
        self.error.put(&mut slot, 20);
        self.health.oldest_open.unwrap_or(0).put(&mut slot, 80);
        fingerprint(&slot[..SLOT - 8]).put(&mut slot, SLOT - 8);
        slot
    }

    pub(super) fn decode(slot: &[u8]) -> Option<Status> {
        let slot = slot.get(..SLOT)?;
        if Some(fingerprint(&slot[..SLOT - 8])) != u64::get(slot, SLOT - 8) {
            return None;
        }
        let mut status = Status::fields(slot)?;
        let it = status.health;
        let claimed = [
            [it.received, it.dropped, it.lost, it.unknown],
            [
                it.no_timestamp,
                it.end_before_start,
                it.bad_clock,
                status.records,
            ],
        ];
        if claimed.as_flattened().iter().any(|it| *it > RECORDS_MAX) {
            return None;
        }
        status.state = State::get(slot, 16).unwrap_or(State::Continued);
        status.error = WriteError::get(slot, 20).unwrap_or(WriteError::Other);
        status.health.oldest_open = i64::get(slot, 80).filter(|time| *time != 0);
        Some(status)
    }

    /// The newer valid slot of a header page.
    pub(super) fn newest(page: &[u8; HEADER]) -> Option<Status> {
        SLOTS
            .iter()
            .filter_map(|&at| Status::decode(&page[at..at + SLOT]))
            .max_by_key(|status| status.sequence)
    }

    /// Whether a slot holds something that was not written so, or not to its end.
    pub(super) fn has_torn_slot(page: &[u8; HEADER]) -> bool {
        SLOTS.iter().any(|&at| {
            let slot = &page[at..at + SLOT];
            slot.iter().any(|byte| *byte != 0) && Status::decode(slot).is_none()
        })
    }
}
