//! What activities refer to.

use crate::{NameId, Ns, Place};

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
    /// The [`Collective`] that it is part of, as its source says, by number from 1; 0 for none. Recordings define it apart.
    pub collective: u32,
}

/// What a kernel of collective communication does, where the program that launched it says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Collective {
    /// The operation, in the program's own word: "allreduce", "_allgather_base".
    pub operation: String,
    /// The process group: its name, and the ranks in it as far as they are written down.
    pub group: String,
    /// Ranks in the group; 0 where unknown.
    pub size: u32,
    /// Elements that go in, and come out, on one rank.
    pub elements: [u64; 2],
    /// Type of the elements in words ("Float"); empty where unknown.
    pub element: String,
    /// The rank in the whole job to which a "send" goes, or from which a "recv" comes, where that is said.
    pub peer: Option<u32>,
}

/// What is known of a device. Zero means unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The ordinal that [`crate::Place::device`] uses.
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
    /// So many GPUs of this name the machine has, this one too, where the source says.
    pub alike: u32,
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

impl StreamInfo {
    /// The stream of a place, of which nothing is known.
    pub fn at(place: Place) -> StreamInfo {
        StreamInfo {
            device: place.device,
            context: place.context,
            stream: place.stream,
            ..StreamInfo::default()
        }
    }
}

/// What a process records from a moment on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// From when on, ns.
    pub from: Ns,
    /// Whether what it does is recorded; allocations, names and ranges are in either case.
    pub recording: bool,
    /// Whether what streams and threads wait for is recorded, too.
    pub waits: bool,
}

/// What is known of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessInfo {
    /// The operating system's id; 0 where unknown.
    pub pid: u32,
    /// The command line.
    pub command: String,
    /// Its rank in a distributed program, where its launcher says.
    pub rank: Option<u32>,
    /// LOCAL_RANK of a distributed program, where set.
    pub local_rank: Option<u32>,
    /// How many ranks the distributed program has, where known.
    pub world: Option<u32>,
    /// The name of the machine that it ran on; empty where unknown.
    pub host: String,
    /// Driver, CUPTI and CUDA versions in words, for the header and `doctor`.
    pub versions: String,
    /// Whether it ended in good order: `None` while it runs, `Some(false)` when it was killed or crashed.
    pub ended_well: Option<bool>,
    /// Whether its tensors were on a GPU, where an allocator says so of a process without any operation. No recording keeps it.
    pub has_tensors: Option<bool>,
}

impl ProcessInfo {
    /// Adds what else is known of the same process: what `more` does not say stays. Files beside a recording
    /// know less of it than the recording.
    pub fn add(&mut self, more: ProcessInfo) {
        fn text(old: &mut String, new: String) {
            if !new.is_empty() {
                *old = new;
            }
        }
        if more.pid != 0 {
            self.pid = more.pid;
        }
        text(&mut self.command, more.command);
        text(&mut self.host, more.host);
        text(&mut self.versions, more.versions);
        self.rank = more.rank.or(self.rank);
        self.local_rank = more.local_rank.or(self.local_rank);
        self.world = more.world.or(self.world);
        self.ended_well = more.ended_well.or(self.ended_well);
        self.has_tensors = more.has_tensors.or(self.has_tensors);
    }
}
