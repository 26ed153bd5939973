//! One row of the timeline: append-only columns of one stream, one thread, one kind of range.
//!
//! Rows are sorted by start. Rows of a stream follow each other; rows of a thread may nest; both are
//! handled alike: the union of the rows that start before `t` is known from a prefix sum and the
//! greatest end so far, and what lies beyond `t` of that union is exactly `[t, greatest end)`.
//! Records that come late are merged where they belong; the columns behind that place are rebuilt.

use std::cmp::Reverse;
use std::ops::Range;

use super::cursor::Cursor;
use super::index::Index;
use super::key::LaneKey;
use super::maxima::Maxima;
use crate::activity::{Ns, Span};

/// Rows between stored sums: 16 bytes over 16 rows are a byte a row, and a query walks at most 16 rows
/// at either end, which lie in two cache lines of each column.
pub(super) const STRIDE: usize = 16;

/// One row as it is stored. `detail` indexes the trace's table of distinct things that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) span: Span,
    pub(super) correlation: u32,
    pub(super) detail: u32,
}

#[derive(Clone, Copy, Debug)]
struct Sums {
    /// Union of the rows before this one.
    busy: Ns,
    /// Greatest end of the rows before this one.
    end: Ns,
}

/// One row of the timeline.
#[derive(Clone, Debug)]
pub struct Lane {
    key: LaneKey,
    starts: Vec<Ns>,
    ends: Vec<Ns>,
    correlations: Vec<u32>,
    details: Vec<u32>,
    sums: Vec<Sums>,
    /// Finds starts.
    index: Index,
    /// Finds the longest row of a range.
    maxima: Maxima,
    /// The sums after the last row.
    running: Sums,
    /// Whether a correlation id can be found by halving.
    correlations_ascend: bool,
    /// Rows that wait for [`Lane::settle`].
    pending: Vec<Row>,
}

impl Lane {
    pub(super) fn new(key: LaneKey) -> Self {
        Lane {
            key,
            starts: Vec::new(),
            ends: Vec::new(),
            correlations: Vec::new(),
            details: Vec::new(),
            sums: Vec::new(),
            index: Index::default(),
            maxima: Maxima::default(),
            running: Sums {
                busy: 0,
                end: Ns::MIN,
            },
            correlations_ascend: true,
            pending: Vec::new(),
        }
    }

    /// Which lane it is.
    #[must_use]
    pub fn key(&self) -> LaneKey {
        self.key
    }

    /// Rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether it has no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// First start to greatest end.
    #[must_use]
    pub fn extent(&self) -> Option<Span> {
        Some(Span::new(*self.starts.first()?, self.running.end))
    }

    /// When a row ran.
    #[must_use]
    pub fn span(&self, row: usize) -> Span {
        Span {
            start: self.starts[row],
            end: self.ends[row],
        }
    }

    /// A row's correlation id; 0 for none.
    #[must_use]
    pub fn correlation(&self, row: usize) -> u32 {
        self.correlations[row]
    }

    pub(super) fn detail(&self, row: usize) -> usize {
        self.details[row] as usize
    }

    pub(super) fn queue(&mut self, row: Row) {
        self.pending.push(row);
    }

