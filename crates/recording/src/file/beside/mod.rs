//! Files beside a recording: what else is known of a process than what it recorded of itself.
//!
//! Each kind (stack samples, hardware counters) is a file of its own, `PID-START.KIND`, with a writer of its own, that is
//! followed while it grows like a recording. What a block holds is the kind's own; this is only how it is framed, so that
//! a killed writer leaves a readable file and damage costs the blocks that it is in.
//!
//! # The file
//!
//! All numbers are little-endian. 64 bytes of header, then blocks, each at a multiple of 16 bytes.
//!
//! | at | what |
//! |---|---|
//! | 0 | `b"cuptop+\n"` |
//! | 8 | u32 version of the kind's format |
//! | 12 | u32 length of this header: 64 |
//! | 16 | u32 process id; 0 for what is of the whole machine |
//! | 20 | u32 flags: 1 the writer holds `flock` on the file as long as it lives |
//! | 24 | i64 START: nanoseconds of `CLOCK_REALTIME` when the file was begun |
//! | 32 | 16 bytes KIND, filled up with zeros |
//! | 60 | u32 CRC-32 of the 60 bytes before it |
//!
//! A block:
//!
//! | at | what |
//! |---|---|
//! | 0 | `b"+blk"` |
//! | 4 | u32 bytes of payload, 1 to 1 MiB |
//! | 8 | u32 CRC-32 of the payload |
//! | 12 | u32 CRC-32 of the 12 bytes before it |
//! | 16 | the payload, then zeros up to the next multiple of 16 |
//!
//! A block counts when it is there to its last byte. A reader that meets bytes that are no block goes on at the next
//! multiple of 16 that is one, and counts what it skipped.

mod reader;
mod writer;

pub use reader::{Damage, OpenError, Reader};
pub use writer::Writer;

const MAGIC: [u8; 8] = *b"cuptop+\n";
/// Length of the header.
const HEADER: usize = 64;
const BLOCK: [u8; 4] = *b"+blk";
/// Blocks begin at multiples of this, and this long is what stands before a payload.
const HEAD: usize = 16;
/// The longest payload of a block, in bytes.
pub const LONGEST: usize = 1 << 20;
/// The longest name of a kind, in bytes.
const KIND: usize = 16;

/// What a file's header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it holds ("stacks"): lower case letters, at most 16, also the end of the file's name.
    pub kind: String,
    /// The version of that kind's format.
    pub version: u32,
    /// The process that it is about; 0 for the whole machine.
    pub pid: u32,
    /// When it was begun, in nanoseconds of `CLOCK_REALTIME`.
    pub start: i64,
    /// Whether its writer holds a lock on it as long as it lives.
    locked: bool,
}

/// Whether this can be the name of a kind.
fn is_kind(kind: &str) -> bool {
    (1..=KIND).contains(&kind.len()) && kind.bytes().all(|byte| byte.is_ascii_lowercase())
}

impl Header {
    fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        put(&mut bytes, 8, self.version);
        put(&mut bytes, 12, HEADER as u32);
        put(&mut bytes, 16, self.pid);
        put(&mut bytes, 20, u32::from(self.locked));
        bytes[24..32].copy_from_slice(&self.start.to_le_bytes());
        bytes[32..32 + self.kind.len()].copy_from_slice(self.kind.as_bytes());
        let sum = crc32fast::hash(&bytes[..60]);
        put(&mut bytes, 60, sum);
        bytes
    }

    /// `None` for what no writer writes.
    fn decode(bytes: &[u8; HEADER]) -> Option<Header> {
        let is_sound = bytes[..8] == MAGIC
            && get(bytes, 60)? == crc32fast::hash(&bytes[..60])
            && get(bytes, 12)? == HEADER as u32;
        let kind = std::str::from_utf8(&bytes[32..32 + KIND]).ok()?;
        let kind = kind.trim_end_matches('\0').to_owned();
        (is_sound && is_kind(&kind)).then_some(Header {
            kind,
            version: get(bytes, 8)?,
            pid: get(bytes, 16)?,
            start: i64::from_le_bytes(*bytes[24..].first_chunk()?),
            locked: get(bytes, 20)? & 1 != 0,
        })
    }
}

/// What stands before a payload.
fn head(payload: &[u8]) -> [u8; HEAD] {
    let mut bytes = [0; HEAD];
    bytes[..4].copy_from_slice(&BLOCK);
    // At most LONGEST.
    put(&mut bytes, 4, payload.len() as u32);
    put(&mut bytes, 8, crc32fast::hash(payload));
    let sum = crc32fast::hash(&bytes[..12]);
    put(&mut bytes, 12, sum);
    bytes
}

/// The length and the checksum of the payload of a block that begins so; `None` when none does.
fn payload_of(bytes: &[u8]) -> Option<(usize, u32)> {
    let bytes = bytes.first_chunk::<HEAD>()?;
    let length = get(bytes, 4)? as usize;
    let is_sound = bytes[..4] == BLOCK
        && get(bytes, 12)? == crc32fast::hash(&bytes[..12])
        && (1..=LONGEST).contains(&length);
    Some((length, get(bytes, 8)?)).filter(|_| is_sound)
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn get(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
