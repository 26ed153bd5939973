//! Many copies so small that their fixed cost is all they are.

use super::{DeviceFigures, Finding, Occurrence, Scope};
use crate::thresholds;
use activity::units::{bytes, duration};
use activity::{Copy, Direction, Ns, Place};
use causes::graph::{CallId, Calls, NONE};
use replay::edits::AROUND_MAX;

pub(super) fn check(scope: &Scope, figures: &DeviceFigures) -> Option<Finding> {
    let mut at = Vec::new();
    let (mut moved, mut saving) = (0u64, 0 as Ns);
    let (mut copying, mut calling) = (0 as Ns, 0 as Ns);
    // Copies follow each other on their stream: what lies between two tiny ones goes with them.
    let mut last: Option<(usize, usize, Ns, CallId)> = None;
    for &((lane, row), span, copy) in scope.copies(figures) {
        // What the driver moves by itself is another rule's.
        let is_asked = copy.place.stream < Place::PREFETCHED;
        let is_tiny = is_asked
            && matches!(copy.direction, Direction::H2D | Direction::D2H)
            && copy.bytes <= Copy::TINY_BYTES;
        if !is_tiny {
            continue;
        }
        let graph = scope.causes.graph();
        let call = graph.call_at((lane, row));
        // A copy costs what it takes, or what its thread does for it; other work between two is something else's.
        let (from, cost) = match last {
            Some((l, r, end, before)) if l == lane && r + 1 == row => {
                (end.min(span.start), around(&graph.calls, call, before))
            }
            _ if call == NONE => (span.start, 0),
            _ => (span.start, graph.calls.span(call).len()),
        };
        saving += (span.end - from).min(cost.max(span.len()));
        moved += copy.bytes;
        copying += span.len();
        calling += match call {
            NONE => 0,
            call => graph.calls.span(call).len(),
        };
        last = Some((lane, row, span.end, call));
        at.push(Occurrence::Row((lane, row)));
    }
    let all = figures.h2d.count + figures.d2h.count;
    let tiny = at.len() as u64;
    let saving = saving.min(figures.span_ns);
    let is_worth = cases::WORTH_SHARE.is_reached_by(figures.part(saving));
    if tiny < thresholds::TINY_MIN || tiny * 2 < all || !is_worth {
        return None;
    }
    Some(Finding {
        title: format!(
            "{} ({} on average) take {}{}",
            activity::text::counted(tiny, "small copy", "small copies"),
            bytes(moved / tiny),
            duration(copying),
            match calling {
                0 => String::new(),
                calling => format!(", their calls {}", duration(calling)),
            },
        ),
        advice: "Gather the values and copy them in one go, or do that work on the GPU.".to_owned(),
        ..scope.found(figures.span_ns, saving, &at)
    })
}

/// So many calls back the call of the copy before is looked for.
const BACK: usize = 16;

/// What a thread does from one copy's call to the next one's return, without work of its own between calls.
fn around(calls: &Calls, call: CallId, before: CallId) -> Ns {
    let (mut at, mut time) = (call, 0);
    for _ in 0..BACK {
        if at == NONE || at == before {
            break;
        }
        // What a sync waits for besides is no matter of copies.
        time += match calls.kind[at as usize].is_wait() {
            true => calls.span(at).len().min(AROUND_MAX),
            false => calls.span(at).len(),
        };
        let previous = calls.previous[at as usize];
        if previous != NONE {
            let between = calls.span(at).start - calls.span(previous).end;
            time += if between > AROUND_MAX {
                0
            } else {
                between.max(0)
            };
        }
        at = previous;
    }
    time
}
