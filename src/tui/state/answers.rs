//! What is known of what is on screen: what bounds it, its steps, what could be better.
//!
//! While a program runs, the screen judges the last steps whose records have arrived. That is a stretch with a bounded
//! number of operations, at most once a second and for a small part of the time. The answer stays on screen,
//! with its time, until the next one comes. After the end everything in scope is looked at.

mod judge;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use super::analyst::{Analyst, Question};
use super::run::Run;
use super::scope::{OnScreen, Scope};
use super::step_list::StepList;
use activity::Ns;
use advice::facts::LastFacts;
use advice::verdict::Verdict;
use figures::watching::WatchingCost;
use findings::Finding;
use judge::{JudgedRun, judge_live, judge_whole};
use trace::SourceKind;

/// While a program runs, answers are at least this far apart.
const PACE: Duration = Duration::from_secs(1);

/// Records up to which answers are looked for without being asked where there is no thread for it: a blink.
const UNASKED: usize = 1_000_000;

/// Records up to which answers are found at once: each finding with an edit is replayed a few times.
const AT_ONCE: usize = 1_000;

#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// What bounds the whole, then each device; empty where nothing ran on a GPU.
    pub verdicts: Vec<Verdict>,
    /// What could be better, by what it saves; of a run as a whole in all of its variants. Of a program with steps
    /// what its start takes beside them stands last.
    pub findings: Vec<Finding>,
    /// The steps that it speaks of.
    pub step_list: Option<Arc<StepList>>,
    /// Idle time beside work that left no record, in which the GPU may have worked.
    pub missing: Ns,
    /// What recording it may have cost.
    pub watching: Option<WatchingCost>,
    /// While the program ran: the time since it began that the answer is of.
    pub as_of: Option<Duration>,
    /// The variant that it is of, where it is of one.
    variant: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AnswerScope {
    scope: Scope,
    is_live: bool,
}

/// Of another variant before the second is over.
fn pace(run: &Run, last: AnswerScope, now: AnswerScope) -> Duration {
    match run.variant(last.scope) == run.variant(now.scope) {
        true => PACE,
        false => PACE / 10,
    }
}

/// The question, and its last answer.
#[derive(Debug, Default)]
pub struct Answers {
    question: Question<AnswerScope, Answer>,
    /// What other questions about a run that has ended rest on, too.
    pub facts: Arc<LastFacts>,
}

impl Answers {
    /// Takes the answer that has come, and asks when it is time to. Where there is no thread for it, a large
    /// timeline is only looked at when that `is_wanted`.
    pub fn prepare(&mut self, analyst: &Analyst, run: &Run, on_screen: OnScreen, is_wanted: bool) {
        self.question.at_once(AT_ONCE).paced(pace).poll();
        if run.is_none() || !(is_wanted || analyst.has_threads() || run.records() <= UNASKED) {
            return;
        }
        let is_live = run.is_running();
        // A picture that is held has the answer of its time.
        if is_live && (run.progress.is_some() || on_screen.is_held) {
            return;
        }
        let scope = on_screen.scope;
        let variant = run.variant(scope);
        let about = AnswerScope { scope, is_live };
        let pass = |of: usize| Some((of, run.passes.list.get(of)?.span));
        let looked = JudgedRun {
            pass: match scope {
                Scope::Whole => None,
                Scope::Pass(of) => pass(of),
            },
            plan: run.plan.clone(),
            gpus: run.gpus.clone(),
        };
        let (as_of, number) = (run.elapsed, run.number);
        let facts = Arc::clone(&self.facts);
        self.question.ask(analyst, run, about, move |trace, stop| {
            let found = if is_live {
                judge_live(trace, &looked, stop).map(|answer| Answer {
                    as_of: Some(as_of),
                    ..answer
                })
            } else {
                judge_whole(facts.facts(number, trace), &looked, stop)
            };
            Answer {
                variant,
                ..found.unwrap_or_default()
            }
        });
    }

    /// The last answer about what is on screen: of what is recorded now, else of the time before. While a
    /// program runs, a pass of the same variant speaks for the one that is on screen.
    pub fn get(&self, run: &Run, scope: Scope) -> Option<&Answer> {
        let about = |is_live| AnswerScope { scope, is_live };
        let of_variant = || {
            let last = self.question.last(run).filter(|_| run.is_running())?;
            (last.variant.is_some() && last.variant == run.variant(scope)).then_some(last)
        };
        let now = self.question.answer_to(run, about(run.is_running()));
        // What was told while a recording was read is of a part of it.
        let is_live = run.is_running() || run.trace.source.kind != SourceKind::Recording;
        now.or_else(|| {
            self.question
                .answer_to(run, about(true))
                .filter(|_| is_live)
        })
        .or_else(of_variant)
    }

    /// Whether an answer is awaited.
    pub fn is_open(&self) -> bool {
        self.question.is_open()
    }

    #[cfg(test)]
    pub fn leave_open(&mut self) {
        self.question.leave_open();
    }
}
