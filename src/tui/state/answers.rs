//! What is known of what is on screen: what bounds it, its steps, what could be better.
//!
//! While a program runs, the last steps are looked at whose records have arrived: a stretch with a bounded
//! number of operations, at most once a second and for no more than a tenth of the time. The answer
//! stays on screen, with its time, until the next one comes. After the end everything in scope is looked at.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::analyst::{Analyst, Question, Weight};
use super::arrived::arrived;
use super::so_far::SoFar;
use super::{Camera, Run, Scope};
use crate::activity::feed::Stop;
use crate::activity::{Ns, Span};
use crate::analysis::CallIndex;
use crate::analysis::advice::Advice;
use crate::analysis::causes::Causes;
use crate::analysis::figures::{self, Peaks};
use crate::analysis::findings::{self, Finding};
use crate::analysis::graph::Graph;
use crate::analysis::passes::Passes;
use crate::analysis::steps::{self, Steps};
use crate::analysis::verdict::{self, Verdict};
use crate::analysis::watching::{self, WatchingCost};
use crate::report::whatif::known_of;
use crate::scenario::plan::Plan;
use crate::trace::Trace;

/// While a program runs, answers are at least this far apart.
const PACE: Duration = Duration::from_secs(1);

/// And this many times as far as the last one took to be found.
const REST: u32 = 9;

/// Operations that are looked at while a program runs: some hundred steps of a training loop.
const RECENT: usize = 50_000;

/// What was done this long before the first of them is looked at too: it may be what they waited for.
const BEFORE: Ns = 50_000_000;

/// Records up to which answers are looked for without being asked where there is no thread for it: a blink.
const UNASKED: usize = 1_000_000;

/// Records up to which answers are found at once: each finding with an edit is replayed a few times.
const AT_ONCE: usize = 1_000;

/// A graph that takes more bytes is not kept between two questions.
const KEPT_MAX: usize = 512 << 20;

/// The steps that a verdict is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepTime {
    /// How many.
    pub count: usize,
    /// Their median time.
    pub median: Ns,
    /// How far they lie from it (see [`Steps::deviation_ns`]).
    pub deviation: Ns,
}

/// What is known.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// What bounds the whole, then each device; empty where nothing ran on a GPU.
    pub verdicts: Vec<Verdict>,
    /// What could be better, by what it saves; of a run as a whole in all of its variants. Of a program with steps
    /// what its start takes beside them stands last.
    pub findings: Vec<Finding>,
    /// The steps that it speaks of.
    pub steps: Option<StepTime>,
    /// What recording it may have cost.
    pub watching: Option<WatchingCost>,
    /// While the program ran: the time since it began that the answer is of.
    pub as_of: Option<Duration>,
    /// The variant that it is of, where it is of one.
    variant: Option<usize>,
    /// What it took to find.
    took: Duration,
}

/// What is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct About {
    scope: Scope,
    is_live: bool,
}

/// What of a run is looked at, as it was when it was asked about.
#[derive(Clone, Debug)]
struct Looked {
    /// Passes and variants.
    passes: Passes,
    /// The pass on screen: index into `passes.list`; `None` for the whole.
    pass: Option<usize>,
    plan: Option<Arc<Plan>>,
    peaks: Peaks,
}

impl Looked {
    fn pass(&self) -> Option<Span> {
        self.pass.map(|pass| self.passes.list[pass].span)
    }
}

/// A graph and an index of calls, kept for the next question about the same state of a run.
#[derive(Debug)]
struct Ground {
    run: u64,
    revision: u64,
    graph: Graph,
    calls: CallIndex,
}

/// What was last asked about a run under way.
#[derive(Clone, Copy, Debug)]
struct Asked {
    run: u64,
    variant: Option<usize>,
    at: Duration,
}

/// The variant that is on screen, when one pass is.
fn variant(run: &Run, scope: Scope) -> Option<usize> {
    match scope {
        Scope::Whole => None,
        Scope::Pass(i) => run.passes.list.get(i).map(|p| p.variant),
    }
}

/// The question, and its last answer.
#[derive(Debug)]
pub struct Answers {
    question: Question<About, Answer>,
    ground: Arc<Mutex<Option<Ground>>>,
    /// The run that was last asked about while it ran, and when.
    asked: Option<Asked>,
    /// Why the devices were idle since it began.
    so_far: SoFar,
}

impl Default for Answers {
    fn default() -> Self {
        Answers {
            question: Question::new("answers", Weight::Heavy).at_once(AT_ONCE),
            ground: Arc::default(),
            asked: None,
            so_far: SoFar::default(),
        }
    }
}

