//! The work behind an answer: on an analysis thread, on a snapshot of the timeline.

use std::sync::Arc;

use super::Answer;
use crate::report::KnownGpus;
use crate::tui::state::step_list::StepList;
use activity::feed::Stop;
use activity::{Ns, Span};
use advice::{Facts, JudgedPart};
use causes::Cause;
use figures::steps::{self, Steps};
use scenario::plan::Plan;
use trace::{LaneKind, Trace};

/// Operations that are looked at while a program runs: some hundred steps of a training loop.
const RECENT: usize = 50_000;

/// What was done this long before the first of them is looked at too: it may be what they waited for.
const BEFORE: Ns = 50_000_000;

/// What of a run is looked at, as it was when it was asked about.
#[derive(Clone, Debug)]
pub(super) struct JudgedRun {
    /// The pass on screen, by its place in the list of passes, and when it is; `None` for the whole.
    pub(super) pass: Option<(usize, Span)>,
    pub(super) plan: Option<Arc<Plan>>,
    pub(super) gpus: KnownGpus,
}

impl JudgedRun {
    /// Those of its run and of its devices.
    fn facts<'t>(&'t self, facts: Facts<'t>, stop: &Stop) -> Facts<'t> {
        let (peaks, known) = (self.gpus.peaks(facts.trace), self.gpus.rates(facts.trace));
        let mut facts = facts.of_run(self.plan.as_deref(), peaks, known);
        facts.stop = stop.clone();
        facts
    }
}

/// The last steps of a timeline that grows, or the last part of a pass. `None` when told to stop.
pub(super) fn judge_live(trace: &Trace, looked: &JudgedRun, stop: &Stop) -> Option<Answer> {
    let Some(mut window) = arrived(trace) else {
        return Some(Answer::default());
    };
    if let Some(recent) = steps::recent(trace, RECENT) {
        window.start = recent.start.max(window.start);
    }
    if let Some((_, pass)) = looked.pass {
        window = window.intersect(pass);
    }
    // A pass is a step by itself.
    let steps = match looked.pass {
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
    answer(&facts, JudgedPart::Last(window, &steps), &steps)
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
pub(super) fn judge_whole(facts: Facts<'_>, looked: &JudgedRun, stop: &Stop) -> Option<Answer> {
    let facts = looked.facts(facts, stop);
    if let Some((pass, _)) = looked.pass {
        return answer(&facts, JudgedPart::Pass(pass), &[]);
    }
    facts.prepare();
    match stop.is_stopped() {
        true => None,
        false => answer(&facts, JudgedPart::Whole, facts.steps()),
    }
}

fn answer(facts: &Facts<'_>, part: JudgedPart<'_>, steps: &[Steps]) -> Option<Answer> {
    let mut judged = facts.judgement(part)?;
    let mut verdicts = std::mem::take(&mut judged.verdicts);
    // Without one of a device nothing ran.
    if verdicts.len() == 1 {
        verdicts.clear();
    }
    let headline = verdicts.first().cloned().unwrap_or_default();
    let devices = match part {
        JudgedPart::Whole => facts.devices(),
        _ => &[],
    };
    let idle = devices.iter().flat_map(|it| &it.idle);
    let missing = idle.filter(|it| it.cause == Cause::Missing);
    Some(Answer {
        missing: missing.map(|it| it.total_ns).sum(),
        verdicts,
        watching: judged.watching,
        findings: judged.in_one(),
        step_list: steps::main(steps).map(|of| Arc::new(StepList::of(facts, of, &headline))),
        ..Answer::default()
    })
}
