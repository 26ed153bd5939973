//! A lane as columns: boxes with labels where there is room, heights where many share a column.
//!
//! An operation that covers two columns or more is a box over the columns nearest to its span. All
//! others share columns, and such a column's height is the part of its time in which one of them ran.
//! The parts of a box's span that rounding left outside the box count for no column, so a column next
//! to a box shows what is there besides it. Every column costs O(log n).

use super::label;
use crate::activity::{Ns, Span, units};
use crate::trace::{Cursor, LaneId, LaneKind, Trace};
use crate::tui::state::nest;
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
pub struct StripInput {
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

/// What a strip asks of the rows that it shows.
trait Rows {
    /// Time within `window` during which at least one of them ran.
    fn busy(&mut self, window: Span) -> Ns;
    /// The one that names a window.
    fn longest(&mut self, window: Span) -> Option<usize>;
}

/// All rows of a lane.
impl Rows for Cursor<'_> {
    fn busy(&mut self, window: Span) -> Ns {
        Cursor::busy(self, window)
    }

    fn longest(&mut self, window: Span) -> Option<usize> {
        Cursor::longest(self, window)
    }
}

/// Rows of one depth, which follow each other.
impl Rows for &[(usize, Span)] {
    fn busy(&mut self, window: Span) -> Ns {
        within(self, window)
            .iter()
            .map(|(_, span)| span.intersect(window).len())
            .sum()
    }

    fn longest(&mut self, window: Span) -> Option<usize> {
        within(self, window)
            .iter()
            .max_by_key(|(_, span)| span.intersect(window).len())
            .map(|(row, _)| *row)
    }
}

fn within(rows: &[(usize, Span)], window: Span) -> &[(usize, Span)] {
    let to = rows.partition_point(|(_, span)| span.start < window.end);
    let from = rows[..to].partition_point(|(_, span)| span.end <= window.start);
    &rows[from..to]
}

/// The edges of all cells, which a cursor looks up at once.
fn edges(scale: TimeScale) -> Vec<Ns> {
    let starts = (0..scale.columns).map(|x| scale.edge(x));
    starts.chain([scale.window.end]).collect()
}

impl Strip {
    /// Prepares a lane.
    #[must_use]
    pub fn new(trace: &Trace, id: LaneId, input: &StripInput) -> Self {
        let lane = &trace.lanes()[id];
        let mut strip = Strip::of(trace, id, lane.cursor_over(&edges(input.scale)), input);
        if input.has_gaps {
            strip.mark_gaps(trace, id, input);
        }
        strip
    }

    /// Prepares the ranges of a lane that lie `depth` deep in others.
    #[must_use]
    pub fn nested(trace: &Trace, id: LaneId, depth: usize, input: &StripInput) -> Self {
        let lane = &trace.lanes()[id];
        match nest::levels(lane, input.scale.window) {
            Some(levels) => {
                let level = levels.get(depth).map_or(&[][..], Vec::as_slice);
                Strip::of(trace, id, level, input)
            }
            // Too many to tell apart: the first row shows that there are some.
            None if depth == 0 => {
                Strip::of(trace, id, lane.cursor_over(&edges(input.scale)), input)
            }
            None => Strip::default(),
        }
    }

