//! A chart of curves in half blocks: two points a cell, a colour each.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::pen;
use super::range::Range;
use crate::activity::units::number;
use crate::scenario::figures::Kind;
use crate::tui::sweep::Sweep;
use crate::tui::theme::{Role, Theme};

/// The chart, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Chart {
    sweep: Sweep,
    /// What each curve comes to, where they cross, and what bounds them.
    legend: Vec<(String, Role)>,
}

/// Columns left of the plot, for the labels of the values.
const GUTTER: u16 = 14;

/// A grid of points, two a cell above each other.
struct Canvas {
    width: usize,
    height: usize,
    /// Their colours, and which curve they are of.
    points: Vec<Option<(Role, usize)>>,
}

impl Canvas {
    fn new(area: Rect) -> Self {
        let (width, height) = (usize::from(area.width), usize::from(area.height) * 2);
        Canvas {
            width,
            height,
            points: vec![None; width * height],
        }
    }

    /// A place from shares of the axes; outside of the canvas for shares outside 0 to 1.
    fn place(&self, x: f64, y: f64) -> (f64, f64) {
        let (w, h) = (self.width.max(1) - 1, self.height.max(1) - 1);
        (x * w as f64, (1.0 - y) * h as f64)
    }

    fn dot(&mut self, x: f64, y: f64, of: (Role, usize)) {
        let (x, y) = (x.round(), y.round());
        if x >= 0.0 && y >= 0.0 && x < self.width as f64 && y < self.height as f64 {
            self.points[y as usize * self.width + x as usize] = Some(of);
        }
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), of: (Role, usize)) {
        let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).ceil();
        let steps = steps.clamp(1.0, 4096.0);
        for i in 0..=steps as usize {
            let share = i as f64 / steps;
            let at = |a: f64, b: f64| a + (b - a) * share;
            self.dot(at(from.0, to.0), at(from.1, to.1), of);
        }
    }

    /// Whether any point of a curve was left by those drawn later.
    fn shows(&self, curve: usize) -> bool {
        self.points.iter().flatten().any(|(_, of)| *of == curve)
    }

    fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        for (y, line) in pen::lines(area).enumerate() {
            for x in 0..self.width {
                let point = |y: usize| self.points[y * self.width + x].map(|(role, _)| role);
                let (upper, lower) = (point(2 * y), point(2 * y + 1));
                let (glyph, style) = match (upper, lower) {
                    (None, None) => continue,
                    _ if theme.is_ascii => ('*', theme.fg(upper.or(lower).unwrap_or(Role::Text))),
                    (Some(a), None) => ('▀', theme.fg(a)),
                    (None, Some(b)) => ('▄', theme.fg(b)),
                    (Some(a), Some(b)) if a == b => ('█', theme.fg(a)),
                    (Some(a), Some(b)) => {
                        let mut style = theme.fg(a);
                        style.bg = theme.fg(b).fg;
                        ('▀', style)
                    }
                };
                pen::cell(buf, line, x as u16, glyph, style);
            }
        }
    }
}

impl Chart {
    /// Prepares it.
    #[must_use]
    pub fn new(sweep: Sweep) -> Self {
        let legend = legend(&sweep);
        Chart { sweep, legend }
    }

