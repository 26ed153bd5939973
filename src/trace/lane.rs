//! One row of the timeline: append-only columns of one stream, one thread, one kind of range.
//!
//! Rows are sorted by start. Rows of a stream follow each other; rows of a thread may nest; both are
//! handled alike: the union of the rows that start before `t` is known from a prefix sum and the
//! greatest end so far, and what lies beyond `t` of that union is exactly `[t, greatest end)`.
//! Rows stand in chunks that clones share; one that comes late rebuilds the chunk that it falls into.

use std::ops::Range;

mod cursor;

pub use cursor::Cursor;

use super::key::LaneKey;
use super::past::Past;
use super::rows::{Longest, Row, Rows, STRIDE, Sums};
use super::series::{CAPACITY, Chunk, Series, Spot};
use crate::activity::{Ns, Span};

/// One row of the timeline.
#[derive(Clone, Debug)]
pub struct Lane {
    key: LaneKey,
    rows: Series<Rows>,
    /// Busy time of what was forgotten.
    past: Past<Ns>,
    /// Rows that start before this were forgotten, though their chunk may still be there.
    since: Ns,
    /// Rows that wait for [`Lane::settle`].
    pending: Vec<Row>,
}

impl Lane {
    pub(super) fn new(key: LaneKey) -> Self {
        Lane {
            key,
            rows: Series::default(),
            past: Past::default(),
            since: Ns::MIN,
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
        self.rows.len()
    }

    /// The rows that lists and figures are made of: all, or those that start after what was forgotten
    /// (see [`super::Trace::forget_before`]).
    #[must_use]
    pub fn kept(&self) -> Range<usize> {
        self.before(self.since)..self.len()
    }

    /// Whether there is such a row, to be asked for.
    #[must_use]
    pub fn holds(&self, row: usize) -> bool {
        (self.first_row()..self.len()).contains(&row)
    }

    /// The first row that can be asked for; those before it were forgotten (see [`super::Trace::forget_before`]).
    #[must_use]
    pub fn first_row(&self) -> usize {
        self.rows.kept()
    }

    pub(super) fn forget_before(&mut self, time: Ns, step: Ns) {
        self.since = time;
        let chunks = self.rows.old(time);
        let (Some(extent), Some(edge)) = (self.extent(), self.rows.first_of(chunks)) else {
            return;
        };
        if chunks == 0 {
            return;
        }
        let mut past = std::mem::take(&mut self.past);
        past.extend(extent.start, edge, step, |time| {
            self.busy_until(time, self.spot_before(time))
        });
        self.past = past;
        self.rows.forget(chunks);
    }

    /// Whether it has no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// First start to greatest end.
    #[must_use]
    pub fn extent(&self) -> Option<Span> {
        let first = self.rows.first()?;
        let start = self.past.start().map_or(first, |start| start.min(first));
        Some(Span::new(start, self.rows.total().sums.end))
    }

    /// The chunk that holds a row, and its place there.
    fn place(&self, row: usize) -> (&Rows, usize) {
        let Some(spot) = self.rows.spot(row) else {
            panic!("row {row} of {}", self.len());
        };
        (self.rows.chunk(spot.chunk), spot.row)
    }

    /// When a row ran.
    #[must_use]
    pub fn span(&self, row: usize) -> Span {
        let (rows, row) = self.place(row);
        rows.span(row)
    }

    /// A row's correlation id; 0 for none.
    #[must_use]
    pub fn correlation(&self, row: usize) -> u32 {
        let (rows, row) = self.place(row);
        rows.correlation(row)
    }

    /// A row with all that is stored of it.
    pub(super) fn row(&self, row: usize) -> Row {
        let (rows, row) = self.place(row);
        rows.row(row)
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
        if !pending.is_sorted_by_key(Row::key) {
            pending.sort_by_key(Row::key);
        }
        let Some(first) = pending.first() else {
            return 0;
        };
        let last = self.rows.last().map(|chunk| chunk.row(chunk.len() - 1));
        let late = last.map_or(0, |last| {
            pending.partition_point(|row| row.span.start < last.span.start)
        });
        if last.is_none_or(|last| last.key() <= first.key()) {
            self.append(&pending);
        } else {
            self.merge(&pending);
        }
        pending.clear();
        self.pending = pending;
        late
    }

    fn append(&mut self, rows: &[Row]) {
        let changed = self.rows.count().saturating_sub(1);
        let mut rest = rows;
        while !rest.is_empty() {
            let chunk = self.rows.open(Rows::default);
            let (now, later) = rest.split_at(rest.len().min(CAPACITY - chunk.len()));
            now.iter().for_each(|row| chunk.push(row));
            rest = later;
        }
        self.rows.refresh(changed);
    }

    /// Puts rows where they belong: each into the last chunk that begins no later than it.
    fn merge(&mut self, rows: &[Row]) {
        let firsts: Vec<_> = self.rows.chunks().map(|c| c.row(0).key()).collect();
        let mut rest = rows;
        let mut changed = firsts.len();
        // From the back, so that chunks which become two do not move those still to be changed.
        while let Some(last) = rest.last() {
            let begun = firsts.partition_point(|first| *first <= last.key());
            changed = begun.saturating_sub(1);
            let from = match changed {
                0 => 0,
                chunk => rest.partition_point(|row| row.key() < firsts[chunk]),
            };
            let old = self.rows.chunk(changed);
            let mut merged: Vec<Row> = old.rows().collect();
            merged.extend_from_slice(&rest[from..]);
            merged.sort_by_key(Row::key);
            let packed = Rows::pack(&merged, changed + 1 == firsts.len());
            self.rows.replace(changed..changed + 1, packed);
            rest = &rest[..from];
        }
        self.rows.refresh(changed);
    }

    /// How many rows start before `time`.
    pub(super) fn before(&self, time: Ns) -> usize {
        self.rows.index(self.spot_before(time))
    }

    /// Where the rows end that start before `time`.
    pub(super) fn spot_before(&self, time: Ns) -> Spot {
        self.rows.begun(time).map_or(Spot::START, |chunk| Spot {
            chunk,
            row: self.rows.chunk(chunk).before(time),
        })
    }

    /// The number of rows before a spot.
    pub(super) fn index(&self, spot: Spot) -> usize {
        self.rows.index(spot)
    }

    /// The rows that start within `window`.
    #[must_use]
    pub fn starting(&self, window: Span) -> Range<usize> {
        let from = self.before(window.start.max(self.since));
        from..self.before(window.end).max(from)
    }

    /// Greatest end of the rows before a spot.
    fn end_before(&self, spot: Spot) -> Ns {
        let before = self.rows.head(spot.chunk).sums.end;
        match spot.row {
            0 => before,
            row => before.max(self.rows.chunk(spot.chunk).sums_before(row).end),
        }
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

    /// [`Lane::spot_before`] for each of these times, a level at a time: so the memory is asked for much at
    /// once instead of for one thing after the other. What is next to them is read ahead.
    pub(super) fn spots_before(&self, times: &[Ns]) -> Vec<Spot> {
        // Until the last step, the row is a group, then a block; None where no row starts before.
        let mut spots: Vec<Option<Spot>> = times
            .iter()
            .map(|&time| {
                let chunk = self.rows.begun(time)?;
                Some(Spot { chunk, row: 0 })
            })
            .collect();
        let mut step = |next: &dyn Fn(&Rows, usize, Ns) -> usize| {
            for (spot, &time) in spots.iter_mut().zip(times) {
                if let Some(spot) = spot {
                    spot.row = next(self.rows.chunk(spot.chunk), spot.row, time);
                }
            }
        };
        step(&|rows, _, time| rows.group(time).unwrap_or(0));
        step(&|rows, group, time| rows.block_in(group, time));
        let mut seen = 0;
        for spot in spots.iter().flatten() {
            seen ^= self.rows.chunk(spot.chunk).warm(spot.row);
        }
        std::hint::black_box(seen);
        for (spot, &time) in spots.iter_mut().zip(times) {
            if let Some(spot) = spot {
                spot.row = self.rows.chunk(spot.chunk).row_in(spot.row, time);
            }
        }
        spots
            .into_iter()
            .map(|spot| spot.unwrap_or(Spot::START))
            .collect()
    }

    /// Time within `window` during which at least one row ran.
    #[must_use]
    pub fn busy(&self, window: Span) -> Ns {
        self.cursor().busy(window)
    }

    /// Time before `time` during which a row ran; `spot` is where the rows end that start before it.
    pub(super) fn busy_until(&self, time: Ns, spot: Spot) -> Ns {
        if let Some(busy) = self.past.until(time) {
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

    /// The rows that share time with `window`, or lie in it as instants. Where rows nest, rows between
    /// the first and the last of them may end before it begins.
    #[must_use]
    pub fn rows(&self, window: Span) -> Range<usize> {
        self.cursor().rows(window)
    }

    /// The first row that ends after `time`, or the first that starts at or after it, where the rows end at `first`
    /// that start before it.
    pub(super) fn first_touching(&self, first: Spot, time: Ns) -> usize {
        let end = self.rows.index(first);
        if end == self.rows.kept() {
            return end;
        }
        // The greatest end so far never falls, so the first row that ends after the time lies in the
        // last block before which everything has ended: mostly that of the time itself.
        let near = first.row.saturating_sub(1) / STRIDE;
        let head = self.rows.head(first.chunk).sums.end;
        let rows = self.rows.chunk(first.chunk);
        let (chunk, block) = if head.max(rows.sums_at(near).end) <= time {
            (first.chunk, near)
        } else {
            let heads = &self.rows.heads()[..=first.chunk];
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

    /// The row that names a cell: the longest of those that start in `window`, or the one that runs
    /// into it.
    #[must_use]
    pub fn longest(&self, window: Span) -> Option<usize> {
        self.cursor().longest(window)
    }

    /// The longest of the rows between two spots, the first of equals.
    pub(super) fn longest_of(&self, from: Spot, to: Spot) -> Option<usize> {
        if from.chunk == to.chunk {
            if from.row >= to.row {
                return None;
            }
            let best = self.rows.chunk(from.chunk).longest(from.row, to.row)?;
            return Some(self.rows.index(from) - from.row + best.row);
        }
        let mut best: Option<(Ns, Spot)> = None;
        let mut take = |chunk: usize, longest: Longest| {
            if best.is_none_or(|(length, _)| longest.length > length) {
                let row = longest.row;
                best = Some((longest.length, Spot { chunk, row }));
            }
        };
        let rows = self.rows.chunk(from.chunk);
        if let Some(longest) = rows.longest(from.row, rows.len()) {
            take(from.chunk, longest);
        }
        for chunk in from.chunk + 1..to.chunk {
            let head = self.rows.head(chunk);
            take(
                chunk,
                Longest {
                    length: head.longest,
                    row: head.longest_at as usize,
                },
            );
        }
        if let Some(longest) = self.rows.chunk(to.chunk).longest(0, to.row) {
            take(to.chunk, longest);
        }
        best.map(|(_, spot)| self.rows.index(spot))
    }

    /// The innermost row that runs at `time`.
    #[must_use]
    pub fn at(&self, time: Ns) -> Option<usize> {
        let to = self.before(time.saturating_add(1));
        let from = self.rows(Span::at(time)).start;
        (from..to).rev().find(|&i| self.span(i).end > time)
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
        let rows = self.before(time);
        (rows > self.rows.kept()).then(|| rows - 1)
    }

    /// The gap that holds `time`: between the greatest end before and the next start.
    #[must_use]
    pub fn gap_at(&self, time: Ns) -> Option<Span> {
        let before = self.spot_before(time.saturating_add(1));
        let next = self.rows.index(before);
        if next == self.rows.kept() || next == self.len() {
            return None;
        }
        let gap = Span::new(self.end_before(before), self.span(next).start);
        gap.contains(time).then_some(gap)
    }

    /// The first gap of at least `min` ns that starts at or after `time`.
    #[must_use]
    pub fn next_gap(&self, time: Ns, min: Ns) -> Option<Span> {
        let min = min.max(1);
        let from = self.spot_before(time);
        let mut end = self.end_before(from);
        let mut row = from.row;
        for chunk in from.chunk..self.rows.count() {
            let rows = self.rows.chunk(chunk);
            end = end.max(self.rows.head(chunk).sums.end);
            while row < rows.len() {
                let (next, after) = skip(rows, row, min);
                if next > row {
                    (row, end) = (next, end.max(after));
                    continue;
                }
                let span = rows.span(row);
                let gap = Span::new(end, span.start);
                if end >= time && end != Ns::MIN && gap.len() >= min {
                    return Some(gap);
                }
                end = end.max(span.end);
                row += 1;
            }
            row = 0;
        }
        None
    }

    /// The last gap of at least `min` ns that starts before `time`.
    #[must_use]
    pub fn previous_gap(&self, time: Ns, min: Ns) -> Option<Span> {
        let min = min.max(1);
        // The row after the last that starts by then may end the gap.
        let last = self.before(time.saturating_add(1));
        let last = self.rows.spot(last.min(self.len().checked_sub(1)?))?;
        for chunk in (0..=last.chunk).rev() {
            let rows = self.rows.chunk(chunk);
            let head = self.rows.head(chunk).sums.end;
            let mut to = if chunk == last.chunk {
                last.row + 1
            } else {
                rows.len()
            };
            // A chunk without a wide gap can still end one that begins before it.
            if rows.widest() < min {
                to = to.min(1);
            }
            while to > 0 {
                let block = (to - 1) / STRIDE;
                let from = block * STRIDE;
                let is_wide = block == 0 || free(rows, block) >= min;
                if is_wide {
                    let mut end = head.max(rows.sums_at(block).end);
                    let mut found = None;
                    for row in from..to {
                        let span = rows.span(row);
                        let gap = Span::new(end, span.start);
                        if end != Ns::MIN && gap.start < time && gap.len() >= min {
                            found = Some(gap);
                        }
                        end = end.max(span.end);
                    }
                    if found.is_some() {
                        return found;
                    }
                }
                to = from;
            }
        }
        None
    }

    /// The first row with this correlation id.
    #[must_use]
    pub fn find_correlation(&self, correlation: u32) -> Option<usize> {
        if correlation == 0 {
            return None;
        }
        let mut chunks = 0..self.rows.count();
        if self.rows.total().ascends {
            // Only the last chunk before which all ids are smaller can hold the first one.
            let heads = &self.rows.heads()[chunks.clone()];
            let behind = heads.partition_point(|h| h.correlation < correlation);
            chunks = behind.saturating_sub(1)..behind;
        }
        chunks.into_iter().find_map(|chunk| {
            let row = self.rows.chunk(chunk).find_correlation(correlation)?;
            Some(self.rows.index(Spot { chunk, row }))
        })
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.rows.chunks().map(Rows::memory).sum::<usize>()
            + self.rows.overhead()
            + self.past.memory()
    }
}

/// How long nothing ran between the start of a block, the gap before it included, and the end of its rows, by its chunk alone.
fn free(rows: &Rows, block: usize) -> Ns {
    let (before, after): (Sums, Sums) = (rows.sums_at(block), rows.sums_at(block + 1));
    after.end.saturating_sub(before.end) - (after.busy - before.busy)
}

/// How far a search for a gap of `min` ns may go on from this row at once: the next row to look at, and
/// the greatest end of the chunk's rows before it.
fn skip(rows: &Rows, row: usize, min: Ns) -> (usize, Ns) {
    // The gap before a chunk's first row is not the chunk's own.
    if row == 0 {
        return (row, Ns::MIN);
    }
    if rows.widest() < min {
        return (rows.len(), rows.sums_before(rows.len()).end);
    }
    let block = row / STRIDE;
    if row.is_multiple_of(STRIDE) && free(rows, block) < min {
        let next = (row + STRIDE).min(rows.len());
        return (next, rows.sums_at(block + 1).end);
    }
    (row, Ns::MIN)
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

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

    proptest! {
        #[test]
        fn gaps_are_those_of_the_union(batches in batches(), time in -5i64..330, min in 0i64..12) {
            let (lane, _) = lane(&batches);
            let mut all: Vec<Span> = batches.concat();
            all.sort_by_key(|s| s.start);
            // Stretches without a row between the first start and the last, instants ending a stretch too.
            let mut gaps = Vec::new();
            let mut end = None;
            for span in &all {
                if let Some(end) = end
                    && span.start > end
                    && span.start - end >= min
                {
                    gaps.push(Span::new(end, span.start));
                }
                end = Some(end.unwrap_or(span.end).max(span.end));
            }
            let next = gaps.iter().find(|g| g.start >= time).copied();
            prop_assert_eq!(lane.next_gap(time, min), next);
            let previous = gaps.iter().rfind(|g| g.start < time).copied();
            prop_assert_eq!(lane.previous_gap(time, min), previous);
        }

        #[test]
        fn correlations_are_found_whatever_their_order(
            ids in prop::collection::vec(1u32..200, 1..300), ascend in any::<bool>(), wanted in 1u32..200,
        ) {
            let mut ids = ids;
            if ascend {
                ids.sort_unstable();
            }
            let mut lane = Lane::new(LaneKey { process: 0, kind: LaneKind::Overhead });
            for (i, &correlation) in ids.iter().enumerate() {
                let span = Span::new(i as Ns * 10, i as Ns * 10 + 5);
                lane.queue(Row { span, correlation, detail: 0 });
            }
            lane.settle();
            prop_assert_eq!(lane.find_correlation(wanted), ids.iter().position(|&id| id == wanted));
        }
    }

    #[test]
    fn a_late_row_changes_its_chunk_and_no_other() {
        let spans: Vec<Span> = (0..400).map(|i| Span::new(i * 10, i * 10 + 5)).collect();
        let (mut lane, _) = lane(&[spans]);
        let before = lane.rows.clone();
        lane.queue(Row {
            span: Span::new(1006, 1008),
            correlation: 0,
            detail: 0,
        });
        assert_eq!(lane.settle(), 1);
        let same = |a: &Rows| before.chunks().any(|b| std::ptr::eq(a, b));
        let changed = lane.rows.chunks().filter(|chunk| !same(chunk)).count();
        // It was full, so it became two.
        assert_eq!(changed, 2);
        assert_eq!(lane.rows.count(), before.count() + 1);
        assert_eq!(lane.busy(Span::new(0, 4000)), 2002);
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
