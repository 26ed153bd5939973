//! The steps of a program as the screen shows them: a bar each, and one of them in view.

use super::idle::IdleMap;
use super::{Scope, Selection, State};
use activity::text::counted;
use activity::units::{count, duration};
use activity::{Ns, Span};
use advice::Facts;
use advice::verdict::{Answered, Bound, OddSteps, Verdict};
use causes::{Group, Shares};
use figures::steps::{Origin, Slow, Steps};
use trace::Measure;

/// A step is on screen while no more than this many times its length is.
const IN_VIEW: (Ns, Ns) = (3, 2);

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedStep {
    pub span: Span,
    /// What most of its idle time is for, where it is idle for a tenth of it.
    pub idle: Option<Group>,
    pub is_odd: bool,
    /// What tells it from a typical one: "typical", "warm-up", "+727 ms: save at train.py:31".
    what: String,
}

/// The steps of the process whose steps the headline speaks of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepList {
    /// In order.
    pub all: Vec<ListedStep>,
    /// The one of median length of those that take most time.
    pub typical: usize,
    /// How long it takes.
    pub median: Ns,
    /// Whether no range marks them, and they are what repeats.
    pub is_found: bool,
    /// Tokens a second of a server: least and most.
    pub tokens_per_s: Option<(f64, f64)>,
    /// That in words, of uneven ones their range.
    length: String,
    /// How many of them are no warm-up, and how many of those are of another kind than that which takes most time.
    steady: usize,
    others: usize,
    /// Whether those before are so many that they are called slower, and no warm-up.
    begins_slowly: bool,
    /// One that shows what the headline says: the typical one, another of its kind, an odd or a slow one.
    first: usize,
}

impl StepList {
    /// Those of some steps, of which or of some of which the headline is.
    pub(super) fn of(facts: &Facts<'_>, steps: &Steps, headline: &Verdict) -> StepList {
        let (trace, main) = (facts.trace, steps.main());
        let why = |kind| OddSteps::of(trace, &facts.causes(), steps, kind)?.why;
        let why: Vec<Option<String>> = steps.kinds.iter().map(why).collect();
        let these = match (headline.scope.of, headline.bound_by) {
            (Answered::OddSteps, _) => match &headline.odd {
                Some(odd) if odd.are_of_other_kind() => {
                    let is_one = |at: &usize| odd.spans.contains(&steps.spans[*at]);
                    (0..steps.spans.len()).filter(is_one).collect()
                }
                _ => main.odd.clone(),
            },
            (_, Bound::Peer) => main.slow.iter().map(|it| it.step).collect(),
            _ => Vec::new(),
        };
        let all = steps.spans.iter().copied().reduce(Span::hull);
        let idle = IdleMap::of(facts, all.unwrap_or_default(), &facts.stop).unwrap_or_default();
        let uses = |device: &usize| {
            let mut streams = trace.streams_of(*device);
            streams.any(|(_, lane)| lane.key().process == steps.process)
        };
        let devices: Vec<usize> = (0..trace.devices().len()).filter(uses).collect();
        let add = |sum: Shares, of: Shares| std::array::from_fn(|i| sum[i] + of[i]);
        let (mut in_regular, mut regular) = (Shares::default(), 0);
        let mut listed = |(at, &span): (usize, &Span)| {
            let each = devices.iter().map(|&it| idle.idle_within(it, span));
            let (is_odd, mut what) = told(steps, &why, at);
            // What most of them take longer for is what the headline says.
            if headline.bound_by == Bound::Peer && main.slow.iter().any(|it| it.step == at) {
                "late rank".clone_into(&mut what);
            }
            let shares = each.fold(Shares::default(), add);
            if !is_odd && main.steps.binary_search(&at).is_ok() {
                in_regular = add(in_regular, shares);
                regular += span.len();
            }
            let most = Group::most(shares, span.len() / 10).into_iter().next();
            let busy = |it: &usize| trace.devices()[*it].usage.time(Measure::Busy, span);
            let busy: Ns = devices.iter().map(busy).sum();
            // Of more operations than are looked at nobody knows why.
            let is_idle = 10 * busy < 9 * span.len() * devices.len() as Ns;
            ListedStep {
                span,
                idle: most.map(|it| it.0).or(is_idle.then_some(Group::Unknown)),
                is_odd,
                what,
            }
        };
        let all: Vec<ListedStep> = steps.spans.iter().enumerate().map(&mut listed).collect();
        // Of the steps that the headline is of, the middle one by length: a late rank makes steps slow.
        // Where the typical one is idle for another cause than most are, it would not show what the headline says.
        let most = Group::most(in_regular, regular / 10).first().map(|it| it.0);
        let is_told = |at: &usize| all[*at].idle == most;
        let mut these = match these.is_empty() && !is_told(&main.typical) {
            true => main.regular().filter(is_told).collect(),
            false => these,
        };
        these.sort_by_key(|step| steps.spans[*step].len());
        let first = these.get(these.len() / 2).copied();
        StepList {
            all,
            typical: main.typical,
            median: main.median_ns,
            is_found: matches!(steps.from, Origin::Period { .. } | Origin::Waits { .. }),
            tokens_per_s: steps.tokens().map(|it| it.1),
            length: main.length(),
            steady: steps.spans.len() - steps.steady.start,
            begins_slowly: steps.begins_slowly(),
            others: steps.kinds.iter().skip(1).map(|it| it.steps.len()).sum(),
            first: first.unwrap_or(main.typical),
        }
    }

