//! Bringing what is derived up to date, and where the window goes by itself.

use super::rows::RowKind;
use super::selection::Selection;
use super::{App, Scope, rows};
use crate::activity::{Ns, Span};
use crate::analysis::memory::MemoryUse;

/// How much of a long run is on screen while following it.
const FOLLOWED: Ns = 5_000_000_000;

impl App {
    /// Brings passes, rows, scope and window up to date with the timeline. To be called before a frame.
    pub fn prepare(&mut self) {
        let revision = self.trace.revision();
        if self.prepared == Some((revision, self.scope)) && !self.needs_choice {
            self.find();
            return;
        }
        if self.prepared.map(|(seen, _)| seen) != Some(revision) || self.needs_choice {
            let running = self.is_running();
            self.passes
                .update(&self.trace, self.plan.as_deref(), running);
            self.keep_scope();
        }
        if self.needs_choice {
            self.needs_choice = false;
            self.is_following = false;
            self.choose_variant();
        } else if self.is_following && !self.is_paused {
            self.follow();
        }
        self.settle();
        self.find();
    }

    /// Rows, bounds and selection for the scope as it is now.
    fn settle(&mut self) {
        let scope = self.scope_span().unwrap_or_default();
        self.viewport.bound(self.bounds());
        let is_whole = self.scope == Scope::Whole;
        self.rows = rows::rows(&self.trace, scope, is_whole);
        self.memory = (0..self.trace.devices().len())
            .map(|device| {
                let kind = RowKind::Memory(device);
                let is_shown = self.rows.iter().any(|row| row.kind == kind);
                if is_shown {
                    MemoryUse::of(&self.trace, Some(device))
                } else {
                    MemoryUse::default()
                }
            })
            .collect();
        self.selection.settle(&self.trace);
        if self.selection.row.is_some() && self.selection.position(&self.rows).is_none() {
            self.selection = Selection::default();
        }
        self.first_row = self.first_row.min(self.rows.len().saturating_sub(1));
        self.prepared = Some((self.trace.revision(), self.scope));
    }

    fn keep_scope(&mut self) {
        if let Scope::Pass(i) = self.scope
            && i >= self.passes.list.len()
        {
            self.scope = match self.passes.list.len() {
                0 => Scope::Whole,
                n => Scope::Pass(n - 1),
            };
        }
    }

    /// Goes along with the newest data: with the latest pass, else with the last seconds.
    fn follow(&mut self) {
        if self.passes.list.is_empty() {
            self.scope = Scope::Whole;
            self.viewport.bound(self.bounds());
            let bounds = self.viewport.bounds;
            let length = bounds.len().min(FOLLOWED);
            self.viewport
                .show(Span::new(bounds.end - length, bounds.end));
        } else {
            self.scope = Scope::Pass(self.passes.list.len() - 1);
            self.fit();
        }
    }

    /// After the end: the variant that was chosen by hand, else the last one.
    fn choose_variant(&mut self) {
        let count = self.passes.variants.len();
        let chosen = self.chosen.as_ref().and_then(|label| {
            self.passes
                .variants
                .iter()
                .position(|v| v.label() == *label)
        });
        let pass = chosen
            .or(count.checked_sub(1))
            .and_then(|variant| self.passes.representative(variant));
        self.scope = pass.map_or(Scope::Whole, Scope::Pass);
        self.fit();
    }

    /// Puts a pass on screen.
    pub(super) fn show_pass(&mut self, pass: usize) {
        self.is_following = false;
        self.scope = Scope::Pass(pass);
        self.selection = Selection::default();
        self.fit();
        self.settle();
    }

    /// Puts the whole run on screen.
    pub(super) fn show_whole(&mut self) {
        self.is_following = false;
        self.scope = Scope::Whole;
        self.selection = Selection::default();
        self.fit();
        self.settle();
    }

    /// Shows all of the scope.
    pub(super) fn fit(&mut self) {
        self.viewport.bound(self.bounds());
        self.viewport.show(self.bounds());
    }

    /// The window that shows the operations in scope alone, with a little room; all of the scope when
    /// there is none.
    pub(super) fn operations_window(&self) -> Span {
        let scope = self.scope_span().unwrap_or_default();
        let operations = match self.scope {
            Scope::Whole => None,
            Scope::Pass(i) => self.passes.list.get(i).and_then(|p| p.operations),
        };
        match operations {
            Some(operations) => {
                let room = operations.len() / 25;
                Span::new(operations.start - room, operations.end + room / 2).intersect(scope)
            }
            None => scope,
        }
    }

    /// The window cannot leave the scope.
    fn bounds(&self) -> Span {
        self.scope_span().unwrap_or_default()
    }
}
