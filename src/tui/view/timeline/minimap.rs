//! The whole scope on one line, with the window on it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::draw::layout::Layout;
use crate::tui::draw::pen;
use crate::tui::state::State;
use crate::tui::theme::{Role, Theme};
use crate::tui::time_scale::TimeScale;
use activity::{Ns, units};
use trace::Measure;

/// GPUs that are looked at: with more of them a column would say as much.
const MOST: usize = 16;

/// The line, ready to be drawn.
#[derive(Debug, Default)]
pub(super) struct Minimap {
    /// How busy the GPUs were in each column.
    shares: Vec<f64>,
    /// The first and the last column of the window.
    window: (u16, u16),
    words: String,
}

impl Minimap {
    pub(super) fn new(state: &State, layout: &Layout) -> Minimap {
        let viewport = &state.focus.camera.viewport;
        if layout.map.is_empty() {
            return Minimap::default();
        }
        let scale = TimeScale::new(viewport.bounds, layout.plot_columns());
        let edges = scale.edges();
        let mut busy: Vec<Ns> = vec![0; usize::from(scale.columns)];
        let mut count = 0;
        for device in state.rows.gpus().take(MOST) {
            count += 1;
            let usage = &state.model.run.trace.devices()[device].usage;
            let times = usage.times(Measure::Busy, &edges);
            busy.iter_mut().zip(times).for_each(|(sum, ns)| *sum += ns);
        }
        let share = |(x, ns): (u16, Ns)| ns as f64 / (scale.cell(x).len() * count).max(1) as f64;
        let column = |time| scale.column(time).unwrap_or(scale.columns - 1);
        let (window, all) = (viewport.window, viewport.bounds.len());
        let length = units::duration(window.len());
        Minimap {
            shares: (0..).zip(busy).map(share).collect(),
            window: (column(window.start), column(window.end - 1)),
            words: format!("{length} of {}", units::duration(all)),
        }
    }

    pub(super) fn draw(&self, theme: &Theme, layout: &Layout, buf: &mut Buffer) {
        let line = layout.map;
        if line.is_empty() {
            return;
        }
        let dim = theme.fg(Role::Dim);
        let all = pen::cut("all", usize::from(layout.gutter) - 2);
        pen::text(buf, line, 1, &all, dim);
        let (first, last) = self.window;
        for (x, share) in (0..).zip(&self.shares) {
            let style = match (first..=last).contains(&x) {
                true => theme.bg(Role::Rule).patch(theme.fg(Role::Accent)),
                false => dim,
            };
            let block = theme.block(Theme::eighths(*share));
            pen::cell(buf, line, layout.gutter + x, block, style);
        }
        let side = Rect::new(layout.axis.right(), line.y, layout.side, 1);
        if pen::width(&self.words) + 1 < usize::from(side.width) {
            pen::text(buf, side, 1, &self.words, dim);
        }
    }
}
