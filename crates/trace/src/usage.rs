//! What a device was doing at each moment: a piecewise constant set of engines.
//!
//! Overlap, idle time, compute, copy and each direction ask about the same thing, so one structure serves them. It
//! holds sorted moments at which the set of busy engines changes, and the set from then on. Adjacent moments have
//! different sets. Sums of each [`Measure`] up to every [`STRIDE`]th moment make any window's figure two binary
//! searches and two short walks. The figure is exact at every zoom.

use super::rollup::Rollup;
use super::series::{Chunk as _, Series, Spot};
use activity::{Direction, Ns, Span};
use moments::Moments;

mod gaps;
mod moments;

/// Moments between stored sums. 88 bytes of sums over 64 moments cost about a byte a moment. A query walks at most 64
/// of them at either end of its window.
const STRIDE: usize = 64;

/// A set of busy engines, one bit each.
type Set = u8;

const COMPUTE: Set = 1;
/// One bit for each direction, in their order.
const COPY: Set = 0b11_1110;
const MEMSET: Set = 64;
const BITS: usize = 7;

/// What kept an engine of the device busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Kernels.
    Compute,
    /// Copies of one direction.
    Copy(Direction),
    Memset,
}

/// A figure of a device over a window. The definitions are those of interval union: two kernels at
/// once count once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Anything ran.
    Busy,
    /// A kernel ran.
    Compute,
    /// A copy ran, whatever its direction. Memsets are not copies.
    Copy,
    /// A kernel and a copy ran at once.
    Overlap,
    /// A copy of this direction ran.
    Direction(Direction),
    /// A memset ran.
    Memset,
    /// Two engines or more were at work at once, whichever they are.
    Concurrent,
}

const MEASURES: usize = 11;

impl Measure {
    const fn slot(self) -> usize {
        match self {
            Measure::Busy => 0,
            Measure::Compute => 1,
            Measure::Copy => 2,
            Measure::Overlap => 3,
            Measure::Memset => 4,
            Measure::Direction(direction) => 5 + direction as usize,
            Measure::Concurrent => 10,
        }
    }

    const fn holds(self, set: Set) -> bool {
        match self {
            Measure::Busy => set != 0,
            Measure::Compute => set & COMPUTE != 0,
            Measure::Copy => set & COPY != 0,
            Measure::Overlap => set & COMPUTE != 0 && set & COPY != 0,
            Measure::Memset => set & MEMSET != 0,
            Measure::Concurrent => set.count_ones() >= 2,
            Measure::Direction(d) => set & direction_bit(d) != 0,
        }
    }

    const ALL: [Measure; MEASURES] = [
        Measure::Busy,
        Measure::Compute,
        Measure::Copy,
        Measure::Overlap,
        Measure::Memset,
        Measure::Direction(Direction::H2D),
        Measure::Direction(Direction::D2H),
        Measure::Direction(Direction::D2D),
        Measure::Direction(Direction::P2P),
        Measure::Direction(Direction::Other),
        Measure::Concurrent,
    ];
}

const fn direction_bit(direction: Direction) -> Set {
    2 << direction as u8
}

/// For each set of engines, which measures hold: a bit for each slot.
static HELD: [u16; 1 << BITS] = {
    let mut table = [0; 1 << BITS];
    let mut set = 0;
    while set < table.len() {
        let mut i = 0;
        while i < MEASURES {
            if Measure::ALL[i].holds(set as Set) {
                table[set] |= 1 << Measure::ALL[i].slot();
            }
            i += 1;
        }
        set += 1;
    }
    table
};

/// `length` if the measure in `slot` holds in `set`, else 0. A query walks over many sets, and branches would guess
/// wrong as often as right.
fn length_if(set: Set, slot: usize, length: Ns) -> Ns {
    length * Ns::from(HELD[usize::from(set)] >> slot & 1)
}

fn engine_bit(engine: Engine) -> usize {
    let set = match engine {
        Engine::Compute => COMPUTE,
        Engine::Copy(direction) => direction_bit(direction),
        Engine::Memset => MEMSET,
    };
    set.trailing_zeros() as usize
}

/// What a device was doing, over all time. The last set is always empty.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    moments: Series<Moments>,
    /// Sums of the evicted moments.
    rollup: Rollup<[Ns; MEASURES]>,
}

