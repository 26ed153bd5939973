//! A lane as columns: what of each cell is inked, the names on bars, the gaps between them.
//!
//! Up to [`FEW`] operations in a cell are looked at one by one: where they leave one edge it is drawn where it lies.
//! The height of a cell with more is the part of its time in which one of them ran. Its colour is that of the longest.
//! A bar is skipped as a whole, so a cell costs O(log n) and a column of a bar nothing.

mod dense;
mod few;
mod rounds;
#[cfg(test)]
mod tests;

use std::ops::Range;

use dense::Dense;
use few::Few;

use super::gaps::{self, GapMark};
use super::ink::{Ink, Paint};
use super::{label, pen};
use crate::tui::state::job::Waits;
use crate::tui::state::nest::Level;
use crate::tui::state::rounds::NodeRounds;
use crate::tui::state::search::Hits;
use crate::tui::theme::Role;
use crate::tui::time_scale::TimeScale;
use activity::{Ns, Span};
use trace::{Cursor, Lane, LaneId, Trace, describe};

/// Operations of a cell that are looked at one by one.
const FEW: usize = 3;

/// Cells below which one of many ranges is no bar of its own.
const SHORT: Ns = 4;

/// Colours that are remembered while a lane is made.
const KNOWN: usize = 64;

/// A lane, ready to be drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strip {
    /// One for each column.
    pub cells: Vec<Ink>,
    /// What stands on bars, from left to right.
    pub names: Vec<Name>,
    /// What stands between them.
    pub gaps: Vec<GapMark>,
    /// The columns that the selected gap is in, be it ever so short.
    pub selected_gap: Range<u16>,
}

/// A name on a bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    pub x: u16,
    pub text: String,
    pub paint: Paint,
    /// Whether it says what a colour stands for, and no bar is behind it.
    pub is_key: bool,
    /// The bar's columns.
    pub columns: u16,
    /// All of it where the text is cut: a bar of several lines may have room.
    pub whole: String,
}

/// What is needed besides the lane.
#[derive(Clone, Copy, Debug, Default)]
pub struct StripInput<'a> {
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
    /// What is looked for: the rest stands back.
    pub found: Option<&'a Hits>,
    /// Where kernels wait for other ranks.
    pub waits: Option<&'a Waits>,
    /// Which rounds the nodes of graphs are in.
    pub rounds: Option<&'a NodeRounds>,
}

/// What a strip asks of the rows that it shows.
trait RowSource {
    /// Time within `window` during which at least one of them ran.
    fn busy(&mut self, window: Span) -> Ns;
    /// The one that names a window.
    fn longest(&mut self, window: Span) -> Option<usize>;
    /// The rows among which those are that touch `window`, in order of their starts; `None` when more than
    /// [`FEW`] start in it.
    fn few(&mut self, window: Span) -> Option<impl Iterator<Item = (usize, Span)>>;
    /// One that touches `window` and is among `hits`, which are in order.
    fn hit(&mut self, window: Span, hits: &[u32]) -> Option<usize>;
    /// The rows of a cell when some are among others so short that they would be single columns.
    fn dense(&self, _cell: Span) -> Option<&[(usize, Span)]> {
        None
    }
}

/// All rows of a lane.
struct All<'a> {
    trace: &'a Trace,
    id: LaneId,
    cursor: Cursor<'a>,
}

impl RowSource for All<'_> {
    fn busy(&mut self, window: Span) -> Ns {
        self.cursor.busy(window)
    }

    fn longest(&mut self, window: Span) -> Option<usize> {
        self.cursor.longest(window)
    }

    fn few(&mut self, window: Span) -> Option<impl Iterator<Item = (usize, Span)>> {
        if self.cursor.starting(window).len() > FEW {
            return None;
        }
        let rows = self.cursor.rows(window);
        Some(self.trace.lanes()[self.id].spans(rows))
    }

    fn hit(&mut self, window: Span, hits: &[u32]) -> Option<usize> {
        let starting = self.cursor.starting(window);
        let from = hits.partition_point(|&hit| (hit as usize) < starting.start);
        let next = hits.get(from).map(|&hit| hit as usize);
        if let Some(next) = next.filter(|&hit| hit < starting.end) {
            return Some(next);
        }
        // Else the one before, where it reaches in.
        let before = *hits.get(from.checked_sub(1)?)? as usize;
        let lane = &self.trace.lanes()[self.id];
        (lane.holds(before) && touches(lane.span(before), window)).then_some(before)
    }
}

/// RowSource of one depth, which follow each other.
impl RowSource for &[(usize, Span)] {
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

    fn few(&mut self, window: Span) -> Option<impl Iterator<Item = (usize, Span)>> {
        let rows = within(self, window);
        (rows.len() <= FEW).then(|| rows.iter().copied())
    }

