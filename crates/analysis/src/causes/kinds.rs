//! The causes that there are, and the pieces of a gap that have one.

use crate::graph::{CallId, OpId};
use activity::Span;
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
    /// Nothing shows why.
    Unknown,
}

impl Cause {
    /// In a few words.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Cause::SyncDevice => "wait for the device",
            Cause::SyncStream => "wait for a stream",
            Cause::SyncEvent => "wait for an event",
            Cause::BlockingH2D => "blocking H2D copy",
            Cause::BlockingD2H => "blocking D2H copy",
            Cause::BlockingCopy => "blocking copy",
            Cause::Staging => "staging of a pageable copy",
            Cause::Host => "host work",
            Cause::Launching => "launching",
            Cause::SlowLaunch => "slow launch call",
            Cause::Lock => "lock of another thread's call",
            Cause::Call => "CUDA call",
            Cause::Load => "loading GPU code",
            Cause::Memory => "allocation or free",
            Cause::GraphSetup => "graph set-up",
            Cause::QueueFull => "queue full",
            Cause::Event => "event of another stream",
            Cause::Engine => "engine taken",
            Cause::Stream => "another stream",
            Cause::EngineChange => "change of engine",
            Cause::Queued => "between queued operations",
            Cause::Latency => "launch latency",
            Cause::Profiler => "profiler overhead",
            Cause::Missing => "records missing",
            Cause::Unknown => "unknown",
        }
    }

    /// Whether the host waited for the GPU, in a call that is there to wait.
    #[must_use]
    pub fn is_sync(self) -> bool {
        matches!(
            self,
            Cause::SyncDevice | Cause::SyncStream | Cause::SyncEvent
        )
    }

    /// Whether the host waited for the GPU, in a call that is there to wait or in one that copies.
    #[must_use]
    pub fn is_wait(self) -> bool {
        let is_blocking = matches!(
            self,
            Cause::BlockingH2D | Cause::BlockingD2H | Cause::BlockingCopy
        );
        self.is_sync() || is_blocking
    }

    /// Whether launches did not come fast enough: what graphs, fusing and larger batches are for.
    #[must_use]
    pub fn is_launching(self) -> bool {
        matches!(
            self,
            Cause::Host | Cause::Launching | Cause::Call | Cause::Latency
        )
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
    #[must_use]
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
    /// An operation.
    Op(OpId),
    /// A row of a lane: a range on the host's thread, an overhead.
    Row(LaneId, usize),
}

/// A piece of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// When.
    pub span: Span,
    /// Why.
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
