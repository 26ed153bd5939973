//! `--replay` and `.cast`: a complete timeline, played as if it were live.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ratatui::layout::Size;

use super::args::{First, Picture, Replayed, ScreenArgs};
use super::drain::drain_into;
use super::exit::Ending;
use super::handed::Handed;
use super::screen;
use crate::export::{self, Readers, screen::Cast};
use crate::replay::Reel;
use crate::tui::{FileFn, Film, Peaks, Replay, Running, Shown, Wanted};
use activity::feed::{Feed, Outcome, Pause};
use analysis::ranks;
use scenario::plan::Plan;
use trace::{SourceInfo, Trace};

/// How long a cast is played where no speed was asked for.
const USUAL: Duration = Duration::from_secs(12);
/// How long its last screen stands.
const REST: Duration = Duration::from_secs(3);
/// Time between two of its screens.
const FRAME: Duration = Duration::from_millis(50);
/// The longest that is written.
const LONGEST: Duration = Duration::from_secs(600);

/// A complete timeline.
pub(super) struct Played {
    reel: Arc<Reel>,
    source: SourceInfo,
    plan: Option<Arc<Plan>>,
    peaks: Peaks,
    pub(super) outcome: Outcome,
}

impl Played {
    /// Takes in all that a feed sends; progress and notices go to standard error.
    pub(super) fn gather(
        feed: &Feed,
        source: SourceInfo,
        plan: Option<Arc<Plan>>,
        peaks: Peaks,
        mut handed: Handed,
    ) -> Result<Played, Ending> {
        let mut reel = Reel::default();
        let outcome = drain_into(feed, |batch| reel.add(handed.batch(batch)));
        let source = match reel.processes() > 1 {
            true => reel.set(source, ranks::clocks_of),
            false => source,
        };
        let reel = reel.finished();
        if reel.is_empty() {
            return Err(match outcome {
                Outcome::Failed(failure) => failure.into(),
                _ => Ending::input("nothing was recorded that could be played"),
            });
        }
        Ok(Played {
            reel: Arc::new(reel),
            source,
            plan,
            peaks,
            outcome,
        })
    }

    pub(super) fn plan(&self) -> Option<&Arc<Plan>> {
        self.plan.as_ref()
    }

    pub(super) fn peaks(&self) -> Peaks {
        self.peaks
    }

    /// Writes how its screen fills to the file that was asked for.
    pub(super) fn write(
        &self,
        picture: &Picture,
        replayed: Replayed,
        first: &First,
        args: &ScreenArgs,
    ) -> Result<(), Ending> {
        let Some(path) = &picture.screenshot else {
            return Ok(());
        };
        let film = self.film(replayed.replay, picture.size, first, args)?;
        export::to_file(path, Readers::AsUmask, |out| film.write(out)).map_err(Ending::input)
    }

    /// It as a whole.
    pub(super) fn trace(&self) -> Trace {
        self.reel.trace(self.source.clone())
    }

    fn replay(&self, speed: f64) -> Replay {
        Replay {
            speed,
            stretches: self.reel.stretches().to_vec(),
            pause: Pause::default(),
        }
    }

    /// Plays it on the screen, again for each `r`.
    pub(super) fn on_screen(
        &self,
        speed: f64,
        file: FileFn<'_>,
        first: &First,
        args: &ScreenArgs,
    ) -> Result<u8, Ending> {
        screen::open(
            Box::new(|_| {
                let replay = self.replay(speed);
                let feed = self
                    .reel
                    .play(speed, replay.pause.clone(), self.outcome.clone())
                    .map_err(|error| {
                        Ending::machine(format!("cannot play: {error}")).for_screen(None)
                    })?;
                Ok(Running {
                    plan: self.plan.clone(),
                    peaks: self.peaks,
                    replay: Some(replay),
                    ..Running::new(feed, self.source.clone())
                })
            }),
            Some(Wanted::Same),
            file,
            first,
            args,
        )
    }

    /// Makes its screens, to be written as a cast.
    pub(super) fn film(
        &self,
        speed: Option<f64>,
        (width, height): (u16, u16),
        first: &First,
        args: &ScreenArgs,
    ) -> Result<Reeled<'_>, Ending> {
        let size = Size { width, height };
        // What is not there is said before anything is written.
        let shown = Shown {
            plan: self.plan.clone(),
            peaks: self.peaks,
            ..Shown::of(self.trace())
        };
        let last = screen::draw(shown, (width, height), first, args)?;
        let length = self.reel.length() as f64 / 1e9;
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
        let theme = screen::picture_theme(args);
        let plan = self.plan.clone();
        Ok(Reeled {
            played: self,
            film: Film::new(source, plan, self.peaks, replay, theme, size),
            title: last.title,
            first: first.clone(),
            size,
            speed,
            lasts: Duration::from_secs_f64(lasts),
        })
    }
}

/// A number with two digits: 0.0183 as 0.018.
fn round(value: f64) -> f64 {
    format!("{value:.1e}").parse().unwrap_or(value)
}

/// Screens to come.
pub(super) struct Reeled<'a> {
    played: &'a Played,
    film: Film,
    title: String,
    first: First,
    size: Size,
    speed: f64,
    lasts: Duration,
}

impl Reeled<'_> {
    /// Draws and writes them.
    pub(super) fn write(mut self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut cast = Cast::begin(self.size, &self.title, out)?;
        let reel = &self.played.reel;
        let mut head = reel.head();
        let mut at = Duration::ZERO;
        while at < self.lasts {
            let moment = reel.moment(self.speed, at).unwrap_or(i64::MAX);
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
