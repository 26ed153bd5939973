//! What was recorded when, where that was not everything all the time.

use serde::Serialize;

use crate::activity::units::duration;
use crate::activity::{Ns, Span};
use crate::text::plural;
use crate::trace::Trace;

/// What of one process was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Recording {
    /// The process's id.
    pub pid: u32,
    /// Whiles in which nothing was recorded.
    pub off_count: u64,
    /// How long they lasted together, between the timeline's first record and its last.
    pub off_ns: Ns,
    /// Whiles in which it was recorded what streams wait for.
    pub waits_count: u64,
    /// How long they lasted together, likewise.
    pub waits_ns: Ns,
}

/// Of each process of which not all was recorded all the time.
pub(super) fn of(trace: &Trace) -> Vec<Recording> {
    let Some(extent) = trace.extent() else {
        return Vec::new();
    };
    let sum = |(count, all): (u64, Ns), span: Span| (count + 1, all + span.intersect(extent).len());
    let processes = trace.processes().iter().enumerate();
    processes
        .filter_map(|(index, process)| {
            let recorded = trace.recorded(index);
            let (off_count, off_ns) = recorded.off(extent).fold((0, 0), sum);
            let (waits_count, waits_ns) = recorded.waits(extent).fold((0, 0), sum);
            (off_count > 0 || recorded.samples_waits()).then_some(Recording {
                pid: process.info.pid,
                off_count,
                off_ns,
                waits_count,
                waits_ns,
            })
        })
        .collect()
}

impl Recording {
    /// In sentences.
    pub(super) fn lines(&self) -> Vec<String> {
        let pid = self.pid;
        let mut lines = Vec::new();
        if self.off_count > 0 {
            let whiles = plural(self.off_count, "while");
            lines.push(format!(
                "NOT RECORDED: process {pid} for {} ({whiles}); figures are of the rest",
                duration(self.off_ns)
            ));
        }
        if self.waits_count > 0 {
            let whiles = plural(self.waits_count, "while");
            lines.push(format!(
                "process {pid}: waits between streams were recorded for {} ({whiles}); outside, they are told by times \
                 alone (likely)",
                duration(self.waits_ns)
            ));
        }
        lines
    }
}
