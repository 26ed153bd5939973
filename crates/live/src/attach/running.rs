//! `cuptop attach PID`: a program that runs already.
//!
//! Its processes that use CUDA get a collector ([`super::late`]), which leaves at the end. Without it there is what the operating system
//! lets anybody see of a process that he may debug. Those are its Python stacks, and what NVML tells of the GPUs that it uses.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::environment::Collect;
use super::late::{Hand, users_of_cuda};
use super::live::LiveRecording;
use super::recorder::When;
use super::refused::{Refused, no_process, permitted};
use super::{Attached, PERIOD, STRAGGLERS};
use crate::at_once;
use crate::counters::{Counters, stalls_lack};
use crate::hardware;
use crate::python;
use crate::rights::command;
use activity::feed::{
    Failure, FailureKind, Feed, Gone, Message, Outcome, Outlet, SourceStatus, Stop,
};

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
    pub sight: StackSight,
    /// How its kernels are recorded, if they are to be.
    pub collect: Option<Collect>,
    /// For how long; until it ends without.
    pub duration: Option<Duration>,
    /// Whether it is given up before anything is recorded.
    pub given_up: Stop,
}

/// What of a running program's stacks can be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackSight {
    /// How many times a second Python is looked at, and for; `None` where that is of no use or not wanted.
    pub python: Option<u32>,
    /// Why there are no Python lines to be seen now.
    pub lacks: Option<Refused>,
}

/// What of a process can be looked at: its Python stacks, its GPUs, or both. Of one without Python, or that may not be read,
/// the GPUs alone. Python is looked for `within` a time in a process that may have begun just now.
///
/// # Errors
/// When nothing can: why, and what helps.
pub fn check(
    pid: u32,
    python: Option<u32>,
    within: Duration,
    hardware: bool,
) -> Result<StackSight, Refused> {
    let Some(command) = command(pid) else {
        return Err(no_process(pid));
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
            let off = "Python stacks are not looked at (--python off)";
            let help = "leave out --python off, or --hardware off";
            (None, Refused::new(off, help))
        }
        (Some(_), Err(error)) => {
            let message = format!("process {pid} ({command}) may not be read: {error}");
            (None, Refused::new(message, permitted(pid)))
        }
        (Some(hz), Ok(_)) if python::is_in(pid, within) => {
            return Ok(StackSight {
                python: Some(hz),
                lacks: None,
            });
        }
        // It may start one yet.
        (Some(hz), Ok(_)) => {
            let none = "nor in a process that it started";
            let none = format!("there is no Python in process {pid} ({command}), {none}");
            let help = "the kernels and copies of any CUDA program are recorded from a start under `cuptop trace -- CMD`";
            (Some(hz), Refused::new(none, help))
        }
    };
    if !hardware {
        return Err(lacks);
    }
    hardware::is_readable().map_err(|error| {
        let message = format!("{}, and there are no hardware rows: {error}", lacks.message);
        Refused::new(message, lacks.help.clone())
    })?;
    Ok(StackSight {
        python,
        lacks: Some(lacks),
    })
}

/// Looks at a running program until it ends, the time is over, or nobody wants it.
///
/// # Errors
/// When the directory cannot be made or holds a recording, the system gives no thread, or nothing can be loaded into the program.
pub fn running(mut request: RunningRequest) -> Result<Attached, Refused> {
    let failed = |error: io::Error| Refused::new(format!("cannot attach: {error}"), "");
    let mut live = LiveRecording::start(&request.dir, &When::default()).map_err(failed)?;
    let began = Instant::now();
    let stalls = request.collect.as_mut().map(|it| &mut it.stalls);
    let lack = stalls.and_then(stalls_lack);
    let inside = match &request.collect {
        Some(collect) => Inside::of(&request, &live, collect)?,
        None => Inside::default(),
    };
    let pid = request.pid;
    let hardware = request.hardware.then_some((request.counters, Some(pid)));
    let looks = live.start_looking(hardware, request.sight.python.map(|hz| (pid, hz)));
    looks.map_err(failed)?;
    let hand = live.recorder.clone();
    let feed = Feed::spawn("cuptop-attach", move |outlet| {
        RunningProgram {
            inside,
            lack,
            began,
            request,
            live,
        }
        .follow(outlet)
    });
    Ok((feed.map_err(failed)?, hand))
}

