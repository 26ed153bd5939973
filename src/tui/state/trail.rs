//! Where one came from: the places that jumps led away from.

use std::collections::VecDeque;

use super::{Scope, Selection, State};
use activity::Span;

/// Places that are remembered on either side.
const KEPT: usize = 64;

/// What was looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    /// Which view: index into the table of views.
    pub view: usize,
    pub scope: Scope,
    pub window: Span,
    pub selection: Selection,
}

/// The places before this one, and behind it those that were gone back from.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    before: VecDeque<Spot>,
    behind: VecDeque<Spot>,
}

impl Trail {
    /// A jump leads away from a place.
    pub fn leave(&mut self, from: Spot) {
        if self.before.len() == KEPT {
            self.before.pop_front();
        }
        self.before.push_back(from);
        self.behind.clear();
    }

    /// Goes back from `here`, or forward again. `None` where there is nothing.
    pub fn step(&mut self, here: Spot, is_back: bool) -> Option<Spot> {
        let (from, to) = match is_back {
            true => (&mut self.before, &mut self.behind),
            false => (&mut self.behind, &mut self.before),
        };
        let spot = from.pop_back()?;
        to.push_back(here);
        Some(spot)
    }

    /// Whether one can go there.
    pub fn has(&self, is_back: bool) -> bool {
        match is_back {
            true => !self.before.is_empty(),
            false => !self.behind.is_empty(),
        }
    }
}

impl State {
    /// What is looked at in a view.
    pub fn spot(&self, view: usize) -> Spot {
        Spot {
            view,
            scope: self.focus.camera.scope,
            window: self.focus.camera.viewport.window,
            selection: self.focus.selection,
        }
    }

    /// Looks at it again.
    pub fn return_to(&mut self, spot: Spot) {
        if self.focus.camera.scope != spot.scope {
            self.show(spot.scope);
        }
        self.focus.camera.is_following = false;
        self.focus.selection = spot.selection;
        self.focus.camera.viewport.show(spot.window);
        // Late records may have moved what was selected.
        let trace = &self.model.run.trace;
        self.focus.selection.settle(trace, &self.rows.list);
    }
}
