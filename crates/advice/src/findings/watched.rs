//! Recording takes a part of the time that is measured: there is a cheaper way.

use super::{Finding, Occurrence, Scope, Severity};
use crate::thresholds;
use activity::Ns;
use activity::units::{count, duration, percent, share};
use trace::{LaneKind, SourceKind};

/// Records of launches, which GPUs wait for.
pub(super) fn launches(scope: &Scope) -> Option<Finding> {
    // A scenario is always recorded as a whole.
    if scope.trace.source.kind == SourceKind::Cuda {
        return None;
    }
    let cost = scope.watching?;
    let mut lanes = scope.trace.lanes().iter();
    let waits = match lanes.any(|lane| lane.key().kind == LaneKind::Sync) {
        true => "Leave out --waits, which costs most here. ",
        false => "",
    };
    Some(Finding {
        advice: format!(
            "{waits}Record only a part (cuptop trace --duration 10s, --range NAME, or the key R on the screen). Each cause's share stays valid; without cuptop a step is shorter by this overhead.",
        ),
        ..found(scope, cost.launches, "launches", cost.waited_ns)?
    })
}

/// Records of graphs' nodes.
pub(super) fn nodes(scope: &Scope) -> Option<Finding> {
    let cost = scope.watching?;
    Some(Finding {
        advice: "For times closer to an unprofiled run, make one record per graph launch: cuptop trace --graphs whole.".to_owned(),
        ..found(scope, cost.graph_nodes, "nodes of CUDA graphs", cost.nodes_ns)?
    })
}

fn found(scope: &Scope, records: u64, of: &str, [least, most]: [Ns; 2]) -> Option<Finding> {
    let span = scope.watching?.span_ns;
    if share(least, span) < thresholds::WATCHED_SHARE {
        return None;
    }
    let all = scope.devices.iter();
    let everywhere: Vec<_> = all.map(|f| Occurrence::Gap(f.index, f.span)).collect();
    Some(Finding {
        severity: Severity::Info,
        title: format!(
            "profiling overhead: recording {} {of} costs up to {} ({}, estimated from an H200)",
            count(records),
            duration(most),
            percent(share(most, span)),
        ),
        // The program does not save it: it is cuptop's own.
        ..scope.found(0, 0, &everywhere)
    })
}
