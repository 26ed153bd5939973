//! One row of the timeline: gutter, plot, side column.

use std::ops::Range;

use ratatui::style::{Color, Modifier};
use rustc_hash::FxHashMap;

use super::gaps::GapMark;
use super::gpu::GpuPlot;
use super::ink::{self, Ink, Paint};
use super::strip::{Name, Strip};
use crate::tui::draw::prelude::*;

/// Columns below which a cut name says nothing.
const RIDDLE: usize = 5;

/// What stands in the plot of a row.
#[derive(Clone, Debug)]
pub enum Plot {
    /// Operations.
    Strip(Strip),
    /// How busy a device is, and behind it why it is idle.
    Gpu(GpuPlot),
    /// A height for each column, from 0 to 1, over as many lines as the row has, and its colour; none where nothing is
    /// known. What is zero has a line of its own, to be told from what is not known.
    Levels(Vec<Option<(f64, Role)>>),
    /// What is the same in all columns, or why there is nothing: a line of text.
    Words(String),
    /// What would be left, and what would be saved: columns with their words.
    Bound([(Range<u16>, String); 2]),
}

impl Default for Plot {
    fn default() -> Self {
        Plot::Strip(Strip::default())
    }
}

impl Plot {
    /// Heights from 0 to 1 in one colour; nothing stands where one is zero.
    pub fn meter(shares: impl IntoIterator<Item = f64>, role: Role) -> Plot {
        let cell = |share| (share > 0.0).then_some((share, role));
        Plot::Levels(shares.into_iter().map(cell).collect())
    }

    /// Why a device is idle in each column, where this is one.
    pub fn causes(&self) -> &[Option<u8>] {
        match self {
            Plot::Gpu(gpu) => &gpu.causes,
            _ => &[],
        }
    }
}

/// A row, ready to be drawn.
#[derive(Clone, Debug, Default)]
pub struct LaneRow {
    pub label: String,
    /// A figure right of the name; dropped when there is no room.
    pub figure: String,
    /// What stands in the side column.
    pub side: String,
    /// The colour of label, figure and meter.
    pub role: Role,
    pub plot: Plot,
    pub is_selected: bool,
    /// Whether its name is what is looked for.
    pub is_hit: bool,
    /// Columns of the gutter.
    pub gutter: u16,
    pub side_columns: u16,
}

impl LaneRow {
    pub fn new(role: Role, plot: Plot, side: impl Into<String>) -> LaneRow {
        let side = side.into();
        LaneRow {
            side,
            role,
            plot,
            ..LaneRow::default()
        }
    }

    pub fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        if area.is_empty() {
            return;
        }
        self.draw_gutter(theme, area, buf);
        let columns = area.width.saturating_sub(self.gutter + self.side_columns);
        let plot = Rect {
            x: area.x + self.gutter.min(area.width),
            width: columns,
            ..area
        };
        match &self.plot {
            Plot::Strip(strip) => draw_strip(theme, strip, plot, buf),
            Plot::Levels(cells) => {
                let height = |x: usize| cells.get(x).copied().flatten().map_or(0.0, |it| it.0);
                for (x, cell) in (0..plot.width).zip(cells) {
                    let Some((share, role)) = *cell else { continue };
                    let share = share.max(f64::MIN_POSITIVE);
                    let at = usize::from(x);
                    let beside = [at.wrapping_sub(1), at + 1].map(height);
                    match Ink::at_edge(share, beside, Paint::of(role)) {
                        Some(ink) => ink.draw(theme, plot, x, None, buf),
                        None => ink::levels(theme, [share; 2], [theme.fg(role); 2], plot, x, buf),
                    }
                }
            }
            Plot::Gpu(gpu) => gpu.draw(theme, plot, buf),
            Plot::Words(words) => {
                let style = theme.fg(Role::Dim);
                let words = pen::cut(words, usize::from(plot.width).saturating_sub(4));
                pen::fill(buf, base(plot), '─', theme.fg(Role::Rule));
                pen::text(buf, base(plot), 2, &format!(" {words} "), style);
            }
            Plot::Bound(parts) => draw_bound(theme, parts, plot, buf),
        }
        let side = Rect {
            x: plot.right(),
            width: self.side_columns,
            ..base(area)
        };
        let room = usize::from(self.side_columns).saturating_sub(1);
        if pen::width(&self.side) <= room {
            pen::text(buf, side, 1, &self.side, theme.fg(Role::Dim));
        }
    }

    fn draw_gutter(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        let gutter = Rect {
            width: self.gutter.min(area.width),
            ..base(area)
        };
        let room = usize::from(gutter.width).saturating_sub(2);
        let style = if self.is_selected {
            pen::cell(buf, gutter, 0, '▸', theme.bold(Role::Accent));
            theme.bold(Role::Text)
        } else {
            theme.fg(self.role)
        };
        let style = if self.is_hit {
            style
                .patch(theme.bold(Role::Accent))
                .add_modifier(Modifier::UNDERLINED)
        } else {
            style
        };
        let label = pen::cut(&self.label, room);
        let end = pen::text(buf, gutter, 1, &label, style);
        let figure = pen::width(&self.figure);
        if figure > 0 && usize::from(end) + 1 + figure < usize::from(gutter.width) {
            let x = gutter.width - 1 - figure as u16;
            pen::text(buf, gutter, x, &self.figure, theme.bold(self.role));
        }
    }
}

