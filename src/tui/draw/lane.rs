//! One row of the timeline: gutter, plot, side column.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::pen;
use super::strip::{Piece, Strip};
use crate::tui::theme::{Role, Theme};

/// What stands in the plot of a row.
#[derive(Clone, Debug)]
pub enum Plot {
    /// Operations.
    Strip(Strip),
    /// A height for each column, over as many lines as the row has.
    Meter {
        /// The heights, from 0 to 1.
        shares: Vec<f64>,
        /// Their colour.
        role: Role,
    },
}

impl Default for Plot {
    fn default() -> Self {
        Plot::Strip(Strip::default())
    }
}

/// A row, ready to be drawn.
#[derive(Clone, Debug)]
pub struct LaneRow {
    /// Its name.
    pub label: String,
    /// A figure right of the name; dropped when there is no room.
    pub figure: String,
    /// What stands in the side column.
    pub side: String,
    /// The colour of label and figure.
    pub role: Role,
    pub plot: Plot,
    /// Whether the row is selected.
    pub is_selected: bool,
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
        let plot = Rect::new(area.x + self.gutter.min(area.width), area.y, columns, 1);
        match &self.plot {
            Plot::Strip(strip) => {
                for piece in &strip.pieces {
                    draw_piece(theme, piece, plot, buf);
                }
            }
            Plot::Meter { shares, role } => {
                let plot = Rect {
                    height: area.height,
                    ..plot
                };
                draw_meter(theme, shares, *role, plot, buf);
            }
        }
        let side = Rect::new(plot.right(), area.y, self.side_columns, 1);
        let room = usize::from(self.side_columns).saturating_sub(1);
        let text = pen::plain(theme, &self.side);
        if pen::width(&text) <= room {
            pen::text(buf, side, 1, &text, theme.fg(Role::Dim));
        }
    }

    fn draw_gutter(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        let gutter = Rect::new(area.x, area.y, self.gutter.min(area.width), 1);
        let room = usize::from(gutter.width).saturating_sub(2);
        let style = if self.is_selected {
            pen::cell(buf, gutter, 0, theme.glyph('▸'), theme.bold(Role::Accent));
            theme.bold(Role::Text)
        } else {
            theme.fg(self.role)
        };
        let label = pen::plain(theme, &pen::cut(&self.label, room));
        let end = pen::text(buf, gutter, 1, &label, style);
        let figure = pen::width(&self.figure);
        if figure > 0 && usize::from(end) + 1 + figure < usize::from(gutter.width) {
            let x = gutter.width - 1 - figure as u16;
            pen::text(buf, gutter, x, &self.figure, theme.bold(self.role));
        }
    }
}

fn draw_meter(theme: &Theme, shares: &[f64], role: Role, plot: Rect, buf: &mut Buffer) {
    let style = theme.fg(role);
    let full = (plot.height * 8).min(u16::from(u8::MAX)) as u8;
    for (x, share) in (0..plot.width).zip(shares) {
        let mut left = Theme::levels(*share, full);
        for y in (plot.y..plot.bottom()).rev() {
            let line = Rect::new(plot.x, y, plot.width, 1);
            if left > 0 {
                pen::cell(buf, line, x, theme.block(left.min(8)), style);
            }
            left = left.saturating_sub(8);
        }
    }
}

fn draw_piece(theme: &Theme, piece: &Piece, plot: Rect, buf: &mut Buffer) {
    match piece {
        Piece::Level {
            x,
            eighths,
            role,
            is_selected,
        } => {
            let role = if *is_selected { Role::Selected } else { *role };
            pen::cell(buf, plot, *x, theme.block(*eighths), theme.fg(role));
        }
        Piece::Box {
            from,
            to,
            role,
            label,
            has_start,
            has_end,
            is_selected,
        } => {
            let role = if *is_selected { Role::Selected } else { *role };
            let mut inside = theme.on(role);
            if *is_selected {
                inside = inside.add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
            }
            for x in *from..*to {
                pen::cell(buf, plot, x, ' ', inside);
            }
            let (left, right) = theme.edges();
            let edge = theme.fg(role);
            if *has_start {
                bare(buf, plot, *from, left, edge);
            }
            if *has_end {
                bare(buf, plot, *to - 1, right, edge);
            }
            let label = pen::plain(theme, label);
            let inner = Rect::new(plot.x, plot.y, plot.width.min(*to), 1);
            pen::text(buf, inner, from + 1, &label, inside);
        }
        Piece::Gap {
            from,
            to,
            label,
            is_selected,
        } => {
            let style = if *is_selected {
                theme.bold(Role::Warning)
            } else {
                theme.fg(Role::Dim)
            };
            if *is_selected {
                for x in *from..*to {
                    pen::cell(buf, plot, x, theme.glyph('─'), style);
                }
            }
            if label.is_empty() {
                return;
            }
            let (open, close) = theme.gap_marks();
            let text = pen::plain(theme, &format!("{open}{label}{close}"));
            let spare = usize::from(to - from).saturating_sub(pen::width(&text));
            pen::text(buf, plot, from + (spare / 2) as u16, &text, style);
        }
    }
}

/// A cell whose background is the terminal's again.
fn bare(buf: &mut Buffer, area: Rect, x: u16, glyph: char, style: Style) {
    if x < area.width
        && let Some(cell) = buf.cell_mut((area.x + x, area.y))
    {
        cell.reset();
        cell.set_char(glyph).set_style(style);
    }
}