/// The processes of a program, as far as they were entered.
#[derive(Debug, Default)]
struct Inside {
    hands: Vec<Hand>,
    /// Those that another cuptop is attached to.
    held: Vec<u32>,
    /// Since when that is waited for.
    since: Option<Instant>,
    /// The processes that were entered, or could not be.
    tried: Vec<u32>,
    /// Why those could not be, to be said.
    refused: Vec<Refused>,
}

impl Inside {
    /// Enters the processes that use CUDA, or where none does yet the one that was named.
    ///
    /// # Errors
    /// When none can be entered: why the first one cannot.
    fn of(
        request: &RunningRequest,
        live: &LiveRecording,
        collect: &Collect,
    ) -> Result<Inside, Refused> {
        let pid = request.pid;
        if command(pid).is_none() {
            return Err(no_process(pid));
        }
        let (mut inside, mut pids) = (Inside::default(), users_of_cuda(pid));
        if pids.is_empty() {
            pids.push(pid);
        }
        inside.enter(&pids, live, collect, &request.given_up);
        inside.settled().map(|()| inside)
    }

    /// Enters all of them side by side: one that hangs keeps no other.
    fn enter(&mut self, pids: &[u32], live: &LiveRecording, collect: &Collect, stop: &Stop) {
        let given_up = stop.flag();
        let enter = |pid: &u32| {
            let entered = Hand::enter(*pid, &live.directory, collect, &given_up);
            (*pid, entered)
        };
        let entered = at_once(pids, enter);
        for (pid, entered) in entered {
            match entered {
                Ok(None) => self.held.push(pid),
                Ok(Some(hand)) => self.hands.push(hand),
                Err(why) => self.refused.push(why),
            }
            self.tried
                .extend((!self.held.contains(&pid)).then_some(pid));
        }
        self.since = match self.held[..] {
            [] => None,
            _ => self.since.or(Some(Instant::now())),
        };
    }

    /// Whether nothing is recorded as long as another cuptop stays.
    fn waits(&self) -> bool {
        self.hands.is_empty() && !self.held.is_empty()
    }

    /// Why nothing is recorded, where that is settled.
    fn settled(&mut self) -> Result<(), Refused> {
        let is_over = self.since.is_some_and(|it| it.elapsed() >= WAITING);
        match self.status().filter(|_| is_over && self.waits()) {
            Some(it) => Err(Refused::new(
                it.text,
                "end that one, or look at its recording: cuptop open",
            )),
            None if !self.hands.is_empty() || self.waits() || self.refused.is_empty() => Ok(()),
            None => Err(self.refused.swap_remove(0)),
        }
    }

    fn status(&self) -> Option<SourceStatus> {
        let (pid, seconds) = (self.held.first()?, self.since?.elapsed().as_secs());
        let most = self.waits().then(|| format!(" of {}", WAITING.as_secs()));
        let most = most.unwrap_or_default();
        let text = format!("another cuptop is attached to process {pid} ({seconds}{most} s)");
        Some(SourceStatus {
            is_alarming: true,
            text,
        })
    }
}

/// Has all collectors let go, and does `meanwhile` until they have.
fn leave(hands: &mut [Hand], mut meanwhile: impl FnMut() -> Result<(), Gone>) -> Result<(), Gone> {
    hands.iter().for_each(Hand::leave);
    let begun = Instant::now();
    while begun.elapsed() < LEAVING && !hands.iter_mut().all(Hand::has_left) {
        meanwhile()?;
        std::thread::sleep(PERIOD);
    }
    Ok(())
}

/// How long collectors are waited for to write the last of it. Who takes longer does so alone.
const LEAVING: Duration = Duration::from_millis(800);
/// How often it is looked whether other processes of the program have come to use CUDA.
const MORE: Duration = Duration::from_secs(1);

/// How long another cuptop is waited for where nothing else is recorded.
const WAITING: Duration = Duration::from_secs(60);

struct RunningProgram {
    request: RunningRequest,
    live: LiveRecording,
    inside: Inside,
    /// Why no stalls are sampled that were asked for.
    lack: Option<String>,
    /// When it was entered, or first looked at.
    began: Instant,
}

