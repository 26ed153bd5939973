//! Stack samples: what threads were seen doing, and the lanes of nested frames that are drawn from it.
//!
//! The samples themselves are kept whole: the moments of all looks, and for each thread what changed at which. The lanes
//! are an estimate made of them: a frame lasts from the first look that sees it to the first that does not.

use rustc_hash::FxHashMap;

use super::pool::Pool;
use super::rows::Row;
use super::{Lane, LaneId, LaneKey, LaneKind, Trace};
use crate::activity::{
    Frame, Ns, Range, RangeKind, SampleDef, Samples, Sampling, Seen, Span, StackId, What,
};

/// Frames that last are drawn in pieces that end at multiples of this, so that what still runs is seen, too.
const PIECE: Ns = 500_000_000;
/// A look that comes later than so many periods after the one before says nothing of the time between.
const LATE: Ns = 4;

/// All stacks of a timeline, each defined once.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    frames: Pool<Frame>,
    stacks: Pool<(StackId, u32)>,
    frame_ids: FxHashMap<Frame, u32>,
    stack_ids: FxHashMap<(StackId, u32), StackId>,
}

/// Whether a source file is one of the user's own: not of the interpreter, and not of an installed package.
#[must_use]
pub fn is_own(file: &str) -> bool {
    let of_interpreter = file.starts_with('<') && file != "<string>" && file != "<stdin>";
    let installed = [
        "/site-packages/",
        "/dist-packages/",
        "/lib/python",
        "/lib64/python",
    ];
    !of_interpreter && !installed.iter().any(|part| file.contains(part))
}

/// A source file in few words: the user's own by its name, one of a package by its path in there.
#[must_use]
pub fn short_file(file: &str) -> &str {
    for folder in ["/site-packages/", "/dist-packages/"] {
        if let Some((_, rest)) = file.rsplit_once(folder) {
            return rest;
        }
    }
    for folder in ["/lib/python", "/lib64/python"] {
        // The version stands between the folder and the rest.
        if let Some((_, rest)) = file.rsplit_once(folder) {
            return rest.split_once('/').map_or(rest, |(_, rest)| rest);
        }
    }
    file.rsplit('/').next().unwrap_or(file)
}

impl Stacks {
    fn define(&mut self, caller: StackId, frame: Frame) -> StackId {
        let frame = match self.frame_ids.get(&frame) {
            Some(&known) => known,
            None => {
                let id = self.frames.push(frame.clone()) as u32;
                self.frame_ids.insert(frame, id);
                id
            }
        };
        let stacks = &mut self.stacks;
        let new = || stacks.push((caller, frame)) as StackId + 1;
        *self.stack_ids.entry((caller, frame)).or_insert_with(new)
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = &Frame> {
        let mut next = stack;
        std::iter::from_fn(move || {
            let index = (next as usize).checked_sub(1)?;
            let &(caller, frame) = self.stacks.get(index)?;
            // A caller is always defined before its callee, so this ends.
            next = caller;
            self.frames.get(frame as usize)
        })
    }

    /// The innermost frame of the user's own, and the frame that it called.
    #[must_use]
    pub fn own_line(&self, stack: StackId) -> Option<(&Frame, Option<&Frame>)> {
        let mut called = None;
        for frame in self.frames(stack) {
            if is_own(&frame.file) {
                return Some((frame, called));
            }
            called = Some(frame);
        }
        None
    }

    /// What is drawn of a stack, outermost first: the user's own frames with their lines, and what the innermost of them
    /// called. All of it where none is the user's own.
    fn drawn(&self, stack: StackId) -> Vec<String> {
        let mut drawn = Vec::new();
        let mut called = None;
        for frame in self.frames(stack) {
            let file = short_file(&frame.file);
            if is_own(&frame.file) {
                if drawn.is_empty() {
                    drawn.extend(called.take());
                }
                drawn.push(format!("{file}:{} {}", frame.line, frame.function));
            } else {
                called = Some(format!("{file} {}", frame.function));
            }
        }
        if drawn.is_empty() {
            let whole = |f: &Frame| format!("{} {}", short_file(&f.file), f.function);
            drawn = self.frames(stack).map(whole).collect();
        }
        drawn.reverse();
        drawn
    }

    /// The same to be read.
    pub(super) fn snapshot(&self) -> Stacks {
        Stacks {
            frames: self.frames.clone(),
            stacks: self.stacks.clone(),
            ..Stacks::default()
        }
    }
}

/// What one thread was seen doing from a look on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    /// Which look.
    look: u32,
    /// [`Trace::stacks`]'s id; 0 for a thread that is not there.
    stack: StackId,
    is_running: bool,
}

