//! Which row of a range is the longest: maxima of sixteen rows, of sixteen times sixteen, and so on.
//!
//! Appending costs amortised O(1), cutting off a tail is a truncation, which is what late records need,
//! and a range is a few short scans: its ragged ends by rows, then by blocks of each size. (The forest
//! over an append-only column is an idea of Perfetto's `implicit_segment_forest.h` and of gigatrace;
//! wide nodes with the lengths in them instead of binary ones that point at rows take a sixth of the
//! memory and touch a fraction of the cache lines.)

use super::index::FAN;
use crate::activity::Ns;

/// The longest row of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Best {
    length: Ns,
    row: u32,
}

impl Best {
    /// The longer one; of equals the earlier row.
    fn max(self, other: Best) -> Best {
        let is_better =
            other.length > self.length || (other.length == self.length && other.row < self.row);
        if is_better { other } else { self }
    }
}

/// Longest row of any range.
#[derive(Clone, Debug, Default)]
pub(super) struct Maxima {
    /// `levels[k]` has one entry for each whole block of `FAN.pow(k + 1)` rows.
    levels: Vec<Vec<Best>>,
}

impl Maxima {
    /// Takes note that the column has `len` rows, one more than before; `length(row)` is what to maximise.
    pub(super) fn grow(&mut self, len: usize, length: impl Fn(usize) -> Ns) {
        let mut at = len;
        for level in 0.. {
            if !at.is_multiple_of(FAN) {
                return;
            }
            at /= FAN;
            let best = match level {
                0 => Self::of_rows(len - FAN, len, &length),
                k => best_of(&self.levels[k - 1][(at - 1) * FAN..at * FAN]),
            };
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            self.levels[level].extend(best);
        }
    }

    /// Forgets all rows from `len` on.
    pub(super) fn truncate(&mut self, len: usize) {
        let mut len = len;
        for level in &mut self.levels {
            len /= FAN;
            level.truncate(len);
        }
    }

    /// The longest row of `[from, to)`, the first of equals; `None` for an empty range.
    pub(super) fn best(
        &self,
        from: usize,
        to: usize,
        length: impl Fn(usize) -> Ns,
    ) -> Option<usize> {
        let (mut from, mut to) = (from, to);
        let mut best = None;
        let mut take = |found: Option<Best>| {
            best = match (best, found) {
                (Some(a), Some(b)) => Some(Best::max(a, b)),
                (a, b) => a.or(b),
            };
        };
        // The ragged ends of this level, and what lies between them on the next.
        for level in 0..=self.levels.len() {
            if from >= to {
                break;
            }
            let is_top = level == self.levels.len();
            let head = if is_top {
                to
            } else {
                from.next_multiple_of(FAN).min(to)
            };
            let tail = if is_top {
                to
            } else {
                (to / FAN * FAN).max(head)
            };
            for (a, b) in [(from, head), (tail, to)] {
                take(match level {
                    0 => Self::of_rows(a, b, &length),
                    k => best_of(&self.levels[k - 1][a..b]),
                });
            }
            from = head / FAN;
            to = tail / FAN;
        }
        best.map(|b| b.row as usize)
    }

    fn of_rows(from: usize, to: usize, length: impl Fn(usize) -> Ns) -> Option<Best> {
        (from..to)
            .map(|row| Best {
                length: length(row),
                row: u32::try_from(row).unwrap_or(u32::MAX),
            })
            .reduce(Best::max)
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        self.levels
            .iter()
            .map(|l| l.len() * size_of::<Best>())
            .sum()
    }
}

fn best_of(blocks: &[Best]) -> Option<Best> {
    blocks.iter().copied().reduce(Best::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(keys: &[Ns], from: usize, to: usize) -> Option<usize> {
        (from..to.min(keys.len())).rev().max_by_key(|&i| keys[i])
    }

    fn maxima(keys: &[Ns]) -> Maxima {
        let mut maxima = Maxima::default();
        for len in 1..=keys.len() {
            maxima.grow(len, |i| keys[i]);
        }
        maxima
    }

    #[test]
    fn every_range_of_every_small_size_agrees_with_a_plain_search() {
        for n in (0..40).chain([255, 256, 257, 300]) {
            let keys: Vec<Ns> = (0..n).map(|i| (i * 7919) % 13).collect();
            let maxima = maxima(&keys);
            for from in 0..=keys.len() {
                for to in from..=keys.len() {
                    assert_eq!(
                        maxima.best(from, to, |i| keys[i]),
                        plain(&keys, from, to),
                        "{n} {from}..{to}"
                    );
                }
            }
        }
    }

    proptest! {
        #[test]
        fn truncating_and_growing_again_agrees_with_a_plain_search(
            mut keys in prop::collection::vec(0i64..50, 1..5000),
            cut in 0usize..5000,
            tail in prop::collection::vec(0i64..50, 0..500),
            a in 0usize..5500,
            b in 0usize..5500,
        ) {
            let mut maxima = maxima(&keys);
            let cut = cut.min(keys.len());
            keys.truncate(cut);
            maxima.truncate(cut);
            for key in tail {
                keys.push(key);
                maxima.grow(keys.len(), |i| keys[i]);
            }
            let (from, to) = (a.min(b).min(keys.len()), a.max(b).min(keys.len()));
            prop_assert_eq!(maxima.best(from, to, |i| keys[i]), plain(&keys, from, to));
        }
    }
}
