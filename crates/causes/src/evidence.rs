//! The records that show a finding.

use serde::{Serialize, Serializer};

use activity::Span;
use trace::{LaneId, LaneKind, Trace};

/// Places that a finding lists. More would only make reports long; `count` says how many there are.
pub const EVIDENCE_MAX: usize = 20;

/// A record that shows something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The lane; `None` for a stretch of a device as a whole.
    #[serde(skip)]
    pub lane: Option<LaneId>,
    /// The row of that lane; `None` for a stretch between rows.
    #[serde(skip)]
    pub row: Option<usize>,
    /// The device's id, for what happened on one.
    pub device: Option<u32>,
    /// The stream's id, for what happened on one.
    pub stream: Option<u32>,
    /// The host thread, for what happened on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// When.
    #[serde(flatten, serialize_with = "ends")]
    pub span: Span,
}

impl Evidence {
    /// A row of a lane.
    pub fn row(trace: &Trace, lane: LaneId, row: usize) -> Self {
        Evidence {
            row: Some(row),
            ..Evidence::stretch(trace, lane, trace.lanes()[lane].span(row))
        }
    }

    /// A stretch of a lane.
    pub fn stretch(trace: &Trace, lane: LaneId, span: Span) -> Self {
        let mut evidence = Evidence {
            lane: Some(lane),
            span,
            ..Evidence::default()
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
    pub fn device(trace: &Trace, device: usize, span: Span) -> Self {
        Evidence {
            device: trace.devices().get(device).map(|d| d.info.id),
            span,
            ..Evidence::default()
        }
    }
}

fn ends<S: Serializer>(span: &Span, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([("start_ns", span.start), ("end_ns", span.end)])
}
