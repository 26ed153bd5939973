//! The program: its output, its signals, its end.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getpgrp, kill_process, kill_process_group};

use super::Output;
use crate::ending::exit_code;
use crate::looking::Switch;
use activity::feed::{ENDING, Message};

/// Lines that may wait: a program that prints more waits for the screen, as it would for a terminal.
const LINES: usize = 1024;
/// A longer line is cut into several.
const LONGEST: usize = 64 * 1024;
/// What is still read of a program's output after its end.
const REST: usize = 1 << 20;

/// A running program.
#[derive(Debug)]
pub(super) struct TracedChild {
    child: std::process::Child,
    status: Option<i32>,
    /// Whether it leads a process group of its own.
    own_group: bool,
    pub(super) output: Receiver<Message>,
    readers: Vec<JoinHandle<()>>,
    enough: Arc<AtomicBool>,
    signals: Vec<Forwarded>,
}

/// A signal to us that is passed on.
#[derive(Debug)]
struct Forwarded {
    signal: Signal,
    came: Switch,
    /// The terminal sends it to the whole group, the program included.
    from_terminal: bool,
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
        let signals = match output {
            // The screen has handlers of its own.
            Output::Capture => Vec::new(),
            Output::Inherit => forwarded()?,
        };
        let mut child = builder.spawn()?;
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
            status: None,
            own_group,
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
        if self.status.is_none() {
            self.status = match self.child.try_wait() {
                Ok(status) => status.map(|it| exit_code(it).unwrap_or(0)),
                // It cannot be waited for: somebody else has. Nothing is known of how it ended.
                Err(_) => Some(0),
            };
        }
        self.status
    }

    /// Passes on the signals that came to us.
    pub(super) fn forward_signals(&mut self) {
        for index in 0..self.signals.len() {
            let it = &self.signals[index];
            if it.came.has_come() && !(it.from_terminal && in_foreground()) {
                let signal = it.signal;
                self.signal(signal);
            }
        }
    }

    fn signal(&mut self, signal: Signal) {
        // A program that was waited for has given its id back.
        if self.ended().is_some() && !self.own_group {
            return;
        }
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = if self.own_group {
                kill_process_group(pid, signal)
            } else {
                kill_process(pid, signal)
            };
        }
    }

    /// Ends it: asks first, then does not.
    pub(super) fn stop(&mut self, patience: Duration) {
        if self.ended().is_some() {
            return;
        }
        self.signal(Signal::TERM);
        let begin = Instant::now();
        while self.ended().is_none() {
            if begin.elapsed() > patience {
                self.signal(Signal::KILL);
                let _ = self.child.wait();
                return;
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
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        rest
    }
}

impl Drop for TracedChild {
    fn drop(&mut self) {
        self.stop(Duration::from_secs(1));
        self.rest_of_output();
    }
}

/// While the program runs, a signal to us is a signal to it: we end when it does, and tell how.
fn forwarded() -> io::Result<Vec<Forwarded>> {
    let signals = ENDING.into_iter().filter_map(Signal::from_named_raw);
    let forwarded = signals.map(|signal| {
        Ok(Forwarded {
            signal,
            came: Switch::listen(signal)?,
            from_terminal: matches!(signal, Signal::INT | Signal::QUIT),
        })
    });
    forwarded.collect()
}

/// Whether we and the program are what the terminal's keys speak to.
fn in_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stdin().as_fd()).is_ok_and(|group| group == getpgrp())
}

fn read_lines(
    name: &str,
    pipe: impl Read + AsFd + Send + 'static,
    is_error: bool,
    lines: &Sender<Message>,
    enough: &Arc<AtomicBool>,
) -> io::Result<JoinHandle<()>> {
    let (lines, enough) = (lines.clone(), Arc::clone(enough));
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
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
                let wait = if last { 0 } else { 50_000_000 };
                if !readable(&pipe, wait) {
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

/// Whether there is something to read, or the end of it, within some nanoseconds.
fn readable(pipe: &impl AsFd, nanoseconds: i64) -> bool {
    let wait = Timespec {
        tv_sec: 0,
        tv_nsec: nanoseconds,
    };
    let mut descriptors = [PollFd::new(pipe, PollFlags::IN)];
    matches!(poll(&mut descriptors, Some(&wait)), Ok(1..))
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
