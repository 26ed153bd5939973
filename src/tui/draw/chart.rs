//! A chart of curves, with their names where they end and what is to be read from them below.

mod canvas;
pub mod roofline;

use super::range::Range;
use super::{pen, titles};
use crate::tui::draw::prelude::*;
use crate::tui::sweep::{Curve, Sweep};
use activity::units::number;
use scenario::figures::Kind;

/// The chart, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Chart {
    sweep: Sweep,
    /// What each curve comes to.
    curves: Vec<(String, Role)>,
    /// Where they cross, and what bounds them.
    notes: Vec<(String, Role)>,
}

/// Columns left of the plot, for the labels of the values.
const GUTTER: u16 = 14;
/// Columns of a screen from which on curves are named where they end.
const WIDE: u16 = 100;
/// Columns of such a name, at most.
const NAME: usize = 32;

impl Chart {
    pub fn new(sweep: Sweep) -> Self {
        Chart {
            curves: curves(&sweep),
            notes: notes(&sweep),
            sweep,
        }
    }

    pub fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        let area = area.intersection(*buf.area());
        let names = match area.width >= WIDE {
            true => self.names(),
            false => Vec::new(),
        };
        // Under a roof each curve has more to be said of than where it ends.
        let told = match names.is_empty() || self.sweep.roof.is_some() {
            true => self.curves.as_slice(),
            false => &[],
        };
        let legend: Vec<&(String, Role)> = told.iter().chain(&self.notes).collect();
        let lines = (legend.len() as u16).min(area.height / 2);
        let Some((xs, ys)) = self.ranges() else {
            return;
        };
        if area.width < GUTTER + 10 || area.height < lines + 6 {
            return;
        }
        let longest = names.iter().map(|name| pen::width(name)).max();
        let side = longest.map_or(2, |columns| columns as u16 + 4);
        let text = format!(
            "{} by {}: {} is better",
            self.sweep.title(),
            self.sweep.x_title,
            if self.sweep.is_less_better() {
                "less"
            } else {
                "more"
            }
        );
        titles::title(theme, &text, area, buf);
        let plot = Rect::new(
            area.x + GUTTER,
            area.y + 1,
            area.width - GUTTER - side,
            area.height - lines - 3,
        );
        self.draw_axes(theme, plot, xs, ys, buf);
        canvas::draw(&self.strokes(plot, xs, ys), theme, plot, buf);
        for crossing in &self.sweep.crossings {
            let at = (xs.share(crossing.x), ys.share(crossing.y));
            self.draw_crossing(theme, plot, at, crossing.x, buf);
        }
        self.draw_names(theme, plot, ys, &names, buf);
        let below = Rect::new(area.x + 1, plot.bottom() + 2, area.width - 1, lines);
        for ((text, role), line) in legend.iter().zip(pen::lines(below)) {
            let x = pen::text(buf, line, 0, "■ ", theme.fg(*role));
            let text = pen::cut(text, usize::from(line.width - x));
            pen::text(buf, line, x, &text, theme.fg(Role::Text));
        }
    }

    /// The axes; `None` without a point.
    fn ranges(&self) -> Option<(Range, Range)> {
        let all = || self.sweep.curves.iter().flat_map(|c| c.points.iter());
        let ceiling = self.sweep.roof.map(|(_, flops)| flops * 1.1);
        let (min, max) = all().fold((f64::INFINITY, 0.0_f64), |(min, max), p| {
            (min.min(p.1), max.max(p.1))
        });
        // Below a factor of 30 a linear axis from 0 shows proportions best.
        let is_log = self.sweep.roof.is_some() || max > 30.0 * min;
        let floor = if is_log { min } else { 0.0 };
        let xs = Range::of(all().map(|p| p.0), self.sweep.is_log)?;
        let ys = all().map(|p| p.1).chain([floor]).chain(ceiling);
        Some((xs, Range::of(ys, is_log)?))
    }

    /// The roof, and the curves under it.
    fn strokes(&self, plot: Rect, xs: Range, ys: Range) -> Vec<canvas::Stroke> {
        let roof = self.sweep.roof.map(|(memory, flops)| {
            let share = |x: u16| f64::from(x) / f64::from(plot.width);
            let bound = |x: f64| (x, ys.share((xs.value(x) * memory).min(flops)));
            canvas::Stroke {
                role: Role::Rule,
                places: (0..=plot.width).map(share).map(bound).collect(),
                is_marked: false,
            }
        });
        let curves = self.sweep.curves.iter().map(|curve| canvas::Stroke {
            role: curve.role,
            places: (curve.points.iter())
                .map(|(x, y)| (xs.share(*x), ys.share(*y)))
                .collect(),
            // What was measured, where it can be told apart.
            is_marked: 3 * curve.points.len() <= usize::from(plot.width),
        });
        roof.into_iter().chain(curves).collect()
    }

    /// What stands where each curve ends: its name, and what it came to.
    fn names(&self) -> Vec<String> {
        let name = |curve: &Curve| {
            let last = curve.points.last().map_or(0.0, |p| p.1);
            let figure = self.sweep.show(last);
            let room = NAME.saturating_sub(pen::width(&figure) + 1);
            let name = activity::text::printable(&curve.name);
            format!("{} {figure}", pen::cut(&name, room))
        };
        self.sweep.curves.iter().map(name).collect()
    }

    /// Names right of the plot, each as near as there is room to the line where its curve ends.
    fn draw_names(&self, theme: &Theme, plot: Rect, ys: Range, names: &[String], buf: &mut Buffer) {
        let ends = self.sweep.curves.iter().map(|curve| {
            let last = curve.points.last().map_or(0.0, |p| p.1);
            (1.0 - ys.share(last)) * f64::from(plot.height.saturating_sub(1))
        });
        let ends: Vec<f64> = ends.collect();
        for (i, y) in apart(&ends, plot.height).into_iter().enumerate() {
            let (Some(name), Some(y)) = (names.get(i), y) else {
                continue;
            };
            let line = Rect::new(plot.x, plot.y + y, buf.area().right() - plot.x, 1);
            let style = theme.fg(self.sweep.curves[i].role);
            pen::text(buf, line, plot.width + 1, name, style);
        }
    }

    /// A mark where two curves change places, and where that is, in the room beside it.
    fn draw_crossing(
        &self,
        theme: &Theme,
        plot: Rect,
        (x, y): (f64, f64),
        value: f64,
        buf: &mut Buffer,
    ) {
        let x = (x * f64::from(plot.width.saturating_sub(1))).round() as u16;
        let y = ((1.0 - y) * f64::from(plot.height.saturating_sub(1))).round() as u16;
        if x >= plot.width || y >= plot.height {
            return;
        }
        let style = theme.bold(Role::Warning);
        let line = |y: u16| Rect::new(plot.x, plot.y + y, plot.width, 1);
        pen::cell(buf, line(y), x, '◆', style);
        let (name, value) = (&self.sweep.x_title, self.sweep.show_x(value));
        let text = format!("{name} ≈ {value}");
        let columns = pen::width(&text) as u16;
        // Up to the left and down to the right of it there is room where both rise.
        let places = [
            (x.checked_sub(columns + 1), y.checked_sub(1)),
            (Some(x + 2), Some(y + 1)),
            (x.checked_sub(columns + 1), y.checked_sub(2)),
            (Some(x + 2), Some(y + 2)),
        ];
        let is_free = |x: u16, y: u16| {
            let cells = (x.saturating_sub(1)..x + columns + 1).filter(|x| *x < plot.width);
            let mut symbols = cells.map(|x| buf[(plot.x + x, plot.y + y)].symbol());
            x + columns <= plot.width && y < plot.height && symbols.all(|s| s == " ")
        };
        let place = places.into_iter().find_map(|(x, y)| {
            let (x, y) = (x?, y?);
            is_free(x, y).then_some((x, y))
        });
        if let Some((x, y)) = place {
            pen::text(buf, line(y), x, &text, style);
        }
    }

    fn draw_axes(&self, theme: &Theme, plot: Rect, xs: Range, ys: Range, buf: &mut Buffer) {
        let (rule, dim) = (theme.fg(Role::Rule), theme.fg(Role::Dim));
        for line in pen::lines(plot) {
            let gutter = Rect::new(plot.x - GUTTER, line.y, GUTTER, 1);
            pen::cell(buf, gutter, GUTTER - 1, '│', rule);
        }
        for tick in ys.ticks(usize::from(plot.height / 4)) {
            let from_top = (1.0 - ys.share(tick)) * f64::from(plot.height - 1);
            let y = plot.y + from_top.round() as u16;
            let gutter = Rect::new(plot.x - GUTTER, y, GUTTER, 1);
            let text = match tick {
                0.0 => "0".to_owned(),
                tick => self.sweep.show(tick),
            };
            let x = usize::from(GUTTER - 1).saturating_sub(pen::width(&text) + 1);
            pen::text(buf, gutter, x as u16, &text, dim);
            pen::cell(buf, gutter, GUTTER - 1, '┤', rule);
        }
        let bottom = Rect::new(plot.x, plot.bottom(), plot.width, 1);
        pen::fill(buf, bottom, '─', rule);
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
            pen::cell(buf, bottom, x, '┼', rule);
            free = pen::text(buf, labels, at, &text, dim) + 2;
        }
    }
}

