//! Names and launch shapes, each written once and referred to by a number.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A word at a time, like rustc's hasher. The keys come from the traced program itself, and a kernel name of several
/// hundred bytes is hashed for each launch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WordHasher(u64);

impl WordHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(last) ^ (rest.len() as u64) << 56);
    }
    fn write_u32(&mut self, value: u32) {
        self.add(u64::from(value));
    }
    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }
    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }
    fn finish(&self) -> u64 {
        // The high bits are the mixed ones; the table looks at both ends.
        self.0.rotate_left(26)
    }
}

/// Numbers for keys, counted up from 1 in the order in which they first came.
#[derive(Debug)]
pub(super) struct Interner<K> {
    known: HashMap<K, u32, BuildHasherDefault<WordHasher>>,
    next: u32,
    most: usize,
}

impl<K: Eq + Hash> Interner<K> {
    /// Forgets all keys whenever `most` are known: a program whose launch shapes never repeat must not make
    /// its own memory grow. What comes again is then defined again, under a new number.
    pub(super) fn new(most: usize) -> Self {
        Interner {
            known: HashMap::default(),
            next: 1,
            most,
        }
    }

    pub(super) fn get<Q>(&self, key: &Q) -> Option<u32>
    where
        K: std::borrow::Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.known.get(key).copied()
    }

    /// The number for a key that [`Interner::get`] did not know.
    pub(super) fn add(&mut self, key: K) -> u32 {
        if self.known.len() >= self.most {
            self.known.clear();
        }
        let id = self.next;
        self.next += 1;
        self.known.insert(key, id);
        id
    }
}
