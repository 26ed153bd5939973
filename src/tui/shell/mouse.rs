//! What the mouse asks for.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::tui::action::{Action, Context};
use crate::tui::keys::resolve;

/// The button's state between two events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mouse {
    drag: Option<Press>,
    /// When and where it clicked last.
    clicked: Option<(Instant, (u16, u16))>,
}

/// A second click at the same place within this time is a double click.
const DOUBLE: Duration = Duration::from_millis(400);

#[derive(Clone, Copy, Debug)]
struct Press {
    from: (u16, u16),
    /// The column where it was last.
    last: u16,
    has_moved: bool,
}

impl Mouse {
    /// The wheel zooms, a press that moves drags, a press that does not selects. Twice is as the key that goes there.
    pub(super) fn action(&mut self, mouse: MouseEvent, context: Context) -> Option<Action> {
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
                Some(pressed) if !pressed.has_moved => {
                    let before = self.clicked.replace((Instant::now(), (x, y)));
                    let is_double =
                        before.is_some_and(|(at, place)| place == (x, y) && at.elapsed() < DOUBLE);
                    if is_double {
                        self.clicked = None;
                        return resolve(KeyCode::Enter.into(), context);
                    }
                    Some(Action::Click { x, y })
                }
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
            let event = MouseEvent {
                kind,
                column: 3,
                row: 4,
                modifiers,
            };
            Mouse::default().action(event, Context::Timeline)
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

    #[test]
    fn a_double_click_goes_where_enter_goes() {
        let mut mouse = Mouse::default();
        let mut click = |context, column| {
            let event = |kind| MouseEvent {
                kind,
                column,
                row: 4,
                modifiers: KeyModifiers::NONE,
            };
            let (down, up) = (MouseEventKind::Down, MouseEventKind::Up);
            mouse.action(event(down(MouseButton::Left)), context);
            mouse.action(event(up(MouseButton::Left)), context)
        };
        let once = |x| Some(Action::Click { x, y: 4 });
        assert_eq!(click(Context::Timeline, 3), once(3));
        assert_eq!(click(Context::Timeline, 9), once(9), "elsewhere");
        assert_eq!(click(Context::Timeline, 9), Some(Action::ZoomToSelection));
        assert_eq!(click(Context::List, 9), once(9), "the third is a first");
        assert_eq!(click(Context::List, 9), Some(Action::Choose));
    }
}
