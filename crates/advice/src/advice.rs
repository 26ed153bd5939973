//! What could be better in a variant, a run, or a program, with what it saves. Reports and the screen ask the same
//! question here, so they cannot disagree.

use std::ops::Range;

use crate::facts::Facts;
use crate::findings::{self, Finding, Scope, fold};
use activity::{Ns, Span};
use causes::Causes;
use figures::DeviceFigures;
use figures::passes::Passes;
use figures::steps::{self, Steps};
use replay::whatif::WhatIf;
use trace::Lane;

/// Who tells what could be better: what reports and the screen ask alike.
#[derive(Debug)]
pub struct Advice<'a> {
    facts: &'a Facts<'a>,
    pub causes: Causes<'a>,
}

/// What could be better in a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfProgram {
    /// In its steady steps, where it has some; else in all of it.
    pub findings: Vec<Finding>,
    /// What its start takes beside the steps; `None` where there are none.
    pub start_up: Option<Vec<Finding>>,
}

impl OfProgram {
    /// Both in one list, the start-up last and named so.
    pub fn in_one(self) -> Vec<Finding> {
        let start_up = self.start_up.into_iter().flatten().map(|finding| Finding {
            places: vec!["start-up".to_owned()],
            ..finding
        });
        self.findings.into_iter().chain(start_up).collect()
    }
}

/// Before every record, and not so far that sums of times overflow.
const LONG_AGO: Ns = Ns::MIN / 4;

/// What lies before a moment, measured against the whole.
fn before<'a>(whole: &Scope<'a>, until: Ns) -> Scope<'a> {
    let start = match whole.ranks {
        // Clocks that are hours off have begun hours earlier on that of all.
        Some(_) => LONG_AGO,
        None => whole
            .window
            .or(whole.trace.extent())
            .map_or(until, |of| of.start),
    };
    whole.within(Some(Span::new(start.min(until), until)), whole.devices)
}

impl<'a> Advice<'a> {
    /// Who rests on these facts.
    pub fn new(facts: &'a Facts<'a>) -> Self {
        let causes = facts.causes();
        Advice { facts, causes }
    }

    /// Where rules look: at what starts within `window`, or at everything. `devices` are the figures of that.
    pub fn scope<'s>(&'s self, window: Option<Span>, devices: &'s [DeviceFigures]) -> Scope<'s> {
        Scope::new(
            self.facts.trace,
            &self.causes,
            window,
            devices,
            self.facts.peaks,
        )
    }

    /// In one pass of a variant, by what its measured passes would save. `devices` are the pass's figures.
    pub fn of_pass(&self, passes: &Passes, pass: usize, devices: &[DeviceFigures]) -> Vec<Finding> {
        let of = passes.list[pass];
        let variant = passes.variants[of.variant].clone();
        let plan = self.facts.plan;
        let planned = plan.and_then(|plan| plan.variants.get(variant.index));
        let planned = planned.filter(|planned| planned.name == variant.name);
        let mut scope = self.scope(Some(of.span), devices);
        scope.planned = planned;
        let whatif = || WhatIf::of_repeats(self.facts.basis(), passes, of.variant);
        findings::weighed(&scope, whatif, &self.facts.stop)
    }

    /// In all variants of a run: of each its pass of median time.
    pub fn of_run(&self, passes: &Passes) -> Vec<Finding> {
        let found: Vec<(String, String, Vec<Finding>)> = (0..passes.variants.len())
            .filter_map(|variant| {
                let pass = passes.representative(variant)?;
                let of = passes.list[pass];
                if of.is_open || !of.is_measured || self.facts.stop.is_stopped() {
                    return None;
                }
                let devices = figures::count(self.facts.trace, None, Some(of.span));
                let findings = self.of_pass(passes, pass, &devices);
                let variant = &passes.variants[variant];
                Some((variant.name.clone(), variant.label(), findings))
            })
            .collect();
        let found = found.iter();
        in_one(found.map(|(name, label, found)| (name.as_str(), label.clone(), found.as_slice())))
    }

