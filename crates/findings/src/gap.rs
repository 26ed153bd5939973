//! What is worth a change beside one long gap: measured by the whole time it is next to nothing.

use super::{Finding, RULES, Rule, Scope, Severity};
use crate::thresholds;
use activity::units::share;
use figures::DeviceFigures;

/// What rules of kernels and copies find where nothing of that gap counts. `found` is what they find with it: without such a gap
/// among that nothing is told here.
pub(super) fn beside(scope: &Scope, found: &[Finding]) -> Vec<Finding> {
    let is_told = found.iter().any(|it| it.rule == Rule::NoCure);
    let is_run = scope.window.is_none() && scope.planned.is_none();
    let rest: Vec<DeviceFigures> = scope.devices.iter().map(|f| without(scope, f)).collect();
    if !is_told || !is_run || rest.iter().all(|f| f.not_recorded_ns == 0) {
        return Vec::new();
    }
    let within = scope.within(None, &rest);
    // A sequence of copies and kernels that runs once has nothing to run beside.
    let is_of_work = |rule: Rule| {
        rule.speeds_kernels()
            || rule == Rule::OwnKernels
            || rule.saves_copies() && !matches!(rule, Rule::NoOverlap | Rule::CopyBound)
    };
    let is_new = |rule: Rule| is_of_work(rule) && found.iter().all(|it| it.rule != rule);
    let rules = RULES.iter().filter(|it| is_new(it.rule));
    let mut all: Vec<Finding> = rules.flat_map(|it| it.findings(&within)).collect();
    let computing = rest.iter().map(|f| f.compute_ns).max().unwrap_or(0);
    let is_most = |it: &Finding| {
        let part = share(it.bound_ns, computing);
        it.rule.saves_copies() || cases::MOST_OF_KERNELS.is_reached_by(part)
    };
    all.retain(|it| it.bound_ns >= thresholds::BESIDE_GAP_NS && is_most(it));
    for it in &mut all {
        it.title = format!("beside that gap: {}", it.title);
        (it.severity, it.says, it.gain) = (Severity::Info, None, None);
    }
    all
}

/// A device's figures without one gap that holds nearly all of its idle time, and most of all.
fn without(scope: &Scope, f: &DeviceFigures) -> DeviceFigures {
    let longest = scope.gaps(f).map(|it| it.0.span.len()).max().unwrap_or(0);
    let is_one =
        cases::ONE_GAP.is_reached_by(share(longest, f.idle_ns)) && 2 * longest >= f.span_ns;
    let longest = if is_one { longest } else { 0 };
    DeviceFigures {
        idle_ns: f.idle_ns - longest,
        not_recorded_ns: f.not_recorded_ns + longest,
        ..f.clone()
    }
}