    /// Half of the steady steps' time goes to steps no longer than this.
    pub fn middle(&self) -> Ns {
        let steady = &self.all[self.all.len() - self.steady..];
        let mut lengths: Vec<Ns> = steady.iter().map(|it| it.span.len()).collect();
        lengths.sort_unstable();
        let (all, mut sum) = (lengths.iter().sum::<Ns>(), 0);
        let mut is_half = |it: &Ns| {
            sum += it;
            2 * sum >= all
        };
        lengths
            .into_iter()
            .find(|it| is_half(it))
            .unwrap_or(self.median)
    }

    #[cfg(test)]
    pub(crate) fn of_lengths(lengths: &[Ns]) -> StepList {
        let mut end = 0;
        let step = |length: &Ns| {
            end += length;
            ListedStep {
                span: Span::new(end - length, end),
                idle: None,
                is_odd: false,
                what: String::new(),
            }
        };
        StepList {
            all: lengths.iter().map(step).collect(),
            steady: lengths.len(),
            ..StepList::default()
        }
    }

    /// Which step a moment lies in, else the one before it.
    pub fn at(&self, time: Ns) -> usize {
        let after = self.all.partition_point(|it| it.span.start <= time);
        after.saturating_sub(1)
    }

    /// "step 318 of 752 · 56.1 ms · typical", of all "706 steps of 56.1 ms · 37 odd · 2 of other kinds · after 46 of warm-up".
    pub fn words(&self, one: Option<usize>) -> String {
        let all = self.all.len() as u64;
        let Some(at) = one else {
            let odd = self.all.iter().filter(|it| it.is_odd).count();
            let warm_up = self.all.len() - self.steady;
            // What lists findings counts no such step either.
            let open = self.all.iter().filter(|it| it.what == OPEN).count();
            let told = [
                (odd, format!(" · {odd} odd")),
                (self.others, format!(" · {} of other kinds", self.others)),
                match self.begins_slowly {
                    true => (warm_up, format!(" · after {warm_up} slower ones")),
                    false => (warm_up, format!(" · after {warm_up} of warm-up")),
                },
                (open, format!(" · {open} unfinished")),
            ];
            let told = told.into_iter().filter(|it| it.0 > 0).map(|it| it.1);
            let main = self.steady.saturating_sub(self.others + open);
            let main = counted(main as u64, "step", "steps");
            return format!("{main} of {}{}", self.length, told.collect::<String>());
        };
        let (step, number) = (&self.all[at], count(at as u64 + 1));
        let length = duration(step.span.len());
        format!("step {number} of {} · {length} · {}", count(all), step.what)
    }
}

