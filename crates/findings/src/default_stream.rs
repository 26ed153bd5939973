//! Streams that never run together, because work on the legacy default stream stands between them.
//!
//! What is launched there waits for all streams that were made in the ordinary way, and they wait for it. The order of
//! what ran shows that. Nothing of such a stream runs beside the default stream's work, however early it was launched.

use super::words::seen_at;
use super::{DeviceFigures, Finding, Occurrence, Rule, Says, Scope};
use activity::text::{NAME_MAX, cut_middle};
use activity::units::{count, duration, percent};
use activity::{Span, What};
use causes::graph::NONE;
use causes::{Bound, Cause};
use figures::stream_order::StreamOrder;
use trace::describe;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let default = describe::default_stream(scope.trace, f.index)?;
    let window = scope.window_on(f.index).unwrap_or(f.span);
    let order = StreamOrder::of(
        scope.trace,
        scope.causes,
        f.index,
        window,
        default,
        scope.event_waits(),
    );
    let waits: usize = order.streams.values().map(|it| it.waits.len()).sum();
    let streams = order.streams.len();
    let is_often = cases::LOOP_MIN.is_reached_by(waits);
    if streams < 2 || !is_often && !cases::STREAMS_WAIT.is_reached_by(streams) {
        return None;
    }
    let (spans, least) = order.together(scope.trace, scope.operations(f), f.index);
    let took = Span::union_len(spans);
    // Nor do they pause between each other.
    let ops = &scope.causes.graph().ops;
    let between = scope.idle_that(f, |gap, piece| {
        let lane = ops.place(gap.next).0;
        matches!(piece.cause, Cause::Stream | Cause::Engine)
            && (lane == default || order.streams.contains_key(&lane))
    });
    let saving = took - least + between;
    if !cases::LARGE_SHARE.is_reached_by(f.part(saving)) {
        return None;
    }
    let line = order.seen.telling(scope.trace);
    let graph = scope.causes.graph();
    let at = order.streams.values().flat_map(|it| &it.waits);
    let at: Vec<_> = at.map(|&op| graph.ops.place(op)).collect();
    let (lane, row) = *at.first()?;
    let what = scope.trace.what(lane, row);
    let call = graph.call_at((lane, row));
    // A copy or memset is found in the source by its call.
    let first = match what {
        What::Copy(_) | What::Memset(_) if call != NONE => {
            graph.function(scope.trace, call).to_owned()
        }
        _ => describe::activity(scope.trace, &what),
    };
    let first = cut_middle(&first, NAME_MAX);
    let at: Vec<_> = at.into_iter().map(Occurrence::Row).collect();
    Some(Finding {
        title: format!(
            "{streams} streams run one after another for {} ({}): {} times their work waits for {first} on the legacy default stream{}",
            duration(took),
            percent(f.part(took)),
            count(waits as u64),
            seen_at(line.as_ref())
        ),
        advice: "Where they need nothing of it, keep that stream out of it.".to_owned(),
        change: scope.change("non-blocking", line.as_ref()),
        says: Some(Says {
            bound: Bound::Compute,
            part: f.part(took),
            why: format!("{streams} streams one after another, by the legacy default stream"),
        }),
        instead_of: &[Rule::UnderFilledGpu],
        ..scope.found(f.span_ns, saving, &at)
    })
}
