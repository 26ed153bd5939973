//! All of what is in scope over the axis, with what is in view in brackets. Each step of a program has a bar; where there are none,
//! bars say how busy the GPUs were over time.

use std::ops::Range;

use ratatui::style::Modifier;

use crate::tui::draw::layout::Layout;
use crate::tui::draw::prelude::*;
use crate::tui::draw::{ink, pen};
use crate::tui::state::State;
use crate::tui::state::step_list::StepList;
use crate::tui::time_scale::TimeScale;
use activity::{Ns, Span, units};
use trace::Measure;

/// GPUs that are looked at: with more of them a column would say as much.
const GPUS: usize = 16;
/// Columns that a bar has at most.
const WIDEST: usize = 4;
/// Columns for the brackets.
const BRACKETS: u16 = 2;

/// A bar: a step, or several where there are more of them than columns, or a stretch of time.
#[derive(Clone, Debug, PartialEq)]
struct OverviewBar {
    /// Its height.
    share: f64,
    role: Role,
    is_odd: bool,
    span: Span,
    /// The moment that a click on it leads to.
    at: Ns,
}

/// The line, ready to be drawn.
#[derive(Debug, Default)]
pub(super) struct Overview {
    title: &'static str,
    bars: Vec<OverviewBar>,
    /// Columns of a bar.
    columns: u16,
    /// The bars that are in view.
    in_view: Range<usize>,
    words: String,
}

impl Overview {
    pub(super) fn new(state: &State, layout: &Layout) -> Overview {
        let room = layout.map_columns.saturating_sub(BRACKETS);
        if layout.map.is_empty() || room == 0 {
            return Overview::default();
        }
        let viewport = &state.focus.camera.viewport;
        let (mut seen, all) = (viewport.window, viewport.bounds.len());
        let (title, bars, words) = match (state.steps(), state.step_in_view()) {
            (Some(steps), one) => {
                seen = one.map_or(seen, |at| steps.all[at].span);
                let bars = bars_of_steps(steps, usize::from(room));
                ("steps", bars, steps.words(one))
            }
            (None, _) => {
                let words = [seen.len(), all].map(units::duration).join(" of ");
                ("all", bars_of_time(state, room), words)
            }
        };
        let from = bars.partition_point(|it| it.span.end <= seen.start);
        let to = bars.partition_point(|it| it.span.start < seen.end);
        Overview {
            title,
            columns: (usize::from(room) / bars.len().max(1)).clamp(1, WIDEST) as u16,
            in_view: from..to,
            words,
            bars,
        }
    }

    /// The first column of a bar: those in view have a bracket on either side.
    fn column(&self, bar: usize) -> u16 {
        let before = [self.in_view.start, self.in_view.end].map(|it| u16::from(bar >= it));
        bar as u16 * self.columns + u16::from(self.is_part()) * (before[0] + before[1])
    }

    fn is_part(&self) -> bool {
        !self.in_view.is_empty() && self.in_view != (0..self.bars.len())
    }

    /// Where a click at column `x` of the screen leads to.
    pub(super) fn time_at(&self, layout: &Layout, x: u16) -> Option<Ns> {
        let x = x
            .checked_sub(layout.gutter)
            .filter(|x| *x < layout.map_columns)?;
        let bar = (0..self.bars.len())
            .rev()
            .find(|&bar| self.column(bar) <= x)?;
        Some(self.bars[bar].at)
    }

    pub(super) fn draw(&self, theme: &Theme, layout: &Layout, buf: &mut Buffer) {
        let Some(last) = pen::lines(layout.map).last() else {
            return;
        };
        let title = pen::cut(self.title, usize::from(layout.gutter) - 2);
        pen::text(buf, last, 1, &title, theme.fg(Role::Dim));
        let plot = Rect {
            x: layout.gutter,
            width: layout.map_columns,
            ..layout.map
        };
        for (at, bar) in self.bars.iter().enumerate() {
            let mut style = match bar.role {
                Role::Dim if self.in_view.contains(&at) => theme.fg(Role::Accent),
                role => theme.fg(role),
            };
            if bar.is_odd {
                style = style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
            }
            // Wide ones are set apart.
            let columns = self.columns - u16::from(self.columns > 2);
            for x in self.column(at)..self.column(at) + columns {
                ink::levels(theme, [bar.share; 2], [style; 2], plot, x, buf);
                // Longer than the scale shows.
                if bar.share > 1.0 {
                    let style = style.add_modifier(Modifier::REVERSED);
                    pen::cell(buf, plot, x, theme.glyph('▴'), style);
                }
            }
        }
        if self.is_part() {
            let start = self.column(self.in_view.start) - 1;
            let end = self.column(self.in_view.end - 1) + self.columns;
            for (x, bracket) in [(start, '['), (end, ']')] {
                pen::cell(buf, last, plot.x + x, bracket, theme.bold(Role::Accent));
            }
        }
        let room = last.width.saturating_sub(plot.right());
        let columns = usize::from(room.saturating_sub(2));
        // Of all steps it ends with a whole clause. What one of them is about is told as far as that says something.
        let is_one = self.words.starts_with("step ");
        let mut words = self.words.as_str();
        while let Some((less, _)) = words.rsplit_once(" · ")
            && pen::width(words) > columns
            && (!is_one || columns < pen::width(less) + 10)
        {
            words = less;
        }
        let words = pen::cut(&shorter(words, columns), columns);
        // A length that is cut would be another one.
        if self.words.starts_with(&*words) || self.title == "steps" {
            pen::text(buf, last, plot.right() + 1, &words, theme.fg(Role::Text));
        }
    }
}

