//! Stack samples on their way into a recording: what looks refer to is defined once, and a look says what has changed.

use std::collections::HashMap;

use super::Writer;
use super::intern::Interner;
use activity::entry::{Entry, LONGEST};
use activity::{Frame, Ns, SampleDef, SampledThread, StackId, StackSample};

/// Different frames and stacks that are remembered at a time. What comes again beyond that is defined again.
const MOST_FRAMES: usize = 1 << 18;
const MOST_STACKS: usize = 1 << 20;
/// Threads that one entry has room for.
const MOST_SEEN: usize = LONGEST / 8 - 3;

/// What a recording without parts has been told of stacks.
#[derive(Debug, Default)]
pub struct StackLog {
    frames: Interner<Frame, MOST_FRAMES>,
    stacks: Interner<(StackId, u32), MOST_STACKS>,
    /// What each thread was last seen doing.
    threads: HashMap<u32, SampledThread>,
    /// The block of the last look.
    block: Option<u64>,
}

impl StackLog {
    /// The stack with one frame more.
    pub fn deeper(&mut self, writer: &mut Writer, caller: StackId, frame: &Frame) -> StackId {
        let frame = self.frames.get(frame).unwrap_or_else(|| {
            let id = self.frames.add(frame.clone());
            let frame = frame.clone();
            writer.add(&Entry::SampleDef(SampleDef::Frame { id, frame }));
            id
        });
        self.stacks.get(&(caller, frame)).unwrap_or_else(|| {
            let id = self.stacks.add((caller, frame));
            writer.add(&Entry::SampleDef(SampleDef::Stack { id, caller, frame }));
            id
        })
    }

    /// Puts in a look at all threads: those that are not among `seen` are gone.
    pub fn add_look(&mut self, writer: &mut Writer, time: Ns, seen: &[SampledThread]) {
        let is_gone = |thread: &&u32| seen.iter().all(|it| it.thread != **thread);
        let gone = self
            .threads
            .keys()
            .filter(is_gone)
            .map(|&thread| SampledThread {
                thread,
                stack: 0,
                is_running: false,
            });
        let new = seen
            .iter()
            .filter(|it| self.threads.get(&it.thread) != Some(it));
        let changed: Vec<SampledThread> = new.copied().chain(gone).collect();
        self.change(writer, time, changed);
    }

    /// Puts in a look by what is different from the one before.
    pub fn change(&mut self, writer: &mut Writer, time: Ns, mut changed: Vec<SampledThread>) {
        for it in &changed {
            match it.stack {
                0 => self.threads.remove(&it.thread),
                _ => self.threads.insert(it.thread, *it),
            };
        }
        if self.block.replace(writer.end) != Some(writer.end) {
            // The first of a block names all: a lost block costs no more than itself.
            changed.retain(|it| it.stack == 0);
            changed.extend(self.threads.values());
            changed.sort_unstable_by_key(|it| it.thread);
        }
        loop {
            let rest = changed.split_off(changed.len().min(MOST_SEEN));
            writer.add(&Entry::StackSample(StackSample { time, changed }));
            if rest.is_empty() {
                return;
            }
            changed = rest;
        }
    }
}
