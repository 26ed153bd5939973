//! Lanes over time: the view to come back to.

mod content;
mod counters;
mod filler;
mod motion;
mod pointer;
mod rows;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::View;
use crate::activity::Span;
use crate::tui::action::Action;
use crate::tui::action::Context;
use crate::tui::draw::axis::Axis;
use crate::tui::draw::lane::LaneRow;
use crate::tui::draw::layout::Layout;
use crate::tui::draw::link::LinkLine;
use crate::tui::draw::pen;
use crate::tui::state::counters::Counters;
use crate::tui::state::idle::IdleGroup;
use crate::tui::state::rows::{Row, RowKind};
use crate::tui::state::selection::Selection;
use crate::tui::state::{Scope, State};
use crate::tui::theme::{Role, Theme};
use crate::tui::time_scale::TimeScale;
use filler::Filler;

/// In which order rows get a second line where there is room for it, all of a kind at once; `None` for those
/// that never do.
fn turn(kind: RowKind) -> Option<usize> {
    match kind {
        RowKind::Gpu(_) => Some(0),
        RowKind::Stream(_) | RowKind::Ghost(_) => Some(1),
        RowKind::Bandwidth(..)
        | RowKind::Overlap(_)
        | RowKind::Memory(_)
        | RowKind::Counter(..) => Some(2),
        RowKind::Thread(_) | RowKind::Range(..) => Some(3),
        RowKind::Title | RowKind::Folded(_) | RowKind::Overhead(_) => None,
    }
}

/// Which turns get a second line when so many of `visible` lines are to spare, and what is left of them.
fn grown(rows: &[Row], mut spare: usize) -> ([bool; 4], usize) {
    let mut grown = [false; 4];
    for (i, grows) in grown.iter_mut().enumerate() {
        let count = rows.iter().filter(|row| turn(row.kind) == Some(i)).count();
        if count > spare {
            break;
        }
        *grows = true;
        spare -= count;
    }
    (grown, spare)
}

/// What stands on one row.
#[derive(Clone, Debug)]
enum Shown {
    Title(String),
    /// A folded group, and whether it is selected.
    Folded(String, bool),
    Lane(LaneRow),
    /// What the colours of the rows of GPUs mean.
    Legend(Vec<(IdleGroup, String)>),
}

/// A row on the screen.
#[derive(Clone, Debug)]
struct Line {
    /// Index into the state's rows.
    row: usize,
    area: Rect,
    shown: Shown,
    /// Whether it is predicted.
    is_ghost: bool,
}

/// What the lines were made of: as long as it is the same, they are.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Made {
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
    counters: Counters,
    ghost: (u32, bool),
    search: (u32, u64),
    marks: u64,
    lanes: u64,
}

/// The view.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// The first row on screen.
    first_row: usize,
    layout: Layout,
    of: Option<Made>,
    axis: Axis,
    lines: Vec<Line>,
    /// From the selected call to its operation, or from the selected operation's call to it.
    link: Option<LinkLine>,
    /// Rows below the last one on screen.
    below: usize,
    /// That rows are kept away.
    hidden: String,
    /// What stands in the room below the rows, and where.
    filler: (Filler, Rect),
    /// What stands there instead of rows.
    empty: &'static str,
}

impl View for Timeline {
    fn context(&self) -> Context {
        Context::Timeline
    }

    fn open(&mut self, _state: &State) {}

    fn prepare(&mut self, state: &State, _area: Rect, is_on_screen: bool) {
        self.layout = Layout::of(state);
        if !is_on_screen {
            return;
        }
        self.scroll(state);
        let of = Made {
            run: state.run.number,
            revision: state.run.trace.revision(),
            is_running: state.run.is_running(),
            scope: state.camera.scope,
            window: state.camera.viewport.window,
            selection: state.selection,
            first_row: self.first_row,
            layout: self.layout,
            idle: state.idle.version,
            counters: state.counters,
            ghost: state.ghost.version(),
            search: state.search.version(),
            marks: state.marks.version(),
            lanes: state.lanes.version(),
        };
        if self.of != Some(of) {
            self.of = Some(of);
            self.make(state);
        }
        let end = self
            .lines
            .last()
            .map_or(self.layout.rows.y, |l| l.area.bottom());
        let free = self.layout.rows.bottom().saturating_sub(end);
        let room = if self.lines.is_empty() || self.below > 0 {
            0
        } else {
            free
        };
        // Set apart where there is a line for that.
        let apart = u16::from(room > 4);
        let area = Rect {
            y: end + apart,
            height: free.saturating_sub(apart),
            ..self.layout.rows
        };
        self.filler = (
            Filler::new(state, usize::from(room.saturating_sub(apart))),
            area,
        );
    }

