//! A phase of a scenario that ends before the kernels that it launched: what it was to time is not in it.

use super::{Finding, Occurrence, Scope, Severity};
use activity::units::{duration, share};
use activity::{Ns, RangeKind, Span, What};
use trace::LaneKind;

pub(super) fn check(scope: &Scope) -> Option<Finding> {
    scope.planned?;
    let mut launched = None;
    let (mut at, mut missed, mut named) = (Vec::new(), 0 as Ns, None);
    for (id, lane) in scope.trace.lanes().iter().enumerate() {
        if !matches!(lane.key().kind, LaneKind::Range { .. }) {
            continue;
        }
        for (row, activity) in scope.trace.activities(id, scope.rows(id)) {
            let What::Range(range) = activity.what else {
                continue;
            };
            if range.kind != RangeKind::Phase {
                continue;
            }
            let launched = launched.get_or_insert_with(|| LaunchOrder::of(scope));
            let Some(behind) = launched.behind(activity.span) else {
                continue;
            };
            if behind > missed {
                missed = behind;
                named = Some(range.name);
            }
            at.push(Occurrence::Row((id, row)));
        }
    }
    let whole = scope.span().len();
    if !cases::LARGE_SHARE.is_reached_by(share(missed, whole)) {
        return None;
    }
    Some(Finding {
        severity: Severity::Warning,
        title: format!(
            "`{}` ends {} before the kernels that it launched, so it only times their launch",
            scope.trace.names().short(named?),
            duration(missed),
        ),
        advice: "Sync the stream before reading the clock, or time with CUDA events.".to_owned(),
        ..scope.found(whole, 0, &at)
    })
}

/// The kernels of a pass by when they were launched: launches, and when each kernel ended.
struct LaunchOrder(Vec<(Ns, Ns)>);

impl LaunchOrder {
    fn of(scope: &Scope) -> LaunchOrder {
        let graph = scope.causes.graph();
        let mut kernels: Vec<(Ns, Ns)> = Vec::new();
        for figures in scope.devices {
            for ((lane, row), activity) in scope.operations(figures) {
                if let (What::Kernel(_), Some(op)) = (activity.what, graph.op_at(lane, row)) {
                    kernels.push((graph.issued(op), activity.span.end));
                }
            }
        }
        kernels.sort_unstable();
        LaunchOrder(kernels)
    }

    /// How long after the end of a phase the last kernel launched in it ended.
    fn behind(&self, phase: Span) -> Option<Ns> {
        let at = |time| self.0.partition_point(|it| it.0 < time);
        let launched = &self.0[at(phase.start)..at(phase.end)];
        let end = launched.iter().map(|it| it.1).max()?;
        (end > phase.end).then(|| end - phase.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_phase_is_told_what_looking_at_each_kernel_tells(
            mut kernels in prop::collection::vec((0i64..60, 0i64..90), 0..40),
            start in 0i64..60,
            length in 0i64..60,
        ) {
            let phase = Span::new(start, start + length);
            let launched_in_it = kernels.iter().filter(|(at, _)| (phase.start..phase.end).contains(at));
            let last = launched_in_it.map(|&(_, end)| end).max();
            let expected = last.filter(|&end| end > phase.end).map(|end| end - phase.end);
            kernels.sort_unstable();
            prop_assert_eq!(LaunchOrder(kernels).behind(phase), expected);
        }
    }
}
