//! Why a process is left as it is.

use std::io;

/// Why a library cannot be loaded into a process. The process goes on as it was.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// There is none of this number.
    #[error("there is no process {0}")]
    None(u32),
    /// It has ended, or is about to.
    #[error("process {0} is ending")]
    Ending(u32),
    /// It stands still.
    #[error("process {0} is stopped, by a signal or a shell: kill -CONT {0} lets it go on")]
    Stopped(u32),
    /// The operating system does not allow it.
    #[error("process {pid} may not be changed: {error}")]
    NotPermitted {
        /// The process.
        pid: u32,
        /// The system's word.
        error: io::Error,
    },
    /// A debugger has it.
    #[error("process {pid} is being debugged already, by process {by} ({name})")]
    Traced {
        /// The process.
        pid: u32,
        /// The debugger.
        by: u32,
        /// Its name.
        name: String,
    },
    /// Its kind cannot be entered.
    #[error("process {pid} {why}")]
    Unfit {
        /// The process.
        pid: u32,
        /// What it is.
        why: &'static str,
    },
    /// No thread came to a place where a call is safe.
    #[error("no thread of process {pid} came to a safe place in {waited:.1} s: {why}")]
    NoPlace {
        /// The process.
        pid: u32,
        /// Seconds that were waited.
        waited: f64,
        /// What the threads did instead.
        why: String,
    },
    /// Another call into it, of somebody who may be gone, has not come back.
    #[error("another cuptop is entering process {0}")]
    Entered(u32),
    /// It became another program meanwhile.
    #[error("process {0} has just become another program")]
    Exec(u32),
    /// A step did not work.
    #[error("{what}: {error}")]
    Failed {
        /// Which.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
}

impl Refused {
    /// For `map_err`: a step that did not work.
    pub(crate) fn failed(what: &'static str) -> impl FnOnce(io::Error) -> Refused {
        move |error| Refused::Failed { what, error }
    }
}
