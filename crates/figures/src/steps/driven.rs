//! What the CPU does between the launches of a loop. Where it has no part in a loop of one operation, that is a sequence of launches,
//! such as the layers of a network.

use rustc_hash::{FxHashMap, FxHashSet};

use activity::{NameId, Ns, Span, What};
use causes::graph::CallKind;
use trace::{LaneId, Trace, describe};

/// How the CPU came to launch an operation.
#[derive(Clone, Copy)]
pub(super) struct Launched {
    /// The lane of the thread's calls.
    pub(super) by: LaneId,
    /// Whether it waited for the GPU since its launch before.
    pub(super) has_waited: bool,
    /// Whether it waited or worked since then, or launches a graph.
    is_driven: bool,
}

/// The launches of a process with these ids, by id.
pub(super) fn launches(
    trace: &Trace,
    process: usize,
    ids: &FxHashSet<u32>,
) -> FxHashMap<u32, Launched> {
    let mut kinds: FxHashMap<NameId, CallKind> = FxHashMap::default();
    let mut kind_of = |name: NameId| -> CallKind {
        let known = kinds.entry(name);
        *known.or_insert_with(|| CallKind::of(trace.names().full(name)))
    };
    let mut all = FxHashMap::default();
    for (by, lane, _) in trace.threads_in(process) {
        let (mut has_waited, mut has_worked, mut last) = (false, false, Ns::MAX);
        for (row, activity) in trace.activities(by, lane.kept()) {
            let What::Call(call) = activity.what else {
                has_waited |= describe::is_host_wait(trace, &activity.what);
                continue;
            };
            let (kind, id) = (kind_of(call.name), lane.correlation(row));
            has_waited |= kind.is_wait();
            has_worked |= cases::CPU_WORKS.is_reached_by(activity.span.start.saturating_sub(last));
            last = activity.span.end;
            if ids.contains(&id) {
                let is_driven = has_waited || has_worked || kind == CallKind::GraphLaunch;
                let launched = Launched {
                    by,
                    has_waited,
                    is_driven,
                };
                all.entry(id).or_insert(launched);
                (has_waited, has_worked) = (false, false);
            }
        }
    }
    all
}

/// Whether, before most of the operations that start there, the CPU waits or works, or launches a graph.
pub(super) fn is_so(trace: &Trace, process: usize, stretch: Span) -> bool {
    let mut ids = FxHashSet::default();
    let mut count = 0;
    for (id, lane) in trace.streams_in(process) {
        let rows = lane.starting(stretch);
        // A copy again and again moves data, a piece at a time.
        let is_work = |row| matches!(trace.what(id, row), What::Kernel(_) | What::Graph(_));
        if !rows.clone().all(is_work) {
            return false;
        }
        count += rows.len();
        ids.extend(rows.map(|row| lane.correlation(row)));
    }
    let launches = launches(trace, process, &ids);
    4 * launches.values().filter(|it| it.is_driven).count() >= 3 * count
}
