//! Two stretches of time above each other on one axis. Both begin at 0, and a column is as long in both. Hatching
//! behind the shorter one marks the time that it saves.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::axis::Axis;
use super::ink::{Ink, Paint};
use super::label;
use super::lane::{self, LaneRow, Plot};
use super::pen;
use super::strip::{Strip, StripInput};
use super::titles;
use crate::tui::state::camera::used;
use crate::tui::state::idle::IdleMap;
use crate::tui::state::nest;
use crate::tui::state::row::RowKind;
use crate::tui::state::rows;
use crate::tui::state::rows::counters::Counters;
use crate::tui::theme::{Role, Theme};
use crate::tui::time_scale::TimeScale;
use activity::{Ns, Span};
use causes::Group;
use trace::{LaneId, Trace};

/// Lines from which one is for what colours mean.
const ROOMY: u16 = 12;

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
    axis: Axis,
    lines: Vec<(Rect, Line)>,
    saved: Option<Saved>,
    /// Where it is said what the colours of GPUs mean, and what they do.
    legend: (Rect, Vec<(Role, String)>),
    gutter: u16,
    columns: u16,
}

#[derive(Clone, Debug)]
enum Line {
    Title { name: String, figures: String },
    Lane(Box<LaneRow>),
}

/// The time that the shorter one saves.
#[derive(Clone, Debug)]
struct Saved {
    area: Rect,
    words: Vec<String>,
    role: Role,
}

/// A row of a half.
struct Lane {
    kind: RowKind,
    label: String,
    lines: u16,
}

