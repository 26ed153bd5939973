//! `cuptop trace -- CMD`: runs any program with the collector injected, and follows its recordings.
//!
//! ```text
//! library      the collector as a shared library, unpacked from this binary
//! environment  what makes the CUDA driver and NVTX load it
//! child        the program: its output, its end
//! passing      signals to us that are passed on to it
//! live         the recording while it is made, and what is written beside it
//! outside      commands that start it where nothing of ours reaches it
//! recorder     recording on and off while it runs
//! trial        whether all that would work here, tried on a process of our own
//! refused      why a running program is left alone
//! running      a program that runs already
//! late         the collector in a program that runs already
//! signal       looking from outside on and off, by SIGUSR2
//! ```
//!
//! The program is not changed and needs no rights. Each of its processes that initialises CUDA, children and
//! grandchildren included, loads the library and writes a recording of its own; the others never notice.

mod child;
mod environment;
mod late;
mod library;
mod live;
mod outside;
mod passing;
mod profiler;
mod recorder;
mod refused;
mod running;
pub mod trial;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use collector::{Graphs, Lines};
use crossbeam_channel::RecvTimeoutError;
pub use environment::Collect;
pub use passing::{ended_when_asked, pass_on};
pub use recorder::{Recorder, When};
pub(super) use refused::no_process;
pub use refused::{Refused, right};
pub use running::{RunningRequest, StackSight, check, running};

use crate::counters::{Counters, stalls_lack};
use crate::hardware::HardwareWatch;
pub use crate::rights::command;
use activity::feed::{Failure, FailureKind, Feed, Gone, Message, Outcome, Outlet};
use child::TracedChild;
use library::Library;
use live::LiveRecording;
use recording::{self, ProcessState};

/// What the program prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Goes where ours goes, and it reads our stdin: for use without a screen.
    Inherit,
    /// Comes as [`Message::Output`]: for use with a screen. Its stdin is ours unless that is a terminal, which the
    /// screen reads from; then it is empty.
    Capture,
}

/// A program to be traced.
#[derive(Clone, Debug)]
pub struct AttachRequest {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Where its recordings go; made if it does not exist.
    pub dir: PathBuf,
    /// How its kernels are recorded.
    pub collect: Collect,
    /// When to record.
    pub when: When,
    /// Whether GPUs' counters and sensors are read meanwhile, and what launching threads do off their processors.
    pub hardware: bool,
    /// Whether GPUs' counters are sampled, which needs `hardware`.
    pub counters: Counters,
    /// How many times a second the Python stacks of its processes are looked at; `None` for not at all.
    pub python: Option<u32>,
    /// What becomes of its output.
    pub output: Output,
}

/// How often recordings are looked at.
const PERIOD: Duration = Duration::from_millis(5);
/// How long children may go on writing after the program itself has ended.
const STRAGGLERS: Duration = Duration::from_secs(2);
/// How long a program that was told to end may take before it is killed.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a program sends, and the hand on its recording.
pub type Attached = (Feed, Recorder);

/// Starts the program and follows it.
///
/// # Errors
/// When it cannot be started, or the recording directory cannot be made or holds recordings already. Also when the
/// library cannot be unpacked, or another tool has claimed the driver's injection variable.
pub fn run(mut request: AttachRequest) -> io::Result<Attached> {
    let Some(program) = request.command.first() else {
        let why = "no program was given";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    };
    environment::check(|name| std::env::var_os(name))?;
    let mut live = LiveRecording::start(&request.dir, &request.when)?;
    let library = Library::unpack(request.collect.library)?;
    let name = program.to_string_lossy().into_owned();
    let mut warnings: Vec<_> = outside::warning(&request.command).into_iter().collect();
    warnings.extend(stalls_lack(&mut request.collect.stalls));
    let variables = environment::variables(
        &request.collect,
        request.when.range.as_deref(),
        &live.directory,
        &library.path,
    );
    let child = TracedChild::start(&request.command, variables, request.output);
    let child = child.map_err(|error| {
        io::Error::new(error.kind(), format!("{name} cannot be started: {error}"))
    })?;
    let hardware = request.hardware.then_some((request.counters, None));
    live.start_looking(hardware, request.python.map(|hz| (child.id(), hz)))?;
    let hand = live.recorder.clone();
    let feed = Feed::spawn("cuptop-attach", move |outlet| {
        // Kept until the last child had its chance to load it.
        let _library = library;
        TracedRun {
            child,
            live,
            name,
            warnings,
        }
        .follow(outlet)
        .unwrap_or(Outcome::Stopped)
    })?;
    Ok((feed, hand))
}

