//! A launch queue that is full: the CPU is so far ahead that its launches wait for the GPU.

use super::{DeviceFigures, Finding, Occurrence, Scope, Severity, longest_first};
use crate::thresholds;
use activity::text::counted;
use activity::units::{duration, percent};
use activity::{Ns, What};
use trace::{LaneKey, LaneKind, Measure};

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let (trace, processes) = (scope.trace, scope.processes(f));
    let usage = &trace.devices()[f.index].usage;
    let (mut at, mut time, mut busy) = (Vec::new(), 0 as Ns, 0 as Ns);
    let kind = LaneKind::Overhead;
    let lane = |process| trace.lane_id(LaneKey { process, kind });
    for id in processes.into_iter().filter_map(lane) {
        for (row, activity) in trace.activities(id, scope.rows(id)) {
            let What::Overhead(it) = activity.what else {
                continue;
            };
            if trace
                .names()
                .full(it.name)
                .eq_ignore_ascii_case("command buffer full")
            {
                time += activity.span.len();
                busy += usage.time(Measure::Busy, activity.span);
                at.push((activity.span.len(), Occurrence::Row((id, row))));
            }
        }
    }
    // Where the GPU idles meanwhile the queue is no proof of work.
    let is_ahead = busy as f64 >= thresholds::AHEAD_SHARE * time as f64;
    let is_worth = cases::WORTH_SHARE.is_reached_by(f.part(time));
    if !cases::LOOP_MIN.is_reached_by(at.len()) || !is_ahead || !is_worth {
        return None;
    }
    Some(Finding {
        severity: Severity::Info,
        title: format!(
            "the launch queue was full {} for {} ({}): the CPU is far ahead of the GPU",
            counted(at.len() as u64, "time", "times"),
            duration(time),
            percent(f.part(time)),
        ),
        advice: "Launches are no matter here: they wait for room, and the GPU works meanwhile."
            .to_owned(),
        ..scope.found(0, 0, &longest_first(at))
    })
}
