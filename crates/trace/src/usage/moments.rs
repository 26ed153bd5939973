//! A chunk of the moments at which the set of busy engines changes.

use super::{MEASURES, STRIDE, Set, length_if};
use crate::series::{Chunk, before};
use activity::Ns;

/// Some moments, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Moments {
    /// When the set changes, ascending.
    pub(super) times: Vec<Ns>,
    /// The set from that moment on.
    pub(super) sets: Vec<Set>,
    /// Sums of every measure from this chunk's first moment up to moment `i * STRIDE`.
    sums: Vec<[Ns; MEASURES]>,
    /// Sums up to the last moment.
    running: [Ns; MEASURES],
    /// For every block of [`STRIDE`] moments: the longest gap that ends at one of them.
    widest: Vec<Ns>,
    /// Every [`STRIDE`]th moment. It finds a block without a miss of the cache at each step.
    begins: Vec<Ns>,
}

/// The sums before a chunk of moments, up to its first one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MomentsBefore {
    pub(super) sums: [Ns; MEASURES],
    /// The last moment before, and the set from then on.
    pub(super) time: Ns,
    pub(super) set: Set,
}

/// Adds `length` to the sums of the measures that hold in `set`.
fn accrue(sums: &mut [Ns; MEASURES], set: Set, length: Ns) {
    for (slot, sum) in sums.iter_mut().enumerate() {
        *sum += length_if(set, slot, length);
    }
}

impl Chunk for Moments {
    type Entry = (Ns, Set);
    type Key = Ns;
    type Head = MomentsBefore;

    fn key(&(time, _): &(Ns, Set)) -> Ns {
        time
    }

    fn push(&mut self, (time, set): (Ns, Set)) {
        let i = self.times.len();
        if let (Some(&last), Some(&held)) = (self.times.last(), self.sets.last()) {
            accrue(&mut self.running, held, time - last);
        }
        if i.is_multiple_of(STRIDE) {
            self.sums.push(self.running);
            self.widest.push(0);
            self.begins.push(time);
        }
        let idle = self.idle_before(i, time);
        if let Some(widest) = self.widest.last_mut() {
            *widest = idle.max(*widest);
        }
        self.times.push(time);
        self.sets.push(set);
    }

    fn entry(&self, i: usize) -> (Ns, Set) {
        (self.times[i], self.sets[i])
    }

    fn len(&self) -> usize {
        self.times.len()
    }

    fn first(&self) -> Ns {
        self.times[0]
    }

    fn enter(&self, mut before: MomentsBefore) -> MomentsBefore {
        if before.set != 0 {
            accrue(&mut before.sums, before.set, self.times[0] - before.time);
        }
        before
    }

    fn leave(&self, mut head: MomentsBefore) -> MomentsBefore {
        for (sum, own) in head.sums.iter_mut().zip(self.running) {
            *sum += own;
        }
        let last = self.times.len() - 1;
        head.time = self.times[last];
        head.set = self.sets[last];
        head
    }
}

impl Moments {
    /// How long nothing ran before moment `i`, which is at `time`, back to the one before it in this chunk.
    fn idle_before(&self, i: usize, time: Ns) -> Ns {
        match i.checked_sub(1) {
            Some(last) if self.sets[last] == 0 => time - self.times[last],
            _ => 0,
        }
    }

    /// The longest gap that ends at a moment of the block of moment `i`.
    pub(super) fn widest(&self, i: usize) -> Ns {
        self.widest[i / STRIDE]
    }

    /// Drops the moments from `keep` on.
    pub(super) fn truncate(&mut self, keep: usize) {
        self.times.truncate(keep);
        self.sets.truncate(keep);
        self.sums.truncate(keep.div_ceil(STRIDE));
        self.widest.truncate(keep.div_ceil(STRIDE));
        self.begins.truncate(keep.div_ceil(STRIDE));
        self.running = [0; MEASURES];
        let Some(last) = keep.checked_sub(1) else {
            return;
        };
        let block = last / STRIDE;
        let ends = block * STRIDE..=last;
        let idle = ends.map(|i| self.idle_before(i, self.times[i])).max();
        self.widest[block] = idle.unwrap_or(0);
        self.running = self.sums[block];
        for j in block * STRIDE..last {
            let length = self.times[j + 1] - self.times[j];
            accrue(&mut self.running, self.sets[j], length);
        }
    }

    /// Moments before `time`.
    pub(super) fn before(&self, time: Ns) -> usize {
        before(&self.begins, &self.times, STRIDE, time)
    }

    /// Time for which the measure in `slot` held from the first moment until `time`, which is after it.
    pub(super) fn until(&self, slot: usize, time: Ns) -> Ns {
        let Some(last) = self.before(time).checked_sub(1) else {
            return 0;
        };
        let block = last / STRIDE;
        let from = block * STRIDE;
        let (times, sets) = (&self.times[from..=last], &self.sets[from..=last]);
        let steps = times.windows(2).zip(sets);
        let whole = steps.map(|(t, &set)| length_if(set, slot, t[1] - t[0]));
        let whole: Ns = whole.sum();
        self.sums[block][slot] + whole + length_if(self.sets[last], slot, time - self.times[last])
    }

    /// Bytes of memory that its columns take.
    pub(super) fn memory(&self) -> usize {
        size_of_val(self.times.as_slice())
            + self.sets.len()
            + size_of_val(self.sums.as_slice())
            + 2 * size_of_val(self.widest.as_slice())
    }
}
