//! Writing a timeline or a screen for other programs and people.
//!
//! One file a format, registered in [`FORMATS`]. Every export says whether the
//! timeline was simulated and whether records of it were lost. Writers stream into what they are
//! given; [`to_file`] wraps that for files.

mod chrome;
mod clocks;
mod csv;
pub mod page;
mod rows;
pub mod screen;
mod sqlite;

use crate::report::KnownGpus;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use activity::door;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};
use rustix::io::Errno;
use trace::Trace;

/// What the data of a timeline can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimelineFormat {
    /// Chrome JSON as PyTorch's profiler writes it, for <https://ui.perfetto.dev>; cuptop opens it again.
    Chrome,
    /// One line an operation.
    Csv,
    /// Its records and its report, for questions in SQL.
    Sqlite,
}

/// What a timeline can be exported as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Its data.
    Timeline(TimelineFormat),
    /// A picture of its screen.
    Screen(screen::PictureFormat),
    /// Its report, its screen and its timeline to move about in, as one HTML file.
    Page,
    /// Its screen as it fills, for asciinema.
    Cast,
}

/// A format as the command line and file names know it.
#[derive(Clone, Copy, Debug)]
pub struct FormatEntry {
    /// Its name on the command line.
    pub name: &'static str,
    /// Extensions of its files, the usual one first.
    pub extensions: &'static [&'static str],
    pub format: Format,
}

/// All formats. The command line, the guess from a file's name and the refusal on a terminal read this table.
pub const FORMATS: [FormatEntry; 8] = [
    entry(
        "chrome",
        &["json"],
        Format::Timeline(TimelineFormat::Chrome),
    ),
    entry("csv", &["csv"], Format::Timeline(TimelineFormat::Csv)),
    entry(
        "sqlite",
        &["sqlite", "db"],
        Format::Timeline(TimelineFormat::Sqlite),
    ),
    entry("html", &["html", "htm"], Format::Page),
    entry("svg", &["svg"], Format::Screen(screen::PictureFormat::Svg)),
    entry("png", &["png"], Format::Screen(screen::PictureFormat::Png)),
    entry("txt", &["txt"], Format::Screen(screen::PictureFormat::Txt)),
    entry("cast", &["cast"], Format::Cast),
];

const fn entry(
    name: &'static str,
    extensions: &'static [&'static str],
    format: Format,
) -> FormatEntry {
    FormatEntry {
        name,
        extensions,
        format,
    }
}

impl FormatEntry {
    /// Whether a terminal would not like it.
    pub fn is_binary(&self) -> bool {
        use screen::PictureFormat::Png;
        matches!(
            self.format,
            Format::Timeline(TimelineFormat::Sqlite) | Format::Screen(Png)
        )
    }

    pub fn named(name: &str) -> Option<FormatEntry> {
        FORMATS
            .into_iter()
            .find(|entry| entry.name.eq_ignore_ascii_case(name))
    }

    /// The format that a file's extension asks for; `.gz` may stand behind it.
    pub fn of_path(path: &Path) -> Option<FormatEntry> {
        let plain = match is_compressed(path) {
            true => Path::new(path.file_stem()?),
            false => path,
        };
        let extension = plain.extension()?.to_str()?;
        FORMATS.into_iter().find(|entry| {
            let mut known = entry.extensions.iter();
            known.any(|known| known.eq_ignore_ascii_case(extension))
        })
    }
}

/// Whether a file's name asks for gzip.
pub fn is_compressed(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

/// Lets `write` fill `out` with gzip.
///
/// # Errors
/// When `out` cannot be written to.
pub fn compressed(
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut gzip = flate2::write::GzEncoder::new(out, flate2::Compression::default());
    write(&mut gzip)?;
    gzip.finish()?.flush()
}

/// Writes the data of a timeline; predictions in it know so much of GPUs.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_data(
    format: TimelineFormat,
    trace: &Trace,
    gpus: &KnownGpus,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        TimelineFormat::Chrome => chrome::write(trace, out),
        TimelineFormat::Csv => csv::write(trace, out),
        TimelineFormat::Sqlite => sqlite::write(trace, gpus, out),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {error}")]
pub struct WriteError {
    pub path: PathBuf,
    pub error: io::Error,
}

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Its owner alone: it holds command lines, paths and names of machines.
    Owner,
    /// Whoever the umask lets.
    AsUmask,
}

