//! Batches: activities of one process, the definitions they refer to, and the losses so far.

use super::{Activity, NameId, Ns, ShapeId};

/// What one process sent, in the order in which it was collected.
///
/// A definition stands in a batch no later than the first activity that refers to it. Ids are local
/// to the process; the trace store maps them to its own.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Which process of the timeline sent it: an index that the source counts up from 0.
    pub process: u32,
    /// Names, launch shapes, devices, streams, threads.
    pub defs: Vec<Def>,
    /// What happened, by and large in order of end time. Order is not promised.
    pub items: Vec<Activity>,
    /// This process's counters so far (totals, not increments), when they changed.
    pub health: Option<Health>,
}

/// Something that activities refer to.
#[derive(Clone, Debug, PartialEq)]
pub enum Def {
    /// A string.
    Name {
        /// Its id in this process.
        id: NameId,
        /// The text, as the source had it: it may hold control characters and mangled symbols.
        text: String,
    },
    /// A kernel's name and launch configuration.
    Shape {
        /// Its id in this process.
        id: ShapeId,
        /// The configuration.
        shape: LaunchShape,
    },
    /// A device.
    Device(DeviceInfo),
    /// A stream.
    Stream(StreamInfo),
    /// A host thread's name.
    Thread {
        /// The operating system's id.
        thread: u32,
        /// Its name.
        name: String,
    },
    /// The process itself. May come again when more is known.
    Process(ProcessInfo),
}

/// A kernel's name and the configuration it was launched with. Launches repeat it, so it is defined once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// The kernel's (possibly mangled) name.
    pub name: NameId,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Registers a thread; 0 where unknown.
    pub registers: u32,
    /// Static shared memory of a block, in bytes.
    pub static_shared: u32,
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared: u32,
    /// Local memory of a thread, in bytes.
    pub local: u32,
    /// Blocks of a cluster in x, y, z; zeros when clusters were not used.
    pub cluster: [u32; 3],
}

/// What is known of a device. Zero means unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The ordinal that [`super::Place::device`] uses.
    pub id: u32,
    /// The physical device's id, which tells apart devices that two processes both call 0.
    pub uuid: Option<[u8; 16]>,
    /// "NVIDIA H200".
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Device memory in bytes.
    pub memory: u64,
    /// Peak device memory bandwidth in bytes per second, as the driver gives it.
    pub memory_bandwidth: u64,
    /// Peak SM clock in kHz.
    pub clock_khz: u32,
    /// Copy engines.
    pub copy_engines: u32,
    /// Limits that occupancy is reckoned from.
    pub max_warps_per_sm: u32,
    /// Resident blocks of an SM.
    pub max_blocks_per_sm: u32,
    /// Shared memory of an SM in bytes.
    pub shared_per_sm: u32,
    /// Registers of an SM.
    pub registers_per_sm: u32,
    /// Threads of a warp.
    pub warp_size: u32,
    /// How it is attached ("PCIe 5.0 x16"), where known.
    pub link: String,
}

/// What is known of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamInfo {
    /// The device that it runs on.
    pub device: u32,
    /// Its context.
    pub context: u32,
    /// Its id within the context.
    pub stream: u32,
    /// The name that the program (or the scenario) gave it; empty when none.
    pub name: String,
    /// CUDA's priority; lower numbers go first.
    pub priority: i32,
    /// Whether it is the context's default stream.
    pub is_default: bool,
}

/// What is known of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessInfo {
    /// The operating system's id; 0 where unknown.
    pub pid: u32,
    /// The command line.
    pub command: String,
    /// RANK of a distributed program, where set.
    pub rank: Option<u32>,
    /// Driver, CUPTI and CUDA versions in words, for the header and `doctor`.
    pub versions: String,
    /// Whether it ended in good order: `None` while it runs, `Some(false)` when it was killed or crashed.
    pub ended_well: Option<bool>,
}

/// What was received and what was not. Every count is a total since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Records that arrived, the rejected ones included.
    pub received: u64,
    /// Records that the collecting library said it dropped.
    pub dropped: u64,
    /// Records that could not be written or read (disk full, damaged, over a size limit).
    pub lost: u64,
    /// Rejected: start or end time zero.
    pub no_timestamp: u64,
    /// Rejected: ended before it started.
    pub end_before_start: u64,
    /// Rejected: a time outside the session (a broken clock).
    pub bad_clock: u64,
    /// Records of a kind this program does not know, skipped whole.
    pub unknown: u64,
    /// The start of the oldest operation known to be unfinished, when the source can tell: records of
    /// its buffer are withheld until it ends.
    pub oldest_open: Option<Ns>,
}

impl Health {
    /// Everything that was collected and is not on the timeline.
    #[must_use]
    pub fn losses(&self) -> u64 {
        self.dropped + self.lost + self.rejected() + self.unknown
    }

    /// Records that arrived and were not believable.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.no_timestamp + self.end_before_start + self.bad_clock
    }

    /// Adds another process's counters.
    pub fn add(&mut self, other: &Health) {
        self.received += other.received;
        self.dropped += other.dropped;
        self.lost += other.lost;
        self.no_timestamp += other.no_timestamp;
        self.end_before_start += other.end_before_start;
        self.bad_clock += other.bad_clock;
        self.unknown += other.unknown;
        self.oldest_open = match (self.oldest_open, other.oldest_open) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}