    fn of(trace: &Trace, id: LaneId, mut rows: impl Rows, input: &StripInput) -> Self {
        let mut strip = Strip::default();
        let lane = &trace.lanes()[id];
        let scale = input.scale;
        let mut x = 0;
        // Up to here everything is in a box.
        let mut boxed = scale.window.start;
        while x < scale.columns {
            let cell = at_least_1ns(scale.cell(x));
            let seen = Span::new(cell.start.max(boxed), cell.end);
            let row = rows.longest(seen).filter(|_| !seen.is_empty());
            let Some(row) = row.filter(|&row| lane.span(row).end > boxed) else {
                x += 1;
                continue;
            };
            let span = lane.span(row);
            let (from, to) = (scale.nearest_edge(span.start), scale.nearest_edge(span.end));
            let is_box = to >= from.max(x) + 2;
            if is_box && from <= x {
                let is_selected = input.record == Some(row);
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
            let busy = rows.busy(Span::new(seen.start, until));
            if busy > 0 || (!is_box && span.is_empty()) {
                let share = busy as f64 / cell.len() as f64;
                strip.pieces.push(Piece::Level {
                    x,
                    eighths: Theme::eighths(share).max(1),
                    role: label::role(trace, &trace.activity(id, row).what),
                    is_selected: input
                        .record
                        .is_some_and(|r| r < lane.len() && touches(lane.span(r), cell)),
                });
            }
            x += 1;
        }
        strip
    }

    /// Marks the free columns between pieces that are part of a gap.
    fn mark_gaps(&mut self, trace: &Trace, id: LaneId, input: &StripInput) {
        let lane = &trace.lanes()[id];
        let mut gaps = Vec::new();
        let mut from = 0;
        let ends = self
            .pieces
            .iter()
            .map(|p| p.columns())
            .chain([(input.scale.columns, input.scale.columns)]);
        for (start, end) in ends {
            if start > from {
                let run = Span::new(input.scale.edge(from), input.scale.edge(start));
                let middle = run.start + run.len() / 2;
                let inside = |gap: &Span| {
                    gap.len() >= Trace::GAP_MIN
                        && gap.start >= input.scope.start
                        && gap.end <= input.scope.end
                };
                if let Some(gap) = lane.gap_at(middle).filter(inside) {
                    let room = usize::from(start - from).saturating_sub(2);
                    gaps.push(Piece::Gap {
                        from,
                        to: start,
                        label: gap_label(trace, id, gap, room),
                        is_selected: input.gap == Some(gap),
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
    let LaneKind::Stream { device, .. } = lane.key().kind else {
        return "idle";
    };
    if trace.is_unrecorded(device, gap) {
        return "not recorded";
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::{Activity, Batch, Def, Kernel, LaunchShape, Place, What};
    use proptest::prelude::*;

    fn trace(spans: &[(Ns, Ns)]) -> Trace {
        let mut trace = Trace::default();
        let kernel = |&(start, end): &(Ns, Ns)| Activity {
            span: Span::new(start, end),
            correlation: 0,
            what: What::Kernel(Kernel {
                place: Place::default(),
                shape: 0,
                graph: 0,
                node: 0,
            }),
        };
        trace.apply(Batch {
            defs: vec![
                Def::Name {
                    id: 0,
                    text: "kernel".to_owned(),
                },
                Def::Shape {
                    id: 0,
                    shape: LaunchShape::default(),
                },
            ],
            items: spans.iter().map(kernel).collect(),
            ..Batch::default()
        });
        trace
    }

    fn input(window: Span, columns: u16) -> StripInput {
        StripInput {
            scale: TimeScale::new(window, columns),
            scope: window,
            record: None,
            gap: None,
            has_gaps: true,
        }
    }

    fn strip(spans: &[(Ns, Ns)], window: Span, columns: u16) -> Strip {
        Strip::new(&trace(spans), 0, &input(window, columns))
    }

    #[test]
    fn wide_operations_are_boxes_and_the_room_between_them_a_gap() {
        // 10 ns a column: boxes of 10, a gap of 20 columns, a box of 10.
        let found = strip(
            &[(0, 100_000), (300_000, 400_000)],
            Span::new(0, 400_000),
            40,
        );
        let columns: Vec<(u16, u16)> = found.pieces.iter().map(Piece::columns).collect();
        assert_eq!(columns, [(0, 10), (10, 30), (30, 40)]);
        match &found.pieces[1] {
            // Without a record of the launch nobody knows of work that was queued.
            Piece::Gap { label, .. } => assert_eq!(label, "idle 200 µs"),
            other => panic!("{other:?}"),
        }
        match &found.pieces[0] {
            Piece::Box { label, .. } => assert_eq!(label, "kernel"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn many_operations_in_a_column_are_as_high_as_they_are_busy() {
        // Every 100 ns one of 25: a quarter of every column of 1000.
        let spans: Vec<(Ns, Ns)> = (0..400).map(|i| (i * 100, i * 100 + 25)).collect();
        let found = strip(&spans, Span::new(0, 40_000), 40);
        assert_eq!(found.pieces.len(), 40);
        for piece in &found.pieces {
            assert!(
                matches!(piece, Piece::Level { eighths: 2, .. }),
                "{piece:?}"
            );
        }
    }

    #[test]
    fn the_rest_of_a_box_is_not_drawn_beside_it() {
        // From 14 to 56 with 10 a column: the box is columns 1 to 5, and nothing else.
        let found = strip(&[(14, 56)], Span::new(0, 100), 10);
        let columns: Vec<(u16, u16)> = found.pieces.iter().map(Piece::columns).collect();
        assert_eq!(columns, [(1, 6)]);
    }

    proptest! {
        #[test]
        fn nothing_is_hidden_and_nothing_is_made_up(
            lengths in prop::collection::vec((0i64..40, 1i64..60), 1..60),
            columns in 1u16..60,
        ) {
            let mut at = 0;
            let spans: Vec<(Ns, Ns)> = lengths
                .iter()
                .map(|(gap, length)| {
                    let start = at + gap;
                    at = start + length;
                    (start, at)
                })
                .collect();
            let window = Span::new(0, at);
            let found = strip(&spans, window, columns);
            let scale = TimeScale::new(window, columns);
            let mut covered = vec![false; usize::from(columns)];
            let mut last = 0;
            for piece in &found.pieces {
                let (from, to) = piece.columns();
                prop_assert!(from >= last && to > from && to <= columns, "{:?}", found.pieces);
                last = to;
                let is_gap = matches!(piece, Piece::Gap { .. });
                for x in from..to {
                    covered[usize::from(x)] = !is_gap;
                }
                if let Piece::Level { x, .. } = piece {
                    // A level stands only where something runs.
                    let cell = scale.cell(*x);
                    let runs = spans.iter().any(|&(a, b)| Span::new(a, b).overlaps(cell));
                    prop_assert!(runs, "{piece:?}");
                }
            }
            for &(a, b) in &spans {
                // Whatever runs is seen in one of its columns or the column next to it.
                let first = scale.column(a).unwrap_or(0).saturating_sub(1);
                let end = scale.column(b - 1).unwrap_or(columns - 1) + 1;
                let is_seen = (first..=end.min(columns - 1)).any(|x| covered[usize::from(x)]);
                prop_assert!(is_seen, "{a}..{b} of {:?}", found.pieces);
            }
        }
    }
}
