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
            "watching costs this program, which waits for its {} launches, about {} to {} ({} to {}; an estimate from what a launch cost on an H200)",
            count(cost.launches),
            duration(least),
            duration(most),
            percent(figures::share(least, cost.span_ns)),
            percent(figures::share(most, cost.span_ns)),
        ),
        advice: format!(
            "{}Record a part of it (cuptop trace --duration 10s, --range NAME, or R on the screen): outside it launches are not recorded. Shares of causes hold; the time of a step is that much shorter without cuptop.",
            if has_waits {
                "Leave out --waits, which costs such a program most. "
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
            "watching the {} nodes of CUDA graphs costs this program about {} to {} ({} to {}; an estimate from what a node cost on an H200)",
            count(cost.graph_nodes),
            duration(least),
            duration(most),
            percent(figures::share(least, cost.span_ns)),
            percent(figures::share(most, cost.span_ns)),
        ),
        advice: "For times nearer to those of the program alone, record graphs as a whole: cuptop trace --graphs whole, one record a launch.".to_owned(),
        // The program does not save it: it is cuptop's own.
        ..scope.found(0, 0, &everywhere(scope))
    })
}
