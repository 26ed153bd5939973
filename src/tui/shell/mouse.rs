//! What the mouse asks for.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use crate::tui::action::Action;

/// The button's state between two events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mouse {
    drag: Option<Pressed>,
}

/// A button that is held down.
#[derive(Clone, Copy, Debug)]
struct Pressed {
    /// Where it was pressed.
    from: (u16, u16),
    /// The column where it was last.
    last: u16,
    /// Whether it moved since.
    has_moved: bool,
}

impl Mouse {
    /// The wheel zooms, a press that moves drags, a press that does not selects.
    pub(super) fn action(&mut self, mouse: MouseEvent) -> Option<Action> {
        let (x, y) = (mouse.column, mouse.row);
        match mouse.kind {
            MouseEventKind::ScrollUp => Some(Action::Wheel { x, y, is_in: true }),
            MouseEventKind::ScrollDown => Some(Action::Wheel { x, y, is_in: false }),
            MouseEventKind::Down(MouseButton::Left) => {
                self.drag = Some(Pressed {
                    from: (x, y),
                    last: x,
                    has_moved: false,
                });
                None
            }
            MouseEventKind::Drag(MouseButton::Left) => {
                let pressed = self.drag.as_mut()?;
                let columns = i32::from(x) - i32::from(pressed.last);
                if columns == 0 {
                    return None;
                }
                (pressed.last, pressed.has_moved) = (x, true);
                Some(Action::Drag {
                    from: pressed.from,
                    x,
                    columns: columns as i16,
                })
            }
            MouseEventKind::Up(MouseButton::Left) => match self.drag.take() {
                Some(pressed) if !pressed.has_moved => Some(Action::Click { x, y }),
                _ => None,
            },
            _ => None,
        }
    }
}
