//! One row of the timeline: gutter, plot, side column.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use rustc_hash::FxHashMap;

use super::gaps::GapMark;
use super::ink::{self, Ink};
use super::pen;
use super::strip::{Name, Strip};
use crate::tui::theme::{Role, Theme};
use crate::tui::time_scale::TimeScale;
use activity::{Ns, Span};
use causes::Shares;
use trace::{Measure, Usage};

/// Columns below which a cut name says nothing.
const RIDDLE: usize = 5;

/// What stands in the plot of a row.
#[derive(Clone, Debug)]
pub enum Plot {
    /// Operations.
    Strip(Strip),
    /// How busy a device is, and behind it why it is idle.
    Gpu {
        /// The busy shares.
        shares: Vec<Busy>,
        /// What most of the idle time in the column was due to, as far as it is known.
        causes: Vec<Option<u8>>,
    },
    /// A height for each column, from 0 to 1, over as many lines as the row has, and its colour; none where nothing is
    /// known. What is zero has a line of its own, to be told from what is not known.
    Levels(Vec<Option<(f64, Role)>>),
}

impl Default for Plot {
    fn default() -> Self {
        Plot::Strip(Strip::default())
    }
}

/// What part of a column a device was busy for.
#[derive(Clone, Copy, Debug)]
pub struct Busy {
    /// With kernels, whatever ran beside them.
    pub kernels: f64,
    /// With anything.
    pub all: f64,
}

impl Plot {
    /// Heights from 0 to 1 in one colour; nothing stands where one is zero.
    pub fn meter(shares: impl IntoIterator<Item = f64>, role: Role) -> Plot {
        let cell = |share| (share > 0.0).then_some((share, role));
        Plot::Levels(shares.into_iter().map(cell).collect())
    }

    /// Why a device is idle in each column, where this is one.
    #[must_use]
    pub fn causes(&self) -> &[Option<u8>] {
        match self {
            Plot::Gpu { causes, .. } => causes,
            _ => &[],
        }
    }

    /// How busy a device is, and why it is idle in cells that touch `used`: before that and after it nothing
    /// is to be explained.
    pub fn of_gpu(
        usage: &Usage,
        scale: TimeScale,
        used: Span,
        idle: impl Fn(Span) -> Shares,
    ) -> Plot {
        let edges = scale.edges();
        let busy = usage.times(Measure::Busy, &edges);
        let kernels = usage.times(Measure::Compute, &edges);
        let (mut shares, mut causes) = (Vec::new(), Vec::new());
        for ((cell, busy), kernels) in cells(&edges).zip(busy).zip(kernels) {
            let share = |ns| ns as f64 / cell.len().max(1) as f64;
            shares.push(Busy {
                kernels: share(kernels),
                all: share(busy),
            });
            let between = cell.intersect(used);
            let groups = (busy < between.len()).then(|| (0..).zip(idle(between)));
            let most = groups.and_then(|groups| groups.max_by_key(|(_, ns)| *ns));
            causes.push(most.filter(|(_, ns)| *ns > 0).map(|(group, _)| group));
        }
        Plot::Gpu { shares, causes }
    }
}

