//! A wait for the GPU between one launch and the next, over and over.

use rustc_hash::FxHashMap;

use super::no_overlap::Engines;
use super::words::seen_at;
use super::{Finding, Occurrence, Scope, thresholds};
use crate::causes::Waits;
use crate::graph::CallId;
use crate::lines::StackCounts;
use crate::{figures, tables};
use activity::Ns;
use activity::units::{duration, percent};

pub(super) fn check(scope: &Scope, device: usize) -> Option<Finding> {
    let f = &scope.devices[device];
    // What is idle around waits is a part of what is idle.
    if f.idle_share() < thresholds::WORTH_SHARE {
        return None;
    }
    let calls = &scope.causes.graph().calls;
    let mut waits = Waits::default();
    let mut by_wait: FxHashMap<CallId, Ns> = FxHashMap::default();
    let mut seen = StackCounts::default();
    for (gap, pieces) in scope.gaps(f) {
        for piece in &*pieces {
            // A copy that blocks its caller is another rule's.
            if let Some((wait, part)) = waits.cut(scope.causes, gap, piece).wait
                && calls.kind[wait as usize].is_wait()
            {
                *by_wait.entry(wait).or_default() += part;
                if 2 * part >= piece.span.len() {
                    scope.causes.add_samples(gap.next, piece.span, &mut seen);
                }
            }
        }
    }
    let lasted = tables::union(by_wait.keys().map(|&wait| calls.span(wait)).collect());
    let idle = by_wait.values().sum::<Ns>().min(lasted);
    let mut at: Vec<(Ns, CallId)> = by_wait
        .into_iter()
        .map(|(wait, part)| (part, wait))
        .collect();
    at.sort_by_key(|&(part, wait)| (std::cmp::Reverse(part), wait));
    let at: Vec<Occurrence> = at
        .into_iter()
        .map(|(_, wait)| Occurrence::Row(calls.at(wait)))
        .collect();
    let share = figures::share(idle, f.recorded_ns());
    let least = match share >= thresholds::LARGE_SHARE {
        true => thresholds::FEW_WAITS_MIN,
        false => thresholds::LOOP_MIN,
    };
    if (at.len() as u64) < least || share < thresholds::WORTH_SHARE {
        return None;
    }
    // Waits keep operations from running beside each other, too, which is no idle time. Without all of them the host is
    // done sooner by what they last, and the device as soon as its busiest engine is.
    let window = scope.window_on(f.index).unwrap_or(f.span);
    let processes = scope.processes(f).into_iter();
    let waited = processes
        .flat_map(|process| calls.ended(process, Ns::MAX))
        .filter(|call| calls.kind[**call as usize].is_wait())
        .map(|&call| calls.span(call))
        .filter(|span| span.overlaps(window));
    let bound =
        tables::union(waited.collect()).min(f.recorded_ns() - Engines::new(scope, f).least());
    Some(Finding {
        title: format!(
            "{} between launches: the GPU is idle for {} ({}) around them{}",
            activity::text::counted(at.len() as u64, "wait of the host", "waits of the host"),
            duration(idle),
            percent(figures::share(idle, f.recorded_ns())),
            seen_at(seen.telling(scope.trace).as_ref()),
        ),
        advice: "Launch ahead and wait once at the end; where one stream needs another's result, use an event (cudaStreamWaitEvent) instead of the host.".to_owned(),
        ..scope.found(f.span_ns, bound, &at)
    })
}
