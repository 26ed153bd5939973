//! A trial.

use ratatui::layout::Rect;

use super::View;
use super::list::List;
use crate::tui::state::State;

/// A trial.
#[derive(Debug, Default)]
pub(super) struct TrialView;

impl View for TrialView {
    fn prepare(&mut self, _list: &mut List, _state: &State, _area: Rect) {}
}
