//! A question that is asked again and again, and its last answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, TryRecvError, bounded};
use rustix::time::{ClockId, clock_gettime};

use super::{AT_ONCE, AnalysisJob, Analyst, PACE};
use crate::tui::state::run::Run;
use activity::feed::Stop;
use trace::Trace;

/// The state of the timeline that an answer is of, and what of it the question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AnswerKey<A> {
    run: u64,
    revision: u64,
    about: A,
}

/// What was asked, and where the answer comes with what it took.
type Awaited<A, T> = (AnswerKey<A>, Receiver<(T, Duration)>);

/// A question that is asked again and again, and its last answer.
#[derive(Debug)]
pub struct Question<A, T> {
    /// Which it is: no two have the same.
    id: u64,
    /// Whether it is of one place of the timeline.
    is_light: bool,
    /// Records of a timeline up to which it is answered at once.
    at_once: usize,
    last: Option<(AnswerKey<A>, T)>,
    asked: Option<Awaited<A, T>>,
    /// How long after it was asked about one part of a run that goes on it is asked about the other at the earliest.
    pace: fn(&Run, A, A) -> Duration,
    /// What was last asked about a run that goes on: its number, when, and what about.
    paced: Option<(u64, Duration, A)>,
    /// What the last answer took of a core.
    pub(super) took: Duration,
    /// Whether it was last asked when there was no answer yet.
    waits: bool,
    /// Whether it is asked before the clocks of a job are set.
    is_first: bool,
    /// Goes up with every answer.
    pub version: u64,
}

impl<A: Copy + PartialEq, T: Send + 'static> Default for Question<A, T> {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Question {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            is_light: false,
            at_once: AT_ONCE,
            last: None,
            asked: None,
            pace: |_, last, now| match last == now {
                true => PACE,
                false => Duration::ZERO,
            },
            paced: None,
            took: Duration::ZERO,
            waits: false,
            is_first: false,
            version: 0,
        }
    }
}

