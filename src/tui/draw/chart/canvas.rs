//! Curves over a plot, in shares of its sides from the bottom left.

use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::widgets::Widget as _;
use ratatui::widgets::canvas::{Canvas, Context, Painter, Shape};

use crate::tui::draw::prelude::*;

/// Points of a cell of braille, beside and above each other.
pub(super) const POINTS: (u16, u16) = (2, 4);
/// Curves that share cells take turns every so many points.
const TURN: usize = 4;
/// Points of a line at most.
const LONGEST: f64 = 16_384.0;

/// A curve from place to place; of one place a point.
#[derive(Clone, Debug, Default)]
pub(super) struct Stroke {
    pub(super) role: Role,
    pub(super) places: Vec<(f64, f64)>,
    /// Whether each place has a mark.
    pub(super) is_marked: bool,
}

/// One pass of the pen over a stroke, from point to point.
struct Pass<'a> {
    points: &'a [(f64, f64)],
    color: Color,
    /// Which of so many turns is its own; every one without this.
    turn: Option<(usize, usize)>,
}

impl Shape for Pass<'_> {
    fn draw(&self, painter: &mut Painter<'_, '_>) {
        let mut point = |x, y| {
            let Some((x, y)) = painter.get_point(x, y) else {
                return;
            };
            if self.turn.is_none_or(|(turn, of)| x / TURN % of == turn) {
                painter.paint(x, y, self.color);
            }
        };
        if let [(x, y)] = *self.points {
            point(x, y);
        }
        for two in self.points.windows(2) {
            let ((x, y), (to_x, to_y)) = (two[0], two[1]);
            let steps = (to_x - x).abs().max((to_y - y).abs()).ceil();
            let steps = steps.clamp(1.0, LONGEST);
            for i in 0..=steps as usize {
                let share = i as f64 / steps;
                point(x + (to_x - x) * share, y + (to_y - y) * share);
            }
        }
    }
}

/// Draws curves. A cell has one colour: curves that share cells take turns, so that none hides another.
pub(super) fn draw(strokes: &[Stroke], theme: &Theme, plot: Rect, buf: &mut Buffer) {
    let last = |cells: u16, points: u16| f64::from((cells * points).max(2) - 1);
    let (width, height) = (last(plot.width, POINTS.0), last(plot.height, POINTS.1));
    let scaled = |it: &Stroke| {
        let points = it.places.iter().map(|(x, y)| (x * width, y * height));
        (points.collect(), theme.fg(it.role).fg.unwrap_or_default())
    };
    let all: Vec<(Vec<(f64, f64)>, Color)> = strokes.iter().map(scaled).collect();
    let marker = match theme.is_ascii {
        true => Marker::Custom('·'),
        false => Marker::Braille,
    };
    let paint = |context: &mut Context<'_>| {
        let turns = (0..all.len()).map(|turn| Some((turn, all.len())));
        let first = std::iter::repeat_n(None, all.len());
        for ((points, color), turn) in all.iter().cycle().zip(first.chain(turns)) {
            context.draw(&Pass {
                points,
                color: *color,
                turn,
            });
        }
    };
    // With air for what is rounded.
    Canvas::default()
        .x_bounds([-1e-6, width + 1e-6])
        .y_bounds([-1e-6, height + 1e-6])
        .marker(marker)
        .paint(paint)
        .render(plot, buf);
    // A mark stands in the cell of its point: the canvas rounds to points and to cells apart.
    for ((points, color), it) in all.iter().zip(strokes) {
        for (x, y) in points.iter().filter(|_| it.is_marked) {
            let (x, y) = (x.round(), (height - y).round());
            if x >= 0.0 && (0.0..=height).contains(&y) {
                let (x, y) = (x as u16 / POINTS.0, y as u16 / POINTS.1);
                let line = Rect::new(plot.x, plot.y + y, plot.width, 1);
                pen::cell(buf, line, x, '●', Style::new().fg(*color));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(role: Role, places: [(f64, f64); 2]) -> Stroke {
        Stroke {
            role,
            places: places.to_vec(),
            is_marked: false,
        }
    }

    fn drawn(curves: &[Stroke], area: Rect) -> Buffer {
        let mut buf = Buffer::empty(area);
        draw(curves, &Theme::default(), area, &mut buf);
        buf
    }

    fn text(buf: &Buffer) -> String {
        buf.content().iter().map(|cell| cell.symbol()).collect()
    }

    #[test]
    fn a_curve_goes_from_corner_to_corner_and_never_outside() {
        let area = Rect::new(0, 0, 2, 1);
        let buf = drawn(&[curve(Role::H2D, [(0.0, 0.0), (1.0, 1.0)])], area);
        // Points from the bottom left (7, then 6) to the top right (2, then 1), as Unicode numbers them.
        assert_eq!(text(&buf), "⡠⠊");
        let buf = drawn(&[curve(Role::H2D, [(-1.0, 2.0), (3.0, 2.0)])], area);
        assert_eq!(text(&buf), "  ");
    }

    #[test]
    fn curves_over_each_other_are_both_seen_and_so_is_what_was_measured() {
        let area = Rect::new(0, 0, 8, 1);
        let ends = [(0.0, 0.5), (1.0, 0.5)];
        let mut curves = [Role::H2D, Role::D2H].map(|role| curve(role, ends));
        let buf = drawn(&curves, area);
        let theme = Theme::default();
        let colours: Vec<_> = buf.content().iter().map(|c| c.style().fg).collect();
        for role in [Role::H2D, Role::D2H] {
            let count = colours.iter().filter(|c| **c == theme.fg(role).fg).count();
            assert_eq!(count, 4, "{role:?}");
        }
        curves[1].is_marked = true;
        let line = text(&drawn(&curves, area));
        assert!(line.starts_with('●') && line.ends_with('●'), "{line}");
    }
}