    fn hit(&mut self, window: Span, hits: &[u32]) -> Option<usize> {
        let is_hit =
            |row: &usize| u32::try_from(*row).is_ok_and(|row| hits.binary_search(&row).is_ok());
        within(self, window)
            .iter()
            .map(|(row, _)| *row)
            .find(is_hit)
    }

    fn dense(&self, cell: Span) -> Option<&[(usize, Span)]> {
        let (rows, length) = (within(self, cell), cell.len());
        let is_short = |(_, span): &(usize, Span)| span.len() < SHORT * length;
        let around = Span::new(cell.start - length, cell.end + length);
        (rows.iter().any(is_short) && within(self, around).len() > 2).then_some(rows)
    }
}

fn within(rows: &[(usize, Span)], window: Span) -> &[(usize, Span)] {
    let to = rows.partition_point(|(_, span)| span.start < window.end);
    let from = rows[..to].partition_point(|(_, span)| span.end <= window.start);
    &rows[from..to]
}

impl Strip {
    /// Prepares a lane.
    pub fn new(trace: &Trace, id: LaneId, input: &StripInput<'_>) -> Self {
        let edges = input.scale.edges();
        let mut strip = Strip::of(trace, id, all(trace, id, &edges), &edges, input);
        if let Some(waits) = input.waits {
            strip.wait(&trace.lanes()[id], waits, input.scale);
        }
        if let Some(rounds) = input.rounds {
            strip.tell_rounds(trace, id, rounds, input.scale);
        }
        if input.has_gaps {
            let (scale, scope) = (input.scale, input.scope);
            strip.gaps = gaps::marks(trace, id, scale, scope, input.gap, &strip.cells);
        }
        strip.selected_gap = input.gap.map_or(0..0, |gap| input.scale.columns_of(gap));
        strip
    }

    /// Gives cells that are mostly waiting for other ranks the colour of it: a kernel that waits does no work.
    fn wait(&mut self, lane: &Lane, waits: &Waits, scale: TimeScale) {
        for (x, ink) in (0..).zip(&mut self.cells) {
            let cell = at_least_1ns(scale.cell(x));
            if !matches!(ink, Ink::Nothing) && 2 * waits.time_within(cell) > lane.busy(cell) {
                ink.set_role(Role::Wait);
            }
        }
    }

    /// Prepares the ranges of a lane that lie `depth` deep in others, which are in `levels` unless they are too many.
    pub fn nested(
        trace: &Trace,
        id: LaneId,
        levels: Option<&[Level]>,
        depth: usize,
        input: &StripInput<'_>,
    ) -> Self {
        let edges = input.scale.edges();
        match levels {
            Some(levels) => {
                let level = levels.get(depth).map_or(&[][..], Vec::as_slice);
                Strip::of(trace, id, level, &edges, input)
            }
            // Too many to tell apart: the first row shows that there are some.
            None if depth == 0 => Strip::of(trace, id, all(trace, id, &edges), &edges, input),
            None => Strip::default(),
        }
    }

    /// `edges` are those of the columns, which are asked for again and again.
    fn of(
        trace: &Trace,
        id: LaneId,
        mut rows: impl RowSource,
        edges: &[Ns],
        input: &StripInput<'_>,
    ) -> Self {
        let scale = input.scale;
        let cell = |x: u16| Span::new(edges[usize::from(x)], edges[usize::from(x) + 1]);
        let mut painter = Painter::new(trace, id, input);
        let mut strip = Strip {
            cells: vec![Ink::Nothing; usize::from(scale.columns)],
            ..Strip::default()
        };
        let mut dense = Dense::default();
        let mut x = 0;
        while x < scale.columns {
            let cell = at_least_1ns(cell(x));
            if let Some(near) = rows.dense(cell) {
                strip.cells[usize::from(x)] = dense.ink(near, cell, x, &mut painter);
                x += 1;
                continue;
            }
            let few = match rows.few(cell) {
                Some(near) => Few::of(near, cell),
                None => None,
            };
            match few {
                Some(Few { count: 0, .. }) => {}
                Some(few) => match few.covering(cell) {
                    Some((row, span)) => {
                        let to = scale.ended(span.end).max(x + 1);
                        let paint = painter.paint(row, x..to);
                        strip.cells[usize::from(x)..usize::from(to)].fill(Ink::Full(paint));
                        strip.names.extend(name(trace, id, row, x, to, paint));
                        x = to;
                        continue;
                    }
                    None => strip.cells[usize::from(x)] = few.ink(cell, x, &mut painter),
                },
                None => {
                    // A hit among many names the cell.
                    let hit = input
                        .found
                        .and_then(|found| rows.hit(cell, found.of_lane(id)));
                    if let Some(row) = hit.or_else(|| rows.longest(cell)) {
                        let share = rows.busy(cell) as f64 / cell.len() as f64;
                        let paint = painter.of_several(row, cell);
                        strip.cells[usize::from(x)] = Ink::Level(share as f32, paint);
                    }
                }
            }
            x += 1;
        }
        dense.name(&mut painter, &mut strip.names);
        strip
    }
}