/// A thread at one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it was looked at.
    pub time: Ns,
    /// What it was doing: an id of [`Trace::stacks`].
    pub stack: StackId,
    /// Whether it was running or about to, as the operating system had it.
    pub is_running: bool,
}

/// The stack samples of one process.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    looks: Pool<Ns>,
    threads: FxHashMap<u32, Pool<Change>>,
    /// Totals of each series.
    totals: FxHashMap<u32, Sampling>,
    /// Looks that came before one that was there already.
    disordered: u64,
    /// The stacks of each series.
    ids: FxHashMap<u32, Vec<StackId>>,
    frames: FxHashMap<u32, Vec<Frame>>,
    /// What is being drawn of each thread.
    open: FxHashMap<u32, Open>,
}

/// The frames of a thread that have not ended.
#[derive(Clone, Debug, Default)]
struct Open {
    stack: StackId,
    frames: Vec<(Box<str>, Ns)>,
}

impl Sampled {
    /// Whether there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.looks.len() == 0
    }

    /// The totals of all series.
    #[must_use]
    pub fn totals(&self) -> Sampling {
        let mut sum = Sampling::default();
        for it in self.totals.values() {
            sum.hz = sum.hz.max(it.hz);
            sum.looks += it.looks;
            sum.torn += it.torn;
            sum.lost += it.lost;
            sum.cost_ns += it.cost_ns;
        }
        sum.lost += self.disordered;
        sum
    }

    /// That lanes of frames are an estimate, and of what; `None` where they are made of no samples.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let hz = self.totals().hz;
        let words = || {
            format!(
                "estimated: stacks sampled at {hz} Hz, ends are exact to some {} ms",
                1000 / hz.max(1)
            )
        };
        (!self.is_empty()).then(words)
    }

    /// Whether a thread was seen.
    #[must_use]
    pub fn has(&self, thread: u32) -> bool {
        self.threads.contains_key(&thread)
    }

    /// First look to last.
    #[must_use]
    pub fn extent(&self) -> Option<Span> {
        let last = self.looks.len().checked_sub(1)?;
        Some(Span::new(*self.looks.get(0)?, *self.looks.get(last)?))
    }

    /// The samples of a thread within a window, in order of time.
    pub fn of(&self, thread: u32, window: Span) -> impl Iterator<Item = Sample> + '_ {
        let changes = self.threads.get(&thread);
        let from = partition(&self.looks, |&time| time < window.start);
        let to = partition(&self.looks, |&time| time < window.end);
        let mut at = changes.map_or(0, |it| partition(it, |change| change.look as usize <= from));
        (from..to).filter_map(move |look| {
            let changes = changes?;
            while changes.get(at).is_some_and(|it| it.look as usize <= look) {
                at += 1;
            }
            let change = changes.get(at.checked_sub(1)?)?;
            let time = *self.looks.get(look)?;
            (change.stack != 0).then_some(Sample {
                time,
                stack: change.stack,
                is_running: change.is_running,
            })
        })
    }

    /// The same to be read.
    pub(super) fn snapshot(&self) -> Sampled {
        Sampled {
            looks: self.looks.clone(),
            threads: self.threads.clone(),
            totals: self.totals.clone(),
            disordered: self.disordered,
            ..Sampled::default()
        }
    }
}

/// How many entries from the beginning on are such.
fn partition<T: Clone>(pool: &Pool<T>, is_such: impl Fn(&T) -> bool) -> usize {
    let (mut from, mut to) = (0, pool.len());
    while from < to {
        let middle = from + (to - from) / 2;
        match pool.get(middle) {
            Some(entry) if is_such(entry) => from = middle + 1,
            _ => to = middle,
        }
    }
    from
}

