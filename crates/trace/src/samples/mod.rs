//! Stack samples: what threads were doing at each look, and the lanes of nested frames drawn from them.
//!
//! The samples themselves are kept whole: the moments of all looks, and for each thread what changed at which. The
//! lanes are an estimate: a look speaks for half a period before it and half a period after it, no more.

mod stacks;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

pub use activity::anonymous::short_file;
pub use stacks::{Stacks, loads, wants};

use super::intake::put;
use super::pool::Pool;
use super::rows::Row;
use super::{LaneId, LaneKey, LaneKind, Names, Process, Trace};
use activity::{
    Frame, NameId, Ns, Range, RangeKind, SampleDef, SampledThread, Samples, Sampling, Span,
    StackId, What,
};

/// Long frames are drawn in pieces that end at multiples of this, so that a frame that still runs is visible. The pieces are
/// longer by as much for each so many frames that are open.
const PIECE: Ns = 500_000_000;
const MANY: usize = 1024;
/// A look that comes later than so many periods after the one before tells nothing about the time between.
const LATE: Ns = 4;

/// Frames that are drawn are rows, and a look of some kilobytes may name thousands of threads with hundreds of frames each.
/// There is room for so many, and for so many more with each look and each thread that is elsewhere in it.
const ROOM: i64 = 1 << 18;
const ROOM_EACH: i64 = 32;

/// So many looks tell how often a thread is there.
const SOME: usize = 64;

/// What one thread was doing from a look on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    /// The index of the look.
    look: u32,
    /// [`Trace::stacks`]'s id; 0 for a thread that is not there.
    stack: StackId,
    is_running: bool,
}

/// A thread at one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When the look was.
    pub time: Ns,
    /// What it was doing: an id of [`Trace::stacks`].
    pub stack: StackId,
    /// Whether it was running or about to, as the operating system had it.
    pub is_running: bool,
}

/// The stack samples of one process.
#[derive(Clone, Debug, Default)]
pub struct ProcessSamples {
    looks: Pool<Ns>,
    threads: FxHashMap<u32, Pool<Change>>,
    /// Totals of each series.
    totals: FxHashMap<u32, Sampling>,
    /// Stretches without a look: each ends with one that came late.
    blind: Pool<Span>,
    /// Looks that arrived out of order, and threads in a look for whose frames there was no room.
    left_out: u64,
    /// The stacks of each series.
    ids: FxHashMap<u32, Vec<StackId>>,
    frames: FxHashMap<u32, Vec<Frame>>,
    /// The open frames of each thread.
    open: FxHashMap<u32, Open>,
}

/// The frames of a thread that have not ended.
#[derive(Clone, Debug, Default)]
struct Open {
    stack: StackId,
    frames: Vec<(NameId, Ns)>,
}

