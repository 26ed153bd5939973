//! Launches that return only when their kernel is over.

use super::{DeviceFigures, Finding, Rule, Says, Scope, longest_first};
use activity::units::{count, duration, percent};
use causes::Bound;
use figures::launches;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let graph = scope.causes.graph();
    let found = launches::blocked(scope.trace, graph, f.index, scope.window_on(f.index))?;
    let time = found.waited.min(f.idle_ns);
    if !cases::WARNING_SHARE.is_reached_by(f.part(time)) {
        return None;
    }
    let at = longest_first(found.at);
    Some(Finding {
        title: format!(
            "{} launches return only when their kernel is over, and wait for {} ({}); the GPU is idle for {} ({})",
            count(at.len() as u64),
            duration(found.waited),
            percent(f.part(found.waited)),
            duration(f.idle_ns),
            percent(f.idle_share()),
        ),
        advice: "CUDA_LAUNCH_BLOCKING=1 does that, which helps to find errors: take it out of the environment, and the CPU runs ahead. Some debuggers and profilers do, too."
            .to_owned(),
        change: scope.change("unblock", None),
        says: Some(Says {
            bound: Bound::Sync,
            part: f.idle_share(),
            why: "each launch waits until its kernel is over (CUDA_LAUNCH_BLOCKING=1?)".to_owned(),
        }),
        instead_of: &[Rule::LaunchBound, Rule::SyncInLoop],
        ..scope.found(f.span_ns, time, &at)
    })
}
