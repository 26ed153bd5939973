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

/// The kernels of a pass by when they were launched, made so that each phase can ask once. A loop has many.
struct LaunchOrder {
    /// When each was launched, in order.
    at: Vec<Ns>,
    /// A tree of maxima: their ends from `at.len()` on, and above two nodes the later end.
    latest: Vec<Ns>,
}

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
        LaunchOrder::new(kernels)
    }

    /// Of kernels' launches and ends.
    fn new(mut kernels: Vec<(Ns, Ns)>) -> LaunchOrder {
        kernels.sort_unstable();
        let count = kernels.len();
        let mut latest = vec![Ns::MIN; 2 * count];
        for (leaf, &(_, end)) in latest[count..].iter_mut().zip(&kernels) {
            *leaf = end;
        }
        for node in (1..count).rev() {
            latest[node] = latest[2 * node].max(latest[2 * node + 1]);
        }
        LaunchOrder {
            at: kernels.into_iter().map(|(issued, _)| issued).collect(),
            latest,
        }
    }

    /// How long after the end of a phase the last kernel launched in it ended.
    fn behind(&self, phase: Span) -> Option<Ns> {
        let count = self.at.len();
        let mut low = count + self.at.partition_point(|&at| at < phase.start);
        let mut high = count + self.at.partition_point(|&at| at < phase.end);
        let mut end = Ns::MIN;
        while low < high {
            if low % 2 == 1 {
                end = end.max(self.latest[low]);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                end = end.max(self.latest[high]);
            }
            (low, high) = (low / 2, high / 2);
        }
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
            kernels in prop::collection::vec((0i64..60, 0i64..90), 0..40),
            start in 0i64..60,
            length in 0i64..60,
        ) {
            let phase = Span::new(start, start + length);
            let launched_in_it = kernels.iter().filter(|(at, _)| (phase.start..phase.end).contains(at));
            let last = launched_in_it.map(|&(_, end)| end).max();
            let expected = last.filter(|&end| end > phase.end).map(|end| end - phase.end);
            prop_assert_eq!(LaunchOrder::new(kernels).behind(phase), expected);
        }
    }
}
