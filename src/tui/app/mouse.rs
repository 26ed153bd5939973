//! What the mouse does: on the timeline, and on lists.

use super::act::ZOOM;
use super::rows::RowKind;
use super::selection::Item;
use super::{App, Effect};
use crate::tui::action::View;
use crate::tui::draw::layout::{Layout, Place};

/// Lines that a turn of the wheel moves a list's cursor.
const WHEEL: i32 = 3;

impl App {
    /// On the timeline, selects what is under the mouse. On a list, puts the cursor there; where it
    /// is already, takes the line.
    pub(super) fn click(&mut self, x: u16, y: u16) -> Option<Effect> {
        if self.is_on_timeline() {
            self.click_row(x, y);
            return None;
        }
        let line = self.list_line(y)?;
        if line == self.cursor {
            return self.choose();
        }
        self.cursor = line;
        None
    }

    /// On the timeline, moves the window along with the mouse.
    pub(super) fn drag(&mut self, columns: i16) {
        if self.is_on_timeline() {
            let plot = Layout::new(self).plot_columns().max(1);
            self.viewport.pan(-f64::from(columns) / f64::from(plot));
            self.is_following = false;
        }
    }

    /// On the timeline, zooms around the mouse; on a list, moves the cursor.
    pub(super) fn wheel(&mut self, x: u16, is_in: bool) {
        if !self.is_on_timeline() {
            self.step(if is_in { -WHEEL } else { WHEEL });
            return;
        }
        let window = self.viewport.window;
        let fixed = Layout::new(self)
            .time_at(x, window)
            .unwrap_or(window.start + window.len() / 2);
        self.viewport
            .zoom(fixed, if is_in { ZOOM } else { 1.0 / ZOOM });
        self.is_following = false;
    }

    fn is_on_timeline(&self) -> bool {
        self.view == View::Timeline && !self.is_picking()
    }

    fn click_row(&mut self, x: u16, y: u16) {
        let layout = Layout::new(self);
        if let Place::Row(i) = layout.place(self, y)
            && let Some(row) = self.rows.get(i)
            && row.kind != RowKind::Title
        {
            self.selection.row = Some(row.kind);
            match layout.time_at(x, self.viewport.window) {
                Some(time) => self.selection.select_near(&self.trace, time),
                None => self.selection.item = Item::None,
            }
            self.is_following = false;
        }
    }

    /// The line of the list at line `y` of the screen.
    fn list_line(&self, y: u16) -> Option<usize> {
        let area = Layout::new(self).middle();
        let has_heading = match self.view {
            _ if self.is_picking() => true,
            View::Table | View::Compare => true,
            View::Log => self.log.dropped() > 0,
            View::Output => self.output.dropped() > 0,
            View::Timeline | View::Findings | View::Sweep => false,
        };
        let top = area.y + u16::from(has_heading);
        let room = usize::from(area.bottom().saturating_sub(top));
        let count = if self.is_picking() {
            self.choices.len()
        } else {
            self.list_len()
        };
        let line = usize::from(y.checked_sub(top)?);
        // The list is scrolled so that the cursor is on its last line at most.
        let first = (self.cursor + 1).saturating_sub(room);
        (line < room && first + line < count).then_some(first + line)
    }
}
