//! Curves in braille: eight points a cell.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::super::pen;
use crate::tui::theme::{Role, Theme};

/// Points of a cell, beside and above each other.
const POINTS: (usize, usize) = (2, 4);
/// The bits of braille patterns, line by line from the top left.
const BITS: [u8; 8] = [0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80];
/// Curves that share cells take turns every so many columns.
const TURN: usize = 2;

/// What of a cell is one curve's.
type Inks = Vec<(usize, u8)>;

/// A grid of points.
pub(super) struct Canvas {
    columns: usize,
    lines: usize,
    /// Of each cell, which curves have which points, in the order of the curves.
    cells: Vec<Inks>,
    roles: Vec<Role>,
    /// Cells with a mark, and its colour.
    marks: Vec<(usize, Role)>,
}

impl Canvas {
    pub(super) fn new(area: Rect) -> Self {
        let (columns, lines) = (usize::from(area.width), usize::from(area.height));
        Canvas {
            columns,
            lines,
            cells: vec![Inks::new(); columns * lines],
            roles: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// A place from shares of the axes; outside of the canvas for shares outside 0 to 1.
    pub(super) fn place(&self, x: f64, y: f64) -> (f64, f64) {
        let width = (self.columns * POINTS.0).max(1) - 1;
        let height = (self.lines * POINTS.1).max(1) - 1;
        (x * width as f64, (1.0 - y) * height as f64)
    }

    /// The cell of a place, and the point in it; `None` outside.
    fn cell(&self, (x, y): (f64, f64)) -> Option<(usize, usize)> {
        let (x, y) = (x.round(), y.round());
        let (width, height) = (self.columns * POINTS.0, self.lines * POINTS.1);
        if !(0.0..width as f64).contains(&x) || !(0.0..height as f64).contains(&y) {
            return None;
        }
        let (x, y) = (x as usize, y as usize);
        let cell = y / POINTS.1 * self.columns + x / POINTS.0;
        Some((cell, y % POINTS.1 * POINTS.0 + x % POINTS.0))
    }

    /// A curve from place to place; of one place a point.
    pub(super) fn curve(&mut self, role: Role, places: &[(f64, f64)]) {
        let curve = self.roles.len();
        self.roles.push(role);
        if let [only] = places {
            self.point(curve, *only);
        }
        for pair in places.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).ceil();
            let steps = steps.clamp(1.0, 16_384.0);
            for i in 0..=steps as usize {
                let share = i as f64 / steps;
                let at = |a: f64, b: f64| a + (b - a) * share;
                self.point(curve, (at(from.0, to.0), at(from.1, to.1)));
            }
        }
    }

    fn point(&mut self, curve: usize, place: (f64, f64)) {
        let Some((cell, point)) = self.cell(place) else {
            return;
        };
        let inks = &mut self.cells[cell];
        match inks.last_mut() {
            Some((of, bits)) if *of == curve => *bits |= BITS[point],
            _ => inks.push((curve, BITS[point])),
        }
    }

    /// Marks places on a curve.
    pub(super) fn marks(&mut self, role: Role, places: &[(f64, f64)]) {
        let cells = places.iter().filter_map(|place| self.cell(*place));
        let marks: Vec<(usize, Role)> = cells.map(|(cell, _)| (cell, role)).collect();
        self.marks.extend(marks);
    }

    /// Draws it. A cell has one colour: curves that share cells take turns, so that none hides another.
    pub(super) fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        for (y, line) in pen::lines(area).enumerate() {
            for x in 0..self.columns {
                let at = y * self.columns + x;
                let inks = &self.cells[at];
                let marks = self.marks.iter().filter(|(cell, _)| *cell == at);
                let marks: Vec<Role> = marks.map(|(_, role)| *role).collect();
                let (glyph, role) = if let Some(role) = marks.last() {
                    ('●', *role)
                } else if let Some((curve, bits)) = inks.get(x / TURN % inks.len().max(1)) {
                    let braille = char::from_u32(0x2800 + u32::from(*bits)).unwrap_or('·');
                    let glyph = if theme.is_ascii { '·' } else { braille };
                    (glyph, self.roles[*curve])
                } else {
                    continue;
                };
                pen::cell(buf, line, x as u16, glyph, theme.fg(role));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(canvas: &Canvas, area: Rect) -> Vec<String> {
        let mut buf = Buffer::empty(area);
        canvas.draw(&Theme::default(), area, &mut buf);
        let lines = buf.content().chunks(usize::from(area.width));
        lines
            .map(|line| line.iter().map(|c| c.symbol()).collect())
            .collect()
    }

    #[test]
    fn a_curve_goes_from_corner_to_corner_and_never_outside() {
        let area = Rect::new(0, 0, 2, 1);
        let mut canvas = Canvas::new(area);
        let (a, b) = (canvas.place(0.0, 0.0), canvas.place(1.0, 1.0));
        canvas.curve(Role::H2D, &[a, b]);
        // Points from the bottom left (7, then 6) to the top right (2, then 1), as Unicode numbers them.
        assert_eq!(text(&canvas, area), ["⡠⠊"]);
        let (a, b) = (canvas.place(-1.0, 2.0), canvas.place(3.0, 2.0));
        let mut canvas = Canvas::new(area);
        canvas.curve(Role::H2D, &[a, b]);
        assert_eq!(text(&canvas, area), ["  "]);
    }

    #[test]
    fn curves_over_each_other_are_both_seen_and_so_is_what_was_measured() {
        let area = Rect::new(0, 0, 8, 1);
        let mut canvas = Canvas::new(area);
        let ends = [canvas.place(0.0, 0.5), canvas.place(1.0, 0.5)];
        canvas.curve(Role::H2D, &ends);
        canvas.curve(Role::D2H, &ends);
        let theme = Theme::default();
        let mut buf = Buffer::empty(area);
        canvas.draw(&theme, area, &mut buf);
        let colours: Vec<_> = buf.content().iter().map(|c| c.style().fg).collect();
        for role in [Role::H2D, Role::D2H] {
            let count = colours.iter().filter(|c| **c == theme.fg(role).fg).count();
            assert_eq!(count, 4, "{role:?}");
        }
        canvas.marks(Role::D2H, &ends);
        let line = text(&canvas, area).concat();
        assert!(line.starts_with('●') && line.ends_with('●'), "{line}");
    }
}
