//! The GPU is idle because launches do not come fast enough.
//!
//! Short kernels alone say nothing: a GPU whose queue is full is busy however short they are. What
//! counts is idle time whose cause is that the next operation had not been launched, or just had.

use super::{Finding, Place, Scope, thresholds};
use crate::activity::units::{duration, percent};
use crate::activity::{Ns, Span};
use crate::analysis::causes::{Gap, Piece};
use crate::analysis::figures;

pub(super) const RULE: &str = "launch-bound";

pub(super) fn look(scope: &Scope, device: usize) -> Option<Finding> {
    let f = &scope.devices[device];
    // Where the host waited, the wait is to blame and not the launches after it.
    let launching = |(gap, pieces): (Gap, Vec<Piece>)| {
        let has_waited = pieces.iter().any(|p| {
            p.cause.is_wait() || p.root.is_some_and(|root| scope.causes.begins(root, gap))
        });
        let of = pieces.iter().filter(|p| p.cause.is_launching());
        let sum: Ns = of.map(|p| p.span.len()).sum();
        (gap.span.len() <= thresholds::LAUNCH_GAP_MAX && !has_waited && sum > 0)
            .then_some((sum, gap.span))
    };
    let mut gaps: Vec<(Ns, Span)> = scope.gaps(f).filter_map(launching).collect();
    let idle: Ns = gaps.iter().map(|g| g.0).sum();
    let is_bound = f.idle_share() >= thresholds::LAUNCH_IDLE_SHARE
        && figures::share(idle, f.idle_ns) >= thresholds::LAUNCH_CAUSE_SHARE;
    if f.ops < thresholds::LAUNCH_OPS_MIN || !is_bound {
        return None;
    }
    gaps.sort_by_key(|g| std::cmp::Reverse(g.0));
    let at: Vec<Place> = gaps.iter().map(|g| Place::Gap(f.index, g.1)).collect();
    Some(Finding {
        title: format!(
            "launch-bound: the GPU is idle for {} ({}) because launches do not keep up",
            duration(idle),
            percent(figures::share(idle, f.span_ns)),
        ),
        advice: "Launch less often: a CUDA graph, fused kernels (torch.compile), larger batches."
            .to_owned(),
        ..scope.found(RULE, f.span_ns, idle, &at)
    })
}
