//! `--replay` and `.cast`: plays a complete timeline as if it were live.

use crate::report::KnownGpus;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ratatui::layout::Size;

use super::args::{First, Picture, ReplayOptions};
use super::collect::collect_into;
use super::exit::Ending;
use super::redaction::Redaction;
use super::screen;
use crate::export::{self, Readers, screen::Cast};
use crate::replay::ReplayBuffer;
use crate::tui::{FileFn, Film, Replay, Running, StillTimeline};
use activity::feed::{Feed, Outcome, Pause};
use analysis::ranks;
use scenario::plan::Plan;
use trace::{SourceInfo, Trace};

/// How long a cast lasts by default.
const USUAL: Duration = Duration::from_secs(12);
/// How long its last screen stays.
const REST: Duration = Duration::from_secs(3);
/// Time between two of its screens.
const FRAME: Duration = Duration::from_millis(50);
/// The longest cast that it writes.
const LONGEST: Duration = Duration::from_secs(600);

/// A complete timeline, ready to be played.
pub(super) struct Playback {
    buffer: Arc<ReplayBuffer>,
    source: SourceInfo,
    pub(super) plan: Option<Arc<Plan>>,
    pub(super) gpus: KnownGpus,
    pub(super) outcome: Outcome,
}

impl Playback {
    /// Collects all that a feed sends; progress and notices go to standard error.
    pub(super) fn gather(
        feed: &Feed,
        source: SourceInfo,
        plan: Option<Arc<Plan>>,
        gpus: KnownGpus,
        mut redaction: Redaction,
    ) -> Result<Playback, Ending> {
        let mut buffer = ReplayBuffer::default();
        let outcome = collect_into(feed, |batch| buffer.add(redaction.apply(batch)));
        let source = match buffer.processes() > 1 {
            true => buffer.align(source, ranks::clocks_of),
            false => source,
        };
        let buffer = buffer.finish();
        if buffer.is_empty() {
            return Err(match outcome {
                Outcome::Failed(failure) => failure.into(),
                _ => Ending::input("nothing was recorded that could be played"),
            });
        }
        Ok(Playback {
            buffer: Arc::new(buffer),
            source,
            plan,
            gpus,
            outcome,
        })
    }

    /// Writes a picture or a cast of its screens to the file that the user named.
    pub(super) fn write(
        &self,
        picture: &Picture,
        replayed: ReplayOptions,
        first: &First,
    ) -> Result<(), Ending> {
        let Some(path) = &picture.screenshot else {
            return Ok(());
        };
        let film = self.film(replayed.replay, picture.size, first)?;
        export::to_file(path, Readers::AsUmask, |out| film.write(out)).map_err(Ending::input)
    }

    /// The timeline as a whole.
    pub(super) fn trace(&self) -> Trace {
        self.buffer.trace(self.source.clone())
    }

    fn replay(&self, speed: f64) -> Replay {
        Replay {
            speed,
            stretches: self.buffer.stretches.clone(),
            pause: Pause::default(),
        }
    }

    /// Plays it on the screen, again for each `r`.
    pub(super) fn on_screen(
        &self,
        speed: f64,
        file: FileFn<'_>,
        first: &First,
    ) -> Result<u8, Ending> {
        screen::open(
            Box::new(|_| {
                let replay = self.replay(speed);
                let feed = self
                    .buffer
                    .play(speed, replay.pause.clone(), self.outcome.clone())
                    .map_err(|error| {
                        Ending::machine(format!("cannot play: {error}")).for_screen(None)
                    })?;
                Ok(Running {
                    plan: self.plan.clone(),
                    gpus: self.gpus.clone(),
                    replay: Some(replay),
                    ..Running::new(feed, self.source.clone())
                })
            }),
            file,
            first,
        )
    }

    /// Makes its screens for a cast.
    pub(super) fn film(
        &self,
        speed: Option<f64>,
        (width, height): (u16, u16),
        first: &First,
    ) -> Result<CastScreens<'_>, Ending> {
        let size = Size { width, height };
        // The user learns what is missing before anything is written.
        let shown = StillTimeline {
            plan: self.plan.clone(),
            gpus: self.gpus.clone(),
            ..StillTimeline::of(self.trace())
        };
        let last = screen::draw(shown, (width, height), first)?;
        let length = self.buffer.length() as f64 / 1e9;
        let usual = round(length / USUAL.as_secs_f64());
        let speed = speed.unwrap_or(usual).max(1e-9);
        let lasts = length / speed;
        if lasts > LONGEST.as_secs_f64() {
            let fits = length / LONGEST.as_secs_f64();
            let message =
                format!("at {speed}x it would last {lasts:.0} s, and casts last up to 600 s");
            return Err(Ending::input(message).help(format!("--replay {fits:.1e}x fits")));
        }
        let mut source = self.source.clone();
        screen::entitle(&mut source, first);
        let replay = self.replay(speed);
        let theme = screen::picture_theme();
        let plan = self.plan.clone();
        Ok(CastScreens {
            played: self,
            film: Film::new(source, plan, self.gpus.clone(), replay, theme, size),
            title: last.title,
            first: first.clone(),
            size,
            speed,
            lasts: Duration::from_secs_f64(lasts),
        })
    }
}

/// Rounds a number to two digits: 0.0183 to 0.018.
fn round(value: f64) -> f64 {
    format!("{value:.1e}").parse().unwrap_or(value)
}

/// The screens of a cast.
pub(super) struct CastScreens<'a> {
    played: &'a Playback,
    film: Film,
    title: String,
    first: First,
    size: Size,
    speed: f64,
    lasts: Duration,
}

impl CastScreens<'_> {
    /// Draws and writes them.
    pub(super) fn write(mut self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut cast = Cast::begin(self.size, &self.title, out)?;
        let buffer = &self.played.buffer;
        let mut head = buffer.cursor();
        let mut at = Duration::ZERO;
        while at < self.lasts {
            let moment = buffer.moment(self.speed, at).unwrap_or(i64::MAX);
            let batches = head.until(moment);
            cast.frame(at, &self.film.frame(at, batches))?;
            at += FRAME;
        }
        let batches = head.until(i64::MAX);
        let _ = self.film.frame(self.lasts, batches);
        let outcome = self.played.outcome.clone();
        let last = self.film.end(outcome, &self.first.opening());
        cast.frame(self.lasts, &last.map_err(io::Error::other)?)?;
        cast.end(self.lasts + REST)
    }
}