    fn draw(&self, theme: &Theme, _area: Rect, buf: &mut Buffer) {
        if self.lines.is_empty() {
            self.draw_empty(theme, buf);
            return;
        }
        self.axis.draw(theme, self.layout.axis, buf);
        for line in &self.lines {
            match &line.shown {
                Shown::Title(title) => draw_title(theme, title, line.area, buf),
                Shown::Folded(label, is_selected) => {
                    draw_title(theme, label, line.area, buf);
                    let mark = if *is_selected { '▸' } else { '+' };
                    let style = theme.bold(Role::Accent);
                    pen::cell(buf, line.area, 0, theme.glyph(mark), style);
                }
                Shown::Lane(lane) => lane.draw(theme, line.area, buf),
                Shown::Legend(groups) => {
                    draw_legend(theme, groups, self.layout.gutter, line.area, buf);
                }
            }
            if line.is_ghost {
                buf.set_style(line.area, Style::new().add_modifier(Modifier::DIM));
            }
        }
        if let Some(link) = &self.link {
            link.draw(theme, buf);
        }
        let (filler, area) = &self.filler;
        filler.draw(theme, &self.layout, *area, buf);
        let area = self.layout.details_rule;
        let mut x = area.width.saturating_sub(2);
        if self.below > 0 {
            let text = format!(" {} more below ", self.below);
            x = x.saturating_sub(text.len() as u16);
            pen::text(buf, area, x, &text, theme.fg(Role::Dim));
            x = x.saturating_sub(2);
        }
        if !self.hidden.is_empty() {
            let text = pen::plain(theme, &format!(" {} ", self.hidden));
            x = x.saturating_sub(pen::width(&text) as u16);
            pen::text(buf, area, x, &text, theme.bold(Role::Warning));
        }
    }

    fn act(&mut self, action: Action, state: &mut State) {
        match action {
            Action::Click { x, y } => self.click(state, x, y),
            // On the axis it measures, elsewhere the window goes along.
            Action::Drag { from, x, .. } if from.1 == self.layout.axis.y => {
                self.measure(state, from.0, x);
            }
            Action::Drag { columns, .. } => self.drag(state, columns),
            Action::Wheel { x, is_in, .. } => self.wheel(state, x, is_in),
            _ => motion::act(action, state),
        }
    }
}

impl Timeline {
    /// Rows at the top that do not scroll: at most half of what there is room for.
    fn fixed(&self, state: &State) -> usize {
        let most = usize::from(self.layout.rows.height) / 2;
        state.lanes.fixed().min(most)
    }

    /// Scrolls so that the selected row is on screen, or the prediction that came.
    fn scroll(&mut self, state: &State) {
        let fixed = self.fixed(state);
        let last = state.rows.len().saturating_sub(1);
        self.first_row = self.first_row.min(last).max(fixed);
        let visible = usize::from(self.layout.rows.height)
            .saturating_sub(fixed)
            .max(1);
        let is_new = self.of.is_none_or(|of| of.ghost != state.ghost.version());
        let is_ghost = |row: &Row| matches!(row.kind, RowKind::Ghost(_));
        if let (true, Some(from), Some(to)) = (
            is_new,
            state.rows.iter().position(is_ghost),
            state.rows.iter().rposition(is_ghost),
        ) {
            // Its title with it, and as much of it as there is room for.
            let least = (to + 1).saturating_sub(visible);
            self.first_row = self.first_row.max(least).min(from.saturating_sub(1));
            return;
        }
        let Some(at) = state.selection.position(&state.rows) else {
            return;
        };
        if at < fixed {
            // It is on screen anyway.
        } else if at < self.first_row {
            // Its title with it.
            self.first_row = at.saturating_sub(1).max(fixed);
        } else if at >= self.first_row + visible {
            self.first_row = at + 1 - visible;
        }
    }