/// A frame that has been drawn to its end, or a piece of it.
struct Drawn {
    thread: u32,
    name: Box<str>,
    span: Span,
}

impl Trace {
    /// All stacks that samples refer to.
    #[must_use]
    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// Takes samples in.
    pub(super) fn sample(&mut self, process: usize, samples: Samples) {
        let sampled = &mut self.processes[process].sampled;
        let series = samples.series;
        for def in samples.defs {
            match def {
                SampleDef::Frame { id, frame } => {
                    put(sampled.frames.entry(series).or_default(), id, frame);
                }
                SampleDef::Stack { id, caller, frame } => {
                    let ids = sampled.ids.entry(series).or_default();
                    let caller = caller.checked_sub(1).and_then(|it| ids.get(it as usize));
                    let frames = sampled.frames.get(&series);
                    let frame = frames.and_then(|it| it.get((frame as usize).checked_sub(1)?));
                    let frame = frame.cloned().unwrap_or_default();
                    let global = self.stacks.define(caller.copied().unwrap_or(0), frame);
                    put(ids, id, global);
                }
            }
        }
        sampled.totals.insert(series, samples.sampling);
        let period = 1_000_000_000 / Ns::from(samples.sampling.hz.max(1));
        let mut drawn = Vec::new();
        for look in samples.looks {
            let changed = look.changed.into_iter().map(|seen| {
                let ids = sampled.ids.get(&series);
                let stack = ids.and_then(|it| it.get((seen.stack as usize).checked_sub(1)?));
                Seen {
                    stack: stack.copied().unwrap_or(0),
                    ..seen
                }
            });
            let changed: Vec<Seen> = changed.collect();
            sampled.take(look.time, &changed, LATE * period, &self.stacks, &mut drawn);
        }
        if let Some(extent) = sampled.extent() {
            self.extent = Some(self.extent.map_or(extent, |it| it.hull(extent)));
        }
        self.draw(process, drawn);
    }

    /// Puts frames into the lanes of their threads.
    fn draw(&mut self, process: usize, drawn: Vec<Drawn>) {
        let mut touched: Vec<LaneId> = Vec::new();
        for it in drawn {
            let range = Range {
                kind: RangeKind::Python,
                name: self.names.intern(&it.name),
                thread: it.thread,
                index: 0,
            };
            let key = LaneKey {
                process,
                kind: LaneKind::Range {
                    kind: RangeKind::Python,
                    thread: it.thread,
                },
            };
            let detail = self.intern(What::Range(range));
            let lane = *self.lane_ids.entry(key).or_insert_with(|| {
                self.lanes.push(Lane::new(key));
                self.lanes.len() - 1
            });
            touched.push(lane);
            self.lanes[lane].queue(Row {
                span: it.span,
                correlation: 0,
                detail,
            });
        }
        touched.sort_unstable();
        touched.dedup();
        for lane in touched {
            // A caller ends after what it called: that it comes later is no sign of anything.
            self.lanes[lane].settle();
        }
    }
}

impl Sampled {
    /// Takes in a look, whose changes are by [`Stacks`]' ids.
    fn take(
        &mut self,
        time: Ns,
        changed: &[Seen],
        late: Ns,
        stacks: &Stacks,
        drawn: &mut Vec<Drawn>,
    ) {
        let count = self.looks.len();
        let last = count
            .checked_sub(1)
            .and_then(|it| self.looks.get(it))
            .copied();
        if last.is_some_and(|last| last >= time) || count >= u32::MAX as usize {
            self.disordered += 1;
            return;
        }
        self.looks.push(time);
        for seen in changed {
            self.threads.entry(seen.thread).or_default().push(Change {
                look: count as u32,
                stack: seen.stack,
                is_running: seen.is_running,
            });
        }
        let last = last.unwrap_or(time);
        if time - last > late {
            // Nobody looked for a while: what was open lasted one look more, as far as is known.
            let until = last + late / LATE;
            for (&thread, open) in &mut self.open {
                open.cut(thread, 0, until, drawn);
                let stack = std::mem::take(&mut open.stack);
                open.enter(stack, time, stacks);
            }
        } else if time.div_euclid(PIECE) != last.div_euclid(PIECE) {
            for (&thread, open) in &mut self.open {
                let names: Vec<Box<str>> = open.frames.iter().map(|it| it.0.clone()).collect();
                open.cut(thread, 0, time, drawn);
                open.frames
                    .extend(names.into_iter().map(|name| (name, time)));
            }
        }
        for seen in changed {
            let open = self.open.entry(seen.thread).or_default();
            if open.stack == seen.stack {
                continue;
            }
            let names = stacks.drawn(seen.stack);
            let same = open.frames.iter().zip(&names);
            let same = same.take_while(|(a, b)| *a.0 == ***b).count();
            open.cut(seen.thread, same, time, drawn);
            open.stack = seen.stack;
            let new = names.into_iter().skip(same);
            open.frames.extend(new.map(|name| (name.into(), time)));
        }
        self.open.retain(|_, open| open.stack != 0);
    }
}