impl Usage {
    /// Adds operations, in any order, overlapping or not. Empty spans leave no trace.
    pub fn add(&mut self, spans: &mut Vec<(Span, Engine)>) {
        if let Some(edge) = self.edge() {
            // A record this late counts only behind the evicted span.
            for (span, _) in spans.iter_mut() {
                *span = Span::new(span.start.max(edge), span.end.max(edge));
            }
        }
        spans.retain(|(span, _)| !span.is_empty());
        let first = spans.iter().map(|(span, _)| span.start).min();
        let last = spans.iter().map(|(span, _)| span.end).max();
        let (Some(first), Some(last)) = (first, last) else {
            return;
        };
        // It sweeps the moments from `first` on again, with the new ones, up to the end of the chunk that `last` falls
        // into. What lies behind does not change.
        let Spot { chunk, row: keep } = self.spot(first);
        let to = self.moments.begun(last.saturating_add(1));
        let to = to.map_or(0, |to| to.max(chunk) + 1);
        let mut before = match keep.checked_sub(1) {
            Some(i) => self.moments.chunk(chunk).sets[i],
            None => self.moments.head(chunk).set,
        };
        let mut old: Vec<(Ns, Set)> = Vec::new();
        for c in chunk..to {
            let moments = self.moments.chunk(c);
            let from = if c == chunk { keep } else { 0 };
            old.extend((from..moments.len()).map(|i| moments.entry(i)));
        }
        let mut swept: Vec<(Ns, Set)> = Vec::with_capacity(old.len() + spans.len() * 2);

        let mut edges: Vec<(Ns, i8, u8)> = Vec::with_capacity(spans.len() * 2);
        for (span, engine) in spans.iter() {
            let bit = engine_bit(*engine) as u8;
            edges.push((span.start, 1, bit));
            edges.push((span.end, -1, bit));
        }
        // All edges of one moment are taken together, so their order does not matter.
        edges.sort_unstable_by_key(|edge| edge.0);

        let mut running = [0u32; BITS];
        let mut new: Set = 0;
        let (mut o, mut e) = (0, 0);
        let mut written = before;
        while o < old.len() || e < edges.len() {
            let now = match (old.get(o), edges.get(e)) {
                (Some(a), Some(b)) => a.0.min(b.0),
                (Some(a), None) => a.0,
                (None, Some(b)) => b.0,
                (None, None) => break,
            };
            while let Some(&(_, set)) = old.get(o).filter(|c| c.0 == now) {
                before = set;
                o += 1;
            }
            while let Some(&(_, change, bit)) = edges.get(e).filter(|c| c.0 == now) {
                let count = &mut running[bit as usize];
                *count = count.wrapping_add_signed(i32::from(change));
                if *count == 0 {
                    new &= !(1 << bit);
                } else {
                    new |= 1 << bit;
                }
                e += 1;
            }
            let set = before | new;
            if set != written {
                swept.push((now, set));
                written = set;
            }
        }
        self.put(chunk, keep, to, &swept);
    }

    /// Replaces what follows the first `keep` moments of a chunk, up to chunk `to`, by `swept`.
    fn put(&mut self, chunk: usize, keep: usize, to: usize, swept: &[(Ns, Set)]) {
        if to < self.moments.count() {
            let kept = self.moments.chunk(chunk);
            let mut all: Vec<_> = (0..keep).map(|i| kept.entry(i)).collect();
            all.extend_from_slice(swept);
            self.moments.replace(chunk..to, &all);
            return;
        }
        if to > chunk {
            self.moments.replace(chunk + 1..to, &[]);
            if keep < self.moments.chunk(chunk).len() {
                self.moments.edit(chunk).truncate(keep);
            }
        }
        self.moments.append(swept);
    }

    /// The end of the moments that lie before `time`.
    fn spot(&self, time: Ns) -> Spot {
        self.moments.begun(time).map_or(Spot::START, |chunk| Spot {
            chunk,
            row: self.moments.chunk(chunk).before(time),
        })
    }

    /// The last moment before `time`.
    fn last_before(&self, time: Ns) -> Option<Spot> {
        let Spot { chunk, row } = self.spot(time);
        let row = row.checked_sub(1)?;
        Some(Spot { chunk, row })
    }

