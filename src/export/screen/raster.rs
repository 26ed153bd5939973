//! A screen as PNG, with a font of our own, so that the picture is the same on every machine.

use std::io::{self, Write};

use ab_glyph::{Font, FontRef, Glyph, PxScale, ScaleFont, point};
use ratatui::buffer::Buffer;
use rustc_hash::FxHashMap;

use super::cells::{self, CellStyle, Palette, Piece, Rgb, mix};
use super::shapes;

const REGULAR: &[u8] = include_bytes!("../../../assets/JetBrainsMono-Regular.subset.ttf");
const BOLD: &[u8] = include_bytes!("../../../assets/JetBrainsMono-Bold.subset.ttf");

/// A cell in pixels: at this scale the font's advance is 15 pixels exactly.
const WIDTH: usize = 15;
const HEIGHT: usize = 33;
const MARGIN: usize = 16;

/// Writes a screen, row by row: the picture of a large one is hundreds of megabytes, of which a few lines are held.
pub(super) fn write(buffer: &Buffer, ground: &Palette, out: &mut dyn Write) -> io::Result<()> {
    let mut out = ErrorKeeper { out, error: None };
    let drawn = draw(buffer, ground, &mut out);
    drawn.map_err(|error| out.error.take().unwrap_or(error))
}

fn draw(buffer: &Buffer, ground: &Palette, out: &mut ErrorKeeper<'_>) -> io::Result<()> {
    let mut canvas = Canvas::new(
        usize::from(buffer.area.width) * WIDTH + 2 * MARGIN,
        usize::from(buffer.area.height) * HEIGHT + 2 * MARGIN,
        ground.background,
    );
    let too_large = |_| io::Error::other("the screen is too large for a picture");
    let width = u32::try_from(canvas.width).map_err(too_large)?;
    let height = u32::try_from(canvas.height).map_err(too_large)?;
    let mut encoder = png::Encoder::new(out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Balanced);
    let mut writer = encoder.write_header().map_err(io::Error::other)?;
    let mut lines = writer.stream_writer().map_err(io::Error::other)?;
    let mut letters = Letters::new()?;
    for row in 0..buffer.area.height {
        let top = MARGIN + usize::from(row) * HEIGHT;
        // A letter may reach into the rows beside its own, no further.
        canvas.write_until(top.saturating_sub(HEIGHT), &mut lines)?;
        canvas.begin_until(top + 2 * HEIGHT);
        for piece in cells::row(buffer, row, ground) {
            canvas.piece(&piece, row, &mut letters);
        }
    }
    canvas.begin_until(canvas.height);
    canvas.write_until(canvas.height, &mut lines)?;
    lines.finish().map_err(io::Error::other)?;
    writer.finish().map_err(io::Error::other)
}

/// Keeps what went wrong: the encoder hands on the words of an error alone, and not that the reader went away.
struct ErrorKeeper<'a> {
    out: &'a mut dyn Write,
    error: Option<io::Error>,
}