impl Name {
    /// What says what a colour stands for.
    fn key(x: u16, text: String, role: Role) -> Name {
        Name {
            x,
            columns: pen::width(&text) as u16,
            text,
            paint: Paint::of(role),
            is_key: true,
            whole: String::new(),
        }
    }
    /// All of it on its bar, where that is so many lines high and no word has to be broken.
    pub(super) fn in_lines(&self, lines: u16) -> Option<Vec<String>> {
        let words = pen::words(&self.whole, usize::from(self.columns))?;
        (!self.whole.is_empty() && words.len() <= usize::from(lines)).then_some(words)
    }
}

fn all<'a>(trace: &'a Trace, id: LaneId, edges: &[Ns]) -> All<'a> {
    All {
        trace,
        id,
        cursor: trace.lanes()[id].cursor_over(edges),
    }
}

/// What stands on a bar of columns `from` to `to`, with a column of air before it where there is room.
fn name(trace: &Trace, id: LaneId, row: usize, from: u16, to: u16, paint: Paint) -> Option<Name> {
    let columns = usize::from(to - from);
    let room = if columns > 6 { columns - 1 } else { columns };
    let text = label::fitting(trace, id, row, room);
    let x = from + u16::from(pen::width(&text) < columns);
    let mut whole = String::new();
    if text.ends_with('…') {
        let name = describe::activity(trace, &trace.what(id, row));
        whole = label::bare(&name).to_owned();
    }
    (columns > 1).then_some(Name {
        x,
        text,
        paint,
        is_key: false,
        columns: to - from,
        whole,
    })
}

/// The colours of a lane's rows.
struct Painter<'a> {
    trace: &'a Trace,
    id: LaneId,
    selected: Option<(usize, Span)>,
    found: Option<&'a Hits>,
    /// Those that were found last, by what the rows are: a lane has few kinds of them.
    known: [Option<(u32, (Role, bool))>; KNOWN],
    /// The row that was drawn last, whether in its second shade, and the column after it.
    drawn: Option<(usize, bool, u16)>,
}

impl<'a> Painter<'a> {
    fn new(trace: &'a Trace, id: LaneId, input: &StripInput<'a>) -> Self {
        let lane = &trace.lanes()[id];
        let record = input.record.filter(|row| lane.holds(*row));
        Painter {
            trace,
            id,
            selected: record.map(|row| (row, lane.span(row))),
            found: input.found,
            known: [None; KNOWN],
            drawn: None,
        }
    }

    /// The colour of a row, and whether it stands back.
    fn role(&mut self, row: usize) -> (Role, bool) {
        let id = self.trace.what_id(self.id, row);
        let known = &mut self.known[id as usize % KNOWN];
        if let Some((_, role)) = known.filter(|(known, _)| *known == id) {
            return role;
        }
        let what = self.trace.what(self.id, row);
        let is_calm = (self.found).is_some_and(|found| !found.has(self.trace, &what));
        let role = (label::role(self.trace, &what), is_calm);
        *known = Some((id, role));
        role
    }

    /// The colour of a row among many short ones: of Python functions each has its own.
    fn role_among(&mut self, row: usize) -> Role {
        match self.role(row).0 {
            Role::Python => {
                let what = self.trace.what(self.id, row);
                label::kernel_role(&describe::activity(self.trace, &what))
            }
            role => role,
        }
    }

    /// For a row that alone is drawn in `columns`, which follow those of the row before.
    fn paint(&mut self, row: usize, columns: Range<u16>) -> Paint {
        let (role, is_calm) = self.role(row);
        let is_second = match self.drawn {
            Some((drawn, is_second, _)) if drawn == row => is_second,
            Some((_, is_second, end)) if end >= columns.start => !is_second,
            // By its number: the shade stays when the window moves. Of rows that nest the next one may have any number.
            _ => row % 2 == 1,
        };
        self.drawn = Some((row, is_second, columns.end));
        Paint {
            role,
            is_second,
            is_selected: self.selected.is_some_and(|(selected, _)| selected == row),
            is_calm,
        }
    }

    /// For a cell of several, of which `row` names it.
    fn of_several(&mut self, row: usize, cell: Span) -> Paint {
        let (role, is_calm) = self.role(row);
        Paint {
            role,
            is_second: false,
            is_selected: self.selected.is_some_and(|(_, span)| touches(span, cell)),
            is_calm,
        }
    }
}

fn at_least_1ns(cell: Span) -> Span {
    Span::new(cell.start, cell.end.max(cell.start + 1))
}

fn touches(span: Span, cell: Span) -> bool {
    span.overlaps(cell) || (span.is_empty() && cell.contains(span.start))
}