    pub fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        let area = area.intersection(*buf.area());
        let legend = &self.legend;
        let lines = (legend.len() as u16).min(area.height / 2);
        if area.width < GUTTER + 10 || area.height < lines + 6 {
            return;
        }
        let title = Rect::new(area.x + 1, area.y, area.width - 1, 1);
        let text = format!(
            "{} over {} (o: next figure)",
            self.sweep.title(),
            self.sweep.x_title
        );
        pen::text(
            buf,
            title,
            0,
            &pen::plain(theme, &text),
            theme.fg(Role::Dim),
        );
        let plot = Rect::new(
            area.x + GUTTER,
            area.y + 1,
            area.width - GUTTER - 2,
            area.height - lines - 3,
        );
        let all = || self.sweep.curves.iter().flat_map(|c| c.points.iter());
        let xs = Range::of(all().map(|p| p.0), self.sweep.is_log);
        let roof = self.sweep.roof;
        let ceiling = roof.map(|(_, flops)| flops * 1.1);
        let (min, max) = all().fold((f64::INFINITY, 0.0_f64), |(min, max), p| {
            (min.min(p.1), max.max(p.1))
        });
        // Below a factor of 30 a linear axis from 0 shows proportions best.
        let is_log = roof.is_some() || max > 30.0 * min;
        let floor = if is_log { min } else { 0.0 };
        let ys = Range::of(all().map(|p| p.1).chain([floor]).chain(ceiling), is_log);
        let (Some(xs), Some(ys)) = (xs, ys) else {
            return;
        };
        self.draw_axes(theme, plot, xs, ys, buf);
        let mut canvas = Canvas::new(plot);
        if let Some((memory, flops)) = roof {
            let width = canvas.width.max(2) - 1;
            for column in 0..=width {
                let share = column as f64 / width as f64;
                let bound = (xs.value(share) * memory).min(flops);
                let (x, y) = canvas.place(share, ys.share(bound));
                canvas.dot(x, y, (Role::Rule, usize::MAX));
            }
        }
        for (i, curve) in self.sweep.curves.iter().enumerate() {
            let places: Vec<(f64, f64)> = curve
                .points
                .iter()
                .map(|(x, y)| canvas.place(xs.share(*x), ys.share(*y)))
                .collect();
            for pair in places.windows(2) {
                canvas.line(pair[0], pair[1], (curve.role, i));
            }
            if let [only] = places[..] {
                canvas.dot(only.0, only.1, (curve.role, i));
            }
        }
        canvas.draw(theme, plot, buf);
        let below = Rect::new(area.x + 1, plot.bottom() + 2, area.width - 1, lines);
        for (i, ((text, role), line)) in legend.iter().zip(pen::lines(below)).enumerate() {
            // The first lines are those of the curves.
            let is_under = i < self.sweep.curves.len() && !canvas.shows(i);
            let text = if is_under {
                format!("{text} (hidden under another)")
            } else {
                text.clone()
            };
            let x = pen::text(buf, line, 0, &pen::plain(theme, "■ "), theme.fg(*role));
            let text = pen::cut(&text, usize::from(line.width - x));
            pen::text(
                buf,
                line,
                x,
                &pen::plain(theme, &text),
                theme.fg(Role::Text),
            );
        }
    }

    fn draw_axes(&self, theme: &Theme, plot: Rect, xs: Range, ys: Range, buf: &mut Buffer) {
        let (rule, dim) = (theme.fg(Role::Rule), theme.fg(Role::Dim));
        for line in pen::lines(plot) {
            let gutter = Rect::new(plot.x - GUTTER, line.y, GUTTER, 1);
            pen::cell(buf, gutter, GUTTER - 1, theme.glyph('│'), rule);
        }
        for tick in ys.ticks(usize::from(plot.height / 4)) {
            let from_top = (1.0 - ys.share(tick)) * f64::from(plot.height - 1);
            let y = plot.y + from_top.round() as u16;
            let gutter = Rect::new(plot.x - GUTTER, y, GUTTER, 1);
            let text = match tick {
                0.0 => "0".to_owned(),
                tick => pen::plain(theme, &self.sweep.show(tick)),
            };
            let x = usize::from(GUTTER - 1).saturating_sub(pen::width(&text) + 1);
            pen::text(buf, gutter, x as u16, &text, dim);
            pen::cell(buf, gutter, GUTTER - 1, theme.glyph('┤'), rule);
        }
        let bottom = Rect::new(plot.x, plot.bottom(), plot.width, 1);
        pen::fill(buf, bottom, theme.glyph('─'), rule);
        let labels = Rect::new(
            plot.x - GUTTER,
            plot.bottom() + 1,
            plot.width + GUTTER + 2,
            1,
        );
        let mut free = 0;
        let count = usize::from(plot.width / 12);
        let is_power = |x: f64| x >= 1.0 && x.log2().fract() == 0.0;
        let mut points = self.sweep.curves.iter().flat_map(|c| c.points.iter());
        let ticks = if xs.is_log && points.all(|p| is_power(p.0)) {
            xs.binary_ticks(count)
        } else {
            xs.ticks(count)
        };
        for tick in ticks {
            let x = (xs.share(tick) * f64::from(plot.width - 1)).round() as u16;
            let text = self.sweep.show_x(tick);
            let at = (GUTTER + x).saturating_sub(text.len() as u16 / 2);
            if at < free {
                continue;
            }
            pen::cell(buf, bottom, x, theme.glyph('┼'), rule);
            free = pen::text(buf, labels, at, &text, dim) + 2;
        }
    }
}

