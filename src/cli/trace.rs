//! `cuptop trace -- CMD`: traces any CUDA program.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::DateTime;

use super::args::{ReplayOptions, Switch, Trace as TraceArgs};
use super::collect::collect;
use super::exit::{self, Ending};
use super::screen;
use crate::report::Report;
use crate::tui::{self, Running, StillTimeline};
use activity::feed::Feed;
use live::attach::{self, AttachRequest, Output, Recorder, When};
use recording::{folder_in, scratch};
use trace::{SourceInfo, SourceKind};

pub(super) fn trace(args: &TraceArgs) -> Result<u8, Ending> {
    args.watched.counters().map_err(Ending::input)?;
    let shot = screen::shot(&args.picture, ReplayOptions::default())?;
    if shot == Some(screen::Shot::Cast) {
        return Err(
            Ending::input("a program is traced once: keep it with --save DIR")
                .help("then `cuptop export DIR -o FILE.cast` writes how its screen fills"),
        );
    }
    let mut program = TracedProgram {
        args,
        recordings: Recordings::default(),
    };
    if args.headless || shot.is_some() {
        return headless(&mut program);
    }
    screen::open(
        Box::new(move |_| {
            let started = program
                .start(Output::Capture)
                .map_err(|error| Ending::machine(format!("cannot trace: {error}")))?;
            let memory = program.args.watched.memory;
            Ok(program.recordings.shown(started, memory, program.info()))
        }),
        screen::no_scenario(),
        &args.first,
    )
}

/// The program keeps standard output and standard error. The report goes to standard error, or as JSON to standard
/// output, after everything that the program printed.
fn headless(program: &mut TracedProgram<'_>) -> Result<u8, Ending> {
    let (feed, _) = program
        .start(Output::Inherit)
        .map_err(|error| Ending::machine(format!("cannot trace: {error}")))?;
    let memory = super::rows_memory(program.args.watched.memory);
    let (mut trace, outcome) = collect(feed, program.info(), Some(memory));
    // Nothing is left to be passed on, and no folder of ours stays.
    program.recordings = Recordings::default();
    tui::end_at_once();
    jobs::align_clocks(&mut trace);
    let mut code = exit::FINE;
    if program.args.headless {
        let report = Report::new(&trace, None, super::profile::kept());
        super::print_beside(&report, &program.args.printed)?;
        code = super::gates(&report, &program.args.fail_if);
    }
    let TraceArgs { picture, first, .. } = program.args;
    screen::take_picture(StillTimeline::of(trace), picture, first)?;
    exit::ended(outcome, code)
}

/// How much it keeps of a recording that the user did not ask for, as far as its size allows: K can still save that.
const SCRATCH_KEEP: Duration = Duration::from_secs(30 * 60);

/// The recordings of a program, a run after another.
#[derive(Default)]
pub(super) struct Recordings {
    /// The folder of one that the user did not ask for. The run before has ended when it is replaced.
    scratch: Option<scratch::Scratch>,
    /// Runs that have begun.
    pub(super) runs: usize,
    /// The folder of the present one.
    pub(super) dir: PathBuf,
}

impl Recordings {
    /// Makes the folder of the next one, and says how much of it is kept where the user does not: how long, how many bytes.
    pub(super) fn next(
        &mut self,
        save: Option<&PathBuf>,
        shared: Option<&PathBuf>,
    ) -> io::Result<(Option<Duration>, u64)> {
        self.dir = match (save, shared) {
            (Some(dir), _) => super::numbered(dir, self.runs),
            (None, Some(shared)) => folder_in(shared)?,
            (None, None) => self.scratch.insert(scratch::directory()?).path().to_owned(),
        };
        Ok(match self.scratch {
            Some(_) => (Some(SCRATCH_KEEP), scratch::limit(&self.dir)),
            None => (None, 0),
        })
    }

    /// The run that has begun, for the screen. A recording that is kept from now on is named after the program's title.
    pub(super) fn shown(
        &self,
        (feed, recorder): (Feed, Recorder),
        memory: u64,
        source: SourceInfo,
    ) -> Running {
        let controls = TraceControls {
            recorder,
            dir: self.dir.clone(),
            is_kept: self.scratch.is_none(),
            name: kept_name(&source.title),
        };
        Running {
            memory: Some(super::rows_memory(memory)),
            controls: Some(Box::new(controls)),
            gpus: super::profile::kept(),
            ..Running::new(feed, source)
        }
    }
}

