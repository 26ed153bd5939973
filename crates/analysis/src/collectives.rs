//! Kernels of collective communication: what they do is exchange data with other GPUs, and wait for them.

use rustc_hash::FxHashMap;

pub use super::class::is_collective;
use super::figures::DeviceFigures;
use super::tables;
use activity::{NameId, Ns, Span, What};
use trace::{LaneId, Trace};

/// The collective kernels of a device.
#[derive(Clone, Debug, Default)]
pub struct Collectives {
    /// Their rows.
    pub rows: Vec<(LaneId, usize)>,
    /// Time in which one ran.
    pub took: Ns,
    /// Time in which one ran, and nothing else of the device did.
    pub alone: Ns,
    /// The one that took most time.
    pub most: Option<NameId>,
}

impl Collectives {
    /// Those that start within `window`, or all; `f` are the figures of the same operations.
    pub fn of(trace: &Trace, f: &DeviceFigures, window: Option<Span>) -> Collectives {
        let mut known: FxHashMap<NameId, bool> = FxHashMap::default();
        let mut by: FxHashMap<NameId, Ns> = FxHashMap::default();
        let mut found = Collectives::default();
        let (mut mine, mut others) = (Vec::new(), Vec::new());
        for (id, lane) in trace.streams_of(f.index) {
            let rows = window.map_or(lane.kept(), |w| lane.starting(w));
            for (row, activity) in trace.activities(id, rows) {
                let name = match activity.what {
                    What::Kernel(kernel) => Some(trace.shape(kernel.shape).name),
                    _ => None,
                };
                let is_one = name.filter(|&name| {
                    *known
                        .entry(name)
                        .or_insert_with(|| is_collective(trace.names().full(name)))
                });
                match is_one {
                    Some(name) => {
                        *by.entry(name).or_default() += activity.span.len();
                        found.rows.push((id, row));
                        mine.push(activity.span);
                    }
                    None => others.push(activity.span),
                }
            }
        }
        if !found.rows.is_empty() {
            found.alone = (f.busy_ns - tables::union(others)).max(0);
        }
        found.took = tables::union(mine);
        let most = by.into_iter().max_by_key(|&(name, time)| (time, name));
        found.most = most.map(|(name, _)| name);
        found
    }
}
