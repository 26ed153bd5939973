//! Two windows of timelines above each other on one axis. Both begin at 0, and a column is as long in both. Hatching
//! behind the shorter one marks the time that it saves.

use ratatui::style::Modifier;

use super::axis::Axis;
use super::gpu::GpuPlot;
use super::lane::{self, LaneRow, Plot};
use super::layout::Heights;
use super::strip::{Strip, StripInput};
use super::titles;
use crate::tui::draw::prelude::*;
use crate::tui::state::camera::used;
use crate::tui::state::idle::IdleMap;
use crate::tui::state::rows::counters::Counters;
use crate::tui::state::{Row, RowKind, nest, rows};
use crate::tui::time_scale::TimeScale;
use activity::Span;
use causes::Group;
use trace::Trace;

/// Lines from which one is for what colours mean.
const ROOMY: u16 = 12;
/// Lines that a row has at most.
const MOST: u16 = 2;

/// One of the two.
#[derive(Clone, Copy, Debug)]
pub struct Half<'a> {
    pub trace: &'a Trace,
    pub span: Span,
    pub name: &'a str,
    /// Its figures, in a few words.
    pub figures: &'a str,
    /// Why its devices were idle.
    pub idle: &'a IdleMap,
}

/// Both, ready to be drawn.
#[derive(Clone, Debug, Default)]
pub struct Versus {
    axis: (Rect, Axis),
    /// The name and the figures of each.
    titles: Vec<(Rect, [String; 2])>,
    rows: Vec<(Rect, LaneRow)>,
    saved: Option<Saved>,
    /// Where it is said what the colours of GPUs mean, and what they do.
    legend: (Rect, Vec<(Role, String)>),
    gutter: u16,
}

/// What is left of an area.
struct LinesLeft(Rect);

impl LinesLeft {
    fn take(&mut self, lines: u16) -> Rect {
        let height = lines.min(self.0.height);
        let taken = Rect { height, ..self.0 };
        self.0.y += height;
        self.0.height -= height;
        taken
    }
}

/// The time that the shorter one saves.
#[derive(Clone, Debug)]
struct Saved {
    area: Rect,
    words: Vec<String>,
    role: Role,
}

