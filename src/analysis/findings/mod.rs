//! What could be better: one rule a file, registered in [`RULES`].
//!
//! A rule looks at a timeline, or at one pass of it, and either finds nothing or says in one
//! [`Finding`] what it saw, where, how much time that could cost at most, and what to do about it.
//! Thresholds stand in [`thresholds`], each beside the measurement or the reasoning behind it;
//! `docs/FINDINGS.md` has the same table for readers.

mod alloc_loop;
mod cold_start;
mod launch_bound;
mod low_bandwidth;
mod no_overlap;
mod pageable;
mod sync_copies;
mod sync_loop;
#[cfg(test)]
mod tests;
pub mod thresholds;
mod tiny_copies;
mod under_filled;

use std::cmp::Reverse;

use serde::{Serialize, Serializer};

use super::CallIndex;
use super::causes::{Causes, Gap, Piece};
use super::figures::{self, DeviceFigures, Peaks};
use crate::activity::{Activity, Ns, Span};
use crate::trace::{LaneId, LaneKind, Trace};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Worth a change.
    Warning,
}

/// Something that could be better.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule that found it ("pageable-copy").
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What was seen, in a line.
    pub title: String,
    /// Where, most telling first; at most [`EVIDENCE_MAX`].
    pub evidence: Vec<Evidence>,
    /// How many places there are in all.
    pub count: u64,
    /// An upper bound of the time it could save.
    pub saving_ns: Ns,
    /// What to do about it, in a sentence.
    pub advice: String,
}

/// Places that a finding lists. More would only make reports long; `count` says how many there are.
pub const EVIDENCE_MAX: usize = 20;

/// A record that shows something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The lane; `None` for a stretch of a device as a whole.
    pub lane: Option<LaneId>,
    /// The row of that lane; `None` for a stretch between rows.
    pub row: Option<usize>,
    /// The device's id, for what happened on one.
    pub device: Option<u32>,
    /// The stream's id, for what happened on one.
    pub stream: Option<u32>,
    /// The host thread, for what happened on one.
    pub thread: Option<u32>,
    /// When.
    pub span: Span,
}

impl Evidence {
    /// A row of a lane.
    #[must_use]
    pub fn row(trace: &Trace, lane: LaneId, row: usize) -> Self {
        Evidence {
            row: Some(row),
            ..Evidence::stretch(trace, lane, trace.lanes()[lane].span(row))
        }
    }

    /// A stretch of a lane.
    #[must_use]
    pub fn stretch(trace: &Trace, lane: LaneId, span: Span) -> Self {
        let mut evidence = Evidence {
            lane: Some(lane),
            row: None,
            device: None,
            stream: None,
            thread: None,
            span,
        };
        match trace.lanes()[lane].key().kind {
            LaneKind::Stream { device, stream, .. } => {
                evidence.device = trace.devices().get(device).map(|d| d.info.id);
                evidence.stream = Some(stream);
            }
            LaneKind::Memory { device } => {
                evidence.device = trace.devices().get(device).map(|d| d.info.id);
            }
            LaneKind::Thread { thread } | LaneKind::Range { thread, .. } => {
                evidence.thread = Some(thread);
            }
            LaneKind::Overhead | LaneKind::Sync | LaneKind::Event => {}
        }
        evidence
    }

    /// A stretch of a device (index into [`Trace::devices`]).
    #[must_use]
    pub fn device(trace: &Trace, device: usize, span: Span) -> Self {
        Evidence {
            lane: None,
            row: None,
            device: trace.devices().get(device).map(|d| d.info.id),
            stream: None,
            thread: None,
            span,
        }
    }
}

impl Serialize for Evidence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields {
            device: Option<u32>,
            stream: Option<u32>,
            #[serde(skip_serializing_if = "Option::is_none")]
            thread: Option<u32>,
            start_ns: Ns,
            end_ns: Ns,
        }
        Fields {
            device: self.device,
            stream: self.stream,
            thread: self.thread,
            start_ns: self.span.start,
            end_ns: self.span.end,
        }
        .serialize(serializer)
    }
}

/// What a rule looks at.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    /// The timeline.
    pub trace: &'a Trace,
    /// Its host calls.
    pub calls: &'a CallIndex,
    /// Operations and calls that start within it; all without one.
    pub window: Option<Span>,
    /// The figures of the same operations.
    pub devices: &'a [DeviceFigures],
    /// What the devices can do, where a profile says.
    pub peaks: Peaks,
    /// Why nothing ran.
    pub causes: &'a Causes<'a>,
}

