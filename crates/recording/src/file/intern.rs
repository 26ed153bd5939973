//! Names and launch shapes, each written once and referred to by a number.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Numbers for keys, counted up from 1 in the order in which they first came.
///
/// It forgets all keys whenever `MOST` are known: a program whose launch shapes never repeat must not make its own memory
/// grow. What comes again is then defined again, under a new number.
#[derive(Debug, Default)]
pub(super) struct Interner<K, const MOST: usize> {
    /// By a fast hash: a kernel's name of several hundred bytes is looked up for each launch.
    known: FxHashMap<K, u32>,
    last: u32,
}

impl<K: Eq + Hash, const MOST: usize> Interner<K, MOST> {
    pub(super) fn get<Q>(&self, key: &Q) -> Option<u32>
    where
        K: std::borrow::Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.known.get(key).copied()
    }

    /// The number for a key that [`Interner::get`] did not know.
    pub(super) fn add(&mut self, key: K) -> u32 {
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.last += 1;
        self.known.insert(key, self.last);
        self.last
    }
}
