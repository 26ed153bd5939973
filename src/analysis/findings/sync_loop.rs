//! A wait for the GPU between one launch and the next, over and over.

use rustc_hash::FxHashSet;

use super::{Finding, Place, Scope, thresholds};
use crate::activity::Ns;
use crate::activity::units::{duration, percent};
use crate::analysis::causes::Culprit;
use crate::analysis::figures;

pub(super) const RULE: &str = "sync-in-loop";

pub(super) fn look(scope: &Scope, device: usize) -> Option<Finding> {
    let f = &scope.devices[device];
    let mut at = Vec::new();
    let (mut idle, mut waited): (Ns, Ns) = (0, 0);
    let calls = &scope.causes.graph().calls;
    let mut waits = FxHashSet::default();
    for (gap, pieces) in scope.gaps(f) {
        // A copy that blocks its caller is another rule's. A wait for something long before the gap is
        // not its reason.
        let mut mine = pieces.iter().filter_map(|piece| match piece.culprit {
            Culprit::Call(call) if piece.cause.is_sync() => Some(call),
            _ => piece.root.filter(|&root| {
                calls.kind[root as usize].is_wait() && scope.causes.begins(root, gap)
            }),
        });
        let Some(wait) = mine.next() else {
            continue;
        };
        idle += gap.span.len();
        if waits.insert(wait) {
            waited += calls.span(wait).len();
            at.push(Place::Row(calls.at(wait)));
        }
    }
    // Without the waits, no more is won than they last.
    let idle = idle.min(waited);
    let is_worth = figures::share(idle, f.span_ns) >= thresholds::WORTH_SHARE;
    if (at.len() as u64) < thresholds::LOOP_MIN || !is_worth {
        return None;
    }
    Some(Finding {
        title: format!(
            "{} between launches: the GPU is idle for {} ({}) around them",
            crate::text::counted(at.len() as u64, "wait of the host", "waits of the host"),
            duration(idle),
            percent(figures::share(idle, f.span_ns)),
        ),
        advice: "Launch ahead and wait once at the end; where one stream needs another's result, use an event (cudaStreamWaitEvent) instead of the host.".to_owned(),
        ..scope.found(RULE, f.span_ns, idle, &at)
    })
}
