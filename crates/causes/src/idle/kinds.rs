//! The causes that there are, and the pieces of a gap that have one.

use crate::graph::{CallId, OpId};
use activity::{Ns, Span};
use serde::Serialize;
use trace::LaneId;

/// Why a piece of a gap is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cause {
    /// The host waited for the device.
    SyncDevice,
    /// The host waited for a stream.
    SyncStream,
    /// The host waited for an event.
    SyncEvent,
    /// The host was in a copy from host to device that returns when it is done.
    BlockingH2D,
    /// The host was in a copy from device to host that returns when it is done.
    BlockingD2H,
    /// The host was in another copy that returns when it is done.
    BlockingCopy,
    /// The host was staging a copy of pageable memory, in a call that may be named asynchronous.
    Staging,
    /// The host did something between two CUDA calls.
    Host,
    /// The host was at managed memory, of which a page came back before and behind.
    Pages,
    /// The host was launching other operations.
    Launching,
    /// The host was in a launch that took longer than launches do.
    SlowLaunch,
    /// The host was in a launch that waited for another thread's call.
    Lock,
    /// The host was in another CUDA call.
    Call,
    /// GPU code was loaded or compiled.
    Load,
    /// Memory was taken or given back.
    Memory,
    /// A graph was made ready, or brought to the device.
    GraphSetup,
    /// The launch waited for room in the stream's queue.
    QueueFull,
    /// The stream waited for an event of another stream.
    Event,
    /// Another stream's operation had the engine.
    Engine,
    /// The stream waited for another one: by the rules of the default stream, or as the times show.
    Stream,
    /// The stream ran a function of the program on the CPU.
    HostFunction,
    /// Another process had the GPU until then: they take turns.
    Process,
    /// Between two queued operations of one stream that need different engines.
    EngineChange,
    /// Between two queued operations.
    Queued,
    /// Launched, and started as late as launches do.
    Latency,
    /// The profiler spent the time on itself.
    Profiler,
    /// Operations ran whose records are missing.
    Missing,
    /// Launched, and nothing recorded held it back: it started late all the same.
    LateStart,
    /// Nothing shows why.
    Unknown,
}

/// What kept a device idle: the parts of a legend, and what verdicts and findings add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Group {
    /// The host did something else than launching.
    Host,
    /// The host was launching, or the launch on its way.
    Launch,
    /// The host waited for the device, or had to catch up after such a wait.
    Sync,
    /// Calls for memory and for code.
    SetUp,
    /// The device's own: its queues, its engines, data on their way to it.
    Queue,
    /// Another process had the device.
    Process,
    /// The profiler itself.
    Profiler,
    /// Nothing shows why.
    Unknown,
}

/// What bounds a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The host works between launches.
    Host,
    /// Launching itself does not keep up.
    Launch,
    /// The host waits for the device before it goes on.
    Sync,
    /// Copies with no kernel beside them.
    Copy,
    /// Kernels.
    Compute,
    /// Kernels that move as many bytes as the device's memory can.
    Memory,
    /// Another device: copies to and from it, and waiting for it, in collectives for late ranks too.
    Peer,
    /// Nothing takes a large part.
    #[default]
    Nothing,
    /// Nothing recorded says why the device was idle.
    Unknown,
}

impl Bound {
    /// Whether the GPU stands still for what the CPU does or waits for.
    pub fn is_stall(self) -> bool {
        matches!(self, Bound::Host | Bound::Launch | Bound::Sync)
    }
}

/// Idle time by group.
pub type Shares = [Ns; Group::ALL.len()];

const ANOTHER_PROCESS: &str = "another process";

impl Group {
    /// The groups with more than `least`, most first.
    pub fn most(shares: Shares, least: Ns) -> Vec<(Group, Ns)> {
        let mut groups: Vec<(Group, Ns)> = Group::ALL.into_iter().zip(shares).collect();
        groups.retain(|(_, ns)| *ns > least);
        groups.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        groups
    }

    /// All, in the order of the legend.
    pub const ALL: [Group; 8] = [
        Group::Host,
        Group::Launch,
        Group::Sync,
        Group::SetUp,
        Group::Queue,
        Group::Process,
        Group::Profiler,
        Group::Unknown,
    ];

    /// Its words in the legend, and what bounds a device that it keeps idle. Where that depends on the operation which
    /// waits, there is none.
    const fn row(self) -> (&'static str, Option<Bound>) {
        match self {
            Group::Host => ("CPU work", Some(Bound::Host)),
            Group::Launch => ("launching", Some(Bound::Launch)),
            Group::Sync => ("sync", Some(Bound::Sync)),
            Group::SetUp => ("memory and set-up", Some(Bound::Host)),
            Group::Queue => ("queues and copies", None),
            Group::Process => (ANOTHER_PROCESS, None),
            Group::Profiler => ("profiler", Some(Bound::Nothing)),
            Group::Unknown => ("unknown", Some(Bound::Unknown)),
        }
    }

