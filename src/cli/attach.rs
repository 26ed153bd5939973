//! `cuptop attach PID`: samples a program that is running already.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;

use super::args::{Attach, Switch};
use super::collect::collect;
use super::exit::{self, Ending};
use super::screen;
use super::trace::Recordings;
use crate::report::Report;
use crate::tui::{NextRun, Running};
use activity::feed::{Outcome, Stop};
use live::attach::{self, Attached, RunningRequest};
use trace::{SourceInfo, SourceKind};

/// How long Python is looked for in a process that may have begun just now.
const PYTHON_WITHIN: Duration = Duration::from_secs(2);

/// Records a running program, or looks at it.
pub(super) fn attach(args: &Attach) -> Result<u8, Ending> {
    let Some(pid) = args.pid else {
        let lists = "`cuptop` lists those that use a GPU; then cuptop attach PID";
        return Err(Ending::input("attach to which process?").help(lists));
    };
    if args.headless && args.stacks_only && args.save.is_none() {
        return Err(Ending::input(
            "--headless with --stacks-only keeps what it sees: --save DIR says where",
        ));
    }
    let mut target = RunningProgram::new(pid, args.clone());
    if args.headless {
        return headless(&mut target);
    }
    // What cannot be is said before the screen opens, which shows what stands still.
    let is_entered = !live::job::is_still(pid);
    let mut started = is_entered.then(|| target.start()).transpose()?;
    screen::open(
        Box::new(move |wanted| match started.take() {
            Some(started) => Ok(target.shown(started)),
            None => target.start_for_screen(wanted),
        }),
        screen::no_scenario(),
        &args.first,
    )
}

fn headless(target: &mut RunningProgram) -> Result<u8, Ending> {
    let cannot = |error: io::Error| Ending::machine(format!("cannot wait for signals: {error}"));
    let (asked, signal) = note_signals().map_err(cannot)?;
    target.given_up = asked.clone();
    let feed = match target.start() {
        Err(_) if asked.is_stopped() => return Ok(code_after(&signal)),
        started => started?.0,
    };
    stop_by_signals(&feed.stop, &asked).map_err(cannot)?;
    let memory = super::rows_memory(target.args.watched.memory);
    let (mut trace, outcome) = collect(feed, target.info(), Some(memory));
    if let Outcome::Failed(failure) = outcome {
        return Err(failure.into());
    }
    if !target.args.stacks_only {
        jobs::align_clocks(&mut trace);
        let report = Report::new(&trace, None, super::profile::kept());
        super::print_beside(&report, &target.args.printed)?;
        return Ok(code_after(&signal));
    }
    let looks = trace.processes().iter().map(|it| it.sampled.totals().looks);
    let samples: u64 = looks.sum();
    let dir = activity::text::printable(&target.recordings.dir.display().to_string());
    let pid = target.pid;
    super::say(&match samples {
        0 if !trace.hardware().was_read() => {
            format!("nothing was seen of process {pid}: {dir} holds no trace")
        }
        _ => format!(
            "what was seen in {samples} looks is kept in {dir}: cuptop open shows it, cuptop export -o x.sqlite has it in tables"
        ),
    });
    Ok(code_after(&signal))
}

const SIGNALS: [i32; 3] = [SIGINT, SIGQUIT, SIGTERM];

/// Notes which of Ctrl-C and the like came first. A second one ends cuptop at once.
fn note_signals() -> io::Result<(Stop, Arc<AtomicUsize>)> {
    let (asked, came) = (Stop::default(), Arc::new(AtomicUsize::new(0)));
    for signal in SIGNALS {
        // In this order, so that the first one finds nobody asked yet.
        flag::register_conditional_default(signal, asked.flag())?;
        flag::register(signal, asked.flag())?;
        flag::register_usize(signal, Arc::clone(&came), signal.unsigned_abs() as usize)?;
    }
    Ok((asked, came))
}

/// Has them end what is recorded, as the end of `--duration` does, also one that has come.
fn stop_by_signals(stop: &Stop, asked: &Stop) -> io::Result<()> {
    for signal in SIGNALS {
        flag::register(signal, stop.flag())?;
    }
    if asked.is_stopped() {
        stop.stop();
    }
    Ok(())
}

fn code_after(signal: &AtomicUsize) -> u8 {
    match signal.load(Ordering::Relaxed) {
        0 => exit::FINE,
        signal => u8::try_from(128 + signal).unwrap_or(u8::MAX),
    }
}

/// The program, and how to sample it again and again.
pub(super) struct RunningProgram {
    pid: u32,
    args: Attach,
    recordings: Recordings,
    given_up: Stop,
}

impl RunningProgram {
    pub(super) fn new(pid: u32, args: Attach) -> Self {
        let recordings = Recordings::default();
        RunningProgram {
            pid,
            args,
            recordings,
            given_up: Stop::default(),
        }
    }

    /// Begins, for a screen that is open. What stands still is entered only when it is asked for by that word.
    pub(super) fn start_for_screen(&mut self, wanted: &NextRun) -> Result<Running, Ending> {
        let pid = self.pid;
        if !matches!(wanted, NextRun::Enter(_)) && live::job::is_still(pid) {
            return Err(Ending {
                still: Some(pid),
                ..Ending::input("it stands still")
            });
        }
        let started = self.start()?;
        Ok(self.shown(started))
    }

    fn shown(&self, started: Attached) -> Running {
        let memory = self.args.watched.memory;
        self.recordings.shown(started, memory, self.info())
    }

    fn start(&mut self) -> Result<Attached, Ending> {
        let (pid, args) = (self.pid, &self.args);
        let is_collected = !args.stacks_only;
        let wrong = |it: attach::Refused| match is_collected {
            true => Ending::machine(it.message).help(it.help),
            false => Ending::input(it.message).help(it.help),
        };
        let hardware = args.watched.recorded.hardware == Switch::On;
        // One that is entered is looked at from its first line of Python on, whenever that comes.
        let within = match is_collected {
            true => Duration::ZERO,
            false => PYTHON_WITHIN,
        };
        let sight = match attach::check(pid, args.watched.looks(), within, hardware) {
            Ok(sight) => sight,
            // What there is to see from outside is not all.
            Err(_) if is_collected && pid != std::process::id() => attach::StackSight::default(),
            Err(refused) => return Err(wrong(refused)),
        };
        let next = self.recordings.next(args.save.as_ref(), None);
        let (keep, max_bytes) =
            next.map_err(|error| Ending::machine(format!("cannot attach: {error}")))?;
        let started = attach::running(RunningRequest {
            pid,
            dir: self.recordings.dir.clone(),
            hardware,
            counters: args.watched.counters().map_err(Ending::input)?,
            sight,
            collect: is_collected.then(|| args.watched.collect(keep, max_bytes)),
            duration: args.duration,
            given_up: self.given_up.clone(),
        })
        .map_err(wrong)?;
        self.recordings.runs += 1;
        Ok(started)
    }

    fn info(&self) -> SourceInfo {
        SourceInfo {
            kind: match self.args.stacks_only {
                true => SourceKind::Attached,
                false => SourceKind::Traced,
            },
            title: attach::command(self.pid).unwrap_or_default(),
            ..SourceInfo::default()
        }
    }
}
