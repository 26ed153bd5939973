//! What the mouse asks for.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use crate::tui::action::Action;

/// The button's state between two events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mouse {
    /// Where it was last while pressed, and whether it moved since the press.
    drag: Option<(u16, bool)>,
}

impl Mouse {
    /// The wheel zooms, a press that moves drags, a press that does not selects.
    pub(super) fn action(&mut self, mouse: MouseEvent) -> Option<Action> {
        let (x, y) = (mouse.column, mouse.row);
        match mouse.kind {
            MouseEventKind::ScrollUp => Some(Action::Wheel { x, y, is_in: true }),
            MouseEventKind::ScrollDown => Some(Action::Wheel { x, y, is_in: false }),
            MouseEventKind::Down(MouseButton::Left) => {
                self.drag = Some((x, false));
                None
            }
            MouseEventKind::Drag(MouseButton::Left) => {
                let (from, _) = self.drag?;
                let columns = i32::from(x) - i32::from(from);
                if columns == 0 {
                    return None;
                }
                self.drag = Some((x, true));
                Some(Action::Drag {
                    columns: columns as i16,
                })
            }
            MouseEventKind::Up(MouseButton::Left) => match self.drag.take() {
                Some((_, false)) => Some(Action::Click { x, y }),
                _ => None,
            },
            _ => None,
        }
    }
}