impl Open {
    /// Ends the frames from a depth on.
    fn cut(&mut self, thread: u32, depth: usize, end: Ns, drawn: &mut Vec<Drawn>) {
        let ended = self.frames.drain(depth.min(self.frames.len())..);
        drawn.extend(
            ended
                .filter(|(_, start)| *start < end)
                .map(|(name, start)| Drawn {
                    thread,
                    name,
                    span: Span::new(start, end),
                }),
        );
    }

    fn enter(&mut self, stack: StackId, time: Ns, stacks: &Stacks) {
        self.stack = stack;
        let names = stacks.drawn(stack).into_iter();
        self.frames.extend(names.map(|name| (name.into(), time)));
    }
}

/// Puts a value where an id that counts from 1 says.
fn put<T: Clone + Default>(table: &mut Vec<T>, id: u32, value: T) {
    // The reader of samples keeps ids dense, and below two million.
    let Some(index) = (id as usize).checked_sub(1) else {
        return;
    };
    if table.len() <= index {
        table.resize(index + 1, T::default());
    }
    table[index] = value;
}

/// Whether a process that loads data for PyTorch waits for something to do in this stack; `None` for stacks of others.
#[must_use]
pub fn wants(stacks: &Stacks, stack: StackId) -> Option<bool> {
    let is_worker = |it: &Frame| {
        it.function == "_worker_loop" && it.file.ends_with("torch/utils/data/_utils/worker.py")
    };
    if !stacks.frames(stack).any(is_worker) {
        return None;
    }
    // The loop asks its queue of indices; fetching a batch leads through a `fetch`.
    let mut inner = stacks.frames(stack).take_while(|it| !is_worker(it));
    Some(inner.any(|it| it.function == "get" && it.file.ends_with("multiprocessing/queues.py")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::{Batch, Look};

    fn frame(file: &str, function: &str, line: u32) -> Frame {
        Frame {
            file: file.to_owned(),
            function: function.to_owned(),
            line,
        }
    }

    /// `main` at line 3 calls `step` at 10, then at 11, where it calls into a library.
    fn defs() -> Vec<SampleDef> {
        let frames = [
            frame("/home/me/train.py", "<module>", 3),
            frame("/home/me/train.py", "step", 10),
            frame("/home/me/train.py", "step", 11),
            frame(
                "/opt/lib/python3.12/site-packages/torch/nn/module.py",
                "forward",
                99,
            ),
            frame("/opt/lib/python3.12/threading.py", "wait", 5),
        ];
        let define = |(frame, id)| SampleDef::Frame { id, frame };
        let mut defs: Vec<SampleDef> = frames.into_iter().zip(1..).map(define).collect();
        for (id, caller, frame) in [(1, 0, 1), (2, 1, 2), (3, 1, 3), (4, 3, 4), (5, 4, 5)] {
            defs.push(SampleDef::Stack { id, caller, frame });
        }
        defs
    }

    const MS: Ns = 1_000_000;

    fn trace(seen: &[(Ns, StackId)]) -> Trace {
        let look = |&(at, stack): &(Ns, StackId)| Look {
            time: at * MS,
            changed: vec![Seen {
                thread: 7,
                stack,
                is_running: true,
            }],
        };
        let mut trace = Trace::default();
        trace.apply(Batch {
            samples: Some(Samples {
                series: 3,
                defs: defs(),
                looks: seen.iter().map(look).collect(),
                sampling: Sampling {
                    hz: 100,
                    looks: seen.len() as u64,
                    ..Sampling::default()
                },
            }),
            ..Batch::default()
        });
        trace
    }

    fn drawn(trace: &Trace) -> Vec<(String, Ns, Ns)> {
        let lane = &trace.lanes()[0];
        (0..lane.len())
            .map(|row| {
                let it = trace.activity(0, row);
                let What::Range(range) = it.what else {
                    panic!("{it:?}")
                };
                let name = trace.names().full(range.name).to_owned();
                (name, it.span.start / MS, it.span.end / MS)
            })
            .collect()
    }

    #[test]
    fn frames_last_from_the_first_look_that_sees_them_to_the_first_that_does_not() {
        let trace = trace(&[(0, 2), (10, 2), (20, 4), (30, 5), (40, 2), (50, 0)]);
        let expected = [
            ("train.py:3 <module>", 0, 50),
            ("train.py:10 step", 0, 20),
            ("train.py:11 step", 20, 40),
            ("torch/nn/module.py forward", 20, 40),
            ("train.py:10 step", 40, 50),
        ];
        let expected = expected.map(|(name, start, end)| (name.to_owned(), start, end));
        assert_eq!(drawn(&trace), expected);
        assert_eq!(trace.late(), 0);
    }

    #[test]
    fn what_lasts_is_drawn_in_pieces_and_what_nobody_saw_is_not_drawn() {
        // Nobody looked between 510 and 700 ms.
        let trace = trace(&[(490, 1), (500, 1), (510, 1), (700, 1), (710, 0)]);
        let expected = [(490, 500), (500, 520), (700, 710)]
            .map(|(start, end)| ("train.py:3 <module>".to_owned(), start, end));
        assert_eq!(drawn(&trace), expected);
    }

    #[test]
    fn samples_of_a_window_are_those_whose_look_lies_in_it() {
        let trace = trace(&[(0, 2), (10, 2), (20, 4), (30, 0), (40, 5)]);
        let sampled = &trace.processes()[0].sampled;
        let of = |from: Ns, to: Ns| -> Vec<Ns> {
            let samples = sampled.of(7, Span::new(from * MS, to * MS));
            samples.map(|it| it.time / MS).collect()
        };
        assert_eq!(of(0, 100), [0, 10, 20, 40]);
        assert_eq!(of(10, 20), [10]);
        assert!(of(11, 20).is_empty());
        assert_eq!(sampled.of(8, Span::new(0, 100 * MS)).count(), 0);
        let stack = sampled
            .of(7, Span::new(20 * MS, 21 * MS))
            .next()
            .expect("one");
        let (own, called) = trace.stacks().own_line(stack.stack).expect("an own frame");
        assert_eq!((own.function.as_str(), own.line), ("step", 11));
        assert_eq!(called.map(|it| it.line), Some(99));
        // The snapshot says the same.
        let copy = trace.snapshot();
        assert_eq!(
            copy.processes()[0]
                .sampled
                .of(7, Span::new(0, 100 * MS))
                .count(),
            4
        );
        assert_eq!(copy.stacks().frames(5).count(), 4);
    }

    #[test]
    fn own_files_are_told_from_installed_ones() {
        for (file, own, short) in [
            ("/home/me/train.py", true, "train.py"),
            ("train.py", true, "train.py"),
            ("<string>", true, "<string>"),
            (
                "<frozen importlib._bootstrap>",
                false,
                "<frozen importlib._bootstrap>",
            ),
            ("/usr/lib/python3.12/threading.py", false, "threading.py"),
            (
                "/usr/lib/python3/dist-packages/numpy/a.py",
                false,
                "numpy/a.py",
            ),
            (
                "/work/.venv/lib/python3.12/site-packages/torch/_ops.py",
                false,
                "torch/_ops.py",
            ),
        ] {
            assert_eq!((is_own(file), short_file(file)), (own, short), "{file}");
        }
    }
}
