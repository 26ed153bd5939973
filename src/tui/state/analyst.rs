//! What takes longer than a frame may: questions to the timeline, answered beside the screen.
//!
//! A [`Question`] keeps the last answer and asks again when what it is about has changed. The work runs on a snapshot
//! of the timeline, on one of two threads. One is for what a person waits for (the cause of a selected gap), one for
//! what goes through everything. The newest request of a question wins; an answer wakes the screen. Without threads
//! (pictures, tests) everything is answered at once.
//!
//! While a run goes on, all questions share a small part of a core ([`REST`]): who follows a program takes little from
//! it. Behind a key they may take more: somebody waits.
//!
//! ```text
//!  view.prepare ─ ask(key, work) ─► bounded channel ─► analysis thread: work(snapshot)
//!       ▲                                                     │ answer, then a wake
//!       └──────────── the next frame takes the answer ◄───────┘
//! ```

mod question;
#[cfg(test)]
mod tests;

pub use question::Question;

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

use activity::feed::{Joined, Stop};
use trace::Trace;

/// Requests that may wait; a thread takes all that wait and keeps the newest of each question.
const WAITING: usize = 16;
/// Records of a timeline up to which everything is answered at once: some 10 ms at 1 us a record.
const AT_ONCE: usize = 10_000;

/// How much the threads stand back (see nice(2)) where there are fewer cores than threads at work. A key that comes
/// meanwhile is answered first.
const NICE: i32 = 5;

/// While a run goes on, one part in so many of a core goes to all answers together.
const REST: f64 = 50.0;
/// So long behind a key each may take one part in so many for itself.
const AWAITED: Duration = Duration::from_secs(1);
const BRISK: u32 = 10;
/// What is not said otherwise is asked anew this often, and of something else at once.
const PACE: Duration = Duration::from_millis(250);
/// A question that was not asked for so long takes part no more.
const AWHILE: Duration = Duration::from_secs(2);

type Work = Box<dyn FnOnce(&Trace, &Stop) + Send>;

struct AnalysisJob {
    question: u64,
    trace: Arc<Trace>,
    work: Work,
}

/// Who answers questions.
#[derive(Debug, Default)]
pub struct Analyst {
    /// For questions of one place of the timeline, which never wait behind the others, and for these.
    threads: Option<[AnalysisThread; 2]>,
    /// The questions about a run that goes on: what the last answer took, and when it was last asked for.
    asked: RefCell<Vec<(u64, Duration, Duration)>>,
    /// When the last key came, by the run's time.
    acted: Cell<Option<Duration>>,
}

impl Analyst {
    /// Threads of their own that send to `wake` after each answer.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(wake: &Sender<()>) -> io::Result<Self> {
        Ok(Analyst {
            threads: Some([
                AnalysisThread::start("cuptop-causes", wake.clone())?,
                AnalysisThread::start("cuptop-analysis", wake.clone())?,
            ]),
            ..Analyst::default()
        })
    }

    /// That somebody did something at this time of the run.
    pub fn act(&self, now: Duration) {
        self.acted.set(Some(now));
    }

    /// How far apart answers are to a question that takes so long. All that are asked share what there is by the roots of
    /// what they take: so all together are the least behind.
    fn apart(&self, question: u64, took: Duration, now: Duration) -> Duration {
        let mut asked = self.asked.borrow_mut();
        asked.retain(|it| it.0 != question && it.2 <= now && now < it.2 + AWHILE);
        asked.push((question, took, now));
        if self
            .acted
            .get()
            .is_some_and(|at| at <= now && now < at + AWAITED)
        {
            return took * BRISK;
        }
        let root = |it: Duration| it.as_secs_f64().sqrt();
        let roots: f64 = asked.iter().map(|it| root(it.1)).sum();
        Duration::from_secs_f64(root(took) * roots * REST)
    }

    /// Whether questions are answered beside the screen.
    pub fn has_threads(&self) -> bool {
        self.threads.is_some()
    }

    /// Hands a job on; gives it back when there is no thread for it.
    fn give(&self, is_light: bool, job: AnalysisJob) -> Result<(), AnalysisJob> {
        match &self.threads {
            None => Err(job),
            Some(threads) => {
                let thread = &threads[usize::from(!is_light)];
                // A full channel drops the request: it is made again before the next frame.
                let _ = thread.jobs.try_send(job);
                Ok(())
            }
        }
    }
}

/// A thread that answers; stopped and joined when it is dropped.
#[derive(Debug)]
struct AnalysisThread {
    jobs: Sender<AnalysisJob>,
    stop: Stop,
    _thread: Joined,
}

impl AnalysisThread {
    fn start(name: &str, wake: Sender<()>) -> io::Result<Self> {
        let (jobs, waiting) = bounded::<AnalysisJob>(WAITING);
        let stop = Stop::default();
        let is_over = stop.clone();
        let thread = Joined::spawn(name, move || {
            // Of the calling thread alone, on Linux. Where it is not allowed, keys wait for their turn.
            let _ = rustix::process::setpriority_process(None, NICE);
            answer(&waiting, &is_over, &wake);
        })?;
        Ok(AnalysisThread {
            jobs,
            stop,
            _thread: thread,
        })
    }
}

fn answer(waiting: &Receiver<AnalysisJob>, stop: &Stop, wake: &Sender<()>) {
    let mut jobs: Vec<AnalysisJob> = Vec::new();
    loop {
        if jobs.is_empty() {
            match waiting.recv() {
                Ok(job) => jobs.push(job),
                Err(_) => return,
            }
        }
        for newer in waiting.try_iter() {
            jobs.retain(|job| job.question != newer.question);
            jobs.push(newer);
        }
        let job = jobs.remove(0);
        if stop.is_stopped() {
            return;
        }
        (job.work)(&job.trace, stop);
        // Released before the screen is woken: what the next batch changes need not be copied then.
        drop(job.trace);
        // One wake is as good as two.
        let _ = wake.try_send(());
    }
}

impl Drop for AnalysisThread {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
