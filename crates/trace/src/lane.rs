//! One lane of the timeline: append-only columns of one stream, one thread, one kind of range.
//!
//! Rows are sorted by start. Rows of a stream follow each other; rows of a thread may nest. One method handles both. A
//! prefix sum and the greatest end so far give the union of the rows that start before `t`. What lies beyond `t` of
//! that union is exactly `[t, greatest end)`. Rows stand in chunks that clones share; a late row rebuilds the chunk
//! that it falls into.

use std::ops::Range;

mod cursor;
mod edge;
mod gaps;

pub use cursor::Cursor;
pub(super) use gaps::longest;

use super::key::LaneKey;
use super::rollup::Rollup;
use super::rows::{Longest, Row, Rows, STRIDE};
use super::series::{Chunk as _, Series, Spot};
use activity::{Ns, Span};

/// One lane of the timeline.
#[derive(Clone, Debug)]
pub struct Lane {
    key: LaneKey,
    rows: Series<Rows>,
    /// Busy time of the evicted rows.
    rollup: Rollup<Ns>,
    /// Rows that start before this are evicted, though their chunk may still be there.
    since: Ns,
    /// Rows that wait for [`Lane::settle`].
    pub(super) pending: Vec<Row>,
}

impl Lane {
    pub(super) fn new(key: LaneKey) -> Self {
        Lane {
            key,
            rows: Series::default(),
            rollup: Rollup::default(),
            since: Ns::MIN,
            pending: Vec::new(),
        }
    }

