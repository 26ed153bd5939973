//! The channel between a source and the one owner of the trace store.
//!
//! It is bounded: a source that is faster than its consumer waits. A traced program never waits for it, because the
//! recording lies between the program and its reader. A source runs on a named thread of its own, looks at its [`Stop`]
//! between messages, and ends with exactly one [`Message::Finished`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::Batch;

/// Messages that may wait in the channel. At 20 ms a flush that is several seconds of a live source;
/// a file reader simply waits for its consumer.
pub const CAPACITY: usize = 256;

/// Signals whose default is to end a process. Left out: SIGKILL, what faults raise again and again, SIGPIPE and SIGXFSZ (errors of a write),
/// and SIGUSR2, which is a switch of `trace`.
const ENDING: [i32; 15] = [
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGABRT,
    libc::SIGUSR1,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGXCPU,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// Signals that ask to end: those of [`ENDING`], and the real-time ones.
pub fn ending() -> impl Iterator<Item = i32> {
    let real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
    ENDING.into_iter().chain(real_time)
}

/// What a source sends.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all messages are batches, which hold their records elsewhere"
)]
pub enum Message {
    /// Activities.
    Batch(Batch),
    /// How far long work has come (compiling kernels, loading a file).
    Progress(Progress),
    /// A line that the watched program printed.
    Output {
        /// Whether it came from stderr.
        is_error: bool,
        /// The line without its end, control characters still in it.
        line: String,
    },
    /// Something the user should know; kept in the log view.
    Notice {
        /// Whether it limits what the timeline shows.
        is_warning: bool,
        /// One sentence.
        text: String,
    },
    /// What is so until it is told anew, in place of what was told before: whom the source waits for. Nothing is any more when
    /// it has ended.
    Status(Vec<SourceStatus>),
    /// The last message.
    Finished(Outcome),
}

/// Something that is so for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStatus {
    /// Whether the timeline lacks something meanwhile that it should have.
    pub is_alarming: bool,
    /// In a sentence without a full stop; further lines say what to do.
    pub text: String,
}

/// How far long work has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What is being done ("compiling kernels").
    pub what: String,
    /// Units done.
    pub done: u64,
    /// Units in all.
    pub total: u64,
}

/// How a source ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was sent.
    Complete,
    /// It was asked to stop and did; what was sent is valid.
    Stopped,
    /// It failed; what was sent before is valid.
    Failed(Failure),
}

/// Why a source failed, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure, which decides the exit code.
    pub kind: FailureKind,
    /// What failed and why, in a sentence or two.
    pub message: String,
    /// What would help; empty when nothing is known to.
    pub help: String,
}

impl Failure {
    /// One with these words.
    pub fn new(kind: FailureKind, message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure {
            kind,
            message: message.into(),
            help: help.into(),
        }
    }

    /// One of the machine, which nothing is known to help.
    pub fn machine(message: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Machine, message, "")
    }
}

/// What kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The input is wrong (exit code 2).
    Input,
    /// The machine cannot do it (exit code 3).
    Machine,
    /// The program that was watched failed (exit code 4, or its own).
    Program {
        /// Its exit status, or 128 + the signal that ended it.
        code: i32,
    },
}

impl FailureKind {
    /// The exit code for it. A program's own code is passed on where it fits.
    pub fn code(self) -> u8 {
        match self {
            FailureKind::Input => 2,
            FailureKind::Machine => 3,
            FailureKind::Program { code } => {
                u8::try_from(code).ok().filter(|&c| c != 0).unwrap_or(4)
            }
        }
    }
}

/// A request to stop, shared by the two ends.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks the source to stop.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// What asks by being set, as a handler of signals does.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// A request to hold, shared by the two ends: a replay waits while it stands.
#[derive(Clone, Debug, Default)]
pub struct Pause(Arc<AtomicBool>);

