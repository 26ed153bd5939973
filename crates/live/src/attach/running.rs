//! `cuptop attach PID`: a program that runs already, looked at from outside.
//!
//! Only what the operating system lets anybody see of a process that he may debug: its Python stacks, and of the GPUs that it uses
//! what NVML tells of them. The CUDA driver loads a
//! collector when a program begins to use CUDA and never later, so kernels and copies need a start under `cuptop trace`.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::live::LiveRecording;
use super::recorder::When;
use super::{Attached, PERIOD, STRAGGLERS};
use crate::counters::Counters;
use crate::hardware::{self, Watch};
use crate::looking::Looking;
use crate::python::{self, Sampler};
use activity::feed::{Feed, Gone, Outcome, Outlet};

/// A running program to be looked at.
#[derive(Clone, Debug)]
pub struct RunningRequest {
    /// The process; its descendants are looked at too.
    pub pid: u32,
    /// Where what was seen goes; made if it does not exist.
    pub dir: PathBuf,
    /// Whether counters and sensors of its GPUs are read.
    pub hardware: bool,
    /// Whether their counters are sampled, which needs `hardware`.
    pub counters: Counters,
    /// What of its stacks can be seen.
    pub sight: Sight,
    /// For how long; until it ends without.
    pub duration: Option<Duration>,
}

/// What of a running program's stacks can be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// How many times a second Python is looked at, and for; `None` where that is of no use or not wanted.
    pub python: Option<u32>,
    /// Why there are no Python lines to be seen now.
    pub lacks: Option<Refused>,
}

/// Why a running program cannot be looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// What is wrong.
    pub message: String,
    /// What helps.
    pub help: String,
}

impl Refused {
    fn new(message: impl Into<String>, help: impl Into<String>) -> Refused {
        Refused {
            message: message.into(),
            help: help.into(),
        }
    }
}

/// How long Python is looked for in a process that may have begun just now.
const PYTHON_WITHIN: Duration = Duration::from_secs(2);

/// What of a process can be looked at: its Python stacks, its GPUs, or both. Of one without Python, or that may not be read,
/// the GPUs alone.
///
/// # Errors
/// When nothing can: why, and what helps.
pub fn check(pid: u32, python: Option<u32>, hardware: bool) -> Result<Sight, Refused> {
    let Some(command) = command(pid) else {
        return Err(Refused::new(
            format!("there is no process {pid}"),
            "`pgrep -af python` lists those that run Python; in a container only its own are seen",
        ));
    };
    if pid == std::process::id() {
        return Err(Refused::new("that is cuptop itself", ""));
    }
    let is_readable = match File::open(format!("/proc/{pid}/mem")) {
        // Of one that has ended and waits for its parent there is no memory either.
        Err(error) if error.kind() == io::ErrorKind::NotFound || !python::is_there(pid) => {
            return Err(Refused::new(format!("process {pid} has just ended"), ""));
        }
        other => other,
    };
    let (python, lacks) = match (python, is_readable) {
        (None, _) => {
            let off = Refused::new(
                "Python stacks are not looked at (--python off)",
                "leave out --python off, or --hardware off",
            );
            (None, off)
        }
        (Some(_), Err(error)) => {
            let message = format!("process {pid} ({command}) may not be read: {error}");
            (None, Refused::new(message, permitted(pid)))
        }
        (Some(hz), Ok(_)) if python::is_in(pid, PYTHON_WITHIN) => {
            return Ok(Sight {
                python: Some(hz),
                lacks: None,
            });
        }
        // It may start one yet.
        (Some(hz), Ok(_)) => {
            let none = Refused::new(
                format!(
                    "there is no Python in process {pid} ({command}), nor in a process that it started"
                ),
                "the kernels and copies of any CUDA program are recorded from a start under `cuptop trace -- CMD`",
            );
            (Some(hz), none)
        }
    };
    if !hardware {
        return Err(lacks);
    }
    hardware::is_readable().map_err(|error| {
        let message = format!("{}, and there are no hardware rows: {error}", lacks.message);
        Refused::new(message, lacks.help.clone())
    })?;
    Ok(Sight {
        python,
        lacks: Some(lacks),
    })
}

/// What allows reading a process.
fn permitted(pid: u32) -> String {
    let own = rustix::process::geteuid().as_raw();
    let owner = std::fs::metadata(format!("/proc/{pid}"))
        .map(|it| std::os::unix::fs::MetadataExt::uid(&it))
        .ok();
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let scope: Option<u32> = scope.ok().and_then(|it| it.trim().parse().ok());
    words(own, owner, scope)
}

fn words(own: u32, owner: Option<u32>, scope: Option<u32>) -> String {
    match (own, owner, scope) {
        (0, _, Some(3)) => "kernel.yama.ptrace_scope is 3: nobody may until the machine starts anew with less".to_owned(),
        (0, ..) => "it takes CAP_SYS_PTRACE, which root in a container has not by itself: --cap-add SYS_PTRACE".to_owned(),
        (_, Some(owner), _) if owner != own => {
            format!("it belongs to user {owner}: attach as that user, or as root (sudo)")
        }
        (_, _, Some(scope @ 1..)) => format!(
            "kernel.yama.ptrace_scope is {scope}, which lets nobody but a parent or root read a process: `sudo cuptop attach`, or for \
             everybody `sudo sysctl kernel.yama.ptrace_scope=0`; in a container --cap-add SYS_PTRACE"
        ),
        _ => "it takes CAP_SYS_PTRACE (sudo; in a container --cap-add SYS_PTRACE), or it made itself unreadable".to_owned(),
    }
}

