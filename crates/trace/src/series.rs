//! Chunks of sorted columns that clones share.
//!
//! A series serves columns that grow, that another thread may read, that take late records, and that lose their old
//! end. It is a row of chunks, each behind an [`Arc`]. A clone copies a pointer and a few sums a chunk. A change copies
//! the chunks that it touches if a clone still holds them, and nothing else. A chunk's own sums cover that chunk only.
//! A [`Chunk::Head`] brings in what lies before it, so a change rebuilds only heads behind it.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use activity::Ns;

/// The most entries of a chunk. As many as a batch: a reader that comes back for each batch pays one copy of an open
/// chunk for it.
#[cfg(not(test))]
pub(super) const CAPACITY: usize = 4096;
/// Small enough for property tests to fill several.
#[cfg(test)]
pub(super) const CAPACITY: usize = 40;

/// A piece of columns that are sorted by time.
pub(super) trait Chunk: Clone + Debug + Default {
    /// Entries at most.
    const CAPACITY: usize = CAPACITY;

    /// One entry of the columns.
    type Entry: Copy;

    /// What entries are sorted by; the time comes first.
    type Key: Ord;

    /// Sums over all that lies before a chunk.
    type Head: Copy + Default + Debug;

    /// The key of an entry.
    fn key(entry: &Self::Entry) -> Self::Key;

    /// Adds an entry behind all others.
    fn push(&mut self, entry: Self::Entry);

    /// The entry of a row.
    fn entry(&self, row: usize) -> Self::Entry;

    /// Entries.
    fn len(&self) -> usize;

    /// Time of the first entry.
    fn first(&self) -> Ns;

    /// Completes the sums before this chunk with what follows from them for this chunk.
    fn enter(&self, before: Self::Head) -> Self::Head {
        before
    }

    /// The sums before the next chunk.
    fn leave(&self, head: Self::Head) -> Self::Head;
}

/// How many ascending times lie before `time`. `begins` is every `stride`th of them.
pub(super) fn before(begins: &[Ns], times: &[Ns], stride: usize, time: Ns) -> usize {
    let begun = begins.partition_point(|&begin| begin < time);
    let from = begun.saturating_sub(1) * stride;
    let block = times[from..].iter().take(stride);
    from + block.map(|&t| usize::from(t < time)).sum::<usize>()
}

