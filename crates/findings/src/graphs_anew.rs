//! CUDA graphs that are captured and instantiated again for each launch.

use super::{DeviceFigures, Finding, Occurrence, Rule, Says, Scope, longest_first};
use activity::text::counted;
use activity::units::{duration, percent};
use causes::graph::{CallId, CallKind};
use causes::{Bound, Culprit, Piece};

/// What makes a graph that can run.
const MAKES: &str = "GraphInstantiate";

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if !scope.has_name(|it| it.contains(MAKES)) {
        return None;
    }
    let graph = scope.causes.graph();
    let window = scope.window_on(f.index).unwrap_or(f.span);
    // In order of time by thread: a server makes many before it launches the first.
    let (mut made, mut launched, mut is_made) = (Vec::new(), 0, false);
    for call in (0..graph.calls.len() as CallId).filter(|&it| window.overlaps(graph.calls.span(it)))
    {
        let is_launch = graph.calls.kind[call as usize] == CallKind::GraphLaunch;
        if is_launch && std::mem::take(&mut is_made) {
            launched += 1;
        } else if !is_launch && graph.function(scope.trace, call).contains(MAKES) {
            is_made = true;
            made.push((
                graph.calls.span(call).len(),
                Occurrence::Row(graph.calls.at(call)),
            ));
        }
    }
    let part = launched as f64 / made.len().max(1) as f64;
    let is_so = cases::LOOP_MIN.is_reached_by(launched) && cases::ANEW_SHARE.is_reached_by(part);
    let makes = |it: &Piece| match it.culprit {
        Culprit::Call(call) => graph.function(scope.trace, call).contains(MAKES),
        _ => false,
    };
    // What captures, and throws away, lies in the same gap.
    let gaps = scope.gaps(f).filter(|(_, pieces)| pieces.iter().any(makes));
    let time = gaps.map(|it| it.0.span.len()).sum();
    if !is_so || !cases::WARNING_SHARE.is_reached_by(f.part(time)) {
        return None;
    }
    let found = scope.found(f.span_ns, time, &longest_first(made));
    Some(Finding {
        title: format!(
            "{} made anew, each for one launch (cudaGraphInstantiate): the GPU is idle for {} ({}) meanwhile",
            counted(found.count, "CUDA graph is", "CUDA graphs are"),
            duration(time),
            percent(f.part(time)),
        ),
        advice: "Capture and instantiate once, before the loop, and launch that again. Where arguments change, cudaGraphExecUpdate takes less.".to_owned(),
        change: scope.change("graph-once", None),
        says: Some(Says {
            bound: Bound::Host,
            part: f.part(time),
            why: format!("{} in making CUDA graphs anew", percent(f.part(time))),
        }),
        instead_of: &[Rule::LaunchBound, Rule::GraphNodes, Rule::GraphLaunch],
        ..found
    })
}
