//! Bytes that copies of one direction have moved on a device up to any moment.
//!
//! Lanes know streams, not directions. To ask each of forty streams for each column of the screen would cost more than
//! the rest of a frame. Copies that are under way count in proportion.

use super::rollup::Rollup;
use super::series::{Chunk, Series, Spot, before};
use activity::{Ns, Span};

/// Copies between stored sums.
const STRIDE: usize = 16;

/// Bytes and greatest end of some copies.
#[derive(Clone, Copy, Debug)]
struct CopiedSum {
    bytes: u64,
    end: Ns,
}

impl Default for CopiedSum {
    fn default() -> Self {
        CopiedSum {
            bytes: 0,
            end: Ns::MIN,
        }
    }
}

impl CopiedSum {
    fn plus(self, other: CopiedSum) -> CopiedSum {
        CopiedSum {
            bytes: self.bytes + other.bytes,
            end: self.end.max(other.end),
        }
    }
}

/// Some copies.
#[derive(Clone, Debug, Default)]
struct Copies {
    starts: Vec<Ns>,
    ends: Vec<Ns>,
    bytes: Vec<u64>,
    /// Every [`STRIDE`]th start.
    begins: Vec<Ns>,
    /// Sums of this chunk's copies before every [`STRIDE`]th.
    sums: Vec<CopiedSum>,
    running: CopiedSum,
}

impl Chunk for Copies {
    type Entry = (Span, u64);
    type Key = Ns;
    type Head = CopiedSum;

    fn key((span, _): &(Span, u64)) -> Ns {
        span.start
    }

    fn push(&mut self, (span, bytes): (Span, u64)) {
        let row = self.starts.len();
        if row.is_multiple_of(STRIDE) {
            self.sums.push(self.running);
            self.begins.push(span.start);
        }
        self.starts.push(span.start);
        self.ends.push(span.end);
        self.bytes.push(bytes);
        let end = span.end;
        self.running = self.running.plus(CopiedSum { bytes, end });
    }

    fn entry(&self, row: usize) -> (Span, u64) {
        let span = Span {
            start: self.starts[row],
            end: self.ends[row],
        };
        (span, self.bytes[row])
    }

    fn len(&self) -> usize {
        self.starts.len()
    }

    fn first(&self) -> Ns {
        self.starts[0]
    }

    fn leave(&self, head: CopiedSum) -> CopiedSum {
        head.plus(self.running)
    }
}

impl Copies {
    /// Copies that start before `time`.
    fn before(&self, time: Ns) -> usize {
        before(&self.begins, &self.starts, STRIDE, time)
    }

    /// Bytes of the first `rows` copies, and how many of them remain at `time`.
    fn until(&self, time: Ns, rows: usize) -> (u64, f64) {
        let mut part = 0.0;
        let block = rows.saturating_sub(1) / STRIDE;
        let mut whole = self.sums[block].bytes;
        for row in block * STRIDE..rows {
            whole += self.bytes[row];
            part += self.remaining(row, time);
        }
        // Copies of earlier blocks that are still under way: few, as one engine carries a direction.
        for block in (0..block).rev() {
            if self.sums[block + 1].end <= time {
                break;
            }
            for row in block * STRIDE..(block + 1) * STRIDE {
                part += self.remaining(row, time);
            }
        }
        (whole, part)
    }

    /// Bytes of a copy that remain at `time`.
    fn remaining(&self, row: usize, time: Ns) -> f64 {
        remaining(self.entry(row), time)
    }
}

/// Bytes of a copy that remain at `time`.
fn remaining((span, bytes): (Span, u64), time: Ns) -> f64 {
    if span.end <= time {
        return 0.0;
    }
    bytes as f64 * (span.end - time) as f64 / span.len() as f64
}

/// The copies of one direction on one device, from all streams, sorted by start.
#[derive(Clone, Debug, Default)]
pub(super) struct CopiedBytes {
    copies: Series<Copies>,
    /// Sums of the evicted copies.
    rollup: Rollup<f64>,
    /// Evicted copies that end behind it.
    open: Vec<(Span, u64)>,
}

impl CopiedBytes {
    /// Adds copies, in any order, and leaves `new` empty.
    pub(super) fn add(&mut self, new: &mut Vec<(Span, u64)>) {
        if !new.is_sorted() {
            new.sort_unstable();
        }
        self.copies.merge(new);
        new.clear();
    }

