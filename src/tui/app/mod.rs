//! The state of the screen: pure, without I/O or a clock of its own.
//!
//! ```text
//!  App ─┬─ State ─┬─ Model      the run (timeline, plan, passes, how it stands) and what was found out about it
//!       │         ├─ Focus      whole run or pass and which stretch of it, selection, marks, search
//!       │         ├─ Rows       the rows of the timeline
//!       │         └─ Messages   log, output, error, the word on the last action
//!       ├─ Views                one component each, with its own state
//!       └─ Frame                header, tabs, details, footer as they will be drawn
//! ```
//!
//! The shell hands it messages of the feed ([`App::take`]), actions ([`App::act`]) and the time
//! ([`App::tick`]). Before a frame, [`App::prepare`] makes everything that it shows; drawing only
//! puts that into cells. What the app wants done outside itself comes back as an [`Effect`].

mod act;
mod opening;
mod places;
mod prompt;
mod take;

use crate::report::KnownGpus;
use std::sync::Arc;
use std::time::Duration;

use ratatui::buffer::Buffer;

use super::draw::layout::Layout;
use super::frame::Frame;
use super::frame::overlay::Overlay;
use super::theme::Theme;
use super::view::Views;
use crate::tui::state::SourceLine;
pub use crate::tui::state::{Choice, ErrorPanel, LineKind, NextRun, Run, Scope, State, Status};
use activity::feed::Outcome;
pub use opening::{Opening, Select};
use scenario::plan::Plan;
use trace::{SourceInfo, Trace};

/// What the app wants the shell to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Quit,
    /// Run again what ran, or what the picker chose.
    Start(NextRun),
    Stop,
    /// End the run: the picker is on screen again.
    Leave,
    /// Offer a name for a picture of the screen.
    Name,
    /// Save the screen under a name.
    Save(String),
    Copy(String),
    Record,
    Keep,
    /// Ask NCCL's service of the job that is looked at.
    Ask,
    /// The scenario, or the line of a program.
    Edit(Option<SourceLine>),
}

#[derive(Debug)]
pub struct App {
    /// What all views look at.
    pub state: State,
    pub views: Views,
    /// What lies on top.
    pub overlay: Overlay,
    /// What is shown when the first run is complete.
    pub opening: Opening,
    pub(super) frame: Frame,
    /// For how long a replay was held.
    held: Duration,
    /// That the run is one again, which is to be told with its figures.
    tells_rerun: bool,
}

impl App {
    /// An app that shows the picker.
    pub fn new(choices: Vec<Choice>) -> Self {
        let mut state = State::default();
        state.focus.camera.is_following = true;
        App {
            state,
            views: Views::new(choices),
            overlay: Overlay::None,
            opening: Opening::default(),
            frame: Frame::default(),
            held: Duration::ZERO,
            tells_rerun: false,
        }
    }

    /// An app that shows a timeline that is complete.
    pub fn of_trace(trace: Trace, plan: Option<Arc<Plan>>, gpus: KnownGpus) -> Self {
        let mut app = App::new(Vec::new());
        let status = Status::Ended(Outcome::Complete);
        app.state.replace(Run::new(trace, plan, gpus, status));
        app.prepare();
        app
    }

    /// A new run begins. The figures of the one before stay for comparison.
    pub fn start(&mut self, source: SourceInfo, plan: Option<Arc<Plan>>, gpus: KnownGpus) {
        self.held = Duration::ZERO;
        let run = self.state.model.run.next(source, plan, gpus);
        self.tells_rerun = !run.previous.is_empty();
        self.state.replace(run);
        if let Some(view) = self.opening.view {
            self.views.show(view, &self.state);
        }
    }

    /// Time goes on.
    pub fn tick(&mut self, elapsed: Duration) {
        let (run, is_held) = (
            &mut self.state.model.run,
            self.state.focus.camera.is_paused(),
        );
        if is_held && run.replay.is_some() {
            // Nothing is played meanwhile.
            self.held = elapsed.saturating_sub(run.elapsed);
        } else if run.is_running() {
            run.elapsed = elapsed.saturating_sub(self.held);
        }
    }

    /// Makes everything that a frame shows. Without a change there is little to do.
    pub fn prepare(&mut self) {
        self.state.prepare(self.views.shown());
        self.say_rerun();
        self.go_to_first();
        let layout = Layout::of(&self.state);
        let room = usize::from(layout.rows.height) - layout.below;
        self.state.set_room(room);
        self.views.prepare(&self.state);
        let here = self.context();
        self.frame
            .prepare(&self.state, &self.views, here, self.overlay);
    }

    /// Draws what was prepared into a buffer of the state's size.
    pub fn draw(&self, theme: &Theme, buf: &mut Buffer) {
        self.frame
            .draw(&self.state, &self.views, self.overlay, theme, buf);
        theme.spell(buf);
    }

    /// Whether the picker is what is on screen.
    pub fn is_picking(&self) -> bool {
        self.state.model.run.is_none()
    }
}

#[cfg(test)]
mod tests;
