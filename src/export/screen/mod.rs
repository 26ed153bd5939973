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
pub(super) use svg::escaped;

/// What a screen can be saved as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    /// A vector picture, with text that can be selected.
    Svg,
    /// A picture of pixels.
    Png,
    /// Symbols without colours.
    Txt,
}

/// A screen, and what its picture needs besides it.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    pub buffer: Buffer,
    /// What is on it in a few words, for those who cannot see the picture; SVG alone has a place for it.
    pub title: String,
    /// Whether the terminal's own background is light.
    pub is_light: bool,
}

/// Writes a screen.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(format: PictureFormat, shown: &Shown, out: &mut dyn Write) -> io::Result<()> {
    let buffer = &shown.buffer;
    let ground = match shown.is_light {
        true => cells::LIGHT,
        false => cells::DARK,
    };
    match format {
        PictureFormat::Svg => svg::write(buffer, &shown.title, &ground, out),
        PictureFormat::Png => raster::write(buffer, &ground, out),
        PictureFormat::Txt => text::plain(buffer, out),
    }
}