    pub(super) fn has_queued(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Takes in what was queued. Returns how many of them came late: before a row that was there.
    pub(super) fn settle(&mut self) -> usize {
        let mut pending = std::mem::take(&mut self.pending);
        // Of two rows with one start the longer goes first: the other nests in it.
        let order = |row: &Row| (row.span.start, Reverse(row.span.end));
        if !pending.is_sorted_by_key(order) {
            pending.sort_by_key(order);
        }
        let Some(first) = pending.first() else {
            return 0;
        };
        let same_start = self.before(first.span.start);
        let keep = (same_start..self.len())
            .find(|&i| (self.starts[i], Reverse(self.ends[i])) > order(first))
            .unwrap_or(self.len());
        let late = match self.starts.last() {
            Some(&last) => pending.partition_point(|row| row.span.start < last),
            None => 0,
        };
        if keep < self.len() {
            pending.extend((keep..self.len()).map(|i| Row {
                span: self.span(i),
                correlation: self.correlations[i],
                detail: self.details[i],
            }));
            pending.sort_by_key(order);
            self.truncate(keep);
        }
        for row in &pending {
            self.push(row);
        }
        pending.clear();
        self.pending = pending;
        late
    }

    fn push(&mut self, row: &Row) {
        if self.len().is_multiple_of(STRIDE) {
            self.sums.push(self.running);
        }
        if self
            .correlations
            .last()
            .is_some_and(|&c| c > row.correlation)
        {
            self.correlations_ascend = false;
        }
        self.index.push(self.len(), row.span.start);
        self.starts.push(row.span.start);
        self.ends.push(row.span.end);
        self.correlations.push(row.correlation);
        self.details.push(row.detail);
        self.running.take(row.span);
        let (starts, ends) = (&self.starts, &self.ends);
        self.maxima.grow(starts.len(), |i| ends[i] - starts[i]);
    }

    fn truncate(&mut self, keep: usize) {
        let block = keep / STRIDE;
        let mut running = self.sums.get(block).copied().unwrap_or(self.running);
        for row in block * STRIDE..keep {
            running.take(self.span(row));
        }
        self.running = running;
        self.sums.truncate(keep.div_ceil(STRIDE));
        self.starts.truncate(keep);
        self.ends.truncate(keep);
        self.correlations.truncate(keep);
        self.details.truncate(keep);
        self.index.truncate(keep);
        self.maxima.truncate(keep);
    }

    /// The rows that start before `time`.
    pub(super) fn before(&self, time: Ns) -> usize {
        self.index.before(&self.starts, time)
    }

    /// The rows that start within `window`.
    #[must_use]
    pub fn starting(&self, window: Span) -> Range<usize> {
        let from = self.before(window.start);
        from..self.before(window.end).max(from)
    }

    /// Greatest end of the rows before `row`.
    fn end_before(&self, row: usize) -> Ns {
        let block = (row / STRIDE).min(self.sums.len().saturating_sub(1));
        let stored = self.sums.get(block).map_or(Ns::MIN, |s| s.end);
        self.ends[(block * STRIDE).min(row)..row]
            .iter()
            .fold(stored, |end, &e| end.max(e))
    }

    /// A reader for many questions about neighbouring windows.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(self)
    }

