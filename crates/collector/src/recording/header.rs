//! The header page: who wrote the recording, and how far it has come.

use super::HEADER;

const MAGIC: [u8; 8] = *b"cuptop\x1a\n";
const VERSION: u32 = 1;
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
    #[must_use]
    pub fn now() -> Clocks {
        Clocks {
            realtime: read_clock(libc::CLOCK_REALTIME),
            monotonic: read_clock(libc::CLOCK_MONOTONIC),
            raw: read_clock(libc::CLOCK_MONOTONIC_RAW),
        }
    }
}

fn read_clock(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one timespec; the clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
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
    /// When it began.
    pub start: Clocks,
    /// Which part of the process's recording this file is, from 0.
    pub part: u32,
    /// Records that the process received before this part.
    pub earlier: u64,
}

/// Whether the writer is still at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// More may come.
    #[default]
    Running,
    /// Closed in good order.
    Closed,
    /// The process runs untraced; a notice says why.
    Refused,
    /// It goes on in the next part.
    Continued,
}

/// What kept the writer from writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    #[default]
    None,
    /// No space left on the device, or a quota or file size limit of the system.
    NoSpace,
    /// The size limit that the user set.
    SizeLimit,
    /// The file has been deleted.
    Deleted,
    /// Another error.
    Other,
}

impl Trouble {
    /// In words for people; `None` when there is no trouble.
    #[must_use]
    pub fn describe(self) -> Option<&'static str> {
        match self {
            Trouble::None => None,
            Trouble::NoSpace => Some("no space was left for the recording"),
            Trouble::SizeLimit => Some("the recording reached its size limit"),
            Trouble::Deleted => Some("the recording was deleted while it was being written"),
            Trouble::Other => Some("the recording could not be written"),
        }
    }
}

/// Counters of one process, totals since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Records that arrived, the rejected ones included.
    pub received: u64,
    /// Records that CUPTI said it dropped.
    pub dropped: u64,
    /// Records that could not be decoded or written.
    pub lost: u64,
    /// Rejected: start or end time zero.
    pub no_timestamp: u64,
    /// Rejected: ended before it started.
    pub end_before_start: u64,
    /// Rejected: a time outside the session.
    pub bad_clock: u64,
    /// Records of a kind that the writer does not know.
    pub unknown: u64,
    /// Start of the oldest operation known to be open; 0 for none.
    pub oldest_open: i64,
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
    pub trouble: Trouble,
    /// The counters.
    pub health: Health,
    /// When this was.
    pub clocks: Clocks,
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
        let flags = u32::from(self.simulated) | u32::from(self.locked) << 1;
        put_u32(&mut page, 20, flags);
        put_clocks(&mut page, 24, self.start);
        put_u32(&mut page, 48, self.part);
        put_u64(&mut page, 56, self.earlier);
        page
    }

    /// `Err` holds the version of a recording from another time.
    pub(super) fn decode(page: &[u8; HEADER]) -> Option<Result<Identity, u32>> {
        if page[..8] != MAGIC {
            return None;
        }
        let version = get_u32(page, 8);
        if version != VERSION || get_u32(page, 12) != HEADER as u32 {
            return Some(Err(version));
        }
        let flags = get_u32(page, 20);
        Some(Ok(Identity {
            pid: get_u32(page, 16),
            simulated: flags & 1 != 0,
            locked: flags & 2 != 0,
            start: get_clocks(page, 24),
            part: get_u32(page, 48),
            earlier: get_u64(page, 56),
        }))
    }
}

impl Status {
    pub(super) fn encode(&self) -> [u8; SLOT] {
        let mut slot = [0; SLOT];
        put_u64(&mut slot, 0, self.sequence);
        put_u64(&mut slot, 8, self.published);
        let state = match self.state {
            State::Running => 0,
            State::Closed => 1,
            State::Refused => 2,
            State::Continued => 3,
        };
        put_u32(&mut slot, 16, state);
        let trouble = match self.trouble {
            Trouble::None => 0,
            Trouble::NoSpace => 1,
            Trouble::SizeLimit => 2,
            Trouble::Deleted => 3,
            Trouble::Other => 4,
        };
        put_u32(&mut slot, 20, trouble);
        let health = &self.health;
        for (index, value) in [
            health.received,
            health.dropped,
            health.lost,
            health.no_timestamp,
            health.end_before_start,
            health.bad_clock,
            health.unknown,
            health.oldest_open.cast_unsigned(),
        ]
        .into_iter()
        .enumerate()
        {
            put_u64(&mut slot, 24 + index * 8, value);
        }
        put_clocks(&mut slot, 88, self.clocks);
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
            state: match get_u32(slot, 16) {
                0 => State::Running,
                1 => State::Closed,
                2 => State::Refused,
                _ => State::Continued,
            },
            trouble: match get_u32(slot, 20) {
                0 => Trouble::None,
                1 => Trouble::NoSpace,
                2 => Trouble::SizeLimit,
                3 => Trouble::Deleted,
                _ => Trouble::Other,
            },
            health: Health {
                received: count(0),
                dropped: count(1),
                lost: count(2),
                no_timestamp: count(3),
                end_before_start: count(4),
                bad_clock: count(5),
                unknown: count(6),
                oldest_open: count(7).cast_signed(),
            },
            clocks: get_clocks(slot, 88),
        })
    }

    /// The newer valid slot of a header page.
    pub(super) fn newest(page: &[u8; HEADER]) -> Option<Status> {
        SLOTS
            .iter()
            .filter_map(|&at| Status::decode(&page[at..at + SLOT]))
            .max_by_key(|status| status.sequence)
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
