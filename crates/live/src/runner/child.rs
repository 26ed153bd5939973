//! The parent's end of a runner process: starting it, hearing it, ending it.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::PROCESS_COMMAND;
use super::protocol::{Event, RunnerJob, write_line};
use crate::ending::{await_end, exit_code};
use activity::feed::Joined;

/// How long a process may take to end by itself after it was asked to.
const GRACE: Duration = Duration::from_millis(700);
/// The longest line that is kept of what a process prints; the rest of it is dropped.
const LONGEST_LINE: u64 = 1 << 20;

/// What came from the process.
#[derive(Debug)]
pub(crate) enum ChildEvent {
    /// It said something.
    Event(Box<Event>),
    /// It, or a library in it, printed something.
    Output { is_error: bool, line: String },
    /// Nothing in the given time.
    Nothing,
    /// It will say no more.
    End,
}

/// How the process ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    status: Option<ExitStatus>,
    /// Whether it had to be killed, because it did not end when it was asked to.
    was_killed: bool,
}

impl End {
    /// Its exit code, or 128 and the signal that ended it.
    pub(crate) fn code(self) -> i32 {
        self.status.and_then(exit_code).unwrap_or(4)
    }

    /// In words.
    pub(crate) fn describe(self) -> String {
        use std::os::unix::process::ExitStatusExt as _;
        match self.status {
            Some(_) if self.was_killed => {
                "it did not end when it was asked to: cuptop killed it".to_owned()
            }
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("it ended with exit code {code}"),
                (None, Some(signal)) => format!("it was ended by signal {signal}{}", name(signal)),
                (None, None) => "it ended".to_owned(),
            },
            None => "its end could not be awaited".to_owned(),
        }
    }
}

fn name(signal: i32) -> &'static str {
    match signal {
        libc::SIGSEGV => " (segmentation fault)",
        libc::SIGABRT => " (abort)",
        libc::SIGKILL => " (killed; out of memory?)",
        libc::SIGBUS => " (bus error)",
        libc::SIGILL => " (illegal instruction)",
        libc::SIGTERM => " (terminated)",
        _ => "",
    }
}

/// A running process. Dropping it ends it.
pub(crate) struct Child {
    process: std::process::Child,
    stdin: Option<ChildStdin>,
    heard: Receiver<ChildEvent>,
    /// They end with the pipes, unless a grandchild holds them open: then their next sending fails, as `heard` goes first.
    readers: Vec<Joined>,
}

impl Child {
    /// Starts this program again, as the process for a job.
    pub(crate) fn start(job: &RunnerJob) -> io::Result<Child> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(PROCESS_COMMAND)
            // The runner collects for itself; a second collector in its process would take CUPTI from it.
            .env_remove("CUDA_INJECTION64_PATH")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let stdin = process.stdin.take();
        // Bounded: a process that prints without end waits for its reader.
        let (sender, heard) = bounded(1024);
        let mut child = Child {
            stdin,
            heard,
            readers: Vec::new(),
            process,
        };
        if let Some(stdout) = child.process.stdout.take() {
            child.read("runner-stdout", stdout, false, sender.clone())?;
        }
        if let Some(stderr) = child.process.stderr.take() {
            child.read("runner-stderr", stderr, true, sender)?;
        }
        if let Some(stdin) = &mut child.stdin {
            write_line(stdin, job)?;
        }
        Ok(child)
    }

    fn read<R: Read + Send + 'static>(
        &mut self,
        name: &str,
        from: R,
        is_error: bool,
        to: Sender<ChildEvent>,
    ) -> io::Result<()> {
        let reader = Joined::spawn(name, move || forward(from, is_error, &to))?;
        self.readers.push(reader);
        Ok(())
    }

    /// Tells it that counters are being sampled. Whether it has ended is seen elsewhere.
    pub(crate) fn go_on(&mut self) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(b"\n");
        }
    }

    /// The next thing that it says, waiting at most `patience`.
    pub(crate) fn recv(&self, patience: Duration) -> ChildEvent {
        match self.heard.recv_timeout(patience) {
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => ChildEvent::Nothing,
            Err(RecvTimeoutError::Disconnected) => ChildEvent::End,
        }
    }

    /// Asks it to end, gives it a moment, kills it if need be, and waits for it.
    pub(crate) fn end(&mut self) -> End {
        drop(self.stdin.take());
        let heard = &self.heard;
        // Whoever waits to write must not wait for ever.
        let ended = await_end(
            &mut self.process,
            GRACE,
            || while heard.try_recv().is_ok() {},
        );
        End {
            was_killed: ended.is_err(),
            status: ended.map_or_else(|killed| killed, Some),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
    }
}

/// Passes lines on until the pipe ends or nobody listens.
fn forward(from: impl Read, is_error: bool, to: &Sender<ChildEvent>) {
    let mut from = BufReader::new(from);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match (&mut from).take(LONGEST_LINE).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_end_matches(['\n', '\r']);
        let heard = match serde_json::from_str::<Event>(line) {
            Ok(event) if !is_error => ChildEvent::Event(Box::new(event)),
            _ => ChildEvent::Output {
                is_error,
                line: line.to_owned(),
            },
        };
        if to.send(heard).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_killed_by_us_was_not_short_of_memory() {
        let mut sleeps = Command::new("sleep").arg("60").spawn().expect("sleep");
        let ended = await_end(&mut sleeps, Duration::ZERO, || {});
        let end = |was_killed| End {
            status: ended.expect_err("killed"),
            was_killed,
        };
        assert!(end(true).describe().contains("cuptop killed it"));
        assert!(end(false).describe().contains("out of memory?"));
    }

    #[test]
    fn lines_that_are_no_events_are_output() {
        let (sender, heard) = bounded(16);
        let text = "{\"event\":\"notice\",\"is_warning\":false,\"text\":\"hello\"}\nlibrary speaks\n{}\nend";
        forward(text.as_bytes(), false, &sender);
        drop(sender);
        let all: Vec<ChildEvent> = heard.iter().collect();
        assert!(matches!(&all[0], ChildEvent::Event(e) if matches!(**e, Event::Notice { .. })));
        let lines: Vec<&str> = all[1..]
            .iter()
            .map(|h| match h {
                ChildEvent::Output { line, .. } => line.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(lines, ["library speaks", "{}", "end"]);
    }
}
