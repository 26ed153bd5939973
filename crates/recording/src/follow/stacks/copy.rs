//! Saving samples that pass by in batches.

use std::io;
use std::path::Path;

use crate::file::beside::Writer;

use super::encode::Encoder;
use super::{KIND, VERSION};
use activity::{Frame, Ns, SampleDef, Samples, Seen, StackId};

/// Writes one series of samples to a file beside a recording.
#[derive(Debug)]
pub(crate) struct Copier {
    writer: Writer,
    encoder: Encoder,
    frames: Vec<Frame>,
    /// The file's ids of the series' stacks.
    stacks: Vec<StackId>,
}

impl Copier {
    /// Begins a file for the process `pid`, whose samples begin at `start`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn create(directory: &Path, pid: u32, start: Ns) -> io::Result<Copier> {
        Ok(Copier {
            writer: Writer::create(directory, KIND, VERSION, pid, start, 0)?,
            encoder: Encoder::default(),
            frames: Vec::new(),
            stacks: Vec::new(),
        })
    }

    /// Writes what a batch holds.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn save(&mut self, samples: &Samples) -> io::Result<()> {
        for def in &samples.defs {
            self.define(def);
        }
        for look in &samples.looks {
            let own = |seen: &Seen| Seen {
                stack: self.stack(seen.stack),
                ..*seen
            };
            let changed: Vec<Seen> = look.changed.iter().map(own).collect();
            self.encoder.changed(look.time, &changed);
        }
        match self.encoder.block(&samples.sampling) {
            Some(block) => self.writer.append(&block),
            None => Ok(()),
        }
    }

    fn define(&mut self, def: &SampleDef) {
        match def {
            SampleDef::Frame { id, frame } => put(&mut self.frames, *id, frame.clone()),
            SampleDef::Stack { id, caller, frame } => {
                let caller = self.stack(*caller);
                let unknown = Frame::default();
                let frame = (*frame as usize)
                    .checked_sub(1)
                    .and_then(|index| self.frames.get(index))
                    .unwrap_or(&unknown);
                let own = self.encoder.deeper(caller, frame).unwrap_or(caller);
                put(&mut self.stacks, *id, own);
            }
        }
    }

    fn stack(&self, id: StackId) -> StackId {
        let index = (id as usize).checked_sub(1);
        index
            .and_then(|index| self.stacks.get(index))
            .copied()
            .unwrap_or(0)
    }
}

/// Puts a value where an id that counts from 1 says. Ids are dense but for what was lost.
fn put<T: Clone + Default>(table: &mut Vec<T>, id: u32, value: T) {
    let Some(index) = (id as usize).checked_sub(1) else {
        return;
    };
    if table.len() <= index {
        table.resize(index + 1, T::default());
    }
    table[index] = value;
}
