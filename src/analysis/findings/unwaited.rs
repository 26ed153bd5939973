//! A phase of a scenario that ends before the kernels that it launched: what it was to time is not in it.

use super::{Finding, Place, Scope, Severity, thresholds};
use crate::activity::units::duration;
use crate::activity::{Ns, RangeKind, Span, What};
use crate::analysis::figures;
use crate::trace::LaneKind;

pub(super) const RULE: &str = "forgot-sync";

pub(super) fn look(scope: &Scope) -> Option<Finding> {
    scope.planned?;
    let graph = scope.causes.graph();
    let (mut at, mut missed, mut named) = (Vec::new(), 0 as Ns, None);
    for (id, lane) in scope.trace.lanes().iter().enumerate() {
        if !matches!(lane.key().kind, LaneKind::Range { .. }) {
            continue;
        }
        for row in scope.rows(id) {
            let activity = scope.trace.activity(id, row);
            let What::Range(range) = activity.what else {
                continue;
            };
            if range.kind != RangeKind::Phase {
                continue;
            }
            let Some(behind) = behind(scope, graph, activity.span) else {
                continue;
            };
            if behind > missed {
                missed = behind;
                named = Some(range.name);
            }
            at.push(Place::Row((id, row)));
        }
    }
    let whole = scope.span().len();
    if figures::share(missed, whole) < thresholds::WARNING_SHARE {
        return None;
    }
    Some(Finding {
        severity: Severity::Warning,
        title: format!(
            "`{}` ends {} before the kernels that it launched: what it times is their launch",
            scope.trace.names().short(named?),
            duration(missed),
        ),
        advice: "Wait for the stream before the clock is read, or time with events on the stream."
            .to_owned(),
        ..scope.found(RULE, whole, 0, &at)
    })
}

/// How long after the end of a phase the last kernel launched in it ended.
fn behind(scope: &Scope, graph: &crate::analysis::graph::Graph, phase: Span) -> Option<Ns> {
    let ends = scope.devices.iter().flat_map(|f| {
        scope.operations(f).filter_map(|((lane, row), activity)| {
            let op = graph.op_at(lane, row)?;
            let is_kernel = matches!(activity.what, What::Kernel(_));
            let issued = graph.issued(op);
            (is_kernel && issued >= phase.start && issued < phase.end).then_some(activity.span.end)
        })
    });
    ends.max().map(|end| end - phase.end).filter(|&d| d > 0)
}
