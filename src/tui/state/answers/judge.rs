//! The work behind an answer: on an analysis thread, on a snapshot of the timeline.

use std::sync::Arc;

use super::{Answer, StepTime};
use crate::report::whatif::known_of;
use crate::tui::state::ground::{Ground, Grounds};
use crate::tui::state::so_far::arrived;
use activity::feed::Stop;
use activity::{Ns, Span};
use analysis::CallIndex;
use analysis::advice::Advice;
use analysis::causes::Causes;
use analysis::figures::{self, Peaks};
use analysis::findings;
use analysis::graph::Graph;
use analysis::passes::Passes;
use analysis::ranks::Aligned;
use analysis::steps::{self, Steps};
use analysis::verdict;
use analysis::watching;
use scenario::plan::Plan;
use trace::Trace;

/// Operations that are looked at while a program runs: some hundred steps of a training loop.
const RECENT: usize = 50_000;

/// What was done this long before the first of them is looked at too: it may be what they waited for.
const BEFORE: Ns = 50_000_000;

/// What of a run is looked at, as it was when it was asked about.
#[derive(Clone, Debug)]
pub(super) struct Looked {
    /// Passes and variants.
    pub(super) passes: Passes,
    /// The pass on screen: index into `passes.list`; `None` for the whole.
    pub(super) pass: Option<usize>,
    pub(super) plan: Option<Arc<Plan>>,
    pub(super) peaks: Peaks,
}

impl Looked {
    fn pass(&self) -> Option<Span> {
        self.pass.map(|pass| self.passes.list[pass].span)
    }
}

/// The last steps of a timeline that grows, or the last part of a pass. `None` when told to stop.
pub(super) fn live(trace: &Trace, looked: &Looked, stop: &Stop) -> Option<Answer> {
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
        None => steps::of(trace, Some(window)),
        Some(_) => Vec::new(),
    };
    if let Some(steady) = steps.iter().map(Steps::steady_span).reduce(Span::hull) {
        window = steady;
    }
    if stop.is_stopped() {
        return None;
    }
    let around = Span::new(window.start.saturating_sub(BEFORE), window.end);
    let graph = Graph::within(trace, around);
    let calls = CallIndex::within(trace, around);
    let ground = (&graph, &calls);
    judge(trace, ground, Some(window), &steps, looked, None, stop)
}

/// Everything in scope.
pub(super) fn whole(
    trace: &Trace,
    run: u64,
    looked: &Looked,
    ground: &Ground,
    stop: &Stop,
) -> Option<Answer> {
    let pass = looked.pass();
    let grounds = ground.of(run, trace);
    let base = grounds.base(stop)?;
    let steps = match pass {
        None => grounds.steps(),
        Some(_) => Arc::default(),
    };
    let of_run = (&base.graph, &base.calls);
    judge(trace, of_run, pass, &steps, looked, Some(grounds), stop)
}

/// What is said of a window. Of all of a run that has ended `whole` is what is known of it.
fn judge(
    trace: &Trace,
    (graph, calls): (&Graph, &CallIndex),
    window: Option<Span>,
    steps: &[Steps],
    looked: &Looked,
    whole: Option<Grounds<'_>>,
    stop: &Stop,
) -> Option<Answer> {
    let is_live = whole.is_none();
    let devices = figures::of(trace, Some(calls), window);
    if stop.is_stopped() {
        return None;
    }
    let causes = Causes::new(trace, graph);
    // A job as a whole, once it has ended: its ranks are matched by all that they did.
    let of_job = whole.filter(|_| window.is_none() && Aligned::may_be(trace));
    let ranks = of_job.and_then(|it| it.judged(&causes, steps));
    if stop.is_stopped() {
        return None;
    }
    let watching = watching::of(trace, &causes, &devices, window);
    let verdicts = verdict::of_job(
        trace,
        &causes,
        (window, &devices),
        steps,
        ranks.as_deref(),
        watching.as_ref(),
    );
    if stop.is_stopped() {
        return None;
    }
    let is_stopped = || stop.is_stopped();
    let known = known_of(trace);
    let advice = Advice {
        trace,
        causes: &causes,
        peaks: looked.peaks,
        known: &known,
    };
    let plan = looked.plan.as_deref();
    let findings = match looked.pass {
        Some(pass) if !is_live => advice.of_pass(&looked.passes, pass, plan, &devices, &is_stopped),
        None if !is_live && !looked.passes.list.is_empty() => {
            advice.of_run(&looked.passes, plan, &is_stopped)
        }
        // Of a pass under way not all has come that its plan says, nor any that it could be compared with.
        _ => {
            let scope = findings::Scope::new(trace, &causes, window, &devices, looked.peaks)
                .with_ranks(ranks.as_deref())
                .with_watching(watching.as_ref());
            advice.of_program(&scope, steps, &is_stopped).in_one()
        }
    };
    Some(Answer {
        verdicts: if devices.is_empty() {
            Vec::new()
        } else {
            verdicts
        },
        findings,
        steps: steps.first().map(|of| StepTime {
            count: of.steady.len(),
            median: of.median_ns,
            deviation: of.deviation_ns,
        }),
        watching,
        ..Answer::default()
    })
}
