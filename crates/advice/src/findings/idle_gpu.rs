//! A GPU that the program uses elsewhere and leaves idle while another computes.

use super::{Finding, Occurrence, Scope};
use crate::thresholds;
use activity::units::percent;
use trace::Trace;

pub(super) fn check(scope: &Scope) -> Option<Finding> {
    // Only a pass is known to be all of its program: a rank's timeline may well leave GPUs to other ranks.
    scope.planned?;
    let f = scope.devices.iter().max_by_key(|f| f.compute_ns)?;
    let is_used = |trace: &Trace, index: usize| {
        let mut lanes = trace.streams_of(index);
        lanes.any(|(_, lane)| !lane.is_empty())
    };
    let idle = (0..scope.trace.devices().len()).find(|&index| {
        is_used(scope.trace, index) && scope.devices.iter().all(|f| f.index != index)
    })?;
    if f.part(f.compute_ns) < thresholds::COMPUTE_SHARE || f.kernels < 2 {
        return None;
    }
    let at = [Occurrence::Gap(idle, f.span)];
    let id = scope.trace.devices()[idle].info.id;
    Some(Finding {
        title: format!(
            "GPU {id} is idle all the time, while GPU {} computes {} of the time",
            f.device,
            percent(f.part(f.compute_ns)),
        ),
        advice: "Give independent parts of the work to the other GPU.".to_owned(),
        ..scope.found(f.span_ns, f.compute_ns / 2, &at)
    })
}
