//! The search on the timeline: what is looked for, and where it is.
//!
//! Going through all records is a [`Question`], so keys answer meanwhile. It is of the whole timeline; what lies
//! in the pass on screen and on its rows is told by searching in the answer.

mod hits;
mod jump;
mod needle;

pub use hits::{Hit, Hits};
pub use needle::Needle;

use self::hits::Position;
use super::State;
use super::analyst::{Analyst, Question};
use super::row::Row;
use super::run::Run;
use super::scope::Scope;
use super::selection::Item;
use activity::Span;
use trace::LaneId;

/// What is looked for, and the last answer.
#[derive(Debug, Default)]
pub struct Search {
    /// What is looked for, as it was typed.
    pub text: String,
    needle: Option<Needle>,
    /// Goes up with every change of what is looked for.
    asked: u32,
    question: Question<u32, Hits>,
    /// That the first hit is to be gone to as soon as it is known.
    pub wants_first: bool,
}

/// How many there are, and where the selected one stands among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records on the rows of the timeline, in scope.
    pub records: usize,
    /// Which of them is selected, from 1.
    pub at: Option<usize>,
    /// Rows that have the name themselves.
    pub lanes: usize,
    /// Records on lanes without a row, in scope.
    pub hidden: usize,
    /// Records in the whole run.
    pub whole: usize,
}

impl Search {
    /// Looks for something else; nothing when the text is empty.
    pub fn set(&mut self, text: &str) {
        if self.text != text {
            text.clone_into(&mut self.text);
            self.needle = Needle::new(text);
            self.asked += 1;
            self.wants_first = false;
        }
    }

    /// Whether something is looked for.
    pub fn is_on(&self) -> bool {
        self.needle.is_some()
    }

    /// What is looked for.
    pub fn needle(&self) -> Option<&Needle> {
        self.needle.as_ref()
    }

    /// Changes with everything that it shows.
    pub fn version(&self) -> (u32, u64) {
        (self.asked, self.question.version)
    }

    /// Takes an answer that has come, and asks again when something else is looked for or records came.
    pub fn prepare(&mut self, analyst: &Analyst, run: &Run) {
        self.question.light().poll();
        let Some(needle) = self.needle.clone() else {
            return;
        };
        self.question
            .ask(analyst, run, self.asked, move |trace, stop| {
                Hits::of(trace, &needle, stop)
            });
    }

    /// What was found of just this, as far as it is known.
    pub fn found(&self, run: &Run) -> Option<&Hits> {
        let found = self.question.answer_to(run, self.asked);
        found.filter(|_| self.is_on())
    }

    /// What is drawn as found: the last answer, maybe of the word as it was a key ago.
    pub fn lit(&self, run: &Run) -> Option<&Hits> {
        self.question.last(run).filter(|_| self.is_on())
    }

    /// How many there are; `None` until it is known.
    pub fn tally(&self, state: &State) -> Option<Tally> {
        let (run, rows) = (&state.model.run, &state.rows.list);
        let (found, needle) = (self.found(run)?, self.needle.as_ref()?);
        let (scope, lanes) = (scope(state), lanes(rows));
        let all = 0..run.trace.lanes().len();
        let count = |lane: LaneId| found.count(&run.trace, lane, scope);
        let records = lanes.iter().map(|&lane| count(lane)).sum();
        let at = selected(state, &lanes).and_then(|(hit, position)| {
            let is_one = found.of_lane(hit.0).binary_search(&(hit.1 as u32)).is_ok();
            is_one.then(|| found.count_before(&run.trace, &lanes, scope, position) + 1)
        });
        Some(Tally {
            records,
            at,
            lanes: rows.iter().filter(|row| needle.is_in(&row.label)).count(),
            hidden: all.clone().map(count).sum::<usize>() - records,
            whole: all.map(|lane| found.of_lane(lane).len()).sum(),
        })
    }

    /// The hit after (or before) what is selected, or the cursor; behind the last one comes the first. The second
    /// value says that it went round.
    pub fn step(&self, state: &State, is_forwards: bool) -> Option<(Hit, bool)> {
        let (run, selection) = (&state.model.run, &state.focus.selection);
        let found = self.found(run)?;
        let (scope, lanes) = (scope(state), lanes(&state.rows.list));
        let from = match selected(state, &lanes) {
            Some((_, position)) => position,
            None => Position::before(match selection.item {
                Item::Gap(gap) => gap.start,
                _ if selection.row.is_some() => selection.cursor,
                _ => state.focus.camera.viewport.window.start,
            }),
        };
        let step = |from| found.step(&run.trace, &lanes, scope, from, is_forwards);
        if let Some(hit) = step(from) {
            return Some((hit, false));
        }
        let end = if is_forwards { scope.start } else { scope.end };
        step(Position::before(end)).map(|hit| (hit, true))
    }
}

/// The stretch that hits are counted in.
fn scope(state: &State) -> Span {
    let scope = state.scope_span().unwrap_or_default();
    match state.focus.camera.scope {
        // What takes no time and stands at the very end belongs to it.
        Scope::Whole => Span::new(scope.start, scope.end.saturating_add(1)),
        Scope::Pass(_) => scope,
    }
}

/// The lanes of the rows, each once, in their order.
fn lanes(rows: &[Row]) -> Vec<LaneId> {
    let mut lanes: Vec<LaneId> = Vec::new();
    for lane in rows.iter().filter_map(|row| row.kind.lane()) {
        if !lanes.contains(&lane) {
            lanes.push(lane);
        }
    }
    lanes
}

/// The selected record, and where it stands.
fn selected(state: &State, lanes: &[LaneId]) -> Option<(Hit, Position)> {
    let trace = &state.model.run.trace;
    let hit = state.focus.selection.record(trace)?;
    let order = lanes.iter().position(|known| *known == hit.0)?;
    Some((hit, Position::of(trace, hit, order)))
}
