//! The line under the header that stands in every view until what it says is mended.

use crate::tui::draw::prelude::*;
use crate::tui::state::troubles::{Trouble, Weight};

/// Draws the worst of what is wrong, and how much else is.
pub fn draw(troubles: &[Trouble], theme: &Theme, area: Rect, buf: &mut Buffer) {
    let mut alarming = troubles.iter().filter(|t| t.weight < Weight::Note);
    let Some(worst) = alarming.next().filter(|_| !area.is_empty()) else {
        return;
    };
    let others = alarming.count();
    let more = match others {
        0 => " ! whole".to_owned(),
        n => format!(" +{n} more: !"),
    };
    let x = pen::text(buf, area, 1, "✗", theme.bold(Role::Bad));
    let room = usize::from(area.width.saturating_sub(x + 2));
    // The key is only needed for what is not here.
    let is_cut = pen::width(&worst.text) > room || others > 0;
    let for_more = if is_cut { pen::width(&more) } else { 0 };
    let text = pen::cut(&worst.text, room.saturating_sub(for_more));
    let x = pen::text(buf, area, x + 1, &text, theme.bold(Role::Bad));
    if is_cut {
        pen::text(buf, area, x, &more, theme.bold(Role::Accent));
    }
}
