//! The terminal UI: a pure core ([`app::App`], [`draw`]) in a thin shell ([`shell`]).
//!
//! The core knows no terminal, thread or clock: [`App::take`](app::App::take) takes the feed's messages, and
//! [`App::act`](app::App::act) takes actions, which [`keys`] makes of keys. [`App::draw`](app::App::draw) draws it into
//! a [`Buffer`]. So tests drive it whole, and [`screenshot`] needs no terminal. The shell owns the terminal and the
//! threads:
//!
//! ```text
//!  input thread ──keys, mouse, size──┐
//!  signal thread ──TERM, HUP, INT────┼─► select ─► App ─► at most one frame every 25 ms
//!  file watcher ──the scenario───────┤
//!  analysis threads ──answers────────┤
//!  feed (a source's thread) ─────────┘
//! ```
//!
//! # For callers
//!
//! [`run`] takes a [`Session`]: how to start a run, and what to start first. It blocks until the user
//! leaves and hands back an [`Exit`] from which the exit code is made.

pub mod action;
pub mod app;
pub mod draw;
mod film;
pub mod frame;
pub mod keys;
mod outline;
pub mod shell;
pub mod state;
pub mod sweep;
pub mod theme;
pub mod time_scale;
pub mod view;

use crate::board;
use crate::export::page;
use crate::report::KnownGpus;
use std::path::PathBuf;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};

use activity::feed::{Failure, Feed, Outcome};
use scenario::plan::Plan;
use trace::{SourceInfo, Trace};

pub use app::{Choice, NextRun, Opening, Select};
pub use film::Film;
pub use shell::{end_at_once, has_keyboard, run};
pub use state::other_run::OtherRun;
pub use state::{Replay, StartNotice};
pub use theme::{ColorLevel, Theme};
pub use view::view_named;

/// What [`run`] needs: the doors to the rest of the program.
pub struct Session<'a> {
    /// Starts a run. Called for the first one, for a rerun, and when the scenario's file changed. It
    /// runs on the thread of the screen, so it should return within some 50 ms and leave long work to
    /// the source's thread. The run before has been stopped and joined when it is called.
    pub start: StartFn<'a>,
    /// What to run first; `None` opens the picker.
    pub first: Option<NextRun>,
    /// The lines of the picker.
    pub choices: Vec<Choice>,
    /// What runs on this machine, for the picker.
    pub machine: Option<live::machine::MachineWatch>,
    /// The traces of this folder, for the picker.
    pub board: Option<board::Watch>,
    /// The file of the scenario that runs, for an editor; one that has no file is copied to a new one first.
    pub file: FileFn<'a>,
    /// A name for the next picture of the screen.
    pub picture: fn() -> String,
    /// Saves the screen under a name and says what was written ("wrote cuptop-1.svg and cuptop-1.txt") or why not.
    pub save: SaveFn<'a>,
    pub theme: Theme,
    /// What the first run shows: its view at once, the rest when it is complete.
    pub opening: Opening,
}

/// See [`Session::start`].
pub type StartFn<'a> = Box<dyn FnMut(&NextRun) -> Result<Running, StartError> + 'a>;
/// See [`Session::file`].
pub type FileFn<'a> = Box<dyn FnMut() -> Result<PathBuf, String> + 'a>;
/// See [`Session::save`].
pub type SaveFn<'a> = Box<dyn FnMut(&Buffer, &str) -> Result<String, String> + 'a>;

pub struct Running {
    /// Its messages. Dropping it stops the source.
    pub feed: Feed,
    pub source: SourceInfo,
    /// The plan, when a scenario runs.
    pub plan: Option<Arc<Plan>>,
    /// For "% of peak".
    pub gpus: KnownGpus,
    /// What was noticed before it began.
    pub warnings: Vec<StartNotice>,
    /// The scenario's file: a change of its content runs it again, and `e` edits it.
    pub file: Option<PathBuf>,
    /// Bytes that the timeline may take before single records of its oldest stretch are let go; `None`
    /// for no limit.
    pub memory: Option<usize>,
    /// What keys can do with a program that is being traced.
    pub controls: Option<Box<dyn Controls>>,
    /// How it is played, when it was complete before it began.
    pub replay: Option<Replay>,
    /// What it is compared with, when it is one of two.
    pub beside: Option<Arc<OtherRun>>,
}

