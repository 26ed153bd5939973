//! The header page: who wrote the recording, and how far it has come.

use activity::{Health, codes};
use rustix::time::ClockId;

use super::HEADER;

/// What a recording begins with.
pub const MAGIC: [u8; 8] = *b"cuptop\x1a\n";
pub(super) const VERSION: u32 = 2;
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
            realtime: read_clock(ClockId::Realtime),
            monotonic: read_clock(ClockId::Monotonic),
            raw: read_clock(ClockId::MonotonicRaw),
        }
    }
}

fn read_clock(clock: ClockId) -> i64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Who writes a recording. Never changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The process.
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

/// Why a header page says nothing.
#[derive(Clone, Copy, Debug)]
pub(super) enum NoHeader {
    NotARecording,
    OtherVersion(u32),
    Damaged,
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

fn put_u32(page: &mut [u8], at: usize, value: u32) {
    page[at..at + 4].copy_from_slice(&value.to_le_bytes());
}
fn put_u64(page: &mut [u8], at: usize, value: u64) {
    page[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
fn get_u32(page: &[u8], at: usize) -> u32 {
    page.get(at..at + 4)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u32::from_le_bytes)
}
fn get_u64(page: &[u8], at: usize) -> u64 {
    page.get(at..at + 8)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}

fn code_at(page: &[u8], at: usize) -> Option<u8> {
    u8::try_from(get_u32(page, at)).ok()
}

fn put_clocks(page: &mut [u8], at: usize, clocks: Clocks) {
    put_u64(page, at, clocks.realtime.cast_unsigned());
    put_u64(page, at + 8, clocks.monotonic.cast_unsigned());
    put_u64(page, at + 16, clocks.raw.cast_unsigned());
}
fn get_clocks(page: &[u8], at: usize) -> Clocks {
    Clocks {
        realtime: get_u64(page, at).cast_signed(),
        monotonic: get_u64(page, at + 8).cast_signed(),
        raw: get_u64(page, at + 16).cast_signed(),
    }
}

impl Identity {
    pub(super) fn encode(&self) -> [u8; HEADER] {
        let mut page = [0; HEADER];
        page[..8].copy_from_slice(&MAGIC);
        put_u32(&mut page, 8, VERSION);
        put_u32(&mut page, 12, HEADER as u32);
        put_u32(&mut page, 16, self.pid);
        let flags =
            u32::from(self.simulated) | u32::from(self.locked) << 1 | u32::from(self.outside) << 2;
        put_u32(&mut page, 20, flags);
        put_clocks(&mut page, 24, self.start);
        put_u32(&mut page, 48, self.part);
        put_u64(&mut page, 56, self.earlier);
        let sum = crc32fast::hash(&page[..IDENTITY]);
        put_u32(&mut page, IDENTITY, sum);
        page
    }

    pub(super) fn decode(page: &[u8; HEADER]) -> Result<Identity, NoHeader> {
        if page[..8] != MAGIC {
            return Err(NoHeader::NotARecording);
        }
        let version = get_u32(page, 8);
        if version != VERSION {
            return Err(NoHeader::OtherVersion(version));
        }
        let is_sound = get_u32(page, IDENTITY) == crc32fast::hash(&page[..IDENTITY]);
        if !is_sound || get_u32(page, 12) != HEADER as u32 {
            return Err(NoHeader::Damaged);
        }
        let flags = get_u32(page, 20);
        Ok(Identity {
            pid: get_u32(page, 16),
            simulated: flags & 1 != 0,
            locked: flags & 2 != 0,
            outside: flags & 4 != 0,
            start: get_clocks(page, 24),
            part: get_u32(page, 48),
            earlier: get_u64(page, 56),
        })
    }
}

impl Status {
    pub(super) fn encode(&self) -> [u8; SLOT] {
        let mut slot = [0; SLOT];
        put_u64(&mut slot, 0, self.sequence);
        put_u64(&mut slot, 8, self.published);
        put_u32(&mut slot, 16, self.state.code().into());
        put_u32(&mut slot, 20, self.error.code().into());
        let health = &self.health;
        for (index, value) in [
            health.received,
            health.dropped,
            health.lost,
            health.no_timestamp,
            health.end_before_start,
            health.bad_clock,
            health.unknown,
            health.oldest_open.unwrap_or(0).cast_unsigned(),
        ]
        .into_iter()
        .enumerate()
        {
            put_u64(&mut slot, 24 + index * 8, value);
        }
        put_clocks(&mut slot, 88, self.clocks);
        put_u64(&mut slot, 112, self.records);
        let sum = checksum(&slot[..SLOT - 8]);
        put_u64(&mut slot, SLOT - 8, sum);
        slot
    }

    pub(super) fn decode(slot: &[u8]) -> Option<Status> {
        let slot = slot.get(..SLOT)?;
        if checksum(&slot[..SLOT - 8]) != get_u64(slot, SLOT - 8) {
            return None;
        }
        let count = |index: usize| get_u64(slot, 24 + index * 8);
        Some(Status {
            sequence: get_u64(slot, 0),
            published: get_u64(slot, 8),
            state: code_at(slot, 16)
                .and_then(State::from_code)
                .unwrap_or(State::Continued),
            error: code_at(slot, 20)
                .and_then(WriteError::from_code)
                .unwrap_or(WriteError::Other),
            health: Health {
                received: count(0),
                dropped: count(1),
                lost: count(2),
                no_timestamp: count(3),
                end_before_start: count(4),
                bad_clock: count(5),
                unknown: count(6),
                oldest_open: Some(count(7).cast_signed()).filter(|time| *time != 0),
            },
            clocks: get_clocks(slot, 88),
            records: get_u64(slot, 112),
        })
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

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
