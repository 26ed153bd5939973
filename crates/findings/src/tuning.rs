//! Triton's autotuner at work all along: it tries all configurations of a kernel again and again.

use super::words::seen_at;
use super::{DeviceFigures, Finding, Occurrence, Rule, Scope};
use activity::Ns;
use activity::units::{count, percent};

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let (tuning, all) = figures::tuning::goes_on(scope.trace, &scope.processes(f), f.span)?;
    let (tuned, part) = (tuning.all, tuning.all as f64 / all as f64);
    let line = tuning.telling(scope.trace);
    let operations = scope.operations(f).map(|it| Occurrence::Row(it.0));
    let title = format!(
        "Triton's autotuner tries configurations all along, in {} of {} stack samples ({}){}",
        count(tuned),
        count(all),
        percent(part),
        seen_at(line.as_ref()),
    );
    let saving = (part * f.span_ns as f64) as Ns;
    Some(Finding {
        title,
        advice: "It tries all for each new value of its key: leave sizes that change out of the key, or round them.".to_owned(),
        change: scope.changes("triton.autotune: key without what changes", line.as_ref()),
        instead_of: &[Rule::LaunchBound, Rule::SyncInLoop, Rule::HostBound],
        ..scope.found(f.span_ns, saving, &operations.collect::<Vec<_>>())
    })
}
