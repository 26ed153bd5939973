//! Entries: what a recording is made of after its header, and their bytes.
//!
//! Records (tags 1 to 63) are one unit of 64 bytes and begin alike:
//! tag u8@0, units u16@2, correlation u32@4, start i64@8, end i64@16. Then:
//!
//! | tag | record | fields |
//! |---|---|---|
//! | 1 | kernel | place@24, shape u32@36, graph u32@40, channel u32@44, node u64@48 |
//! | 2 | copy | place@24, peer u32@36, graph u32@40, channel u32@44, bytes u64@48, direction u8@56, from u8@57, to u8@58, asynchronous u8@59 |
//! | 3 | memset | place@24, graph u32@40, channel u32@44, bytes u64@48 |
//! | 4 | host call | thread u32@24, name u32@28, code i32@32 |
//! | 5 | synchronisation | kind u8@24, context u32@28, stream u32@32, event u32@36 (0xffffffff: does not apply) |
//! | 6 | overhead | thread u32@24, name u32@28 |
//! | 7 | memory | place@24, address u64@40, bytes u64@48, action u8@56 (0 alloc, 1 free), kind u8@57, asynchronous u8@59 |
//! | 8 | event | place@24, event u32@36 |
//! | 9 | range | thread u32@24, name u32@28, index u32@32, kind u8@36 |
//!
//! `place` is device u32, context u32, stream u32. Directions: 0 H2D, 1 D2H, 2 D2D, 3 P2P, 4 other. Memory kinds: 0 unknown,
//! 1 pageable, 2 pinned, 3 device, 4 array, 5 managed. Synchronisations: 0 event, 1 stream waits for event, 2 stream, 3 context.
//! Ranges: 0 variant, 1 warm-up, 2 repeat, 3 phase, 4 NVTX.
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
//! | 69 | process | pid u32@4, length of command u32@8, of versions u32@12, rank u32@16 and local rank u32@20 (0xffffffff none), command@24, versions |
//! | 70 | notice | warning u8@4, length u32@8, text@16 |

/// Where an operation ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Device ordinal.
    pub device: u32,
    /// Context.
    pub context: u32,
    /// Stream.
    pub stream: u32,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// First nanosecond.
    pub start: i64,
    /// First nanosecond after it; equal to `start` for an instant.
    pub end: i64,
    /// Joins an operation with its host call; 0 for none.
    pub correlation: u32,
    /// What it was.
    pub body: Body,
}

/// What happened. Small numbers are those of the module's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the module's table says what each field is
pub enum Body {
    Kernel {
        place: Place,
        shape: u32,
        graph: u32,
        channel: u32,
        node: u64,
    },
    Copy {
        place: Place,
        peer: u32,
        graph: u32,
        channel: u32,
        bytes: u64,
        direction: u8,
        from: u8,
        to: u8,
        is_async: bool,
    },
    Memset {
        place: Place,
        graph: u32,
        channel: u32,
        bytes: u64,
    },
    Call {
        thread: u32,
        name: u32,
        code: i32,
    },
    Sync {
        kind: u8,
        context: u32,
        stream: u32,
        event: u32,
    },
    Overhead {
        thread: u32,
        name: u32,
    },
    Memory {
        place: Place,
        address: u64,
        bytes: u64,
        action: u8,
        kind: u8,
        is_async: bool,
    },
    Event {
        place: Place,
        event: u32,
    },
    Range {
        thread: u32,
        name: u32,
        index: u32,
        kind: u8,
    },
}

/// A kernel's name and launch configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the module's table says what each field is
pub struct Shape {
    pub name: u32,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers: u32,
    pub static_shared: u32,
    pub dynamic_shared: u32,
    pub local: u32,
    pub cluster: [u32; 3],
}

/// A device. Zero means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the module's table says what each field is
pub struct Device<'a> {
    pub id: u32,
    pub name: &'a [u8],
    pub link: &'a [u8],
    pub capability: [u32; 2],
    pub multiprocessors: u32,
    pub clock_khz: u32,
    pub memory: u64,
    pub memory_bandwidth: u64,
    pub copy_engines: u32,
    pub max_warps_per_sm: u32,
    pub max_blocks_per_sm: u32,
    pub shared_per_sm: u32,
    pub registers_per_sm: u32,
    pub warp_size: u32,
    pub uuid: Option<[u8; 16]>,
}

/// A stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the module's table says what each field is
pub struct Stream<'a> {
    pub place: Place,
    pub priority: i32,
    pub is_default: bool,
    pub name: &'a [u8],
}

/// The process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the module's table says what each field is
pub struct Process<'a> {
    pub pid: u32,
    pub rank: Option<u32>,
    pub local_rank: Option<u32>,
    pub command: &'a [u8],
    pub versions: &'a [u8],
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// Something happened.
    Record(Record),
    /// A string and its id.
    Name(u32, &'a [u8]),
    /// A launch shape and its id.
    Shape(u32, Shape),
    /// A device.
    Device(Device<'a>),
    /// A stream.
    Stream(Stream<'a>),
    /// A host thread's id and name.
    Thread(u32, &'a [u8]),
    /// The process; may come again.
    Process(Process<'a>),
    /// Something the user should know; whether it is a warning.
    Notice(bool, &'a [u8]),
}

/// A number that does not apply.
pub(super) const NONE: u32 = u32::MAX;
/// Tags from here on are definitions.
pub(super) const DEFINITIONS: u8 = 64;
