//! The gaps between the rows of a lane.

use super::Lane;
use crate::rows::{Rows, STRIDE, Sums};
use crate::series::Chunk as _;
use activity::{Ns, Span};

impl Lane {
    /// The gap that holds `time`: between the greatest end before and the next start.
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
            if rows.widest < min {
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

    /// The longest gap of at least `min` ns that lies within `window`; of equal ones the first.
    pub fn longest_gap(&self, window: Span, min: Ns) -> Option<Span> {
        longest(window, min, |time, min| self.next_gap(time, min))
    }
}

/// The longest gap within `window`. `next` finds a gap from a time on that is longer than the one before, so that an
/// index skips most.
pub(crate) fn longest(
    window: Span,
    min: Ns,
    next: impl Fn(Ns, Ns) -> Option<Span>,
) -> Option<Span> {
    let (mut from, mut longest) = (window.start, None::<Span>);
    while let Some(gap) =
        next(from, longest.map_or(min, |l| l.len() + 1)).filter(|gap| gap.end <= window.end)
    {
        longest = Some(gap);
        from = gap.end;
    }
    longest
}

/// How long nothing ran from the start of a block (and the gap before it) to the end of its rows, by its chunk alone.
fn free(rows: &Rows, block: usize) -> Ns {
    let (before, after): (Sums, Sums) = (rows.sums_at(block), rows.sums_at(block + 1));
    after.end.saturating_sub(before.end) - (after.busy - before.busy)
}

/// How far a search for a gap of `min` ns may skip from this row. Returns the next row to look at, and the greatest end
/// of the chunk's rows before it.
fn skip(rows: &Rows, row: usize, min: Ns) -> (usize, Ns) {
    // The gap before a chunk's first row is not the chunk's own.
    if row == 0 {
        return (row, Ns::MIN);
    }
    if rows.widest < min {
        return (rows.len(), rows.sums_before(rows.len()).end);
    }
    let block = row / STRIDE;
    if row.is_multiple_of(STRIDE) && free(rows, block) < min {
        let next = (row + STRIDE).min(rows.len());
        return (next, rows.sums_at(block + 1).end);
    }
    (row, Ns::MIN)
}
