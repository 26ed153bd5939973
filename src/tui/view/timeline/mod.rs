//! Lanes over time: the view to come back to.

mod cell;
mod counters;
mod layout;
mod navigation;
mod overview;
mod pointer;
mod rows;
mod summary_panel;

use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};

use super::sweep::SweepChart;
use super::{List, Request, View};
use crate::tui::action::Action;
use crate::tui::action::Context;
use crate::tui::draw::axis::Axis;
use crate::tui::draw::layout::Layout;
use crate::tui::draw::prelude::*;
use crate::tui::draw::titles;
use crate::tui::state::rows::counters::Counters;
use crate::tui::state::{Row, Scope, Selection, State};
use crate::tui::time_scale::TimeScale;
use activity::Span;
use activity::text;
use cell::RowContent;
use layout::ScreenRow;
use overview::Overview;
use summary_panel::SummaryPanel;

/// What the lines were made of: as long as it is the same, they are.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LinesKey {
    run: u64,
    revision: u64,
    is_running: bool,
    scope: Scope,
    window: Span,
    selection: Selection,
    first_row: usize,
    layout: Layout,
    /// What is known of idle time.
    idle: u64,
    /// And of waiting inside collectives.
    job: u64,
    /// And of the rounds of graphs.
    rounds: u64,
    counters: Counters,
    prediction: (u32, bool),
    search: (u32, u64),
    marks: u64,
    lanes: u64,
    /// Why the selected gap is there.
    why: u64,
    /// Whom the source waits for.
    stood: u64,
}

/// Rows leave no line below them where they have no more than these.
const LEAST_ROWS: u16 = 8;

#[derive(Debug, Default)]
pub(super) struct TimelineView {
    /// The first row on screen.
    first_row: usize,
    layout: Layout,
    of: Option<LinesKey>,
    map: Overview,
    axis: Axis,
    lines: Vec<ScreenRow>,
    /// Rows below the last one on screen.
    below: usize,
    /// Lines that rows leave to what could be better, though there are more of them.
    kept: u16,
    /// That rows are kept away.
    hidden: String,
    /// What stands in the room below the rows, and where.
    filler: (SummaryPanel, Rect),
    /// Below that the chart of a sweep.
    chart: SweepChart,
    /// And beside them.
    beside: SummaryPanel,
    /// What stands there instead of rows.
    empty: String,
}

impl View for TimelineView {
    fn context(&self) -> Context {
        Context::Timeline
    }

    fn prepare(&mut self, list: &mut List, state: &State, area: Rect) {
        self.layout = Layout::of(state);
        self.chart.prepare(list, state, area);
        self.scroll(state);
        let of = LinesKey {
            run: state.model.run.number,
            revision: state.model.run.trace.revision(),
            is_running: state.model.run.is_running(),
            scope: state.focus.camera.scope,
            window: state.focus.camera.viewport.window,
            selection: state.focus.selection,
            first_row: self.first_row,
            layout: self.layout,
            idle: state.model.idle.question.version,
            job: state.model.job.question.version,
            rounds: state.model.rounds.question.version,
            counters: state.rows.counters,
            prediction: state.focus.prediction.version(),
            search: state.focus.search.version(),
            marks: state.focus.marks.version,
            lanes: state.rows.lanes.version,
            why: state.focus.why.version(),
            stood: state.model.run.stood,
        };
        if self.of == Some(of) {
            self.layout.rows.height -= self.kept;
        } else {
            (self.of, self.kept) = (Some(of), 0);
            let legend = self.legend_lines();
            self.make(state);
            // Where rows fill the screen, the last lines of it are for what could be better all the same.
            let kept = self.layout.below as u16;
            let end = self.lines.last().map_or(0, |l| l.area.bottom());
            let is_full = end + kept > self.layout.rows.bottom() || self.first_row > 0;
            if is_full && kept > 1 && !state.is_bare && self.layout.rows.height > LEAST_ROWS + kept
            {
                self.kept = kept;
                self.layout.rows.height -= kept;
                self.scroll(state);
                self.make(state);
            }
            // What the colours mean takes a line, or leaves it again.
            if self.legend_lines() != legend {
                let before = self.first_row;
                self.scroll(state);
                if self.first_row != before {
                    self.make(state);
                }
            }
        }
        let last = self.lines.last();
        let end = last.map_or(self.layout.rows.y, |l| l.area.bottom());
        let free = self.layout.rows.bottom().saturating_sub(end) + self.kept;
        let room = if self.lines.is_empty() || (self.below > 0 && self.kept == 0) {
            0
        } else {
            free
        };
        // Set apart where there is a line for that.
        let apart = u16::from(room > 4 && usize::from(room) > SummaryPanel::reserved(state));
        let area = Rect {
            y: end + apart,
            height: free.saturating_sub(apart),
            ..self.layout.rows
        };
        let has_panel = !self.layout.panel.is_empty();
        let parts = (true, !has_panel);
        let room = usize::from(room.saturating_sub(apart));
        self.filler = (SummaryPanel::new(state, parts, area.width, room), area);
        let Rect { width, height, .. } = self.layout.panel;
        let parts = (false, has_panel);
        self.beside = SummaryPanel::new(state, parts, width, usize::from(height));
    }

