//! Asks one lane about one cell of the screen after the other.
//!
//! Neighbouring cells share an edge, and a cell is asked several questions about the same two: a cursor
//! remembers where the last edges lie, so that each is looked for once.

use std::ops::Range;

use super::Lane;
use crate::activity::{Ns, Span};
use crate::trace::rows::STRIDE;
use crate::trace::series::Spot;

/// Edges that are remembered: those of a cell, of its predecessor, and of one that was cut short.
const EDGES: usize = 4;

/// Rows of an announced cell, on average, from which on all cells are looked into at once: with fewer most are not asked about.
const MANY: usize = 8;

/// A place in a lane.
#[derive(Clone, Copy, Debug)]
struct Edge {
    time: Ns,
    /// Where the rows end that start before it.
    spot: Spot,
    /// Time before it during which a row ran, when that was asked.
    busy: Option<Ns>,
}

/// A reader of one lane. Cheap to make: one for each lane and frame.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    lane: &'a Lane,
    edges: [Option<Edge>; EDGES],
    next: usize,
    /// Edges that were announced, in order.
    announced: Vec<Edge>,
    /// For each announced edge but the last the longest row that starts between it and the next; empty until the first
    /// is asked for.
    longest: Vec<Option<usize>>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(lane: &'a Lane) -> Self {
        Cursor {
            lane,
            edges: [None; EDGES],
            next: 0,
            announced: Vec::new(),
            longest: Vec::new(),
        }
    }

    /// A cursor that will be asked about these edges, ascending.
    pub(super) fn over(lane: &'a Lane, times: &[Ns]) -> Self {
        let spots = lane.spots_before(times);
        let announced = times.iter().zip(spots).map(|(&time, spot)| Edge {
            time,
            spot,
            busy: Some(lane.busy_until(time, spot)),
        });
        Cursor {
            announced: announced.collect(),
            ..Cursor::new(lane)
        }
    }

    /// The edge at `time`, looked for if it is not remembered; its place among those that are.
    fn edge(&mut self, time: Ns) -> usize {
        let known = |edge: &Option<Edge>| edge.is_some_and(|e| e.time == time);
        if let Some(at) = self.edges.iter().position(known) {
            return at;
        }
        let at = self.next;
        self.next = (at + 1) % EDGES;
        let announced = self.announced.binary_search_by_key(&time, |e| e.time);
        self.edges[at] = Some(match announced {
            Ok(known) => self.announced[known],
            Err(_) => Edge {
                time,
                spot: self.lane.spot_before(time),
                busy: None,
            },
        });
        at
    }

    /// Where the rows end that start before `time`.
    fn before(&mut self, time: Ns) -> Spot {
        let at = self.edge(time);
        self.edges[at].map_or(Spot::START, |e| e.spot)
    }

    fn busy_until(&mut self, time: Ns) -> Ns {
        let at = self.edge(time);
        let Some(edge) = &mut self.edges[at] else {
            return 0;
        };
        match edge.busy {
            Some(busy) => busy,
            None => *edge.busy.insert(self.lane.busy_until(time, edge.spot)),
        }
    }

    /// See [`Lane::busy`].
    #[must_use]
    pub fn busy(&mut self, window: Span) -> Ns {
        if window.is_empty() {
            return 0;
        }
        self.busy_until(window.end) - self.busy_until(window.start)
    }

    /// See [`Lane::rows`].
    #[must_use]
    pub fn rows(&mut self, window: Span) -> Range<usize> {
        let to = self.before(last_moment(window));
        let first = self.before(window.start);
        self.lane.first_touching(first, window.start)..self.lane.index(to)
    }

    /// See [`Lane::starting`]; a window without length starts what starts at its moment.
    #[must_use]
    pub fn starting(&mut self, window: Span) -> Range<usize> {
        let to = self.before(last_moment(window));
        let from = self.before(window.start);
        self.lane.index(from)..self.lane.index(to)
    }

    /// The place of a window that lies between an announced edge and the next, where there are many rows to a cell.
    fn announced_cell(&self, window: Span) -> Option<usize> {
        let (first, last) = (self.announced.first()?, self.announced.last()?);
        let rows = self.lane.index(last.spot) - self.lane.index(first.spot);
        if rows < MANY * self.announced.len() {
            return None;
        }
        let at = |time: Ns| self.announced.binary_search_by_key(&time, |e| e.time);
        let cell = at(window.start).ok()?;
        let next = self.announced.get(cell + 1)?;
        (next.time == window.end && next.time > window.start).then_some(cell)
    }

    /// The longest row that starts in an announced cell. The first question looks into all cells, one after the other:
    /// nothing of a cell depends on another, so the memory is asked for several at once, and what whoever asks will want
    /// to know of a row is read ahead.
    fn longest_of(&mut self, cell: usize) -> Option<usize> {
        if self.longest.is_empty() {
            let cells = self.announced.windows(2);
            let found = cells.map(|two| self.lane.longest_of(two[0].spot, two[1].spot));
            self.longest = found.collect();
            self.lane.warm(self.longest.iter().copied().flatten());
        }
        self.longest.get(cell).copied().flatten()
    }

    /// See [`Lane::longest`].
    #[must_use]
    pub fn longest(&mut self, window: Span) -> Option<usize> {
        let to = self.before(last_moment(window));
        let inside = self.before(window.start);
        let lane = self.lane;
        let starting = match self.announced_cell(window) {
            Some(cell) => self.longest_of(cell),
            None => lane.longest_of(inside, to),
        };
        let first = lane.first_touching(inside, window.start);
        let running = (first..lane.index(inside))
            .rev()
            .take(STRIDE)
            .find(|&row| lane.span(row).end > window.start);
        let share = |row: usize| lane.span(row).intersect(window).len();
        match (starting, running) {
            (Some(a), Some(b)) => Some(if share(b) > share(a) { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}

/// Where the rows of a window end: an instant holds what starts with it.
fn last_moment(window: Span) -> Ns {
    window.end.max(window.start.saturating_add(1))
}
