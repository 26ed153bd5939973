//! Which row of a range is the longest: maxima of sixteen rows, of sixteen times sixteen, and so on.
//!
//! Appending costs amortised O(1), cutting off a tail is a truncation, which is what late records need,
//! and a range is a few short scans: its ragged ends by rows, then by blocks of each size. (The forest
//! over an append-only column is an idea of Perfetto's `implicit_segment_forest.h` and of gigatrace;
//! wide nodes with the lengths in them instead of binary ones that point at rows take an eighth of the
//! memory and touch a fraction of the cache lines.)

use super::index::FAN;
use crate::activity::Ns;

/// Levels, the rows included, that 2^32 rows have.
const LEVELS_MAX: usize = 9;

/// Longest row of any range.
#[derive(Clone, Debug, Default)]
pub(super) struct Maxima {
    /// `levels[k]` has the greatest length of each whole block of `FAN.pow(k + 1)` rows.
    levels: Vec<Vec<Ns>>,
}

/// Where the greatest length so far was seen.
#[derive(Clone, Copy)]
struct Seen {
    length: Ns,
    /// 0 for rows, `k + 1` for `levels[k]`.
    level: usize,
    /// Entries of that level.
    from: usize,
    to: usize,
}

impl Maxima {
    /// Takes note that the column has `len` rows, one more than before; `length(row)` is what to maximise.
    pub(super) fn grow(&mut self, len: usize, length: impl Fn(usize) -> Ns) {
        let mut at = len;
        for level in 0.. {
            if !at.is_multiple_of(FAN) {
                return;
            }
            let greatest = self.greatest(level, at - FAN, at, &length);
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            self.levels[level].extend(greatest);
            at /= FAN;
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
        let mut best: Option<Seen> = None;
        // What was seen on a level lies between the two ends of the level below it, so of equals on
        // two levels the head of the lower one is first and its tail last. Tails wait in a pile.
        let mut tails: [Option<Seen>; LEVELS_MAX] = [None; LEVELS_MAX];
        let mut take = |seen: Seen| {
            if best.is_none_or(|b| seen.length > b.length) {
                best = Some(seen);
            }
        };
        for level in 0..=self.levels.len() {
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
            let seen = |(from, to)| {
                let length = self.greatest(level, from, to, &length)?;
                Some(Seen {
                    length,
                    level,
                    from,
                    to,
                })
            };
            seen((from, head)).into_iter().for_each(&mut take);
            tails[level.min(LEVELS_MAX - 1)] = seen((tail, to));
            (from, to) = (head / FAN, tail / FAN);
            if from >= to {
                break;
            }
        }
        tails.into_iter().rev().flatten().for_each(&mut take);
        let best = best?;
        let Seen {
            mut from, mut to, ..
        } = best;
        // Down to the first row that is as long.
        for level in (0..=best.level).rev() {
            let is_it =
                |&at: &usize| self.greatest(level, at, at + 1, &length) == Some(best.length);
            let at = (from..to).find(is_it)?;
            if level == 0 {
                return Some(at);
            }
            (from, to) = (at * FAN, (at + 1) * FAN);
        }
        None
    }

    /// Reads what questions about ranges between these rows will read, a level at a time: the memory is
    /// then waited for once for many of them, instead of once for each step of each.
    pub(super) fn warm(&self, rows: &[usize]) {
        let mut width = FAN;
        for level in &self.levels {
            let mut seen = 0;
            for &row in rows {
                // The node of sixteen around the row: two cache lines.
                let node = row / width / FAN * FAN;
                for entry in [node, node + FAN / 2] {
                    seen ^= level.get(entry).copied().unwrap_or(0);
                }
            }
            std::hint::black_box(seen);
            width *= FAN;
        }
    }

    /// The greatest of the entries `[from, to)` of a level, where level 0 is the rows themselves.
    fn greatest(
        &self,
        level: usize,
        from: usize,
        to: usize,
        length: impl Fn(usize) -> Ns,
    ) -> Option<Ns> {
        match level {
            0 => (from..to).map(length).max(),
            k => self.levels[k - 1][from..to].iter().copied().max(),
        }
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        self.levels.iter().map(|l| l.len() * size_of::<Ns>()).sum()
    }
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
