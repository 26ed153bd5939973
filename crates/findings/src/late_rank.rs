//! A rank of a job comes late to its collectives, and the others wait for it.

use std::cmp::Reverse;

use super::{Finding, Occurrence, Scope, Severity};
use activity::Span;
use jobs::{Lateness, Reason};

/// The rank that costs most: what without it is saved at several ranks' does not add up.
pub(super) fn check(scope: &Scope) -> Option<Finding> {
    let ranks = scope.ranks?;
    let first = ranks.late.first()?;
    let device = ranks.ranks[first.rank].device;
    let late = ranks.split.late.iter();
    let mut late: Vec<_> = late.filter(|late| late.rank == first.rank).collect();
    late.sort_by_key(|late| (Reverse(late.by), late.start));
    // Before it came, in its own time.
    let at: Vec<Occurrence> = late
        .into_iter()
        .map(|late| Occurrence::Gap(device, Span::new(late.start - late.by, late.start)))
        .collect();
    let bound = first.saving.map_or(first.late_ns, |saving| saving.all_ns);
    let found = scope.found(scope.span().len(), bound, &at);
    let (severity, gain) = match first.is_profilers() {
        true => (Severity::Info, None),
        false => {
            let name = &ranks.ranks[first.rank].name;
            (found.severity, first.without(&format!("{name}'s")))
        }
    };
    Some(Finding {
        title: ranks.headline(first),
        gain,
        severity,
        advice: advice(first).to_owned(),
        ..found
    })
}

/// What to do about its reason.
fn advice(first: &Lateness) -> &'static str {
    match &first.reason {
        _ if first.is_profilers() => {
            "The profiler itself makes this rank late: without it the rank would be on time."
        }
        Reason::Idle(_) | Reason::IdleForMany => {
            "Reduce the CPU work on that rank (to see it, press Enter in the view `ranks`)."
        }
        Reason::SlowKernels(_) => {
            "Compare its clocks, power and temperature with another rank's; check who else uses that GPU."
        }
        Reason::MoreWork(_) => {
            "Balance the work: the same batch size, tokens and layers on each rank."
        }
        Reason::Waited(_) => "Look at the rank that it is waiting for.",
        Reason::Unknown => {
            "Compare its timeline with another rank's, just before the same collective."
        }
    }
}