    /// In what is no run of a scenario. `whole` looks at all of it, or at what is asked about.
    pub fn of_program(&self, whole: &Scope<'_>, steps: &[Steps]) -> OfProgram {
        let stop = &self.facts.stop;
        if self.causes.graph().capture(whole.window).is_some() {
            return OfProgram {
                findings: Vec::new(),
                start_up: None,
            };
        }
        let whatif = || replayed(self.facts, steps::main(steps), whole.window);
        let telling = steps.iter().filter(|steps| steps.are_telling());
        // On the clock of all, where it is known.
        let aligned = |steps: &Steps| match whole.ranks {
            Some(ranks) => ranks.on_all(steps.process, steps.steady_span()),
            None => steps.steady_span(),
        };
        let Some(window) = telling.map(aligned).reduce(Span::hull) else {
            let devices: Vec<_>;
            let mut scope = whole.clone();
            if whole.window.is_none() && whole.ranks.is_none() {
                let begins = |f: &DeviceFigures| steps::begins(self.facts.trace, f.index);
                let since = |f: &DeviceFigures| f.clone().since(begins(f));
                devices = whole.devices.iter().map(since).collect();
                scope = whole.within(None, &devices);
            }
            return OfProgram {
                findings: findings::weighed(&scope, whatif, stop),
                start_up: None,
            };
        };
        let of_all = whole.within(Some(window), &[]);
        let devices = figures::of_each(self.facts.trace, None, &|device| of_all.window_on(device));
        let with_pause = |f: DeviceFigures| {
            let steps = of_all.window_on(f.index);
            let pause = steps.map_or(0, |steps| self.causes.pause_behind(f.index, steps));
            f.with_idle(0, pause)
        };
        let devices: Vec<_> = devices.into_iter().map(with_pause).collect();
        let steady = whole.within(Some(window), &devices);
        let mut findings = findings::weighed(&steady, whatif, stop);
        if let Some(rate) = steps::main(steps).and_then(Steps::pace) {
            findings::no_cure::paced(&steady, rate, &mut findings);
        }
        let step = steps::main(steps).map(|of| (of.median_ns, window.len()));
        findings.iter_mut().for_each(|finding| finding.step = step);
        OfProgram {
            findings,
            start_up: Some(findings::of_start_up(&before(whole, window.start))),
        }
    }
}

/// Operations that findings are replayed with, where steps can stand for others. A replay takes some 3 us for each, and
/// every finding takes a few.
const OPERATIONS: usize = 200_000;

/// Operations that they are replayed with at most.
const OPERATIONS_MAX: usize = 500_000;

/// The steps that are replayed: the last ones, where they are many. At least as many as make an interval.
const STEPS_MIN: usize = 6;

fn replayed<'a>(
    facts: &'a Facts<'a>,
    main: Option<&Steps>,
    window: Option<Span>,
) -> Result<WhatIf<'a>, String> {
    let operations = |window: Option<Span>| -> usize {
        let streams = facts.trace.streams();
        let of = |(_, lane): (_, &Lane)| window.map_or(lane.len(), |w| lane.starting(w).len());
        streams.map(of).sum()
    };
    let few = operations(window) <= OPERATIONS;
    let Some(main) = main.filter(|_| !few) else {
        let count = operations(window);
        if count > OPERATIONS_MAX {
            return Err(format!(
                "{count} operations without steps are too many to replay for each finding: ask `cuptop whatif`"
            ));
        }
        return WhatIf::of_steps(facts.basis(), main, window);
    };
    let mut steady = main.steady.clone();
    let of_steps = |steady: &Range<usize>| {
        let (first, last) = (main.spans[steady.start], main.spans[steady.end - 1]);
        Span::new(first.start, last.end)
    };
    while steady.len() > STEPS_MIN && operations(Some(of_steps(&steady))) > OPERATIONS {
        steady.start += (steady.len() - STEPS_MIN).div_ceil(2);
    }
    let span = of_steps(&steady);
    let count = operations(Some(span));
    if count > OPERATIONS_MAX {
        return Err(format!(
            "the last {STEPS_MIN} steps have {count} operations, too many to replay for each finding: ask `cuptop whatif`"
        ));
    }
    let times = main.steady.len() as f64 / steady.len() as f64;
    let last = Steps {
        steady,
        ..main.clone()
    };
    let mut of = WhatIf::of_steps(facts.basis(), Some(&last), Some(span))?;
    of.times = times;
    Ok(of)
}

/// The findings of variants in one list, each under its variant's name; points of a sweep in one line.
pub fn in_one<'f>(of: impl IntoIterator<Item = (&'f str, String, &'f [Finding])>) -> Vec<Finding> {
    let named = fold::variants(of).into_iter();
    let mut all: Vec<Finding> = named
        .flat_map(|(name, findings)| {
            findings.into_iter().map(move |mut finding| {
                finding.title = format!("{name}: {}", finding.headline());
                finding.places.clear();
                finding
            })
        })
        .collect();
    all.sort_by_key(Finding::order);
    all
}
