//! `cuptop attach PID`: samples a program that is running already.

use std::io;
use std::path::PathBuf;

use super::args::{Attach, ScreenArgs, Switch};
use super::collect::collect;
use super::exit::{self, Ending};
use super::screen;
use super::trace::Controls;
use crate::tui::{Running, Wanted};
use activity::feed::Outcome;
use live::attach::{self, Attached, RunningRequest};
use recording::scratch;
use trace::{Clocks, SourceInfo, SourceKind, Trace};

/// Samples a running program.
pub(super) fn attach(args: &Attach, screen_args: &ScreenArgs) -> Result<u8, Ending> {
    let refused = |it: attach::Refused| Ending::input(it.message).help(it.help);
    let check = || attach::check(args.pid, args.python.looks(), args.hardware == Switch::On);
    let sight = check().map_err(refused)?;
    let mut target = RunningProgram {
        args,
        sight,
        scratch: None,
        runs: 0,
        dir: PathBuf::new(),
    };
    if args.headless {
        return headless(&mut target);
    }
    screen::open(
        Box::new(move |_| {
            target.sight = check().map_err(|it| refused(it).for_screen(None))?;
            let (feed, recorder) = target.start().map_err(|error| {
                Ending::machine(format!("cannot attach: {error}")).for_screen(None)
            })?;
            let source = target.info();
            let controls = Controls::new(recorder, &target.dir, args.save.is_some(), &source.title);
            Ok(Running {
                memory: Some(super::rows_memory(args.memory)),
                controls: Some(Box::new(controls)),
                ..Running::new(feed, source)
            })
        }),
        Some(Wanted::Same),
        screen::no_scenario(),
        &args.first,
        screen_args,
    )
}

fn headless(target: &mut RunningProgram<'_>) -> Result<u8, Ending> {
    let (feed, _) = target
        .start()
        .map_err(|error| Ending::machine(format!("cannot attach: {error}")))?;
    let mut trace = Trace::new(target.info());
    trace.set_limit(Some(super::rows_memory(target.args.memory)));
    match collect(&feed, &mut trace) {
        Outcome::Complete | Outcome::Stopped => {}
        Outcome::Failed(failure) => return Err(failure.into()),
    }
    let samples: u64 = trace
        .processes()
        .iter()
        .map(|it| it.sampled.totals().looks)
        .sum();
    let dir = activity::text::printable(&target.dir.display().to_string());
    super::eprint(&match samples {
        0 if !trace.hardware().was_read() => format!(
            "cuptop: nothing was seen of process {}: {dir} holds no trace\n",
            target.args.pid
        ),
        0 => format!(
            "cuptop: what was seen is kept in {dir}: cuptop open shows it, cuptop export --to counters is the hardware's\n"
        ),
        _ => format!(
            "cuptop: {samples} looks are kept in {dir}: cuptop open shows them, cuptop export --to folded --weight samples is for flame graphs\n"
        ),
    });
    Ok(exit::FINE)
}

/// The program, and how to sample it again and again.
struct RunningProgram<'a> {
    args: &'a Attach,
    sight: attach::Sight,
    scratch: Option<scratch::Scratch>,
    runs: usize,
    dir: PathBuf,
}

impl RunningProgram<'_> {
    fn start(&mut self) -> io::Result<Attached> {
        let dir = match &self.args.save {
            Some(dir) => super::numbered(dir, self.runs),
            None => self.scratch.insert(scratch::directory()?).path().to_owned(),
        };
        self.dir.clone_from(&dir);
        let started = attach::running(RunningRequest {
            pid: self.args.pid,
            dir,
            hardware: self.args.hardware == Switch::On,
            counters: self.args.counters.counters,
            sight: self.sight.clone(),
            duration: self.args.duration,
        })?;
        self.runs += 1;
        Ok(started)
    }

    fn info(&self) -> SourceInfo {
        SourceInfo {
            kind: SourceKind::Attached,
            title: attach::command(self.args.pid).unwrap_or_default(),
            path: None,
            simulated: false,
            clocks: Clocks::default(),
        }
    }
}