/// What each curve comes to, where they cross, and what bounds them.
fn legend(sweep: &Sweep) -> Vec<(String, Role)> {
    let mut lines: Vec<(String, Role)> = sweep
        .curves
        .iter()
        .map(|curve| {
            let better = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
            let text = match (curve.points.first(), curve.points.last()) {
                (Some(first), Some(last)) if sweep.is_time() => format!(
                    "{}: {} at {}, {} at {}",
                    curve.name,
                    sweep.show(first.1),
                    sweep.show_x(first.0),
                    sweep.show(last.1),
                    sweep.show_x(last.0)
                ),
                _ => match curve.points.iter().max_by(better) {
                    Some(best) => format!(
                        "{}: at most {} at {}{}",
                        curve.name,
                        sweep.show(best.1),
                        sweep.show_x(best.0),
                        regime(sweep, *best)
                    ),
                    None => curve.name.clone(),
                },
            };
            (crate::trace::printable(&text), curve.role)
        })
        .collect();
    for crossing in sweep.crossings.iter().take(3) {
        let winner = if sweep.is_time() {
            (&crossing.below, &crossing.above)
        } else {
            (&crossing.above, &crossing.below)
        };
        lines.push((
            format!(
                "{} is better up to {} ≈ {}, then {}",
                winner.0,
                sweep.x_title,
                sweep.show_x(crossing.x),
                winner.1
            ),
            Role::Warning,
        ));
    }
    if let Some((memory, flops)) = sweep.roof {
        lines.push((
            format!(
                "roof: memory-bound left of {} FLOP a byte, compute-bound right of it; far below it overhead-bound",
                number(flops / memory)
            ),
            Role::Rule,
        ));
    }
    lines
}

/// What bounds a point under the roof. Below a quarter of the roof, neither memory nor arithmetic
/// is what it waits for.
fn regime(sweep: &Sweep, point: (f64, f64)) -> String {
    let (Some((memory, flops)), Kind::KernelFlops) = (sweep.roof, sweep.figure.kind) else {
        return String::new();
    };
    let bound = (point.0 * memory).min(flops);
    let share = point.1 / bound;
    let word = if share < 0.25 {
        "overhead-bound"
    } else if point.0 * memory < flops {
        "memory-bound"
    } else {
        "compute-bound"
    };
    format!(
        ", {} of the roof, {word}",
        crate::activity::units::percent(share)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_from_end_to_end_and_never_outside() {
        let area = Rect::new(0, 0, 4, 2);
        let mut canvas = Canvas::new(area);
        let (a, b) = (canvas.place(0.0, 0.0), canvas.place(1.0, 1.0));
        canvas.line(a, b, (Role::H2D, 0));
        let (a, b) = (canvas.place(-1.0, 2.0), canvas.place(3.0, 2.0));
        canvas.line(a, b, (Role::D2H, 1));
        let mut buf = Buffer::empty(area);
        let theme = Theme::default();
        canvas.draw(&theme, area, &mut buf);
        let text: String = buf.content().iter().map(|c| c.symbol()).collect();
        assert_eq!(text, "  ▄▀▄▀  ");
        assert!(canvas.shows(0) && !canvas.shows(1));
        // Another one over the same points.
        let (a, b) = (canvas.place(0.0, 0.0), canvas.place(1.0, 1.0));
        canvas.line(a, b, (Role::D2D, 2));
        assert!(!canvas.shows(0) && canvas.shows(2));
    }
}
