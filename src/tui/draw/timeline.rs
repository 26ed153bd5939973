//! The timeline's rows, prepared from the app and drawn one by one.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use super::axis::Axis;
use super::label;
use super::lane::{LaneRow, Plot};
use super::layout::Layout;
use super::pen;
use super::strip::{Strip, Wish};
use crate::activity::{Direction, Span, units};
use crate::trace::Measure;
use crate::tui::app::App;
use crate::tui::app::rows::{Row, RowKind};
use crate::tui::app::selection::Item;
use crate::tui::theme::{Role, Theme};
use crate::tui::time_scale::TimeScale;

/// Axis and rows.
#[derive(Clone, Copy, Debug)]
pub struct Timeline<'a> {
    /// The state.
    pub app: &'a App,
    /// Colours and glyphs.
    pub theme: &'a Theme,
    /// Where everything stands.
    pub layout: Layout,
}

impl Widget for &Timeline<'_> {
    /// Draws at the places of the layout, whatever `area` is.
    fn render(self, _area: Rect, buf: &mut Buffer) {
        let scale = TimeScale::new(self.app.viewport.window, self.layout.plot_columns());
        let axis = Axis {
            theme: self.theme,
            scale,
            zero: self.app.zero(),
            mark: self.app.selection.item.span(),
        };
        if self.app.rows.is_empty() {
            self.draw_empty(buf);
            return;
        }
        (&axis).render(self.layout.axis, buf);
        let area = self.layout.rows;
        let mut y = area.y;
        for row in self.app.rows.iter().skip(self.app.first_row) {
            if y >= area.bottom() {
                break;
            }
            let lines = self.layout.lines(row.kind).min(area.bottom() - y);
            self.draw_row(row, Rect::new(area.x, y, area.width, lines), scale, buf);
            y += lines;
        }
        self.draw_scroll(buf);
    }
}

