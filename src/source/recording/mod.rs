//! Recordings: the files in which the collector, or a simulator's [`Saver`], puts what happened.
//!
//! ```text
//! collector (in the traced process) ─► file ─► Follower ─► batches
//! any source ─► Saver ─► file
//! ```
//!
//! The format is that of [`collector::recording`]; `map` turns its entries into [`crate::activity`]'s and back.
//! A recording is followed live in the same way in which it is opened later.

mod beside;
mod bytes;
mod clock;
mod decoder;
mod excerpt;
mod follower;
mod keep;
mod map;
pub mod offcpu;
mod process;
pub mod readings;
mod saver;
pub mod scratch;
pub mod stacks;
mod tee;
#[cfg(test)]
mod tests;

pub use excerpt::excerpt;
pub use follower::{Follower, ProcessState};
pub use keep::keep;
pub use saver::Saver;
pub use tee::tee;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::activity::feed::{Failure, FailureKind, Feed, Message, Outcome};

/// How long to wait before looking for more, while a recording is being written.
const PAUSE: Duration = Duration::from_millis(10);

/// Opens recordings (directories, or single files) as one timeline, and follows them as long as one of their
/// processes lives.
///
/// # Errors
/// When a path cannot be read, or the operating system gives no thread.
pub fn open(paths: &[PathBuf]) -> io::Result<Feed> {
    let mut follower = Follower::open_all(paths)?;
    Feed::spawn("cuptop-recording", move |outlet| {
        loop {
            follower.look_for_files();
            let alive = follower.any_alive() || follower.any_beside_alive();
            if follower
                .poll_into(&mut |message| outlet.send(message))
                .is_err()
            {
                return Outcome::Stopped;
            }
            if outlet.stop.is_stopped() {
                return Outcome::Stopped;
            }
            if !alive {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        if follower
            .finish_into(&mut |message| outlet.send(message))
            .is_err()
        {
            return Outcome::Stopped;
        }
        match follower.is_empty() {
            false => Outcome::Complete,
            true => Outcome::Failed(Failure {
                kind: FailureKind::Input,
                message: "there is no recording of cuptop in it".to_owned(),
                help: "a recording directory holds files that end in .cuptop".to_owned(),
            }),
        }
    })
}

/// Whether any of these recordings was made by the simulator.
#[must_use]
pub fn is_simulated(paths: &[PathBuf]) -> bool {
    Follower::open_all(paths).is_ok_and(|mut follower| {
        follower.look_for_files();
        follower.is_simulated()
    })
}

/// Whether this path is a recording, or a directory that holds one.
#[must_use]
pub fn is_recording(path: &std::path::Path) -> bool {
    if path.is_dir() {
        return follower::files_of(path).is_ok_and(|files| !files.is_empty());
    }
    collector::recording::Reader::open(path).is_ok()
}

/// A message for what a recording's writer or its reader has to say.
fn notice(is_warning: bool, text: String) -> Message {
    Message::Notice { is_warning, text }
}
