//! A trace's bytes, from a file or a pipe. The bytes that told its format can be read again.
//!
//! It waits for a pipe in small steps, so that a user who stops does not wait for the pipe's writer.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use activity::door;
use activity::feed::Stop;

/// The name of standard input on the command line.
pub const STDIN: &str = "-";
/// How long a pipe in the file system may be without a writer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a request to stop may go unseen.
const STEP: Duration = Duration::from_millis(100);

/// A file, or a pipe, that is read from front to back.
#[derive(Debug)]
pub(super) struct Stream {
    file: File,
    /// Bytes that were read before, and come again.
    again: Cursor<Vec<u8>>,
    /// The bytes read so far, as long as they may come again.
    kept: Option<Vec<u8>>,
    /// Its length, of a file.
    pub(super) length: Option<u64>,
    /// Bytes that have been read, from [`Stream::rewind`] on.
    pub(super) read: u64,
    /// Reading ends with an error as soon as it asks for that.
    pub(super) stop: Stop,
}

impl Stream {
    /// Opens a file, a pipe, or standard input (`-`).
    ///
    /// # Errors
    /// When the system does not allow it, when standard input is a terminal, or when nobody writes to the pipe.
    pub(super) fn open(path: &Path) -> io::Result<Stream> {
        Self::open_within(path, PATIENCE)
    }

    fn open_within(path: &Path, patience: Duration) -> io::Result<Stream> {
        if path == Path::new(STDIN) {
            let stdin = io::stdin();
            if rustix::termios::isatty(&stdin) {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "standard input is a terminal: lead a trace into it",
                ));
            }
            return Stream::of(File::from(stdin.as_fd().try_clone_to_owned()?));
        }
        let file = door::open_any(path)?;
        let kind = file.metadata()?.file_type();
        if kind.is_file() {
            return Stream::of(file);
        }
        if !kind.is_fifo() {
            let error = "neither a file nor a pipe";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        let mut stream = Stream::of(file)?;
        let until = Instant::now() + patience;
        let mut head = vec![0; 4096];
        loop {
            match stream.file.read(&mut head) {
                // Nobody has it open for writing.
                Ok(0) if Instant::now() > until => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "nothing writes to this pipe",
                    ));
                }
                Ok(0) => std::thread::sleep(Duration::from_millis(20)),
                Ok(n) => {
                    head.truncate(n);
                    stream.again = Cursor::new(head);
                    return Ok(stream);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(stream),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn of(file: File) -> io::Result<Stream> {
        let about = file.metadata()?;
        Ok(Stream {
            length: about.is_file().then_some(about.len()),
            file,
            again: Cursor::default(),
            kept: None,
            read: 0,
            stop: Stop::default(),
        })
    }

    /// Whether it can only be read once.
    pub(super) fn is_pipe(&self) -> bool {
        self.length.is_none()
    }

    /// Keeps the bytes read from now on, for [`Stream::rewind`].
    pub(super) fn keep(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// Goes back to where [`Stream::keep`] was called.
    pub(super) fn rewind(&mut self) {
        if let Some(mut kept) = self.kept.take() {
            let at = usize::try_from(self.again.position()).unwrap_or(usize::MAX);
            kept.extend_from_slice(self.again.get_ref().get(at..).unwrap_or_default());
            self.again = Cursor::new(kept);
        }
        self.read = 0;
    }

    /// Waits until there is something to read.
    fn wait(&self) -> io::Result<()> {
        let step = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(STEP.subsec_nanos()),
        };
        while !self.stop.is_stopped() {
            let mut watched = [PollFd::new(&self.file, PollFlags::IN)];
            match rustix::event::poll(&mut watched, Some(&step)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::other("reading was stopped"))
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut n = self.again.read(into)?;
        while n == 0 && !into.is_empty() {
            if self.is_pipe() {
                self.wait()?;
            }
            match self.file.read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => {
                    n = other?;
                    break;
                }
            }
        }
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(&into[..n]);
        }
        self.read += n as u64;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_was_looked_at_is_read_again() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(b"abcdef").expect("room");
        drop(writer);
        let mut stream =
            Stream::of(File::from(std::os::fd::OwnedFd::from(reader))).expect("a stream");
        assert!(stream.is_pipe());
        for _ in 0..2 {
            stream.keep();
            let mut head = [0; 2];
            stream.read_exact(&mut head).expect("two bytes");
            assert_eq!(&head, b"ab");
            stream.rewind();
        }
        let mut all = String::new();
        stream.read_to_string(&mut all).expect("the rest");
        assert_eq!((all.as_str(), stream.read), ("abcdef", 6));
    }

    #[test]
    fn a_pipe_without_a_writer_is_not_waited_for_long() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).expect("a pipe");
        let error =
            Stream::open_within(&path, Duration::from_millis(60)).expect_err("nobody writes");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);

        // A writer that takes its time is waited for, until somebody asks not to.
        let theirs = path.clone();
        let writer = std::thread::spawn(move || File::options().write(true).open(theirs));
        let mut stream = Stream::open_within(&path, Duration::from_secs(60)).expect("a writer");
        let writer = writer.join().expect("no panic").expect("a reader");
        let stop = Stop::default();
        stop.stop();
        stream.stop = stop;
        assert!(stream.read(&mut [0; 8]).is_err());
        drop(writer);
    }
}
