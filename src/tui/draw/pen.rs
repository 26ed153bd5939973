//! Putting text into a buffer without ever leaving it.

pub use activity::text::{cut, cut_middle, pieces, width, words, wrap};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

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

/// The first `lines` lines of `area`, one line high each, from `from`.
pub fn lines(area: Rect) -> impl DoubleEndedIterator<Item = Rect> {
    (area.y..area.bottom()).map(move |y| Rect::new(area.x, y, area.width, 1))
}

/// A text in so many lines. What is longer ends with a clause, which says more than a part of one.
pub fn clauses(text: &str, columns: usize, lines: usize) -> Vec<String> {
    let mut pieces = wrap(text, columns);
    if pieces.len() <= lines {
        return pieces;
    }
    let is_whole = |part: &str| part.matches('(').count() == part.matches(')').count();
    let ends = text.rmatch_indices([';', ',', ':']).map(|it| it.0);
    let ends = ends.filter(|&at| text[at + 1..].starts_with(' ') && is_whole(&text[..at]));
    let mut clauses = ends.take_while(|at| *at > columns / 2);
    let fits = |at: usize| Some(wrap(&text[..at], columns)).filter(|it| it.len() <= lines);
    clauses.find_map(fits).unwrap_or_else(|| {
        pieces.truncate(lines);
        if let Some(last) = pieces.last_mut() {
            last.push_str(" …");
        }
        pieces
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_ends_with_a_clause() {
        let text = "kernels (3 ms, most) and H2D run one after another: 0 % of it, and so on";
        assert_eq!(
            clauses(text, 60, 2).concat().replace(' ', ""),
            text.replace(' ', "")
        );
        let first = "kernels (3 ms, most) and H2D run one after another";
        assert_eq!(clauses(text, 60, 1), [first]);
        assert_eq!(
            clauses(text, 62, 1),
            ["kernels (3 ms, most) and H2D run one after another: 0 % of it"]
        );
        // No clause of it fits.
        assert_eq!(clauses(text, 20, 1), ["kernels (3 ms, most) …"]);
    }

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
}
