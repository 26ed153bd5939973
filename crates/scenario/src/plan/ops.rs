//! What operations mean, defined once for the runner, the simulator, the checks and the reports.

use super::{
    Arg, CopySpec, HostMemory, HostWork, MemRef, Op, OpKind, StreamId, SyncTarget, VariantPlan,
};
use activity::stats;
use activity::{Direction, units};

/// Which side of a buffer. Managed memory has the device's side alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Device memory.
    Device,
    /// Host memory.
    Host,
}

/// Memory that an operation uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Where it begins.
    pub at: MemRef,
    /// How much.
    pub bytes: u64,
    /// Which side of the buffer.
    pub side: Side,
    /// Whether it writes. A kernel may write through any pointer that it gets.
    pub writes: bool,
    /// Which argument of a kernel it is; the kernel's signature may say that it is only read through.
    pub arg: Option<usize>,
}

/// One call of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyPiece {
    /// Read from.
    pub from: MemRef,
    /// Written to.
    pub to: MemRef,
    /// Bytes of this piece.
    pub bytes: u64,
}

/// The calls of a copy, in order.
#[derive(Clone, Copy, Debug)]
pub struct Pieces {
    rest: CopyPiece,
    /// Bytes of a piece, at least 1.
    size: u64,
}

impl Iterator for Pieces {
    type Item = CopyPiece;

    #[inline]
    fn next(&mut self) -> Option<CopyPiece> {
        let bytes = self.size.min(self.rest.bytes);
        if bytes == 0 {
            return None;
        }
        let piece = CopyPiece { bytes, ..self.rest };
        self.rest.from.offset += bytes;
        self.rest.to.offset += bytes;
        self.rest.bytes -= bytes;
        Some(piece)
    }
}

impl Pieces {
    /// How many are left.
    pub fn left(&self) -> u64 {
        self.rest.bytes.div_ceil(self.size)
    }
}

/// Half of the interval in which the median lies with 95 % confidence, as a share of the median; `None` below six
/// times, which tell of no such interval.
pub fn half_interval(times: &[f64]) -> Option<f64> {
    let (low, high) = stats::median_interval(times)?;
    let median = stats::median(times).filter(|it| *it > 0.0)?;
    Some((high - low) / 2.0 / median)
}

impl VariantPlan {
    /// Whether measured passes that took so long tell as much as is asked.
    pub fn is_enough(&self, times: &[f64]) -> bool {
        let asked = self.until.zip(half_interval(times));
        asked.is_some_and(|(until, half)| half < until)
    }

    /// What one pass runs, in program order: a launch of a graph is what the graph holds.
    pub fn operations(&self) -> impl Iterator<Item = &Op> {
        self.unrolled(&self.ops)
    }

    /// As [`Self::operations`], of some of a pass's operations.
    pub fn unrolled<'a>(&'a self, ops: &'a [Op]) -> impl Iterator<Item = &'a Op> {
        ops.iter().flat_map(|op| match op.kind {
            OpKind::GraphLaunch { graph, .. } => self.graphs[graph].ops.as_slice(),
            _ => std::slice::from_ref(op),
        })
    }

    /// Every operation that the plan holds, once: those of a pass, then those of the graphs, launched
    /// or not.
    pub fn listed(&self) -> impl Iterator<Item = &Op> {
        let graphs = self.graphs.iter().flat_map(|graph| &graph.ops);
        self.ops.iter().chain(graphs)
    }
}

impl OpKind {
    /// The calls of a copy; nothing for other operations.
    #[inline]
    pub fn pieces(&self) -> Pieces {
        let (from, to, bytes, chunk) = match *self {
            OpKind::Copy(it) => (it.from, it.to, it.bytes, it.chunk),
            _ => Default::default(),
        };
        Pieces {
            rest: CopyPiece { from, to, bytes },
            size: if chunk == 0 { bytes.max(1) } else { chunk },
        }
    }

