//! The line under the header that stands in every view until what it says is mended.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::pen;
use crate::tui::state::troubles::{Trouble, Weight};
use crate::tui::theme::{Role, Theme};

/// The worst of what is wrong, ready to be drawn.
#[derive(Clone, Debug, Default)]
pub struct Alert {
    text: String,
    /// What else is wrong.
    more: usize,
}

impl Alert {
    /// Prepares it.
    pub fn new(troubles: &[Trouble]) -> Self {
        let alarming = troubles.iter().filter(|t| t.weight < Weight::Note);
        let mut alarming = alarming.map(|t| t.text.clone());
        Alert {
            text: alarming.next().unwrap_or_default(),
            more: alarming.count(),
        }
    }

    pub fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        if area.is_empty() {
            return;
        }
        let more = match self.more {
            0 => " ! whole".to_owned(),
            n => format!(" +{n} more: !"),
        };
        let width = usize::from(area.width);
        let x = pen::text(buf, area, 1, "✗", theme.bold(Role::Bad));
        let room = width.saturating_sub(usize::from(x) + 2);
        // The key is only needed for what is not here.
        let is_cut = pen::width(&self.text) > room || self.more > 0;
        let for_more = if is_cut { pen::width(&more) } else { 0 };
        let text = pen::cut(&self.text, room.saturating_sub(for_more));
        let x = pen::text(buf, area, x + 1, &text, theme.bold(Role::Bad));
        if is_cut {
            pen::text(buf, area, x, &more, theme.bold(Role::Accent));
        }
    }
}