    fn draw(&self, _list: &List, theme: &Theme, _area: Rect, buf: &mut Buffer) {
        if self.lines.is_empty() {
            self.draw_empty(theme, buf);
            return;
        }
        self.map.draw(theme, &self.layout, buf);
        self.axis.draw(theme, self.layout.axis, buf);
        for line in &self.lines {
            match &line.shown {
                RowContent::Title(title) => titles::title(theme, title, line.area, buf),
                RowContent::Folded(label, is_selected) => {
                    titles::title(theme, &format!(" {label}"), line.area, buf);
                    let mark = if *is_selected { '▸' } else { '+' };
                    let style = theme.bold(Role::Accent);
                    pen::cell(buf, line.area, 0, mark, style);
                }
                RowContent::Lane(lane) => lane.draw(theme, line.area, buf),
                RowContent::Legend(groups) => {
                    titles::legend(theme, groups, self.layout.gutter, line.area, buf);
                }
            }
            if line.is_predicted {
                buf.set_style(line.area, Style::new().add_modifier(Modifier::DIM));
            }
        }
        let (filler, area) = &self.filler;
        filler.draw(theme, &self.layout, *area, buf);
        let told = filler.height().min(area.height);
        let chart = Rect {
            y: area.y + told,
            height: area.height - told,
            ..*area
        };
        self.chart
            .chart
            .iter()
            .for_each(|it| it.draw(theme, chart, buf));
        let panel = self.layout.panel;
        self.beside.draw(theme, &self.layout, panel, buf);
        for line in pen::lines(panel) {
            pen::cell(buf, line, 0, '│', theme.fg(Role::Rule));
        }
        let area = self.layout.details_rule;
        let mut x = area.width.saturating_sub(2);
        if self.below > 0 && area.is_empty() {
            // Without a rule it stands beside the axis.
            let text = format!(" {} more ▾", self.below);
            let beside = Rect {
                x: 0,
                width: self.layout.gutter,
                ..self.layout.axis
            };
            pen::text(buf, beside, 0, &text, theme.fg(Role::Dim));
        } else if self.below > 0 {
            let text = format!(" {} more below ", self.below);
            x = x.saturating_sub(text.len() as u16);
            pen::text(buf, area, x, &text, theme.fg(Role::Dim));
            x = x.saturating_sub(2);
        }
        if !self.hidden.is_empty() {
            let text = format!(" {} ", self.hidden);
            x = x.saturating_sub(pen::width(&text) as u16);
            pen::text(buf, area, x, &text, theme.fg(Role::Dim));
        }
    }

