//! The program: its output, its signals, its end.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::process::Signal;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

use super::Output;
use super::passing::Passing;
use crate::clock::is_readable_within;
use crate::ending::exit_code;
use activity::feed::{self, Joined, Message};

/// Lines that may wait: a program that prints more waits for the screen, as it would for a terminal.
const LINES: usize = 1024;
/// A longer line is cut into several.
const LONGEST: usize = 64 * 1024;
/// So long is waited for more of it.
const WAIT: Duration = Duration::from_millis(50);
/// What is still read of a program's output after its end.
const REST: usize = 1 << 20;

/// A running program.
pub(super) struct TracedChild {
    child: std::process::Child,
    pub(super) passing: Arc<Passing>,
    pub(super) output: Receiver<Message>,
    readers: Vec<Joined>,
    enough: Arc<AtomicBool>,
    /// Those to us, with where they came from.
    signals: Option<SignalsInfo<WithOrigin>>,
}

impl TracedChild {
    /// Starts a program with some variables more.
    pub(super) fn start(
        command: &[OsString],
        variables: Vec<(&'static str, OsString)>,
        output: Output,
    ) -> io::Result<TracedChild> {
        let mut builder = Command::new(&command[0]);
        builder.args(&command[1..]).envs(variables);
        let own_group = output == Output::Capture;
        if own_group {
            builder
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .process_group(0);
            if io::stdin().is_terminal() {
                builder.stdin(Stdio::null());
            }
        }
        // While the program runs, a signal to us is a signal to it: we end when it does, and tell how. The screen has
        // handlers of its own.
        let signals = match output {
            Output::Capture => None,
            Output::Inherit => Some(SignalsInfo::new(feed::ending())?),
        };
        let mut child = builder.spawn()?;
        let passing = Passing::to(child.id(), own_group);
        if own_group {
            passing.show();
        }
        let (lines, received) = bounded(LINES);
        let enough = Arc::new(AtomicBool::new(false));
        let mut readers = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            readers.push(read_lines("cuptop-stdout", stdout, false, &lines, &enough)?);
        }
        if let Some(stderr) = child.stderr.take() {
            readers.push(read_lines("cuptop-stderr", stderr, true, &lines, &enough)?);
        }
        Ok(TracedChild {
            child,
            passing,
            output: received,
            readers,
            enough,
            signals,
        })
    }

    /// Its process id.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its exit code, or 128 and the signal that ended it; `None` while it runs.
    pub(super) fn ended(&mut self) -> Option<i32> {
        let child = &mut self.child;
        self.passing.ended(|| match child.try_wait() {
            Ok(status) => status.map(|it| exit_code(it).unwrap_or(0)),
            // It cannot be waited for: somebody else has. Nothing is known of how it ended.
            Err(_) => Some(0),
        })
    }

    /// Passes on the signals that came to us. A terminal's keys reach the program as they reach us.
    pub(super) fn forward_signals(&mut self) {
        for it in self.signals.iter_mut().flat_map(SignalsInfo::pending) {
            let is_key = matches!(it.signal, libc::SIGINT | libc::SIGQUIT);
            let is_from_key = is_key && matches!(it.cause, Cause::Kernel);
            self.passing.pass(it.signal, is_from_key);
        }
    }

    /// Ends it: asks first, then does not. One that a signal asked already takes the time that it needs.
    pub(super) fn stop(&mut self, patience: Duration) {
        if self.ended().is_none() && !self.passing.was_asked() {
            self.passing.send(Signal::TERM);
        }
        let begin = Instant::now();
        while self.ended().is_none() {
            if begin.elapsed() > patience && !self.passing.was_asked() {
                self.passing.send(Signal::KILL);
            }
            // Its last lines must not keep it from ending.
            while self.output.try_recv().is_ok() {}
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What it had printed and nobody has read. Children that it left behind may go on printing: nobody listens.
    pub(super) fn rest_of_output(&mut self) -> Vec<Message> {
        self.enough.store(true, Ordering::Relaxed);
        let rest = self.output.iter().collect();
        self.readers.clear();
        rest
    }
}

impl Drop for TracedChild {
    fn drop(&mut self) {
        self.stop(Duration::from_secs(1));
        self.rest_of_output();
    }
}

fn read_lines(
    name: &str,
    pipe: impl Read + AsFd + Send + 'static,
    is_error: bool,
    lines: &Sender<Message>,
    enough: &Arc<AtomicBool>,
) -> io::Result<Joined> {
    let (lines, enough) = (lines.clone(), Arc::clone(enough));
    Joined::spawn(name, move || {
        let mut splitter = Splitter::default();
        let send = |line: &[u8]| {
            let line = String::from_utf8_lossy(line).into_owned();
            lines.send(Message::Output { is_error, line }).is_ok()
        };
        let mut rest = REST;
        let mut pipe = pipe;
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let last = enough.load(Ordering::Relaxed);
            let wait = if last { Duration::ZERO } else { WAIT };
            if !is_readable_within(wait, &pipe) {
                if last {
                    break;
                }
                continue;
            }
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    if !splitter.feed(&buffer[..count], &send) {
                        return;
                    }
                    if last {
                        rest = rest.saturating_sub(count);
                        if rest == 0 {
                            break;
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        splitter.finish(&send);
    })
}

/// Bytes to lines.
#[derive(Debug, Default)]
struct Splitter {
    begun: Vec<u8>,
}

impl Splitter {
    /// Returns whether anybody still listens.
    fn feed(&mut self, mut bytes: &[u8], send: &impl Fn(&[u8]) -> bool) -> bool {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.begun.extend(&bytes[..end]);
            bytes = &bytes[end + 1..];
            if self.begun.last() == Some(&b'\r') {
                self.begun.pop();
            }
            let listened = send(&self.begun);
            self.begun.clear();
            if !listened {
                return false;
            }
        }
        self.begun.extend(bytes);
        if self.begun.len() >= LONGEST {
            let listened = send(&self.begun);
            self.begun.clear();
            return listened;
        }
        true
    }

    fn finish(self, send: &impl Fn(&[u8]) -> bool) {
        if !self.begun.is_empty() {
            send(&self.begun);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let text = b"one\r\ntwo\n\nthree";
        for size in 1..=text.len() {
            let lines = RefCell::new(Vec::new());
            let send = |line: &[u8]| {
                lines
                    .borrow_mut()
                    .push(String::from_utf8_lossy(line).into_owned());
                true
            };
            let mut splitter = Splitter::default();
            for piece in text.chunks(size) {
                assert!(splitter.feed(piece, &send));
            }
            splitter.finish(&send);
            assert_eq!(
                *lines.borrow(),
                ["one", "two", "", "three"],
                "pieces of {size}"
            );
        }
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory() {
        let longest = RefCell::new(0);
        let send = |line: &[u8]| {
            let mut longest = longest.borrow_mut();
            *longest = line.len().max(*longest);
            true
        };
        let mut splitter = Splitter::default();
        for _ in 0..100 {
            splitter.feed(&[b'x'; 10_000], &send);
        }
        assert!(splitter.begun.len() < LONGEST);
        assert!(*longest.borrow() <= LONGEST + 10_000);
    }
}
