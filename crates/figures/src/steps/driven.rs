//! Whether the CPU has a part in a loop of one operation. Else it is a sequence of launches, such as the layers of a network.

use rustc_hash::{FxHashMap, FxHashSet};

use super::operations;
use activity::{NameId, Ns, Span, What};
use causes::graph::CallKind;
use trace::{Trace, describe};

/// Whether, before most of the operations that start there, the CPU waits or works, or launches a graph.
pub(super) fn is_so(trace: &Trace, process: usize, stretch: Span) -> bool {
    let mut launches = FxHashSet::default();
    let mut count = 0;
    for (id, lane) in operations::streams(trace, process) {
        let rows = lane.starting(stretch);
        // A copy again and again moves data, a piece at a time.
        let is_work = |row| matches!(trace.what(id, row), What::Kernel(_) | What::Graph(_));
        if !rows.clone().all(is_work) {
            return false;
        }
        count += rows.len();
        launches.extend(rows.map(|row| lane.correlation(row)));
    }
    let mut kinds: FxHashMap<NameId, CallKind> = FxHashMap::default();
    let mut kind_of = |name: NameId| -> CallKind {
        let known = kinds.entry(name);
        *known.or_insert_with(|| CallKind::of(trace.names().full(name)))
    };
    let threads = trace.threads();
    let own = threads.filter(|(_, lane, _)| lane.key().process == process);
    let driven: usize = own
        .map(|(id, lane, _)| {
            let (mut driven, mut is_driven, mut last) = (0, false, Ns::MAX);
            for (row, activity) in trace.activities(id, lane.kept()) {
                let What::Call(call) = activity.what else {
                    is_driven |= describe::is_host_wait(trace, &activity.what);
                    continue;
                };
                let kind = kind_of(call.name);
                is_driven |= kind.is_wait()
                    || cases::CPU_WORKS.is_reached_by(activity.span.start.saturating_sub(last));
                last = activity.span.end;
                if launches.contains(&lane.correlation(row)) {
                    driven += usize::from(is_driven || kind == CallKind::GraphLaunch);
                    is_driven = false;
                }
            }
            driven
        })
        .sum();
    4 * driven >= 3 * count
}
