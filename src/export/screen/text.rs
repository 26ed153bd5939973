//! A screen as text: plain, or with the escape sequences that colour it in a terminal.

use std::io::{self, Write};

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};

use super::cells::{self, DARK, Piece};

/// Writes the symbols, without blanks at the ends of lines. What colours alone would show is a block:
/// coloured blanks that no word stands beside, and blocks that are filled from the right.
pub(super) fn plain(buffer: &Buffer, out: &mut dyn Write) -> io::Result<()> {
    // A screen without blocks is for readers without them.
    let is_ascii = buffer.content().iter().all(|cell| cell.symbol().is_ascii());
    let block = if is_ascii { "#" } else { "█" };
    let mut line = String::new();
    for row in 0..buffer.area.height {
        line.clear();
        let pieces: Vec<Piece> = cells::row(buffer, row, &DARK).collect();
        for (i, piece) in pieces.iter().enumerate() {
            let beside = [
                i.checked_sub(1).and_then(|i| pieces.get(i)),
                pieces.get(i + 1),
            ];
            line.push_str(inked(piece, &beside, block));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A piece's symbol, or what stands for it without colours.
fn inked<'a>(piece: &Piece<'a>, beside: &[Option<&Piece>], block: &'a str) -> &'a str {
    let is_filled = piece.look.background != DARK.background;
    let is_word = |other: &&Piece| {
        let is_letter = |c: char| !c.is_whitespace() && !('\u{2580}'..='\u{259f}').contains(&c);
        other.look.background == piece.look.background && other.symbol.chars().all(is_letter)
    };
    match piece.symbol {
        " " if is_filled && !beside.iter().flatten().any(is_word) => block,
        // The ground of the screen drawn over what is filled.
        left if is_filled && piece.look.foreground == DARK.background => match left {
            "▏" => "█",
            "▎" | "▍" | "▌" | "▋" => "▐",
            "▊" | "▉" => "▕",
            other => other,
        },
        other => other,
    }
}

/// Writes the symbols with their colours as the screen had them: sixteen stay sixteen.
pub(super) fn ansi(buffer: &Buffer, out: &mut dyn Write) -> io::Result<()> {
    let area = buffer.area;
    for row in 0..area.height {
        let mut style = None;
        for piece in cells::row(buffer, row, &DARK) {
            let cell = &buffer[(area.x + piece.column, area.y + row)];
            let wanted = (cell.fg, cell.bg, cell.modifier);
            if style != Some(wanted) {
                write!(out, "\x1b[{}m", codes(wanted))?;
                style = Some(wanted);
            }
            out.write_all(piece.symbol.as_bytes())?;
        }
        writeln!(out, "\x1b[0m")?;
    }
    Ok(())
}

pub(super) fn codes((fg, bg, modifier): (Color, Color, Modifier)) -> String {
    let modifiers = [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::SLOW_BLINK, 5),
        (Modifier::RAPID_BLINK, 6),
        (Modifier::REVERSED, 7),
        (Modifier::HIDDEN, 8),
        (Modifier::CROSSED_OUT, 9),
    ];
    let mut codes = String::from("0");
    for (flag, code) in modifiers {
        if modifier.contains(flag) {
            codes.push_str(&format!(";{code}"));
        }
    }
    codes.push_str(&color(fg, 0));
    codes.push_str(&color(bg, 10));
    codes
}

/// ";38;5;208": `offset` is 10 for backgrounds.
fn color(color: Color, offset: u8) -> String {
    match color {
        Color::Reset => String::new(),
        Color::Indexed(index) => format!(";{};5;{index}", 38 + offset),
        Color::Rgb(r, g, b) => format!(";{};2;{r};{g};{b}", 38 + offset),
        color => match cells::number(color).unwrap_or_default() {
            dark @ ..8 => format!(";{}", 30 + dark + offset),
            light => format!(";{}", 82 + light + offset),
        },
    }
}