/// The program, and how to start it again and again.
struct TracedProgram<'a> {
    args: &'a TraceArgs,
    recordings: Recordings,
}

impl TracedProgram<'_> {
    fn start(&mut self, output: Output) -> io::Result<(Feed, Recorder)> {
        let args = self.args;
        let (mut keep, mut max_bytes) = self
            .recordings
            .next(args.save.as_ref(), args.out.as_ref())?;
        if args.keep.is_some() || args.max_size.is_some() {
            keep = args.keep.map(|it| Duration::from_secs(60 * it));
            max_bytes = args.max_size.unwrap_or(0);
        }
        let (dir, watched) = (&self.recordings.dir, &args.watched);
        let started = attach::run(AttachRequest {
            collect: watched.collect(keep, max_bytes),
            command: args.command.clone(),
            dir: dir.clone(),
            when: When {
                delay: args.delay,
                duration: args.duration,
                range: args.range.clone(),
            },
            hardware: watched.recorded.hardware == Switch::On,
            counters: watched.counters().unwrap_or_default(),
            python: watched.looks(),
            output,
        })
        .map_err(|error| match error.kind() {
            // The system does not say where.
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => {
                io::Error::new(error.kind(), format!("{}: {error}", dir.display()))
            }
            _ => error,
        })?;
        self.recordings.runs += 1;
        Ok(started)
    }

    fn info(&self) -> SourceInfo {
        let words = self.args.command.iter().enumerate().map(|(i, word)| {
            let text = word.to_string_lossy();
            match Path::new(word).file_name() {
                // The program's folder tells little and takes much room.
                Some(name) if i == 0 => name.to_string_lossy().into_owned(),
                _ => text.into_owned(),
            }
        });
        SourceInfo {
            kind: SourceKind::Traced,
            title: words.collect::<Vec<_>>().join(" "),
            ..SourceInfo::default()
        }
    }
}

/// What the keys of the screen can do with a run.
struct TraceControls {
    recorder: Recorder,
    dir: PathBuf,
    /// Whether the recording stays where it is.
    is_kept: bool,
    name: String,
}

impl tui::Controls for TraceControls {
    fn record(&mut self) -> Result<String, String> {
        self.recorder.toggle()
    }

    fn keep(&mut self) -> Result<String, String> {
        if self.is_kept {
            return Err(format!("it is kept in {} anyway", self.dir.display()));
        }
        let to = (0..1_000)
            .map(|n| super::numbered(Path::new(&self.name), n))
            .find(|path| !path.exists())
            .ok_or_else(|| format!("there are a thousand of {} here", self.name))?;
        if self.recorder.keep(to.clone()) {
            return Ok(format!(
                "the recording so far is being copied to {}",
                to.display()
            ));
        }
        attach::keep(&self.dir, &to)
    }
}

/// The name for a recording of this program that is kept now: "train.py-20261122-142530.cuptop", in UTC.
fn kept_name(title: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let words = title.split_whitespace();
    let mut names = words.map(|word| word.rsplit('/').next().unwrap_or(word));
    let first = names.next().unwrap_or_default();
    // "python train.py" is a recording of train.py.
    let name = match first.starts_with("python") {
        true => names.find(|name| name.ends_with(".py")).unwrap_or(first),
        false => first,
    };
    let name: String = name.chars().filter(|&c| is_plain(c)).take(40).collect();
    let name = name.trim_start_matches(['.', '-']);
    let since = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap_or_default();
    let name = if name.is_empty() { "trace" } else { name };
    format!("{name}-{}.cuptop", stamp(since.as_secs()))
}

/// Seconds since 1970 as "20261122-142530", in UTC.
fn stamp(seconds: u64) -> String {
    let time = DateTime::from_timestamp(seconds as i64, 0).unwrap_or_default();
    time.format("%Y%m%d-%H%M%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_recording_is_named_after_the_program_and_the_time() {
        // From `date -u -d @N +%Y%m%d-%H%M%S`.
        for (seconds, expected) in [
            (0, "19700101-000000"),
            (951_827_696, "20000229-123456"),
            (1_795_357_530, "20261122-142530"),
            (4_107_542_399, "21000228-235959"),
            (4_107_542_400, "21000301-000000"),
            (1_798_761_599, "20261231-235959"),
        ] {
            assert_eq!(stamp(seconds), expected);
        }
        assert!(kept_name("python3 /a/b/train.py --x").starts_with("train.py-20"));
        assert!(kept_name("./a;b").starts_with("ab-") && kept_name("").starts_with("trace-"));
    }
}