/// Lines from 0 to `height` for what wants to stand at these, in their order and none on one that another has; `None` for
/// what there is no room for.
fn apart(wanted: &[f64], height: u16) -> Vec<Option<u16>> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut lines = vec![None; wanted.len()];
    // Downwards as far as needed, then up again from the bottom.
    let mut next = 0;
    for &i in &order {
        let line = (wanted[i].round() as u16).max(next);
        lines[i] = Some(line);
        next = line.saturating_add(1);
    }
    let mut end = i32::from(height);
    for &i in order.iter().rev() {
        end = (end - 1).min(lines[i].map_or(0, i32::from));
        lines[i] = u16::try_from(end).ok();
    }
    lines
}

/// What each curve comes to.
fn curves(sweep: &Sweep) -> Vec<(String, Role)> {
    sweep
        .curves
        .iter()
        .map(|curve| {
            let better = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
            let text = match (curve.points.first(), curve.points.last()) {
                (Some(first), Some(last)) if sweep.is_less_better() => format!(
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
            (activity::text::printable(&text), curve.role)
        })
        .collect()
}

/// Where curves cross, and what bounds them.
fn notes(sweep: &Sweep) -> Vec<(String, Role)> {
    let mut lines = Vec::new();
    for crossing in sweep.crossings.iter().take(3) {
        let winner = if sweep.is_less_better() {
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
    format!(", {} of the roof, {word}", activity::units::percent(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_end_together_stand_apart_and_in_order() {
        assert_eq!(apart(&[4.0, 4.0, 0.4], 10), [Some(4), Some(5), Some(0)]);
        // Of two on one line the one that is higher up, whichever comes first.
        assert_eq!(apart(&[4.3, 3.9], 10), [Some(5), Some(4)]);
        // Pushed up from the bottom.
        assert_eq!(apart(&[9.0, 9.0, 8.0], 10), [Some(8), Some(9), Some(7)]);
        // No more than there are lines.
        let lines = apart(&[1.0, 1.0, 1.0], 2);
        assert_eq!(lines.iter().flatten().count(), 2);
    }
}
