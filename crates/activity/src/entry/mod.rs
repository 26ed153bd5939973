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
//! Records of what others saw of the process or its machine (tags 32 to 63; start i64@8, end i64@16):
//!
//! | tag | seen | fields |
//! |---|---|---|
//! | 32 | look at the stacks of all threads | length u32@4, then from 24 on what is different from the look before: each thread u32, 2 x stack + 1 when it was running u32 (a stack of 0: the thread is gone). The first look of a block names all threads |
//! | 33 | reading of a GPU | length u32@4, UUID@24, NVML's clock event reasons u64@40, then from 48 on each metric u8, value f32 |
//! | 37 | sample of a GPU's counters | as 33 |
//! | 34 | thread on and off its processors | thread u32@4, ns on a core i64@24, ns ready with no core free i64@32 |
//! | 35 | control group | periods u64@24, throttled periods u64@32, ns throttled i64@40, cores that it may use f64@48 (0 unknown) |
//! | 36 | processes on a GPU | length u32@4, UUID@24, then from 40 on each pid u32, whose u8 (0 the program's, 1 another's, 2 unknown), bytes u64 (all ones: unknown), name |
//!
//! and without (a text in a list is its length u8 and UTF-8):
//!
//! | tag | definition | fields |
//! |---|---|---|
//! | 80 | frame | id u32@4, line u32@8, length of file u32@12, of function u32@16, file@20, function |
//! | 81 | stack | id u32@4, caller's stack u32@8 (0 none), frame u32@12 |
//! | 82 | sampling, totals | aimed-at looks a second u32@4, torn looks u64@8, lost looks u64@16, ns of one core that looking took u64@24 |
//! | 83 | GPU | number in NVML's order u32@4, length u32@8, UUID@16, name@32 |
//! | 84 | limits of a GPU | tells slowdowns u8@4, lengths u32@8 and u32@12, UUID@16, then from 32 on each metric u8, the most that it reaches f64; then each metric u8, text why it is not there |
//! | 85 | why something is not there | about u8@4: 0 the hardware, 1 the threads; length u32@8, text@16 |
//! | 86 | what watching took so far | rounds u64@8, ns of a core u64@16, ns since its begin u64@24, windows lost u64@32 |
//! | 87 | what a kernel's warps waited for since the last time | line u32@4 (0 unknown), samples lost u64@8, length of kernel u32@16, of the list u32@20, kernel@24, then each samples u64, reason; then the line's file |
//! | 88 | who asked for nodes of graphs, or for launches | length u32@4, then from 8 on each node u64 (below 2^32: a launch's correlation), stack u32 (0: not known any more) |
//!
//! A new kind of these is a variant of [`Entry`] with its line in the table above and its bytes (`observed.rs`). One
//! with a time also stands in [`Entry::span`]. In `cuptop-recording` it is an arm of `map::entry_into` (into a field of
//! [`crate::Batch`]). Whoever sees it calls `Writer::add`. Older readers
//! skip it, and count it if it has a time.
//!
//! Tag 96 begins a block of a recording's file; it is no entry of its own and never handed over.

mod definitions;
mod field;
mod long;
mod observed;
mod records;

pub use field::{Field, Fields};
pub use long::{LONGEST_NAME, fingerprint, shortened};
pub use observed::{FRAME, STACK};
pub use records::encode_record;

use crate::{
    Activity, Collective, DeviceInfo, Hardware, LaunchShape, Mode, NameId, OffCpu, ProcessInfo,
    SampleDef, Sampling, ShapeId, Span, StackSample, StreamInfo,
};

/// Entries lie at multiples of this.
pub const UNIT: usize = 64;
/// The longest entry.
pub const LONGEST: usize = 1024 * UNIT;
/// Tags from here on are of what was seen from outside, up to the definitions.
const OBSERVED: u8 = 32;
/// Tags from here on are definitions, and from there on those of what was seen from outside.
const DEFINITIONS: u8 = 64;
const OBSERVED_DEFINITIONS: u8 = 80;

/// One entry.
#[derive(Clone, Debug, PartialEq)]
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
    /// A frame or a stack that looks refer to.
    SampleDef(SampleDef),
    /// A look at the stacks of a process.
    StackSample(StackSample),
    /// How a process is sampled so far. How many looks came of it is counted by who reads them.
    Sampling(Sampling),
    /// Something about the hardware.
    Hardware(Hardware),
    /// Something about the process's threads on their processors.
    OffCpu(OffCpu),
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
pub fn length(head: &[u8]) -> Option<usize> {
    let units = u16::from_le_bytes(head.get(2..4)?.try_into().ok()?);
    let length = usize::from(units) * UNIT;
    (head[0] != 0 && (UNIT..=LONGEST).contains(&length)).then_some(length)
}

/// Whether the bytes of an entry are a record's, known or not.
#[inline]
pub fn is_record(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|tag| *tag < DEFINITIONS)
}

impl<'a> Entry<'a> {
    /// Appends the entry's bytes. Texts that are longer than an entry may be are cut off.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        match self {
            Entry::Record(record) => encode_record(record, bytes),
            Entry::SampleDef(_)
            | Entry::StackSample(_)
            | Entry::Sampling(_)
            | Entry::Hardware(_)
            | Entry::OffCpu(_) => observed::encode(self, bytes),
            definition => definitions::encode(definition, bytes),
        }
    }

    /// When it happened or was seen: so of every record, and of no definition.
    pub fn span(&self) -> Option<Span> {
        match self {
            Entry::Record(record) => Some(record.span),
            Entry::StackSample(StackSample { time, .. })
            | Entry::Hardware(Hardware::Occupants { time, .. }) => Some(Span::at(*time)),
            Entry::Hardware(Hardware::Reading(it) | Hardware::Sample(it)) => Some(it.span),
            Entry::OffCpu(OffCpu::Thread(it)) => Some(it.span),
            Entry::OffCpu(OffCpu::Group(it)) => Some(it.span),
            _ => None,
        }
    }

    /// Reads the bytes of one entry, of the length that [`length`] gave.
    ///
    /// # Errors
    /// When they are not those of an entry that is known.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Entry<'a>, Unreadable> {
        match bytes.first_chunk::<UNIT>() {
            Some(unit) if unit[0] < OBSERVED => records::decode(unit).map(Entry::Record),
            Some(unit) if (DEFINITIONS..OBSERVED_DEFINITIONS).contains(&unit[0]) => {
                definitions::decode(unit[0], bytes)
            }
            Some(unit) => observed::decode(unit[0], bytes),
            None => Err(Unreadable::Damaged),
        }
    }
}
