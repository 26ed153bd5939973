//! Chunks of sorted columns that clones share.
//!
//! A column that grows, that another thread may read, that takes late records and that loses its old end is a
//! row of chunks, each behind an [`Arc`]. A clone of it copies a pointer and a few sums a chunk. A change copies the chunks
//! that it touches if a clone still holds them, and nothing else. What a chunk knows is of itself alone; what
//! lies before it comes in as a [`Chunk::Head`], so a change rebuilds nothing behind it but heads.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::activity::Ns;

/// Entries of a chunk at most. As many as a batch: a reader that comes back for each batch pays one copy of
/// an open chunk for it.
#[cfg(not(test))]
pub(super) const CAPACITY: usize = 4096;
/// Small enough for property tests to fill several.
#[cfg(test)]
pub(super) const CAPACITY: usize = 40;

/// A piece of columns that are sorted by time.
pub(super) trait Chunk: Clone + Debug {
    /// What is known of all that lies before a chunk.
    type Head: Copy + Default + Debug;

    /// Entries.
    fn len(&self) -> usize;

    /// Time of the first entry.
    fn first(&self) -> Ns;

    /// What lies before this chunk, completed with what follows from it for this chunk.
    fn enter(&self, before: Self::Head) -> Self::Head {
        before
    }

    /// What lies before the next chunk.
    fn leave(&self, head: Self::Head) -> Self::Head;
}

/// Where an entry is: a chunk and a row in it. The place after the last row of a chunk and the one before the
/// first of the next are the same; both are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) chunk: usize,
    pub(super) row: usize,
}

impl Spot {
    pub(super) const START: Spot = Spot { chunk: 0, row: 0 };
}

/// Chunks in order of time.
#[derive(Clone, Debug)]
pub(super) struct Series<C: Chunk> {
    chunks: Vec<Arc<C>>,
    /// Time of each chunk's first entry.
    firsts: Vec<Ns>,
    /// Entries before each chunk, forgotten ones included; and in all.
    bases: Vec<usize>,
    /// What lies before each chunk, completed by it; and before what is to come.
    heads: Vec<C::Head>,
    /// What lies before the first chunk: what was forgotten.
    base: C::Head,
}

impl<C: Chunk> Default for Series<C> {
    fn default() -> Self {
        Series {
            chunks: Vec::new(),
            firsts: Vec::new(),
            bases: vec![0],
            heads: vec![C::Head::default()],
            base: C::Head::default(),
        }
    }
}

impl<C: Chunk> Series<C> {
    /// Chunks.
    pub(super) fn count(&self) -> usize {
        self.chunks.len()
    }

    /// Entries that there ever were; indices go up to it.
    pub(super) fn len(&self) -> usize {
        self.bases[self.chunks.len()]
    }

    /// Index of the first entry that is kept.
    pub(super) fn kept(&self) -> usize {
        self.bases[0]
    }

    /// Time of the first entry that is kept.
    pub(super) fn first(&self) -> Option<Ns> {
        self.firsts.first().copied()
    }

    pub(super) fn chunk(&self, chunk: usize) -> &C {
        &self.chunks[chunk]
    }

    pub(super) fn chunks(&self) -> impl DoubleEndedIterator<Item = &C> + ExactSizeIterator {
        self.chunks.iter().map(Arc::as_ref)
    }

    /// The last chunk.
    pub(super) fn last(&self) -> Option<&C> {
        self.chunks.last().map(Arc::as_ref)
    }

    /// What lies before a chunk.
    pub(super) fn head(&self, chunk: usize) -> &C::Head {
        &self.heads[chunk]
    }

    /// What lies before each chunk, and after the last.
    pub(super) fn heads(&self) -> &[C::Head] {
        &self.heads
    }

    /// What lies before what is to come.
    pub(super) fn total(&self) -> &C::Head {
        &self.heads[self.chunks.len()]
    }

    /// Time of a chunk's first entry.
    pub(super) fn first_of(&self, chunk: usize) -> Option<Ns> {
        self.firsts.get(chunk).copied()
    }

    /// The last chunk that begins before `time`.
    pub(super) fn begun(&self, time: Ns) -> Option<usize> {
        self.firsts.partition_point(|&t| t < time).checked_sub(1)
    }

    /// [`Series::begun`] for each of these times, which ascend: mostly it is the chunk of the time before, or the next.
    pub(super) fn begun_each(&self, times: &[Ns]) -> impl Iterator<Item = Option<usize>> {
        /// Chunks that are stepped over before the rest is searched.
        const STEPS: usize = 4;
        let mut begun = 0;
        times.iter().map(move |&time| {
            let later = &self.firsts[begun..];
            let steps = later.iter().take(STEPS).take_while(|&&t| t < time).count();
            begun += match steps {
                STEPS => later.partition_point(|&t| t < time),
                steps => steps,
            };
            begun.checked_sub(1)
        })
    }