impl ProcessSamples {
    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.looks.len() == 0
    }

    /// The totals of all series.
    pub fn totals(&self) -> Sampling {
        let mut sum = Sampling::default();
        for it in self.totals.values() {
            sum.hz = sum.hz.max(it.hz);
            sum.looks += it.looks;
            sum.torn += it.torn;
            sum.lost += it.lost;
            sum.cost_ns += it.cost_ns;
        }
        sum.lost += self.left_out;
        sum
    }

    /// Says that lanes of frames are an estimate, and from what; `None` where there are no samples.
    pub fn words(&self) -> Option<String> {
        let hz = self.totals().hz;
        let words = || {
            let ms = 1000 / hz.max(1);
            format!("estimated: stacks sampled at {hz} Hz, ends are exact to some {ms} ms")
        };
        (!self.is_empty()).then(words)
    }

    /// Whether a look saw this thread.
    pub fn has(&self, thread: u32) -> bool {
        self.threads.contains_key(&thread)
    }

    /// Whether looks saw this thread for less than nine tenths of the time: it is not there to wait for something.
    pub fn is_there_at_times(&self, thread: u32) -> bool {
        let (first, end) = (self.looks.first(), self.looks.len());
        let some = (first..end).step_by(((end - first) / SOME).max(1));
        let times: Vec<Ns> = some
            .filter_map(|look| self.looks.get(look).copied())
            .collect();
        let is_seen = |time: Ns| {
            self.within(thread, Span::new(time, time + 1))
                .next()
                .is_some()
        };
        let seen = times.iter().filter(|&&time| is_seen(time)).count();
        10 * seen < 9 * times.len()
    }

    /// The threads that looks saw, in order of their ids.
    pub fn threads(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.threads.keys().copied().collect();
        all.sort_unstable();
        all
    }

    /// Those of them whose stacks changed most often, this many at most.
    pub fn busiest(&self, most: usize) -> Vec<u32> {
        let mut all = self.threads();
        if all.len() > most {
            all.sort_by_key(|it| Reverse(self.threads[it].len()));
            all.truncate(most);
        }
        all
    }

    /// Whether a look lies within a window.
    pub fn has_look(&self, window: Span) -> bool {
        let next = self.looks.partition(|&time| time < window.start);
        self.looks.get(next).is_some_and(|&time| time < window.end)
    }

    /// First look to last.
    pub fn extent(&self) -> Option<Span> {
        let last = self.looks.len().checked_sub(1)?;
        let first = self.looks.get(self.looks.first())?;
        Some(Span::new(*first, *self.looks.get(last)?))
    }

    /// How much of `window` looks cover, in ns.
    pub fn coverage(&self, window: Span) -> Ns {
        let window = window.intersect(self.extent().unwrap_or_default());
        let from = self.blind.partition(|blind| blind.end <= window.start);
        let blind: Ns = (from..self.blind.len())
            .map_while(|at| self.blind.get(at).filter(|it| it.start < window.end))
            .map(|it| it.intersect(window).len())
            .sum();
        window.len() - blind
    }

    /// Evicts looks before `time`, whole chunks of them.
    pub(super) fn evict_before(&mut self, time: Ns) {
        self.looks
            .evict_before(self.looks.partition(|&it| it < time));
        let first = self.looks.first();
        for changes in self.threads.values_mut() {
            // A thread's last change before the first look that stays tells what it was doing then.
            let after = changes.partition(|change| change.look as usize <= first);
            changes.evict_before(after.saturating_sub(1));
        }
        self.blind
            .evict_before(self.blind.partition(|it| it.end <= time));
    }

    /// Moves all looks in time.
    pub(super) fn retime(&mut self, to: impl Fn(Ns) -> Ns) {
        self.looks.map(|&time| to(time));
        self.blind
            .map(|blind| Span::new(to(blind.start), to(blind.end)));
        for (_, start) in self.open.values_mut().flat_map(|it| &mut it.frames) {
            *start = to(*start);
        }
    }

    /// Bytes that samples take.
    pub(super) fn memory(&self) -> usize {
        let changes: usize = self.threads.values().map(Pool::memory).sum();
        self.looks.memory() + self.blind.memory() + changes
    }

    /// The samples of a thread within a window, in order of time.
    pub fn within(&self, thread: u32, window: Span) -> impl Iterator<Item = Sample> + '_ {
        let changes = self.threads.get(&thread);
        let from = self.looks.partition(|&time| time < window.start);
        let to = self.looks.partition(|&time| time < window.end);
        let mut at = changes.map_or(0, |it| it.partition(|change| change.look as usize <= from));
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

    /// A copy for reading.
    pub(super) fn snapshot(&self) -> ProcessSamples {
        ProcessSamples {
            looks: self.looks.clone(),
            threads: self.threads.clone(),
            totals: self.totals.clone(),
            blind: self.blind.clone(),
            left_out: self.left_out,
            ..ProcessSamples::default()
        }
    }
}

/// A frame, or a piece of it, that is drawn to its end.
struct FramePiece {
    thread: u32,
    name: NameId,
    span: Span,
}

/// Frames that were drawn to their ends, and the room for more.
struct Drawn {
    pieces: Vec<FramePiece>,
    room: i64,
    /// How often a thread's frames were left out.
    left_out: u64,
}

impl Trace {
    /// All stacks that samples refer to.
    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// Takes samples in.
    pub(super) fn sample(&mut self, process: usize, samples: Samples) {
        let Process {
            sampled, graphs, ..
        } = &mut self.processes[process];
        let series = samples.series;
        for def in samples.defs {
            match def {
                SampleDef::Frame { id, frame } => {
                    let frames = sampled.frames.entry(series).or_default();
                    // Ids count from 1: 0 becomes one that is too far.
                    put(frames, id.wrapping_sub(1), frame, Frame::default());
                }
                SampleDef::Stack { id, caller, frame } => {
                    let ids = sampled.ids.entry(series).or_default();
                    let caller = caller.checked_sub(1).and_then(|it| ids.get(it as usize));
                    let frames = sampled.frames.get(&series);
                    let frame = frames.and_then(|it| it.get((frame as usize).checked_sub(1)?));
                    let frame = frame.cloned().unwrap_or_default();
                    let global = self.stacks.define(caller.copied().unwrap_or(0), frame);
                    put(ids, id.wrapping_sub(1), global, 0);
                }
                SampleDef::Nodes(nodes) => {
                    let ids = sampled.ids.get(&series);
                    let global = |id: u32| ids?.get((id as usize).checked_sub(1)?).copied();
                    let named = nodes.iter();
                    graphs.name(named.map(|&(node, id)| (node, global(id).unwrap_or(0))));
                }
            }
        }
        sampled.totals.insert(series, samples.sampling);
        let period = 1_000_000_000 / Ns::from(samples.sampling.hz.max(1));
        let mut drawn = Drawn {
            pieces: Vec::new(),
            room: ROOM + self.room_for_frames,
            left_out: 0,
        };
        for look in samples.looks {
            let changed = look.changed.into_iter().map(|seen| {
                let ids = sampled.ids.get(&series);
                let stack = ids.and_then(|it| it.get((seen.stack as usize).checked_sub(1)?));
                SampledThread {
                    stack: stack.copied().unwrap_or(0),
                    ..seen
                }
            });
            let changed: Vec<SampledThread> = changed.collect();
            let mut named = Named {
                stacks: &mut self.stacks,
                names: &mut self.names,
                known: FxHashMap::default(),
            };
            drawn.room += ROOM_EACH * (1 + changed.len() as i64);
            sampled.take(look.time, &changed, period, &mut named, &mut drawn);
        }
        sampled.left_out += drawn.left_out;
        self.room_for_frames = drawn.room - ROOM;
        if let Some(extent) = sampled.extent() {
            self.extent = Some(self.extent.map_or(extent, |it| it.hull(extent)));
        }
        self.draw(process, drawn.pieces);
    }

