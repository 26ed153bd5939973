//! Recordings as batches: followed live, opened later, saved and copied. `map` turns entries of [`crate::file`] into
//! [`activity`]'s and back.

mod clock;
pub mod files;
mod follower;
mod keep;
mod map;
mod open;
pub mod pace;
mod process;
mod saver;
pub mod scratch;
mod silence;
mod tee;
#[cfg(test)]
mod tests;

pub use files::folder_in;
pub use follower::{Follower, ProcessState};
pub use keep::keep;
pub use open::{Following, Inlet, open};
pub use process::Sink;
pub use saver::Saver;
pub use tee::tee;

use std::io;
use std::path::{Path, PathBuf};

use activity::feed::Message;

/// Whether any of these recordings was made by the simulator.
pub fn is_simulated(paths: &[PathBuf]) -> bool {
    Follower::open_all(paths).is_ok_and(|mut follower| {
        follower.find_files();
        follower.is_simulated()
    })
}

/// Whether this path is a recording, or a directory that holds one.
pub fn is_recording(path: &Path) -> bool {
    if path.is_dir() {
        return files::all_of(path).is_ok_and(|files| !files.is_empty());
    }
    crate::file::Reader::open(path).is_ok()
}

/// Whether recordings may yet come into this directory: it holds nothing else.
pub fn may_become_one(path: &Path) -> bool {
    path.is_dir() && files::is_bare(path)
}

fn must_be_new(path: &Path) -> io::Result<()> {
    let why = format!("{} exists", path.display());
    match path.exists() {
        true => Err(io::Error::new(io::ErrorKind::AlreadyExists, why)),
        false => Ok(()),
    }
}

/// A message for what a recording's writer or its reader has to say.
fn notice(is_warning: bool, text: String) -> Message {
    Message::Notice { is_warning, text }
}
