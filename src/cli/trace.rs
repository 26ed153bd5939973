//! `cuptop trace -- CMD`: traces any CUDA program.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::args::{ReplayOptions, Switch, Trace as TraceArgs};
use super::collect::collect;
use super::exit::{self, Ending};
use super::screen;
use crate::report::Report;
use crate::tui::{self, Running, StillTimeline};
use activity::Span;
use activity::feed::{Feed, Outcome};
use analysis::ranks;
use live::attach::{self, AttachRequest, Output, Recorder, When};
use recording::{folder_in, scratch};
use trace::{SourceInfo, SourceKind};

/// Traces a program.
pub(super) fn trace(args: &TraceArgs) -> Result<u8, Ending> {
    let shot = screen::shot(&args.picture, ReplayOptions::default())?;
    if shot == Some(screen::Shot::Cast) {
        return Err(
            Ending::input("a program is traced once: keep it with --save DIR")
                .help("then `cuptop export DIR -o FILE.cast` writes how its screen fills"),
        );
    }
    let mut program = TracedProgram {
        args,
        scratch: None,
        runs: 0,
        dir: PathBuf::new(),
    };
    if args.headless || shot.is_some() {
        return headless(&mut program);
    }
    screen::open(
        Box::new(move |_| {
            let (feed, recorder) = program.start(Output::Capture).map_err(|error| {
                Ending::machine(format!("cannot trace: {error}")).for_screen(None)
            })?;
            Ok(Running {
                memory: Some(super::rows_memory(program.args.watched.memory)),
                controls: Some(Box::new(program.controls(recorder))),
                gpus: super::profile::kept(),
                ..Running::new(feed, program.info())
            })
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
    ranks::align_clocks(&mut trace);
    if program.args.headless {
        let report = Report::new(&trace, None, super::profile::kept());
        super::print_beside(&report, &program.args.printed)?;
    }
    let TraceArgs { picture, first, .. } = program.args;
    screen::take_picture(StillTimeline::of(trace), picture, first)?;
    match outcome {
        Outcome::Complete => Ok(exit::FINE),
        Outcome::Stopped => Err(Ending::input("the program was stopped before its end")),
        Outcome::Failed(failure) => Err(failure.into()),
    }
}

/// How much it keeps of a recording that the user did not ask for, as far as its size allows: K can still save that.
pub(super) const SCRATCH_KEEP: Duration = Duration::from_secs(30 * 60);

/// The program, and how to start it again and again.
struct TracedProgram<'a> {
    args: &'a TraceArgs,
    /// The folder of a recording that the user did not ask for. The run before has ended when it is replaced.
    scratch: Option<scratch::Scratch>,
    runs: usize,
    /// The folder of the present recording.
    dir: PathBuf,
}

impl TracedProgram<'_> {
    fn start(&mut self, output: Output) -> io::Result<(Feed, Recorder)> {
        let dir = match (&self.args.save, &self.args.out) {
            (Some(dir), _) => super::numbered(dir, self.runs),
            (None, Some(shared)) => folder_in(shared)?,
            (None, None) => self.scratch.insert(scratch::directory()?).path().to_owned(),
        };
        self.dir.clone_from(&dir);
        let is_kept = self.is_kept();
        let is_limited = self.args.keep.is_some() || self.args.max_size.is_some();
        let (keep, max_bytes) = match is_kept {
            false if !is_limited => (Some(SCRATCH_KEEP), scratch::limit(&dir)),
            _ => {
                let keep = self.args.keep.map(|it| Duration::from_secs(60 * it));
                (keep, self.args.max_size.unwrap_or(0))
            }
        };
        let (at, watched) = (dir.clone(), &self.args.watched);
        let started = attach::run(AttachRequest {
            collect: watched.collect(keep, max_bytes),
            command: self.args.command.clone(),
            dir,
            when: When {
                delay: self.args.delay,
                duration: self.args.duration,
                range: self.args.range.clone(),
            },
            hardware: watched.recorded.hardware == Switch::On,
            counters: watched.recorded.counters,
            python: watched.looks(),
            output,
        })
        .map_err(|error| match error.kind() {
            // The system does not say where.
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => {
                io::Error::new(error.kind(), format!("{}: {error}", at.display()))
            }
            _ => error,
        })?;
        self.runs += 1;
        Ok(started)
    }

    fn controls(&self, recorder: Recorder) -> Controls {
        Controls::new(recorder, &self.dir, self.is_kept(), &self.info().title)
    }

    /// Whether the recording stays where it is written.
    fn is_kept(&self) -> bool {
        self.args.save.is_some() || self.args.out.is_some()
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
            path: None,
            simulated: false,
            clocks: self.args.clock.clocks(),
        }
    }
}

/// What the keys of the screen can do with a run.
pub(super) struct Controls {
    recorder: Recorder,
    dir: PathBuf,
    /// Whether the recording stays where it is.
    is_kept: bool,
    name: String,
}

impl Controls {
    /// For a recording in `dir`. One that is kept from now on is named after the program's `title`.
    pub(super) fn new(recorder: Recorder, dir: &Path, is_kept: bool, title: &str) -> Controls {
        Controls {
            recorder,
            dir: dir.to_owned(),
            is_kept,
            name: kept_name(title),
        }
    }
}

impl tui::Controls for Controls {
    fn record(&mut self) -> Result<String, String> {
        self.recorder.toggle()
    }

    fn keep(&mut self, window: Option<Span>) -> Result<String, String> {
        if self.is_kept && window.is_none() {
            return Err(format!("it is kept in {} anyway", self.dir.display()));
        }
        let to = (0..1_000)
            .map(|n| super::numbered(Path::new(&self.name), n))
            .find(|path| !path.exists())
            .ok_or_else(|| format!("there are a thousand of {} here", self.name))?;
        if self.recorder.keep(to.clone(), window) {
            let what = match window {
                None => "the recording so far",
                Some(_) => "the window",
            };
            return Ok(format!("{what} is being copied to {}", to.display()));
        }
        attach::keep(&self.dir, &to, window)
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
    let time = chrono::DateTime::from_timestamp(seconds.cast_signed(), 0).unwrap_or_default();
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
        ] {
            assert_eq!(stamp(seconds), expected);
        }
        assert!(kept_name("python3 /a/b/train.py --x").starts_with("train.py-20"));
        assert!(kept_name("./a;b").starts_with("ab-") && kept_name("").starts_with("trace-"));
    }
}