/// Leaves names only on bars that are wider than all of their colour without one: of equal bars all have one or none. A
/// name cut so short that it is a riddle is none. `rows` are so many lines high.
pub fn even<'a>(rows: impl Iterator<Item = (&'a mut LaneRow, u16)>) {
    let mut names: Vec<(&mut Name, u16)> = Vec::new();
    for (row, height) in rows {
        if let Plot::Strip(strip) = &mut row.plot {
            names.extend(strip.names.iter_mut().map(|name| (name, height)));
        }
    }
    names.retain(|(name, _)| !name.is_key);
    let mut nameless: FxHashMap<Role, u16> = FxHashMap::default();
    for (name, height) in &names {
        let is_whole = name.whole.is_empty() || name.in_lines(*height).is_some();
        if name.text.is_empty() || (!is_whole && pen::width(&name.text) < RIDDLE) {
            let widest = nameless.entry(name.paint.role).or_default();
            *widest = name.columns.max(*widest);
        }
    }
    for (name, _) in names {
        let widest = nameless.get(&name.paint.role);
        if widest.is_some_and(|widest| name.columns <= widest + 1) && !name.paint.is_selected {
            (name.text, name.whole) = (String::new(), String::new());
        }
    }
}

/// A bar, and hatching behind it.
fn draw_bound(theme: &Theme, parts: &[(Range<u16>, String); 2], plot: Rect, buf: &mut Buffer) {
    let styles = [theme.bg(Role::Dim), theme.fg(Role::Good)];
    for (((columns, words), style), glyph) in parts.iter().zip(styles).zip([' ', '╱']) {
        for (line, x) in pen::lines(plot).flat_map(|it| columns.clone().map(move |x| (it, x))) {
            pen::cell(buf, line, x, glyph, style);
        }
        if let Some(spare) = columns.len().checked_sub(pen::width(words) + 2) {
            let x = columns.start + (spare / 2) as u16;
            pen::text(buf, base(plot), x, &format!(" {words} "), style);
        }
    }
}

/// The last line of a row, on which its words stand: heights begin there.
fn base(area: Rect) -> Rect {
    Rect {
        y: area.bottom().saturating_sub(1),
        height: area.height.min(1),
        ..area
    }
}

pub(super) fn draw_strip(theme: &Theme, strip: &Strip, plot: Rect, buf: &mut Buffer) {
    for (x, ink) in (0..).zip(&strip.cells) {
        let is_gap = strip.selected_gap.contains(&x);
        let ground = theme.fg(Role::Warning).fg.filter(|_| is_gap);
        ink.draw(theme, plot, x, ground, buf);
    }
    let line = base(plot);
    for name in &strip.names {
        if name.is_key {
            let style = name.paint.ink(theme).bg(Color::Reset);
            pen::text(buf, line, name.x, &name.text, style);
            continue;
        }
        let style = name.paint.fill(theme);
        if let Some(pieces) = name.in_lines(plot.height) {
            let from = usize::from(plot.height) - pieces.len();
            for (piece, line) in pieces.iter().zip(pen::lines(plot).skip(from)) {
                pen::text(buf, line, name.x, piece, style);
            }
            continue;
        }
        let end = pen::text(buf, line, name.x, &name.text, style);
        // A bar may have parts of another colour, which stay visible behind its name.
        for x in name.x..end {
            if let Some(Ink::Full(paint)) = strip.cells.get(usize::from(x))
                && *paint != name.paint
                && let Some(cell) = buf.cell_mut((line.x + x, line.y))
            {
                cell.set_style(paint.fill(theme));
            }
        }
    }
    for gap in &strip.gaps {
        draw_gap(theme, gap, line, buf);
    }
}

fn draw_gap(theme: &Theme, gap: &GapMark, line: Rect, buf: &mut Buffer) {
    let style = if gap.is_selected {
        theme.bold(Role::Warning)
    } else {
        theme.fg(Role::Dim)
    };
    if gap.is_selected {
        for x in gap.from..gap.to {
            pen::cell(buf, line, x, '─', style);
        }
    }
    if gap.label.is_empty() {
        return;
    }
    let text = format!("‹{}›", gap.label);
    let spare = usize::from(gap.to - gap.from).saturating_sub(pen::width(&text));
    pen::text(buf, line, gap.from + (spare / 2) as u16, &text, style);
}