impl RunningProgram {
    fn follow(mut self, outlet: &Outlet) -> Outcome {
        let ended = self.until_the_end(outlet);
        let live = &mut self.live;
        let left = leave(&mut self.inside.hands, || live.advance(outlet).map(drop));
        let told = left.and_then(|()| self.pass_on_news(outlet));
        let ended = told.and(ended).ok();
        self.live.recorder.end();
        let is_read = self.live.finish(outlet).is_ok();
        ended.filter(|_| is_read).unwrap_or(Outcome::Stopped)
    }

    fn until_the_end(&mut self, outlet: &Outlet) -> Result<Outcome, Gone> {
        let notice = |text: String| outlet.notice(false, text);
        let pid = self.request.pid;
        if self.request.collect.is_none() {
            notice(self.outside())?;
        }
        if let Some(text) = self.lack.take() {
            outlet.notice(true, text)?;
        }
        let mut next = Instant::now();
        let mut over: Option<Instant> = None;
        loop {
            // What it wrote last is still to be read.
            if over.is_none() && !python::is_there(pid) {
                over = Some(Instant::now());
                notice(format!("process {pid} has ended"))?;
            }
            self.pass_on_news(outlet)?;
            if Instant::now() >= next {
                next = Instant::now() + MORE;
                if let Err(refused) = self.enter_more(outlet)? {
                    let machine = FailureKind::Machine;
                    let failure = Failure::new(machine, refused.message, refused.help);
                    return Ok(Outcome::Failed(failure));
                }
            }
            let is_alive = self.live.advance(outlet)?;
            if outlet.stop.is_stopped() {
                return Ok(Outcome::Stopped);
            }
            let duration = self.request.duration.filter(|_| !self.inside.waits());
            if over.is_none() && duration.is_some_and(|it| self.began.elapsed() >= it) {
                let text = format!("the time is over (--duration); process {pid} goes on");
                return notice(text).map(|()| Outcome::Complete);
            }
            if over.is_some_and(|since| !is_alive || since.elapsed() > STRAGGLERS) {
                return Ok(Outcome::Complete);
            }
            std::thread::sleep(PERIOD);
        }
    }

    /// What is looked at where nothing is entered.
    fn outside(&self) -> String {
        let pid = self.request.pid;
        match (&self.request.sight.lacks, &self.live.watch) {
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
        }
    }

    fn pass_on_news(&mut self, outlet: &Outlet) -> Result<(), Gone> {
        let mut news = self.inside.hands.iter_mut().filter_map(Hand::news);
        news.try_for_each(|(is_warning, text)| outlet.notice(is_warning, text))
    }

    /// Enters processes that the program has started meanwhile, that have come to use CUDA, or that another cuptop has left. Why
    /// nothing is recorded comes back when that is settled.
    fn enter_more(&mut self, outlet: &Outlet) -> Result<Result<(), Refused>, Gone> {
        let Some(collect) = &self.request.collect else {
            return Ok(Ok(()));
        };
        let inside = &mut self.inside;
        let (waited, since) = (inside.waits(), inside.since);
        let mut new = users_of_cuda(self.request.pid);
        new.append(&mut inside.held);
        new.retain(|pid| !inside.tried.contains(pid) && python::is_there(*pid));
        new.sort_unstable();
        new.dedup();
        inside.enter(&new, &self.live, collect, &outlet.stop);
        if waited && !inside.waits() {
            self.began = Instant::now();
        }
        if since.or(inside.since).is_some() {
            outlet.send(Message::Status(inside.status().into_iter().collect()))?;
        }
        if waited && let Err(refused) = inside.settled() {
            return Ok(Err(refused));
        }
        for refused in inside.refused.drain(..) {
            outlet.notice(true, format!("{}; {}", refused.message, refused.help))?;
        }
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_says_what_helps() {
        let gone = check(u32::MAX >> 1, Some(100), Duration::from_secs(2), false)
            .expect_err("there is none");
        assert!(gone.message.contains("there is no process"), "{gone}");
        let mut sleep = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .expect("starts");
        // Until it is that, the new process is a copy of this one.
        while !command(sleep.id()).is_some_and(|it| it.starts_with("sleep")) {
            std::thread::yield_now();
        }
        let plain =
            check(sleep.id(), Some(100), Duration::from_secs(2), false).expect_err("no Python");
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
        let ended = check(sleep.id(), Some(100), Duration::from_secs(2), false)
            .expect_err("nobody has waited for it yet");
        assert!(ended.message.contains("has just ended"), "{ended}");
        sleep.wait().expect("ends");
    }
}
