//! The cells of a screen with their colours worked out, row by row.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

/// Red, green, blue.
pub(super) type Rgb = [u8; 3];

/// What stands for the terminal's own background.
pub(super) const BACKGROUND: Rgb = [0x0d, 0x11, 0x17];
/// What stands for the terminal's own foreground.
const FOREGROUND: Rgb = [0xe6, 0xed, 0xf3];

/// The sixteen colours, which are a matter of taste in every terminal: these are readable on the background.
const SIXTEEN: [Rgb; 16] = [
    [0x21, 0x26, 0x2d],
    [0xff, 0x7b, 0x72],
    [0x3f, 0xb9, 0x50],
    [0xd2, 0x99, 0x22],
    [0x58, 0xa6, 0xff],
    [0xbc, 0x8c, 0xff],
    [0x39, 0xc5, 0xcf],
    [0xb1, 0xba, 0xc4],
    [0x6e, 0x76, 0x81],
    [0xff, 0xa1, 0x98],
    [0x56, 0xd3, 0x64],
    [0xe3, 0xb3, 0x41],
    [0x79, 0xc0, 0xff],
    [0xd2, 0xa8, 0xff],
    [0x56, 0xd4, 0xdd],
    [0xf0, 0xf6, 0xfc],
];

/// How a cell looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Look {
    pub(super) foreground: Rgb,
    pub(super) background: Rgb,
    pub(super) is_bold: bool,
    pub(super) is_italic: bool,
    pub(super) is_underlined: bool,
    pub(super) is_crossed_out: bool,
}

/// A symbol and the columns that it covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    /// Its first column, from 0 at the screen's left.
    pub(super) column: u16,
    /// 1, or 2 for wide symbols.
    pub(super) columns: u16,
    pub(super) symbol: &'a str,
    pub(super) look: Look,
}

/// The pieces of one row, `row` counted from 0 at the screen's top.
pub(super) fn row(buffer: &Buffer, row: u16) -> impl Iterator<Item = Piece<'_>> {
    let area = buffer.area;
    let mut next = 0;
    std::iter::from_fn(move || {
        if next >= area.width {
            return None;
        }
        let column = next;
        let cell = &buffer[(area.x + column, area.y + row)];
        let width = u16::try_from(cell.symbol().width()).unwrap_or(1);
        let columns = width.clamp(1, area.width - column);
        next += columns;
        Some(Piece {
            column,
            columns,
            symbol: match cell.symbol() {
                "" => " ",
                symbol => symbol,
            },
            look: look(cell.fg, cell.bg, cell.modifier),
        })
    })
}

fn look(fg: Color, bg: Color, modifier: Modifier) -> Look {
    let mut foreground = rgb(fg, FOREGROUND);
    let mut background = rgb(bg, BACKGROUND);
    if modifier.contains(Modifier::REVERSED) {
        std::mem::swap(&mut foreground, &mut background);
    }
    if modifier.contains(Modifier::DIM) {
        foreground = mix(foreground, background, 0.55);
    }
    if modifier.contains(Modifier::HIDDEN) {
        foreground = background;
    }
    Look {
        foreground,
        background,
        is_bold: modifier.contains(Modifier::BOLD),
        is_italic: modifier.contains(Modifier::ITALIC),
        is_underlined: modifier.contains(Modifier::UNDERLINED),
        is_crossed_out: modifier.contains(Modifier::CROSSED_OUT),
    }
}

/// `share` of one colour over another.
pub(super) fn mix(over: Rgb, under: Rgb, share: f32) -> Rgb {
    std::array::from_fn(|i| {
        let value = f32::from(over[i]) * share + f32::from(under[i]) * (1.0 - share);
        value.round() as u8
    })
}

fn rgb(color: Color, default: Rgb) -> Rgb {
    match color {
        Color::Reset => default,
        Color::Black => SIXTEEN[0],
        Color::Red => SIXTEEN[1],
        Color::Green => SIXTEEN[2],
        Color::Yellow => SIXTEEN[3],
        Color::Blue => SIXTEEN[4],
        Color::Magenta => SIXTEEN[5],
        Color::Cyan => SIXTEEN[6],
        Color::Gray => SIXTEEN[7],
        Color::DarkGray => SIXTEEN[8],
        Color::LightRed => SIXTEEN[9],
        Color::LightGreen => SIXTEEN[10],
        Color::LightYellow => SIXTEEN[11],
        Color::LightBlue => SIXTEEN[12],
        Color::LightMagenta => SIXTEEN[13],
        Color::LightCyan => SIXTEEN[14],
        Color::White => SIXTEEN[15],
        Color::Rgb(r, g, b) => [r, g, b],
        Color::Indexed(index) => indexed(index),
    }
}

/// xterm's 256 colours: sixteen, a cube of six steps, a ramp of greys.
fn indexed(index: u8) -> Rgb {
    let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
    match index {
        0..=15 => SIXTEEN[usize::from(index)],
        16..=231 => {
            let n = index - 16;
            [step(n / 36), step(n / 6 % 6), step(n % 6)]
        }
        232.. => [8 + 10 * (index - 232); 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn xterms_colours_are_xterms() {
        assert_eq!(indexed(16), [0, 0, 0]);
        assert_eq!(indexed(196), [255, 0, 0]);
        assert_eq!(indexed(231), [255, 255, 255]);
        assert_eq!(indexed(232), [8, 8, 8]);
        assert_eq!(indexed(255), [238, 238, 238]);
    }

    #[test]
    fn wide_symbols_cover_two_columns_and_reversed_cells_swap() {
        let mut buffer = Buffer::empty(Rect::new(3, 5, 5, 1));
        let style = Style::new()
            .fg(Color::Rgb(1, 2, 3))
            .add_modifier(Modifier::REVERSED);
        buffer.set_string(3, 5, "a世b", style);
        let pieces: Vec<_> = row(&buffer, 0)
            .map(|p| (p.column, p.columns, p.symbol))
            .collect();
        assert_eq!(
            pieces,
            [(0, 1, "a"), (1, 2, "世"), (3, 1, "b"), (4, 1, " ")]
        );
        let look = row(&buffer, 0).next().expect("a piece").look;
        assert_eq!((look.background, look.foreground), ([1, 2, 3], BACKGROUND));
    }
}
