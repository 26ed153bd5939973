//! Recordings as one timeline: what they hold by now, or followed as long as their job runs.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Follower;
use super::process::Sink;
use activity::feed::{Failure, FailureKind, Feed, Gone, Message, Outcome, Outlet, SourceStatus};

/// How long to wait before looking for more, while a recording is being written.
const PAUSE: Duration = Duration::from_millis(20);
/// How often it is told what has been read of files that are copied here.
const GIVE_BACK: Duration = Duration::from_millis(100);
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
    fn pump(&mut self, sink: Sink<'_>) -> Result<(), Gone>;
    /// What it lacks at present.
    fn lacks(&self, now: Instant) -> Vec<SourceStatus>;
    /// Whether it has said why a file here does not grow.
    fn excuses(&self, path: &Path) -> bool;
    /// Whether all that was there when it last looked has come.
    fn is_caught_up(&self) -> bool;
    /// That nothing has come for so long that who does not watch should not wait on; why.
    fn is_lost(&self, now: Instant) -> Option<String>;
    /// A file was read up to a position (its end, when that is larger): what is before it is not needed any more.
    fn was_read(&mut self, path: &Path, position: u64);
    /// A text with names of files as they are where they come from; `None` when there is none of them in it.
    fn named(&self, text: &str) -> Option<String>;
    /// Nothing more is wanted of it: it begins to end, which its drop waits for.
    fn stop(&mut self);
    /// The folder that they come into.
    fn folder(&self) -> &Path;
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
    told: (Instant, Vec<SourceStatus>),
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
        let mut follower = Follower::open_all(paths)?;
        for inlet in &inlets {
            follower.follow_copies(inlet.folder());
        }
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
        self.follower.find_files();
        !self.inlets.is_empty() || self.follower.is_empty() || self.is_alive()
    }

    fn is_alive(&self) -> bool {
        self.follower.any_alive() || self.follower.any_outside_alive()
    }

    /// Begins to read, on a thread of its own.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(self) -> io::Result<Feed> {
        Feed::spawn("cuptop-recording", move |outlet| self.run(outlet))
    }

    fn run(mut self, outlet: &Outlet) -> Outcome {
        let mut inlets = std::mem::take(&mut self.inlets);
        let followed = self.follow(&mut inlets, outlet);
        // All at once: each may take a moment.
        for inlet in &mut inlets {
            inlet.stop();
        }
        match followed {
            Err(Gone) => Outcome::Stopped,
            Ok(_) if outlet.stop.is_stopped() => Outcome::Stopped,
            Ok(Some(why)) => Outcome::Failed(Failure::new(FailureKind::Machine, why, "")),
            Ok(None) if self.follower.is_empty() => {
                let why = "there is no recording of cuptop in it";
                let help = "a recording directory holds files that end in .cuptop";
                Outcome::Failed(Failure::new(FailureKind::Input, why, help))
            }
            Ok(None) => Outcome::Complete,
        }
    }

    /// Follows it to its end. Returns why more does not come, when that is not that all has ended.
    fn follow(
        &mut self,
        inlets: &mut [Box<dyn Inlet>],
        outlet: &Outlet,
    ) -> Result<Option<String>, Gone> {
        let mut over_since = None;
        let mut given_back = Instant::now();
        let why = loop {
            let now = Instant::now();
            for inlet in &mut *inlets {
                inlet.pump(&mut |message| outlet.send(message))?;
            }
            let is_caught_up = inlets.iter().all(|inlet| inlet.is_caught_up());
            let sink = &mut |message| outlet.send(named(message, inlets));
            let is_alive = if self.is_live {
                self.follower.poll_due(now, sink)?;
                self.follower.was_alive()
            } else {
                // Asked before it is read: what is written until a process ends is read after that.
                let mut is_alive = self.is_alive();
                if !is_alive {
                    // Another may have begun since they were listed, which many folders are not as often as this.
                    self.follower.find_files();
                    is_alive = self.is_alive();
                }
                self.follower.poll_due(now, sink)?;
                is_alive
            };
            self.was_alive |= is_alive || self.follower.is_empty();
            if outlet.stop.is_stopped() {
                return Ok(None);
            }
            if is_caught_up && !is_alive && self.has_ended(now, &mut over_since) {
                break None;
            }
            if now.duration_since(self.told.0) >= TELL {
                self.tell(now, inlets, sink)?;
            }
            if !self.is_live
                && let Some(why) = inlets.iter().find_map(|inlet| inlet.is_lost(now))
            {
                break Some(why);
            }
            if !inlets.is_empty() && now.duration_since(given_back) >= GIVE_BACK {
                given_back = now;
                for (path, position) in self.follower.positions() {
                    for inlet in &mut *inlets {
                        inlet.was_read(&path, position);
                    }
                }
            }
            std::thread::sleep(PAUSE);
        };
        let sink = &mut |message| outlet.send(named(message, inlets));
        self.follower.finish_into(sink)?;
        Ok(why)
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
    fn tell(
        &mut self,
        now: Instant,
        inlets: &[Box<dyn Inlet>],
        sink: Sink<'_>,
    ) -> Result<(), Gone> {
        let mut lacks: Vec<SourceStatus> = Vec::new();
        for inlet in inlets {
            lacks.extend(inlet.lacks(now));
        }
        let is_excused = |path: &Path| inlets.iter().any(|inlet| inlet.excuses(path));
        if self.is_live {
            lacks.extend(self.follower.lacks(now, &is_excused));
        }
        if self.is_live && self.follower.is_empty() {
            let place = &self.place;
            let out = if inlets.is_empty() { place } else { "DIR" };
            lacks.push(SourceStatus {
                is_alarming: false,
                text: format!(
                    "nothing is recorded in {place} yet: is this the folder?\nstart the job's ranks, each with its own cuptop:\n\
                     cuptop trace --headless --out {out} -- PROGRAM"
                ),
            });
        }
        lacks.sort_by_key(|it| !it.is_alarming);
        self.told.0 = now;
        if self.told.1 != lacks {
            self.told.1.clone_from(&lacks);
            sink(Message::Status(lacks))?;
        }
        Ok(())
    }
}

/// What is said of files here, with the names that they have where they come from.
fn named(mut message: Message, inlets: &[Box<dyn Inlet>]) -> Message {
    let rename = |text: &mut String| {
        for inlet in inlets {
            if let Some(renamed) = inlet.named(text) {
                *text = renamed;
            }
        }
    };
    match &mut message {
        Message::Notice { text, .. } => rename(text),
        Message::Status(all) => all.iter_mut().for_each(|it| rename(&mut it.text)),
        _ => {}
    }
    message
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