    /// The moments from a spot on, each with the set from then on.
    fn from(&self, spot: Spot) -> impl Iterator<Item = (Ns, Set)> + '_ {
        let chunks = self.moments.chunks().enumerate().skip(spot.chunk);
        chunks.flat_map(move |(c, moments)| {
            let from = if c == spot.chunk { spot.row } else { 0 };
            (from..moments.len()).map(|i| moments.entry(i))
        })
    }

    /// Time for which `measure` held within `window`.
    pub fn time(&self, measure: Measure, window: Span) -> Ns {
        if window.is_empty() {
            return 0;
        }
        self.until(measure, window.end) - self.until(measure, window.start)
    }

    /// Time for which `measure` held between each of these moments, which ascend, and the next. It searches for each once.
    pub fn times(&self, measure: Measure, edges: &[Ns]) -> Vec<Ns> {
        let until: Vec<Ns> = edges.iter().map(|&at| self.until(measure, at)).collect();
        until.windows(2).map(|two| two[1] - two[0]).collect()
    }

    /// Time for which `measure` held at all.
    pub fn total(&self, measure: Measure) -> Ns {
        self.moments.total().sums[measure.slot()]
    }

    fn until(&self, measure: Measure, time: Ns) -> Ns {
        let slot = measure.slot();
        if let Some(sums) = self.rollup.until(time) {
            return sums[slot];
        }
        let Some(chunk) = self.moments.begun(time) else {
            let base = &self.moments.base;
            let held = if base.set == 0 { 0 } else { time - base.time };
            return base.sums[slot] + length_if(base.set, slot, held);
        };
        self.moments.head(chunk).sums[slot] + self.moments.chunk(chunk).until(slot, time)
    }

    pub(super) fn evict_before(&mut self, time: Ns) {
        let (Some(span), Some((chunks, edge))) = (self.span(), self.moments.evictable(time)) else {
            return;
        };
        let mut sums = [0; MEASURES];
        for measure in Measure::ALL {
            sums[measure.slot()] = self.until(measure, edge);
        }
        self.rollup.set(Span::new(span.start, edge), sums);
        self.moments.forget(chunks);
    }

    /// Where the evicted span ends.
    fn edge(&self) -> Option<Ns> {
        self.rollup.span().map(|evicted| evicted.end)
    }

    /// Moves all moments in time by `to`.
    pub(super) fn retime(&mut self, to: impl Fn(Ns) -> Ns) {
        self.rollup.retime(&to);
        let mut base = self.moments.base;
        if self.edge().is_some() {
            base.time = to(base.time);
        }
        // Two moments may become one: then the later set counts, unless it held before.
        let mut made = Vec::new();
        let (mut before, mut next) = (base.set, None::<(Ns, Set)>);
        let mut push = |(time, set): (Ns, Set)| {
            if set != before {
                made.push((time, set));
                before = set;
            }
        };
        for (time, set) in self.from(Spot::START) {
            let time = to(time);
            if let Some(last) = next.replace((time, set)).filter(|last| last.0 != time) {
                push(last);
            }
        }
        next.into_iter().for_each(&mut push);
        self.moments.remake(base, &made);
    }

    /// Drops the single moments to make room for new ones. The sums of evicted moments stay, moved in time by `to`.
    pub(super) fn empty(&mut self, to: impl Fn(Ns) -> Ns) {
        self.rollup.retime(to);
        let mut base = self.moments.base;
        (base.time, base.set) = (self.edge().unwrap_or(0), 0);
        self.moments.remake(base, &[]);
    }

    /// First moment of use to the last one.
    pub fn span(&self) -> Option<Span> {
        let evicted = self.rollup.span().map(|evicted| evicted.start);
        let first = evicted.or(self.moments.first())?;
        Some(Span::new(first, self.moments.total().time))
    }

    /// The stretches of `window` in which `measure` held, merged, in order.
    pub fn stretches(&self, measure: Measure, window: Span) -> impl Iterator<Item = Span> + '_ {
        let after = window.start.saturating_add(1);
        let first = self.last_before(after).unwrap_or(Spot::START);
        let mut moments = self.from(first);
        std::iter::from_fn(move || {
            loop {
                let (start, _) = moments
                    .by_ref()
                    .take_while(|(time, _)| *time < window.end)
                    .find(|&(_, set)| measure.holds(set))?;
                // The last set is empty, so a stretch always ends at a moment.
                let (end, _) = moments.find(|&(_, set)| !measure.holds(set))?;
                let span = Span::new(start, end).intersect(window);
                if !span.is_empty() {
                    return Some(span);
                }
            }
        })
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.moments.chunks().map(Moments::memory).sum::<usize>() + self.moments.overhead()
    }
}

#[cfg(test)]
mod tests;