impl Answers {
    /// Takes the answer that has come, and asks when it is time to. Where there is no thread for it, a large
    /// timeline is only looked at when that `is_wanted`.
    pub fn prepare(&mut self, analyst: &Analyst, run: &Run, camera: &Camera, is_wanted: bool) {
        self.question.poll();
        if run.is_none() || !(is_wanted || analyst.has_threads() || run.records() <= UNASKED) {
            return;
        }
        self.so_far.prepare(analyst, run);
        let is_live = run.is_running();
        if is_live {
            let variant = variant(run, camera.scope);
            if run.progress.is_some() || !self.is_due(run, variant) {
                return;
            }
            self.asked = Some(Asked {
                run: run.number,
                variant,
                at: run.elapsed,
            });
        }
        let scope = camera.scope;
        let variant = variant(run, scope);
        let about = About { scope, is_live };
        let looked = Looked {
            passes: run.passes.clone(),
            pass: match scope {
                Scope::Whole => None,
                Scope::Pass(i) => (i < run.passes.list.len()).then_some(i),
            },
            plan: run.plan.clone(),
            peaks: run.peaks.copies,
        };
        let (as_of, number) = (run.elapsed, run.number);
        let ground = Arc::clone(&self.ground);
        self.question.ask(analyst, run, about, move |trace, stop| {
            let began = Instant::now();
            let found = if is_live {
                live(trace, &looked, stop).map(|answer| Answer {
                    as_of: Some(as_of),
                    ..answer
                })
            } else {
                whole(trace, number, &looked, &ground, stop)
            };
            Answer {
                variant,
                took: began.elapsed(),
                ..found.unwrap_or_default()
            }
        });
    }

    /// Whether it is time to ask about a run under way: of another variant before the second is over.
    fn is_due(&self, run: &Run, variant: Option<usize>) -> bool {
        let Some(asked) = self.asked.filter(|asked| asked.run == run.number) else {
            return true;
        };
        let rest = self.question.last(run).map_or(Duration::ZERO, |a| a.took) * REST;
        let apart = if asked.variant == variant {
            rest.max(PACE)
        } else {
            rest.max(PACE / 10)
        };
        run.elapsed >= asked.at + apart
    }

    /// The last answer about what is on screen: of what is recorded now, else of the time before. While a
    /// program runs, a pass of the same variant speaks for the one that is on screen.
    #[must_use]
    pub fn of(&self, run: &Run, scope: Scope) -> Option<&Answer> {
        let about = |is_live| About { scope, is_live };
        let of_variant = || {
            let last = self.question.last(run).filter(|_| run.is_running())?;
            (last.variant.is_some() && last.variant == variant(run, scope)).then_some(last)
        };
        let now = self.question.about(run, about(run.is_running()));
        now.or_else(|| self.question.about(run, about(true)))
            .or_else(of_variant)
    }

    /// While a program runs: for each device why it was idle since the beginning, in a line.
    #[must_use]
    pub fn so_far(&self, run: &Run) -> &[String] {
        self.so_far.lines(run)
    }

    /// Whether an answer is awaited.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.question.is_open()
    }
}

/// The last steps of a timeline that grows, or the last part of a pass. `None` when told to stop.
fn live(trace: &Trace, looked: &Looked, stop: &Stop) -> Option<Answer> {
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
    judge(trace, ground, Some(window), &steps, looked, true, stop)
}

/// Everything in scope.
fn whole(
    trace: &Trace,
    run: u64,
    looked: &Looked,
    ground: &Mutex<Option<Ground>>,
    stop: &Stop,
) -> Option<Answer> {
    let revision = trace.revision();
    let pass = looked.pass();
    // A panic of another holder was said by its hook; what it left is whole or of another state.
    let mut kept = ground
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let is_same = |g: &Ground| (g.run, g.revision) == (run, revision);
    let of = match kept.take().filter(is_same) {
        Some(of) => of,
        None => {
            let calls = CallIndex::new(trace);
            if stop.is_stopped() {
                return None;
            }
            Ground {
                run,
                revision,
                graph: Graph::new(trace),
                calls,
            }
        }
    };
    if stop.is_stopped() {
        return None;
    }
    let steps = match pass {
        None => steps::of(trace, None),
        Some(_) => Vec::new(),
    };
    let of_run = (&of.graph, &of.calls);
    let answer = judge(trace, of_run, pass, &steps, looked, false, stop);
    if of.graph.memory() <= KEPT_MAX {
        *kept = Some(of);
    }
    answer
}