/// Where an entry is: a chunk and a row in it. The place after the last row of a chunk and the one before the first of
/// the next are the same; both are used.
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
    /// Entries before each chunk, evicted ones included; the last is the total.
    bases: Vec<usize>,
    /// The sums before each chunk, completed by it; the last is for the chunk to come.
    pub(super) heads: Vec<C::Head>,
    /// The sums before the first chunk: those of the evicted entries.
    pub(super) base: C::Head,
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

    /// The sums before a chunk.
    pub(super) fn head(&self, chunk: usize) -> &C::Head {
        &self.heads[chunk]
    }

    /// The sums of everything so far.
    pub(super) fn total(&self) -> &C::Head {
        &self.heads[self.chunks.len()]
    }

    /// The last chunk that begins before `time`.
    pub(super) fn begun(&self, time: Ns) -> Option<usize> {
        self.firsts.partition_point(|&t| t < time).checked_sub(1)
    }

    /// [`Series::begun`] for each of these times, which ascend: mostly it is the last time's chunk, or the next.
    pub(super) fn begun_each(&self, times: &[Ns]) -> impl Iterator<Item = Option<usize>> {
        /// Chunks to step over before it searches the rest.
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

    /// Where an entry is; `None` for one that was evicted or is not there.
    #[inline]
    pub(super) fn spot(&self, index: usize) -> Option<Spot> {
        let past = index.checked_sub(self.bases[0])?;
        // Right unless late records or eviction left chunks that are not full.
        let guess = past / C::CAPACITY;
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

    /// Adds entries, which are sorted: behind all others, or each where it belongs.
    pub(super) fn merge(&mut self, entries: &[C::Entry]) {
        let Some(first) = entries.first() else {
            return;
        };
        let last = self.last().map(|chunk| chunk.entry(chunk.len() - 1));
        if last.is_none_or(|last| C::key(&last) <= C::key(first)) {
            self.append(entries);
        } else {
            self.insert(entries);
        }
    }

    /// Adds entries behind all others.
    pub(super) fn append(&mut self, entries: &[C::Entry]) {
        let changed = self.chunks.len().saturating_sub(1);
        let mut rest = entries;
        while !rest.is_empty() {
            if self.last().is_none_or(|chunk| chunk.len() >= C::CAPACITY) {
                self.chunks.push(Arc::default());
            }
            let last = self.chunks.len() - 1;
            let chunk = Arc::make_mut(&mut self.chunks[last]);
            let (now, later) = rest.split_at(rest.len().min(C::CAPACITY - chunk.len()));
            now.iter().for_each(|&entry| chunk.push(entry));
            rest = later;
        }
        self.refresh(changed);
    }

    /// Puts entries where they belong: each into the last chunk that begins no later than it.
    fn insert(&mut self, entries: &[C::Entry]) {
        let mut rest = entries;
        let mut changed = self.chunks.len();
        // It works from the back: a chunk that becomes two then does not move chunks still to be changed.
        while let Some(last) = rest.last() {
            let first = |chunk: &Arc<C>| C::key(&chunk.entry(0));
            let begun = self.chunks[..changed].partition_point(|c| first(c) <= C::key(last));
            changed = begun.saturating_sub(1);
            let old = &self.chunks[changed];
            let from = match changed {
                0 => 0,
                _ => rest.partition_point(|entry| C::key(entry) < first(old)),
            };
            let mut merged: Vec<C::Entry> = (0..old.len()).map(|row| old.entry(row)).collect();
            merged.extend_from_slice(&rest[from..]);
            merged.sort_by_key(C::key);
            self.pack(changed..changed + 1, &merged);
            rest = &rest[..from];
        }
        self.refresh(changed);
    }

    /// Replaces these chunks by entries.
    pub(super) fn replace(&mut self, chunks: Range<usize>, entries: &[C::Entry]) {
        let changed = chunks.start;
        self.pack(chunks, entries);
        self.refresh(changed);
    }

    /// Replaces these chunks by entries. It fills the last chunks, as more will follow, and makes others of equal size.
    /// The caller must call [`Series::refresh`] afterwards.
    fn pack(&mut self, chunks: Range<usize>, entries: &[C::Entry]) {
        let pieces = entries.len().div_ceil(C::CAPACITY).max(1);
        let size = match chunks.end == self.chunks.len() {
            true => C::CAPACITY,
            false => entries.len().div_ceil(pieces).max(1),
        };
        let packed = entries.chunks(size).map(|piece| {
            let mut chunk = C::default();
            piece.iter().for_each(|&entry| chunk.push(entry));
            Arc::new(chunk)
        });
        self.chunks.splice(chunks, packed);
    }

    /// A chunk, for the caller to cut off. The caller must call [`Series::append`] afterwards.
    pub(super) fn edit(&mut self, chunk: usize) -> &mut C {
        Arc::make_mut(&mut self.chunks[chunk])
    }

    /// Updates the heads after chunks have changed from this one on: one step a chunk behind it, whatever it holds.
    fn refresh(&mut self, from: usize) {
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

    /// Replaces all entries, and the sums of the evicted ones. Evicted entries keep their indices.
    pub(super) fn remake(&mut self, base: C::Head, entries: &[C::Entry]) {
        self.base = base;
        self.chunks.clear();
        self.append(entries);
    }

    /// Replaces each entry; they stay in their order.
    pub(super) fn map(&mut self, base: C::Head, to: impl Fn(C::Entry) -> C::Entry) {
        for chunk in &mut self.chunks {
            let mut made = C::default();
            (0..chunk.len()).for_each(|row| made.push(to(chunk.entry(row))));
            *chunk = Arc::new(made);
        }
        self.base = base;
        self.refresh(0);
    }

    /// How many chunks can be evicted so that all entries from `time` on stay. The last chunk always stays.
    pub(super) fn old(&self, time: Ns) -> usize {
        let begun = self.firsts.partition_point(|&t| t <= time);
        begun.saturating_sub(1)
    }

    /// Those chunks, where there are any, and when the first entry begins that stays.
    pub(super) fn evictable(&self, time: Ns) -> Option<(usize, Ns)> {
        let chunks = Some(self.old(time)).filter(|&chunks| chunks > 0)?;
        Some((chunks, *self.firsts.get(chunks)?))
    }

    /// Evicts the first chunks. Their sums stay in the heads.
    pub(super) fn forget(&mut self, chunks: usize) {
        if let Some(last) = chunks.checked_sub(1) {
            self.base = self.chunks[last].leave(self.heads[last]);
        }
        self.chunks.drain(..chunks);
        self.firsts.drain(..chunks);
        self.bases.drain(..chunks);
        self.heads.drain(..chunks);
    }

    /// Bytes of memory that each chunk takes beside its columns.
    pub(super) fn overhead(&self) -> usize {
        self.chunks.len()
            * (size_of::<C>() + size_of::<Arc<C>>() + size_of::<Ns>() + size_of::<usize>())
            + self.heads.len() * size_of::<C::Head>()
    }
}
