//! Views that are lists: the operations table, the log, a program's output, the picker, the comparison.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::widgets::Widget;

use super::pen;
use crate::tui::theme::{Role, Theme};

/// A cell of a list's line.
#[derive(Clone, Debug)]
pub struct Part {
    /// The text.
    pub text: String,
    /// Its style.
    pub style: Style,
    /// Columns; text that is longer is cut.
    pub columns: u16,
    /// Whether it stands at the right end of its columns.
    pub is_right: bool,
}

/// A list with a heading and a cursor, scrolled so that the cursor is on screen.
#[derive(Clone, Debug)]
pub struct List<'a> {
    /// Colours and glyphs.
    pub theme: &'a Theme,
    /// The heading; none when empty.
    pub heading: Vec<Part>,
    /// The lines.
    pub lines: Vec<Vec<Part>>,
    /// Where the cursor is; `None` for a list without one.
    pub cursor: Option<usize>,
    /// What stands there instead when there is no line.
    pub empty: &'static str,
}

impl Widget for &List<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let area = area.intersection(*buf.area());
        if area.is_empty() {
            return;
        }
        let theme = self.theme;
        let mut body = area;
        if !self.heading.is_empty() {
            draw(&self.heading, Rect { height: 1, ..area }, theme, false, buf);
            body.y += 1;
            body.height -= 1;
        }
        if self.lines.is_empty() {
            let text = pen::plain(theme, self.empty);
            pen::text(buf, body, 2, &text, theme.fg(Role::Dim));
            return;
        }
        let cursor = self.cursor.map(|c| c.min(self.lines.len() - 1));
        let room = usize::from(body.height);
        let first = cursor.map_or(0, |c| (c + 1).saturating_sub(room));
        let shown = self.lines.iter().enumerate().skip(first);
        for ((i, parts), line) in shown.zip(pen::lines(body)) {
            draw(parts, line, theme, cursor == Some(i), buf);
        }
    }
}

fn draw(parts: &[Part], line: Rect, theme: &Theme, is_at: bool, buf: &mut Buffer) {
    if is_at {
        pen::cell(buf, line, 0, theme.glyph('▸'), theme.bold(Role::Accent));
    }
    let mut x = 2;
    for part in parts {
        let columns = part.columns.min(line.width.saturating_sub(x));
        let text = pen::plain(theme, &pen::cut(&part.text, usize::from(columns)));
        let spare = usize::from(columns).saturating_sub(pen::width(&text)) as u16;
        let at = if part.is_right { x + spare } else { x };
        let style = if is_at {
            part.style.add_modifier(Modifier::BOLD)
        } else {
            part.style
        };
        pen::text(buf, line, at, &text, style);
        x = x.saturating_add(columns).saturating_add(2);
    }
}
