//! Writing a timeline or a screen for other programs and people.
//!
//! One file a format, registered in [`Timeline`] or [`screen::Format`]. Every export says whether the
//! timeline was simulated and whether records of it were lost. Writers stream into what they are
//! given; [`to_file`] wraps that for files.

mod chrome;
mod csv;
mod perfetto;
mod rows;
pub mod screen;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::trace::Trace;

/// What the data of a timeline can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeline {
    /// Perfetto's own format, for <https://ui.perfetto.dev>.
    Perfetto,
    /// Chrome JSON as PyTorch's profiler writes it; cuptop opens it again.
    Chrome,
    /// One line an operation.
    Csv,
}

/// What a timeline can be exported as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Its data.
    Timeline(Timeline),
    /// A picture of its screen.
    Screen(screen::Format),
}

impl Format {
    /// All of them, by name.
    pub const ALL: [(&'static str, Format); 7] = [
        ("perfetto", Format::Timeline(Timeline::Perfetto)),
        ("chrome", Format::Timeline(Timeline::Chrome)),
        ("csv", Format::Timeline(Timeline::Csv)),
        ("svg", Format::Screen(screen::Format::Svg)),
        ("png", Format::Screen(screen::Format::Png)),
        ("txt", Format::Screen(screen::Format::Txt)),
        ("ansi", Format::Screen(screen::Format::Ansi)),
    ];

    /// The format of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL
            .into_iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, format)| format)
    }
}

/// Writes the data of a timeline.
///
/// # Errors
/// When `out` cannot be written to.
pub fn to(format: Timeline, trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Timeline::Perfetto => perfetto::write(trace, out),
        Timeline::Chrome => chrome::write(trace, out),
        Timeline::Csv => csv::write(trace, out),
    }
}

/// A file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {error}")]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub error: io::Error,
}

/// Creates (or replaces) a file and lets `write` fill it: `to_file(path, |out| export::to(format, &trace, out))`.
///
/// # Errors
/// When the file cannot be written, with its path.
pub fn to_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), WriteError> {
    let whole = || -> io::Result<()> {
        let mut out = BufWriter::with_capacity(256 * 1024, File::create(path)?);
        write(&mut out)?;
        out.flush()
    };
    whole().map_err(|error| WriteError {
        path: path.to_owned(),
        error,
    })
}
