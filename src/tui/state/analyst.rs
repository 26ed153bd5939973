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

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use rustix::time::{ClockId, clock_gettime};

use super::run::Run;
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

/// The state of the timeline that an answer is of, and what of it the question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerKey<A> {
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
    took: Duration,
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
    fn is_due(&mut self, analyst: &Analyst, run: &Run, about: A) -> bool {
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
}

/// What this thread has had of a core.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::report::KnownGpus;
    use crate::tui::state::Status;
    use activity::{Activity, Batch, HostCall, Span, What};

    const PATIENCE: Duration = Duration::from_secs(20);

    /// A run with more records than are looked at at once.
    fn run() -> Run {
        let mut trace = Trace::default();
        add(&mut trace, AT_ONCE + 1);
        Run::new(trace, None, KnownGpus::default(), Status::Running)
    }

    fn add(trace: &mut Trace, count: usize) {
        let call = |i: usize| Activity {
            span: Span::at(i as i64),
            correlation: 0,
            what: What::Call(HostCall {
                thread: 1,
                name: 0,
                code: 0,
            }),
        };
        trace.apply(Batch {
            items: (0..count).map(call).collect(),
            ..Batch::default()
        });
    }

    type Asked = Question<u8, usize>;

    fn ask(question: &mut Asked, analyst: &Analyst, run: &Run, about: u8) -> bool {
        question.ask(analyst, run, about, |trace, _| trace.lanes()[0].len())
    }

    #[test]
    fn an_answer_comes_from_a_thread_and_wakes_the_screen() {
        let (wake, answers) = bounded(1);
        let analyst = Analyst::start(&wake).expect("threads");
        let mut run = run();
        let mut question = Asked::default();
        assert!(!ask(&mut question, &analyst, &run, 0));
        assert!(question.is_open());
        answers.recv_timeout(PATIENCE).expect("a wake");
        assert!(ask(&mut question, &analyst, &run, 0));
        assert_eq!(question.answer_to(&run, 0), Some(&(AT_ONCE + 1)));
        assert_eq!(question.answer_to(&run, 1), None);
        // More records: the last answer stays until the next one comes.
        add(&mut run.trace, 9);
        run.elapsed = PATIENCE;
        assert!(!ask(&mut question, &analyst, &run, 0));
        assert_eq!(question.answer_to(&run, 0), Some(&(AT_ONCE + 1)));
        assert!(question.is_open());
        answers.recv_timeout(PATIENCE).expect("a wake");
        assert!(ask(&mut question, &analyst, &run, 0));
        assert_eq!(question.answer_to(&run, 0), Some(&(AT_ONCE + 10)));
        assert!(!question.is_open());
    }

    #[test]
    fn a_run_that_goes_on_is_asked_about_at_its_pace() {
        let second = Duration::from_secs(1);
        let pace = |_: &Run, last: u8, now: u8| match last == now {
            true => Duration::from_secs(1),
            false => Duration::ZERO,
        };
        let mut question = Asked::default();
        question.paced(pace);
        let (analyst, mut run) = (Analyst::default(), run());
        assert!(ask(&mut question, &analyst, &run, 0));
        add(&mut run.trace, 9);
        run.elapsed = second / 2;
        assert!(!ask(&mut question, &analyst, &run, 0), "not due yet");
        assert!(ask(&mut question, &analyst, &run, 1), "something else");
        add(&mut run.trace, 9);
        run.elapsed = second * 3 / 2;
        question.took = second;
        assert!(!ask(&mut question, &analyst, &run, 1), "it took a second");
        run.elapsed += second * REST as u32;
        assert!(ask(&mut question, &analyst, &run, 1));
        // Behind a key sooner.
        add(&mut run.trace, 9);
        question.took = second;
        run.elapsed += second * BRISK;
        assert!(!ask(&mut question, &analyst, &run, 1), "nobody waits");
        analyst.act(run.elapsed);
        assert!(ask(&mut question, &analyst, &run, 1));
        add(&mut run.trace, 9);
        run.status = Status::Ended(activity::feed::Outcome::Complete);
        assert!(ask(&mut question, &analyst, &run, 1), "it has ended");
    }

    /// Four questions take 200, 50, 2 and 0.1 ms: in an hour all of them together no more than their part of a core.
    #[test]
    fn all_questions_about_a_run_that_goes_on_share_one_part_of_a_core() {
        let (analyst, mut run) = (Analyst::default(), run());
        let pace = |_: &Run, _, _| Duration::from_millis(1);
        let mut all: Vec<(Asked, Duration, u32)> = [200_000, 50_000, 2_000, 100]
            .map(|took| (Asked::default(), Duration::from_micros(took), 0))
            .into();
        let hour = Duration::from_secs(3_600);
        while run.elapsed < hour {
            run.elapsed += Duration::from_millis(25);
            for (question, took, times) in &mut all {
                question.took = *took;
                *times += u32::from(question.paced(pace).is_due(&analyst, &run, 0));
            }
        }
        let spent: Duration = all.iter().map(|it| it.1 * it.2).sum();
        assert!(spent < hour.div_f64(REST) * 11 / 10, "{spent:?}");
        assert!(spent > hour.div_f64(REST) * 8 / 10, "{spent:?}");
        // What takes least is the freshest, and none goes without.
        let times: Vec<u32> = all.iter().map(|it| it.2).collect();
        assert!(times.is_sorted() && times[0] > 200, "{times:?}");
        // One that nobody asks any more leaves its part to the others.
        let before = all[0].2;
        for _ in 0..40 * 3_600 {
            run.elapsed += Duration::from_millis(25);
            let (question, took, times) = &mut all[0];
            question.took = *took;
            *times += u32::from(question.is_due(&analyst, &run, 0));
        }
        assert!(all[0].2 - before > before * 3 / 2, "{before} {}", all[0].2);
    }

    #[test]
    fn what_is_asked_last_is_answered_and_nothing_else_waits() {
        let (wake, answers) = bounded(1);
        let analyst = Analyst::start(&wake).expect("threads");
        let run = run();
        // Holds the thread until all of the others wait.
        let (go, held) = bounded::<()>(0);
        let mut holder: Question<u8, ()> = Question::default();
        holder.ask(&analyst, &run, 0, move |_, _| {
            let _ = held.recv_timeout(PATIENCE);
        });
        let mut question = Asked::default();
        for about in 0..5 {
            ask(&mut question, &analyst, &run, about);
        }
        go.send_timeout((), PATIENCE).expect("it waits");
        let until = Instant::now() + PATIENCE;
        while question.answer_to(&run, 4).is_none() {
            assert!(Instant::now() < until, "no answer");
            let _ = answers.recv_timeout(Duration::from_millis(50));
            ask(&mut question, &analyst, &run, 4);
        }
        assert_eq!(question.last(&run), Some(&(AT_ONCE + 1)));
    }

    #[test]
    fn leaving_stops_what_is_at_work() {
        let (wake, _answers) = bounded(1);
        let analyst = Analyst::start(&wake).expect("threads");
        let run = run();
        let mut question: Question<u8, bool> = Question::default();
        question.light().ask(&analyst, &run, 0, |_, stop| {
            let until = Instant::now() + PATIENCE;
            while !stop.is_stopped() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
            stop.is_stopped()
        });
        let began = Instant::now();
        drop(analyst);
        assert!(began.elapsed() < PATIENCE / 2);
    }

    #[test]
    fn without_threads_and_for_little_the_answer_is_there_at_once() {
        let mut question = Asked::default();
        assert!(ask(&mut question, &Analyst::default(), &run(), 0));
        let (wake, _answers) = bounded(1);
        let analyst = Analyst::start(&wake).expect("threads");
        let mut trace = Trace::default();
        add(&mut trace, 3);
        let little = Run::new(trace, None, KnownGpus::default(), Status::Running);
        let mut question = Asked::default();
        assert!(ask(&mut question, &analyst, &little, 0));
        assert_eq!(question.answer_to(&little, 0), Some(&3));
        // Another run's answer is none of this one's.
        let other = Run {
            number: 1,
            ..Run::default()
        };
        assert_eq!(question.answer_to(&other, 0), None);
    }
}
