//! Kernels by what they do with the GPU: DRAM to the right, arithmetic upwards, each as large as its time.

use std::f64::consts::TAU;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::canvas::Canvas;
use crate::tui::draw::pen;
use crate::tui::theme::{Role, Theme};
use activity::units::percent;
use analysis::class::NEAR;

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
    let told = marks
        .len()
        .min(LETTERS.len())
        .min(usize::from(area.height / 3)) as u16;
    if area.width < GUTTER + 20 || area.height < told + 8 {
        return;
    }
    let dim = theme.fg(Role::Dim);
    let title =
        "kernels: up tensor cores or instruction issue, right DRAM, of their peaks; area is time";
    pen::text(buf, area, 1, &pen::plain(theme, title), dim);
    let plot = Rect {
        x: area.x + GUTTER,
        y: area.y + 1,
        width: area.width - GUTTER - 2,
        height: area.height - told - 3,
    };
    let (right, bottom) = (plot.width - 1, plot.height - 1);
    let line = |y: u16| Rect::new(area.x, y, area.width, 1);
    for fifth in 0..=5 {
        let share = f64::from(fifth) / 5.0;
        let text = format!("{:>4}", percent(share));
        let up = plot.y + (f64::from(bottom) * (1.0 - share)).round() as u16;
        pen::text(buf, line(up), 0, &text, dim);
        let along = (f64::from(right) * share).round() as u16;
        pen::text(buf, line(plot.bottom()), GUTTER + along - 3, &text, dim);
    }
    let mut canvas = Canvas::new(plot);
    for (from, to) in [
        ((NEAR, 0.0), (NEAR, NEAR)),
        ((0.0, NEAR), (NEAR, NEAR)),
        ((NEAR, NEAR), (1.0, 1.0)),
    ] {
        let ends = [canvas.place(from.0, from.1), canvas.place(to.0, to.1)];
        canvas.curve(Role::Rule, &ends);
    }
    // A kernel that takes all of the time is half as high as the plot: four points a line.
    let largest = f64::from(plot.height);
    for mark in marks {
        let (x, y) = canvas.place(mark.dram, mark.compute);
        let radius = (largest * mark.time.sqrt()).max(1.0);
        let at = |step: u32| {
            let angle = TAU * f64::from(step) / f64::from(STEPS);
            (x + radius * angle.cos(), y + radius * angle.sin())
        };
        let circle: Vec<(f64, f64)> = (0..=STEPS).map(at).collect();
        canvas.curve(mark.role, &circle);
    }
    canvas.draw(theme, plot, buf);
    for (text, x, y) in [
        ("compute-bound", 1, 0),
        ("memory-bound", right.saturating_sub(13), bottom),
        ("near no peak", 1, bottom),
    ] {
        pen::text(
            buf,
            Rect::new(plot.x, plot.y + y, plot.width, 1),
            x,
            text,
            dim,
        );
    }
    for (nth, (mark, letter)) in marks.iter().zip(LETTERS).enumerate().rev() {
        let at = |share: f64, last: u16| (share.clamp(0.0, 1.0) * f64::from(last)).round() as u16;
        let row = Rect::new(
            plot.x,
            plot.y + bottom - at(mark.compute, bottom),
            plot.width,
            1,
        );
        pen::cell(
            buf,
            row,
            at(mark.dram, right),
            letter,
            theme.bold(mark.role),
        );
        if nth < usize::from(told) {
            let row = line(plot.bottom() + 1 + nth as u16);
            let x = pen::text(buf, row, 1, &letter.to_string(), theme.bold(mark.role));
            let figures = format!(
                " {:>6}  DRAM {:>6}  compute {:>6}  {:<8}",
                percent(mark.time),
                percent(mark.dram),
                percent(mark.compute),
                mark.class
            );
            let x = pen::text(buf, row, x, &figures, theme.fg(Role::Text));
            let name = pen::cut(&mark.name, usize::from(row.width.saturating_sub(x + 1)));
            pen::text(
                buf,
                row,
                x + 1,
                &pen::plain(theme, &name),
                theme.fg(Role::Text),
            );
        }
    }
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
