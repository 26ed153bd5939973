//! Time that only the first run pays: modules loaded, functions loaded on first use, code compiled.

use super::{Finding, Place, Scope, thresholds};
use crate::activity::units::{duration, percent};
use crate::activity::{Span, What};
use crate::analysis::causes::is_loading;
use crate::analysis::graph::CallKind;
use crate::analysis::{figures, tables};
use crate::trace::LaneKind;

pub(super) const RULE: &str = "cold-start";

pub(super) fn look(scope: &Scope) -> Option<Finding> {
    let whole = scope.window.or(scope.trace.extent())?;
    let mut at = Vec::new();
    let mut spans: Vec<Span> = Vec::new();
    for (id, lane) in scope.trace.lanes().iter().enumerate() {
        if !matches!(
            lane.key().kind,
            LaneKind::Thread { .. } | LaneKind::Overhead
        ) {
            continue;
        }
        for row in scope.rows(id) {
            let activity = scope.trace.activity(id, row);
            let names = scope.trace.names();
            let is_loading = match activity.what {
                What::Call(call) => CallKind::of(names.full(call.name)) == CallKind::Load,
                What::Overhead(o) => is_loading(names.full(o.name)),
                _ => false,
            };
            if is_loading {
                spans.push(activity.span);
                at.push((activity.span.len(), Place::Row((id, row))));
            }
        }
    }
    let time = tables::union(spans);
    let share = figures::share(time, whole.len());
    if time < thresholds::COLD_MIN || share < thresholds::WORTH_SHARE {
        return None;
    }
    at.sort_by_key(|&(length, _)| std::cmp::Reverse(length));
    let at: Vec<Place> = at.into_iter().map(|(_, place)| place).collect();
    Some(Finding {
        title: format!(
            "cold start: {} ({}) go to loading GPU code",
            duration(time),
            percent(share),
        ),
        advice: "Warm up before measuring: run everything once, or load ahead with CUDA_MODULE_LOADING=EAGER.".to_owned(),
        ..scope.found(RULE, whole.len(), time, &at)
    })
}
