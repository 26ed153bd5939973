//! The thread that launches is ready to run and does not: no core is free, or its container has used up its share.

use super::{Check, DeviceFigures, Finding, Occurrence, Scope, Severity, fold};
use crate::thresholds;
use activity::Ns;
use activity::units::{duration, number, percent, share};
use figures::off_cpu;

/// Either of them, or both in one line.
pub(super) fn check(scope: &Scope) -> Option<Finding> {
    let checks = [Check::Timeline(limit), Check::Device(waits)];
    fold::together(checks.iter().map(|check| check.findings(scope)))
}

/// Waits for a core while the GPU waited for the host.
fn waits(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if scope
        .trace
        .processes()
        .iter()
        .all(|it| it.off_cpu.is_empty())
    {
        return None;
    }
    let idle = off_cpu::idle(scope.trace, scope.causes, f, scope.window_on(f.index));
    let waiting = share(idle.waiting_ns, idle.looked_ns);
    let of_span = share(idle.waiting_ns, f.span_ns);
    if waiting < thresholds::CORE_WAIT_SHARE || !cases::WORTH_SHARE.is_reached_by(of_span) {
        return None;
    }
    let at: Vec<Occurrence> = idle
        .worst
        .map(|span| Occurrence::Gap(f.index, span))
        .into_iter()
        .collect();
    Some(Finding {
        title: format!(
            "no CPU core was free for about {} of the {} that the GPU waited for the CPU ({}, estimated)",
            duration(idle.waiting_ns),
            duration(idle.looked_ns),
            percent(waiting),
        ),
        advice: "More threads are busy than there are cores. Use fewer data loader workers, a lower OMP_NUM_THREADS or more cores; pin the launching thread to its own core.".to_owned(),
        ..scope.found(f.span_ns, idle.most_waiting_ns, &at)
    })
}

/// Stops by the limit of the process's control group.
fn limit(scope: &Scope) -> Option<Finding> {
    let throttling = scope
        .trace
        .processes()
        .iter()
        .map(|it| &it.off_cpu.throttling)
        .max_by_key(|it| it.throttled)?;
    let share = throttling.throttled_periods as f64 / throttling.periods.max(1) as f64;
    if share < thresholds::CPU_LIMIT_SHARE || throttling.throttled_periods < 2 {
        return None;
    }
    let idle: Ns = scope.devices.iter().map(|f| f.idle_ns).max()?;
    let at: Vec<Occurrence> = scope
        .devices
        .iter()
        .zip(throttling.worst)
        .map(|(f, span)| Occurrence::Gap(f.index, span))
        .collect();
    let cores = match throttling.cores {
        0.0 => String::new(),
        cores => format!(" of {} cores", number(cores)),
    };
    Some(Finding {
        severity: Severity::Warning,
        title: format!(
            "the CPU quota{cores} (cgroup) ran out in {} of its periods: threads were throttled for {}, summed over cores",
            percent(share),
            duration(throttling.throttled),
        ),
        cure: "adding CPU cores",
        advice: "Give the job more CPUs (docker --cpus, the pod's CPU limit, srun --cpus-per-task), or start fewer threads. Throttling stops the launching thread too.".to_owned(),
        ..scope.found(scope.span().len(), throttling.throttled.min(idle), &at)
    })
}
