//! The GPU is idle because launches do not come fast enough.
//!
//! Short kernels alone say nothing: a GPU whose queue is full is busy however short they are. What
//! counts is idle time whose cause is that the next operation had not been launched, or just had.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::{DeviceFigures, EVIDENCE_MAX, Finding, Occurrence, Scope, Severity};
use crate::causes::{Group, LAUNCH_GAP_MAX};
use crate::thresholds;
use activity::units::{duration, percent};
use activity::{NameId, Ns, Span};

/// With fewer kernels from one wait to the next a graph has hardly anything to hold.
const GRAPH_MIN: u64 = 4;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if f.kernels < thresholds::LAUNCH_OPS_MIN || f.idle_share() < thresholds::LAUNCH_IDLE_SHARE {
        return None;
    }
    let (mut idle, mut of_graphs, mut cold) = (0 as Ns, 0 as Ns, 0 as Ns);
    let (mut count, mut waits) = (0, 0);
    // The longest, and of equal ones the first.
    let mut longest: BinaryHeap<(Reverse<Ns>, Span)> = BinaryHeap::new();
    let (causes, names) = (scope.causes, scope.trace.names());
    let mut loaders: FxHashMap<NameId, bool> = FxHashMap::default();
    let mut loads = |id| {
        let is_one = || names.full(id).to_lowercase().contains("loader");
        *loaders.entry(id).or_insert_with(is_one)
    };
    for (gap, pieces) in scope.gaps(f) {
        // Where the host waited, the wait is to blame, and no graph reaches across it.
        let is_wait = pieces.iter().any(|it| causes.wait_of(it).is_some());
        waits += u64::from(is_wait);
        let mut sum = 0;
        for piece in &pieces {
            // Launching less often leaves what only a first run takes, and what loads data.
            if causes.is_first(gap.next, piece) {
                cold += piece.span.len();
            } else if !is_wait
                && gap.span.len() <= LAUNCH_GAP_MAX
                && causes.group(gap, piece) == Group::Launch
                && !causes.host_name(piece.culprit).is_some_and(&mut loads)
            {
                sum += piece.span.len();
            }
        }
        if sum > 0 {
            let is_graph = causes.graph().ops.is_graph(gap.next);
            of_graphs += if is_graph { sum } else { 0 };
            (idle, count) = (idle + sum, count + 1);
            longest.push((Reverse(sum), gap.span));
            if longest.len() > EVIDENCE_MAX {
                longest.pop();
            }
        }
    }
    // One cold pass does not tell how the next ones launch.
    let is_cold = scope.window.is_none() && cold > idle;
    if is_cold || f.part(idle) < thresholds::LAUNCH_IDLE_SHARE {
        return None;
    }
    let longest = longest.into_sorted_vec().into_iter();
    let longest: Vec<_> = longest.map(|it| Occurrence::Gap(f.index, it.1)).collect();
    let found = scope.found(f.span_ns, idle, &longest);
    Some(Finding {
        // Graphs of two or three kernels save little.
        severity: match f.kernels < GRAPH_MIN * waits {
            true => Severity::Info,
            false => found.severity,
        },
        count,
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
        ..found
    })
}