    pub(super) fn evict_before(&mut self, time: Ns) {
        let (Some(first), Some((chunks, edge))) =
            (self.copies.first(), self.copies.evictable(time))
        else {
            return;
        };
        let start = self.rollup.span().map_or(first, |evicted| evicted.start);
        self.rollup.set(Span::new(start, edge), self.until(edge));
        self.open.retain(|(span, _)| span.end > edge);
        for chunk in 0..chunks {
            let copies = self.copies.chunk(chunk);
            let all = (0..copies.len()).map(|row| copies.entry(row));
            self.open.extend(all.filter(|(span, _)| span.end > edge));
        }
        self.copies.forget(chunks);
    }

    /// Moves all copies in time by `to`.
    pub(super) fn retime(&mut self, to: impl Fn(Ns) -> Ns) {
        self.rollup.retime(&to);
        let span = |span: Span| Span::new(to(span.start), to(span.end));
        for copy in &mut self.open {
            copy.0 = span(copy.0);
        }
        let mut base = self.copies.base;
        if base.end != Ns::MIN {
            base.end = to(base.end);
        }
        self.copies.map(base, |(at, bytes)| (span(at), bytes));
    }

    /// Drops the single copies to make room for new ones. The sums of evicted copies stay, moved in time by `to`.
    pub(super) fn empty(&mut self, to: impl Fn(Ns) -> Ns) {
        self.copies.remake(self.copies.base, &[]);
        self.retime(to);
    }

    /// Bytes moved within `window`.
    pub(super) fn within(&self, window: Span) -> f64 {
        if window.is_empty() {
            return 0.0;
        }
        self.until(window.end) - self.until(window.start)
    }

    /// Bytes moved between each of these moments, which ascend, and the next.
    pub(super) fn within_each(&self, edges: &[Ns]) -> Vec<f64> {
        // It finds all before it adds any up, so that several reads of memory are under way at once.
        let begun = self.copies.begun_each(edges).zip(edges);
        let spots = begun.map(|(chunk, &time)| Some(self.spot(chunk?, time)));
        let spots: Vec<Option<Spot>> = spots.collect();
        let until = edges.iter().zip(spots);
        let until = until.map(|(&time, spot)| self.until_spot(time, spot));
        let until: Vec<f64> = until.collect();
        until.windows(2).map(|two| two[1] - two[0]).collect()
    }

    /// The end of the copies of a chunk that start before `time`.
    fn spot(&self, chunk: usize, time: Ns) -> Spot {
        let copies = self.copies.chunk(chunk);
        Spot {
            chunk,
            row: copies.before(time),
        }
    }

    pub(super) fn until(&self, time: Ns) -> f64 {
        let spot = self.copies.begun(time).map(|chunk| self.spot(chunk, time));
        self.until_spot(time, spot)
    }

    /// [`CopiedBytes::until`] for a known `spot`: the end of the copies that start before `time`.
    fn until_spot(&self, time: Ns, spot: Option<Spot>) -> f64 {
        if let Some(bytes) = self.rollup.until(time) {
            return bytes;
        }
        let open: f64 = self.open.iter().map(|&copy| remaining(copy, time)).sum();
        let Some(Spot { chunk, row: rows }) = spot else {
            return self.copies.base.bytes as f64 - open;
        };
        let copies = self.copies.chunk(chunk);
        let (whole, mut part) = copies.until(time, rows);
        for earlier in (0..chunk).rev() {
            if self.copies.head(earlier + 1).end <= time {
                break;
            }
            let copies = self.copies.chunk(earlier);
            part += copies.until(time, copies.len()).1;
        }
        (self.copies.head(chunk).bytes + whole) as f64 - part - open
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        let of_chunk = |c: &Copies| {
            c.starts.len() * (2 * size_of::<Ns>() + size_of::<u64>())
                + c.sums.len() * (size_of::<CopiedSum>() + size_of::<Ns>())
        };
        self.copies.chunks().map(of_chunk).sum::<usize>() + self.copies.overhead()
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
            let mut moved = CopiedBytes::default();
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
            let edges = [window.start, window.start, window.end];
            let each = moved.within_each(&edges);
            prop_assert!(each[0] == 0.0 && (each[1] - expected).abs() < 1e-6);
        }
    }
}
