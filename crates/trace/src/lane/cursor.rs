//! Answers questions about one cell of the screen after the other, on one lane.
//!
//! Neighbouring cells share an edge, and a cell gets several questions about the same two edges. A cursor remembers
//! where the last edges lie, so that it searches for each once.

use std::ops::Range;

use super::Lane;
use super::edge::{Edge, Over};
use crate::rows::{Longest, STRIDE};
use activity::{Ns, Span};

/// Edges that it remembers: those of a cell, of its predecessor, and of a cell that was cut short.
const EDGES: usize = 4;

/// Mean rows of an announced cell from which on it reads all cells at once. With fewer rows, most cells get no question.
const MANY: usize = 8;

/// A reader of one lane. Cheap to make: one for each lane and frame.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    lane: &'a Lane,
    edges: [Option<Edge>; EDGES],
    next: usize,
    /// The announced edges, in order.
    announced: Vec<Edge>,
    /// The edge at which the last cell began that had a question.
    at: usize,
    /// For each announced edge but the last: the longest row that starts between it and the next. Empty until the first
    /// question.
    longest: Vec<Option<Longest>>,
}

/// The edges of a cell.
struct CellEdges {
    from: Edge,
    to: Edge,
    /// The index of `from` among the announced edges, where both edges are announced, one after the other.
    announced: Option<usize>,
}

impl Lane {
    /// A reader for many questions about neighbouring windows.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor {
            lane: self,
            edges: [None; EDGES],
            next: 0,
            announced: Vec::new(),
            at: 0,
            longest: Vec::new(),
        }
    }

    /// A reader for windows between these edges, which must ascend. It finds all edges at once, which on a long lane is
    /// several times as fast as one by one.
    pub fn cursor_over(&self, edges: &[Ns]) -> Cursor<'_> {
        Cursor {
            announced: self.edges(edges),
            ..self.cursor()
        }
    }
}

impl Cursor<'_> {
    /// The edge at `time`. It searches only if it does not remember it.
    fn edge(&mut self, time: Ns) -> Edge {
        let mut known = self.edges.iter().flatten();
        if let Some(edge) = known.find(|edge| edge.time == time) {
            return *edge;
        }
        let edge = match self.announced.binary_search_by_key(&time, |e| e.time) {
            Ok(at) => self.announced[at],
            Err(_) => self.lane.edge(time),
        };
        self.edges[self.next] = Some(edge);
        self.next = (self.next + 1) % EDGES;
        edge
    }

    /// The edges of a window. The second is the end of its rows: an instant holds the rows that start with it.
    fn ends(&mut self, window: Span) -> CellEdges {
        let last = window.end.max(window.start.saturating_add(1));
        // Mostly it is the last question's cell, or the next.
        let near = self.at..self.at + 2;
        let behind = near
            .into_iter()
            .find_map(|at| self.cell(at, window.start, last));
        let announced = behind.or_else(|| {
            let first = self.announced.partition_point(|e| e.time < window.start);
            self.cell(first, window.start, last)
        });
        if let Some(at) = announced {
            self.at = at;
            return CellEdges {
                from: self.announced[at],
                to: self.announced[at + 1],
                announced,
            };
        }
        CellEdges {
            from: self.edge(window.start),
            to: self.edge(last),
            announced: None,
        }
    }

    /// `at`, if the cell from there to the next announced edge is this one.
    fn cell(&self, at: usize, start: Ns, end: Ns) -> Option<usize> {
        let [from, to, ..] = self.announced.get(at..)? else {
            return None;
        };
        (from.time == start && to.time == end).then_some(at)
    }

    /// See [`Lane::busy`].
    pub fn busy(&mut self, window: Span) -> Ns {
        if window.is_empty() {
            return 0;
        }
        let CellEdges { from, to, .. } = self.ends(window);
        to.busy - from.busy
    }

    /// See [`Lane::rows`].
    pub fn rows(&mut self, window: Span) -> Range<usize> {
        let CellEdges { from, to, .. } = self.ends(window);
        self.over_edge(&from).first..to.index
    }

    /// See [`Lane::starting`]; a window without length starts what starts at its moment.
    pub fn starting(&mut self, window: Span) -> Range<usize> {
        let CellEdges { from, to, .. } = self.ends(window);
        from.index..to.index
    }

    /// The rows that run over an edge. Where they are of several blocks, the last comes from the block before the edge.
    fn over_edge(&self, edge: &Edge) -> Over {
        edge.over.unwrap_or_else(|| {
            let first = self.lane.first_touching(edge.spot, edge.time);
            let rows = (first..edge.index).rev().take(STRIDE);
            let mut ends = rows.map(|row| (row, self.lane.span(row).end));
            let last = ends.find(|(_, end)| *end > edge.time);
            Over { first, last }
        })
    }

    /// The longest row that starts in an announced cell. Where cells hold many rows, the first question reads all
    /// cells. Cells do not depend on each other, so several reads of memory are under way at once. It also reads ahead
    /// what the caller will want to know of a row.
    fn longest_starting(&mut self, ends: &CellEdges) -> Option<Longest> {
        let Some(cell) = ends.announced else {
            return self.lane.longest_of(ends.from.spot, ends.to.spot);
        };
        if self.longest.is_empty() {
            let (first, last) = (self.announced.first()?, self.announced.last()?);
            if last.index - first.index < MANY * self.announced.len() {
                return self.lane.longest_of(ends.from.spot, ends.to.spot);
            }
            let cells = self.announced.windows(2);
            let found = cells.map(|two| self.lane.longest_of(two[0].spot, two[1].spot));
            self.longest = found.collect();
            let rows = self.longest.iter().flatten();
            self.lane.warm(rows.map(|longest| longest.row));
        }
        self.longest.get(cell).copied().flatten()
    }

    /// The row with the most time within a window, also of one that begins before it; `None` where there is none.
    pub fn longest(&mut self, window: Span) -> Option<usize> {
        let ends = self.ends(window);
        let starting = self.longest_starting(&ends);
        let running = self.over_edge(&ends.from).last;
        let (Some(starting), Some((running, end))) = (starting, running) else {
            return starting.map(|it| it.row).or(running.map(|it| it.0));
        };
        let share = end.min(window.end) - window.start;
        // A row that starts here ends here too, unless it runs over the end.
        let may_run_on = ends.to.over.is_none_or(|over| starting.row >= over.first);
        let length = match may_run_on {
            true => self.lane.span(starting.row).intersect(window).len(),
            false => starting.length,
        };
        Some(if share > length {
            running
        } else {
            starting.row
        })
    }
}
