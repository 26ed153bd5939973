//! What whoever draws needs: a part of the screen, a pen, and colours.

pub use super::pen;
pub use crate::tui::theme::{Role, Theme};
pub use ratatui::buffer::Buffer;
pub use ratatui::layout::Rect;
