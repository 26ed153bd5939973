//! Kernels by what they do with the GPU: DRAM to the right, arithmetic upwards, each as large as its time.

use std::f64::consts::TAU;

use super::canvas::{self, POINTS, Stroke};
use crate::tui::draw::prelude::*;
use activity::units::percent;
use figures::class::NEAR;

/// Columns left of the plot, for its shares.
const GUTTER: u16 = 6;
/// Points of a circle.
const STEPS: u32 = 48;
/// What stands below the plot for each kernel that has a letter.
const LETTERS: [char; 10] = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'];

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    pub name: String,
    /// What limits it.
    pub class: &'static str,
    pub role: Role,
    /// Its part of the time of all kernels.
    pub time: f64,
    /// Shares of the peaks: of memory, and of tensor cores or instruction issue, whichever is nearer to its own.
    pub dram: f64,
    pub compute: f64,
}

/// Draws them, most time first.
pub fn draw(marks: &[Mark], theme: &Theme, area: Rect, buf: &mut Buffer) {
    let area = area.intersection(*buf.area());
    let told = marks.len().min(LETTERS.len());
    let told = told.min(usize::from(area.height / 3)) as u16;
    if area.width < GUTTER + 20 || area.height < told + 8 {
        return;
    }
    let title =
        "kernels: up tensor cores or instruction issue, right DRAM, of their peaks; area is time";
    pen::text(buf, area, 1, title, theme.fg(Role::Dim));
    let plot = Rect {
        x: area.x + GUTTER,
        y: area.y + 1,
        width: area.width - GUTTER - 2,
        height: area.height - told - 3,
    };
    draw_curves(marks, theme, plot, buf);
    draw_axes(theme, plot, buf);
    for (mark, letter) in marks.iter().zip(LETTERS).rev() {
        let (x, y) = cell(plot, mark.dram, mark.compute);
        pen::cell(buf, row(plot, y), x, letter, theme.bold(mark.role));
    }
    for (nth, (mark, letter)) in (0..told).zip(marks.iter().zip(LETTERS)) {
        let line = Rect::new(area.x, plot.bottom() + 1 + nth, area.width, 1);
        pen::cell(buf, line, 1, letter, theme.bold(mark.role));
        let text = format!(
            "{:>6}  DRAM {:>6}  compute {:>6}  {:<8} {}",
            percent(mark.time),
            percent(mark.dram),
            percent(mark.compute),
            mark.class,
            mark.name
        );
        let text = pen::cut(&text, usize::from(line.width) - 4);
        pen::text(buf, line, 3, &text, theme.fg(Role::Text));
    }
}

/// The column and the line of two shares.
fn cell(plot: Rect, dram: f64, compute: f64) -> (u16, u16) {
    let at = |share: f64, last: u16| (share.clamp(0.0, 1.0) * f64::from(last)).round() as u16;
    let (right, bottom) = (plot.width - 1, plot.height - 1);
    (at(dram, right), bottom - at(compute, bottom))
}

fn row(plot: Rect, y: u16) -> Rect {
    Rect::new(plot.x, plot.y + y, plot.width, 1)
}

/// Every fifth of the axes, and what kernels in each corner are.
fn draw_axes(theme: &Theme, plot: Rect, buf: &mut Buffer) {
    let dim = theme.fg(Role::Dim);
    for fifth in 0..=5 {
        let share = f64::from(fifth) / 5.0;
        let text = format!("{:>4}", percent(share));
        let (x, y) = cell(plot, share, share);
        let gutter = |y: u16| Rect::new(plot.x - GUTTER, y, plot.width + GUTTER + 2, 1);
        pen::text(buf, gutter(plot.y + y), 0, &text, dim);
        pen::text(buf, gutter(plot.bottom()), GUTTER + x - 3, &text, dim);
    }
    let (right, bottom) = (plot.width.saturating_sub(14), plot.height - 1);
    for (x, y, text) in [
        (1, 0, "compute-bound"),
        (right, bottom, "memory-bound"),
        (1, bottom, "near no peak"),
    ] {
        pen::text(buf, row(plot, y), x, text, dim);
    }
}

/// The borders of the classes, and a circle for each kernel.
fn draw_curves(marks: &[Mark], theme: &Theme, plot: Rect, buf: &mut Buffer) {
    let curve = |role, places| Stroke {
        role,
        places,
        ..Stroke::default()
    };
    let borders = [(NEAR, 0.0), (0.0, NEAR), (1.0, 1.0)];
    let borders = borders.map(|end| curve(Role::Rule, vec![(NEAR, NEAR), end]));
    let circle = |mark: &Mark| {
        // A kernel that takes all of the time is half as high as the plot: four points a line.
        let radius = (f64::from(plot.height) * mark.time.sqrt()).max(1.0);
        let at = |step: u32| {
            let angle = TAU * f64::from(step) / f64::from(STEPS);
            let (x, y) = (radius * angle.cos(), radius * angle.sin());
            let share = |points: f64, cells: u16, of: u16| points / f64::from(cells * of - 1);
            (
                mark.dram + share(x, plot.width, POINTS.0),
                mark.compute + share(y, plot.height, POINTS.1),
            )
        };
        curve(mark.role, (0..=STEPS).map(at).collect())
    };
    let curves: Vec<Stroke> = borders
        .into_iter()
        .chain(marks.iter().map(circle))
        .collect();
    canvas::draw(&curves, theme, plot, buf);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plot has 101 columns from the 6th, and 21 lines from the first: 72 % are 72 columns, 40 % are 8 lines up. A
    /// quarter of the time has half of the largest radius of 21 points: from column 78 it reaches 10.5 points, 5 columns. In
    /// column 66 stands the line of 60 %.
    #[test]
    fn a_kernel_stands_at_its_shares_and_is_as_large_as_its_time() {
        let area = Rect::new(0, 0, 109, 25);
        let mark = Mark {
            name: "transpose".to_owned(),
            class: "memory",
            role: Role::Kernel(0),
            time: 0.25,
            dram: 0.72,
            compute: 0.4,
        };
        let mut buf = Buffer::empty(area);
        draw(
            std::slice::from_ref(&mark),
            &Theme::default(),
            area,
            &mut buf,
        );
        let symbol = |x: u16, y: u16| buf[(x, y)].symbol();
        assert_eq!(symbol(78, 13), "a");
        let drawn = (67..100).filter(|x| symbol(*x, 13) != " ");
        let drawn: Vec<u16> = drawn.collect();
        assert_eq!((drawn[0], drawn[drawn.len() - 1]), (73, 83));
        let legend: String = (0..109).map(|x| symbol(x, 23)).collect();
        let words: Vec<&str> = legend.split_whitespace().collect();
        assert_eq!(
            words.join(" "),
            "a 25 % DRAM 72 % compute 40 % memory transpose"
        );
        // Where there is no room nothing is drawn.
        let small = Rect::new(0, 0, 20, 25);
        let mut buf = Buffer::empty(small);
        draw(&[mark], &Theme::default(), small, &mut buf);
        assert_eq!(buf, Buffer::empty(small));
    }
}
