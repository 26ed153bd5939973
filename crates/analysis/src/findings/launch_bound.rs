//! The GPU is idle because launches do not come fast enough.
//!
//! Short kernels alone say nothing: a GPU whose queue is full is busy however short they are. What
//! counts is idle time whose cause is that the next operation had not been launched, or just had.

use std::cmp::Reverse;

use super::{DeviceFigures, EVIDENCE_MAX, Finding, Occurrence, Scope, thresholds};
use crate::causes::{Group, LAUNCH_GAP_MAX, Piece};
use activity::units::{duration, percent};
use activity::{Ns, Span};

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if f.kernels < thresholds::LAUNCH_OPS_MIN || f.idle_share() < thresholds::LAUNCH_IDLE_SHARE {
        return None;
    }
    let (mut of_graphs, mut gaps): (Ns, Vec<(Ns, Span)>) = Default::default();
    let names = scope.trace.names();
    let loads = |name| names.full(name).to_lowercase().contains("loader");
    for (gap, pieces) in scope.gaps(f).filter(|it| it.0.span.len() <= LAUNCH_GAP_MAX) {
        // Where the host waited, the wait is to blame and not the launches after it.
        // Launching less often leaves what only a first run takes, and what loads data.
        let is_launch = |it: &&Piece| {
            scope.causes.group(gap, it) == Group::Launch
                && !scope.causes.is_first(gap.next, it)
                && !scope.causes.host_name(it.culprit).is_some_and(loads)
        };
        let of_launches = pieces.iter().filter(is_launch);
        let sum: Ns = of_launches.map(|piece| piece.span.len()).sum();
        if sum > 0 {
            let is_graph = scope.causes.graph().ops.is_graph(gap.next);
            of_graphs += if is_graph { sum } else { 0 };
            gaps.push((sum, gap.span));
        }
    }
    let idle: Ns = gaps.iter().map(|g| g.0).sum();
    // One cold pass does not tell how the next ones launch.
    let cold = || scope.idle_that(f, |gap, piece| scope.causes.is_first(gap.next, piece));
    let is_cold = scope.window.is_none() && cold() > idle;
    if is_cold || f.part(idle) < thresholds::LAUNCH_IDLE_SHARE {
        return None;
    }
    gaps.sort_unstable_by_key(|&(time, span)| (Reverse(time), span));
    let longest = gaps.iter().take(EVIDENCE_MAX);
    let longest: Vec<_> = longest.map(|it| Occurrence::Gap(f.index, it.1)).collect();
    Some(Finding {
        count: gaps.len() as u64,
        title: format!(
            "the GPU is idle for {} ({}) in gaps under 1 ms between operations",
            duration(idle),
            percent(f.part(idle)),
        ),
        advice: if 2 * of_graphs > idle {
            "Most of it is before graph launches: capture more per graph, or launch the next graph earlier."
        } else {
            "Launch less often: a CUDA graph, fused kernels (torch.compile), larger batches."
        }
        .to_owned(),
        ..scope.found(f.span_ns, idle, &longest)
    })
}
