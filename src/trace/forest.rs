//! Which row of a range has the greatest key: a Fenwick-shaped forest over row numbers.
//!
//! Node `i` holds the best row of `[i + 1 - lowbit(i + 1), i + 1)`. A node never looks at rows after
//! its own, so appending is amortised O(1) and cutting off a tail is a truncation, which is what
//! late records need. A query is O(log² n). (The idea of an implicit forest over an append-only
//! column is from Perfetto's `implicit_segment_forest.h` and from gigatrace; the shape is ours.)

/// Best row of any range, four bytes a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Forest {
    nodes: Vec<u32>,
}

impl Forest {
    /// Forgets all rows from `len` on.
    pub(super) fn truncate(&mut self, len: usize) {
        self.nodes.truncate(len);
    }

    /// Adds rows until there are `len`; `key(row)` is what to maximise. Of equals, the earlier row wins.
    pub(super) fn grow(&mut self, len: usize, key: impl Fn(usize) -> i64) {
        for row in self.nodes.len()..len {
            let size = lowbit(row + 1);
            let mut best = row;
            let mut step = 1;
            // The children end at row, row - 1, row - 3, … : each is the node before the last one's range.
            while step < size {
                let child = self.nodes[row - step] as usize;
                if key(child) >= key(best) {
                    best = child;
                }
                step *= 2;
            }
            self.nodes.push(u32::try_from(best).unwrap_or(u32::MAX));
        }
    }

    /// The row of `[from, to)` with the greatest key; `None` for an empty range.
    pub(super) fn best(&self, from: usize, to: usize, key: impl Fn(usize) -> i64) -> Option<usize> {
        let mut end = to.min(self.nodes.len());
        let mut best: Option<usize> = None;
        while end > from {
            let size = lowbit(end);
            let (candidate, next) = if end - size >= from {
                (self.nodes[end - 1] as usize, end - size)
            } else {
                (end - 1, end - 1)
            };
            if best.is_none_or(|b| key(candidate) >= key(b)) {
                best = Some(candidate);
            }
            end = next;
        }
        best
    }
}

fn lowbit(value: usize) -> usize {
    value & value.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(keys: &[i64], from: usize, to: usize) -> Option<usize> {
        (from..to.min(keys.len())).rev().max_by_key(|&i| keys[i])
    }

    #[test]
    fn every_range_of_every_small_size_agrees_with_a_plain_search() {
        for n in 0..40usize {
            let keys: Vec<i64> = (0..n).map(|i| ((i * 7919) % 13) as i64).collect();
            let mut forest = Forest::default();
            forest.grow(n, |i| keys[i]);
            for from in 0..=n {
                for to in from..=n {
                    assert_eq!(
                        forest.best(from, to, |i| keys[i]),
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
            mut keys in prop::collection::vec(0i64..50, 1..300),
            cut in 0usize..300,
            tail in prop::collection::vec(0i64..50, 0..100),
            a in 0usize..400,
            b in 0usize..400,
        ) {
            let mut forest = Forest::default();
            forest.grow(keys.len(), |i| keys[i]);
            let cut = cut.min(keys.len());
            keys.truncate(cut);
            keys.extend(tail);
            forest.truncate(cut);
            forest.grow(keys.len(), |i| keys[i]);
            let (from, to) = (a.min(b), a.max(b));
            prop_assert_eq!(forest.best(from, to, |i| keys[i]), plain(&keys, from, to));
        }
    }
}
