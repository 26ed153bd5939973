//! The line from a host call to the operation that it launched.

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use crate::tui::theme::{Role, Theme};

/// Where the ends are, as column and line of the screen, and on which line between them the line may run across.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLine {
    /// The call.
    pub from: (u16, u16),
    /// The operation.
    pub to: (u16, u16),
    /// A rule between the two.
    pub across: Option<u16>,
}

impl LinkLine {
    /// Draws it behind everything: only on cells that are empty, and on rules.
    pub fn draw(&self, theme: &Theme, buf: &mut Buffer) {
        let ((x, y), (to_x, to_y)) = (self.from, self.to);
        let is_up = to_y < y;
        let across = self.across.unwrap_or(if is_up { y - 1 } else { y + 1 });
        let mut put = |x: u16, y: u16, glyph: char| {
            if let Some(cell) = buf.cell_mut((x, y))
                && is_free(cell)
            {
                cell.set_char(glyph).set_style(theme.bold(Role::Accent));
            }
        };
        // The head first: what follows leaves it alone.
        let (head, at) = if is_up {
            ('▴', to_y + 1)
        } else {
            ('▾', to_y - 1)
        };
        put(to_x, at, head);
        let between = |a: u16, b: u16| (a.min(b) + 1)..a.max(b);
        for y in between(y, across) {
            put(x, y, '│');
        }
        for y in between(across, to_y) {
            put(to_x, y, '│');
        }
        if x == to_x {
            put(x, across, '│');
        } else {
            for x in between(x, to_x) {
                put(x, across, '─');
            }
            // It comes from the call's side, goes across, and on to the operation's.
            let (first, second) = match (is_up, to_x > x) {
                (true, true) => ('╭', '╯'),
                (true, false) => ('╮', '╰'),
                (false, true) => ('╰', '╮'),
                (false, false) => ('╯', '╭'),
            };
            put(x, across, first);
            put(to_x, across, second);
        }
    }
}

/// Whether nothing stands in a cell but maybe a rule.
fn is_free(cell: &Cell) -> bool {
    let is_blank = cell.symbol() == " " || cell.symbol() == "─";
    is_blank && cell.bg == Color::Reset && !cell.modifier.contains(Modifier::REVERSED)
}
