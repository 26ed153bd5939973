//! What the CPU says that a kernel does. An exchange among all ranks runs as a kernel of sends and receives. Before
//! NCCL 2.19 even an all-reduce may run under the name of another operation's kernel. PyTorch puts a range around its
//! calls of NCCL that names the operation ("nccl:all_to_all"), in its own traces and, under `emit_nvtx`, in others'.

use rustc_hash::FxHashMap;

use super::operation::Operation;
use activity::{NameId, RangeKind, What};
use trace::{LaneId, LaneKey, LaneKind, Trace};

/// What PyTorch's names of ranges around calls of NCCL begin with.
const PREFIX: &str = "nccl:";
/// So many ranges back from the innermost are looked at: NCCL's own lie in between.
const LEVELS: usize = 16;

/// The ranges that name operations, and the calls that lie in them.
pub(super) struct HostHints<'a> {
    trace: &'a Trace,
    /// Lanes of host calls, each with its thread, by process; empty where no range names an operation.
    calls: Vec<Vec<(LaneId, u32)>>,
    known: FxHashMap<NameId, Option<Operation>>,
}

impl<'a> HostHints<'a> {
    pub(super) fn of(trace: &'a Trace) -> HostHints<'a> {
        let names = trace.names();
        let is_any = (0..names.len()).any(|id| names.full(id as NameId).starts_with(PREFIX));
        let mut calls = Vec::new();
        if is_any {
            calls.resize(trace.processes().len(), Vec::new());
            for (id, lane, thread) in trace.threads() {
                if let Some(calls) = calls.get_mut(lane.key().process) {
                    calls.push((id, thread));
                }
            }
        }
        HostHints {
            trace,
            calls,
            known: FxHashMap::default(),
        }
    }

    /// The operation that a range around the launch of this kernel names, where one does.
    pub(super) fn operation(&mut self, process: usize, correlation: u32) -> Option<Operation> {
        let lanes = self.trace.lanes();
        let calls = self.calls.get(process)?.iter();
        let (thread, time) = calls.into_iter().find_map(|&(id, thread)| {
            let row = lanes[id].find_correlation(correlation)?;
            Some((thread, lanes[id].span(row).start))
        })?;
        let kind = LaneKind::Range {
            kind: RangeKind::Nvtx,
            thread,
        };
        let id = self.trace.lane_id(LaneKey { process, kind })?;
        let innermost = lanes[id].at(time)?;
        let around = (lanes[id].first_row()..=innermost)
            .rev()
            .take(LEVELS)
            .filter(|&row| lanes[id].span(row).end > time);
        for row in around {
            let What::Range(range) = self.trace.what(id, row) else {
                continue;
            };
            let names = self.trace.names();
            let operation = *self.known.entry(range.name).or_insert_with(|| {
                let name = names.full(range.name).strip_prefix(PREFIX)?;
                Some(Operation::of(name))
            });
            if operation.is_some() {
                return operation;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::testing::Scene;

    /// As PyTorch and NCCL 2.28 nest them; the second kernel is a send in a range of its own kind, the third in none.
    #[test]
    fn the_range_around_a_launch_names_the_operation() {
        let mut scene = Scene::new();
        scene.range(RangeKind::Nvtx, "forward", 0, 0, 100);
        scene.range(RangeKind::Nvtx, "nccl:all_to_all, op_id = 7", 0, 10, 40);
        scene.range(RangeKind::Nvtx, "ncclSend", 0, 12, 14);
        scene.range(RangeKind::Nvtx, "ncclGroupEnd", 0, 20, 38);
        scene.call("cudaLaunchKernelExC", 30, 35);
        scene.call("cudaLaunchKernelExC", 60, 65);
        scene.range(RangeKind::Nvtx, "nccl:send", 0, 58, 70);
        scene.call("cudaLaunchKernelExC", 80, 85);
        let trace = scene.trace();
        let mut said = HostHints::of(&trace);
        assert_eq!(said.operation(0, 1), Some(Operation::AllToAll));
        assert_eq!(said.operation(0, 2), Some(Operation::PointToPoint));
        assert_eq!(said.operation(0, 3), None);
        assert_eq!(said.operation(0, 9), None);
    }
}