/// What is said of a step that lasted on when the recording ended.
const OPEN: &str = "its end was not seen";

/// Whether a step is odd, and what is said of it; of odd steps of each kind it is known why.
fn told(steps: &Steps, why: &[Option<String>], at: usize) -> (bool, String) {
    let mut kinds = steps.kinds.iter().zip(why);
    let Some((kind, why)) = kinds.find(|it| it.0.steps.binary_search(&at).is_ok()) else {
        let is_early = at < steps.steady.start;
        let what = match is_early {
            true if steps.begins_slowly() => "slower than later",
            true => "warm-up",
            false => OPEN,
        };
        return (false, what.to_owned());
    };
    let is_odd = kind.odd.binary_search(&at).is_ok();
    let over = steps.spans[at].len() - kind.median_ns;
    let slow = kind.slow.iter().find(|it| it.step == at).map(Slow::text);
    let told = match why.clone().filter(|_| is_odd).or(slow) {
        Some(why) if !why.is_empty() => format!("+{}: {why}", duration(over)),
        _ if kind.is_uneven && over == 0 => "median".to_owned(),
        _ if !kind.is_uneven && over.abs() <= (kind.median_ns / 20).max(kind.deviation_ns) => {
            "typical".to_owned()
        }
        _ => format!("median {}", duration(kind.median_ns)),
    };
    match kind.name.as_str() {
        "" => (is_odd, told),
        name => (is_odd, format!("{name} · {told}")),
    }
}

impl State {
    /// The steps of what is on screen: a scenario has its repeats instead.
    pub fn steps(&self) -> Option<&StepList> {
        let steps = self.answer()?.step_list.as_deref()?;
        (self.scope() == Scope::Whole).then_some(steps)
    }

    /// The step that is on screen, whole or in part.
    pub fn step_in_view(&self) -> Option<usize> {
        let (steps, window) = (self.steps()?, self.focus.camera.viewport.window);
        let middle = window.start + window.len() / 2;
        let at = steps.at(middle);
        let span = steps.all.get(at)?.span;
        let is_more = IN_VIEW.1 * window.len() > IN_VIEW.0 * span.len();
        (span.contains(middle) && !is_more).then_some(at)
    }

    /// Puts a step on screen, across the whole width.
    pub(crate) fn show_step(&mut self, at: usize) {
        if let Some(span) = self.steps().and_then(|it| Some(it.all.get(at)?.span)) {
            self.focus.camera.viewport.show(span);
            self.focus.camera.is_following = false;
        }
    }

    /// Puts the step so many further on screen; from a part of the run without one the typical step.
    pub(crate) fn show_next_step(&mut self, by: isize) {
        let (Some(steps), here) = (self.steps(), self.step_in_view()) else {
            return;
        };
        let next = here.map_or(Some(steps.typical), |at| at.checked_add_signed(by));
        match next.filter(|next| *next < steps.all.len()) {
            Some(next) => self.show_step(next),
            None if by < 0 => self.say("this is the first step"),
            None => self.say("this is the last step"),
        }
    }

    /// Once it is known what a timeline that was opened is made of, puts the step on screen that the headline is of. Whoever has
    /// looked elsewhere meanwhile is left there. Returns whether it did.
    pub(super) fn open_on_step(&mut self) -> bool {
        let is_known = self.answer().is_some_and(|it| it.as_of.is_none());
        if self.focus.camera.opened.is_none() || !is_known {
            return false;
        }
        let opened = self.focus.camera.opened.take();
        let is_untouched = Some(self.focus.camera.viewport.window) == opened
            && self.focus.selection == Selection::default();
        let first = self.steps().map(|it| it.first).filter(|_| is_untouched);
        first.map(|first| self.show_step(first)).is_some()
    }
}
