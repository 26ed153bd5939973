//! Recording takes a part of the time that is measured: there is a cheaper way.

use super::{Finding, Occurrence, Scope, Severity, thresholds};
use crate::figures;
use activity::units::{count, duration, percent};
use trace::{LaneKind, SourceKind};

fn everywhere(scope: &Scope) -> Vec<Occurrence> {
    let all = scope.devices.iter();
    all.map(|f| Occurrence::Gap(f.index, f.span)).collect()
}

/// Records of launches, which GPUs wait for.
pub(super) fn launches(scope: &Scope) -> Option<Finding> {
    // A scenario is always recorded as a whole.
    if scope.trace.source.kind == SourceKind::Cuda {
        return None;
    }
    let cost = scope.watching?;
    let [least, most] = cost.waited_ns;
    if figures::share(least, cost.span_ns) < thresholds::WATCHED_SHARE {
        return None;
    }
    let mut lanes = scope.trace.lanes().iter();
    let has_waits = lanes.any(|lane| lane.key().kind == LaneKind::Sync);
    Some(Finding {
        severity: Severity::Info,
        title: format!(
            "profiling overhead: recording {} launches costs about {} to {} ({} to {}; estimated from an H200)",
            count(cost.launches),
            duration(least),
            duration(most),
            percent(figures::share(least, cost.span_ns)),
            percent(figures::share(most, cost.span_ns)),
        ),
        advice: format!(
            "{}Record only a part (cuptop trace --duration 10s, --range NAME, or R on the screen). Shares of causes still hold; without cuptop a step is shorter by that much.",
            if has_waits {
                "Leave out --waits, which costs most here. "
            } else {
                ""
            }
        ),
        ..scope.found(0, 0, &everywhere(scope))
    })
}

/// Records of graphs' nodes.
pub(super) fn nodes(scope: &Scope) -> Option<Finding> {
    let cost = scope.watching?;
    let [least, most] = cost.nodes_ns;
    if figures::share(least, cost.span_ns) < thresholds::WATCHED_SHARE {
        return None;
    }
    Some(Finding {
        severity: Severity::Info,
        title: format!(
            "profiling overhead: recording {} nodes of CUDA graphs costs about {} to {} ({} to {}; estimated from an H200)",
            count(cost.graph_nodes),
            duration(least),
            duration(most),
            percent(figures::share(least, cost.span_ns)),
            percent(figures::share(most, cost.span_ns)),
        ),
        advice: "For times closer to an unprofiled run, make one record per graph launch: cuptop trace --graphs whole.".to_owned(),
        // The program does not save it: it is cuptop's own.
        ..scope.found(0, 0, &everywhere(scope))
    })
}