    /// Where an entry is, `None` for one that was forgotten or is not there.
    pub(super) fn spot(&self, index: usize) -> Option<Spot> {
        let past = index.checked_sub(self.bases[0])?;
        // Right unless late records or a forgotten end have made chunks that are not full.
        let guess = past / CAPACITY;
        let is_it = |chunk: usize| {
            self.bases
                .get(chunk + 1)
                .is_some_and(|&end| (self.bases[chunk]..end).contains(&index))
        };
        let chunk = if is_it(guess) {
            guess
        } else {
            let chunk = self.bases.partition_point(|&base| base <= index) - 1;
            if !is_it(chunk) {
                return None;
            }
            chunk
        };
        Some(Spot {
            chunk,
            row: index - self.bases[chunk],
        })
    }

    /// The index of an entry.
    pub(super) fn index(&self, spot: Spot) -> usize {
        self.bases[spot.chunk] + spot.row
    }

    /// The last chunk, to be added to, or a new one if there is none with room. [`Series::refresh`] is due
    /// afterwards.
    pub(super) fn open(&mut self, empty: impl FnOnce() -> C) -> &mut C {
        if self.chunks.last().is_none_or(|c| c.len() >= CAPACITY) {
            self.chunks.push(Arc::new(empty()));
        }
        let last = self.chunks.len() - 1;
        Arc::make_mut(&mut self.chunks[last])
    }

    /// A chunk, to be changed. [`Series::refresh`] is due afterwards.
    pub(super) fn edit(&mut self, chunk: usize) -> &mut C {
        Arc::make_mut(&mut self.chunks[chunk])
    }

    /// Puts other chunks in the place of these. [`Series::refresh`] is due afterwards.
    pub(super) fn replace(&mut self, range: Range<usize>, with: impl IntoIterator<Item = C>) {
        self.chunks.splice(range, with.into_iter().map(Arc::new));
    }

    /// Takes note that chunks have changed from this one on: one step a chunk behind it, whatever is in it.
    pub(super) fn refresh(&mut self, from: usize) {
        self.firsts.truncate(from);
        self.bases.truncate(from + 1);
        self.heads.truncate(from);
        let before = match from.checked_sub(1) {
            Some(last) => self.chunks[last].leave(self.heads[last]),
            None => self.base,
        };
        self.heads.push(before);
        for at in from..self.chunks.len() {
            let chunk = &self.chunks[at];
            let head = chunk.enter(self.heads[at]);
            self.heads[at] = head;
            self.firsts.push(chunk.first());
            self.bases.push(self.bases[at] + chunk.len());
            self.heads.push(chunk.leave(head));
        }
    }

    /// Puts others in the place of all chunks, and of what the forgotten entries add up to. What was forgotten keeps its indices.
    pub(super) fn remake(&mut self, base: C::Head, chunks: impl IntoIterator<Item = C>) {
        self.chunks = chunks.into_iter().map(Arc::new).collect();
        self.base = base;
        self.refresh(0);
    }

    /// Puts another chunk in the place of each, one after the other.
    pub(super) fn remake_each(&mut self, base: C::Head, chunk: impl Fn(&C) -> C) {
        for of in &mut self.chunks {
            *of = Arc::new(chunk(of));
        }
        self.base = base;
        self.refresh(0);
    }

    /// What the forgotten entries add up to.
    pub(super) fn base(&self) -> &C::Head {
        &self.base
    }

    /// The chunks that can be forgotten so that all entries from `time` on stay: the last one always does.
    pub(super) fn old(&self, time: Ns) -> usize {
        let begun = self.firsts.partition_point(|&t| t <= time);
        begun.saturating_sub(1)
    }

    /// Forgets the first chunks. What they add up to stays in the heads.
    pub(super) fn forget(&mut self, chunks: usize) {
        if let Some(last) = chunks.checked_sub(1) {
            self.base = self.chunks[last].leave(self.heads[last]);
        }
        self.chunks.drain(..chunks);
        self.firsts.drain(..chunks);
        self.bases.drain(..chunks);
        self.heads.drain(..chunks);
    }

    /// Bytes of memory of what is kept for each chunk beside its columns.
    pub(super) fn overhead(&self) -> usize {
        self.chunks.len()
            * (size_of::<C>() + size_of::<Arc<C>>() + size_of::<Ns>() + size_of::<usize>())
            + self.heads.len() * size_of::<C::Head>()
    }
}
