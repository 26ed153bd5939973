//! A wait for the GPU between one launch and the next, over and over.

use super::{Finding, Place, Scope, thresholds};
use crate::activity::Ns;
use crate::activity::units::{duration, percent};
use crate::analysis::figures;
use crate::trace::describe;

pub(super) const RULE: &str = "sync-in-loop";

pub(super) fn look(scope: &Scope, device: usize) -> Option<Finding> {
    let f = &scope.devices[device];
    let mut at = Vec::new();
    let mut idle: Ns = 0;
    for gap in &scope.gaps[device] {
        let Some((lane, row)) = gap.wait.and_then(|e| Some((e.lane?, e.row?))) else {
            continue;
        };
        // A copy that blocks its caller is another rule's.
        if describe::is_host_wait(scope.trace, &scope.trace.activity(lane, row).what) {
            idle += gap.gap.len();
            at.push(Place::Row((lane, row)));
        }
    }
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
