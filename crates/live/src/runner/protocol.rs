//! What the runner process and its parent say to each other: one JSON object a line.
//!
//! The parent writes one [`RunnerJob`] to the child's stdin and leaves the pipe open. When it closes, because
//! the parent wants an end or is gone itself, the child ends. The child writes [`Event`]s to its stdout
//! and nothing else. A line that is no event (a library that prints) is passed on as output. What was
//! measured does not come this way but through the recording.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use scenario::{Overrides, Source};
use serde::{Deserialize, Serialize};

use activity::{Direction, Uuid};

use super::fault::Fault;
use super::found::{Probe, Rejected};

/// What the child is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "job", rename_all = "kebab-case")]
pub(crate) enum RunnerJob {
    /// Run a scenario under the collector.
    Run(Box<RunJob>),
    /// Say what the machine has.
    Probe,
    /// Compile a scenario's kernels.
    Compile {
        source: Source,
        overrides: Overrides,
    },
}

/// A scenario to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RunJob {
    pub(crate) source: Source,
    pub(crate) overrides: Overrides,
    /// Whether the first pass waits for a line from the parent: counters are being sampled.
    pub(crate) awaits_counters: bool,
    /// The recording directory.
    pub(crate) dir: PathBuf,
    /// How often records are flushed to the recording.
    pub(crate) flush: Duration,
    /// One record for each launch of a CUDA graph, not one for each of its nodes.
    pub(crate) has_whole_graphs: bool,
    /// Whether what kernels wait for is sampled.
    pub(crate) stalls: bool,
}

/// What the child says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Event {
    /// Work before the first pass.
    Progress {
        /// What is being done ("compiling kernels").
        what: String,
        /// Units done.
        done: u64,
        /// Units in all.
        total: u64,
    },
    /// Something the user should know.
    Notice {
        /// Whether it limits what the timeline shows.
        is_warning: bool,
        /// One sentence.
        text: String,
    },
    /// The GPUs that the job uses, before its first pass. It waits for a line where that was asked for.
    Gpus { uuids: Vec<Uuid> },
    /// The answer to [`RunnerJob::Probe`].
    Probe(Box<Probe>),
    /// The answer to [`RunnerJob::Compile`].
    Compiled { rejected: Vec<Rejected> },
    /// The job failed. The last event.
    Error {
        /// The exit code that it is worth.
        code: u8,
        /// What failed and why.
        message: String,
        /// What would help; may be empty.
        help: String,
    },
    /// The job is done. The last event.
    Done {
        /// Everything that was issued, the preparation of buffers included.
        issued: Issued,
    },
}

/// How many operations of each kind were issued. Each must come back as exactly one record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Issued(
    /// By kind, as [`Issued::NAMES`] has them.
    pub [u64; 7],
);

impl Issued {
    /// The kinds. Kernels of graphs are among the kernels, unless graphs are recorded as a whole.
    pub(crate) const NAMES: [&str; 7] =
        ["kernels", "H2D", "D2H", "D2D", "P2P", "memsets", "graphs"];

    pub(crate) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn kernels(&mut self, count: u64) {
        self.0[0] += count;
    }

    pub(crate) fn copies(&mut self, direction: Direction, count: u64) {
        let at = Issued::NAMES.iter().position(|it| *it == direction.label());
        at.into_iter().for_each(|at| self.0[at] += count);
    }

    pub(crate) fn memsets(&mut self, count: u64) {
        self.0[5] += count;
    }

    pub(crate) fn graphs(&mut self, count: u64) {
        self.0[6] += count;
    }

    pub(crate) fn add(&mut self, other: &Issued) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }
}

/// Where the child writes its events.
pub(crate) struct EventWriter<W: Write>(Mutex<W>);

impl<W: Write> EventWriter<W> {
    pub(crate) fn new(out: W) -> EventWriter<W> {
        EventWriter(Mutex::new(out))
    }

    /// Says one thing. A parent that no longer listens is noticed on stdin, so a failure here is none.
    pub(crate) fn say(&self, event: &Event) {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = write_line(&mut *out, event);
    }

    /// Says why the job failed.
    pub(crate) fn fail(&self, fault: &Fault) {
        self.say(&Event::Error {
            code: fault.kind.code(),
            message: fault.message.clone(),
            help: fault.help.clone(),
        });
    }
}

/// Writes one value as one line.
pub(crate) fn write_line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_lines_with_a_tag() {
        let writer = EventWriter::new(Vec::new());
        writer.say(&Event::Progress {
            what: "compiling\nkernels".to_owned(),
            done: 1,
            total: 3,
        });
        writer.fail(&Fault::machine("no GPU", "buy one"));
        let bytes = writer.0.into_inner().expect("not poisoned");
        let text = String::from_utf8(bytes).expect("text");
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                r#"{"event":"progress","what":"compiling\nkernels","done":1,"total":3}"#,
                r#"{"event":"error","code":3,"message":"no GPU","help":"buy one"}"#,
            ]
        );
    }

    #[test]
    fn counts_add_up_by_direction() {
        let mut a = Issued::default();
        a.kernels(1);
        a.copies(Direction::H2D, 2);
        a.copies(Direction::P2P, 3);
        let mut b = a;
        b.add(&a);
        assert_eq!((b.0, b.total()), ([2, 4, 0, 0, 6, 0, 0], 12));
    }
}
