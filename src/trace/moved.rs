//! Bytes that copies of one direction have moved on a device up to any moment.
//!
//! Lanes know streams, not directions: to ask each of forty streams for each column of the screen would
//! cost more than the rest of a frame. Copies that are under way count in proportion.

use super::index::Index;
use crate::activity::{Ns, Span};

/// Copies between stored sums.
const STRIDE: usize = 16;

/// The copies of one direction on one device, from all streams, sorted by start.
#[derive(Clone, Debug, Default)]
pub(super) struct Moved {
    starts: Vec<Ns>,
    ends: Vec<Ns>,
    bytes: Vec<u64>,
    index: Index,
    /// Bytes and greatest end of the copies before every [`STRIDE`]th.
    sums: Vec<(u64, Ns)>,
    running: (u64, Ns),
}

impl Moved {
    /// Adds copies, in any order, and leaves `new` empty.
    pub(super) fn add(&mut self, new: &mut Vec<(Span, u64)>) {
        if !new.is_sorted() {
            new.sort_unstable();
        }
        if let Some(&(first, _)) = new.first() {
            let keep = self.index.before(&self.starts, first.start + 1);
            if keep < self.starts.len() {
                new.extend((keep..self.starts.len()).map(|i| (self.span(i), self.bytes[i])));
                new.sort_unstable();
                self.truncate(keep);
            }
        }
        for (span, bytes) in new.drain(..) {
            let row = self.starts.len();
            if row.is_multiple_of(STRIDE) {
                self.sums.push(self.running);
            }
            self.index.push(row, span.start);
            self.starts.push(span.start);
            self.ends.push(span.end);
            self.bytes.push(bytes);
            let end = if row == 0 {
                span.end
            } else {
                self.running.1.max(span.end)
            };
            self.running = (self.running.0 + bytes, end);
        }
    }

    fn truncate(&mut self, keep: usize) {
        let block = keep / STRIDE;
        let (mut sum, mut end) = self.sums.get(block).copied().unwrap_or(self.running);
        for row in block * STRIDE..keep {
            sum += self.bytes[row];
            end = if row == 0 {
                self.ends[row]
            } else {
                end.max(self.ends[row])
            };
        }
        self.running = (sum, end);
        self.sums.truncate(keep.div_ceil(STRIDE));
        self.starts.truncate(keep);
        self.ends.truncate(keep);
        self.bytes.truncate(keep);
        self.index.truncate(keep);
    }

    fn span(&self, row: usize) -> Span {
        Span {
            start: self.starts[row],
            end: self.ends[row],
        }
    }

    /// Bytes moved within `window`.
    pub(super) fn within(&self, window: Span) -> f64 {
        if window.is_empty() {
            return 0.0;
        }
        self.until(window.end) - self.until(window.start)
    }

    fn until(&self, time: Ns) -> f64 {
        let rows = self.index.before(&self.starts, time);
        let Some(last) = rows.checked_sub(1) else {
            return 0.0;
        };
        let block = last / STRIDE;
        let mut whole = self.sums[block].0;
        let mut part = 0.0;
        for row in block * STRIDE..rows {
            whole += self.bytes[row];
            part += self.rest(row, time);
        }
        // Copies of earlier blocks that are still under way: few, as one engine carries a direction.
        for block in (0..block).rev() {
            if self.sums[block + 1].1 <= time {
                break;
            }
            for row in block * STRIDE..(block + 1) * STRIDE {
                part += self.rest(row, time);
            }
        }
        whole as f64 - part
    }

    /// Bytes of a copy that it has still to move at `time`.
    fn rest(&self, row: usize, time: Ns) -> f64 {
        let span = self.span(row);
        if span.end <= time {
            return 0.0;
        }
        self.bytes[row] as f64 * (span.end - time) as f64 / span.len() as f64
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        self.starts.len() * (2 * size_of::<Ns>() + size_of::<u64>())
            + self.sums.len() * size_of::<(u64, Ns)>()
            + self.index.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_window_holds_the_share_of_each_copy(
            batches in prop::collection::vec(
                prop::collection::vec((0i64..400, 0i64..60, 0u64..1000), 0..50), 0..5),
            a in -5i64..480,
            b in -5i64..480,
        ) {
            let mut moved = Moved::default();
            let mut all = Vec::new();
            for batch in batches {
                let mut new: Vec<_> = batch
                    .into_iter()
                    .map(|(start, length, bytes)| (Span::new(start, start + length), bytes))
                    .collect();
                all.extend(new.iter().copied());
                moved.add(&mut new);
                prop_assert!(new.is_empty());
            }
            let window = Span::new(a.min(b), a.max(b));
            // A copy without length moves its bytes at its start.
            let expected: f64 = all
                .iter()
                .map(|&(span, bytes)| {
                    let share = if span.is_empty() {
                        f64::from(u8::from(window.contains(span.start)))
                    } else {
                        span.intersect(window).len() as f64 / span.len() as f64
                    };
                    bytes as f64 * share
                })
                .sum();
            prop_assert!((moved.within(window) - expected).abs() < 1e-6);
        }
    }
}