impl<'a> Scope<'a> {
    /// Looks at the operations that start within `window`, or at all of them. `devices` are their figures.
    #[must_use]
    pub fn new(
        trace: &'a Trace,
        calls: &'a CallIndex,
        causes: &'a Causes<'a>,
        window: Option<Span>,
        devices: &'a [DeviceFigures],
        peaks: Peaks,
    ) -> Self {
        Scope {
            trace,
            calls,
            window,
            devices,
            peaks,
            causes,
        }
    }

    /// The gaps of one device with their pieces, in order of time.
    fn gaps(&self, device: &DeviceFigures) -> impl Iterator<Item = (Gap, Vec<Piece>)> {
        self.causes
            .gaps_of_device(device.index, self.window)
            .map(|gap| (gap, self.causes.pieces(gap)))
    }

    /// The rows of a lane that are looked at.
    #[must_use]
    pub fn rows(&self, lane: LaneId) -> std::ops::Range<usize> {
        let lane = &self.trace.lanes()[lane];
        self.window.map_or(0..lane.len(), |w| lane.starting(w))
    }

    /// The operations of one device that are looked at, by stream and start.
    pub fn operations(&self, device: &DeviceFigures) -> impl Iterator<Item = (At, Activity)> + '_ {
        self.trace
            .streams_of(device.index)
            .flat_map(move |(lane, _)| {
                self.rows(lane)
                    .map(move |row| ((lane, row), self.trace.activity(lane, row)))
            })
    }

    /// What a finding about `device` is made of.
    fn found(&self, rule: &'static str, whole: Ns, saving_ns: Ns, at: &[Place]) -> Finding {
        let share = figures::share(saving_ns, whole);
        Finding {
            rule,
            severity: if share >= thresholds::WARNING_SHARE {
                Severity::Warning
            } else {
                Severity::Info
            },
            title: String::new(),
            evidence: at
                .iter()
                .take(EVIDENCE_MAX)
                .map(|place| match *place {
                    Place::Row((lane, row)) => Evidence::row(self.trace, lane, row),
                    Place::Gap(device, span) => Evidence::device(self.trace, device, span),
                })
                .collect(),
            count: at.len() as u64,
            saving_ns,
            advice: String::new(),
        }
    }
}

/// A row of a lane.
pub type At = (LaneId, usize);

/// Where something was seen.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// A row.
    Row(At),
    /// A stretch of a device (index into [`Trace::devices`]).
    Gap(usize, Span),
}

/// A rule: what looks, at one device or at the whole timeline.
#[derive(Clone, Copy, Debug)]
pub enum Look {
    /// At each device that has an operation, with its place in [`Scope::devices`].
    Device(fn(&Scope, usize) -> Option<Finding>),
    /// Once.
    Timeline(fn(&Scope) -> Option<Finding>),
}

/// All rules by name, in the order in which findings of equal weight are shown.
pub const RULES: &[(&str, Look)] = &[
    (pageable::RULE, Look::Device(pageable::look)),
    (tiny_copies::RULE, Look::Device(tiny_copies::look)),
    (sync_copies::RULE, Look::Device(sync_copies::look)),
    (sync_loop::RULE, Look::Device(sync_loop::look)),
    (alloc_loop::RULE, Look::Timeline(alloc_loop::look)),
    (launch_bound::RULE, Look::Device(launch_bound::look)),
    (no_overlap::RULE, Look::Device(no_overlap::look)),
    (cold_start::RULE, Look::Timeline(cold_start::look)),
    (under_filled::RULE, Look::Device(under_filled::look)),
    (low_bandwidth::RULE, Look::Device(low_bandwidth::look)),
];

/// Everything that the rules find, warnings first, then the greatest possible saving.
#[must_use]
pub fn of(scope: &Scope) -> Vec<Finding> {
    of_unless(scope, &|| false)
}

/// The same, given up between two rules once `is_stopped` says so: what was found until then.
#[must_use]
pub fn of_unless(scope: &Scope, is_stopped: &dyn Fn() -> bool) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for (_, look) in RULES {
        if is_stopped() {
            break;
        }
        match look {
            Look::Device(look) => {
                findings.extend((0..scope.devices.len()).filter_map(|i| {
                    let mut finding = look(scope, i)?;
                    if scope.devices.len() > 1 {
                        finding.title =
                            format!("GPU {}: {}", scope.devices[i].device, finding.title);
                    }
                    Some(finding)
                }));
            }
            Look::Timeline(look) => findings.extend(look(scope)),
        }
    }
    findings.sort_by_key(|f| Reverse((f.severity, f.saving_ns)));
    findings
}