    /// A reader that will be asked about windows between these edges, which must ascend: all of them are
    /// looked for at once, which on a long lane is several times as fast as one by one.
    #[must_use]
    pub fn cursor_over(&self, edges: &[Ns]) -> Cursor<'_> {
        Cursor::over(self, edges)
    }

    /// How many rows start before each of these times; what is next to them is read ahead.
    pub(super) fn before_each(&self, times: &[Ns]) -> Vec<usize> {
        let rows = self.index.before_each(&self.starts, times);
        self.maxima.warm(&rows);
        rows
    }

    /// Time within `window` during which at least one row ran.
    #[must_use]
    pub fn busy(&self, window: Span) -> Ns {
        self.cursor().busy(window)
    }

    /// Time before `time` during which a row ran, when `rows` rows start before it.
    pub(super) fn busy_until(&self, time: Ns, rows: usize) -> Ns {
        let Some(last) = rows.checked_sub(1) else {
            return 0;
        };
        let block = last / STRIDE;
        let mut sums = self.sums[block];
        for row in block * STRIDE..rows {
            sums.take(self.span(row));
        }
        sums.busy - (sums.end - time).max(0)
    }

    /// The rows that share time with `window`, or lie in it as instants. Where rows nest, rows between
    /// the first and the last of them may end before it begins.
    #[must_use]
    pub fn rows(&self, window: Span) -> Range<usize> {
        self.cursor().rows(window)
    }

    /// The first of the rows before `to` that ends after `time` or starts at or after it, when `first`
    /// rows start before it; `to` when there is none.
    pub(super) fn first_touching(&self, first: usize, to: usize, time: Ns) -> usize {
        // The greatest end so far never falls, so the first row that ends after the time lies in the
        // last block before which everything has ended: mostly that of the time itself.
        let near = first.saturating_sub(1) / STRIDE;
        let block = if self.sums.get(near).is_none_or(|s| s.end <= time) {
            near
        } else {
            let ended = self.sums.partition_point(|s| s.end <= time);
            ended.saturating_sub(1)
        };
        (block * STRIDE..to)
            .find(|&i| self.ends[i] > time || self.starts[i] >= time)
            .unwrap_or(to)
    }

    /// The row that names a cell: the longest of those that start in `window`, or the one that runs
    /// into it.
    #[must_use]
    pub fn longest(&self, window: Span) -> Option<usize> {
        self.cursor().longest(window)
    }

    /// The longest of the rows `[from, to)`.
    pub(super) fn longest_of(&self, from: usize, to: usize) -> Option<usize> {
        let (starts, ends) = (&self.starts, &self.ends);
        self.maxima.best(from, to, |i| ends[i] - starts[i])
    }

    /// The innermost row that runs at `time`.
    #[must_use]
    pub fn at(&self, time: Ns) -> Option<usize> {
        let to = self.before(time.saturating_add(1));
        let from = self.rows(Span::at(time)).start;
        (from..to).rev().find(|&i| self.ends[i] > time)
    }

    /// The first row that starts at or after `time`.
    #[must_use]
    pub fn next(&self, time: Ns) -> Option<usize> {
        let row = self.before(time);
        (row < self.len()).then_some(row)
    }

    /// The last row that starts before `time`.
    #[must_use]
    pub fn previous(&self, time: Ns) -> Option<usize> {
        self.before(time).checked_sub(1)
    }

    /// The gap that holds `time`: between the greatest end before and the next start.
    #[must_use]
    pub fn gap_at(&self, time: Ns) -> Option<Span> {
        let next = self.before(time.saturating_add(1));
        if next == 0 || next == self.len() {
            return None;
        }
        let gap = Span::new(self.end_before(next), self.starts[next]);
        gap.contains(time).then_some(gap)
    }

    /// The first gap of at least `min` ns that starts at or after `time`.
    #[must_use]
    pub fn next_gap(&self, time: Ns, min: Ns) -> Option<Span> {
        let mut row = self.before(time);
        let mut end = self.end_before(row);
        while row < self.len() {
            let gap = Span::new(end, self.starts[row]);
            if end >= time && end != Ns::MIN && gap.len() >= min.max(1) {
                return Some(gap);
            }
            end = end.max(self.ends[row]);
            row += 1;
        }
        None
    }

    /// The last gap of at least `min` ns that starts before `time`.
    #[must_use]
    pub fn previous_gap(&self, time: Ns, min: Ns) -> Option<Span> {
        let mut row = self.before(time.saturating_add(1));
        row = row.min(self.len().saturating_sub(1));
        while row > 0 {
            let gap = Span::new(self.end_before(row), self.starts[row]);
            if gap.start < time && gap.len() >= min.max(1) {
                return Some(gap);
            }
            row -= 1;
        }
        None
    }

    /// The first row with this correlation id.
    #[must_use]
    pub fn find_correlation(&self, correlation: u32) -> Option<usize> {
        if correlation == 0 {
            return None;
        }
        if self.correlations_ascend {
            let row = self.correlations.partition_point(|&c| c < correlation);
            return (self.correlations.get(row) == Some(&correlation)).then_some(row);
        }
        self.correlations.iter().position(|&c| c == correlation)
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.len() * (2 * size_of::<Ns>() + 2 * size_of::<u32>())
            + self.sums.len() * size_of::<Sums>()
            + self.index.memory()
            + self.maxima.memory()
    }
}

