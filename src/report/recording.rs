//! What was recorded when, where that was not everything all the time.

use serde::Serialize;

use activity::text::plural;
use activity::units::duration;
use activity::{Ns, Span};
use trace::Trace;

/// For how long a process was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Recording {
    pub pid: u32,
    /// Whiles in which nothing was recorded.
    pub off_count: u64,
    /// How long they lasted together, between the timeline's first record and its last.
    pub off_ns: Ns,
}

/// Of each process for which recording was off for some time.
pub fn find(trace: &Trace) -> Vec<Recording> {
    let Some(extent) = trace.extent() else {
        return Vec::new();
    };
    let sum = |(count, all): (u64, Ns), span: Span| (count + 1, all + span.intersect(extent).len());
    let processes = trace.processes().iter().enumerate();
    processes
        .filter_map(|(index, process)| {
            let recorded = trace.recorded(index);
            let (off_count, off_ns) = recorded.off(extent).fold((0, 0), sum);
            (off_count > 0).then_some(Recording {
                pid: process.info.pid,
                off_count,
                off_ns,
            })
        })
        .collect()
}

impl Recording {
    /// In a sentence.
    pub fn line(&self) -> String {
        format!(
            "NOT RECORDED: process {} for {} ({}); figures are of the rest",
            self.pid,
            duration(self.off_ns),
            plural(self.off_count, "pause")
        )
    }
}
