//! Traces that come through pipes.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use tempfile::TempPath;

/// The name of standard input on the command line.
pub const STDIN: &str = "-";

/// A copy of all that comes through a pipe or standard input (`-`), as a trace is read more than once. Of a file there
/// is none.
///
/// # Errors
/// When the system does not allow it, or standard input is a terminal.
pub(super) fn copied(path: &Path) -> io::Result<Option<TempPath>> {
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    let mut from: Box<dyn Read> = if path == Path::new(STDIN) {
        if io::stdin().is_terminal() {
            return refused("standard input is a terminal: lead a trace into it");
        }
        Box::new(io::stdin().lock())
    } else {
        match path.metadata()?.file_type() {
            kind if kind.is_file() => return Ok(None),
            kind if kind.is_fifo() => Box::new(File::open(path)?),
            _ => return refused("neither a file nor a pipe"),
        }
    };
    let mut copy = tempfile::Builder::new().prefix("cuptop-").tempfile()?;
    io::copy(&mut from, &mut copy).map_err(|error| {
        let place = copy.path().display();
        io::Error::new(
            error.kind(),
            format!("while it is copied to {place}: {error}"),
        )
    })?;
    Ok(Some(copy.into_temp_path()))
}
