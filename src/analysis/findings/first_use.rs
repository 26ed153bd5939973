//! Calls that take long the first time: a library that starts, a kernel whose code is loaded when it is first launched.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Scope, thresholds};
use crate::activity::{NameId, Ns, Span, What};
use crate::analysis::graph::{CallId, CallKind, NONE};
use crate::trace::{LaneId, LaneKind};

/// Calls of a function whose times are looked at.
const SAMPLE: usize = 1_000;

/// So many calls of a function at least tell what one takes.
const CALLS_MIN: usize = 4;

/// Whether a call took so much longer than its function does at the median that something else than its work took the time.
pub(super) fn is_outlier(time: Ns, median: Ns) -> bool {
    time >= thresholds::COLD_MIN && time >= thresholds::OUTLIER * median
}

/// The median, of a list that is put in order for it.
pub(super) fn median(times: &mut [Ns]) -> Ns {
    let middle = times.len().saturating_sub(1) / 2;
    if times.is_empty() {
        return 0;
    }
    *times.select_nth_unstable(middle).1
}

/// First calls of a function, and first launches of a kernel, that took much longer than those after them: when, and where
/// their rows are. None of a timeline whose beginning is not there.
pub(super) fn calls(scope: &Scope) -> Vec<(Span, (LaneId, usize))> {
    let graph = scope.causes.graph();
    if !has_beginning(scope) {
        return Vec::new();
    }
    let mut times: FxHashMap<NameId, Vec<Ns>> = FxHashMap::default();
    let mut met: FxHashSet<(NameId, Option<NameId>)> = FxHashSet::default();
    let mut first: Vec<(CallId, NameId)> = Vec::new();
    for call in 0..graph.calls.len() as CallId {
        let i = call as usize;
        let kind = graph.calls.kind[i];
        // Copies take as long as they have bytes, waits as long as they wait; what loads is counted as such.
        let is_asked = matches!(kind, CallKind::Launch | CallKind::Memory | CallKind::Other);
        if !is_asked || graph.calls.waited[i] != NONE {
            continue;
        }
        let (lane, row) = graph.calls.at(call);
        let What::Call(of) = scope.trace.activity(lane, row).what else {
            continue;
        };
        let list = times.entry(of.name).or_default();
        if list.len() < SAMPLE {
            list.push(graph.calls.span(call).len());
        }
        let kernel = match kind {
            CallKind::Launch => kernel(scope, graph.calls.first_op[i]),
            _ => None,
        };
        if met.insert((of.name, kernel)) {
            first.push((call, of.name));
        }
    }
    let medians: FxHashMap<NameId, Ns> = times
        .iter_mut()
        .filter(|(_, list)| list.len() >= CALLS_MIN)
        .map(|(&name, list)| (name, median(list)))
        .collect();
    let is_slow = |&(call, name): &(CallId, NameId)| {
        let span = graph.calls.span(call);
        let is_looked_at = scope
            .window
            .is_none_or(|w| (w.start..w.end).contains(&span.start));
        is_looked_at
            && medians
                .get(&name)
                .is_some_and(|&median| is_outlier(span.len(), median))
    };
    let slow = first.into_iter().filter(is_slow);
    slow.map(|(call, _)| (graph.calls.span(call), graph.calls.at(call)))
        .collect()
}

fn kernel(scope: &Scope, op: u32) -> Option<NameId> {
    let (lane, row) = (op != NONE).then(|| scope.causes.graph().ops.place(op))?;
    match scope.trace.activity(lane, row).what {
        What::Kernel(kernel) => Some(scope.trace.shape(kernel.shape).name),
        _ => None,
    }
}

/// Whether nothing was let go and the graph has the first call: else what looks like the first is none.
fn has_beginning(scope: &Scope) -> bool {
    let threads = scope.trace.lanes().iter();
    let threads = threads
        .filter(|lane| matches!(lane.key().kind, LaneKind::Thread { .. }) && !lane.is_empty());
    let mut begin = Ns::MAX;
    for lane in threads {
        if lane.kept().start > 0 {
            return false;
        }
        begin = begin.min(lane.span(0).start);
    }
    let starts = &scope.causes.graph().calls.start;
    starts.first().is_some_and(|&start| start <= begin)
}