impl Pause {
    /// Asks the source to wait, or to go on.
    pub fn hold(&self, is_held: bool) {
        self.0.store(is_held, Ordering::Relaxed);
    }

    /// Whether it was asked to wait.
    pub fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The consumer is gone, and nobody will read what a source sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody reads this timeline any more")]
pub struct Gone;

/// The source's end.
#[derive(Clone, Debug)]
pub struct Outlet {
    sender: Sender<Message>,
    /// Whether the consumer wants no more.
    pub stop: Stop,
}

impl Outlet {
    /// Sends a message, waiting while the channel is full.
    ///
    /// # Errors
    /// When the consumer is gone: the source should end.
    pub fn send(&self, message: Message) -> Result<(), Gone> {
        self.sender.send(message).map_err(|_| Gone)
    }

    /// Sends a notice.
    ///
    /// # Errors
    /// As [`Outlet::send`].
    pub fn notice(&self, is_warning: bool, text: String) -> Result<(), Gone> {
        self.send(Message::Notice { is_warning, text })
    }
}

/// A thread that is waited for when this is dropped. What makes it end goes before: it stands above in a struct, or is
/// what [`Joined::until_dropped`] hands to it.
#[derive(Debug)]
pub struct Joined {
    /// Nothing is ever sent.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Joined {
    /// Starts `work` on a thread called `name`.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<Joined> {
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = Some(thread.spawn(work)?);
        Ok(Joined { stop: None, thread })
    }

    /// The same, with a channel that closes when this is dropped.
    ///
    /// # Errors
    /// As [`Joined::spawn`].
    pub fn until_dropped(
        name: &str,
        work: impl FnOnce(&Receiver<()>) + Send + 'static,
    ) -> std::io::Result<Joined> {
        let (stop, stopped) = bounded(0);
        let mut joined = Joined::spawn(name, move || work(&stopped))?;
        joined.stop = Some(stop);
        Ok(joined)
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of it was said by the hook; there is nobody left to ask.
            let _ = thread.join();
        }
    }
}

/// The consumer's end, with the thread behind it. Dropping it stops the source and joins its thread.
#[derive(Debug)]
pub struct Feed {
    /// A source that waits in `send` wakes up when it is gone.
    receiver: Receiver<Message>,
    /// Asks the source to stop.
    pub stop: Stop,
    _thread: Joined,
}

impl Feed {
    /// Starts `source` on a thread called `name`. Its result becomes the last message.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn spawn<F>(name: &str, source: F) -> std::io::Result<Feed>
    where
        F: FnOnce(&Outlet) -> Outcome + Send + 'static,
    {
        let (sender, receiver) = bounded(CAPACITY);
        let outlet = Outlet {
            sender,
            stop: Stop::default(),
        };
        let stop = outlet.stop.clone();
        let thread = Joined::spawn(name, move || {
            let outcome = source(&outlet);
            // A consumer that is gone needs no last word.
            let _ = outlet.send(Message::Finished(outcome));
        })?;
        Ok(Feed {
            receiver,
            stop,
            _thread: thread,
        })
    }

    /// Where the messages arrive. After [`Message::Finished`], or if the source panicked, it is disconnected.
    pub fn receiver(&self) -> &Receiver<Message> {
        &self.receiver
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_the_feed_ends_a_source_that_waits_in_send() {
        let feed = Feed::spawn("test-source", |outlet| {
            loop {
                if outlet.send(Message::Batch(Batch::default())).is_err() {
                    return Outcome::Stopped;
                }
            }
        })
        .expect("a thread");
        assert!(matches!(feed.receiver().recv(), Ok(Message::Batch(_))));
        drop(feed);
    }

    #[test]
    fn the_outcome_is_the_last_message() {
        let feed = Feed::spawn("test-source", |_| Outcome::Complete).expect("a thread");
        assert!(matches!(
            feed.receiver().recv(),
            Ok(Message::Finished(Outcome::Complete))
        ));
        assert!(feed.receiver().recv().is_err());
    }
}
