//! Looks to bytes.

use rustc_hash::FxHashMap;

use super::{FRAME, LOOK, PROCESS, STACK, TEXT, THREAD};
use activity::{Frame, Ns, Sampling, Seen, StackId};

/// Different stacks that a series may define. A program that makes up ever new ones (generated code, a recursion of ever
/// other depth) has those beyond cut at the deepest caller that is known.
const MOST_STACKS: usize = 1 << 20;

/// Puts looks into blocks, and defines what they refer to once.
#[derive(Debug, Default)]
pub struct Encoder {
    texts: FxHashMap<Box<str>, u32>,
    frames: FxHashMap<Frame, u32>,
    stacks: FxHashMap<(StackId, u32), StackId>,
    /// What each thread was last seen doing.
    threads: FxHashMap<u32, Seen>,
    /// The entries of the block that is being put together.
    entries: Vec<u8>,
    /// Texts, frames, stacks and looks before it.
    before: [u64; 4],
    /// Looks, and looks in the blocks before.
    looks: u64,
    last: Option<Ns>,
}

impl Encoder {
    /// The stack with one frame more.
    pub fn deeper(&mut self, caller: StackId, frame: &Frame) -> Option<StackId> {
        let frame = match self.frames.get(frame) {
            Some(&known) => known,
            None if self.stacks.len() >= MOST_STACKS => return None,
            None => self.frame(frame),
        };
        if let Some(&known) = self.stacks.get(&(caller, frame)) {
            return Some(known);
        }
        if self.stacks.len() >= MOST_STACKS {
            return None;
        }
        let id = self.stacks.len() as StackId + 1;
        self.stacks.insert((caller, frame), id);
        self.entries.push(STACK);
        number(&mut self.entries, caller.into());
        number(&mut self.entries, frame.into());
        Some(id)
    }

    fn frame(&mut self, frame: &Frame) -> u32 {
        let file = self.text(&frame.file);
        let function = self.text(&frame.function);
        let id = self.frames.len() as u32 + 1;
        self.frames.insert(frame.clone(), id);
        self.entries.push(FRAME);
        for part in [file, function, frame.line] {
            number(&mut self.entries, part.into());
        }
        id
    }

    fn text(&mut self, it: &str) -> u32 {
        if let Some(&known) = self.texts.get(it) {
            return known;
        }
        let id = self.texts.len() as u32 + 1;
        self.texts.insert(it.into(), id);
        self.entries.push(TEXT);
        text(&mut self.entries, it);
        id
    }

    /// Puts in a look by what is different from the one before.
    pub fn changed(&mut self, time: Ns, changed: &[Seen]) {
        let mut named = changed.to_vec();
        if self.last.is_none() {
            // The first of a block names all.
            let rest = self.threads.values();
            let is_new = |it: &&Seen| changed.iter().all(|other| other.thread != it.thread);
            named.extend(rest.filter(is_new).copied());
        }
        for it in changed {
            if it.stack == 0 {
                self.threads.remove(&it.thread);
            } else {
                self.threads.insert(it.thread, *it);
            }
        }
        self.entries.push(LOOK);
        signed(
            &mut self.entries,
            time.saturating_sub(self.last.unwrap_or(0)),
        );
        number(&mut self.entries, named.len() as u64);
        for it in &named {
            number(&mut self.entries, it.thread.into());
            number(
                &mut self.entries,
                u64::from(it.stack) << 1 | u64::from(it.is_running),
            );
        }
        self.last = Some(time);
        self.looks += 1;
    }

    /// Says who the process is.
    pub fn process(&mut self, command: &str) {
        self.entries.push(PROCESS);
        text(&mut self.entries, command);
    }

    /// Names a thread.
    pub fn thread(&mut self, thread: u32, name: &str) {
        self.entries.push(THREAD);
        number(&mut self.entries, thread.into());
        text(&mut self.entries, name);
    }

    /// Puts in a look at all threads: those that are not among `seen` are gone.
    pub fn look(&mut self, time: Ns, seen: &[Seen]) {
        let gone: Vec<u32> = self
            .threads
            .keys()
            .filter(|thread| seen.iter().all(|it| it.thread != **thread))
            .copied()
            .collect();
        let is_first = self.last.is_none();
        let mut changed: Vec<Seen> = seen
            .iter()
            .filter(|it| is_first || self.threads.get(&it.thread) != Some(it))
            .copied()
            .collect();
        changed.extend(gone.into_iter().map(|thread| Seen {
            thread,
            stack: 0,
            is_running: false,
        }));
        self.changed(time, &changed);
    }

    /// Bytes that wait for [`Encoder::block`].
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.entries.len()
    }

    /// The block that has been put together, to be written; the next one begins. `None` when there is nothing in it.
    pub fn block(&mut self, totals: &Sampling) -> Option<Vec<u8>> {
        if self.entries.is_empty() {
            return None;
        }
        let mut block = Vec::with_capacity(self.entries.len() + 40);
        for count in self.before {
            number(&mut block, count);
        }
        for total in [totals.hz.into(), totals.torn, totals.lost, totals.cost_ns] {
            number(&mut block, total);
        }
        block.append(&mut self.entries);
        self.before = [
            self.texts.len() as u64,
            self.frames.len() as u64,
            self.stacks.len() as u64,
            self.looks,
        ];
        self.last = None;
        Some(block)
    }
}

fn number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn signed(bytes: &mut Vec<u8>, value: i64) {
    number(bytes, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    number(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}