impl Running {
    /// A run of which nothing else is known.
    pub fn new(feed: Feed, source: SourceInfo) -> Running {
        Running {
            feed,
            source,
            plan: None,
            gpus: KnownGpus::default(),
            warnings: Vec::new(),
            file: None,
            memory: None,
            controls: None,
            replay: None,
            beside: None,
        }
    }
}

/// What keys can do with a program that is being traced. Each says what was done, or why not, in a sentence.
pub trait Controls {
    /// Switches recording on or off.
    ///
    /// # Errors
    /// When it cannot be.
    fn record(&mut self) -> Result<String, String>;
    /// Keeps the recording.
    ///
    /// # Errors
    /// When it cannot be.
    fn keep(&mut self) -> Result<String, String>;
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", failure.message)]
pub struct StartError {
    /// What went wrong, whose fault it is, and what would help. The message is shown line by line as
    /// it is: rendered diagnostics without colours.
    pub failure: Failure,
    /// Whether the message is laid out already and stands for itself after the screen is left.
    pub is_rendered: bool,
    /// The file whose change is worth another try.
    pub file: Option<PathBuf>,
    /// The process that was not entered, as it stands still.
    pub still: Option<u32>,
}

#[derive(Debug, Default)]
pub struct Exit {
    /// How the last run that started ended, when it did before the user left.
    pub outcome: Option<Outcome>,
    /// The last start's error, when no run was ever started.
    pub error: Option<StartError>,
    /// The signal that ended the session, when one did.
    pub signal: Option<i32>,
    /// Two traces that are to be shown above each other, when the user left for that.
    pub compare: Option<[PathBuf; 2]>,
}

/// A complete timeline, to be drawn.
#[derive(Default)]
pub struct StillTimeline {
    pub trace: Trace,
    /// The plan, when it is a scenario's.
    pub plan: Option<Arc<Plan>>,
    /// For "% of peak".
    pub gpus: KnownGpus,
    pub beside: Option<Arc<OtherRun>>,
}

impl StillTimeline {
    /// One of which nothing else is known.
    pub fn of(trace: Trace) -> StillTimeline {
        StillTimeline {
            trace,
            ..StillTimeline::default()
        }
    }
}

/// The screen of a complete timeline, drawn without a terminal. It has the median pass of the variant that it opens on,
/// or the whole of it, and of that what `opening` asks for.
///
/// # Errors
/// What was asked for and is not there, in a sentence.
pub fn screenshot(
    shown: StillTimeline,
    theme: &Theme,
    size: Size,
    opening: &Opening,
) -> Result<Buffer, String> {
    let mut app = opened(shown, size, opening)?;
    Ok(render(&mut app, theme))
}

/// The same, with the whole timeline for a page.
///
/// # Errors
/// What was asked for and is not there, in a sentence.
pub fn page(
    shown: StillTimeline,
    theme: &Theme,
    size: Size,
    opening: &Opening,
) -> Result<(Buffer, page::Timeline), String> {
    let mut app = opened(shown, size, opening)?;
    let picture = render(&mut app, theme);
    Ok((picture, outline::collect(&app)))
}

fn opened(shown: StillTimeline, size: Size, opening: &Opening) -> Result<app::App, String> {
    let mut app = app::App::of_trace(shown.trace, shown.plan, shown.gpus);
    app.state.model.run.beside = shown.beside;
    app.state.size = size;
    app.open_at(opening)?;
    Ok(app)
}

/// The app's screen in a buffer of its own.
pub fn render(app: &mut app::App, theme: &Theme) -> Buffer {
    let size = app.state.size;
    let mut buf = Buffer::empty(Rect::new(0, 0, size.width, size.height));
    app.prepare();
    app.draw(theme, &mut buf);
    buf
}

#[cfg(test)]
mod tests;
#[cfg(test)]
use tests::fixture;
