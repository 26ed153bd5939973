//! Entries: what a recording is made of, and their bytes. All numbers are little-endian.
//!
//! Byte 0 of an entry is its tag, bytes 2 to 3 its length in units of 64 bytes (1 to 1024). A reader skips tags
//! that it does not know by their length.
//!
//! Records (tags 1 to 63) are one unit and begin alike: tag u8@0, units u16@2, correlation u32@4, start i64@8,
//! end i64@16. The fields of each stand, with their offsets, in the one table that both writes and reads them
//! (`records.rs`). `place` is device u32, context u32, stream u32; enumerations are one byte, with the numbers that their
//! types give; `0xffffffff` in an optional number stands for none.
//!
//! Definitions (tags 64 and up) may be longer; their texts are bytes that need not be UTF-8:
//!
//! | tag | definition | fields |
//! |---|---|---|
//! | 64 | name | id u32@4, length u32@8, text@16 |
//! | 65 | shape | id u32@4, name u32@8, grid 3 x u32@12, block 3 x u32@24, registers u32@36, static shared u32@40, dynamic shared u32@44, local u32@48, cluster 3 x u32@52 |
//! | 66 | device | id u32@4, length of name u32@8, of link u32@12, capability 2 x u32@16, multiprocessors u32@24, clock kHz u32@28, memory u64@32, bandwidth B/s u64@40, copy engines u32@48, warps/SM u32@52, blocks/SM u32@56, shared/SM u32@60, registers/SM u32@64, warp u32@68, UUID 16 bytes@72 (zeros: unknown), name@88, link |
//! | 67 | stream | device u32@4, context u32@8, stream u32@12, priority i32@16, default u8@20, length u32@24, name@28 |
//! | 68 | thread | thread u32@4, length u32@8, name@16 |
//! | 69 | process | pid u32@4, length of command u32@8, of versions u32@12, rank u32@16 and local rank u32@20 (0xffffffff none), command@24, versions, then at once ranks of the world u32 (0 unknown), length of host u32, host |
//! | 70 | notice | warning u8@4, length u32@8, text@16 |
//! | 71 | mode | recording u8@4, waits u8@5, from i64@8 |
//! | 72 | collective | shape u32@4 whose kernels are one, length of operation u32@8, of group u32@12, of element type u32@16, ranks u32@20, elements in u64@24, out u64@32, operation@40, group, element type |
//!
//! Tag 96 begins a block of a recording's file; it is no entry of its own and never handed over.

mod definitions;
mod field;
mod long;
mod records;

pub use field::Field;
pub use long::{LONGEST_NAME, shortened};
pub use records::encode_record;

use crate::{
    Activity, Collective, DeviceInfo, LaunchShape, Mode, NameId, ProcessInfo, ShapeId, StreamInfo,
};

/// Entries lie at multiples of this.
pub const UNIT: usize = 64;
/// The longest entry.
pub const LONGEST: usize = 1024 * UNIT;
/// Tags from here on are definitions.
const DEFINITIONS: u8 = 64;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// Something happened.
    Record(Activity),
    /// A string and its id.
    Name(NameId, &'a [u8]),
    /// A launch shape and its id.
    Shape(ShapeId, LaunchShape),
    /// A device.
    Device(DeviceInfo),
    /// A stream.
    Stream(StreamInfo),
    /// A host thread's id and name.
    Thread(u32, &'a [u8]),
    /// The process; may come again. How it ended is not part of it.
    Process(ProcessInfo),
    /// What is recorded from a moment on.
    Mode(Mode),
    /// What the kernels of a shape, which was defined before it, do together with those of other processes.
    Collective(ShapeId, Collective),
    /// Something the user should know; whether it is a warning.
    Notice(bool, &'a [u8]),
}

/// Why the bytes of an entry cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// A record with a tag or a value of another time.
    UnknownRecord,
    /// A definition with a tag of another time.
    UnknownDefinition,
    /// Bytes that no writer writes.
    Damaged,
}

/// The length in bytes that an entry's first bytes claim; `None` when no entry can begin so.
#[inline]
#[must_use]
pub fn length(head: &[u8]) -> Option<usize> {
    let units = u16::from_le_bytes(head.get(2..4)?.try_into().ok()?);
    let length = usize::from(units) * UNIT;
    (head[0] != 0 && (UNIT..=LONGEST).contains(&length)).then_some(length)
}

/// Whether the bytes of an entry are a record's, known or not.
#[inline]
#[must_use]
pub fn is_record(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|tag| *tag < DEFINITIONS)
}

impl<'a> Entry<'a> {
    /// Appends the entry's bytes. Texts that are longer than an entry may be are cut off.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        match self {
            Entry::Record(record) => encode_record(record, bytes),
            definition => definitions::encode(definition, bytes),
        }
    }

    /// Reads the bytes of one entry, of the length that [`length`] gave.
    ///
    /// # Errors
    /// When they are not those of an entry that is known.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Entry<'a>, Unreadable> {
        match bytes.first_chunk::<UNIT>() {
            Some(unit) if unit[0] < DEFINITIONS => records::decode(unit).map(Entry::Record),
            Some(unit) => definitions::decode(unit[0], bytes),
            None => Err(Unreadable::Damaged),
        }
    }
}