/// In which order rows get a second line where there is room, all of a kind at once.
fn turn(kind: RowKind) -> usize {
    match kind {
        RowKind::Gpu(_) => 0,
        RowKind::Stream(_) => 1,
        _ => 2,
    }
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
        let mut lanes = halves.map(|half| lanes(&half));
        let below = u16::from(area.height >= ROOMY);
        let room = usize::from(area.height - 3 - below);
        let hidden = fit(&mut lanes, room, has_host);
        let used: u16 = lanes.iter().flatten().map(|lane| lane.lines).sum();
        let apart = u16::from(usize::from(used) < room);
        let mut versus = Versus {
            axis: Axis {
                scale: TimeScale::new(Span::new(0, total), columns),
                ..Axis::default()
            },
            gutter,
            columns,
            ..Versus::default()
        };
        let mut y = area.y + 1;
        let shorter = usize::from(halves[1].span.len() <= halves[0].span.len());
        for (i, (half, lanes)) in halves.iter().zip(lanes).enumerate() {
            if i == 1 {
                y += apart;
            }
            let more = match hidden[i] {
                0 => String::new(),
                1 => " · 1 more row".to_owned(),
                n => format!(" · {n} more rows"),
            };
            let title = Line::Title {
                name: half.name.to_owned(),
                figures: format!("{}{more}", half.figures),
            };
            versus
                .lines
                .push((Rect::new(area.x, y, area.width, 1), title));
            y += 1;
            let scale = scale(half.span, total, columns);
            let top = y;
            for lane in lanes {
                let row = lane_row(half, &lane, scale, (gutter, area.width));
                let at = Rect::new(area.x, y, area.width, lane.lines);
                versus.lines.push((at, Line::Lane(Box::new(row))));
                y += lane.lines;
            }
            if i == shorter {
                let x = area.x + gutter + scale.columns;
                let free = columns - scale.columns;
                versus.saved = Some(Saved {
                    area: Rect::new(x, top, free, y - top),
                    words: words.to_vec(),
                    role,
                });
            }
        }
        let line = Rect::new(area.x, y, area.width, below);
        versus.legend = (line, legend(&versus.lines));
        lane::even(versus.lines.iter_mut().filter_map(|(at, line)| match line {
            Line::Lane(row) => Some((&mut **row, at.height)),
            Line::Title { .. } => None,
        }));
        versus
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        if self.is_empty() {
            return;
        }
        let axis = Rect::new(area.x + self.gutter, area.y, self.columns, 1);
        self.axis.draw(theme, axis, buf);
        for (at, line) in &self.lines {
            match line {
                Line::Title { name, figures } => draw_title(theme, name, figures, *at, buf),
                Line::Lane(row) => row.draw(theme, *at, buf),
            }
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
fn legend(lines: &[(Rect, Line)]) -> Vec<(Role, String)> {
    let causes = lines.iter().flat_map(|(_, line)| match line {
        Line::Lane(row) => row.plot.causes(),
        Line::Title { .. } => &[],
    });
    let seen: Vec<u8> = causes.copied().flatten().collect();
    let is_seen = |group: &&Group| seen.contains(&(**group as u8));
    let idle = Group::ALL.iter().filter(is_seen);
    let ran = [(Role::Good, "kernels"), (Role::H2D, "copies alone")].into_iter();
    ran.chain(idle.map(|it| (Role::Cause(*it as u8), it.label())))
        .map(|(role, words)| (role, words.to_owned()))
        .collect()
}

/// The rows of a half: devices, streams, and the host's.
fn lanes(half: &Half<'_>) -> Vec<Lane> {
    let rows = rows::all(half.trace, half.span, false, Counters::None);
    let is_shown =
        |kind: RowKind| matches!(kind, RowKind::Gpu(_) | RowKind::Stream(_)) || is_host(kind);
    let shown = rows.into_iter().filter(|row| is_shown(row.kind));
    shown
        .map(|row| Lane {
            kind: row.kind,
            label: row.label,
            lines: 1,
        })
        .collect()
}

fn is_host(kind: RowKind) -> bool {
    matches!(kind, RowKind::Thread(_) | RowKind::Range(..))
}

/// Leaves out rows for which there is no room. Those of the CPU go first, unless its time is what is compared. Then go
/// those of devices (streams say more), then those of the longer half. Lets rows grow where there is more room. Returns
/// how many streams and threads were left out.
fn fit(lanes: &mut [Vec<Lane>; 2], room: usize, has_host: bool) -> [usize; 2] {
    let mut hidden = [0, 0];
    let spared: [&dyn Fn(RowKind) -> bool; 2] = [&|kind| is_host(kind) && !has_host, &|kind| {
        matches!(kind, RowKind::Gpu(_))
    }];
    for is_spared in spared {
        if lanes[0].len() + lanes[1].len() > room {
            let is_kept = |lane: &Lane| !is_spared(lane.kind);
            lanes.iter_mut().for_each(|half| half.retain(is_kept));
        }
    }
    while lanes[0].len() + lanes[1].len() > room {
        let longer = usize::from(lanes[1].len() > lanes[0].len());
        if lanes[longer].pop().is_none() {
            break;
        }
        hidden[longer] += 1;
    }
    let mut spare = room.saturating_sub(lanes[0].len() + lanes[1].len());
    for wanted in 0..3 {
        let all = || lanes.iter().flatten();
        let count = all().filter(|lane| turn(lane.kind) == wanted).count();
        if count > spare {
            break;
        }
        spare -= count;
        for lane in lanes.iter_mut().flatten() {
            lane.lines += u16::from(turn(lane.kind) == wanted);
        }
    }
    hidden
}

/// The columns that a half takes when `columns` are as long as `total`. The last one may reach behind its end.
fn scale(span: Span, total: Ns, columns: u16) -> TimeScale {
    let (length, all) = (i128::from(span.len()), i128::from(total));
    let used = (length * i128::from(columns) + all - 1) / all;
    let used = (used as u16).clamp(1, columns);
    let end = span.start + (all * i128::from(used) / i128::from(columns)) as Ns;
    TimeScale::new(Span::new(span.start, end), used)
}

fn lane_row(
    half: &Half<'_>,
    lane: &Lane,
    scale: TimeScale,
    (gutter, width): (u16, u16),
) -> LaneRow {
    let (trace, span) = (half.trace, half.span);
    let input = StripInput {
        scale,
        scope: span,
        has_gaps: matches!(lane.kind, RowKind::Stream(_)),
        ..StripInput::default()
    };
    let plot = match lane.kind {
        RowKind::Gpu(device) => {
            let usage = &trace.devices()[device].usage;
            Plot::of_gpu(usage, scale, used(usage, Some(span)), |cell| {
                half.idle.within(device, cell.intersect(span))
            })
        }
        RowKind::Range(id, depth) => {
            let levels = nest::levels(&trace.lanes()[id], scale.window, nest::DEEPEST);
            let mut strip = Strip::nested(trace, id, levels.as_deref(), depth, &input);
            end_at(trace, id, scale, span.end, &mut strip);
            Plot::Strip(strip)
        }
        kind => match kind.lane() {
            Some(id) => {
                let mut strip = Strip::new(trace, id, &input);
                end_at(trace, id, scale, span.end, &mut strip);
                Plot::Strip(strip)
            }
            None => Plot::default(),
        },
    };
    LaneRow {
        label: lane.label.clone(),
        plot,
        gutter,
        side_columns: width.saturating_sub(gutter + scale.columns),
        ..LaneRow::default()
    }
}

/// What begins behind the end of a half is none of it, though its last column reaches there.
fn end_at(trace: &Trace, id: LaneId, scale: TimeScale, end: Ns, strip: &mut Strip) {
    let last = scale.cell(scale.columns - 1);
    let lane = &trace.lanes()[id];
    let is_foreign = lane
        .next(end)
        .is_some_and(|row| lane.span(row).start < last.end);
    let Some(ink) = strip.cells.last_mut().filter(|_| is_foreign) else {
        return;
    };
    let busy = lane.busy(Span::new(last.start, end.max(last.start)));
    *ink = match lane.previous(end) {
        Some(row) if busy > 0 => {
            let paint = Paint {
                role: label::role(trace, &trace.activity(id, row).what),
                is_second: row % 2 == 1,
                ..Paint::default()
            };
            Ink::Level(busy as f32 / last.len().max(1) as f32, paint)
        }
        _ => Ink::Nothing,
    };
    strip.names.retain(|name| name.x + 1 < scale.columns);
}

fn draw_title(theme: &Theme, name: &str, figures: &str, line: Rect, buf: &mut Buffer) {
    let room = usize::from(line.width);
    let figures = pen::cut(figures, room.saturating_sub(12));
    let left = room.saturating_sub(pen::width(&figures) + 8);
    let name = pen::cut(name, left);
    let rule = |buf: &mut Buffer, x| pen::cell(buf, line, x, '─', theme.fg(Role::Rule));
    let mut x = pen::text(buf, line, 0, &format!(" {name} "), theme.bold(Role::Text));
    if !figures.is_empty() {
        rule(buf, x);
        let text = format!(" {figures} ");
        x = pen::text(buf, line, x + 1, &text, theme.fg(Role::Dim));
    }
    (x..line.width).for_each(|x| rule(buf, x));
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
            let style = match i {
                0 => theme.bold(self.role),
                _ => theme.fg(self.role),
            };
            pen::text(buf, line, x, &text, style.remove_modifier(Modifier::DIM));
        }
    }
}

#[cfg(test)]
mod tests;
