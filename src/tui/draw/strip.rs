//! A lane as columns: boxes with labels where there is room, heights where many share a column.
//!
//! An operation that covers two columns or more is a box over the columns nearest to its span. All
//! others share columns, and such a column's height is the part of its time in which one of them ran.
//! The parts of a box's span that rounding left outside the box count for no column, so a column next
//! to a box shows what is there besides it. Every column costs O(log n).

use super::label;
use crate::activity::{Ns, Span, units};
use crate::trace::{LaneId, LaneKind, Trace};
use crate::tui::theme::{Role, Theme};
use crate::tui::time_scale::TimeScale;

/// A lane, ready to be drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strip {
    /// Its parts from left to right. They do not overlap.
    pub pieces: Vec<Piece>,
}

/// A part of a lane.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// One operation, at least two columns wide.
    Box {
        /// First column.
        from: u16,
        /// Column after the last.
        to: u16,
        /// Its colour.
        role: Role,
        /// What stands in it; empty when there is no room.
        label: String,
        /// Whether its start is on screen.
        has_start: bool,
        /// Whether its end is on screen.
        has_end: bool,
        /// Whether it is selected.
        is_selected: bool,
    },
    /// One column of operations too short for boxes.
    Level {
        /// The column.
        x: u16,
        /// Height, from 1 to 8.
        eighths: u8,
        /// The colour of the longest of them.
        role: Role,
        /// Whether the selected one is among them.
        is_selected: bool,
    },
    /// Columns with nothing in them between two operations.
    Gap {
        /// First column.
        from: u16,
        /// Column after the last.
        to: u16,
        /// What stands in it; empty when there is no room.
        label: String,
        /// Whether it is selected.
        is_selected: bool,
    },
}

/// What is needed besides the lane.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// Columns and window.
    pub scale: TimeScale,
    /// Gaps are only marked within it.
    pub scope: Span,
    /// The selected record of this lane.
    pub record: Option<usize>,
    /// The selected gap of this lane.
    pub gap: Option<Span>,
    /// Whether gaps are marked at all: on streams.
    pub has_gaps: bool,
}

impl Strip {
    /// Prepares a lane.
    #[must_use]
    pub fn new(trace: &Trace, id: LaneId, wish: &Wish) -> Self {
        let mut strip = Strip::default();
        let lane = &trace.lanes()[id];
        let scale = wish.scale;
        let starts = (0..scale.columns).map(|x| scale.edge(x));
        let edges: Vec<Ns> = starts.chain([scale.window.end]).collect();
        let mut cells = lane.cursor_over(&edges);
        let mut x = 0;
        // Up to here everything is in a box.
        let mut boxed = scale.window.start;
        while x < scale.columns {
            let cell = at_least_1ns(scale.cell(x));
            let seen = Span::new(cell.start.max(boxed), cell.end);
            let row = cells.longest(seen).filter(|_| !seen.is_empty());
            let Some(row) = row.filter(|&row| lane.span(row).end > boxed) else {
                x += 1;
                continue;
            };
            let span = lane.span(row);
            let (from, to) = (scale.nearest_edge(span.start), scale.nearest_edge(span.end));
            let is_box = to >= from.max(x) + 2;
            if is_box && from <= x {
                let is_selected = wish.record == Some(row);
                let from = x;
                let columns = usize::from(to - from).saturating_sub(2);
                strip.pieces.push(Piece::Box {
                    from,
                    to,
                    role: label::role(trace, &trace.activity(id, row).what),
                    label: label::fitting(trace, id, row, columns),
                    has_start: span.start >= scale.window.start,
                    has_end: span.end <= scale.window.end,
                    is_selected,
                });
                boxed = span.end;
                x = to;
                continue;
            }
            // A box that begins at the next column takes its own time out of this one.
            let until = if is_box { span.start } else { seen.end };
            let busy = cells.busy(Span::new(seen.start, until));
            if busy > 0 || (!is_box && span.is_empty()) {
                let share = busy as f64 / cell.len() as f64;
                strip.pieces.push(Piece::Level {
                    x,
                    eighths: Theme::eighths(share).max(1),
                    role: label::role(trace, &trace.activity(id, row).what),
                    is_selected: wish
                        .record
                        .is_some_and(|r| r < lane.len() && touches(lane.span(r), cell)),
                });
            }
            x += 1;
        }
        if wish.has_gaps {
            strip.mark_gaps(trace, id, wish);
        }
        strip
    }

    /// Marks the free columns between pieces that are part of a gap.
    fn mark_gaps(&mut self, trace: &Trace, id: LaneId, wish: &Wish) {
        let lane = &trace.lanes()[id];
        let mut gaps = Vec::new();
        let mut from = 0;
        let ends = self
            .pieces
            .iter()
            .map(|p| p.columns())
            .chain([(wish.scale.columns, wish.scale.columns)]);
        for (start, end) in ends {
            if start > from {
                let run = Span::new(wish.scale.edge(from), wish.scale.edge(start));
                let middle = run.start + run.len() / 2;
                let inside = |gap: &Span| {
                    gap.len() >= Trace::GAP_MIN
                        && gap.start >= wish.scope.start
                        && gap.end <= wish.scope.end
                };
                if let Some(gap) = lane.gap_at(middle).filter(inside) {
                    let room = usize::from(start - from).saturating_sub(2);
                    gaps.push(Piece::Gap {
                        from,
                        to: start,
                        label: gap_label(trace, id, gap, room),
                        is_selected: wish.gap == Some(gap),
                    });
                }
            }
            from = end;
        }
        self.pieces.extend(gaps);
        self.pieces.sort_by_key(|p| p.columns());
    }
}

impl Piece {
    /// First column, and the column after the last.
    #[must_use]
    pub fn columns(&self) -> (u16, u16) {
        match *self {
            Piece::Box { from, to, .. } | Piece::Gap { from, to, .. } => (from, to),
            Piece::Level { x, .. } => (x, x + 1),
        }
    }
}

/// "idle 84 µs", or "queued 84 µs" when the operation behind the gap was launched before it began.
fn gap_label(trace: &Trace, id: LaneId, gap: Span, room: usize) -> String {
    let duration = units::duration(gap.len());
    if room < duration.chars().count() {
        return String::new();
    }
    let word = gap_word(trace, id, gap);
    let long = format!("{word} {duration}");
    if long.chars().count() <= room {
        long
    } else {
        duration
    }
}

/// Whether the stream waited for the host, or work that was already launched waited on the stream.
#[must_use]
pub fn gap_word(trace: &Trace, id: LaneId, gap: Span) -> &'static str {
    let lane = &trace.lanes()[id];
    let LaneKind::Stream { .. } = lane.key().kind else {
        return "idle";
    };
    let launch = lane
        .next(gap.end)
        .map(|row| lane.correlation(row))
        .and_then(|correlation| trace.call(lane.key().process, correlation))
        .map(|(call, row)| trace.lanes()[call].span(row));
    match launch {
        Some(call) if call.end <= gap.start => "queued",
        _ => "idle",
    }
}

fn at_least_1ns(cell: Span) -> Span {
    Span::new(cell.start, cell.end.max(cell.start + 1))
}

fn touches(span: Span, cell: Span) -> bool {
    span.overlaps(cell) || (span.is_empty() && cell.contains(span.start))
}
