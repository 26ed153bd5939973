//! A table that only grows, in chunks that clones share. It can evict old chunks; indices stay.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Entries of a chunk.
const CHUNK: usize = 1024;

/// Entries by index. A clone copies a pointer a chunk; adding to the last one copies it if a clone holds it.
#[derive(Clone, Debug)]
pub(super) struct Pool<T> {
    chunks: Vec<Arc<Vec<T>>>,
    /// Chunks at the beginning that were evicted.
    gone: usize,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool {
            chunks: Vec::new(),
            gone: 0,
        }
    }
}

/// A pool in which equal entries are one.
#[derive(Clone, Debug)]
pub(super) struct Interned<T> {
    pub(super) entries: Pool<T>,
    ids: FxHashMap<T, u32>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Interned {
            entries: Pool::default(),
            ids: FxHashMap::default(),
        }
    }
}

impl<T: Clone + Eq + Hash> Interned<T> {
    /// The index of an entry, which it adds when it is new.
    pub(super) fn id(&mut self, entry: T) -> u32 {
        if let Some(&id) = self.ids.get(&entry) {
            return id;
        }
        let id = self.entries.push(entry.clone()) as u32;
        self.ids.insert(entry, id);
        id
    }

    /// A copy for reading.
    pub(super) fn snapshot(&self) -> Self {
        Interned {
            entries: self.entries.clone(),
            ..Self::default()
        }
    }
}

impl<T: Clone> Pool<T> {
    /// Adds an entry and returns its index.
    pub(super) fn push(&mut self, entry: T) -> usize {
        let at = self.len();
        if at.is_multiple_of(CHUNK) {
            self.chunks.push(Arc::default());
        }
        if let Some(last) = self.chunks.last_mut() {
            Arc::make_mut(last).push(entry);
        }
        at
    }

    pub(super) fn get(&self, index: usize) -> Option<&T> {
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)
    }

    pub(super) fn len(&self) -> usize {
        let last = self.chunks.last().map_or(0, |last| last.len());
        self.chunks.len().saturating_sub(1) * CHUNK + last
    }

    /// The index of the first entry that is still there.
    pub(super) fn first(&self) -> usize {
        self.gone * CHUNK
    }

    /// Evicts the chunks all of whose entries have indices below `index`, but never the last chunk.
    pub(super) fn evict_before(&mut self, index: usize) {
        let until = (index / CHUNK).min(self.chunks.len().saturating_sub(1));
        if until > self.gone {
            let nothing = Arc::new(Vec::new());
            for chunk in &mut self.chunks[self.gone..until] {
                *chunk = Arc::clone(&nothing);
            }
            self.gone = until;
        }
    }

    /// How many entries from the beginning on are such, evicted ones included.
    pub(super) fn partition(&self, is_such: impl Fn(&T) -> bool) -> usize {
        let (mut from, mut to) = (self.first(), self.len());
        while from < to {
            let middle = from + (to - from) / 2;
            match self.get(middle) {
                Some(entry) if is_such(entry) => from = middle + 1,
                _ => to = middle,
            }
        }
        from
    }

    /// Exchanges an entry and the next one where they are such. Returns whether it did.
    pub(super) fn swap_if(&mut self, at: usize, is_such: impl Fn(&T, &T) -> bool) -> bool {
        let two = (self.get(at).cloned(), self.get(at + 1).cloned());
        let (Some(one), Some(next)) = two else {
            return false;
        };
        let swaps = is_such(&one, &next);
        if swaps {
            for (at, entry) in [(at, next), (at + 1, one)] {
                Arc::make_mut(&mut self.chunks[at / CHUNK])[at % CHUNK] = entry;
            }
        }
        swaps
    }

    /// Replaces each entry that is still there.
    pub(super) fn map(&mut self, to: impl Fn(&T) -> T) {
        for chunk in &mut self.chunks[self.gone..] {
            *chunk = Arc::new(chunk.iter().map(&to).collect());
        }
    }

    /// Bytes that its entries take.
    pub(super) fn memory(&self) -> usize {
        (self.chunks.len() - self.gone) * CHUNK * size_of::<T>()
    }
}
