//! Lines that came one after another: what a watched program printed, and the notices.

use ratatui::layout::Rect;

use super::list::{Cell, List};
use super::{Note, View};
use crate::tui::action::Action;
use crate::tui::state::{Journal, LineKind, Messages, State};
use crate::tui::theme::Role;
use activity::units;

/// What stands there instead of lines.
const EMPTY: &str = "nothing so far";

/// A view of a journal. Its cursor goes along when it is on the last line.
#[derive(Debug)]
pub(super) struct JournalView {
    journal: fn(&Messages) -> &Journal,
    /// Whether it says in other views that there are warnings, and whether it is worth a tab when empty.
    is_log: bool,
    list: List,
    /// Lines there were.
    count: usize,
    warnings: usize,
}

/// What a watched program printed.
#[must_use]
pub(super) fn output() -> JournalView {
    JournalView::new(|messages| &messages.output, false)
}

/// Notices.
#[must_use]
pub(super) fn log() -> JournalView {
    JournalView::new(|messages| &messages.log, true)
}

impl JournalView {
    fn new(journal: fn(&Messages) -> &Journal, is_log: bool) -> Self {
        JournalView {
            journal,
            is_log,
            list: List::new(EMPTY),
            count: 0,
            warnings: 0,
        }
    }
}

impl View for JournalView {
    fn offers(&self, _action: Action) -> bool {
        false
    }

    fn has_content(&self, state: &State) -> bool {
        self.is_log || !(self.journal)(&state.messages).lines().is_empty()
    }

    fn open(&mut self, state: &State) {
        self.count = (self.journal)(&state.messages).lines().len();
        self.list.cursor = self.count.saturating_sub(1);
    }

    fn prepare(&mut self, state: &State, area: Rect, is_on_screen: bool) {
        let journal = (self.journal)(&state.messages);
        self.warnings = journal.count(LineKind::Warning);
        if !is_on_screen {
            return;
        }
        let all = journal.lines();
        let found: Option<Vec<usize>> = self.list.filter.is_on().then(|| {
            let is_shown = |i: &usize| self.list.filter.lets([&all[*i].text]);
            (0..all.len()).filter(is_shown).collect()
        });
        let count = found.as_ref().map_or(all.len(), Vec::len);
        let line = |i: usize| {
            all.get(
                found
                    .as_ref()
                    .map_or(Some(i), |found| found.get(i).copied())?,
            )
        };
        self.list.filter.count(count, all.len());
        self.list.empty = if self.list.filter.is_on() {
            "no line has this"
        } else {
            EMPTY
        };
        if self.list.cursor + 1 >= self.count {
            self.list.cursor = count.saturating_sub(1);
        }
        self.count = count;
        self.list.heading = match journal.dropped() {
            0 => Vec::new(),
            n => {
                let text = format!("{} older lines are not kept", units::count(n));
                vec![Cell::rest(text, Role::Dim)]
            }
        };
        self.list.fill(area, count, |i| {
            let Some(line) = line(i) else {
                return Vec::new();
            };
            let role = match line.kind {
                LineKind::Plain => Role::Text,
                LineKind::Warning => Role::Warning,
                LineKind::Error => Role::Bad,
            };
            let at = line.at.as_secs_f64();
            vec![
                Cell::right(format!("{at:.2} s"), 9, Role::Dim),
                Cell::rest(&line.text, role),
            ]
        });
        let line = line(self.list.cursor);
        self.list.in_full = Some(line.map_or_else(String::new, |line| line.text.clone()));
    }

    fn list(&self) -> Option<&List> {
        Some(&self.list)
    }

    fn list_mut(&mut self) -> Option<&mut List> {
        Some(&mut self.list)
    }

    fn note(&self) -> Option<Note> {
        if !self.is_log || self.warnings == 0 {
            return None;
        }
        let word = if self.warnings == 1 {
            "warning"
        } else {
            "warnings"
        };
        Some(Note {
            text: format!("⚠ {} {word}", self.warnings),
            role: Role::Warning,
        })
    }
}
