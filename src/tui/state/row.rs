//! A line of the timeline: what it shows, and its name.

use activity::{Direction, Metric};
use trace::LaneId;

/// One line of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub kind: RowKind,
    /// Its name, for the gutter.
    pub label: String,
}

impl Row {
    pub fn new(kind: RowKind, label: impl Into<String>) -> Row {
        let label = label.into();
        Row { kind, label }
    }
}

/// What a line of the timeline shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// A rule with a title: the next rows belong together. Cannot be selected.
    Title,
    /// How busy a device is, and why it is idle.
    Gpu(usize),
    /// GB/s of a direction of a device.
    Bandwidth(usize, Direction),
    /// How much the engines of a device overlap.
    Overlap(usize),
    /// Memory of a device in use.
    Memory(usize),
    /// A counter or a sensor of a device.
    Counter(usize, Metric),
    /// What stands for a group whose rows are folded, by a number made from its title.
    Folded(u64),
    Stream(LaneId),
    Thread(LaneId),
    /// Phases and NVTX ranges of a lane that lie this deep in others.
    Range(LaneId, usize),
    /// Time of the driver or the profiler itself.
    Overhead(LaneId),
    /// A stream as it is predicted: a lane of [`super::prediction::Prediction::trace`]. Cannot be looked into.
    Predicted(LaneId),
    /// What a cure leaves at the least, where no replay tells: [`super::prediction::Prediction::bound`]. Cannot be looked into.
    Bound,
}

impl RowKind {
    /// Whether it is no record's, but what a cure would make of them.
    pub fn is_predicted(self) -> bool {
        matches!(self, RowKind::Predicted(_) | RowKind::Bound)
    }
}

impl RowKind {
    /// The lane behind it.
    pub fn lane(self) -> Option<LaneId> {
        match self {
            RowKind::Stream(id)
            | RowKind::Thread(id)
            | RowKind::Range(id, _)
            | RowKind::Overhead(id) => Some(id),
            _ => None,
        }
    }

    /// The device whose use it shows, for rows that are not lanes.
    pub fn device(self) -> Option<usize> {
        match self {
            RowKind::Gpu(device)
            | RowKind::Bandwidth(device, _)
            | RowKind::Overlap(device)
            | RowKind::Memory(device)
            | RowKind::Counter(device, _) => Some(device),
            _ => None,
        }
    }
}
