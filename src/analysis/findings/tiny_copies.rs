//! Many copies so small that their fixed cost is all they are.

use super::{Finding, Place, Scope, thresholds};
use crate::activity::units::{bytes, duration};
use crate::activity::{Direction, Ns, What};
use crate::analysis::graph::NONE;

pub(super) const RULE: &str = "tiny-copies";

pub(super) fn look(scope: &Scope, device: usize) -> Option<Finding> {
    let figures = &scope.devices[device];
    let mut at = Vec::new();
    let (mut moved, mut saving) = (0u64, 0 as Ns);
    // Copies follow each other on their stream: what lies between two tiny ones goes with them.
    let mut last: Option<(usize, usize, Ns)> = None;
    for ((lane, row), activity) in scope.operations(figures) {
        let What::Copy(copy) = activity.what else {
            continue;
        };
        let is_tiny = matches!(copy.direction, Direction::H2D | Direction::D2H)
            && copy.bytes <= thresholds::TINY_BYTES;
        if !is_tiny {
            continue;
        }
        let span = activity.span;
        // A copy costs what its call takes, or it itself; pauses between them are something else's.
        let graph = scope.causes.graph();
        let call = graph.op_at(lane, row).map(|op| graph.ops.call[op as usize]);
        let cost = match call {
            Some(call) if call != NONE => graph.calls.span(call).len().max(span.len()),
            _ => span.len(),
        };
        let from = match last {
            Some((l, r, end)) if l == lane && r + 1 == row => end.min(span.start),
            _ => span.start,
        };
        saving += (span.end - from).min(cost);
        moved += copy.bytes;
        last = Some((lane, row, span.end));
        at.push(Place::Row((lane, row)));
    }
    let all = figures.h2d.count + figures.d2h.count;
    let tiny = at.len() as u64;
    let saving = saving.min(figures.span_ns);
    let is_worth = super::figures::share(saving, figures.recorded_ns()) >= thresholds::WORTH_SHARE;
    if tiny < thresholds::TINY_MIN || tiny * 2 < all || !is_worth {
        return None;
    }
    Some(Finding {
        title: format!(
            "{} of {} on average take {} with their calls",
            crate::text::counted(tiny, "copy", "copies"),
            bytes(moved / tiny),
            duration(saving),
        ),
        advice: "Gather the values on one side and copy them at once, or do on the GPU what they are fetched for.".to_owned(),
        ..scope.found(RULE, figures.span_ns, saving, &at)
    })
}