    /// Its words in the legend.
    pub fn label(self) -> &'static str {
        self.row().0
    }

    /// What bounds a device that it keeps idle; `None` where that depends on the operation which waits.
    pub fn bound(self) -> Option<Bound> {
        self.row().1
    }
}

impl Cause {
    /// The table of causes: each in a few words, and its group. In short gaps and in graphs some are of another
    /// ([`Causes::group`](super::Causes::group)).
    const fn row(self) -> (&'static str, Group) {
        match self {
            Cause::SyncDevice => ("device sync", Group::Sync),
            Cause::SyncStream => ("stream sync", Group::Sync),
            Cause::SyncEvent => ("event sync", Group::Sync),
            Cause::BlockingH2D => ("blocking H2D copy", Group::Sync),
            Cause::BlockingD2H => ("blocking D2H copy", Group::Sync),
            Cause::BlockingCopy => ("blocking copy", Group::Sync),
            Cause::Staging => ("staging of a pageable copy", Group::Queue),
            Cause::Host => ("CPU work", Group::Host),
            Cause::Pages => ("CPU access to managed memory", Group::Host),
            Cause::Launching => ("launching", Group::Launch),
            Cause::SlowLaunch => ("slow launch call", Group::Launch),
            Cause::Lock => ("driver lock held by another thread", Group::Host),
            Cause::Call => ("other CUDA call", Group::Host),
            Cause::Load => ("loading GPU code", Group::SetUp),
            Cause::Memory => ("allocation or free", Group::SetUp),
            Cause::GraphSetup => ("preparing a CUDA graph", Group::Launch),
            Cause::QueueFull => ("launch queue full", Group::Launch),
            Cause::Event => ("waiting for another stream's event", Group::Queue),
            Cause::Engine => ("copy engine or SMs busy", Group::Queue),
            Cause::Stream => ("waiting for another stream", Group::Queue),
            Cause::HostFunction => ("function on the CPU in the stream", Group::Host),
            Cause::Process => (ANOTHER_PROCESS, Group::Process),
            Cause::EngineChange => ("hand-over between engines", Group::Queue),
            Cause::Queued => ("normal gap between operations", Group::Launch),
            Cause::Latency => ("launch latency", Group::Launch),
            Cause::Profiler => ("profiler overhead", Group::Profiler),
            Cause::Missing => ("missing records", Group::Unknown),
            Cause::LateStart => ("late start, no recorded reason", Group::Unknown),
            Cause::Unknown => ("unknown", Group::Unknown),
        }
    }

    /// In a few words.
    pub fn label(self) -> &'static str {
        self.row().0
    }

    /// What it is added up under.
    pub(super) fn group(self) -> Group {
        self.row().1
    }

    /// Whether the host waited for the GPU, in a call that is there to wait.
    pub fn is_sync(self) -> bool {
        matches!(
            self,
            Cause::SyncDevice | Cause::SyncStream | Cause::SyncEvent
        )
    }

    /// Whether the host waited for the GPU, in a call that is there to wait or in one that copies.
    pub fn is_wait(self) -> bool {
        self.group() == Group::Sync
    }
}

/// How sure a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Certainty {
    /// Records say it.
    Fact,
    /// Times alone show it.
    Likely,
    /// Nothing shows it.
    Unknown,
}

impl Certainty {
    /// Its word in reports.
    pub fn label(self) -> &'static str {
        match self {
            Certainty::Fact => "fact",
            Certainty::Likely => "likely",
            Certainty::Unknown => "unknown",
        }
    }
}

/// Which record is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Culprit {
    /// None.
    Nobody,
    /// A host call.
    Call(CallId),
    Op(OpId),
    /// A row of a lane (in 32 bits each, as millions are kept): a range on the host's thread, an overhead.
    Row(u32, u32),
}

impl Culprit {
    pub(super) fn row((lane, row): (LaneId, usize)) -> Culprit {
        Culprit::Row(lane as u32, row as u32)
    }
}

/// A piece of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub span: Span,
    pub cause: Cause,
    /// Which record shows it.
    pub culprit: Culprit,
    /// How sure that is.
    pub certainty: Certainty,
    /// The wait before it, if any, without which more could have been queued ahead.
    pub root: Option<CallId>,
}

/// A gap of a device or a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When nothing ran.
    pub span: Span,
    /// The operation that ended it.
    pub next: OpId,
}
