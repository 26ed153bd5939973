//! One cell of a lane: how much of it is inked, on which side, in which colour.
//!
//! The inked area of a cell is its busy share to an eighth, at least an eighth where anything ran and nothing where
//! nothing did. A single edge lies where the operation's is. The glyphs fill cells from the left, so a cell filled from
//! the right draws the rest of it in reversed colours. Glyphs of eighths that rise from below stand for cells of
//! several operations.

use ratatui::style::{Color, Modifier, Style};

use crate::tui::draw::prelude::*;
use crate::tui::theme::{ColorLevel, Role, Theme};

/// A cell that is busy for so much of it shows no idle time.
pub(super) const FULL: f64 = 0.97;

/// The colour of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint {
    pub role: Role,
    /// Whether it has the second shade: neighbours have different ones.
    pub is_second: bool,
    pub is_selected: bool,
    /// Whether it stands back: something else is looked for.
    pub is_calm: bool,
}

impl Paint {
    /// That of nothing but a role.
    pub fn of(role: Role) -> Paint {
        Paint {
            role,
            ..Paint::default()
        }
    }

    fn role(self) -> Role {
        match self {
            Paint {
                is_selected: true, ..
            } => Role::Selected,
            Paint { is_calm: true, .. } => Role::Rule,
            Paint { role, .. } => role,
        }
    }

    /// Text or a block in its colour.
    pub fn ink(self, theme: &Theme) -> Style {
        theme.ink_of(self.role(), self.is_second && !self.is_selected)
    }

    /// What a cell that is inked all over looks like; text may stand on it.
    pub fn fill(self, theme: &Theme) -> Style {
        let style = theme.on_shade(self.role(), self.is_second && !self.is_selected);
        match (self, theme.fg(Role::Dim).fg) {
            (
                Paint {
                    is_selected: true, ..
                },
                _,
            ) => style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            // Its name stands back too, where there are colours enough for that.
            (Paint { is_calm: true, .. }, Some(dim)) if style.bg != Some(dim) => style.fg(dim),
            (Paint { is_calm: true, .. }, None) => style.add_modifier(Modifier::DIM),
            _ => style,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Ink {
    /// Nothing ran.
    #[default]
    Nothing,
    /// So many eighths (1 to 7) from the left.
    Left(u8, Paint),
    /// So many eighths (1 to 7) from the right.
    Right(u8, Paint),
    /// One operation up to so many eighths (1 to 7), the next one from there.
    Split(u8, Paint, Paint),
    /// One operation all over.
    Full(Paint),
    /// Several operations, or one between two edges: the share of the time in which one ran, above 0.
    Level(f32, Paint),
    /// Many short ones: the share of the time that one kind took, and that all did, above 0.
    Shares([f32; 2], [Paint; 2]),
}

impl Ink {
    /// That of a cell between a full one and an empty one: what ran ends, or begins, within the cell.
    pub fn at_edge(share: f64, beside: [f64; 2], paint: Paint) -> Option<Ink> {
        let eighths = Theme::eighths(share).clamp(1, 7);
        match beside.map(|it| if it >= FULL { 1 } else { -i8::from(it <= 0.0) }) {
            _ if share <= 0.0 || share >= FULL => None,
            [1, -1] => Some(Ink::Left(eighths, paint)),
            [-1, 1] => Some(Ink::Right(eighths, paint)),
            _ => None,
        }
    }

    /// Makes it something else, by its colour.
    pub fn set_role(&mut self, role: Role) {
        match self {
            Ink::Nothing => {}
            Ink::Left(_, paint)
            | Ink::Right(_, paint)
            | Ink::Full(paint)
            | Ink::Level(_, paint) => paint.role = role,
            Ink::Split(_, left, right) => (left.role, right.role) = (role, role),
            Ink::Shares(_, paints) => paints.iter_mut().for_each(|paint| paint.role = role),
        }
    }

    /// Draws it into column `x` of `plot`, over all its lines. What is not inked has the colour of `ground`,
    /// or the terminal's own.
    pub fn draw(self, theme: &Theme, plot: Rect, x: u16, ground: Option<Color>, buf: &mut Buffer) {
        if x >= plot.width {
            return;
        }
        let over = |style: Style| ground.map_or(style, |color| style.bg(color));
        let (glyph, style) = match self {
            Ink::Nothing => return,
            Ink::Full(paint) => (' ', paint.fill(theme)),
            Ink::Left(eighths, paint) => (theme.left_block(eighths), over(paint.ink(theme))),
            // Without blocks how much is inked is still told, and the side is the neighbour's.
            Ink::Right(eighths, paint) if theme.is_ascii => {
                (theme.block(eighths), over(paint.ink(theme)))
            }
            Ink::Right(eighths, paint) => {
                let (glyph, ink) = (theme.left_block(8 - eighths), paint.ink(theme));
                match (ground, ink.fg) {
                    (Some(ground), Some(color)) => (glyph, ink.fg(ground).bg(color)),
                    _ => (glyph, ink.add_modifier(Modifier::REVERSED)),
                }
            }
            Ink::Split(at, left, right) => split(theme, at, left, right),
            Ink::Level(share, paint) => {
                let share = f64::from(share.max(f32::MIN_POSITIVE));
                let style = over(paint.ink(theme));
                levels(theme, [share; 2], [style; 2], plot, x, buf);
                return;
            }
            Ink::Shares(shares, paints) => {
                let styles = paints.map(|paint| over(paint.ink(theme)));
                levels(theme, shares.map(f64::from), styles, plot, x, buf);
                return;
            }
        };
        for y in plot.y..plot.bottom() {
            if let Some(cell) = buf.cell_mut((plot.x + x, y)) {
                cell.set_char(glyph).set_style(style);
            }
        }
    }
}

/// Two operations that meet in a cell. Where two colours cannot be told apart within one, or blocks
/// are missing, a line stands on the one that has more of it.
fn split(theme: &Theme, at: u8, left: Paint, right: Paint) -> (char, Style) {
    let has_two = theme.level != ColorLevel::None && !theme.is_ascii;
    if has_two && let (Some(color), style) = (right.ink(theme).fg, left.ink(theme)) {
        return (theme.left_block(at), style.bg(color));
    }
    let more = if at > 4 { left } else { right };
    (theme.glyph('│'), more.fill(theme))
}

/// Two heights over all lines of `plot`: what is counted first stands below, in the first style. A character has two
/// colours. One that is empty for a part is as high as it is filled, in the style of what takes more of that.
pub fn levels(
    theme: &Theme,
    [first, all]: [f64; 2],
    [below, above]: [Style; 2],
    plot: Rect,
    x: u16,
    buf: &mut Buffer,
) {
    let full = (plot.height * 8).min(u16::from(u8::MAX)) as u8;
    let mut first = Theme::levels(first.min(all), full);
    let mut all = Theme::levels(all, full);
    for line in pen::lines(plot).rev() {
        let (here, ink) = (first.min(8), all.min(8));
        let has_both = ink == 8 && here > 0 && below != above && theme.has_grounds();
        match above.fg.filter(|_| has_both) {
            Some(color) => pen::cell(buf, line, x, theme.block(here), below.bg(color)),
            None if ink > 0 => {
                let style = if 2 * here >= ink { below } else { above };
                pen::cell(buf, line, x, theme.block(ink), style);
            }
            None => {}
        }
        (first, all) = (first.saturating_sub(8), all.saturating_sub(8));
    }
}