/// The command line of a process; its short name where it has none.
#[must_use]
pub fn command(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = line
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    if !words.is_empty() {
        return Some(words.join(" "));
    }
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim().to_owned())
}

/// Looks at a running program until it ends, the time is over, or nobody wants it.
///
/// # Errors
/// When the directory cannot be made or holds a recording, or the system gives no thread.
pub fn running(request: RunningRequest) -> io::Result<Attached> {
    let looking = Looking::new(true);
    let mut live = LiveRecording::start(&request.dir, &When::default(), looking.clone())?;
    if request.hardware {
        let watch = Watch::of_running(
            &live.directory,
            looking.clone(),
            request.counters,
            request.pid,
        )?;
        live.watch = Some(watch);
    }
    if let Some(hz) = request.sight.python {
        let sampler = Sampler::start(request.pid, &live.directory, hz, looking)?;
        live.sampler = Some(sampler);
    }
    let hand = live.recorder.clone();
    let feed = Feed::spawn("cuptop-attach", move |outlet| {
        Look { request, live }.follow(outlet)
    })?;
    Ok((feed, hand))
}

struct Look {
    request: RunningRequest,
    live: LiveRecording,
}

impl Look {
    fn follow(mut self, outlet: &Outlet) -> Outcome {
        let ended = self.until_the_end(outlet);
        self.live.recorder.end();
        let is_read = self.live.finish(outlet).is_ok();
        match ended {
            Ok(true) if is_read => Outcome::Complete,
            _ => Outcome::Stopped,
        }
    }

    /// Returns false when it was asked to stop.
    fn until_the_end(&mut self, outlet: &Outlet) -> Result<bool, Gone> {
        let notice = |text: String| outlet.notice(false, text);
        let pid = self.request.pid;
        let lacks = self.request.sight.lacks.as_ref();
        notice(match (lacks, &self.live.watch) {
            (Some(lacks), _) => format!(
                "looking at the GPUs of process {pid} from outside and at nothing else: {lacks}{}{}",
                if lacks.help.is_empty() { "" } else { "; " },
                lacks.help
            ),
            (None, watch) => format!(
                "looking at the Python stacks{} of process {pid} from outside; its kernels and copies are not recorded: that needs a \
                 start under `cuptop trace`",
                watch.as_ref().map_or("", |_| " and the GPUs")
            ),
        })?;
        let began = Instant::now();
        let mut over: Option<Instant> = None;
        loop {
            std::thread::sleep(PERIOD);
            // What it wrote last is still to be read.
            if over.is_none() && !python::is_there(pid) {
                over = Some(Instant::now());
                notice(format!("process {pid} has ended"))?;
            }
            let is_alive = self.live.look(outlet)?;
            if outlet.stop.is_stopped() {
                return Ok(false);
            }
            let duration = self.request.duration;
            if over.is_none() && duration.is_some_and(|it| began.elapsed() >= it) {
                notice(format!(
                    "the time is over (--duration); process {pid} goes on"
                ))?;
                return Ok(true);
            }
            if over.is_some_and(|since| !is_alive || since.elapsed() > STRAGGLERS) {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_says_what_helps() {
        let gone = check(u32::MAX >> 1, Some(100), false).expect_err("there is none");
        assert!(gone.message.contains("there is no process"), "{gone}");
        let mut sleep = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .expect("starts");
        // Until it is that, the new process is a copy of this one.
        while !command(sleep.id()).is_some_and(|it| it.starts_with("sleep")) {
            std::thread::yield_now();
        }
        let plain = check(sleep.id(), Some(100), false).expect_err("no Python");
        assert!(plain.message.contains("(sleep"), "{plain}");
        // In a container without the right to read it, that is what is wrong.
        assert!(
            plain.message.contains("no Python") || plain.message.contains("may not be read"),
            "{plain}"
        );
        sleep.kill().expect("killed");
        let begun = Instant::now();
        while python::is_there(sleep.id()) && begun.elapsed() < Duration::from_secs(5) {
            std::thread::yield_now();
        }
        let ended = check(sleep.id(), Some(100), false).expect_err("nobody has waited for it yet");
        assert!(ended.message.contains("has just ended"), "{ended}");
        sleep.wait().expect("ends");
        for (own, owner, scope, expected) in [
            (0, Some(0), Some(1), "--cap-add SYS_PTRACE"),
            (0, Some(0), Some(3), "ptrace_scope is 3"),
            (1000, Some(0), Some(1), "belongs to user 0"),
            (1000, Some(1000), Some(1), "ptrace_scope is 1"),
            (1000, Some(1000), Some(0), "CAP_SYS_PTRACE"),
            (1000, None, None, "CAP_SYS_PTRACE"),
        ] {
            let help = words(own, owner, scope);
            assert!(help.contains(expected), "{own} {owner:?} {scope:?}: {help}");
        }
    }
}
