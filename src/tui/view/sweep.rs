//! A figure over the swept parameter, as a chart.

use super::{List, Request, View};
use crate::tui::action::Action;
use crate::tui::draw::chart::Chart;
use crate::tui::draw::prelude::*;
use crate::tui::state::State;
use crate::tui::sweep;

#[derive(Debug, Default)]
pub(super) struct SweepChart {
    /// The run, the state of its figures, and the choice that the chart is of.
    of: Option<(u64, u64, usize)>,
    /// Which of the figures that there are.
    choice: usize,
    pub(super) chart: Option<Chart>,
    empty: &'static str,
}

impl View for SweepChart {
    fn has_list(&self) -> bool {
        false
    }

    fn offers(&self, action: Action) -> bool {
        action == Action::Sort
    }

    fn has_content(&self, state: &State) -> bool {
        state.model.run.is_swept()
    }

    fn prepare(&mut self, _list: &mut List, state: &State, _area: Rect) {
        let run = &state.model.run;
        let of = (run.number, run.figured, self.choice);
        if self.of == Some(of) {
            return;
        }
        self.of = Some(of);
        self.chart = sweep::sweep(run, self.choice).map(Chart::new);
        self.empty = if run.is_swept() {
            "no point has been measured yet"
        } else {
            "this scenario has no [sweep]"
        };
    }

    fn draw(&self, _list: &List, theme: &Theme, area: Rect, buf: &mut Buffer) {
        match &self.chart {
            Some(chart) => chart.draw(theme, area, buf),
            None => {
                pen::text(buf, area, 2, self.empty, theme.fg(Role::Dim));
            }
        }
    }

    fn act(&mut self, _at: usize, action: Action, _state: &mut State) -> Option<Request> {
        if action == Action::Sort {
            self.choice = self.choice.wrapping_add(1);
        }
        None
    }
}
