//! Kernels of communication that a device ran: what they took, and with nothing beside them.

use rustc_hash::FxHashMap;

use crate::communication::is_communication;
use crate::device::DeviceFigures;
use activity::{NameId, Ns, Span, What};
use trace::{LaneId, Trace};

/// The collective kernels of a device.
#[derive(Clone, Debug, Default)]
pub struct Collectives {
    pub rows: Vec<(LaneId, usize)>,
    /// Time in which one ran.
    pub took: Ns,
    /// Time in which one ran, and nothing else of the device did.
    pub alone: Ns,
    /// The one that took most time, and how much.
    pub most: Option<(NameId, Ns)>,
}

impl Collectives {
    /// Those that start within `window`, or all; `f` are the figures of the same operations.
    pub fn of(trace: &Trace, f: &DeviceFigures, window: Option<Span>) -> Collectives {
        let mut known: FxHashMap<NameId, bool> = FxHashMap::default();
        let mut by: FxHashMap<NameId, Ns> = FxHashMap::default();
        let mut found = Collectives::default();
        let mut mine = Vec::new();
        let all = || {
            trace.streams_of(f.index).flat_map(|(id, lane)| {
                let rows = window.map_or(lane.kept(), |w| lane.starting(w));
                let rows = trace.activities(id, rows);
                rows.map(move |(row, activity)| ((id, row), activity))
            })
        };
        for (at, activity) in all() {
            let What::Kernel(kernel) = activity.what else {
                continue;
            };
            let name = trace.shape(kernel.shape).name;
            let is_one = known
                .entry(name)
                .or_insert_with(|| is_communication(trace.names().full(name)));
            if *is_one {
                *by.entry(name).or_default() += activity.span.len();
                found.rows.push(at);
                mine.push(activity.span);
            }
        }
        if !found.rows.is_empty() {
            let mut rows = found.rows.iter().peekable();
            // The same order: what is no row of theirs is another operation.
            let others = all().filter(|(at, _)| rows.next_if(|it| *it == at).is_none());
            let others = Span::union_len(others.map(|it| it.1.span).collect());
            found.alone = (f.busy_ns - others).max(0);
        }
        found.took = Span::union_len(mine);
        found.most = by.into_iter().max_by_key(|&(name, time)| (time, name));
        found
    }
}
