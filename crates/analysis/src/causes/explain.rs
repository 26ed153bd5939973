//! Why one gap is there, from the records around it alone: what a screen asks of the gap under its cursor.

use super::{Causes, Explanation, Gap};
use crate::graph::{Graph, LATENCY_MAX};
use activity::{Ns, Span};
use trace::{LaneId, LaneKind, Trace};

/// Why a stretch of one stream's lane without an operation is there, from the records around it alone.
#[must_use]
pub fn explain_stream(trace: &Trace, lane: LaneId, gap: Span) -> Explanation {
    explain(trace, &[lane], gap)
}

/// Why a stretch of a device (index into [`Trace::devices`]) without an operation is there, from the
/// records around it alone.
#[must_use]
pub fn explain_device(trace: &Trace, device: usize, gap: Span) -> Explanation {
    let lanes: Vec<LaneId> = trace.streams_of(device).map(|(id, _)| id).collect();
    explain(trace, &lanes, gap)
}

/// How far back to read records before a gap, and before the launch of what ends it. A root may lie some steps of the
/// program back.
const AROUND: Ns = 50_000_000;

fn explain(trace: &Trace, lanes: &[LaneId], span: Span) -> Explanation {
    let is_unrecorded = |&lane: &LaneId| match trace.lanes()[lane].key().kind {
        LaneKind::Stream { device, .. } => trace.is_unrecorded(device, span),
        _ => false,
    };
    if lanes.first().is_some_and(is_unrecorded) {
        return Explanation::unrecorded(span);
    }
    let next = lanes
        .iter()
        .filter_map(|&lane| Some((lane, trace.lanes()[lane].next(span.end)?)))
        .min_by_key(|&(lane, row)| {
            (
                trace.lanes()[lane].span(row).start,
                trace.lanes()[lane].key(),
            )
        });
    let Some((lane, row)) = next else {
        return Explanation::nothing(span);
    };
    let key = trace.lanes()[lane].key();
    let launched = trace
        .call(key.process, trace.lanes()[lane].correlation(row))
        .map_or(span.start, |(lane, row)| {
            trace.lanes()[lane].span(row).start
        });
    let from = launched.min(span.start).saturating_sub(AROUND);
    let until = trace.lanes()[lane]
        .span(row)
        .start
        .saturating_add(LATENCY_MAX);
    let graph = Graph::within(trace, Span::new(from, until));
    let causes = Causes::new(trace, &graph);
    match graph.op_at(lane, row) {
        Some(next) => causes.explain(Gap { span, next }),
        None => Explanation::nothing(span),
    }
}