struct TracedRun {
    child: TracedChild,
    live: LiveRecording,
    name: String,
    /// What is to be said of the command.
    warnings: Vec<String>,
}

impl TracedRun {
    fn follow(mut self, outlet: &Outlet) -> Result<Outcome, Gone> {
        for text in std::mem::take(&mut self.warnings) {
            outlet.notice(true, text)?;
        }
        let ended = self.until_the_end(outlet);
        self.live.recorder.end();
        let stopped = outlet.stop.is_stopped();
        if ended.is_err() || stopped {
            self.child.stop(PATIENCE);
        }
        let watch = self.live.watch.as_ref();
        let listed = watch.map(HardwareWatch::listed).unwrap_or_default();
        for message in self.child.rest_of_output() {
            outlet.send(message)?;
        }
        self.live.finish(outlet)?;
        let Some(code) = ended?.filter(|_| !stopped) else {
            return Ok(Outcome::Stopped);
        };
        let states = self.live.follower.states();
        if let Some(text) = unrecorded(&listed, &states) {
            outlet.notice(true, text)?;
        }
        let had_room = !recording::files::had_no_room(&self.live.directory);
        let message = how_it_ended(&self.name, code, self.child.passing.was_killed());
        let ending = (code, self.child.passing.was_asked(), message);
        Ok(conclude(&self.name, ending, &states, had_room, outlet))
    }

    /// Follows until the program and its children have ended. `None` when it was asked to stop.
    fn until_the_end(&mut self, outlet: &Outlet) -> Result<Option<i32>, Gone> {
        let mut over: Option<(i32, Instant)> = None;
        let mut next = Instant::now();
        let mut told_refused = false;
        loop {
            // Output comes as it comes; recordings are looked at once in a period.
            loop {
                match self.child.output.recv_deadline(next) {
                    Ok(message) => {
                        let is_refused = matches!(&message, Message::Output { line, .. } if profiler::is_refused(line));
                        outlet.send(message)?;
                        if is_refused && !std::mem::replace(&mut told_refused, true) {
                            outlet.notice(true, profiler::NOTICE.to_owned())?;
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => {
                        std::thread::sleep(next.saturating_duration_since(Instant::now()));
                        break;
                    }
                }
            }
            next = Instant::now() + PERIOD;
            self.child.forward_signals();
            if over.is_none()
                && let Some(code) = self.child.ended()
            {
                over = Some((code, Instant::now()));
            }
            let is_alive = self.live.advance(outlet)?;
            if outlet.stop.is_stopped() {
                return Ok(None);
            }
            if let Some((code, since)) = over
                && (!is_alive || since.elapsed() > STRAGGLERS)
            {
                return Ok(Some(code));
            }
        }
    }
}

/// Copies a recording as it is by now, and says what became of it.
fn kept(directory: &Path, to: &Path) -> Message {
    let (is_warning, text) = match keep(directory, to) {
        Ok(text) => (false, text),
        Err(text) => (true, text),
    };
    Message::Notice { is_warning, text }
}

/// Copies a recording as it is by now. What was done comes back, in a sentence.
///
/// # Errors
/// Why it cannot be, in a sentence.
pub fn keep(directory: &Path, to: &Path) -> Result<String, String> {
    recording::keep(directory, to)
        .map(|_| format!("kept the recording so far in {}", to.display()))
        .map_err(|error| format!("the recording could not be kept: {error}"))
}

/// The processes of the program that NVML saw on a GPU and that left no recording, in a sentence.
fn unrecorded(listed: &[(u32, String)], recorded: &[ProcessState]) -> Option<String> {
    let is_missing = |it: &&(u32, String)| recorded.iter().all(|known| known.pid != it.0);
    let missing = listed.iter().filter(is_missing);
    let missing = missing.map(|(pid, name)| format!("{pid} ({name})"));
    let missing: Vec<String> = missing.collect();
    let (first, rest) = missing.split_first()?;
    let more = match rest.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "process {first}{more} used a GPU and left no record: its environment was cleared on the way, or it got its CUDA context from \
         another process"
    ))
}

