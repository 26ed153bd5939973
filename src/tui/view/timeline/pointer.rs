//! What the mouse does on the timeline.

use super::cell::RowContent;
use super::{TimelineView, navigation};
use crate::tui::state::{Item, RowKind, State};
use crate::tui::time_scale::TimeScale;
use activity::Span;

impl TimelineView {
    /// Selects what is under the mouse; a title folds what stands under it.
    pub(super) fn click(&self, state: &mut State, x: u16, y: u16) {
        let line = self
            .lines
            .iter()
            .find(|line| (line.area.y..line.area.bottom()).contains(&y));
        let Some(line) = line else {
            return;
        };
        if let RowContent::Title(title) = &line.shown {
            state.fold_title(title);
            return;
        }
        let Some(row) = state.rows.list.get(line.row) else {
            return;
        };
        state.focus.selection.row = Some(row.kind);
        if let RowKind::Folded(_) = row.kind {
            state.fold_lanes();
            return;
        }
        match self.layout.time_at(x, state.focus.camera.viewport.window) {
            Some(time) => state
                .focus
                .selection
                .select_near(&state.model.run.trace, time),
            None => state.focus.selection.item = Item::None,
        }
        state.focus.camera.is_following = false;
    }

    /// Puts on screen what the mouse is on over the axis: a step, or as much as is in view around a moment.
    pub(super) fn go_to(&self, state: &mut State, x: u16) {
        match (self.map.time_at(&self.layout, x), state.steps()) {
            (Some(time), Some(steps)) => state.show_step(steps.at(time)),
            (Some(time), None) => {
                let viewport = &mut state.focus.camera.viewport;
                let start = time - viewport.window.len() / 2;
                viewport.show(Span::new(start, start + viewport.window.len()));
            }
            (None, _) => {}
        }
        state.focus.camera.is_following = false;
    }

    /// Measures what lies between two columns.
    pub(super) fn measure(&self, state: &mut State, from: u16, to: u16) {
        let plot = self.layout.axis;
        if plot.is_empty() {
            return;
        }
        let scale = TimeScale::new(state.focus.camera.viewport.window, plot.width);
        let (from, to) = (from.min(to), from.max(to));
        let column = |x: u16| x.saturating_sub(plot.x).min(plot.width - 1);
        let span = Span::new(scale.cell(column(from)).start, scale.cell(column(to)).end);
        state.focus.marks.measure(span, state.focus.selection);
        state.focus.camera.is_following = false;
    }

    /// Moves the window along with the mouse.
    pub(super) fn drag(&self, state: &mut State, columns: i16) {
        let plot = self.layout.plot_columns().max(1);
        let share = -f64::from(columns) / f64::from(plot);
        state.focus.camera.viewport.pan(share);
        state.focus.camera.is_following = false;
    }

    /// Zooms around the mouse.
    pub(super) fn wheel(&self, state: &mut State, x: u16, is_in: bool) {
        let window = state.focus.camera.viewport.window;
        let at = self.layout.time_at(x, window);
        let fixed = at.unwrap_or(window.start + window.len() / 2);
        let factor = if is_in {
            navigation::ZOOM
        } else {
            1.0 / navigation::ZOOM
        };
        state.focus.camera.viewport.zoom(fixed, factor);
        state.focus.camera.is_following = false;
    }
}
