//! A table that only grows, in chunks that clones share.

use std::sync::Arc;

/// Entries of a chunk.
const CHUNK: usize = 1024;

/// Entries by index. A clone copies a pointer a chunk; adding to the last one copies it if a clone holds it.
#[derive(Clone, Debug)]
pub(super) struct Pool<T> {
    chunks: Vec<Arc<Vec<T>>>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool { chunks: Vec::new() }
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
}
