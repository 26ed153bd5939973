//! Rows of a lane that lie inside each other, as the ranges of a thread do: which is innermost when, and in which.

use activity::{Ns, Span};
use trace::{LaneId, Trace};

/// No row.
pub const NONE: u32 = u32::MAX;

/// What a row is in is looked for so many levels out: more than functions of Python can be inside each other by default.
pub const LEVELS: usize = 1024;

/// The nested rows of one lane: from each moment on, which is the innermost.
#[derive(Clone, Debug, Default)]
pub struct Nested {
    times: Vec<Ns>,
    rows: Vec<u32>,
    /// The row that the list by row begins with.
    first: usize,
    /// By row, the one around it.
    parents: Vec<u32>,
}

impl Nested {
    /// Of a lane. `each` is told of every row with those that it is in: their ends and rows, outermost first.
    pub fn of(trace: &Trace, id: LaneId, mut each: impl FnMut(usize, &[(Ns, u32)])) -> Nested {
        let lane = &trace.lanes()[id];
        let kept = lane.kept();
        let mut nested = Nested {
            times: Vec::with_capacity(2 * kept.len()),
            rows: Vec::with_capacity(2 * kept.len()),
            first: kept.start,
            parents: Vec::with_capacity(kept.len()),
        };
        let mut stack: Vec<(Ns, u32)> = Vec::new();
        for row in kept {
            let span = lane.span(row);
            nested.leave(&mut stack, span.start);
            nested.parents.push(stack.last().map_or(NONE, |top| top.1));
            each(row, &stack);
            if !span.is_empty() {
                nested.push(span.start, row as u32);
                stack.push((span.end, row as u32));
            }
        }
        nested.leave(&mut stack, Ns::MAX);
        nested
    }

    fn leave(&mut self, stack: &mut Vec<(Ns, u32)>, until: Ns) {
        while let Some(&(end, _)) = stack.last().filter(|top| top.0 <= until) {
            stack.pop();
            self.push(end, stack.last().map_or(NONE, |top| top.1));
        }
    }

    fn push(&mut self, time: Ns, row: u32) {
        // Rows that overlap without nesting must not turn time back.
        let time = self.times.last().map_or(time, |&last| last.max(time));
        self.times.push(time);
        self.rows.push(row);
    }

    /// The place of a row in a list by row.
    pub fn place(&self, row: u32) -> usize {
        row as usize - self.first
    }

    /// The row around this one, or [`NONE`].
    pub fn parent(&self, row: u32) -> u32 {
        self.parents[self.place(row)]
    }

    /// The innermost row at a moment; `None` before the first.
    pub fn at(&self, time: Ns) -> Option<u32> {
        let next = self.times.partition_point(|&it| it <= time);
        Some(self.rows[next.checked_sub(1)?])
    }

    /// The parts of a stretch in order, each with the innermost row in it, or [`NONE`]. What lies before the first row is
    /// in none of them.
    pub fn within(&self, stretch: Span) -> impl Iterator<Item = (Span, u32)> {
        let first = self.times.partition_point(|&time| time <= stretch.start);
        let places = first.saturating_sub(1)..self.times.len();
        let places = places.take_while(move |&at| self.times[at] < stretch.end);
        let parts = places.map(move |at| {
            let (start, end) = (self.times[at], self.times.get(at + 1));
            let end = end.copied().unwrap_or(Ns::MAX);
            (Span { start, end }.intersect(stretch), self.rows[at])
        });
        parts.filter(|(part, _)| !part.is_empty())
    }
}
