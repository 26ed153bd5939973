//! Jumps leave a trail, on which one goes back and forward.

use super::{App, Effect};
use crate::tui::action::Action;

/// Whether an action leads to another place, rather than a step further.
fn is_jump(action: Action) -> bool {
    matches!(
        action,
        Action::Gap(_)
            | Action::LongestGap
            | Action::ZoomToSelection
            | Action::Hit(_)
            | Action::OtherEnd
            | Action::Choose
            | Action::Variant(_)
            | Action::Point(_)
            | Action::Step(_)
            | Action::ToStep(_)
            | Action::WholeRun
    )
}

impl App {
    /// Does what a key or the mouse asks for. What the shell must do comes back.
    pub fn act(&mut self, action: Action) -> Option<Effect> {
        // Actions see what the next frame would show.
        self.prepare();
        let action = self.frame.clicked(action).unwrap_or(action);
        let before = self.state.spot(self.views.current);
        let was_picking = self.is_picking();
        let effect = self.perform(action);
        let after = self.state.spot(self.views.current);
        if is_jump(action) && before != after && !was_picking {
            self.state.focus.trail.leave(before);
        }
        effect
    }

    /// Goes back to where the last jump came from, or forward again.
    pub(super) fn step_back(&mut self, is_back: bool) {
        let here = self.state.spot(self.views.current);
        let Some(spot) = self.state.focus.trail.step(here, is_back) else {
            return;
        };
        self.state.return_to(spot);
        self.views.return_to(spot.view);
    }
}