impl Write for ErrorKeeper<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).map_err(|error| {
            let kind = error.kind();
            self.error = Some(error);
            kind.into()
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Lines of pixels of three bytes: those that are being drawn on.
struct Canvas {
    width: usize,
    height: usize,
    background: Rgb,
    /// The first line of `pixels`; those before are written.
    first: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    fn new(width: usize, height: usize, background: Rgb) -> Self {
        Canvas {
            width,
            height,
            background,
            first: 0,
            pixels: Vec::new(),
        }
    }

    /// Has all lines before this one, with nothing on those that are new.
    fn begin_until(&mut self, line: usize) {
        let wanted = (line.min(self.height) - self.first) * self.width;
        let new = wanted.saturating_sub(self.pixels.len() / 3);
        self.pixels.extend(self.background.repeat(new));
    }

    /// Writes the lines before this one.
    fn write_until(&mut self, line: usize, out: &mut dyn Write) -> io::Result<()> {
        let done = line.saturating_sub(self.first) * self.width * 3;
        let done = done.min(self.pixels.len());
        out.write_all(&self.pixels[..done])?;
        self.pixels.drain(..done);
        self.first = self.first.max(line);
        Ok(())
    }

    fn blend(&mut self, x: usize, y: usize, color: Rgb, share: f32) {
        let Some(line) = y.checked_sub(self.first).filter(|_| x < self.width) else {
            return;
        };
        let at = (line * self.width + x) * 3;
        let Some(pixel) = self.pixels.get_mut(at..at + 3) else {
            return;
        };
        let mixed = mix(color, [pixel[0], pixel[1], pixel[2]], share.min(1.0));
        pixel.copy_from_slice(&mixed);
    }

    fn fill(&mut self, [left, top, right, bottom]: [usize; 4], color: Rgb, opacity: f32) {
        for y in top..bottom {
            for x in left..right {
                self.blend(x, y, color, opacity);
            }
        }
    }

    fn piece(&mut self, piece: &Piece<'_>, row: u16, letters: &mut Letters) {
        let left = MARGIN + usize::from(piece.column) * WIDTH;
        let top = MARGIN + usize::from(row) * HEIGHT;
        let width = usize::from(piece.columns) * WIDTH;
        let CellStyle {
            foreground,
            background,
            ..
        } = piece.look;
        if background != self.background {
            self.fill([left, top, left + width, top + HEIGHT], background, 1.0);
        }
        if let Some(rects) = shapes::find(piece.symbol) {
            for r in rects {
                // Whole pixels, at least one: a line must not vanish, a block must end where its cell does.
                let span = |from: f32, to: f32, size: usize| {
                    let from = (from * size as f32).round() as usize;
                    let to = (to * size as f32).round() as usize;
                    (from.min(size - 1), to.clamp(from.min(size - 1) + 1, size))
                };
                let (x0, x1) = span(r.left, r.right, WIDTH);
                let (y0, y1) = span(r.top, r.bottom, HEIGHT);
                self.fill(
                    [left + x0, top + y0, left + x1, top + y1],
                    foreground,
                    r.opacity,
                );
            }
        } else {
            for c in piece.symbol.chars().filter(|c| !c.is_whitespace()) {
                for &(x, y, share) in letters.coverage(c, piece.look.is_bold) {
                    let (x, y) = (left as i32 + i32::from(x), top as i32 + i32::from(y));
                    if let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) {
                        self.blend(x, y, foreground, share);
                    }
                }
            }
        }
        if piece.look.is_underlined {
            let y = top + HEIGHT - 5;
            self.fill([left, y, left + width, y + 2], foreground, 1.0);
        }
    }
}

/// Which pixels of a cell a letter covers, and how much.
type Coverage = Vec<(i16, i16, f32)>;

struct Letters {
    regular: FontRef<'static>,
    bold: FontRef<'static>,
    known: FxHashMap<(char, bool), Coverage>,
}

impl Letters {
    fn new() -> io::Result<Self> {
        Ok(Letters {
            regular: FontRef::try_from_slice(REGULAR).map_err(io::Error::other)?,
            bold: FontRef::try_from_slice(BOLD).map_err(io::Error::other)?,
            known: FxHashMap::default(),
        })
    }

    fn coverage(&mut self, c: char, is_bold: bool) -> &Coverage {
        let font = if is_bold { &self.bold } else { &self.regular };
        self.known
            .entry((c, is_bold))
            .or_insert_with(|| drawn(font, c))
    }
}

/// A line from the lower left corner of a cell to the upper right one, one that meets those of its neighbours.
fn diagonal() -> Coverage {
    /// Half of the line's width, in pixels.
    const HALF: f32 = 1.2;
    let (w, h) = (WIDTH as f32, HEIGHT as f32);
    let mut coverage = Coverage::new();
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            // From the middle of the pixel to the line.
            let (dx, dy) = (x as f32 + 0.5, y as f32 + 0.5);
            let distance = (h * dx + w * dy - w * h).abs() / (w * w + h * h).sqrt();
            let share = (HALF + 0.5 - distance).clamp(0.0, 1.0);
            if share > 0.0 {
                coverage.push((x as i16, y as i16, share));
            }
        }
    }
    coverage
}

/// Draws a letter; a box stands for one that the font lacks.
fn drawn(font: &FontRef<'_>, c: char) -> Coverage {
    if c == '╱' {
        return diagonal();
    }
    let scaled = font.as_scaled(PxScale::from(HEIGHT as f32));
    let glyph: Glyph = scaled
        .glyph_id(c)
        .with_scale_and_position(HEIGHT as f32, point(0.0, scaled.ascent()));
    let mut coverage = Coverage::new();
    if let Some(outline) = font.outline_glyph(glyph) {
        let bounds = outline.px_bounds();
        outline.draw(|x, y, share| {
            let x = bounds.min.x as i16 + x as i16;
            let y = bounds.min.y as i16 + y as i16;
            if share > 0.0 {
                coverage.push((x, y, share));
            }
        });
    }
    coverage
}
