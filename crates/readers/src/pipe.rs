//! Traces that come through pipes.

use std::io::{self, Cursor, IsTerminal as _, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use activity::door;
use rustix::fs::{OFlags, fcntl_setfl};
use tempfile::TempPath;

/// The name of standard input on the command line.
pub const STDIN: &str = "-";

/// How long somebody has to open a named pipe for writing.
const PATIENCE: Duration = Duration::from_secs(5);

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
            kind if kind.is_fifo() => Box::new(written(path)?),
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

/// A named pipe that somebody writes to. It is opened without waiting, as nobody may ever come.
fn written(path: &Path) -> io::Result<impl Read> {
    let mut file = door::open_any(path)?;
    let until = Instant::now() + PATIENCE;
    let mut first = [0];
    let length = loop {
        match file.read(&mut first) {
            Ok(0) if Instant::now() > until => {
                let why = "nothing writes to this pipe";
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            // Nobody has it open for writing.
            Ok(0) => std::thread::sleep(Duration::from_millis(20)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break 0,
            length => break length?,
        }
    };
    fcntl_setfl(&file, OFlags::empty())?;
    Ok(Cursor::new(first).take(length as u64).chain(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::io::Write as _;

    fn pipe(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("pipe");
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).expect("a pipe");
        path
    }

    #[test]
    fn a_pipe_that_nobody_writes_to_is_given_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = copied(&pipe(folder.path())).expect_err("nobody writes");
        assert_eq!(error.to_string(), "nothing writes to this pipe");
    }

    #[test]
    fn all_that_is_written_is_copied_however_late_it_begins() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = pipe(folder.path());
        // More than a pipe holds.
        let all = b"0123456789".repeat(20_000);
        let writer = std::thread::spawn({
            let (path, all) = (path.clone(), all.clone());
            move || {
                std::thread::sleep(Duration::from_millis(100));
                let mut into = std::fs::File::create(path).expect("opened");
                std::thread::sleep(Duration::from_millis(100));
                into.write_all(&all).expect("written");
            }
        });
        let copy = copied(&path).expect("copied").expect("a pipe");
        writer.join().expect("ended");
        assert_eq!(std::fs::read(&copy).expect("read"), all);
    }
}