    /// The stream that it is put on; `None` for what the host does.
    pub fn stream(&self) -> Option<StreamId> {
        match *self {
            OpKind::Copy(CopySpec { stream, .. })
            | OpKind::Memset { stream, .. }
            | OpKind::Launch { stream, .. }
            | OpKind::Record { stream, .. }
            | OpKind::Wait { stream, .. }
            | OpKind::GraphLaunch { stream, .. } => Some(stream),
            OpKind::Alloc { stream, .. } | OpKind::Free { stream, .. } => stream,
            OpKind::Sync(_)
            | OpKind::Capture { .. }
            | OpKind::Host(_)
            | OpKind::RangeBegin(_)
            | OpKind::RangeEnd => None,
        }
    }

    /// The driver's function that does it; `None` where there is not just one.
    pub fn driver_call(&self) -> Option<&'static str> {
        Some(match *self {
            OpKind::Copy(it) => copy_call(it.direction, it.is_async),
            OpKind::Memset { .. } => "cuMemsetD8Async",
            OpKind::Launch { .. } => "cuLaunchKernel",
            OpKind::Record { .. } => "cuEventRecord",
            OpKind::Wait { .. } => "cuStreamWaitEvent",
            OpKind::Sync(SyncTarget::Stream(_)) => "cuStreamSynchronize",
            OpKind::Sync(SyncTarget::Event(_)) => "cuEventSynchronize",
            OpKind::Sync(SyncTarget::Device(_)) => "cuCtxSynchronize",
            OpKind::Alloc { stream: None, .. } => "cuMemAlloc",
            OpKind::Free { stream: None, .. } => "cuMemFree",
            OpKind::Alloc { .. } => "cuMemAllocAsync",
            OpKind::Free { .. } => "cuMemFreeAsync",
            OpKind::GraphLaunch { .. } => "cuGraphLaunch",
            OpKind::Capture { .. } | OpKind::Host(_) | OpKind::RangeBegin(_) | OpKind::RangeEnd => {
                return None;
            }
        })
    }

    /// Whether the call returns only when what it puts on a stream is done, as [`copy_waits`] has it.
    pub fn waits_for_itself(&self, plan: &VariantPlan) -> bool {
        match *self {
            OpKind::Copy(it) => {
                let is_pageable = plan.buffers[it.from.buffer].host == HostMemory::Pageable;
                copy_waits(it.direction, it.is_async, is_pageable)
            }
            _ => false,
        }
    }

    /// Calls `touch` with the memory that it uses, what is read first. Graphs touch what they hold.
    pub fn touches(&self, plan: &VariantPlan, mut touch: impl FnMut(Touch)) {
        let whole = |buffer| MemRef { buffer, offset: 0 };
        let mut uses = |at: MemRef, bytes, side, writes, arg| {
            let is_managed = plan.buffers[at.buffer].host == HostMemory::Managed;
            let side = if is_managed { Side::Device } else { side };
            touch(Touch {
                at,
                bytes,
                side,
                writes,
                arg,
            });
        };
        match *self {
            OpKind::Copy(it) => {
                let (read, written) = match it.direction {
                    Direction::H2D => (Side::Host, Side::Device),
                    Direction::D2H => (Side::Device, Side::Host),
                    _ => (Side::Device, Side::Device),
                };
                uses(it.from, it.bytes, read, false, None);
                uses(it.to, it.bytes, written, true, None);
            }
            OpKind::Memset { to, bytes, .. } => uses(to, bytes, Side::Device, true, None),
            OpKind::Launch { launch, .. } => {
                for (number, arg) in plan.launches[launch].args.iter().enumerate() {
                    if let Arg::Device(at) = *arg {
                        let bytes = plan.buffers[at.buffer].bytes.saturating_sub(at.offset);
                        uses(at, bytes, Side::Device, true, Some(number));
                    }
                }
            }
            OpKind::Alloc { buffer, .. } | OpKind::Free { buffer, .. } => {
                let bytes = plan.buffers[buffer].bytes;
                uses(whole(buffer), bytes, Side::Device, true, None);
            }
            OpKind::Host(HostWork::Sum(at, bytes)) => uses(at, bytes, Side::Host, false, None),
            OpKind::Host(HostWork::Sin(at, bytes)) => uses(at, bytes, Side::Host, true, None),
            OpKind::Host(HostWork::Matmul(a, b, c, n)) => {
                let bytes = u64::from(n) * u64::from(n) * 4;
                for (buffer, writes) in [(a, false), (b, false), (c, true)] {
                    uses(whole(buffer), bytes, Side::Host, writes, None);
                }
            }
            OpKind::Host(HostWork::Busy(_))
            | OpKind::Record { .. }
            | OpKind::Wait { .. }
            | OpKind::Sync(_)
            | OpKind::Capture { .. }
            | OpKind::GraphLaunch { .. }
            | OpKind::RangeBegin(_)
            | OpKind::RangeEnd => {}
        }
    }

    /// What it does, in the words of the scenario and of CUDA: "launching kernel `k` on stream `s`".
    pub fn describe(&self, plan: &VariantPlan) -> String {
        let name = |id: usize| plan.buffers[id].name.as_str();
        let what = match *self {
            OpKind::Launch { launch, .. } => {
                let kernel = &plan.kernels[plan.launches[launch].kernel];
                format!("launching kernel `{}`", kernel.name)
            }
            OpKind::Copy(it) => {
                let direction = match it.direction {
                    Direction::Other => "host to host",
                    named => named.label(),
                };
                let (bytes, from) = (units::bytes(it.bytes), name(it.from.buffer));
                format!("copying {bytes} {direction} from `{from}`")
            }
            OpKind::Memset { to, .. } => format!("memset of `{}`", name(to.buffer)),
            OpKind::Record { event, .. } => format!("recording event `{}`", plan.events[event]),
            OpKind::Wait { event, stream } => {
                let stream = &plan.streams[stream].name;
                return format!(
                    "making stream `{stream}` wait for event `{}`",
                    plan.events[event]
                );
            }
            OpKind::Sync(SyncTarget::Stream(s)) => {
                format!("waiting for stream `{}`", plan.streams[s].name)
            }
            OpKind::Sync(SyncTarget::Event(e)) => format!("waiting for event `{}`", plan.events[e]),
            OpKind::Sync(SyncTarget::Device(d)) => format!("waiting for device {d}"),
            OpKind::Alloc { buffer, .. } => {
                let bytes = units::bytes(plan.buffers[buffer].bytes);
                return format!("allocating {bytes} for `{}`", name(buffer));
            }
            OpKind::Free { buffer, .. } => return format!("freeing `{}`", name(buffer)),
            OpKind::Capture { graph, stream } => {
                let (graph, stream) = (&plan.graphs[graph].name, &plan.streams[stream].name);
                return format!("capturing graph `{graph}` on stream `{stream}`");
            }
            OpKind::GraphLaunch { graph, .. } => {
                format!("launching graph `{}`", plan.graphs[graph].name)
            }
            OpKind::Host(_) => "host work".to_owned(),
            OpKind::RangeBegin(_) | OpKind::RangeEnd => "a phase".to_owned(),
        };
        match self.stream() {
            Some(stream) => format!("{what} on stream `{}`", plan.streams[stream].name),
            None => what,
        }
    }
}

