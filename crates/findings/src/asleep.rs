//! Nobody asks: the thread that launches is asleep, or waits for input, at one line. No cure of the program's own is known.

use super::scope::Slept;
use super::{
    Copied, DeviceFigures, Finding, Occurrence, Rule, Says, Scope, Severity, longest_first,
};
use ::program::Change;
use activity::units::{duration, percent, share};
use activity::{Direction, Ns, Span};
use causes::stacks;
use causes::{Bound, Cause, Group};

/// Functions that sleep, or wait for somebody from outside, as profilers name them.
const NAMES: [&str; 7] = [
    "built-in function sleep",
    "nanosleep",
    "usleep",
    "epoll_wait",
    "built-in method select",
    "built-in method poll",
    "built-in method accept",
];

/// Calls of the C library that wait for somebody who types, whole.
const TYPED: [&str; 6] = ["getc", "fgetc", "getchar", "fgets", "getline", "scanf"];

/// So many copies to the CPU are results that come again and again.
const RESULTS: usize = 3;

/// Whether a call of the system only sleeps.
pub fn is_sleep(name: &str) -> bool {
    name.ends_with("sleep")
}

/// Whether it sleeps, or waits for somebody from outside.
fn is_quiet(name: &str) -> bool {
    TYPED.contains(&name) || NAMES.iter().any(|it| name.contains(it))
}

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if !cases::HOST_SHARE.is_reached_by(f.idle_share()) {
        return None;
    }
    let mut processes = scope.trace.processes().iter();
    let is_sampled = processes.any(|it| !it.sampled.is_empty());
    if !is_sampled && !scope.has_name(is_quiet) {
        return None;
    }
    let slept = Slept::find(scope, f);
    let time = slept.time();
    if !slept.is_most() || !cases::HOST_SHARE.is_reached_by(f.part(time)) {
        return None;
    }
    let place = slept.place(scope)?;
    if slept.awaits(scope, f, &place) {
        return None;
    }
    let rest = share(f.busy_ns, f.recorded_ns() - time);
    let rest = format!("the GPU is busy for {} of the rest", percent(rest));
    let found = scope.found(f.span_ns, time, &longest_first(slept.at.clone()));
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
        let slept = Slept::find(scope, f);
        let place = slept.place(scope);
        slept.is_most() && place.is_some_and(|it| slept.awaits(scope, f, &it))
    }
}

impl Slept {
    /// Found once: two rules ask.
    fn find<'s>(scope: &'s Scope, f: &DeviceFigures) -> &'s Slept {
        scope.slept[f.index].get_or_init(|| Slept::new(scope, f))
    }

    fn new(scope: &Scope, f: &DeviceFigures) -> Slept {
        let mut slept = Slept::default();
        let (causes, trace) = (scope.causes, scope.trace);
        let mut worked = f.span.start;
        for (gap, pieces) in scope.gaps(f) {
            let works = Span::new(worked, gap.span.start.max(worked));
            worked = gap.span.end;
            if let Some((process, thread)) = causes.launcher(gap.next) {
                let at = (process, thread, works);
                slept.busy_samples += stacks::add_quiet(trace, at, &mut slept.meanwhile);
            }
            let is_its = |piece: &&causes::Piece| {
                piece.cause == Cause::Host && causes.group(gap, piece) == Group::Host
            };
            let mut here = 0;
            for piece in pieces.iter().filter(is_its) {
                here += piece.span.len();
                let name = causes.host_name(piece.culprit);
                let name = name.map(|id| trace.names().full(id));
                if let Some(name) = name.filter(|it| is_quiet(it)) {
                    slept.named += piece.span.len();
                    slept.name.get_or_insert_with(|| name.to_owned());
                    continue;
                }
                slept.other += piece.span.len();
                if let Some((process, thread)) = causes.launcher(gap.next) {
                    let at = (process, thread, piece.span);
                    slept.samples += stacks::add_quiet(trace, at, &mut slept.quiet);
                }
            }
            if here > 0 {
                slept.at.push((here, Occurrence::Gap(f.index, gap.span)));
            }
        }
        slept
    }

    fn time(&self) -> Ns {
        let part = self.quiet.all as f64 / self.samples.max(1) as f64;
        self.named + (part * self.other as f64) as Ns
    }

    /// Whether that is most of what is seen.
    fn is_most(&self) -> bool {
        self.named > 0 || 2 * self.quiet.all >= self.samples
    }

    /// Whether it is quiet at that line while the device works, and its results come back. It waits for those, or for a thread of
    /// its own that brings the device its work.
    fn awaits(&self, scope: &Scope, f: &DeviceFigures, place: &str) -> bool {
        let line = self.meanwhile.telling(scope.trace);
        let is_there = self.named == 0
            && 3 * self.meanwhile.all > self.busy_samples
            && line.is_some_and(|it| it.place == place);
        let comes_back = |it: &&Copied| it.2.direction == Direction::D2H;
        let results = || scope.copies(f).iter().filter(comes_back).count();
        is_there && results() >= RESULTS
    }

    /// Where it is, by its line or by the function.
    fn place(&self, scope: &Scope) -> Option<String> {
        let line = self.quiet.telling(scope.trace).map(|it| it.place);
        line.or_else(|| self.name.clone())
    }
}