fn judge(
    trace: &Trace,
    (graph, calls): (&Graph, &CallIndex),
    window: Option<Span>,
    steps: &[Steps],
    looked: &Looked,
    is_live: bool,
    stop: &Stop,
) -> Option<Answer> {
    let devices = figures::of(trace, Some(calls), window);
    if stop.is_stopped() {
        return None;
    }
    let causes = Causes::new(trace, graph);
    let verdicts = verdict::of(trace, &causes, window, &devices, steps);
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
            let scope = findings::Scope::new(trace, &causes, window, &devices, looked.peaks);
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
        watching: watching::of(trace, &causes, &devices, window),
        ..Answer::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::{Activity, Batch, Def, HostCall, Kernel, LaunchShape, Place, What};
    use crate::tui::state::Peaks as AppPeaks;
    use crate::tui::state::Status;

    fn kernel(start: Ns, end: Ns, correlation: u32) -> Activity {
        Activity {
            span: Span::new(start, end),
            correlation,
            what: What::Kernel(Kernel {
                place: Place::default(),
                shape: 0,
                graph: 0,
                node: 0,
            }),
        }
    }

    fn call(start: Ns, end: Ns, correlation: u32) -> Activity {
        Activity {
            span: Span::new(start, end),
            correlation,
            what: What::Call(HostCall {
                thread: 1,
                name: 1,
                code: 0,
            }),
        }
    }

    fn trace(items: Vec<Activity>) -> Trace {
        let mut trace = Trace::default();
        let name = |id, text: &str| Def::Name {
            id,
            text: text.to_owned(),
        };
        trace.apply(Batch {
            defs: vec![
                name(0, "kernel"),
                name(1, "cudaLaunchKernel"),
                Def::Shape {
                    id: 0,
                    shape: LaunchShape::default(),
                },
            ],
            items,
            ..Batch::default()
        });
        trace
    }

    fn running(trace: Trace) -> Run {
        Run::new(trace, None, AppPeaks::default(), Status::Running)
    }

    #[test]
    fn while_it_runs_an_answer_a_second_and_the_last_one_stays() {
        let mut run = running(trace(vec![call(0, 5, 1), kernel(10, 1_000, 1)]));
        let (mut answers, analyst) = (Answers::default(), Analyst::default());
        let camera = Camera::default();
        let mut at = |run: &mut Run, ms: u64, now: u64| {
            run.elapsed = Duration::from_millis(ms);
            run.trace.apply(Batch {
                items: vec![kernel(now as Ns * 2_000, now as Ns * 2_000 + 1_000, 9)],
                ..Batch::default()
            });
            answers.prepare(&analyst, run, &camera, false);
            let answer = answers.of(run, Scope::Whole).expect("an answer");
            answer.as_of.map(|d| d.as_millis())
        };
        assert_eq!(at(&mut run, 500, 1), Some(500));
        assert_eq!(at(&mut run, 1_400, 2), Some(500));
        assert_eq!(at(&mut run, 1_501, 3), Some(1_501));
        assert_eq!(at(&mut run, 2_000, 4), Some(1_501));
        // At the end at once, and of everything.
        run.status = Status::Ended(crate::activity::feed::Outcome::Complete);
        assert_eq!(at(&mut run, 2_001, 5), None);
    }

    #[test]
    fn only_what_has_come_of_both_sides_is_looked_at() {
        // Calls up to 300, operations up to 5000: of what was launched later the calls are missing.
        let trace = trace(vec![
            call(100, 110, 1),
            call(300, 310, 2),
            kernel(120, 200, 1),
            kernel(320, 400, 2),
            kernel(5_000, 5_100, 3),
        ]);
        assert_eq!(arrived(&trace), Some(Span::new(100, 301)));
        assert_eq!(arrived(&Trace::default()), None);
    }

    #[test]
    fn a_timeline_that_grows_is_judged_by_what_was_done_last() {
        // 60,000 kernels, one every 10 us: 600 ms, of which the last 50,000 take 500 ms.
        let mut items = Vec::new();
        for i in 0..60_000 {
            let start = i * 10_000;
            let length = if i < 30_000 { 9_900 } else { 500 };
            items.push(call(start - 4_000, start - 3_000, i as u32 + 1));
            items.push(kernel(start, start + length, i as u32 + 1));
        }
        let trace = trace(items);
        let stop = Stop::default();
        let looked = Looked {
            passes: Passes::default(),
            pass: None,
            plan: None,
            peaks: Peaks::default(),
        };
        let answer = live(&trace, &looked, &stop).expect("an answer");
        let first = answer.verdicts.first().expect("a verdict");
        let whole = whole(&trace, 0, &looked, &Mutex::default(), &stop);
        let whole = whole.expect("an answer");
        assert!(
            (250_000_000..=500_000_000).contains(&first.span_ns),
            "{first:?}"
        );
        assert!(whole.verdicts[0].span_ns > 590_000_000, "{whole:?}");
        stop.stop();
        assert!(live(&trace, &looked, &stop).is_none());
    }
}
