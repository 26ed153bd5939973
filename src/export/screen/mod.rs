//! A screen, exactly as it stood in the terminal, as a picture or as text.
//!
//! It takes the buffer that ratatui drew into, so the screen's own words mark a simulated or incomplete timeline.

mod cast;
mod cells;
mod raster;
mod shapes;
mod svg;
mod text;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use ratatui::buffer::Buffer;

pub use cast::Cast;

/// What a screen can be saved as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A vector picture, with text that can be selected.
    Svg,
    /// A picture of pixels.
    Png,
    /// Symbols without colours.
    Txt,
}

/// What the picture of a screen needs besides it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look<'a> {
    /// What is on it in a few words, for those who cannot see the picture; SVG alone has a place for it.
    pub title: &'a str,
    /// Whether the terminal's own background is light.
    pub is_light: bool,
}

/// Writes a screen.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(
    format: Format,
    buffer: &Buffer,
    look: &Look<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let ground = match look.is_light {
        true => cells::LIGHT,
        false => cells::DARK,
    };
    match format {
        Format::Svg => svg::write(buffer, look.title, &ground, out),
        Format::Png => raster::write(buffer, &ground, out),
        Format::Txt => text::plain(buffer, out),
    }
}
