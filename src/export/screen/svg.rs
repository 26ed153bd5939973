//! A screen as SVG: text that can be selected, and rectangles where symbols must meet.
//!
//! Each stretch of text carries its own position and length, so that a viewer with another monospaced
//! font still puts every symbol into its cell.

use std::io::{self, Write};

use ratatui::buffer::Buffer;

use super::cells::{self, CellStyle, Palette, Piece, Rgb};
use super::shapes::{self, ASPECT};

/// Width of a cell in SVG's units; JetBrains Mono at [`FONT`] is as wide.
const WIDTH: f32 = 8.4;
const HEIGHT: f32 = WIDTH * ASPECT;
const FONT: f32 = 14.0;
/// The font's line between ascent and descent, from the top of a cell.
const BASELINE: f32 = 13.6;
const MARGIN: f32 = 10.0;

/// Writes a screen. `title` is read out in place of the picture.
pub(super) fn write(
    buffer: &Buffer,
    title: &str,
    ground: &Palette,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (columns, rows) = (buffer.area.width, buffer.area.height);
    let width = f32::from(columns) * WIDTH + 2.0 * MARGIN;
    let height = f32::from(rows) * HEIGHT + 2.0 * MARGIN;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\">",
        w = number(width),
        h = number(height)
    )?;
    writeln!(out, "<title>{}</title>", escaped(title))?;
    writeln!(
        out,
        "<style>text{{font:{FONT}px \"JetBrains Mono\",\"DejaVu Sans Mono\",Menlo,Consolas,monospace;white-space:pre}}\
         .b{{font-weight:bold}}.u{{text-decoration:underline}}</style>"
    )?;
    writeln!(
        out,
        "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>",
        color(ground.background)
    )?;
    writeln!(out, "<g transform=\"translate({MARGIN} {MARGIN})\">")?;
    for row in 0..rows {
        bars(buffer, row, ground, out)?;
        texts(buffer, row, ground, out)?;
    }
    writeln!(out, "</g>\n</svg>")
}

/// The grounds of a row's cells, and above them what is drawn.
fn bars(buffer: &Buffer, row: u16, ground: &Palette, out: &mut dyn Write) -> io::Result<()> {
    let mut bars = Bars::new(row, out);
    for piece in cells::row(buffer, row, ground) {
        if piece.look.background != ground.background {
            let left = f32::from(piece.column);
            let right = left + f32::from(piece.columns);
            bars.add([left, 0.0, right, 1.0], piece.look.background, 1.0)?;
        }
    }
    bars.flush()?;
    for piece in cells::row(buffer, row, ground) {
        let left = f32::from(piece.column);
        for r in shapes::find(piece.symbol).into_iter().flatten() {
            let sides = [left + r.left, r.top, left + r.right, r.bottom];
            bars.add(sides, piece.look.foreground, r.opacity)?;
        }
    }
    bars.flush()
}

/// A rectangle that grows as long as the next one continues it.
struct Bars<'a> {
    row: f32,
    out: &'a mut dyn Write,
    /// Left, top, right, bottom in cells; colour; opacity.
    open: Option<([f32; 4], Rgb, f32)>,
}

impl Bars<'_> {
    fn new(row: u16, out: &mut dyn Write) -> Bars<'_> {
        Bars {
            row: f32::from(row),
            out,
            open: None,
        }
    }

    fn add(&mut self, sides: [f32; 4], fill: Rgb, opacity: f32) -> io::Result<()> {
        let [left, top, right, bottom] = sides;
        if let Some((open, color, shade)) = &mut self.open
            && (*color, *shade) == (fill, opacity)
            && (open[1], open[3]) == (top, bottom)
            && open[2] == left
        {
            open[2] = right;
            return Ok(());
        }
        self.flush()?;
        self.open = Some((sides, fill, opacity));
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(([left, top, right, bottom], fill, opacity)) = self.open.take() else {
            return Ok(());
        };
        write!(
            self.out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" shape-rendering=\"crispEdges\"",
            number(left * WIDTH),
            number((self.row + top) * HEIGHT),
            number((right - left) * WIDTH),
            number((bottom - top) * HEIGHT),
            color(fill)
        )?;
        if opacity < 1.0 {
            write!(self.out, " fill-opacity=\"{opacity}\"")?;
        }
        writeln!(self.out, "/>")
    }
}

fn texts(buffer: &Buffer, row: u16, ground: &Palette, out: &mut dyn Write) -> io::Result<()> {
    let mut run = TextRun::default();
    for piece in cells::row(buffer, row, ground) {
        let is_blank = piece.symbol.trim().is_empty() && !piece.look.is_underlined;
        if is_blank && run.ends_in_space || shapes::find(piece.symbol).is_some() {
            run.flush(row, out)?;
        } else if !is_blank || !run.text.is_empty() {
            run.add(&piece, is_blank, row, out)?;
        }
    }
    run.flush(row, out)
}

/// Symbols of one look, side by side, each one column wide (or a single wide one).
#[derive(Default)]
struct TextRun {
    look: Option<CellStyle>,
    column: u16,
    columns: u16,
    text: String,
    is_wide: bool,
    ends_in_space: bool,
}

impl TextRun {
    fn add(
        &mut self,
        piece: &Piece<'_>,
        is_blank: bool,
        row: u16,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let is_wide = piece.columns > 1;
        let fits = self
            .look
            .is_some_and(|look| is_blank || alike(look, piece.look))
            && self.column + self.columns == piece.column
            && !is_wide
            && !self.is_wide;
        if !fits {
            self.flush(row, out)?;
            if is_blank {
                return Ok(());
            }
            self.look = Some(piece.look);
            self.column = piece.column;
            self.is_wide = is_wide;
        }
        self.columns += piece.columns;
        self.text.push_str(piece.symbol);
        self.ends_in_space = is_blank;
        Ok(())
    }

    fn flush(&mut self, row: u16, out: &mut dyn Write) -> io::Result<()> {
        let run = std::mem::take(self);
        let (Some(look), text) = (run.look, run.text.trim_end()) else {
            return Ok(());
        };
        let blanks = run.text[text.len()..].chars().count() as u16;
        let columns = run.columns.saturating_sub(blanks);
        let class = match (look.is_bold, look.is_underlined) {
            (false, false) => "",
            (true, false) => " class=\"b\"",
            (false, true) => " class=\"u\"",
            (true, true) => " class=\"b u\"",
        };
        let (text, columns) = match text {
            // An underlined blank.
            "" => (run.text.as_str(), run.columns),
            text => (text, columns),
        };
        writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{}\"{class}>{}</text>",
            number(f32::from(run.column) * WIDTH),
            number(f32::from(row) * HEIGHT + BASELINE),
            number(f32::from(columns) * WIDTH),
            color(look.foreground),
            escaped(text)
        )
    }
}

/// Whether two looks are the same as far as text shows.
fn alike(a: CellStyle, b: CellStyle) -> bool {
    let background = a.background;
    a == CellStyle { background, ..b }
}

fn color([r, g, b]: Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Two decimals at most.
fn number(value: f32) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A text as XML and HTML have it.
pub fn escaped(text: &str) -> String {
    // XML has no way to write most control characters.
    let text = text.replace(char::is_control, "\u{fffd}");
    let text = text.replace('&', "&amp;").replace('"', "&quot;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}