/// Lets `write` fill a file, which appears (or replaces the one before it) when it is whole:
/// `to_file(path, Readers::Owner, |out| export::write_data(format, &trace, gpus, out))`. What is no ordinary file (a pipe, a device) is
/// written to directly.
///
/// # Errors
/// When the file cannot be written, with its path. Nothing is left of it then, and what was there before is as
/// it was.
pub fn to_file(
    path: &Path,
    readers: Readers,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), WriteError> {
    whole_file(path, readers, write).map_err(|error| WriteError {
        path: path.to_owned(),
        error,
    })
}

/// Nobody who means to read a pipe takes longer to open it.
const READER: Duration = Duration::from_secs(2);

/// Opens what is no file. A pipe that nobody reads is refused: opening it would wait for a reader for ever.
fn open_pipe(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let begun = Instant::now();
    let pipe = loop {
        match rustix::fs::open(path, flags, Mode::empty()) {
            Err(Errno::NXIO) if begun.elapsed() < READER => std::thread::sleep(READER / 100),
            Err(Errno::NXIO) => return Err(io::Error::other("it is a pipe, and nobody reads it")),
            opened => break opened?,
        }
    };
    rustix::fs::fcntl_setfl(&pipe, OFlags::empty())?;
    Ok(pipe.into())
}

fn whole_file(
    path: &Path,
    readers: Readers,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let fill = |file: &File| {
        let mut out = BufWriter::with_capacity(256 * 1024, file);
        write(&mut out)?;
        out.flush()
    };
    recording::file::refuse_foreign_links(path)?;
    // A pipe is one by its name in `/dev/fd` alone: where that leads, nothing lies.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        let pipe = open_pipe(path)?;
        // By now it may be a link to a file.
        if !pipe.metadata()?.is_file() {
            return fill(&pipe);
        }
    }
    // A link stays, and what it leads to is replaced, or made.
    let target = path
        .canonicalize()
        .or_else(|_| path.read_link().map(|to| path.with_file_name("").join(to)));
    let target = target.unwrap_or_else(|_| path.to_owned());
    let folder = door::folder_of(&target);
    let before = target.metadata().ok().map(|found| found.permissions());
    // A file that may not be written to is not replaced either.
    if before.is_some() {
        File::options().write(true).open(&target)?;
    }
    let mode = match (&before, readers) {
        (Some(found), _) => found.mode(),
        // The system takes the umask from it.
        (None, Readers::Owner) => 0o600,
        (None, Readers::AsUmask) => 0o666,
    };
    let mut named = tempfile::Builder::new();
    named
        .prefix(".cuptop-")
        .permissions(Permissions::from_mode(mode));
    // Nothing stays of a file without a name, however the process ends. Not every file system has such files.
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let unnamed = rustix::fs::open(folder, flags, Mode::from_raw_mode(mode));
    let (Ok(file), true) = (unnamed.map(File::from), Path::new("/proc/self/fd").exists()) else {
        let file = named.tempfile_in(folder)?;
        fill(file.as_file())?;
        file.persist(&target)?;
        return Ok(());
    };
    if let Some(found) = before {
        file.set_permissions(found)?;
    }
    fill(&file)?;
    // A link replaces nothing: it gets a name beside the target first.
    let place = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |name: &Path| Ok(linkat(CWD, &place, CWD, name, AtFlags::SYMLINK_FOLLOW)?);
    named.make_in(folder, link)?.persist(&target)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_nobody_reads_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(CWD, &pipe, mode).expect("a pipe");
        let (done, ended) = std::sync::mpsc::channel();
        let name = pipe.clone();
        std::thread::spawn(move || {
            let written = to_file(&name, Readers::Owner, |out| out.write_all(b"told"));
            let _ = done.send(written.map_err(|it| it.to_string()));
        });
        // Of a writer that waits for a reader nothing is ever heard.
        let refused = ended.recv_timeout(Duration::from_secs(60));
        let refused = refused.expect("an end").expect_err("nobody reads");
        assert!(refused.contains("nobody reads it"), "{refused}");
        let reader = std::thread::spawn(move || std::fs::read(pipe));
        let written = to_file(&folder.path().join("pipe"), Readers::Owner, |out| {
            out.write_all(b"told")
        });
        written.expect("somebody reads");
        assert_eq!(reader.join().expect("no panic").expect("read"), b"told");
    }
}