    fn make(&mut self, state: &State) {
        let window = state.camera.viewport.window;
        let scale = TimeScale::new(window, self.layout.plot_columns());
        self.axis = Axis {
            scale,
            zero: state.camera.zero(&state.run),
            mark: state.selection.item.span(),
            measured: state.marks.span(),
            single: state.marks.single(),
        };
        self.empty = if state.run.is_running() {
            "waiting for the first records …"
        } else {
            "nothing was recorded"
        };
        let area = self.layout.rows;
        let visible = usize::from(area.height);
        let fixed = self.fixed(state);
        let is_at_top = self.first_row <= fixed;
        self.below = (state.rows.len() + fixed).saturating_sub(self.first_row + visible);
        self.hidden = state.hidden_words().unwrap_or_default();
        let spare = visible.saturating_sub(state.rows.len());
        let has_gpu = matches!(state.rows.first(), Some(row) if turn(row.kind) == Some(0));
        let legend = if has_gpu && is_at_top && spare > 0 {
            rows::legend(state)
        } else {
            Vec::new()
        };
        let has_legend = !legend.is_empty();
        let (grown, _) = if is_at_top {
            grown(&state.rows, spare - usize::from(has_legend))
        } else {
            ([false; 4], 0)
        };
        self.lines.clear();
        let mut rates = rows::Rates::default();
        let mut y = area.y;
        let first = self.first_row;
        let rows = state.rows.iter().enumerate();
        for (i, row) in rows.filter(|(i, _)| *i < fixed || *i >= first) {
            if y >= area.bottom() {
                break;
            }
            let is_grown = turn(row.kind).is_some_and(|turn| grown[turn]);
            let lines = (1 + u16::from(is_grown)).min(area.bottom() - y);
            self.lines.push(Line {
                row: i,
                area: Rect::new(area.x, y, area.width, lines),
                shown: rows::make(state, &self.layout, scale, &mut rates, row),
                is_ghost: matches!(row.kind, RowKind::Ghost(_)),
            });
            y += lines;
            let is_last_gpu = turn(row.kind) == Some(0)
                && state
                    .rows
                    .get(i + 1)
                    .is_none_or(|next| turn(next.kind) != Some(0));
            if has_legend && is_last_gpu && y < area.bottom() {
                self.lines.push(Line {
                    row: i,
                    area: Rect::new(area.x, y, area.width, 1),
                    shown: Shown::Legend(legend.clone()),
                    is_ghost: false,
                });
                y += 1;
            }
        }
        self.link = self.link_line(state, scale);
    }

    /// The line of the link that is selected, where both its ends are on screen.
    fn link_line(&self, state: &State, scale: TimeScale) -> Option<LinkLine> {
        let link = state.link()?;
        let trace = &state.run.trace;
        let line_of = |lane: usize| {
            let is_it = |line: &&Line| {
                let row = state.rows.get(line.row);
                matches!(line.shown, Shown::Lane(_))
                    && row.is_some_and(|row| row.kind.lane() == Some(lane))
            };
            self.lines.iter().find(is_it)
        };
        let (call, operation) = (line_of(link.call.0)?, line_of(link.operation.0)?);
        let column = |time| Some(self.layout.axis.x + scale.column(time)?);
        let span = |(lane, row): (usize, usize)| trace.lanes()[lane].span(row);
        let called = span(link.call);
        let (x, to_x) = (
            column((called.end - 1).max(called.start))?,
            column(span(link.operation).start)?,
        );
        let is_up = operation.area.y < call.area.y;
        let (y, to_y) = if is_up {
            (call.area.y, operation.area.bottom() - 1)
        } else {
            (call.area.bottom() - 1, operation.area.y)
        };
        let between = (y.min(to_y) + 1)..y.max(to_y);
        let mut titles = self
            .lines
            .iter()
            .filter(|line| matches!(line.shown, Shown::Title(_)) && between.contains(&line.area.y));
        let across = titles.next_back().map(|line| line.area.y);
        (!between.is_empty()).then_some(LinkLine {
            from: (x, y),
            to: (to_x, to_y),
            across,
        })
    }

    fn draw_empty(&self, theme: &Theme, buf: &mut Buffer) {
        let area = self.layout.rows;
        let y = area.y + area.height / 2;
        let line = Rect::new(area.x, y, area.width, 1);
        let x = usize::from(area.width).saturating_sub(self.empty.chars().count()) / 2;
        let text = pen::plain(theme, self.empty);
        if area.height > 0 {
            pen::text(buf, line, x as u16, &text, theme.fg(Role::Dim));
        }
    }
}

/// "■ host work 41 %  ■ launching 12 %", as many as there is room for.
fn draw_legend(
    theme: &Theme,
    groups: &[(IdleGroup, String)],
    gutter: u16,
    line: Rect,
    buf: &mut Buffer,
) {
    let dim = theme.fg(Role::Dim);
    let lead = if groups.is_empty() { "" } else { "idle:" };
    let mut x = pen::text(buf, line, gutter, lead, dim) + 1;
    for (group, words) in groups {
        let text = pen::plain(theme, words);
        if usize::from(x) + pen::width(&text) + 2 > usize::from(line.width) {
            return;
        }
        let cause = *group as u8;
        pen::cell(
            buf,
            line,
            x,
            theme.cause(cause),
            theme.fg(Role::Cause(cause)),
        );
        x = pen::text(buf, line, x + 2, &text, dim) + 2;
    }
}

fn draw_title(theme: &Theme, title: &str, line: Rect, buf: &mut Buffer) {
    pen::fill(buf, line, theme.glyph('─'), theme.fg(Role::Rule));
    let label = pen::cut(title, usize::from(line.width).saturating_sub(4));
    let label = format!(" {} ", pen::plain(theme, &label));
    pen::text(buf, line, 0, &label, theme.fg(Role::Dim));
}
