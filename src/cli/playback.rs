//! `--replay` and `.cast`: plays a complete timeline as if it were live.

use crate::report::KnownGpus;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ratatui::layout::Size;

use super::args::{First, PictureArgs, ReplayOptions};
use super::collect::collect_into;
use super::exit::Ending;
use super::redaction::Redaction;
use super::screen;
use crate::export::screen::Cast;
use crate::export::{self, Readers};
use crate::replay::ReplayBuffer;
use crate::tui::{FileFn, Film, Replay, Running, StillTimeline};
use activity::feed::{Feed, Outcome, Pause};
use scenario::plan::Plan;
use trace::{SourceInfo, Trace};

/// How long a cast lasts by default.
const USUAL: Duration = Duration::from_secs(12);
/// How long its last screen stays.
const REST: Duration = Duration::from_secs(3);
/// Time between two of its screens.
const FRAME: Duration = Duration::from_millis(90);
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
            true => buffer.align(source, jobs::clocks_of),
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
        picture: &PictureArgs,
        replayed: ReplayOptions,
        first: &First,
    ) -> Result<(), Ending> {
        let Some(path) = &picture.screenshot else {
            return Ok(());
        };
        let film = self.film(replayed.replay, picture.size, first)?;
        export::to_file(path, Readers::AsUmask, film).map_err(Ending::input)
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
                    .map_err(|error| Ending::machine(format!("cannot play: {error}")))?;
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

    /// What writes its screens as a cast.
    pub(super) fn film(
        &self,
        speed: Option<f64>,
        (width, height): (u16, u16),
        first: &First,
    ) -> Result<impl FnOnce(&mut dyn io::Write) -> io::Result<()>, Ending> {
        let size = Size { width, height };
        // The user learns what is missing before anything is written.
        let shown = StillTimeline {
            plan: self.plan.clone(),
            gpus: self.gpus.clone(),
            ..StillTimeline::of(self.trace())
        };
        let title = screen::draw(shown, (width, height), first)?.title;
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
        let lasts = Duration::from_secs_f64(lasts);
        let mut source = self.source.clone();
        screen::entitle(&mut source, first);
        let (plan, gpus) = (self.plan.clone(), self.gpus.clone());
        let (replay, theme) = (self.replay(speed), screen::picture_theme());
        let mut film = Film::new(source, plan, gpus, replay, theme, size);
        let opening = first.opening.clone();
        Ok(move |out: &mut dyn io::Write| {
            let mut cast = Cast::begin(size, &title, out)?;
            let mut head = self.buffer.cursor();
            let mut at = Duration::ZERO;
            while at < lasts {
                let moment = self.buffer.moment(speed, at).unwrap_or(i64::MAX);
                cast.frame(at, &film.frame(at, head.take_until(moment)))?;
                at += FRAME;
            }
            let _ = film.frame(lasts, head.take_until(i64::MAX));
            let last = film.end(self.outcome.clone(), &opening);
            cast.frame(lasts + REST, &last.map_err(io::Error::other)?)?;
            cast.end(lasts + 2 * REST)
        })
    }
}

/// Rounds a number to two digits: 0.0183 to 0.018.
fn round(value: f64) -> f64 {
    format!("{value:.1e}").parse().unwrap_or(value)
}