impl<A: Copy + PartialEq, T: Send + 'static> Question<A, T> {
    /// The same, of one place of the timeline.
    pub fn light(&mut self) -> &mut Self {
        self.is_light = true;
        self
    }

    /// The same, asked about a run that goes on no sooner than `pace` after the last time. Questions are as far apart as its
    /// share of the time lets them be. Where it is zero, at once.
    pub fn paced(&mut self, pace: fn(run: &Run, last: A, now: A) -> Duration) -> &mut Self {
        self.pace = pace;
        self
    }

    /// Whether it is time to ask.
    pub(super) fn is_due(&mut self, analyst: &Analyst, run: &Run, about: A) -> bool {
        if !run.is_running() {
            return true;
        }
        let share = analyst.apart(self.id, self.took, run.elapsed);
        let is_early = self.paced.is_some_and(|(number, at, last)| {
            let apart = match (self.pace)(run, last, about) {
                Duration::ZERO => Duration::ZERO,
                apart => apart.max(share),
            };
            number == run.number && run.elapsed < at + apart
        });
        if !is_early {
            self.paced = Some((run.number, run.elapsed, about));
        }
        !is_early
    }

    /// The same, answered at once for timelines of no more records than these.
    pub fn at_once(&mut self, records: usize) -> &mut Self {
        self.at_once = records;
        self
    }

    /// The same, asked of a job whose clocks are not yet set: by what tells them.
    pub fn first(&mut self) -> &mut Self {
        self.is_first = true;
        self
    }

    /// The answer so far goes for the run with another number: the same, at other times.
    pub fn carry(&mut self, number: u64) {
        if let Some((key, _)) = &mut self.last {
            key.run = number;
        }
        self.paced = None;
        self.version += 1;
    }

    /// Takes an answer that has come, and asks (again) when the last one is of something else. `work`
    /// may give up once it is told to stop. Returns whether there is a new answer. Files that are still being read
    /// answer nothing: what a gap waited for may come later. Nor does a job that is about to be put on one clock. A run that
    /// goes on is asked about at its pace.
    pub fn ask(
        &mut self,
        analyst: &Analyst,
        run: &Run,
        about: A,
        work: impl FnOnce(&Trace, &Stop) -> T + Send + 'static,
    ) -> bool {
        self.waits = run.is_being_read() || (run.awaits_clocks && !self.is_first);
        if self.waits || !self.is_due(analyst, run, about) {
            return self.poll();
        }
        let key = AnswerKey {
            run: run.number,
            revision: run.trace.revision(),
            about,
        };
        let has_come = self.poll();
        if self.last.as_ref().is_some_and(|(last, _)| *last == key) {
            self.asked = None;
            return has_come;
        }
        // While records keep coming one request at a time is enough.
        let is_asked =
            |(asked, _): &(AnswerKey<A>, _)| (asked.run, asked.about) == (key.run, key.about);
        if self.asked.as_ref().is_some_and(is_asked) {
            return has_come;
        }
        if run.records() <= self.at_once {
            let began = used();
            let found = work(&run.trace, &Stop::default());
            return self.take(key, found, used() - began);
        }
        let (sender, answer) = bounded(1);
        let job = AnalysisJob {
            question: self.id,
            trace: run.trace.snapshot(),
            work: Box::new(move |trace, stop| {
                let began = used();
                let found = work(trace, stop);
                // Nobody may be waiting any more.
                let _ = sender.send((found, used() - began));
            }),
        };
        self.asked = Some((key, answer));
        match analyst.give(self.is_light, job) {
            Ok(()) => has_come,
            Err(job) => {
                (job.work)(&job.trace, &Stop::default());
                self.poll()
            }
        }
    }

    /// Takes an answer that has come. Returns whether there is a new one.
    pub fn poll(&mut self) -> bool {
        let Some((key, answer)) = &self.asked else {
            return false;
        };
        match answer.try_recv() {
            Ok((found, took)) => self.take(*key, found, took),
            Err(TryRecvError::Empty) => false,
            // A newer request took its place, or the thread ended.
            Err(TryRecvError::Disconnected) => {
                self.asked = None;
                false
            }
        }
    }

    fn take(&mut self, key: AnswerKey<A>, found: T, took: Duration) -> bool {
        (self.last, self.took, self.asked) = (Some((key, found)), took, None);
        self.version += 1;
        true
    }

    /// The last answer about this run, maybe of an older state of it or of another part.
    pub fn last(&self, run: &Run) -> Option<&T> {
        let last = self.last.as_ref();
        let (_, answer) = last.filter(|(key, _)| key.run == run.number)?;
        Some(answer)
    }

    /// The same, to be changed.
    pub fn last_mut(&mut self, run: &Run) -> Option<&mut T> {
        let last = self.last.as_mut();
        let (_, answer) = last.filter(|(key, _)| key.run == run.number)?;
        Some(answer)
    }

    /// Whether the last answer is of the run as it is now.
    pub fn is_of(&self, run: &Run) -> bool {
        let now = (run.number, run.trace.revision());
        let last = self.last.as_ref();
        last.is_some_and(|(key, _)| (key.run, key.revision) == now)
    }

    /// The last answer to just this question, maybe of an older state of the run.
    pub fn answer_to(&self, run: &Run, about: A) -> Option<&T> {
        let last = self.last.as_ref();
        let (_, answer) = last.filter(|(key, _)| (key.run, key.about) == (run.number, about))?;
        Some(answer)
    }

    /// Whether an answer is awaited.
    pub fn is_open(&self) -> bool {
        self.asked.is_some() || self.waits
    }

    /// The answer is awaited, until somebody asks again.
    #[cfg(test)]
    pub fn leave_open(&mut self) {
        self.waits = true;
    }
}

/// What this thread has had of a core.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}
