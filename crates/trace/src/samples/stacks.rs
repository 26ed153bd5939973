//! Stacks, each defined once, and which of their frames are in the user's own code.

use rustc_hash::FxHashMap;

use super::super::Names;
use super::super::pool::Interned;
use activity::anonymous::{is_own, short_file};
use activity::{Frame, NameId, StackId};

/// So many of a stack's frames are looked at, the innermost ones: some of what looks at them calls itself for each.
const FRAMES_MAX: usize = 1_024;

/// All stacks of a timeline, each defined once.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    frames: Interned<Frame>,
    stacks: Interned<(StackId, u32)>,
    /// What frames are drawn as, and whether they are the user's own, by their numbers.
    drawn: FxHashMap<u32, (NameId, bool)>,
}

impl Stacks {
    pub(super) fn define(&mut self, caller: StackId, frame: Frame) -> StackId {
        self.stacks.id((caller, self.frames.id(frame.cut()))) + 1
    }

    /// All frames.
    pub fn all(&self) -> impl Iterator<Item = &Frame> {
        let entries = &self.frames.entries;
        (entries.first()..entries.len()).filter_map(|at| entries.get(at))
    }

    /// The source files of all frames.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.all().map(|it| &*it.file)
    }

    /// Whether a package is among them, or none of the frames is known.
    pub fn may_have(&self, package: &str) -> bool {
        let mut files = self.files().map(short_file).peekable();
        files.peek().is_none() || files.any(|it| it.starts_with(package))
    }

    /// The frames of a stack, innermost first: [`FRAMES_MAX`] at most.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = &Frame> {
        let of = |number| self.frames.entries.get(number as usize);
        self.numbers(stack).take(FRAMES_MAX).filter_map(of)
    }

    fn numbers(&self, stack: StackId) -> impl Iterator<Item = u32> + '_ {
        let mut next = stack;
        std::iter::from_fn(move || {
            let index = (next as usize).checked_sub(1)?;
            let &(caller, frame) = self.stacks.entries.get(index)?;
            // A caller is always defined before its callee, so this ends.
            next = caller;
            Some(frame)
        })
    }

    /// The innermost frame of the user's own code, and the frame that it called.
    pub fn own_line(&self, stack: StackId) -> Option<(&Frame, Option<&Frame>)> {
        let (mut called, mut made) = (None, None);
        for frame in self.frames(stack) {
            // A library makes code without a file, too: who called that is told, where it is in one.
            let is_made = frame.file.starts_with('<');
            match is_own(&frame.file) {
                true if is_made => made = made.or(Some((frame, called))),
                true => return Some((frame, called)),
                false => {}
            }
            called = Some(frame);
        }
        made
    }

    /// The drawn part of a stack, outermost first: the user's own frames with their lines, and the innermost one's
    /// callee. All of it where no frame is the user's own. Of a deep one these are the innermost.
    pub(super) fn drawn(&mut self, stack: StackId, names: &mut Names) -> Vec<NameId> {
        const DEEPEST: usize = 256;
        let mut all: Vec<(NameId, bool)> = Vec::new();
        let numbers: Vec<u32> = self.numbers(stack).take(DEEPEST).collect();
        for number in numbers {
            let known = self.drawn.get(&number).copied();
            all.extend(known.or_else(|| {
                let it = self.frames.entries.get(number as usize)?;
                let (file, is_own) = (short_file(&it.file), is_own(&it.file));
                let text = match is_own {
                    true => format!("{file}:{} {}", it.line, it.function),
                    false => format!("{file} {}", it.function),
                };
                let drawn = (names.intern(&text), is_own);
                self.drawn.insert(number, drawn);
                Some(drawn)
            }));
        }
        let own = all.iter().position(|it| it.1);
        let is_drawn = |at: usize| all[at].1 || own.is_none_or(|own| at + 1 == own);
        let drawn = (0..all.len()).rev().filter(|at| is_drawn(*at));
        drawn.map(|at| all[at].0).collect()
    }

    /// A copy for reading.
    pub(crate) fn snapshot(&self) -> Stacks {
        Stacks {
            frames: self.frames.snapshot(),
            stacks: self.stacks.snapshot(),
            drawn: FxHashMap::default(),
        }
    }
}

fn is_worker_loop(frame: &Frame) -> bool {
    let file = "torch/utils/data/_utils/worker.py";
    frame.function == "_worker_loop" && frame.file.ends_with(file)
}

/// Whether a process that loads data for PyTorch waits in this stack for work; `None` for stacks of other processes.
pub fn wants(stacks: &Stacks, stack: StackId) -> Option<bool> {
    if !stacks.frames(stack).any(is_worker_loop) {
        return None;
    }
    // The loop asks its queue of indices; fetching a batch leads through a `fetch`.
    let mut inner = stacks.frames(stack).take_while(|it| !is_worker_loop(it));
    Some(inner.any(|it| it.function == "get" && it.file.ends_with("multiprocessing/queues.py")))
}

/// What a process that loads data for PyTorch works on in this stack. It is the innermost function of the user's own
/// under its loop with its line, else the one that fetching called.
pub fn loads(stacks: &Stacks, stack: StackId) -> Option<String> {
    let inner = || stacks.frames(stack).take_while(|it| !is_worker_loop(it));
    match inner().find(|it| is_own(&it.file)) {
        Some(it) => Some(format!(
            "{} {}:{}",
            it.function,
            short_file(&it.file),
            it.line
        )),
        None => {
            let fetched = inner().take_while(|it| it.function != "fetch").last();
            fetched.map(|it| it.function.clone())
        }
    }
}
