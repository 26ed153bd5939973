//! Host calls by correlation id, for analyses that ask about every operation of a timeline.
//!
//! [`Trace::call`] answers for one operation under a cursor. For each of a million operations it would search the lanes
//! of all threads a million times. This index is built in one pass.

use std::ops::Range;

use super::{Lane, LaneId, Trace};
use activity::Span;

/// Where one host call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    correlation: u32,
    lane: u32,
    row: u32,
}

/// The host calls of every process, by correlation id.
#[derive(Clone, Debug, Default)]
pub struct CallIndex {
    /// One sorted list a process.
    processes: Vec<Vec<Entry>>,
    /// The ids of all of them, sorted: one look for an operation of a job of hundreds of processes. Empty where there is one list.
    all: Vec<u32>,
}

impl CallIndex {
    /// Indexes all host calls of a timeline.
    pub fn new(trace: &Trace) -> Self {
        crate::made("calls");
        Self::of(trace, |lane| lane.kept())
    }

    /// Indexes the host calls that start within `window`.
    pub fn within(trace: &Trace, window: Span) -> Self {
        Self::of(trace, |lane| lane.starting(window))
    }

    fn of(trace: &Trace, rows: impl Fn(&Lane) -> Range<usize>) -> Self {
        let mut processes = vec![Vec::new(); trace.processes().len()];
        for (id, lane, _) in trace.threads() {
            let Some(entries) = processes.get_mut(lane.key().process) else {
                continue;
            };
            entries.reserve_exact(rows(lane).len());
            entries.extend(rows(lane).filter_map(|row| {
                let correlation = lane.correlation(row);
                (correlation != 0).then_some(Entry {
                    correlation,
                    lane: id as u32,
                    row: row as u32,
                })
            }));
        }
        for entries in &mut processes {
            // Calls of one thread arrive in order, so this is one look at each for most programs.
            entries.sort_unstable();
        }
        let mut all = Vec::new();
        if processes.len() > 1 {
            let entries = processes.iter().flatten();
            all = entries.map(|entry| entry.correlation).collect();
            all.sort_unstable();
            all.dedup();
            all.shrink_to_fit();
        }
        CallIndex { processes, all }
    }

    /// The call's lane and row. Correlation 0 means none and is never found.
    pub fn find(&self, process: usize, correlation: u32) -> Option<(LaneId, usize)> {
        let entries = self.processes.get(process)?;
        let at = entries.partition_point(|e| e.correlation < correlation);
        let entry = entries.get(at).filter(|e| e.correlation == correlation)?;
        Some((entry.lane as usize, entry.row as usize))
    }

    /// Whether any process has a call with this id.
    pub fn is_known(&self, correlation: u32) -> bool {
        match self.processes.len() {
            1 => self.find(0, correlation).is_some(),
            _ => self.all.binary_search(&correlation).is_ok(),
        }
    }

    /// When the call ran.
    pub fn span(&self, trace: &Trace, process: usize, correlation: u32) -> Option<Span> {
        let (lane, row) = self.find(process, correlation)?;
        Some(trace.lanes()[lane].span(row))
    }
}
