//! Copies whose call waits for them, so that nothing else can be launched meanwhile.

use super::no_overlap::{self, Engines};
use super::{DeviceFigures, Finding, Occurrence, Scope, thresholds};
use crate::graph::NONE;
use crate::tables;
use activity::units::duration;
use activity::{Direction, Span};

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if f.h2d.count + f.d2h.count < 2 {
        return None;
    }
    let mut at = Vec::new();
    let mut spans: Vec<Span> = Vec::new();
    let mut waited: Vec<Span> = Vec::new();
    let graph = scope.causes.graph();
    for &(place, span, copy) in scope.copies(f) {
        if !copy.is_async && matches!(copy.direction, Direction::H2D | Direction::D2H) {
            spans.push(span);
            waited.push(match graph.call_at(place) {
                NONE => span,
                call => graph.calls.span(call),
            });
            at.push(Occurrence::Row(place));
        }
    }
    if at.len() < 2 {
        return None;
    }
    let time = tables::union(spans);
    // What the engines could hide of each other is all that an asynchronous copy can win.
    let saving = time.min(Engines::new(scope, f).hideable());
    // A copy and its way back hide nothing of each other: it takes kernels to run beside.
    let computes = f.part(f.compute_ns) >= thresholds::ENGINE_SHARE;
    let computes = computes && (scope.planned.is_some() || !no_overlap::is_one_batch(scope, f));
    let is_worth = computes && f.part(saving) >= thresholds::WORTH_SHARE;
    if !is_worth {
        return None;
    }
    Some(Finding {
        title: format!(
            "the CPU waits for {}, which take {}",
            activity::text::counted(at.len() as u64, "synchronous copy", "synchronous copies"),
            duration(tables::union(waited)),
        ),
        advice: "Copy asynchronously (cudaMemcpyAsync, non_blocking=True) from pinned memory, on a separate stream.".to_owned(),
        ..scope.found(f.span_ns, saving, &at)
    })
}