/// Whether a copy's call returns only when the copy is done. Synchronous copies from or to the host do. Those from
/// pageable memory do not: the driver takes the data and returns.
pub fn copy_waits(direction: Direction, is_async: bool, is_from_pageable: bool) -> bool {
    let is_taken_at_once = direction == Direction::H2D && is_from_pageable;
    !is_async && matches!(direction, Direction::H2D | Direction::D2H) && !is_taken_at_once
}

/// The driver's function for a copy.
pub fn copy_call(direction: Direction, is_async: bool) -> &'static str {
    match (direction, is_async) {
        (Direction::H2D, true) => "cuMemcpyHtoDAsync",
        (Direction::H2D, false) => "cuMemcpyHtoD",
        (Direction::D2H, true) => "cuMemcpyDtoHAsync",
        (Direction::D2H, false) => "cuMemcpyDtoH",
        (Direction::D2D, true) => "cuMemcpyDtoDAsync",
        (Direction::D2D, false) => "cuMemcpyDtoD",
        (Direction::P2P, true) => "cuMemcpyPeerAsync",
        (Direction::P2P, false) => "cuMemcpyPeer",
        (Direction::Other, true) => "cuMemcpyAsync",
        (Direction::Other, false) => "cuMemcpy",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::GraphSpec;

    fn copy(bytes: u64, chunk: u64) -> OpKind {
        let at = |buffer, offset| MemRef { buffer, offset };
        OpKind::Copy(CopySpec {
            direction: Direction::H2D,
            from: at(0, 5),
            to: at(1, 7),
            bytes,
            chunk,
            stream: 0,
            is_async: true,
        })
    }

    #[test]
    fn a_copy_is_cut_into_pieces_and_the_last_one_is_what_is_left() {
        let pieces: Vec<_> = copy(100, 30)
            .pieces()
            .map(|piece| (piece.from.offset, piece.to.offset, piece.bytes))
            .collect();
        let expected = [(5, 7, 30), (35, 37, 30), (65, 67, 30), (95, 97, 10)];
        assert_eq!(pieces, expected);
        for (bytes, chunk, count) in [(100, 30, 4), (90, 30, 3), (5, 0, 1), (0, 0, 0), (0, 4, 0)] {
            assert_eq!(copy(bytes, chunk).pieces().left(), count);
            assert_eq!(copy(bytes, chunk).pieces().count() as u64, count);
        }
        assert_eq!(OpKind::RangeEnd.pieces().left(), 0);
    }

    #[test]
    fn a_launch_of_a_graph_is_what_it_holds() {
        let op = |kind| Op { kind, site: 0 };
        let (graph, stream) = (0, 0);
        let launch = |launch| op(OpKind::Launch { launch, stream });
        let plan = VariantPlan {
            graphs: vec![GraphSpec {
                name: "g".to_owned(),
                ops: vec![launch(7), launch(8)],
            }],
            ops: vec![
                op(OpKind::Capture { graph, stream }),
                op(OpKind::GraphLaunch { graph, stream }),
                launch(1),
                op(OpKind::GraphLaunch { graph, stream }),
            ],
            ..VariantPlan::default()
        };
        let launches = |ops: Vec<&Op>| -> Vec<usize> {
            ops.iter()
                .filter_map(|op| match op.kind {
                    OpKind::Launch { launch, .. } => Some(launch),
                    _ => None,
                })
                .collect()
        };
        assert_eq!(launches(plan.operations().collect()), [7, 8, 1, 7, 8]);
        assert_eq!(launches(plan.listed().collect()), [1, 7, 8]);
        assert_eq!(plan.listed().count(), 6);
    }

    /// By hand: of n fair coins at most k are heads with (1 + n + …) / 2^n, of which 2.5 % may be left out at each end.
    /// At most 1 of 8: 9 / 256 = 3.5 %; 1 of 9: 2.0 %; 2 of 10: 56 / 1024 = 5.5 %; 2 of 12: 79 / 4096 = 1.9 %.
    #[test]
    fn repeats_are_enough_when_half_of_the_medians_interval_is_below_what_is_asked() {
        let asked = |until| VariantPlan {
            until: Some(until),
            ..VariantPlan::default()
        };
        // Half of 98 to 102 is 2 % of 100.
        let inner = [98.0, 102.0, 99.0, 101.0, 100.0, 100.0, 100.0, 100.0];
        let cases = [
            (6, 0, true),
            (6, 1, false),
            (7, 1, true),
            (6, 2, false),
            (8, 2, true),
        ];
        for (count, outside, is_enough) in cases {
            let (low, high) = (vec![10.0; outside], vec![900.0; outside]);
            let times = [low, inner[..count].to_vec(), high].concat();
            assert_eq!(asked(0.021).is_enough(&times), is_enough, "{times:?}");
            assert!(!asked(0.02).is_enough(&times));
        }
        assert!(!asked(0.9).is_enough(&inner[..5]), "no interval");
        assert!(!VariantPlan::default().is_enough(&inner));
    }
}
