//! Why one gap is there, from the records around it alone: what a screen asks of the gap under its cursor.

use super::{Cause, Causes, Explanation, Gap};
use crate::graph::{Graph, LATENCY_MAX};
use activity::{Ns, Span};
use trace::{Lane, LaneId, LaneKind, Trace};

/// How far back to read records before a gap, and before the launch of what ends it. A root may lie some steps of the
/// program back.
const AROUND: Ns = 50_000_000;

/// Why a stretch is there in which no lane of these had an operation: a stream's, or all of a device. From all records, as
/// reports have it, where causes are `known`, else from the records around it alone.
pub fn explain(
    trace: &Trace,
    known: Option<&Causes<'_>>,
    lanes: &[LaneId],
    span: Span,
) -> Explanation {
    let is_unrecorded = |&lane: &LaneId| match trace.lanes()[lane].key().kind {
        LaneKind::Stream { device, .. } => trace.is_unrecorded(device, span),
        _ => false,
    };
    if lanes.first().is_some_and(is_unrecorded) {
        let sentence = "Recording was off for a part of it, so nothing says why.";
        return Explanation::because(Cause::Missing, sentence);
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
        return Explanation::nothing();
    };
    let of = |causes: &Causes<'_>| match causes.graph.op_at(lane, row) {
        Some(next) => causes.explain(Gap { span, next }),
        None => Explanation::nothing(),
    };
    if let Some(causes) = known {
        return of(causes);
    }
    let key = trace.lanes()[lane].key();
    let call = trace.call(key.process, trace.lanes()[lane].correlation(row));
    // What nobody launched follows the last call of its process.
    let call = call.or_else(|| last_call(trace, key.process, span.end));
    let launched = call.map_or(span.start, |(lane, row)| {
        trace.lanes()[lane].span(row).start
    });
    let from = launched.min(span.start).saturating_sub(AROUND);
    let until = trace.lanes()[lane]
        .span(row)
        .start
        .saturating_add(LATENCY_MAX);
    let graph = Graph::within(trace, Span::new(from, until));
    of(&Causes::new(trace, &graph))
}

/// The last CUDA call of a process that began before `time`.
fn last_call(trace: &Trace, process: usize, time: Ns) -> Option<(LaneId, usize)> {
    let threads = trace.threads_in(process);
    let last = |(id, lane, _): (LaneId, &Lane, u32)| {
        let row = lane.starting(Span::new(Ns::MIN / 4, time)).last()?;
        Some((lane.span(row).start, (id, row)))
    };
    threads.filter_map(last).max().map(|(_, at)| at)
}
