//! The GPU's side: operations with the edge that bound each.

use super::calls::reserve;
use super::kind::EdgeKind;
use super::{CallId, OpId};
use activity::{Direction, Ns, Span, What};
use trace::LaneId;

/// Which engine of a device an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Engine {
    /// The SMs: kernels, and graphs of which only the whole is recorded.
    Compute,
    /// The SMs or a copy engine: memsets.
    Memset,
    /// Host to device.
    H2D,
    /// Device to host.
    D2H,
    /// Within the device.
    D2D,
    /// To or from another device.
    P2P,
    /// A copy of unknown direction.
    Copy,
}

impl Engine {
    /// How many there are.
    pub const COUNT: usize = 7;

    /// The engine of an operation; `None` for anything else.
    pub fn of(what: &What) -> Option<Engine> {
        match what {
            What::Kernel(_) | What::Graph(_) => Some(Engine::Compute),
            What::Memset(_) => Some(Engine::Memset),
            What::Copy(copy) => Some(match copy.direction {
                Direction::H2D => Engine::H2D,
                Direction::D2H => Engine::D2H,
                Direction::D2D => Engine::D2D,
                Direction::P2P => Engine::P2P,
                Direction::Other => Engine::Copy,
            }),
            _ => None,
        }
    }

    /// Whether it is a copy engine.
    pub fn is_copy(self) -> bool {
        !matches!(self, Engine::Compute | Engine::Memset)
    }

    /// Whether copies on it run one after the other, whatever their streams.
    pub fn is_serial(self) -> bool {
        matches!(self, Engine::H2D | Engine::D2H | Engine::P2P)
    }

    /// The engine whose operations follow each other as quickly: kernels, memsets and copies within the device are
    /// launched alike. On an H100 a kernel follows a copy within the device after 1.2 us, as it does another kernel.
    /// What follows a copy to or from the CPU comes up to 9 us late.
    pub fn side(self) -> Engine {
        match self {
            Engine::Memset | Engine::D2D => Engine::Compute,
            other => other,
        }
    }

    /// What it is called.
    pub fn label(self) -> &'static str {
        match self {
            Engine::Compute | Engine::Memset => "SMs",
            Engine::H2D => "H2D copy engine",
            Engine::D2H => "D2H copy engine",
            Engine::D2D => "D2D copy engine",
            Engine::P2P => "P2P copy engine",
            Engine::Copy => "copy engine",
        }
    }
}

/// It is a node of a CUDA graph.
pub(super) const GRAPH: u8 = 1;
/// It is a copy of pageable memory, or one whose call was a synchronous one.
pub(super) const STAGED: u8 = 2;

/// Operations by start.
#[derive(Clone, Debug, Default)]
pub struct Ops {
    /// The lane of its stream.
    pub lane: Vec<u32>,
    /// Its row there.
    pub row: Vec<u32>,
    pub start: Vec<Ns>,
    pub end: Vec<Ns>,
    /// What it needs.
    pub engine: Vec<Engine>,
    /// [`GRAPH`], [`STAGED`].
    pub(super) flags: Vec<u8>,
    /// The call that it came from, or [`super::NONE`].
    pub call: Vec<CallId>,
    /// What kind of dependency bound its start.
    pub edge: Vec<EdgeKind>,
    /// What it depended on: a call for [`EdgeKind::Launch`], an operation for the others, or [`super::NONE`].
    pub bind: Vec<u32>,
    /// By lane: the first row that is here, and the operations from there on.
    pub(super) by_lane: Vec<(u32, Vec<OpId>)>,
    /// By device and engine: operations by start.
    pub(super) by_engine: Vec<[Vec<OpId>; Engine::COUNT]>,
    /// By device: operations by start.
    pub(super) by_device: Vec<Vec<OpId>>,
    /// By device: operations by end.
    pub(super) by_end: Vec<Vec<OpId>>,
}

impl Ops {
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// When an operation ran.
    pub fn span(&self, op: OpId) -> Span {
        Span {
            start: self.start[op as usize],
            end: self.end[op as usize],
        }
    }

    /// Where an operation stands on the timeline.
    pub fn place(&self, op: OpId) -> (LaneId, usize) {
        (
            self.lane[op as usize] as LaneId,
            self.row[op as usize] as usize,
        )
    }

    /// The operations of a device by start.
    pub fn of_device(&self, device: usize) -> &[OpId] {
        self.by_device.get(device).map_or(&[], Vec::as_slice)
    }

    /// The operations of a stream by start.
    pub fn of_lane(&self, lane: LaneId) -> &[OpId] {
        self.by_lane.get(lane).map_or(&[], |l| l.1.as_slice())
    }

    pub(super) fn at(&self, lane: LaneId, row: usize) -> Option<OpId> {
        let (first, list) = self.by_lane.get(lane)?;
        list.get(row.checked_sub(*first as usize)?).copied()
    }

    /// Whether an operation is a node of a CUDA graph.
    pub fn is_graph(&self, op: OpId) -> bool {
        self.flags[op as usize] & GRAPH != 0
    }

    /// Whether it is a copy that the driver may stage: of pageable memory, or by a synchronous call.
    pub fn is_staged(&self, op: OpId) -> bool {
        self.flags[op as usize] & STAGED != 0
    }

    /// The latest-ending operation of a device that ended no later than `time`.
    pub fn ended(&self, device: usize, time: Ns) -> impl Iterator<Item = OpId> + '_ {
        let list = self.by_end.get(device).map_or(&[][..], Vec::as_slice);
        let to = list.partition_point(|&op| self.end[op as usize] <= time);
        list[..to].iter().rev().copied()
    }

    /// Makes room for so many more.
    pub(super) fn reserve(&mut self, more: usize) {
        reserve!(
            self, more, lane, row, start, end, engine, flags, call, edge, bind
        );
    }

    pub(super) fn memory(&self) -> usize {
        self.len() * (4 * 4 + 2 * 8 + 3 + 4 * 4)
    }
}