pub fn cells(edges: &[Ns]) -> impl Iterator<Item = Span> + '_ {
    edges.windows(2).map(|two| Span::new(two[0], two[1]))
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
                for (x, cell) in (0..plot.width).zip(cells) {
                    if let Some((share, role)) = *cell {
                        let share = share.max(f64::MIN_POSITIVE);
                        ink::levels(theme, [share; 2], [theme.fg(role); 2], plot, x, buf);
                    }
                }
            }
            Plot::Gpu { shares, causes } => draw_gpu(theme, shares, causes, plot, buf),
        }
        let side = Rect::new(plot.right(), area.y, self.side_columns, 1);
        let room = usize::from(self.side_columns).saturating_sub(1);
        if pen::width(&self.side) <= room {
            pen::text(buf, side, 1, &self.side, theme.fg(Role::Dim));
        }
    }

    fn draw_gutter(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        let gutter = Rect::new(area.x, area.y, self.gutter.min(area.width), 1);
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
        let is_whole = name.whole.is_empty() || name.has_room(*height);
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

/// The height is the busy share: kernels below, in another colour what ran without one. The cause of idle time is a thin
/// line above them, or its letter: nothing that waits looks as full as what works. A line of one cell has no room for
/// both, and shows what ran. Without colours it shows the letter where that is less than half.
fn draw_gpu(theme: &Theme, shares: &[Busy], causes: &[Option<u8>], plot: Rect, buf: &mut Buffer) {
    let has_ground = theme.has_grounds();
    let styles = [Role::Good, Role::H2D].map(|role| theme.fg(role));
    let most = match has_ground && plot.height == 1 {
        true => f64::MIN_POSITIVE,
        false => 0.5,
    };
    for ((x, share), cause) in (0..plot.width).zip(shares).zip(causes) {
        // Without colours the two parts would look alike.
        let kernels = if has_ground { share.kernels } else { share.all };
        ink::levels(theme, [kernels, share.all], styles, plot, x, buf);
        if let Some(cause) = cause.filter(|_| share.all < most) {
            let style = theme.fg(Role::Cause(cause));
            pen::cell(buf, plot, x, theme.cause(cause), style);
        }
    }
}

pub(super) fn draw_strip(theme: &Theme, strip: &Strip, plot: Rect, buf: &mut Buffer) {
    for (x, ink) in (0..).zip(&strip.cells) {
        let is_gap = strip.selected_gap.contains(&x);
        ink.draw(theme, plot, x, is_gap.then_some(Role::Warning), buf);
    }
    let line = Rect { height: 1, ..plot };
    for name in &strip.names {
        if name.is_key {
            let style = name.paint.ink(theme).bg(Color::Reset);
            pen::text(buf, line, name.x, &name.text, style);
            continue;
        }
        let (columns, style) = (usize::from(name.columns), name.paint.fill(theme));
        if name.has_room(plot.height) {
            let pieces = pen::pieces(&name.whole, columns);
            for (piece, line) in pieces.iter().zip(pen::lines(plot)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::ColorLevel;

    /// The characters of one column, from above, with their colour and the one behind.
    fn column(kernels: f64, all: f64, lines: u16) -> Vec<(char, bool, bool)> {
        let theme = Theme::default();
        let plot = Rect::new(0, 0, 1, lines);
        let mut buf = Buffer::empty(plot);
        draw_gpu(&theme, &[Busy { kernels, all }], &[None], plot, &mut buf);
        let (good, copies) = (theme.fg(Role::Good).fg, theme.fg(Role::H2D).fg);
        let seen = |y| {
            let cell = &buf[(0, y)];
            let symbol = cell.symbol().chars().next().unwrap_or(' ');
            (symbol, Some(cell.fg) == good, Some(cell.bg) == copies)
        };
        (0..lines).map(seen).collect()
    }

    #[test]
    fn what_waits_never_looks_as_full_as_what_works() {
        let plot = Rect::new(0, 0, 1, 2);
        let blind = Theme {
            level: ColorLevel::None,
            ..Theme::default()
        };
        for (theme, all, above, below) in [
            (Theme::default(), 0.0, "━", " "),
            (Theme::default(), 0.25, "━", "▄"),
            (Theme::default(), 0.75, "▄", "█"),
            (blind, 0.0, "l", " "),
            (blind, 1.0, "█", "█"),
        ] {
            let mut buf = Buffer::empty(plot);
            let busy = Busy { kernels: all, all };
            draw_gpu(&theme, &[busy], &[Some(1)], plot, &mut buf);
            assert_eq!((buf[(0, 0)].symbol(), buf[(0, 1)].symbol()), (above, below));
            assert_eq!(buf[(0, 0)].bg, Color::Reset, "no ground of a cause");
        }
    }

    #[test]
    fn kernels_and_copies_alone_have_two_tones() {
        let (kernels, copies, behind) = (true, false, true);
        assert_eq!(column(1.0, 1.0, 1), [('█', kernels, behind)]);
        assert_eq!(column(0.0, 1.0, 1), [('█', copies, false)]);
        assert_eq!(column(0.25, 1.0, 1), [('▂', kernels, behind)]);
        // Idle for a half: as high as it was busy, in the colour of the larger part.
        assert_eq!(column(0.375, 0.5, 1), [('▄', kernels, false)]);
        assert_eq!(column(0.125, 0.5, 1), [('▄', copies, false)]);
        assert_eq!(
            column(0.5, 1.0, 2),
            [('█', copies, false), ('█', kernels, behind)]
        );
    }
}
