//! What the mouse asks for.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::tui::action::Action;

/// The button's state between two events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mouse {
    drag: Option<Press>,
}

#[derive(Clone, Copy, Debug)]
struct Press {
    from: (u16, u16),
    /// The column where it was last.
    last: u16,
    has_moved: bool,
}

impl Mouse {
    /// The wheel zooms, a press that moves drags, a press that does not selects.
    pub(super) fn action(&mut self, mouse: MouseEvent) -> Option<Action> {
        let (x, y) = (mouse.column, mouse.row);
        let is_shifted = mouse.modifiers.contains(KeyModifiers::SHIFT);
        match mouse.kind {
            // Sideways by a wheel that can, or by any one with shift.
            MouseEventKind::ScrollLeft => Some(Action::Pan(-1)),
            MouseEventKind::ScrollRight => Some(Action::Pan(1)),
            MouseEventKind::ScrollUp if is_shifted => Some(Action::Pan(-1)),
            MouseEventKind::ScrollDown if is_shifted => Some(Action::Pan(1)),
            MouseEventKind::ScrollUp => Some(Action::Wheel { x, y, is_in: true }),
            MouseEventKind::ScrollDown => Some(Action::Wheel { x, y, is_in: false }),
            MouseEventKind::Down(MouseButton::Left) => {
                self.drag = Some(Press {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_zoom_and_sideways_they_pan() {
        let turn = |kind, modifiers| {
            Mouse::default().action(MouseEvent {
                kind,
                column: 3,
                row: 4,
                modifiers,
            })
        };
        let (none, shift) = (KeyModifiers::NONE, KeyModifiers::SHIFT);
        let (x, y) = (3, 4);
        let cases = [
            (
                MouseEventKind::ScrollUp,
                none,
                Action::Wheel { x, y, is_in: true },
            ),
            (MouseEventKind::ScrollUp, shift, Action::Pan(-1)),
            (MouseEventKind::ScrollDown, shift, Action::Pan(1)),
            (MouseEventKind::ScrollLeft, none, Action::Pan(-1)),
            (MouseEventKind::ScrollRight, none, Action::Pan(1)),
        ];
        for (kind, modifiers, action) in cases {
            assert_eq!(
                turn(kind, modifiers),
                Some(action),
                "{kind:?} {modifiers:?}"
            );
        }
    }
}
