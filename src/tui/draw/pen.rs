//! Putting text into a buffer without ever leaving it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::tui::theme::Theme;

/// Columns that a text takes.
#[must_use]
pub fn width(text: &str) -> usize {
    text.width()
}

/// Writes `text` at column `x` of the first line of `area`, cut at its right end. Returns the column after it.
pub fn text(buf: &mut Buffer, area: Rect, x: u16, text: &str, style: Style) -> u16 {
    let visible = area.intersection(*buf.area());
    if visible.is_empty() || visible.y != area.y || x >= area.width {
        return x;
    }
    let at = area.x + x;
    if at < visible.x || at >= visible.right() {
        return x;
    }
    let room = usize::from(visible.right() - at);
    let (end, _) = buf.set_stringn(at, area.y, text, room, style);
    end.saturating_sub(area.x)
}

/// Sets one cell of the first line of `area`.
pub fn cell(buf: &mut Buffer, area: Rect, x: u16, glyph: char, style: Style) {
    if x >= area.width || area.height == 0 {
        return;
    }
    if let Some(cell) = buf.cell_mut((area.x + x, area.y)) {
        cell.set_char(glyph).set_style(style);
    }
}

/// Fills the first line of `area` with a glyph.
pub fn fill(buf: &mut Buffer, area: Rect, glyph: char, style: Style) {
    for x in 0..area.width {
        cell(buf, area, x, glyph, style);
    }
}

/// A text in the theme's glyphs: itself, or its nearest likeness in ASCII.
#[must_use]
pub fn plain(theme: &Theme, text: &str) -> String {
    if !theme.is_ascii {
        return text.to_owned();
    }
    text.chars().map(|c| theme.glyph(c)).collect()
}

/// Cuts a text to `columns`, with an ellipsis where something was cut.
#[must_use]
pub fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > columns {
            break;
        }
        used += w;
        out.push(c);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// The first `lines` lines of `area`, one line high each, from `from`.
pub fn lines(area: Rect) -> impl Iterator<Item = Rect> {
    (area.y..area.bottom()).map(move |y| Rect::new(area.x, y, area.width, 1))
}

/// Breaks a text into lines of at most `columns`, at spaces where it can. Line ends of the text stay.
#[must_use]
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            let mut word = word.to_owned();
            if !line.is_empty() && line.width() + 1 + word.width() > columns {
                lines.push(std::mem::take(&mut line));
            }
            while word.width() > columns {
                let head: String = cut_exact(&word, columns);
                word = word[head.len()..].to_owned();
                lines.push(head);
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
        lines.push(line);
    }
    lines
}

fn cut_exact(text: &str, columns: usize) -> String {
    let mut used = 0;
    text.chars()
        .enumerate()
        .take_while(|(i, c)| {
            used += c.width().unwrap_or(0);
            // At least one character, however wide, so that the caller gets on.
            *i == 0 || used <= columns
        })
        .map(|(_, c)| c)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_outside() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 4, 1));
        let area = Rect::new(2, 0, 10, 1);
        assert_eq!(text(&mut buf, area, 0, "abcdef", Style::new()), 2);
        assert_eq!(
            text(&mut buf, Rect::new(0, 3, 4, 1), 0, "x", Style::new()),
            0
        );
        assert_eq!(text(&mut buf, Rect::default(), 0, "x", Style::new()), 0);
        cell(&mut buf, area, 9, 'x', Style::new());
        assert_eq!(buf, Buffer::with_lines(["  ab"]));
    }

    #[test]
    fn texts_are_cut_and_wrapped_by_columns() {
        assert_eq!(cut("matmul_tiled", 6), "matmu…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap("a\n\nb", 4), ["a", "", "b"]);
    }
}
