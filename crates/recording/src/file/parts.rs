//! Keeping only the last of a recording: it is written in parts, and the oldest go.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use activity::entry::{self, UNIT};
use activity::{Mode, SampleDef};

use super::block::{self, Counts, FRAMES, STACKS};
use super::steps;

/// Bytes of definitions that are repeated at the beginning of a part. A process has some hundred streams and threads;
/// what is beyond stays in the parts where it was defined.
const MOST_DEFINED: usize = 4 << 20;

/// The parts of one process's recording.
#[derive(Debug)]
pub(super) struct Parts {
    /// How much is to be kept at least: the part before the present one always covers this long.
    age: Duration,
    pub(super) begun: Instant,
    previous: Option<PathBuf>,
}

impl Parts {
    pub(super) fn new(age: Duration) -> Parts {
        Parts {
            age,
            begun: Instant::now(),
            previous: None,
        }
    }

    /// Whether the present part is to end.
    pub(super) fn is_due(&self) -> bool {
        self.begun.elapsed() >= self.age
    }

    /// A new part has begun after the one at `ended`: the one before that is not needed any more.
    pub(super) fn advance(&mut self, ended: PathBuf) {
        if let Some(old) = self.previous.replace(ended) {
            // Somebody else may have removed it: that is as good.
            let _ = std::fs::remove_file(old);
        }
        self.begun = Instant::now();
    }
}

/// The definitions that every part repeats: all but names and shapes, which are numbered anew.
#[derive(Debug, Default)]
pub(super) struct Defined {
    bytes: Vec<u8>,
    /// What is recorded now.
    pub(super) mode: Option<Mode>,
}

impl Defined {
    pub(super) fn add(&mut self, entry: &super::Entry<'_>) {
        // Readers count frames and stacks: where one is left out, the next ones would be taken for damaged.
        let is_counted = matches!(
            entry,
            super::Entry::SampleDef(SampleDef::Frame { .. } | SampleDef::Stack { .. })
        );
        // Launches go with their records. Their ids are below those of nodes.
        let is_of_launches = match entry {
            super::Entry::SampleDef(SampleDef::Nodes(all)) => {
                all.first().is_some_and(|it| it.0 <= u64::from(u32::MAX))
            }
            _ => false,
        };
        if is_counted || (self.bytes.len() < MOST_DEFINED && !is_of_launches) {
            entry.encode(&mut self.bytes);
        }
    }

    /// Writes them from `offset` on. Returns where they end, and what they count.
    pub(super) fn write(&self, file: &File, mut offset: u64) -> io::Result<(u64, Counts)> {
        let mut counts = Counts::default();
        let mut all = self.bytes.clone();
        if let Some(mode) = self.mode {
            super::Entry::Mode(mode).encode(&mut all);
        }
        let mut rest = &all[..];
        while !rest.is_empty() {
            let (mut length, before) = (0, counts);
            while length < rest.len() && length < block::FULL {
                counts.ids[FRAMES] += u32::from(rest[length] == entry::FRAME);
                counts.ids[STACKS] += u32::from(rest[length] == entry::STACK);
                length += entry::length(&rest[length..]).unwrap_or(UNIT);
            }
            let mut bytes = vec![0; UNIT];
            bytes.extend_from_slice(&rest[..length]);
            block::seal(&mut bytes, offset, before);
            steps::write(file, &bytes, offset)?;
            offset += bytes.len() as u64;
            rest = &rest[length..];
        }
        Ok((offset, counts))
    }
}
