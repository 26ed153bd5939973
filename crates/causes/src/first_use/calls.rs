//! What single calls do or need: launches that load their kernel's code, and a context.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{kernel, making};
use crate::graph::{CallId, CallKind, Graph, NONE};
use activity::{NameId, Ns, What};
use trace::Trace;

/// Launches that took long and were the first of their kernel in the process: its code is loaded meanwhile. Only what came
/// before tells, so that an answer holds while a timeline grows.
pub fn loading(trace: &Trace, graph: &Graph) -> FxHashSet<CallId> {
    let calls = &graph.calls;
    let mut long: FxHashMap<(usize, NameId), Vec<CallId>> = FxHashMap::default();
    for call in 0..calls.len() as CallId {
        let i = call as usize;
        let is_long = cases::COLD_MIN.is_reached_by(making(graph, call));
        if calls.kind[i] == CallKind::Launch && is_long && calls.waited[i] == NONE {
            let process = trace.lanes()[calls.at(call).0].key().process;
            if let Some(name) = kernel(trace, graph, calls.first_op[i]) {
                long.entry((process, name)).or_default().push(call);
            }
        }
    }
    if long.is_empty() || trace.evicted().is_some() {
        return FxHashSet::default();
    }
    let mut first: FxHashMap<(usize, NameId), Ns> = FxHashMap::default();
    for (id, lane) in trace.streams() {
        for (_, activity) in trace.activities(id, lane.kept()) {
            if let What::Kernel(kernel) = activity.what {
                let of = (lane.key().process, trace.shape(kernel.shape).name);
                let start = activity.span.start;
                if long.contains_key(&of) {
                    let first = first.entry(of).or_insert(start);
                    *first = start.min(*first);
                }
            }
        }
    }
    let start = |call: CallId| graph.ops.start[calls.first_op[call as usize] as usize];
    let is_first = |(of, call): &((usize, NameId), CallId)| first.get(of) == Some(&start(*call));
    let all = long
        .into_iter()
        .flat_map(|(of, list)| list.into_iter().map(move |call| (of, call)));
    all.filter(is_first).map(|(_, call)| call).collect()
}

/// Whether a call needs its process's context, and had it: a launch, a copy, a wait, memory out of a pool.
pub(super) fn uses_context(trace: &Trace, graph: &Graph, call: CallId) -> bool {
    let ((lane, row), kind) = (graph.calls.at(call), graph.calls.kind[call as usize]);
    let is_done = matches!(trace.what(lane, row), What::Call(of) if of.code == 0);
    let is_pool = || {
        let name = graph.function(trace, call);
        name.contains("MallocAsync") || name.starts_with("cuMemAlloc") && name.contains("Async")
    };
    let needs = match kind {
        CallKind::Launch | CallKind::Copy => true,
        CallKind::Memory => is_pool(),
        kind => kind.is_wait(),
    };
    is_done && needs
}
