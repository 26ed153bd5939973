//! Nobody asks: the thread that launches is asleep, or waits for input, at one line. No cure of the program's own is known.

use super::{
    Copied, DeviceFigures, Finding, Occurrence, Rule, Says, Scope, Severity, longest_first,
};
use ::program::Change;
use activity::units::{duration, percent, share};
use activity::{Direction, Ns, Span};
use causes::Bound;
use causes::asleep::{Slept, is_quiet};

/// So many copies to the CPU are results that come again and again.
const RESULTS: usize = 3;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if !cases::HOST_SHARE.is_reached_by(f.idle_share()) {
        return None;
    }
    let mut processes = scope.trace.processes().iter();
    let is_sampled = processes.any(|it| !it.sampled.is_empty());
    if !is_sampled && !scope.has_name(is_quiet) {
        return None;
    }
    let slept = find(scope, f);
    let time = slept.time();
    if !slept.is_most() || !cases::HOST_SHARE.is_reached_by(f.part(time)) {
        return None;
    }
    let place = place_of(slept, scope)?;
    if awaits(slept, scope, f, &place) {
        return None;
    }
    let rest = share(f.busy_ns, f.recorded_ns() - time);
    let rest = format!("the GPU is busy for {} of the rest", percent(rest));
    let gap = |of: &(Ns, Span)| (of.0, Occurrence::Gap(f.index, of.1));
    let at = longest_first(slept.at.iter().map(gap).collect());
    let found = scope.found(f.span_ns, time, &at);
    let line = slept.quiet.telling(scope.trace);
    let change = line.iter().flat_map(|it| scope.change("timeout", Some(it)));
    // Where the source shows no such argument there it waits for as long as it takes.
    let has_one = |it: &Change| it.set.iter().any(|set| set.old.is_some());
    let is_there = |it: &Change| it.place.as_ref() == line.as_ref().map(|it| &it.place);
    let change: Vec<Change> = change.filter(|it| has_one(it) && is_there(it)).collect();
    let advice = match change.is_empty() {
        true => "Nobody asks for more meanwhile, so that nothing is to be gained there.",
        false => "Where nobody asks for more, a shorter timeout lets the work begin sooner.",
    };
    Some(Finding {
        severity: Severity::Info,
        title: format!(
            "asleep or waiting for input at {place} for {} ({}); {rest}",
            duration(time),
            percent(f.part(time))
        ),
        advice: advice.to_owned(),
        change,
        says: Some(Says {
            bound: Bound::Host,
            part: f.part(time),
            why: format!("asleep or waiting for input at {place}"),
        }),
        instead_of: &[Rule::HostBound],
        ..found
    })
}

/// Whether the thread that launches is quiet at a line, and waits there for results of the device.
pub(super) fn awaits_results(scope: &Scope, f: &DeviceFigures) -> bool {
    let mut processes = scope.trace.processes().iter();
    processes.any(|it| !it.sampled.is_empty()) && {
        let slept = find(scope, f);
        let place = place_of(slept, scope);
        slept.is_most() && place.is_some_and(|it| awaits(slept, scope, f, &it))
    }
}

/// Found once: two rules ask.
fn find<'s>(scope: &'s Scope, f: &DeviceFigures) -> &'s Slept {
    let slept = || Slept::of(scope.causes, f.span.start, scope.gaps(f));
    scope.slept[f.index].get_or_init(slept)
}

/// Whether it is quiet at that line while the device works, and its results come back. It waits for those, or for a thread of
/// its own that brings the device its work.
fn awaits(slept: &Slept, scope: &Scope, f: &DeviceFigures, place: &str) -> bool {
    let line = slept.meanwhile.telling(scope.trace);
    let is_there = slept.named == 0
        && 3 * slept.meanwhile.all > slept.busy_samples
        && line.is_some_and(|it| it.place == place);
    let comes_back = |it: &&Copied| it.2.direction == Direction::D2H;
    let results = || scope.copies(f).iter().filter(comes_back).count();
    is_there && results() >= RESULTS
}

/// Where it is, by its line or by the function.
fn place_of(slept: &Slept, scope: &Scope) -> Option<String> {
    let line = slept.quiet.telling(scope.trace).map(|it| it.place);
    line.or_else(|| slept.name.clone())
}
