//! The parent's side of a run: the process is started, its recording followed, its words passed on, and
//! its end made into an outcome.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use collector::Graphs;

use crate::counters::{Counters, stalls_lack};
use crate::hardware::{self, HardwareWatch};
use activity::feed::{Failure, FailureKind, Feed, Gone, Message, Outcome, Outlet, Pause, Progress};
use recording::{Follower, scratch};
use scenario::{Overrides, Source};

use super::child::{Child, ChildEvent, End};
use super::protocol::{Event, Issued, RunJob, RunnerJob};
use super::tally::Tally;

/// How often the recording is looked at. With a flush every 20 ms this adds 2.5 ms on average to the time
/// until an operation is on the screen.
const LOOK: Duration = Duration::from_millis(5);

/// A scenario to run on the GPU.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The scenario.
    pub source: Source,
    /// What the command line changes.
    pub overrides: Overrides,
    /// Where the recording is kept. `None`: a temporary directory, removed when the feed ends.
    pub save: Option<PathBuf>,
    /// How often records are flushed to the recording.
    pub flush: Duration,
    /// Whether CUDA graphs are recorded by their nodes or as a whole.
    pub graphs: Graphs,
    /// Whether GPUs' counters and sensors are read meanwhile, and what launching threads do off their processors.
    pub hardware: bool,
    /// Whether GPUs' counters are sampled, which needs `hardware`.
    pub counters: Counters,
    /// Whether to sample what kernels wait for, if nobody uses the counters of any GPU here.
    pub stalls: bool,
}

/// Runs a scenario in a process of its own and sends what it does.
///
/// # Errors
/// When no directory for the recording, no process or no thread can be had.
pub fn run(request: RunRequest) -> io::Result<Feed> {
    let (dir, temporary) = match &request.save {
        Some(dir) => {
            recording::file::create_directory(dir)?;
            (dir.clone(), None)
        }
        None => {
            let temporary = scratch::directory()?;
            (temporary.path().to_owned(), Some(temporary))
        }
    };
    let mut stalls = request.stalls;
    let lack = stalls_lack(&mut stalls);
    let job = RunnerJob::Run(Box::new(RunJob {
        source: request.source,
        overrides: request.overrides,
        awaits_counters: request.hardware && request.counters != Counters::Off,
        dir: dir.clone(),
        flush: request.flush,
        has_whole_graphs: request.graphs == Graphs::Whole,
        stalls,
    }));
    let child = Child::start(&job)?;
    let follower = Follower::open(&dir)?;
    let watch = request
        .hardware
        .then(|| HardwareWatch::start(&dir, Pause::default(), request.counters, None))
        .transpose()?;
    Feed::spawn("runner", move |outlet| {
        let mut run = Run {
            child,
            follower,
            watch,
            lack,
            outlet,
            tally: Tally::default(),
            is_awaited: false,
            end: None,
        };
        let outcome = match run.follow() {
            Ok(outcome) => outcome,
            Err(Gone) => Outcome::Stopped,
        };
        // What ends the process goes before the recording's directory.
        drop(run);
        drop(temporary);
        outcome
    })
}

/// A run that is under way.
struct Run<'a> {
    child: Child,
    follower: Follower,
    watch: Option<HardwareWatch>,
    /// Why no stalls are sampled that were asked for.
    lack: Option<String>,
    outlet: &'a Outlet,
    tally: Tally,
    /// Whether the process waits until counters are sampled.
    is_awaited: bool,
    /// The last event.
    end: Option<Result<Issued, Failure>>,
}

impl Run<'_> {
    fn follow(&mut self) -> Result<Outcome, Gone> {
        if let Some(text) = self.lack.take() {
            self.outlet.notice(true, text)?;
        }
        let mut next_look = Instant::now() + LOOK;
        loop {
            if self.outlet.stop.is_stopped() {
                self.child.end();
                self.send_rest()?;
                return Ok(Outcome::Stopped);
            }
            match self
                .child
                .recv(next_look.saturating_duration_since(Instant::now()))
            {
                ChildEvent::Event(event) => self.pass_on(*event)?,
                ChildEvent::Output { is_error, line } => {
                    self.outlet.send(Message::Output { is_error, line })?;
                }
                ChildEvent::Nothing => {}
                ChildEvent::End => break,
            }
            if Instant::now() >= next_look {
                self.send_new()?;
                let is_ready = |watch: &HardwareWatch| watch.has_settled();
                if self.is_awaited && self.watch.as_ref().is_none_or(is_ready) {
                    self.is_awaited = false;
                    self.child.go_on();
                }
                next_look = Instant::now() + LOOK;
            }
        }
        let end = self.child.end();
        self.send_rest()?;
        self.conclude(end)
    }

    fn pass_on(&mut self, event: Event) -> Result<(), Gone> {
        match event {
            Event::Progress { what, done, total } => {
                let progress = Progress { what, done, total };
                self.outlet.send(Message::Progress(progress))?;
            }
            Event::Notice { is_warning, text } => {
                self.outlet.notice(is_warning, text)?;
            }
            Event::Error {
                code,
                message,
                help,
            } => {
                let kind = match code {
                    2 => FailureKind::Input,
                    3 => FailureKind::Machine,
                    code => FailureKind::Program { code: code.into() },
                };
                self.end = Some(Err(Failure::new(kind, message, help)));
            }
            Event::Done { issued } => self.end = Some(Ok(issued)),
            Event::Gpus { uuids } => {
                if let Some(watch) = &mut self.watch {
                    watch.sample(uuids);
                }
                self.is_awaited = true;
            }
            Event::Probe(_) | Event::Compiled { .. } => {}
        }
        Ok(())
    }

    /// What the recording has had since the last look.
    fn send_new(&mut self) -> Result<(), Gone> {
        let (outlet, tally, watch) = (self.outlet, &mut self.tally, &mut self.watch);
        self.follower
            .poll_into(&mut |message| send(outlet, tally, watch, message))
    }

    /// The rest of the recording, after the process has ended.
    fn send_rest(&mut self) -> Result<(), Gone> {
        // What it wrote last is read too.
        self.watch = None;
        let (outlet, tally) = (self.outlet, &mut self.tally);
        self.follower
            .finish_into(&mut |message| send(outlet, tally, &mut None, message))
    }

    /// Makes the process's end into an outcome.
    fn conclude(&mut self, end: End) -> Result<Outcome, Gone> {
        match self.end.take() {
            Some(Ok(issued)) => {
                let (is_warning, text) = self.tally.compare(&issued);
                self.outlet.notice(is_warning, text)?;
                Ok(Outcome::Complete)
            }
            Some(Err(failure)) => Ok(Outcome::Failed(failure)),
            None => Ok(Outcome::Failed(Failure::new(
                FailureKind::Program { code: end.code() },
                format!(
                    "the runner process ended without a word: {}",
                    end.describe()
                ),
                "what it printed is in the log; a driver that crashes says more in dmesg",
            ))),
        }
    }
}

fn send(
    outlet: &Outlet,
    tally: &mut Tally,
    watch: &mut Option<HardwareWatch>,
    message: Message,
) -> Result<(), Gone> {
    if let Message::Batch(batch) = &message {
        tally.count(batch);
    }
    hardware::pass_on(watch, message, outlet)
}