    fn act(&mut self, _at: usize, action: Action, state: &mut State) -> Option<Request> {
        match action {
            Action::Click { x, y }
            | Action::Drag {
                from: (_, y), x, ..
            } if self
                .layout
                .map
                .contains(Position::new(self.layout.map.x, y)) =>
            {
                self.go_to(state, x);
            }
            Action::Click { x, y } => self.click(state, x, y),
            // From the axis the window goes along, elsewhere it measures.
            Action::Drag { from, columns, .. } if from.1 == self.layout.axis.y => {
                self.drag(state, columns);
            }
            Action::Drag { from, x, .. } => self.measure(state, from.0, x),
            Action::Wheel { x, is_in, .. } => self.wheel(state, x, is_in),
            _ => navigation::act(action, state),
        }
        None
    }
}

impl TimelineView {
    /// Lines that say what the colours of GPUs mean: one or none.
    fn legend_lines(&self) -> usize {
        let is_legend = |line: &&ScreenRow| matches!(line.shown, RowContent::Legend(_));
        self.lines.iter().filter(is_legend).count()
    }

    /// Scrolls so that the selected row is on screen, or the prediction that came.
    fn scroll(&mut self, state: &State) {
        let last = state.rows.list.len().saturating_sub(1);
        self.first_row = self.first_row.min(last);
        let visible = usize::from(self.layout.rows.height)
            .saturating_sub(self.legend_lines())
            .max(1);
        let is_new = self
            .of
            .is_none_or(|of| of.prediction != state.focus.prediction.version());
        let is_predicted = |row: &Row| row.kind.is_predicted();
        if let (true, Some(from), Some(to)) = (
            is_new,
            state.rows.list.iter().position(is_predicted),
            state.rows.list.iter().rposition(is_predicted),
        ) {
            // Its title with it, and as much of it as there is room for.
            let least = (to + 1).saturating_sub(visible);
            self.first_row = self.first_row.max(least).min(from.saturating_sub(1));
            return;
        }
        let Some(at) = state.focus.selection.position(&state.rows.list) else {
            return;
        };
        if at < self.first_row {
            // Its title with it.
            self.first_row = at.saturating_sub(1);
        } else if at >= self.first_row + visible {
            self.first_row = at + 1 - visible;
        }
    }

    fn make(&mut self, state: &State) {
        let window = state.focus.camera.viewport.window;
        let scale = TimeScale::new(window, self.layout.plot_columns());
        self.map = Overview::new(state, &self.layout);
        self.axis = Axis {
            scale,
            zero: state.zero(),
            mark: state.focus.selection.item.span(),
            measured: state.focus.marks.span(),
            single: state.focus.marks.single(),
        };
        self.empty = match state.model.run.standing.first() {
            // Whom the source waits for, and what to do.
            Some(it) => it.text.clone(),
            None if state.model.run.is_running() => "waiting for the first records …".to_owned(),
            None => "nothing was recorded".to_owned(),
        };
        self.hidden = state.hidden_words().unwrap_or_default();
        self.lines = layout::lines(state, &self.layout, scale, self.first_row);
        let last = self.lines.last();
        let seen = last.map_or(0, |line| line.row + 1);
        let is_full = last.is_some_and(|line| line.area.bottom() == self.layout.rows.bottom());
        self.below = if is_full {
            state.rows.list.len().saturating_sub(seen)
        } else {
            0
        };
    }

    fn draw_empty(&self, theme: &Theme, buf: &mut Buffer) {
        let area = self.layout.rows;
        let width = usize::from(area.width);
        let lines = self
            .empty
            .lines()
            .flat_map(|line| text::wrap(&text::printable(line), width.saturating_sub(4)));
        for (y, line) in (area.y + area.height / 2..area.bottom()).zip(lines) {
            let x = width.saturating_sub(pen::width(&line)) / 2;
            let row = Rect::new(area.x, y, area.width, 1);
            pen::text(buf, row, x as u16, &line, theme.fg(Role::Dim));
        }
    }
}