impl Timeline<'_> {
    fn draw_empty(&self, buf: &mut Buffer) {
        let text = if self.app.is_running() {
            "waiting for the first records …"
        } else {
            "nothing was recorded"
        };
        let area = self.layout.rows;
        let y = area.y + area.height / 2;
        let line = Rect::new(area.x, y, area.width, 1);
        let x = usize::from(area.width).saturating_sub(text.chars().count()) / 2;
        let text = pen::plain(self.theme, text);
        if area.height > 0 {
            pen::text(buf, line, x as u16, &text, self.theme.fg(Role::Dim));
        }
    }

    /// Says that there is more above or below, at the right end of the axis and of the details' rule.
    fn draw_scroll(&self, buf: &mut Buffer) {
        let hidden = self
            .app
            .rows
            .len()
            .saturating_sub(self.app.first_row + self.layout.row_count());
        let style = self.theme.fg(Role::Dim);
        if hidden > 0 {
            let text = format!(" {hidden} more below ");
            let area = self.layout.details_rule;
            let x = area.width.saturating_sub(text.len() as u16 + 2);
            pen::text(buf, area, x, &text, style);
        }
    }

    fn draw_row(&self, row: &Row, line: Rect, scale: TimeScale, buf: &mut Buffer) {
        if row.kind == RowKind::Title {
            let rule = self.theme.fg(Role::Rule);
            pen::fill(buf, line, self.theme.glyph('─'), rule);
            let label = pen::cut(&row.label, usize::from(line.width).saturating_sub(4));
            let label = format!(" {} ", pen::plain(self.theme, &label));
            pen::text(buf, line, 0, &label, self.theme.fg(Role::Dim));
            return;
        }
        let is_wide = self.layout.side > 12;
        let (role, figure, side, plot) = match row.kind {
            RowKind::Bandwidth(device, direction) => {
                self.bandwidth(device, direction, scale, is_wide)
            }
            RowKind::Overlap(device) => self.overlap(device, scale, is_wide),
            RowKind::Memory(device) => self.memory(device, scale, is_wide),
            _ => self.lane(row.kind, scale, is_wide),
        };
        let lane = LaneRow {
            theme: self.theme,
            label: row.label.clone(),
            figure,
            side,
            role,
            plot,
            is_selected: self.app.selection.row == Some(row.kind),
            gutter: self.layout.gutter,
            side_columns: self.layout.side,
        };
        (&lane).render(line, buf);
    }

    fn bandwidth(
        &self,
        device: usize,
        direction: Direction,
        scale: TimeScale,
        is_wide: bool,
    ) -> (Role, String, String, Plot) {
        let trace = &self.app.trace;
        let usage = &trace.devices()[device].usage;
        let measure = Measure::Direction(direction);
        let rate = |window: Span| {
            let busy = usage.time(measure, window);
            (busy > 0).then(|| trace.bytes_moved(device, direction, window) / busy as f64)
        };
        let in_cell: Vec<f64> = (0..scale.columns)
            .map(|x| {
                let cell = scale.cell(x);
                let moves = usage.time(measure, cell) > 0;
                if moves {
                    trace.bytes_moved(device, direction, cell) / cell.len().max(1) as f64
                } else {
                    0.0
                }
            })
            .collect();
        let known = self.app.peaks.copies.of(direction);
        let greatest = in_cell.iter().copied().fold(0.0, f64::max);
        let full = known.unwrap_or(greatest).max(f64::MIN_POSITIVE);
        let shares = in_cell.iter().map(|rate| rate / full).collect();
        let average = rate(self.app.figures_span());
        let role = label::direction_role(direction);
        let figure = average.map_or_else(String::new, units::rate);
        let side = match (average, known) {
            (Some(average), Some(peak)) if is_wide => format!(
                "{} of {} GB/s",
                units::percent(average / peak),
                units::rate(peak)
            ),
            (Some(average), Some(peak)) => units::percent(average / peak),
            (Some(_), None) if is_wide => format!("GB/s, at most {}", units::rate(greatest)),
            (Some(_), None) => "GB/s".to_owned(),
            (None, _) => String::new(),
        };
        (role, figure, side, Plot::Meter { shares, role })
    }

    fn overlap(
        &self,
        device: usize,
        scale: TimeScale,
        is_wide: bool,
    ) -> (Role, String, String, Plot) {
        let usage = &self.app.trace.devices()[device].usage;
        let shares = (0..scale.columns)
            .map(|x| {
                let cell = scale.cell(x);
                let both = usage.time(Measure::Overlap, cell);
                both as f64 / cell.len().max(1) as f64
            })
            .collect();
        let window = self.app.figures_span();
        let copy = usage.time(Measure::Copy, window);
        let side = if copy > 0 {
            let share = usage.time(Measure::Overlap, window) as f64 / copy as f64;
            let share = units::percent(share);
            if is_wide {
                format!("{share} of copies hidden")
            } else {
                share
            }
        } else {
            String::new()
        };
        let role = Role::Overlap;
        (role, String::new(), side, Plot::Meter { shares, role })
    }

    /// The most memory in use within each column, against the most within the scope.
    fn memory(
        &self,
        device: usize,
        scale: TimeScale,
        is_wide: bool,
    ) -> (Role, String, String, Plot) {
        let role = Role::Memset;
        let scope = self.app.scope_span().unwrap_or_default();
        let memory = self.app.memory.get(device);
        let in_use = |window: Span| memory.and_then(|m| m.peak(window)).unwrap_or(0);
        let most = in_use(scope);
        let shares = (0..scale.columns)
            .map(|x| {
                let cell = scale.cell(x).intersect(scope);
                in_use(cell) as f64 / most.max(1) as f64
            })
            .collect();
        let most = units::bytes(most);
        let side = if is_wide {
            format!("at most {most}")
        } else {
            String::new()
        };
        (role, String::new(), side, Plot::Meter { shares, role })
    }

    fn lane(&self, kind: RowKind, scale: TimeScale, is_wide: bool) -> (Role, String, String, Plot) {
        let nothing = || {
            (
                Role::Text,
                String::new(),
                String::new(),
                Plot::Strip(Strip::default()),
            )
        };
        let Some(id) = kind.lane() else {
            return nothing();
        };
        let selection = &self.app.selection;
        // A range that was stepped to may stand on another of its lane's rows.
        let item = if selection.row.and_then(RowKind::lane) == Some(id) {
            selection.item
        } else {
            Item::None
        };
        let is_stream = matches!(kind, RowKind::Stream(_));
        let wish = Wish {
            scale,
            scope: self.app.scope_span().unwrap_or_default(),
            record: match item {
                Item::Record { row, .. } => Some(row),
                _ => None,
            },
            gap: match item {
                Item::Gap(gap) => Some(gap),
                _ => None,
            },
            has_gaps: is_stream,
        };
        let window = self.app.figures_span();
        let side = if is_stream && !window.is_empty() {
            let busy = self.app.trace.lanes()[id].busy(window);
            let share = units::percent(busy as f64 / window.len() as f64);
            if is_wide {
                format!("busy {share}")
            } else {
                share
            }
        } else {
            String::new()
        };
        let strip = match kind {
            RowKind::Range(_, depth) => Strip::nested(&self.app.trace, id, depth, &wish),
            _ => Strip::new(&self.app.trace, id, &wish),
        };
        (Role::Text, String::new(), side, Plot::Strip(strip))
    }
}
