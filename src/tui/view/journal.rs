//! Lines that came one after another: the notices, and what a watched program printed.

use super::list::{Cell, List};
use super::{Note, View};
use crate::tui::action::Action;
use crate::tui::draw::prelude::*;
use crate::tui::state::{LineKind, State};
use activity::text::plural;
use activity::units;

/// The view of the log. Its cursor goes along when it is on the last line.
#[derive(Debug, Default)]
pub(super) struct JournalView {
    /// Lines there were.
    count: usize,
}

impl View for JournalView {
    fn offers(&self, _action: Action) -> bool {
        false
    }

    fn open(&mut self, list: &mut List, state: &State) {
        self.count = state.messages.log.lines.len();
        list.cursor = self.count.saturating_sub(1);
    }

    fn prepare(&mut self, list: &mut List, state: &State, area: Rect) {
        let journal = &state.messages.log;
        let all = &journal.lines;
        let found: Option<Vec<usize>> = list.filter.is_on().then(|| {
            let is_shown = |i: &usize| list.filter.lets([&all[*i].text]);
            (0..all.len()).filter(is_shown).collect()
        });
        let count = found.as_ref().map_or(all.len(), Vec::len);
        let line = |i: usize| match &found {
            Some(found) => all.get(*found.get(i)?),
            None => all.get(i),
        };
        list.filter.count(count, all.len());
        list.say(false, "no line has this", "nothing so far");
        if list.cursor + 1 >= self.count {
            list.cursor = count.saturating_sub(1);
        }
        self.count = count;
        list.heading = match journal.dropped {
            0 => Vec::new(),
            n => {
                let text = format!("{} older lines are not kept", units::count(n));
                vec![Cell::rest(text, Role::Dim)]
            }
        };
        list.fill(area, count, |i| {
            let Some(line) = line(i) else {
                return Vec::new();
            };
            let role = match line.kind {
                LineKind::Plain => Role::Text,
                LineKind::Warning => Role::Warning,
                LineKind::Error => Role::Bad,
            };
            let at = Cell::right(line.at.format("%H:%M:%S").to_string(), 9, Role::Dim);
            vec![at, Cell::rest(&line.text, role)]
        });
        let line = line(list.cursor);
        list.in_full = Some(line.map_or_else(String::new, |line| line.text.clone()));
    }

    fn note(&self, state: &State) -> Option<Note> {
        let warnings = state.messages.log.count(LineKind::Warning);
        let text = format!("⚠ {}", plural(warnings as u64, "warning"));
        (warnings > 0).then(|| Note::new(text, Role::Warning))
    }
}