/// What a step is about. Where that does not fit, the end of its cause goes, and then its length beside what it takes longer.
fn shorter(words: &str, columns: usize) -> String {
    let mut words = words.to_owned();
    while let Some((less, _)) = words.rsplit_once(", ")
        && pen::width(&words) > columns
    {
        words = less.to_owned();
    }
    match words.split(" · ").collect::<Vec<_>>()[..] {
        [step, _, more] if pen::width(&words) > columns && more.starts_with('+') => {
            format!("{step} · {more}")
        }
        _ => words,
    }
}

/// A bar is as high as its step is long: what half of the time goes to steps no longer than fills half. Of even steps that is the median,
/// and where few long ones take most of the time the others are low. Of several in a column the longest is seen.
fn bars_of_steps(steps: &StepList, room: usize) -> Vec<OverviewBar> {
    let full = (2 * steps.middle()).max(1) as f64;
    let columns = steps.all.chunks(steps.all.len().div_ceil(room).max(1));
    let bar = columns.filter_map(|some| {
        let step = some.iter().max_by_key(|it| it.span.len())?;
        Some(OverviewBar {
            share: step.span.len() as f64 / full,
            role: step.idle.map_or(Role::Good, |it| Role::Cause(it as u8)),
            is_odd: step.is_odd,
            span: some[0].span.hull(some[some.len() - 1].span),
            at: step.span.start,
        })
    });
    bar.collect()
}

/// How busy the GPUs were in each column.
fn bars_of_time(state: &State, room: u16) -> Vec<OverviewBar> {
    let scale = TimeScale::new(state.focus.camera.viewport.bounds, room);
    let edges = scale.edges();
    let gpus: Vec<usize> = state.rows.gpus().take(GPUS).collect();
    let mut busy: Vec<Ns> = vec![0; usize::from(scale.columns)];
    for &device in &gpus {
        let usage = &state.model.run.trace.devices()[device].usage;
        let times = usage.times(Measure::Busy, &edges);
        busy.iter_mut().zip(times).for_each(|(sum, ns)| *sum += ns);
    }
    let bar = |(x, ns): (u16, Ns)| OverviewBar {
        share: ns as f64 / (scale.cell(x).len() * gpus.len() as Ns).max(1) as f64,
        role: Role::Dim,
        is_odd: false,
        span: scale.cell(x),
        at: scale.cell(x).start,
    };
    (0..).zip(busy).map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_of_a_longer_step_stands_over_it() {
        let steps = StepList::of_lengths(&[100, 300, 100, 100, 100]);
        let map = Overview {
            title: "steps",
            columns: 1,
            in_view: 0..5,
            words: String::new(),
            bars: bars_of_steps(&steps, 60),
        };
        let layout = Layout {
            map: Rect::new(0, 0, 40, 1),
            map_columns: 20,
            gutter: 10,
            ..Layout::default()
        };
        let mut buf = Buffer::empty(layout.map);
        map.draw(&Theme::default(), &layout, &mut buf);
        let marked = (0..40).filter(|&x| buf[(x, 0)].symbol() == "▴");
        assert_eq!(
            marked.collect::<Vec<_>>(),
            [11],
            "the second behind the gutter"
        );
    }

    #[test]
    fn what_a_step_is_about_is_told_as_far_as_that_says_something() {
        let step = "step 5 of 10 · 4.02 s · +4.00 s: torch.compile, which compiles again";
        assert_eq!(shorter(step, 80), step);
        let named = "step 5 of 10 · 4.02 s · +4.00 s: torch.compile";
        assert_eq!(shorter(step, 60), named);
        assert_eq!(shorter(step, 44), "step 5 of 10 · +4.00 s: torch.compile");
        let typical = "step 52 of 66 · 33.2 ms · typical";
        assert_eq!(shorter(typical, 20), typical);
    }

    #[test]
    fn few_long_steps_that_take_most_of_the_time_make_the_others_low() {
        let shares = |lengths: &[Ns]| {
            let steps = StepList::of_lengths(lengths);
            let bars = bars_of_steps(&steps, 60).into_iter();
            bars.map(|it| it.share).collect::<Vec<_>>()
        };
        // By hand: of 1,400 in all the two of 500 take over half, so that 500 fills half.
        assert_eq!(shares(&[100, 500, 100, 100, 500, 100])[..2], [0.1, 0.5]);
        // One long one that takes less than half leaves the scale, and is marked.
        assert_eq!(shares(&[100, 300, 100, 100, 100])[..2], [0.5, 1.5]);
    }
}