impl Versus {
    /// Lays the halves into an area, the first above the second. `words` say what was saved. The
    /// host's threads are shown where there is room, and in any case where `has_host`.
    pub fn new(
        halves: [Half<'_>; 2],
        words: &[String],
        role: Role,
        has_host: bool,
        area: Rect,
        gutter: u16,
    ) -> Versus {
        let gutter = gutter.min(area.width);
        let columns = area.width.saturating_sub(gutter + 1);
        let total = halves.iter().map(|half| half.span.len()).max().unwrap_or(0);
        // A title each, and something under it.
        if columns < 8 || area.height < 5 || total <= 0 {
            return Versus::default();
        }
        let below = u16::from(area.height >= ROOMY);
        let room = usize::from(area.height - 3 - below);
        let mut kept = halves.map(|half| lane_rows(&half));
        let hidden = fit(&mut kept, room, has_host);
        let all = kept.iter().flatten().map(|row| row.kind);
        let spare = room - all.clone().count();
        let heights = Heights::new(all.clone(), MOST, spare, 0);
        let used: u16 = all.map(|kind| heights.lines(kind)).sum();
        let apart = u16::from(usize::from(used) < room);
        let scale = TimeScale::new(Span::new(0, total), columns);
        let mut versus = Versus {
            axis: (
                Rect::new(area.x + gutter, area.y, columns, 1),
                Axis {
                    scale,
                    ..Axis::default()
                },
            ),
            gutter,
            ..Versus::default()
        };
        let mut lines = LinesLeft(area);
        lines.take(1);
        let shorter = usize::from(halves[1].span.len() <= halves[0].span.len());
        for (i, (half, rows)) in halves.iter().zip(kept).enumerate() {
            lines.take(apart * i as u16);
            let figures = format!("{}{}", half.figures, more(hidden[i]));
            let title = [half.name.to_owned(), figures];
            versus.titles.push((lines.take(1), title));
            let behind = versus.add_rows(half, rows, heights, scale, &mut lines);
            if i == shorter {
                versus.saved = Some(Saved {
                    area: behind,
                    words: words.to_vec(),
                    role,
                });
            }
        }
        versus.legend = (lines.take(below), legend(&versus.rows));
        lane::even(versus.rows.iter_mut().map(|(at, row)| (row, at.height)));
        versus
    }

    /// Puts the rows of a half on the lines that follow. Returns the area behind its end.
    fn add_rows(
        &mut self,
        half: &Half<'_>,
        rows: Vec<Row>,
        heights: Heights,
        both: TimeScale,
        lines: &mut LinesLeft,
    ) -> Rect {
        let scale = half_scale(half.span, both);
        let top = lines.0;
        for row in rows {
            let at = lines.take(heights.lines(row.kind));
            let row = lane_row(half, row, scale, (self.gutter, at.width));
            self.rows.push((at, row));
        }
        Rect {
            x: top.x + self.gutter + scale.columns,
            width: both.columns - scale.columns,
            height: lines.0.y - top.y,
            ..top
        }
    }

    pub fn draw(&self, theme: &Theme, buf: &mut Buffer) {
        let (at, axis) = &self.axis;
        axis.draw(theme, *at, buf);
        for (at, [name, figures]) in &self.titles {
            titles::heading(theme, name, figures, *at, buf);
        }
        for (at, row) in &self.rows {
            row.draw(theme, *at, buf);
        }
        if let Some(saved) = &self.saved {
            saved.draw(theme, buf);
        }
        let (line, parts) = &self.legend;
        if !line.is_empty() {
            titles::legend(theme, parts, self.gutter, *line, buf);
        }
    }
}

/// Kernels, copies alone, and the causes of idle time that are there.
fn legend(rows: &[(Rect, LaneRow)]) -> Vec<(Role, String)> {
    let causes = rows.iter().flat_map(|(_, row)| row.plot.causes());
    let seen: Vec<u8> = causes.copied().flatten().collect();
    let is_seen = |group: &&Group| seen.contains(&(**group as u8));
    let idle = Group::ALL.iter().filter(is_seen);
    let ran = [(Role::Good, "kernels"), (Role::H2D, "copies alone")].into_iter();
    ran.chain(idle.map(|it| (Role::Cause(*it as u8), it.label())))
        .map(|(role, words)| (role, words.to_owned()))
        .collect()
}

/// The rows of a half: devices, streams, and the host's.
fn lane_rows(half: &Half<'_>) -> Vec<Row> {
    let mut rows = rows::all(half.trace, half.span, false, Counters::None);
    let is_shown = |kind| matches!(kind, RowKind::Gpu(_) | RowKind::Stream(_)) || is_host(kind);
    rows.retain(|row| is_shown(row.kind));
    rows
}

fn is_host(kind: RowKind) -> bool {
    matches!(kind, RowKind::Thread(_) | RowKind::Range(..))
}

/// Leaves out rows for which there is no room. Those of the CPU go first, unless its time is what is compared. Then go
/// those of devices (streams say more), then those of the longer half. Returns how many streams and threads were left
/// out.
fn fit(rows: &mut [Vec<Row>; 2], room: usize, has_host: bool) -> [usize; 2] {
    let mut hidden = [0, 0];
    let spared: [&dyn Fn(RowKind) -> bool; 2] = [&|kind| is_host(kind) && !has_host, &|kind| {
        matches!(kind, RowKind::Gpu(_))
    }];
    for is_spared in spared {
        if rows[0].len() + rows[1].len() > room {
            rows.iter_mut()
                .for_each(|half| half.retain(|row| !is_spared(row.kind)));
        }
    }
    while rows[0].len() + rows[1].len() > room {
        let longer = usize::from(rows[1].len() > rows[0].len());
        rows[longer].pop();
        hidden[longer] += 1;
    }
    hidden
}

fn more(hidden: usize) -> String {
    match hidden {
        0 => String::new(),
        1 => " · 1 more row".to_owned(),
        n => format!(" · {n} more rows"),
    }
}

/// The columns of a half on the axis of both, to the nearest one.
fn half_scale(span: Span, both: TimeScale) -> TimeScale {
    let (length, total) = (i128::from(span.len()), i128::from(both.window.len()));
    let used = (length * i128::from(both.columns) + total / 2) / total;
    TimeScale::new(span, used as u16)
}

fn lane_row(half: &Half<'_>, row: Row, scale: TimeScale, (gutter, width): (u16, u16)) -> LaneRow {
    let (trace, span) = (half.trace, half.span);
    let input = StripInput {
        scale,
        scope: span,
        has_gaps: matches!(row.kind, RowKind::Stream(_)),
        ..StripInput::default()
    };
    let plot = match row.kind {
        RowKind::Gpu(device) => {
            let usage = &trace.devices()[device].usage;
            Plot::Gpu(GpuPlot::new(
                usage,
                scale,
                used(usage, Some(span)),
                |cell| half.idle.idle_within(device, cell),
            ))
        }
        RowKind::Range(id, depth) => {
            let levels = nest::levels(trace, id, scale.window, nest::DEEPEST);
            Plot::Strip(Strip::nested(trace, id, levels.as_deref(), depth, &input))
        }
        kind => {
            let strip = kind.lane().map(|id| Strip::new(trace, id, &input));
            Plot::Strip(strip.unwrap_or_default())
        }
    };
    LaneRow {
        label: row.label,
        plot,
        gutter,
        side_columns: width.saturating_sub(gutter + scale.columns),
        ..LaneRow::default()
    }
}

impl Saved {
    fn draw(&self, theme: &Theme, buf: &mut Buffer) {
        let area = self.area;
        for line in pen::lines(area) {
            let style = theme.fg(self.role).add_modifier(Modifier::DIM);
            pen::fill(buf, line, '╱', style);
        }
        let fits = |word: &String| pen::width(word) + 4 <= usize::from(area.width);
        let shown: Vec<&String> = self.words.iter().take_while(|word| fits(word)).collect();
        // With a line of the pattern above and below, where there are so many.
        let lines = shown.len().min(usize::from(area.height)) as u16;
        let top = area.y + (area.height - lines) / 2;
        for (i, word) in (0..lines).zip(shown) {
            let line = Rect::new(area.x, top + i, area.width, 1);
            let text = format!("  {word}  ");
            let x = (usize::from(area.width).saturating_sub(pen::width(&text)) / 2) as u16;
            let style = theme.text(self.role, i == 0);
            pen::text(buf, line, x, &text, style.remove_modifier(Modifier::DIM));
        }
    }
}

#[cfg(test)]
mod tests;
