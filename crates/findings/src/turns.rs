//! Threads of one process that work by turns, though each has work of its own. A lock lets one of them go on at a time, in
//! Python the GIL.

use rustc_hash::FxHashSet;

use super::{DeviceFigures, Finding, Occurrence, Rule, Says, Scope};
use ::program::Framework;
use activity::units::{duration, percent};
use activity::{Ns, Span};
use causes::Bound;
use figures::turns::Turns;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if !cases::LAUNCH_IDLE_SHARE.is_reached_by(f.idle_share()) {
        return None;
    }
    // Its threads launch onto all devices of a process, which may be many: they are looked at once.
    let of = |it: usize| {
        scope.turns[it]
            .get_or_init(|| of_process(scope, it))
            .as_ref()
    };
    let it = scope.processes(f).into_iter().find_map(of)?;
    let (lock, advice) = lock(scope, it.hold_it);
    let (bound, cure) = match it.hold_it {
        false => (Bound::Launch, ""),
        true => (Bound::Sync, "releasing the lock"),
    };
    let n = it.at.len();
    let at: Vec<Occurrence> = it.at.iter().copied().map(Occurrence::Row).collect();
    let saving = (it.together - it.together / n as Ns).max(f.idle_ns);
    Some(Finding {
        title: format!(
            "{n} threads ({} and others) take turns for {} ({}): {lock} makes them no faster than one",
            it.name,
            duration(it.together),
            percent(it.part),
        ),
        advice: advice.to_owned(),
        says: Some(Says {
            bound,
            part: f.part(f.idle_ns),
            why: format!("{n} threads take turns ({lock})"),
        }),
        cure,
        instead_of: &[Rule::LaunchBound, Rule::SyncInLoop],
        ..scope.found(f.span_ns, saving, &at)
    })
}

fn of_process(scope: &Scope, process: usize) -> Option<Turns> {
    let streams = scope.trace.streams_in(process);
    let its: FxHashSet<usize> = streams.filter_map(|it| it.1.key().kind.device()).collect();
    let work = scope.devices.iter().filter(|f| its.contains(&f.index));
    let work = work.map(|f| f.span).reduce(Span::hull);
    let window = scope.window_of(process).or(work)?;
    Turns::of(scope.trace, scope.causes.graph(), process, window)
}

/// What lets one thread go on at a time, and what to do about it.
fn lock(scope: &Scope, hold_it: bool) -> (&'static str, &'static str) {
    let is_python =
        scope.trace.stacks().files().next().is_some() || scope.framework() != Framework::Cuda;
    match (hold_it, is_python) {
        (true, _) => (
            "a lock",
            "Release the lock before the wait for the GPU: each thread has a stream of its own.",
        ),
        (false, true) => (
            "the GIL",
            "Launch from processes, or from one thread in larger batches; a CUDA graph takes the GIL once for many kernels.",
        ),
        (false, false) => (
            "a lock",
            "Launch from processes, or from one thread in larger batches, or do less under the lock.",
        ),
    }
}
