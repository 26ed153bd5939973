//! Finds times in a sorted column: a tree over every sixteenth of its entries.
//!
//! A plain binary search over a long column misses the cache at nearly every step. Here each level is a
//! short scan of sixteen neighbours, two cache lines, and all levels together are a fifteenth of the
//! column. A frame of the screen asks tens of thousands of such questions.

use activity::Ns;

/// Entries of a node.
pub(super) const FAN: usize = 16;

/// The tree over a sorted column, which its functions take as `column`.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// `levels[0]` holds every [`FAN`]th entry of the column, `levels[k + 1]` every one of `levels[k]`. The last level
    /// holds at most [`FAN`] entries.
    levels: Vec<Vec<Ns>>,
}

impl Index {
    /// Takes note of the entry that becomes number `row` of the column.
    pub(super) fn push(&mut self, row: usize, time: Ns) {
        if !row.is_multiple_of(FAN) {
            return;
        }
        for level in 0.. {
            if self.levels.len() == level {
                // The level below has just begun its second node.
                let first = level.checked_sub(1).map(|below| self.levels[below][0]);
                self.levels.push(first.into_iter().collect());
            }
            let entry = self.levels[level].len();
            self.levels[level].push(time);
            if entry == 0 || !entry.is_multiple_of(FAN) {
                return;
            }
        }
    }

    /// Drops the entries from `len` on.
    pub(super) fn truncate(&mut self, len: usize) {
        let mut len = len;
        let mut levels = 0;
        for level in &mut self.levels {
            let is_needed = levels == 0 || len > FAN;
            if !is_needed {
                break;
            }
            len = len.div_ceil(FAN);
            level.truncate(len);
            levels += 1;
        }
        self.levels.truncate(levels);
    }

    /// How many entries of the column are less than `time`.
    pub(super) fn before(&self, column: &[Ns], time: Ns) -> usize {
        let levels = self.levels.iter().rev().map(Vec::as_slice);
        let mut node = 0;
        for level in levels.chain([column]) {
            let from = node * FAN;
            let to = level.len().min(from + FAN);
            // Branches would be wrong every other time; counting has none.
            let below: usize = level[from..to].iter().map(|&t| usize::from(t < time)).sum();
            if below == 0 {
                // Only at the top: below it, a node's first entry has been compared already.
                return 0;
            }
            node = from + below - 1;
        }
        node + 1
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

    fn index(column: &[Ns]) -> Index {
        let mut index = Index::default();
        for (row, &time) in column.iter().enumerate() {
            index.push(row, time);
        }
        index
    }

    #[test]
    fn every_position_of_columns_around_each_size_of_the_tree() {
        for n in (0..40).chain(250..260).chain(270..275).chain(4090..4120) {
            let column: Vec<Ns> = (0..n).map(|i| i * 2).collect();
            let index = index(&column);
            for time in -1..=2 * n {
                let expected = column.partition_point(|&t| t < time);
                assert_eq!(index.before(&column, time), expected, "{n} {time}");
            }
        }
    }

    proptest! {
        #[test]
        fn equal_times_and_cut_columns_agree_with_a_plain_search(
            mut column in prop::collection::vec(0i64..60, 0..700),
            cut in 0usize..700,
            tail in prop::collection::vec(60i64..90, 0..300),
            time in -1i64..95,
        ) {
            column.sort_unstable();
            let mut index = index(&column);
            let cut = cut.min(column.len());
            column.truncate(cut);
            index.truncate(cut);
            let mut tail = tail;
            tail.sort_unstable();
            for time in tail {
                index.push(column.len(), time);
                column.push(time);
            }
            prop_assert_eq!(index.before(&column, time), column.partition_point(|&t| t < time));
        }
    }
}
