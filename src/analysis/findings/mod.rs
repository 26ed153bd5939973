//! What could be better: one rule a file, registered in [`RULES`].
//!
//! A rule looks at a timeline, or at one pass of it, and either finds nothing or says in one
//! [`Finding`] what it saw, where, how much time that could cost at most, and what to do about it.
//! Thresholds stand in [`thresholds`], each beside the measurement or the reasoning behind it;
//! `docs/FINDINGS.md` has the same table for readers.

pub mod thresholds;

use serde::{Serialize, Serializer};

use super::CallIndex;
use super::figures::{DeviceFigures, Peaks};
use crate::activity::{Ns, Span};
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
#[derive(Clone, Copy, Debug)]
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
}

impl Scope<'_> {
    /// The rows of a lane that are looked at.
    #[must_use]
    pub fn rows(&self, lane: LaneId) -> std::ops::Range<usize> {
        let lane = &self.trace.lanes()[lane];
        self.window.map_or(0..lane.len(), |w| lane.starting(w))
    }

    /// The lanes of the streams of a device.
    pub fn streams(&self, device: usize) -> impl Iterator<Item = LaneId> + '_ {
        self.trace.streams_of(device).map(|(id, _)| id)
    }
}

/// A rule: its name, and what looks.
pub type Rule = (&'static str, fn(&Scope) -> Option<Finding>);

/// All rules, in the order in which findings of equal weight are shown.
pub const RULES: &[Rule] = &[];

/// Everything that the rules find, the greatest possible saving first.
#[must_use]
pub fn of(scope: &Scope) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().filter_map(|(_, rule)| rule(scope)).collect();
    findings.sort_by_key(|f| std::cmp::Reverse((f.severity, f.saving_ns)));
    findings
}
