//! The work behind an answer: on an analysis thread, on a snapshot of the timeline.

use std::sync::Arc;

use super::{Answer, StepTime};
use crate::report::KnownGpus;
use activity::feed::Stop;
use activity::{Ns, Span};
use advice::{Advice, Facts, verdict, watching};
use figures::passes::Passes;
use figures::steps::{self, Steps};
use scenario::plan::Plan;
use trace::{LaneKind, Trace};

/// Operations that are looked at while a program runs: some hundred steps of a training loop.
const RECENT: usize = 50_000;

/// What was done this long before the first of them is looked at too: it may be what they waited for.
const BEFORE: Ns = 50_000_000;

/// What of a run is looked at, as it was when it was asked about.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// Passes and variants.
    pub(super) passes: Passes,
    /// The pass on screen: index into `passes.list`; `None` for the whole.
    pub(super) pass: Option<usize>,
    pub(super) plan: Option<Arc<Plan>>,
    pub(super) gpus: KnownGpus,
}

impl Subject {
    fn pass(&self) -> Option<Span> {
        self.pass.map(|pass| self.passes.list[pass].span)
    }

    /// Those of its run and of its devices.
    fn facts<'t>(&'t self, facts: Facts<'t>, stop: &Stop) -> Facts<'t> {
        let (peaks, known) = (self.gpus.peaks(facts.trace), self.gpus.rates(facts.trace));
        let mut facts = facts.of_run(self.plan.as_deref(), peaks, known);
        facts.stop = stop.clone();
        facts
    }
}

/// The last steps of a timeline that grows, or the last part of a pass. `None` when told to stop.
pub(super) fn live(trace: &Trace, looked: &Subject, stop: &Stop) -> Option<Answer> {
    let pass = looked.pass();
    let Some(mut window) = arrived(trace) else {
        return Some(Answer::default());
    };
    if let Some(recent) = steps::recent(trace, RECENT) {
        window.start = recent.start.max(window.start);
    }
    if let Some(pass) = pass {
        window = window.intersect(pass);
    }
    // A pass is a step by itself.
    let steps = match pass {
        None => steps::find(trace, Some(window)),
        Some(_) => Vec::new(),
    };
    if let Some(steady) = steps.iter().map(Steps::steady_span).reduce(Span::hull) {
        window = steady;
    }
    if stop.is_stopped() {
        return None;
    }
    let around = Span::new(window.start.saturating_sub(BEFORE), window.end);
    let facts = looked.facts(Facts::within(trace, around), stop);
    judge(&facts, Some(window), &steps, looked, true)
}

/// From the first record to the moment up to which operations and calls have both come. Their records arrive in buffers
/// of their own. `None` before the first operation.
pub(super) fn arrived(trace: &Trace) -> Option<Span> {
    let mut last = vec![(None::<Ns>, None::<Ns>); trace.processes().len()];
    for lane in trace.lanes() {
        let Some(row) = lane.len().checked_sub(1) else {
            continue;
        };
        let (operation, call) = last.get_mut(lane.key().process)?;
        let of = match lane.key().kind {
            LaneKind::Stream { .. } => operation,
            LaneKind::Thread { .. } => call,
            _ => continue,
        };
        *of = (*of).max(Some(lane.span(row).start));
    }
    let until = last
        .iter()
        .filter_map(|&(operation, call)| {
            let operation = operation?;
            Some(call.map_or(operation, |call| call.min(operation)))
        })
        .max()?;
    let start = trace.extent()?.start;
    Some(Span::new(start, until.max(start).saturating_add(1)))
}

/// Everything in scope.
pub(super) fn whole(facts: Facts<'_>, looked: &Subject, stop: &Stop) -> Option<Answer> {
    let facts = looked.facts(facts, stop);
    if let pass @ Some(_) = looked.pass() {
        return judge(&facts, pass, &[], looked, false);
    }
    facts.prepare();
    match stop.is_stopped() {
        true => None,
        false => judge(&facts, None, facts.steps(), looked, false),
    }
}

/// What is said of a window, or of all of a run that has ended.
fn judge(
    facts: &Facts<'_>,
    window: Option<Span>,
    steps: &[Steps],
    looked: &Subject,
    is_live: bool,
) -> Option<Answer> {
    let (trace, stop) = (facts.trace, &facts.stop);
    let devices = facts.figures(window);
    if stop.is_stopped() {
        return None;
    }
    let advice = Advice::new(facts);
    // A job as a whole, once it has ended: its ranks are matched by all that they did.
    let is_of_job = !is_live && window.is_none();
    let ranks = is_of_job.then(|| facts.ranks()).flatten();
    let ranks = ranks.map(|it| &**it);
    if stop.is_stopped() {
        return None;
    }
    let watching = watching::measure(trace, &advice.causes, &devices, window);
    let mut verdicts = match devices.is_empty() {
        true => Vec::new(),
        false => verdict::find(trace, &advice.causes, (window, &devices), steps, ranks),
    };
    if stop.is_stopped() {
        return None;
    }
    let findings = match looked.pass {
        Some(pass) if !is_live => advice.of_pass(&looked.passes, pass, &devices),
        None if !is_live && !looked.passes.list.is_empty() => advice.of_run(&looked.passes),
        // Of a pass under way not all has come that its plan says, nor any that it could be compared with.
        _ => {
            let mut scope = advice.scope(window, &devices);
            (scope.ranks, scope.watching) = (ranks, watching.as_ref());
            advice.of_program(&scope, steps).in_one()
        }
    };
    verdict::promise(&mut verdicts, findings.first());
    Some(Answer {
        verdicts,
        findings,
        steps: steps::main(steps).map(|of| StepTime {
            count: of.steady.len(),
            median: of.median_ns,
            deviation: of.deviation_ns,
        }),
        watching,
        ..Answer::default()
    })
}