/// How the program ended, where that was not well.
fn how_it_ended(name: &str, code: i32, was_killed: bool) -> String {
    match code {
        137 if was_killed => format!("{name} did not end when it was asked to: cuptop killed it"),
        137 => format!("{name} was killed (signal 9), not by cuptop: was memory short?"),
        129..=192 => format!("{name} was ended by signal {}", code - 128),
        _ => format!("{name} ended with exit code {code}"),
    }
}

/// The outcome for the program's exit code, whether it was asked to end, how it did, and what was not traced.
fn conclude(
    name: &str,
    (code, was_asked, how): (i32, bool, String),
    processes: &[ProcessState],
    had_room: bool,
    outlet: &Outlet,
) -> Outcome {
    let traced = processes.iter().filter(|process| process.traced).count();
    let untraced = processes.len() - traced;
    let silent = processes.is_empty();
    if silent && (code != 0 || was_asked) {
        // How the program ended comes first; that nothing was seen of it is a remark.
        let text = "no process of the program reported in: it may not have come to use CUDA";
        let _ = outlet.notice(true, text.to_owned());
    }
    if code != 0 {
        return Outcome::Failed(Failure::new(FailureKind::Program { code }, how, ""));
    }
    if was_asked {
        return Outcome::Complete;
    }
    let machine = |message: String, help: &str| {
        Outcome::Failed(Failure::new(FailureKind::Machine, message, help))
    };
    if silent && !had_room {
        let text = format!("{name} ran, but no space was left for its recording");
        return machine(text, "--save names a folder where there is more");
    }
    if silent {
        let text = format!("{name} ran, but no process of it reported in: nothing was traced");
        let help = "either it never initialised CUDA, or its environment was cleared on the way (sudo, a container, a batch \
                        system, a set-user-id program), or its driver ignores CUDA_INJECTION64_PATH";
        return machine(text, help);
    }
    if traced == 0 {
        let text = format!("{name} ran untraced ({untraced} processes): the notices say why");
        return machine(text, "");
    }
    Outcome::Complete
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_killed_the_program_is_said() {
        assert!(how_it_ended("sh", 137, true).ends_with("cuptop killed it"));
        assert!(how_it_ended("sh", 137, false).contains("not by cuptop"));
        assert_eq!(how_it_ended("sh", 139, false), "sh was ended by signal 11");
    }

    #[test]
    fn processes_on_a_gpu_without_a_recording_are_named() {
        let state = |pid| ProcessState {
            pid,
            ..ProcessState::default()
        };
        let listed = [(7, "python3".to_owned()), (8, "sh".to_owned())];
        assert_eq!(unrecorded(&listed, &[state(7), state(8)]), None);
        let text = unrecorded(&listed, &[state(7)]).expect("one is missing");
        assert!(text.starts_with("process 8 (sh) used a GPU"), "{text}");
        let text = unrecorded(&listed, &[]).expect("both");
        assert!(text.starts_with("process 7 (python3) and 1 more"), "{text}");
    }
}