    /// Which lane it is.
    pub fn key(&self) -> LaneKey {
        self.key
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The rows that lists and figures are made of: all, or those that start after the evicted span (see
    /// [`super::Trace::evict_before`]).
    pub fn kept(&self) -> Range<usize> {
        self.before(self.since)..self.len()
    }

    /// Whether this row exists and is not evicted.
    pub fn holds(&self, row: usize) -> bool {
        (self.first_row()..self.len()).contains(&row)
    }

    /// The first row that is not evicted (see [`super::Trace::evict_before`]).
    pub fn first_row(&self) -> usize {
        self.rows.kept()
    }

    /// Rows that would stay in memory if those before a time were evicted.
    pub(super) fn rows_left(&self, time: Ns) -> usize {
        let chunk = self.rows.old(time);
        self.rows.len() - self.rows.index(Spot { chunk, row: 0 })
    }

    pub(super) fn evict_before(&mut self, time: Ns) {
        self.since = time;
        let (Some(extent), Some((chunks, edge))) = (self.extent(), self.rows.evictable(time))
        else {
            return;
        };
        let busy = self.busy_until(edge, self.spot_before(edge));
        self.rollup.set(Span::new(extent.start, edge), busy);
        self.rows.forget(chunks);
    }

    /// Moves all rows in time by `to`. The rows stay in their order.
    pub(super) fn retime(&mut self, to: impl Fn(Ns) -> Ns) {
        if self.since != Ns::MIN {
            self.since = to(self.since);
        }
        self.rollup.retime(&to);
        let mut base = self.rows.base;
        if base.sums.end != Ns::MIN {
            base.sums.end = to(base.sums.end);
        }
        self.rows.map(base, |row| Row {
            span: Span::new(to(row.span.start), to(row.span.end)),
            ..row
        });
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// First start to greatest end.
    pub fn extent(&self) -> Option<Span> {
        let first = self.rows.first()?;
        let evicted = self.rollup.span();
        let start = evicted.map_or(first, |evicted| evicted.start.min(first));
        Some(Span::new(start, self.rows.total().sums.end))
    }

    /// The chunk that holds a row, and the row's index there.
    #[inline]
    fn place(&self, row: usize) -> (&Rows, usize) {
        let Some(spot) = self.rows.spot(row) else {
            panic!("row {row} of {}", self.len());
        };
        (self.rows.chunk(spot.chunk), spot.row)
    }

    /// When a row ran.
    pub fn span(&self, row: usize) -> Span {
        let (rows, row) = self.place(row);
        rows.span(row)
    }

    /// These rows, each with its chunk and its index there.
    fn places(&self, rows: Range<usize>) -> impl Iterator<Item = (usize, &Rows, usize)> {
        let mut next = self.rows.spot(rows.start).unwrap_or(Spot::START);
        rows.map(move |row| {
            let mut chunk = self.rows.chunk(next.chunk);
            if next.row == chunk.len() {
                let behind = next.chunk + 1;
                next = Spot {
                    chunk: behind,
                    row: 0,
                };
                chunk = self.rows.chunk(behind);
            }
            next.row += 1;
            (row, chunk, next.row - 1)
        })
    }

    /// These rows, each with its span.
    pub fn spans(&self, rows: Range<usize>) -> impl Iterator<Item = (usize, Span)> + '_ {
        let places = self.places(rows);
        places.map(|(row, chunk, at)| (row, chunk.span(at)))
    }

    /// These rows, each with what is stored of it.
    pub(super) fn entries(&self, rows: Range<usize>) -> impl Iterator<Item = (usize, Row)> + '_ {
        let places = self.places(rows);
        places.map(|(row, chunk, at)| (row, chunk.entry(at)))
    }

    /// A row's correlation id; 0 for none.
    pub fn correlation(&self, row: usize) -> u32 {
        let (rows, row) = self.place(row);
        rows.correlations[row]
    }

    /// A row with all that is stored of it.
    #[inline]
    pub(super) fn row(&self, row: usize) -> Row {
        let (rows, row) = self.place(row);
        rows.entry(row)
    }

    /// What a row records, as an index into the trace's table.
    #[inline]
    pub(super) fn detail(&self, row: usize) -> u32 {
        let (rows, row) = self.place(row);
        rows.details[row]
    }

    /// The rows from this one on, each with the index of what it records in the trace's table.
    pub(super) fn details_from(&self, row: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        let first = self.rows.spot(row).map(|spot| spot.chunk);
        let chunks = first.unwrap_or(self.rows.count())..self.rows.count();
        chunks.flat_map(move |chunk| {
            let base = self.rows.index(Spot { chunk, row: 0 });
            let from = row.max(base);
            let details = &self.rows.chunk(chunk).details[from - base..];
            // `copied` is no inline function: without link-time optimisation each row would cost a call.
            let numbered = details.iter().enumerate();
            numbered.map(move |(at, &detail)| (from + at, detail))
        })
    }

    /// Reads ahead what these rows record.
    fn warm(&self, rows: impl Iterator<Item = usize>) {
        let seen = rows.fold(0, |seen, row| seen ^ self.detail(row));
        std::hint::black_box(seen);
    }

    pub(super) fn queue(&mut self, row: Row) {
        self.pending.push(row);
    }

    /// Takes in the queued rows. Returns how many came late: before a row that was there.
    pub(super) fn settle(&mut self) -> usize {
        let mut pending = std::mem::take(&mut self.pending);
        if !pending.is_sorted_by_key(Rows::key) {
            pending.sort_by_key(Rows::key);
        }
        let last = self.rows.last().map(|chunk| chunk.entry(chunk.len() - 1));
        let late = last.map_or(0, |last| {
            pending.partition_point(|row| row.span.start < last.span.start)
        });
        self.rows.merge(&pending);
        pending.clear();
        self.pending = pending;
        late
    }

    /// How many rows start before `time`.
    pub(super) fn before(&self, time: Ns) -> usize {
        // Of thousands of lanes most have nothing near: each is asked about each step.
        match self.rows.last() {
            Some(last) if last.start(last.len() - 1) < time => self.len(),
            _ => self.rows.index(self.spot_before(time)),
        }
    }

    /// The end of the rows that start before `time`.
    pub(super) fn spot_before(&self, time: Ns) -> Spot {
        self.rows.begun(time).map_or(Spot::START, |chunk| Spot {
            chunk,
            row: self.rows.chunk(chunk).before(time),
        })
    }

    /// The rows that start within `window`.
    pub fn starting(&self, window: Span) -> Range<usize> {
        let from = self.before(window.start.max(self.since));
        from..self.before(window.end).max(from)
    }

    /// The rows that start within a window, or all that are kept.
    pub fn rows_in(&self, window: Option<Span>) -> Range<usize> {
        window.map_or(self.kept(), |it| self.starting(it))
    }

    /// First start to greatest end of these rows; `None` without any.
    pub fn hull(&self, rows: Range<usize>) -> Option<Span> {
        let last = self.rows.spot(rows.end.checked_sub(1)?)?;
        let first = self.rows.spot(rows.start).filter(|_| !rows.is_empty())?;
        let behind = Spot {
            row: last.row + 1,
            ..last
        };
        let (before, end) = (self.end_before(first), self.end_before(behind));
        let start = self.span(rows.start).start;
        // A row before them may end last: then the search has to look at the rows themselves.
        let end = match end > before {
            true => end,
            false => rows.map(|row| self.span(row).end).max()?,
        };
        Some(Span::new(start, end))
    }

    /// Greatest end of the rows before a spot.
    fn end_before(&self, spot: Spot) -> Ns {
        let before = self.rows.head(spot.chunk).sums.end;
        match spot.row {
            0 => before,
            row => before.max(self.rows.chunk(spot.chunk).sums_before(row).end),
        }
    }

    /// Time within `window` during which at least one row ran.
    pub fn busy(&self, window: Span) -> Ns {
        self.cursor().busy(window)
    }

    /// Time before `time` during which a row ran. The rows that start before `time` end at `spot`.
    pub(super) fn busy_until(&self, time: Ns, spot: Spot) -> Ns {
        if let Some(busy) = self.rollup.until(time) {
            return busy;
        }
        let head = self.rows.head(spot.chunk);
        // Rows before the chunk cover everything from its first start to their greatest end.
        if time <= head.sums.end {
            return head.sums.busy - (head.sums.end - time);
        }
        if spot.row == 0 {
            return head.sums.busy;
        }
        let own = self.rows.chunk(spot.chunk).busy_until(time, spot.row);
        head.sums.busy + own - head.hidden
    }

    /// The rows that share time with `window`, or lie in it as instants. Where rows nest, some between the first and
    /// the last of them may end before the window begins.
    pub fn rows(&self, window: Span) -> Range<usize> {
        self.cursor().rows(window)
    }

    /// The first row that ends after `time`, or the first that starts at or after it. The rows that start before `time`
    /// end at `first`.
    pub(super) fn first_touching(&self, first: Spot, time: Ns) -> usize {
        let end = self.rows.index(first);
        if end == self.rows.kept() {
            return end;
        }
        // The greatest end so far never falls. So the first row that ends after the time lies in the last block before
        // which everything has ended. Mostly that is the block of the time itself.
        let near = first.row.saturating_sub(1) / STRIDE;
        let head = self.rows.head(first.chunk).sums.end;
        let rows = self.rows.chunk(first.chunk);
        let (chunk, block) = if head.max(rows.sums_at(near).end) <= time {
            (first.chunk, near)
        } else {
            let heads = &self.rows.heads[..=first.chunk];
            let ended = heads.partition_point(|h| h.sums.end <= time);
            let chunk = ended.saturating_sub(1);
            (chunk, self.rows.chunk(chunk).ended(time))
        };
        let mut from = block * STRIDE;
        for chunk in chunk..=first.chunk {
            let rows = self.rows.chunk(chunk);
            let to = if chunk == first.chunk {
                first.row
            } else {
                rows.len()
            };
            if let Some(row) = (from..to).find(|&row| rows.span(row).end > time) {
                return self.rows.index(Spot { chunk, row });
            }
            from = 0;
        }
        end
    }

    /// The longest of the rows between two spots, the first of equals, and its length. It skips blocks that cannot hold
    /// a longer one.
    pub(super) fn longest_of(&self, from: Spot, to: Spot) -> Option<Longest> {
        let whole = |spot: Spot, longest: Longest| Longest {
            row: self.rows.index(Spot { row: 0, ..spot }) + longest.row,
            ..longest
        };
        if from.chunk == to.chunk {
            if from.row >= to.row {
                return None;
            }
            let best = self.rows.chunk(from.chunk).longest(from.row, to.row, -1)?;
            return Some(whole(from, best));
        }
        let (mut best, mut most) = (None, -1);
        let mut take = |spot: Spot, from: usize, to: usize| {
            let head = self.rows.head(spot.chunk);
            let at = head.longest_at as usize;
            let found = match (from..to).contains(&at) {
                true => Some(Longest {
                    length: head.longest,
                    row: at,
                })
                .filter(|longest| longest.length > most),
                false if head.longest <= most => None,
                false => self.rows.chunk(spot.chunk).longest(from, to, most),
            };
            if let Some(found) = found {
                most = found.length;
                best = Some(whole(spot, found));
            }
        };
        take(from, from.row, self.rows.chunk(from.chunk).len());
        for chunk in from.chunk + 1..to.chunk {
            take(Spot { chunk, row: 0 }, 0, usize::MAX);
        }
        take(to, 0, to.row);
        best
    }

    /// The innermost row that runs at `time`.
    pub fn at(&self, time: Ns) -> Option<usize> {
        let to = self.before(time.saturating_add(1));
        let from = self.rows(Span::at(time)).start;
        (from..to).rev().find(|&i| self.span(i).end > time)
    }

    /// The first row that starts at or after `time`.
    pub fn next(&self, time: Ns) -> Option<usize> {
        let row = self.before(time);
        (row < self.len()).then_some(row)
    }

    /// The last row that starts before `time`.
    pub fn previous(&self, time: Ns) -> Option<usize> {
        let rows = self.before(time);
        (rows > self.rows.kept()).then(|| rows - 1)
    }

    /// The first row with this correlation id.
    pub fn find_correlation(&self, correlation: u32) -> Option<usize> {
        if correlation == 0 {
            return None;
        }
        let mut chunks = 0..self.rows.count();
        if self.rows.total().ascends {
            // Only the last chunk before which all ids are smaller can hold the first such row.
            let heads = &self.rows.heads[chunks.clone()];
            let behind = heads.partition_point(|h| h.correlation < correlation);
            chunks = behind.saturating_sub(1)..behind;
        }
        chunks.into_iter().find_map(|chunk| {
            let row = self.rows.chunk(chunk).find_correlation(correlation)?;
            Some(self.rows.index(Spot { chunk, row }))
        })
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.rows.chunks().map(Rows::memory).sum::<usize>() + self.rows.overhead()
    }
}

#[cfg(test)]
mod tests;
