//! Recording the nodes of CUDA graphs takes a part of the time that is measured: there is a cheaper way.

use super::{Finding, Place, Scope, Severity, thresholds};
use crate::activity::units::{count, duration, percent};
use crate::analysis::{figures, watching};

pub(super) const RULE: &str = "graph-records";

pub(super) fn look(scope: &Scope) -> Option<Finding> {
    // What recording costs is the same whichever pass is looked at.
    if scope.window.is_some() {
        return None;
    }
    let cost = watching::of(scope.trace, scope.causes.graph(), scope.devices)?;
    let [least, most] = cost.nodes_ns;
    if figures::share(least, cost.span_ns) < thresholds::WATCHED_SHARE {
        return None;
    }
    let at: Vec<Place> = scope
        .devices
        .iter()
        .map(|f| Place::Gap(f.index, f.span))
        .collect();
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
        ..scope.found(RULE, 0, 0, &at)
    })
}
