//! The GPU is idle because launches do not come fast enough.
//!
//! Short kernels alone say nothing: a GPU whose queue is full is busy however short they are. What
//! counts is idle time whose cause is that the next operation had not been launched, or just had.

use super::{Finding, Place, Scope, thresholds};
use crate::activity::Ns;
use crate::activity::units::{duration, percent};
use crate::analysis::figures;
use crate::analysis::gaps::{Cause, HostWork};

pub(super) const RULE: &str = "launch-bound";

pub(super) fn look(scope: &Scope, device: usize) -> Option<Finding> {
    let f = &scope.devices[device];
    let is_launching = |cause: Cause| {
        let is_host = matches!(cause, Cause::Host(HostWork::Calling | HostWork::Elsewhere));
        is_host || cause == Cause::Latency
    };
    let mut gaps = scope.gaps[device].clone();
    gaps.retain(|g| g.gap.len() <= thresholds::LAUNCH_GAP_MAX && is_launching(g.cause));
    let idle: Ns = gaps.iter().map(|g| g.gap.len()).sum();
    let is_bound = f.idle_share() >= thresholds::LAUNCH_IDLE_SHARE
        && figures::share(idle, f.idle_ns) >= thresholds::LAUNCH_CAUSE_SHARE;
    if f.ops < thresholds::LAUNCH_OPS_MIN || !is_bound {
        return None;
    }
    gaps.sort_by_key(|g| std::cmp::Reverse(g.gap.len()));
    let at: Vec<Place> = gaps.iter().map(|g| Place::Gap(f.index, g.gap)).collect();
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
