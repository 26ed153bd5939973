//! A screen as plain text.

use std::io::{self, Write};

use ratatui::buffer::Buffer;

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
