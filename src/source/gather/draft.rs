//! What is shown of files before all of them was read.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashSet;

use super::{Gather, moved};
use crate::activity::feed::{Gone, Message, Outlet, Stop};
use crate::activity::{Activity, Batch, Def, Ns};

/// Records that the drafts of several files hold in all: some 300 MB of a timeline that is only looked at.
const DRAFTED_MAX: usize = 8 << 20;

/// How long until somebody who waits for a turn looks whether to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Files whose drafts have begun, or that have none to show: all before a number.
#[derive(Debug, Default)]
struct Turns {
    begun: Mutex<u32>,
    changed: Condvar,
}

impl Turns {
    fn lock(&self) -> std::sync::MutexGuard<'_, u32> {
        // A number is whole at any moment.
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What of a file is shown before all of it was read.
#[derive(Debug)]
pub(in crate::source) struct Draft {
    /// The number of its first process, and how far apart those of its processes are.
    first: u32,
    step: u32,
    /// Records that may still be shown.
    left: usize,
    /// How much was shown: by process how many definitions and runs.
    sent: Vec<(usize, usize)>,
    /// The devices that were described, by process.
    devices: FxHashSet<(u32, u32)>,
    turns: Arc<Turns>,
}

impl Draft {
    /// Of each of so many files: their processes are told apart, drafts begin in the order of the files, so that GPUs are
    /// numbered as they will be, and each file has its share of what is shown.
    pub(in crate::source) fn of(files: usize) -> impl Iterator<Item = Draft> {
        let turns = Arc::new(Turns::default());
        (0..files as u32).map(move |at| Draft {
            first: at,
            step: files as u32,
            left: match files {
                1 => usize::MAX,
                files => DRAFTED_MAX / files,
            },
            sent: Vec::new(),
            devices: FxHashSet::default(),
            turns: Arc::clone(&turns),
        })
    }

    /// Waits until the file before has begun its draft, or was read and has none. It was started before this one.
    pub(in crate::source) fn wait(&self, stop: &Stop) {
        let mut begun = self.turns.lock();
        while *begun < self.first && !stop.is_stopped() {
            // Who stops the reading wakes nobody.
            let waited = self.turns.changed.wait_timeout(begun, LOOK);
            begun = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn has_turn(&self) -> bool {
        *self.turns.lock() >= self.first
    }

    /// The next file's turn has come.
    fn begin(&self) {
        let mut begun = self.turns.lock();
        if *begun <= self.first {
            *begun = self.first + 1;
            self.turns.changed.notify_all();
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        self.begin();
    }
}

impl Gather {
    /// Sends copies of what was found since the last time, `shift` ns later, as [`Message::Draft`]. What is known already of a
    /// process and of each of its devices is told by `about`, the process's for no device.
    ///
    /// # Errors
    /// When the consumer is gone.
    pub(in crate::source) fn draft(
        &self,
        draft: &mut Draft,
        outlet: &Outlet,
        shift: Ns,
        about: impl Fn(Option<u32>) -> Option<Def>,
    ) -> Result<(), Gone> {
        if !draft.has_turn() {
            return Ok(());
        }
        let known = draft.sent.len();
        draft.sent.resize(self.processes.len(), (0, 0));
        for (index, process) in self.processes.iter().enumerate() {
            if draft.left == 0 {
                break;
            }
            let (defs, runs) = draft.sent[index];
            draft.sent[index] = (process.defs.len(), process.runs.len());
            let process_number = draft.first + index as u32 * draft.step;
            let mut batch = Batch {
                process: process_number,
                ..Batch::default()
            };
            if index >= known {
                batch.defs.extend(about(None));
            }
            for &id in &process.devices {
                if draft.devices.insert((index as u32, id)) {
                    batch.defs.extend(about(Some(id)));
                }
            }
            batch.defs.extend_from_slice(&process.defs[defs..]);
            for run in &process.runs[runs..] {
                let shown = &run[..run.len().min(draft.left)];
                draft.left -= shown.len();
                batch.items.extend(shown.iter().map(|item| Activity {
                    span: moved(item.span, shift),
                    ..*item
                }));
            }
            if !(batch.defs.is_empty() && batch.items.is_empty()) {
                outlet.send(Message::Draft(batch))?;
                draft.begin();
            }
        }
        Ok(())
    }
}
