//! Recordings as one timeline: what they hold by now, or followed as long as their job runs.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Follower;
use super::process::Sink;
use crate::activity::feed::{Failure, FailureKind, Feed, Gone, Message, Outcome, Outlet, Standing};

/// How long to wait before looking for more, while a recording is being written.
const PAUSE: Duration = Duration::from_millis(10);
/// How often it is told what is lacking.
const TELL: Duration = Duration::from_millis(500);
/// For how long another rank is waited for when all that were there have ended.
const LINGER: Duration = Duration::from_secs(3);
/// When nobody can say whether a writer lives: silence after which it is not waited for any more.
const LONGEST_SILENCE: Duration = Duration::from_secs(120);

/// Somewhere else, from which files come into folders that are followed here.
pub trait Inlet: Send {
    /// Takes what has come.
    ///
    /// # Errors
    /// When the consumer of the timeline is gone.
    fn pump(&mut self, now: Instant, sink: Sink<'_>) -> Result<(), Gone>;
    /// What it lacks at present.
    fn lacks(&self, now: Instant) -> Vec<Standing>;
    /// Whether it has said why a file here does not grow.
    fn excuses(&self, path: &Path) -> bool;
    /// Whether all that was there when it last looked has come.
    fn is_caught_up(&self) -> bool;
}

/// How recordings are followed.
pub struct Following {
    follower: Follower,
    inlets: Vec<Box<dyn Inlet>>,
    /// How to call where they are.
    place: String,
    is_live: bool,
    /// Whether one was being written at some time.
    was_alive: bool,
    told: (Instant, Vec<Standing>),
}

/// Opens recordings (directories, or single files) as one timeline, and follows them as long as one of their
/// processes lives.
///
/// # Errors
/// When a path cannot be read, or the operating system gives no thread.
pub fn open(paths: &[PathBuf]) -> io::Result<Feed> {
    Following::new(paths, Vec::new(), String::new(), false)?.start()
}

impl Following {
    /// Recordings (directories, or single files), and folders into which `inlets` bring some. When it `is_live`, somebody
    /// watches: recordings that do not exist yet are waited for, and what is lacking is told.
    ///
    /// # Errors
    /// When a path cannot be read.
    pub fn new(
        paths: &[PathBuf],
        inlets: Vec<Box<dyn Inlet>>,
        place: String,
        is_live: bool,
    ) -> io::Result<Following> {
        allow_many_files();
        let follower = Follower::open_all(paths)?;
        Ok(Following {
            follower,
            inlets,
            place,
            is_live,
            was_alive: false,
            told: (Instant::now(), Vec::new()),
        })
    }

    /// Whether more may come: there is nothing yet, or one is being written.
    pub fn is_growing(&mut self) -> bool {
        self.follower.look_for_files();
        !self.inlets.is_empty() || self.follower.is_empty() || self.is_alive()
    }

    fn is_alive(&self) -> bool {
        self.follower.any_alive() || self.follower.any_beside_alive()
    }

    /// Begins to read, on a thread of its own.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(self) -> io::Result<Feed> {
        Feed::spawn("cuptop-recording", move |outlet| self.run(outlet))
    }

    fn run(mut self, outlet: &Outlet) -> Outcome {
        match self.follow(outlet) {
            Err(Gone) => Outcome::Stopped,
            Ok(()) if outlet.stop.is_stopped() => Outcome::Stopped,
            Ok(()) if self.follower.is_empty() => Outcome::Failed(Failure {
                kind: FailureKind::Input,
                message: "there is no recording of cuptop in it".to_owned(),
                help: "a recording directory holds files that end in .cuptop".to_owned(),
            }),
            Ok(()) => Outcome::Complete,
        }
    }

    fn follow(&mut self, outlet: &Outlet) -> Result<(), Gone> {
        let sink = &mut |message| outlet.send(message);
        let mut over_since = None;
        loop {
            let now = Instant::now();
            for inlet in &mut self.inlets {
                inlet.pump(now, sink)?;
            }
            let is_caught_up = self.inlets.iter().all(|inlet| inlet.is_caught_up());
            let is_alive = if self.is_live {
                self.follower.poll_due(now, sink)?;
                self.follower.was_alive()
            } else {
                // Asked before it is read: what is written until a process ends is read after that.
                self.follower.look_for_files();
                let is_alive = self.is_alive();
                self.follower.poll_due(now, sink)?;
                is_alive
            };
            self.was_alive |= is_alive || self.follower.is_empty();
            if outlet.stop.is_stopped() {
                return Ok(());
            }
            if is_caught_up && !is_alive && self.has_ended(now, &mut over_since) {
                break;
            }
            if self.is_live && now.duration_since(self.told.0) >= TELL {
                self.tell(now, sink)?;
            }
            std::thread::sleep(PAUSE);
        }
        self.follower.finish_into(sink)
    }

    /// Whether nothing more is waited for, when no process is known to live.
    fn has_ended(&self, now: Instant, over_since: &mut Option<Instant>) -> bool {
        if !self.is_live {
            return true;
        }
        if self.follower.is_empty() {
            return false;
        }
        if !self.follower.is_over() {
            *over_since = None;
            let heard = self.follower.heard();
            return heard.is_some_and(|at| now.duration_since(at) > LONGEST_SILENCE);
        }
        let since = *over_since.get_or_insert(now);
        !self.was_alive || now.duration_since(since) >= LINGER
    }

    /// Tells what is lacking, when that has changed.
    fn tell(&mut self, now: Instant, sink: Sink<'_>) -> Result<(), Gone> {
        let mut lacks: Vec<Standing> = Vec::new();
        for inlet in &self.inlets {
            lacks.extend(inlet.lacks(now));
        }
        let inlets = &self.inlets;
        let is_excused = |path: &Path| inlets.iter().any(|inlet| inlet.excuses(path));
        lacks.extend(self.follower.lacks(now, &is_excused));
        if self.follower.is_empty() {
            let place = &self.place;
            let out = if self.inlets.is_empty() { place } else { "DIR" };
            lacks.push(Standing {
                is_alarming: false,
                text: format!(
                    "nothing is recorded in {place} yet\nstart the job's ranks, each with its own cuptop:\n\
                     cuptop trace --headless --out {out} -- PROGRAM"
                ),
            });
        }
        lacks.sort_by_key(|it| !it.is_alarming);
        self.told.0 = now;
        if self.told.1 != lacks {
            self.told.1.clone_from(&lacks);
            sink(Message::Standing(lacks))?;
        }
        Ok(())
    }
}

/// A job of hundreds of ranks is more files than a process has by default.
fn allow_many_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Where it is refused, files that cannot be opened are named.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: maximum,
                maximum,
            },
        );
    }
}
