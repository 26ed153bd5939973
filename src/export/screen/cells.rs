//! The cells of a screen with their colours worked out, row by row.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

/// Red, green, blue.
pub(super) type Rgb = [u8; 3];

/// What stands for the terminal's own colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Palette {
    pub(super) background: Rgb,
    foreground: Rgb,
    /// The sixteen colours, which are a matter of taste in every terminal: these are readable on the background.
    sixteen: [u32; 16],
}

pub(super) const DARK: Palette = Palette {
    background: [0x0d, 0x11, 0x17],
    foreground: [0xe6, 0xed, 0xf3],
    sixteen: SIXTEEN_ON_DARK,
};

pub(super) const LIGHT: Palette = Palette {
    background: [0xff, 0xff, 0xff],
    foreground: [0x1f, 0x23, 0x28],
    sixteen: SIXTEEN_ON_LIGHT,
};

const SIXTEEN_ON_LIGHT: [u32; 16] = [
    0x24292f, 0xcf222e, 0x116329, 0x7d4e00, 0x0969da, 0x8250df, 0x1b7c83, 0x6e7781, 0x57606a,
    0xa40e26, 0x1a7f37, 0x633c01, 0x218bff, 0xa475f9, 0x3192aa, 0x8c959f,
];

const SIXTEEN_ON_DARK: [u32; 16] = [
    0x21262d, 0xff7b72, 0x3fb950, 0xd29922, 0x58a6ff, 0xbc8cff, 0x39c5cf, 0xb1bac4, 0x6e7681,
    0xffa198, 0x56d364, 0xe3b341, 0x79c0ff, 0xd2a8ff, 0x56d4dd, 0xf0f6fc,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CellStyle {
    pub(super) foreground: Rgb,
    pub(super) background: Rgb,
    pub(super) is_bold: bool,
    pub(super) is_underlined: bool,
}

/// A symbol and the columns that it covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    /// Its first column, from 0 at the screen's left.
    pub(super) column: u16,
    /// 1, or 2 for wide symbols.
    pub(super) columns: u16,
    pub(super) symbol: &'a str,
    pub(super) look: CellStyle,
}

/// The pieces of one row, `row` counted from 0 at the screen's top.
pub(super) fn row<'a>(
    buffer: &'a Buffer,
    row: u16,
    ground: &'a Palette,
) -> impl Iterator<Item = Piece<'a>> {
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
            look: style(cell.fg, cell.bg, cell.modifier, ground),
        })
    })
}

fn style(fg: Color, bg: Color, modifier: Modifier, ground: &Palette) -> CellStyle {
    let mut foreground = rgb(fg, ground.foreground, &ground.sixteen);
    let mut background = rgb(bg, ground.background, &ground.sixteen);
    if modifier.contains(Modifier::REVERSED) {
        std::mem::swap(&mut foreground, &mut background);
    }
    if modifier.contains(Modifier::DIM) {
        foreground = mix(foreground, background, 0.55);
    }
    CellStyle {
        foreground,
        background,
        is_bold: modifier.contains(Modifier::BOLD),
        is_underlined: modifier.contains(Modifier::UNDERLINED),
    }
}

/// `share` of one colour over another.
pub(super) fn mix(over: Rgb, under: Rgb, share: f32) -> Rgb {
    std::array::from_fn(|i| {
        let value = f32::from(over[i]) * share + f32::from(under[i]) * (1.0 - share);
        value.round() as u8
    })
}

/// The sixteen colours by their numbers.
#[rustfmt::skip]
const SIXTEEN: [Color; 16] = [
    Color::Black, Color::Red, Color::Green, Color::Yellow, Color::Blue, Color::Magenta, Color::Cyan, Color::Gray, Color::DarkGray,
    Color::LightRed, Color::LightGreen, Color::LightYellow, Color::LightBlue, Color::LightMagenta, Color::LightCyan, Color::White,
];

fn rgb(color: Color, default: Rgb, sixteen: &[u32; 16]) -> Rgb {
    match color {
        Color::Reset => default,
        Color::Rgb(r, g, b) => [r, g, b],
        Color::Indexed(index) => indexed(index, sixteen),
        color => {
            let number = SIXTEEN.iter().position(|it| *it == color);
            indexed(number.unwrap_or_default() as u8, sixteen)
        }
    }
}

/// xterm's 256 colours: sixteen, a cube of six steps, a ramp of greys.
fn indexed(index: u8, sixteen: &[u32; 16]) -> Rgb {
    let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
    match index {
        0..=15 => {
            let [_, rgb @ ..] = sixteen[usize::from(index)].to_be_bytes();
            rgb
        }
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
        assert_eq!(indexed(16, &DARK.sixteen), [0, 0, 0]);
        assert_eq!(indexed(196, &DARK.sixteen), [255, 0, 0]);
        assert_eq!(indexed(231, &DARK.sixteen), [255, 255, 255]);
        assert_eq!(indexed(232, &DARK.sixteen), [8, 8, 8]);
        assert_eq!(indexed(255, &DARK.sixteen), [238, 238, 238]);
    }

    #[test]
    fn wide_symbols_cover_two_columns_and_reversed_cells_swap() {
        let mut buffer = Buffer::empty(Rect::new(3, 5, 5, 1));
        let style = Style::new()
            .fg(Color::Rgb(1, 2, 3))
            .add_modifier(Modifier::REVERSED);
        buffer.set_string(3, 5, "a世b", style);
        let pieces: Vec<_> = row(&buffer, 0, &DARK)
            .map(|p| (p.column, p.columns, p.symbol))
            .collect();
        assert_eq!(
            pieces,
            [(0, 1, "a"), (1, 2, "世"), (3, 1, "b"), (4, 1, " ")]
        );
        let look = row(&buffer, 0, &DARK).next().expect("a piece").look;
        assert_eq!(
            (look.background, look.foreground),
            ([1, 2, 3], DARK.background)
        );
    }
}
