//! Identifies a lane: of a stream, a thread, a kind of range, and so on.

use activity::{Place, RangeKind};

/// What a lane holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LaneKind {
    /// Operations of one stream of a device.
    Stream {
        /// The device: index into [`super::Trace::devices`].
        device: usize,
        /// The process's id of the context.
        context: u32,
        /// The process's id of the stream.
        stream: u32,
    },
    /// Ranges of one kind on one CPU thread: variants, repeats, phases, NVTX. CPU ops lie among NVTX ranges, as they
    /// nest in them.
    Range {
        /// Which kind.
        kind: RangeKind,
        thread: u32,
    },
    /// Calls of the CUDA API on one CPU thread.
    Thread {
        /// The operating system's id.
        thread: u32,
    },
    /// Time of the driver or the profiler itself.
    Overhead,
    /// Syncs: a CPU thread waits, or a stream is made to wait.
    Sync,
    /// Event records.
    Event,
    /// Allocations and frees on a device.
    Memory {
        /// The device: index into [`super::Trace::devices`].
        device: usize,
    },
}

impl LaneKind {
    /// The device of a stream.
    pub fn device(self) -> Option<usize> {
        match self {
            LaneKind::Stream { device, .. } => Some(device),
            _ => None,
        }
    }

    /// The kind of a lane's ranges.
    pub fn range_kind(self) -> Option<RangeKind> {
        match self {
            LaneKind::Range { kind, .. } => Some(kind),
            _ => None,
        }
    }
}

impl From<Place> for LaneKind {
    fn from(place: Place) -> LaneKind {
        LaneKind::Stream {
            device: place.device as usize,
            context: place.context,
            stream: place.stream,
        }
    }
}

/// Identifies a lane: what it holds, in which process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneKey {
    /// Index into [`super::Trace::processes`].
    pub process: usize,
    /// What it holds.
    pub kind: LaneKind,
}