    /// Puts frames into the lanes of their threads.
    fn draw(&mut self, process: usize, drawn: Vec<FramePiece>) {
        let mut touched: Vec<LaneId> = Vec::new();
        for it in drawn {
            let range = Range {
                kind: RangeKind::Python,
                name: it.name,
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
            let detail = self.details.id(What::Range(range));
            let lane = self.lane(key);
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
            // A caller ends after its callee: that it comes later does not make it a late record.
            self.lanes[lane].settle();
        }
    }
}

impl ProcessSamples {
    /// Takes in a look. Its changes refer to ids of [`Stacks`].
    fn take(
        &mut self,
        time: Ns,
        changed: &[SampledThread],
        period: Ns,
        named: &mut Named<'_>,
        drawn: &mut Drawn,
    ) {
        let count = self.looks.len();
        let last = count.checked_sub(1).and_then(|it| self.looks.get(it));
        let last = last.copied();
        if last.is_some_and(|last| last >= time) || count >= u32::MAX as usize {
            self.left_out += 1;
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
        let half = period.min(time - last) / 2;
        let (until, from) = (last + half, time - half);
        if time - last > LATE * period {
            self.blind.push(Span::new(last, time));
            for (&thread, open) in &mut self.open {
                open.cut(thread, 0, until, drawn);
                open.begin(named.drawn(open.stack), from, drawn);
            }
        } else if self.is_piece_over(last, time) {
            for (&thread, open) in &mut self.open {
                let names: Vec<NameId> = open.frames.iter().map(|it| it.0).collect();
                open.cut(thread, 0, until, drawn);
                open.begin(&names, until, drawn);
            }
        }
        for seen in changed {
            let open = self.open.entry(seen.thread).or_default();
            if open.stack == seen.stack {
                continue;
            }
            let names = named.drawn(seen.stack);
            let same = open.frames.iter().zip(names);
            let same = same.take_while(|(a, b)| a.0 == **b).count();
            open.cut(seen.thread, same, until, drawn);
            open.stack = seen.stack;
            open.begin(&names[same..], from, drawn);
        }
        self.open.retain(|_, open| open.stack != 0);
    }

    fn is_piece_over(&self, last: Ns, time: Ns) -> bool {
        let piece_of = |time: Ns, piece| time.div_euclid(piece);
        if piece_of(time, PIECE) == piece_of(last, PIECE) {
            return false;
        }
        let open: usize = self.open.values().map(|it| it.frames.len()).sum();
        let piece = PIECE * (1 + open / MANY) as Ns;
        piece_of(time, piece) != piece_of(last, piece)
    }
}

/// What stacks are drawn as, by their ids: threads of one look are often at the same place.
struct Named<'t> {
    stacks: &'t mut Stacks,
    names: &'t mut Names,
    known: FxHashMap<StackId, Vec<NameId>>,
}

impl Named<'_> {
    fn drawn(&mut self, stack: StackId) -> &[NameId] {
        let known = self.known.entry(stack);
        known.or_insert_with(|| self.stacks.drawn(stack, self.names))
    }
}

impl Open {
    /// Ends the frames from a depth on.
    fn cut(&mut self, thread: u32, depth: usize, end: Ns, drawn: &mut Drawn) {
        let ended = self.frames.drain(depth.min(self.frames.len())..);
        drawn.pieces.extend(
            ended
                .filter(|(_, start)| *start < end)
                .map(|(name, start)| FramePiece {
                    thread,
                    name,
                    span: Span::new(start, end),
                }),
        );
    }

    /// Begins frames, where there is room for them.
    fn begin(&mut self, names: &[NameId], from: Ns, drawn: &mut Drawn) {
        let count = names.len() as i64;
        if count > drawn.room {
            drawn.left_out += 1;
            return;
        }
        drawn.room -= count;
        self.frames.extend(names.iter().map(|name| (*name, from)));
    }
}