impl Sums {
    fn take(&mut self, span: Span) {
        let from = span.start.max(self.end);
        self.busy += (span.end - from).max(0);
        self.end = self.end.max(span.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::LaneKind;
    use proptest::prelude::*;

    fn lane(batches: &[Vec<Span>]) -> (Lane, usize) {
        let key = LaneKey {
            process: 0,
            kind: LaneKind::Overhead,
        };
        let mut lane = Lane::new(key);
        let mut late = 0;
        for batch in batches {
            for &span in batch {
                lane.queue(Row {
                    span,
                    correlation: 1,
                    detail: 0,
                });
            }
            late += lane.settle();
        }
        (lane, late)
    }

    fn batches() -> impl Strategy<Value = Vec<Vec<Span>>> {
        let span = (0i64..300, 0i64..25).prop_map(|(start, len)| Span::new(start, start + len));
        prop::collection::vec(prop::collection::vec(span, 0..80), 0..4)
    }

    proptest! {
        #[test]
        fn windows_agree_with_counting(batches in batches(), a in -5i64..330, b in -5i64..330) {
            let (lane, _) = lane(&batches);
            let mut all: Vec<Span> = batches.concat();
            all.sort_by_key(|s| (s.start, Reverse(s.end)));
            let kept: Vec<Span> = (0..lane.len()).map(|i| lane.span(i)).collect();
            prop_assert_eq!(&kept, &all);

            let window = Span::new(a.min(b), a.max(b));
            let busy = (window.start..window.end).filter(|&t| all.iter().any(|s| s.contains(t))).count();
            prop_assert_eq!(lane.busy(window), busy as Ns);

            let rows = lane.rows(window);
            for (i, span) in all.iter().enumerate() {
                if span.overlaps(window) {
                    prop_assert!(rows.contains(&i), "row {i} {span:?} of {window:?} not in {rows:?}");
                }
            }
            if let Some(first) = all.get(rows.start).filter(|_| !rows.is_empty()) {
                prop_assert!(first.end > window.start || first.start >= window.start);
            }
            // A cursor that goes over all cells says the same as each question by itself.
            let edges: Vec<Ns> = (-5..330).step_by(7).collect();
            let mut cursor = if a < b { lane.cursor() } else { lane.cursor_over(&edges) };
            for start in (-5..330).step_by(7) {
                let cell = Span::new(start, start + 7);
                prop_assert_eq!(cursor.longest(cell), lane.longest(cell));
                prop_assert_eq!(cursor.busy(cell), lane.busy(cell));
                let cut = Span::new(start + 3, start + 7);
                prop_assert_eq!(cursor.rows(cut), lane.rows(cut));
            }
            let at = all.iter().rposition(|s| s.contains(a));
            prop_assert_eq!(lane.at(a), at);

            // Gaps, from the union.
            let free = |t: Ns| !all.iter().any(|s| s.contains(t));
            let gap = lane.gap_at(a);
            if let Some(gap) = gap {
                prop_assert!((gap.start..gap.end).all(free) && all.iter().any(|s| s.end == gap.start));
                prop_assert_eq!(lane.next_gap(gap.start, gap.len()), Some(gap));
                prop_assert_eq!(lane.previous_gap(gap.start + 1, gap.len()), Some(gap));
            } else {
                let inside = all.iter().any(|s| s.end <= a) && all.iter().any(|s| s.start > a);
                prop_assert!(!free(a) || !inside);
            }
        }
    }

    #[test]
    fn late_rows_are_merged_and_counted() {
        let (lane, late) = lane(&[
            vec![Span::new(0, 10), Span::new(20, 30)],
            vec![Span::new(12, 15), Span::new(40, 50)],
        ]);
        assert_eq!(late, 1);
        let starts: Vec<Ns> = (0..4).map(|i| lane.span(i).start).collect();
        assert_eq!(starts, [0, 12, 20, 40]);
        assert_eq!(lane.longest(Span::new(11, 19)), Some(1));
        assert_eq!(lane.longest(Span::new(5, 19)), Some(0));
        assert_eq!(lane.longest(Span::new(31, 39)), None);
    }
}
