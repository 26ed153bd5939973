//! What all views look at, in three owners with one direction: what is known, what of it is looked at, what of that is
//! drawn.
//!
//! ```text
//!  Model  the run, and what was found out about it ─┐ Focus asks, Rows read
//!  Focus  scope and window, selection, marks, search ├─► Rows  the rows of the timeline, and which of all they are
//!  what is on screen goes back as a value, `OnScreen`: what is known is asked for that
//! ```

pub mod analyst;
pub mod answers;
pub mod camera;
pub mod focus;
pub mod idle;
pub mod job;
mod journal;
pub mod links;
mod longest;
pub mod marks;
mod measuring;
mod messages;
pub mod model;
pub mod nest;
pub mod other_run;
pub mod prediction;
pub mod prompt;
pub mod pulse;
pub mod rounds;
pub mod row;
pub mod rows;
mod run;
pub mod scope;
pub mod search;
pub mod selection;
mod source;
pub mod step_list;
mod steps;
pub mod trail;
pub mod troubles;
pub mod viewport;
mod why;

use std::path::PathBuf;

use ratatui::layout::Size;

use activity::feed::Outcome;
use activity::{Ns, Span};
use answers::Answer;
use findings::Finding;
use focus::Focus;
pub use journal::{Journal, LineFrom, LineKind};
pub use messages::{ErrorPanel, Messages, NOT_ATTACHED, StartNotice};
use model::Model;
pub use model::Target;
use prompt::Prompt;
pub use row::{Row, RowKind};
use rows::Rows;
pub use run::{Replay, Run};
pub use scope::Scope;
pub use selection::{Item, Selection};
pub use source::{SourceLine, has_lines};
use trace::LaneId;

/// What to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NextRun {
    /// What the session was opened with, or what ran last.
    #[default]
    Same,
    /// A bundled scenario.
    Scenario(String),
    /// The process with this number, which runs already.
    Process(u32),
    /// The same, also where it stands still.
    Enter(u32),
    /// Nothing: how the job of a process stands, or all that use CUDA here.
    Look(Option<u32>),
    /// Nothing: a trace is shown.
    Open(PathBuf),
    /// Nothing: the screen ends, and two traces are shown above each other.
    Compare([PathBuf; 2]),
}

/// A line of the picker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// What to run.
    pub name: String,
    pub title: String,
    pub about: String,
    pub look_for: String,
    pub variants: String,
}

/// How the run stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Nothing was started: the picker.
    #[default]
    Idle,
    /// A source is at work.
    Running,
    Ended(Outcome),
}

/// What the view on screen shows of what takes longer to find out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViewNeeds {
    /// [`Model::answers`].
    pub answers: bool,
    /// Who is late, of [`Model::job`].
    pub ranks: bool,
    /// The timeline itself.
    pub timeline: bool,
}

/// The state that views share. What only one of them needs is its own.
#[derive(Debug, Default)]
pub struct State {
    /// What is known.
    pub model: Model,
    /// What of it is looked at.
    pub focus: Focus,
    /// What of that is drawn on the timeline.
    pub rows: Rows,
    pub messages: Messages,
    /// The line that is being typed.
    pub prompt: Option<Prompt>,
    pub size: Size,
    /// Whether the screen is a picture, without words for who sits before it.
    pub is_bare: bool,
}

impl State {
    /// Brings all of it up to date, in one direction. The clocks come first: times are told by them.
    pub fn prepare(&mut self, needs: ViewNeeds) {
        self.align(needs);
        self.model.find_passes();
        self.focus.camera.update(&self.model.run);
        let on_screen = self.focus.camera.on_screen();
        self.model.ask(on_screen, needs, &self.messages);
        if self.open_on_step() {
            let on_screen = self.focus.camera.on_screen();
            self.model.ask(on_screen, needs, &self.messages);
        }
        self.focus.ask(&self.model);
        self.renew_rows();
    }

    /// Puts the timeline on the clock of all ranks when that is told. What is on screen and selected stays.
    fn align(&mut self, needs: ViewNeeds) {
        self.model.ask_ranks(needs);
        let Some(clocks) = self.model.job.take_clocks(&self.model.run) else {
            return;
        };
        let own = self.focus.own_times(&self.model.run.trace);
        if self.model.set_clocks(&clocks) {
            self.focus.retime(&own, &self.model.run);
        }
        self.model.ask_ranks(needs);
    }

    /// Makes the rows for what is looked at, and finds on them what is selected.
    pub(super) fn renew_rows(&mut self) {
        if self.rows.update(&self.model.run, &self.focus) {
            let trace = &self.model.run.trace;
            self.focus.selection.settle(trace, &self.rows.list);
        }
    }

    /// The timeline has this many lines for its rows.
    pub fn set_room(&mut self, room: usize) {
        self.rows.room = room;
        self.renew_rows();
    }

    /// Says a word on the last action, until the next one.
    pub fn say(&mut self, text: impl Into<String>) {
        (self.messages.flash, self.messages.is_notice) = (Some(text.into()), false);
    }

    /// Puts a warning into the log.
    pub fn note(&mut self, text: String) {
        self.messages.log.push(LineKind::Warning, &text);
    }

    /// Another run takes the place of this one.
    pub fn replace(&mut self, run: Run) {
        self.model.run = run;
        self.focus.begin();
        self.rows.begin();
        self.messages.begin();
    }

    /// Puts the whole run or a pass on screen.
    pub fn show(&mut self, scope: Scope) {
        self.focus.camera.show(&self.model.run, scope);
        self.focus.selection = Selection::default();
        self.renew_rows();
    }

    /// Selects a record of the selected row's lane.
    pub fn select_record(&mut self, lane: LaneId, record: usize) {
        let trace = &self.model.run.trace;
        self.focus.selection.select_record(trace, lane, record);
    }

    /// Selects the row so many further.
    pub fn step_row(&mut self, by: i32) {
        let trace = &self.model.run.trace;
        self.focus.selection.step_row(trace, &self.rows.list, by);
    }

    pub(super) fn toggle_follow(&mut self) {
        let camera = &mut self.focus.camera;
        camera.is_following = !camera.is_following;
        camera.paused_at = None;
    }

    /// Shows more or fewer counters of the hardware.
    pub(super) fn step_counters(&mut self) {
        self.rows.counters = self.rows.counters.next();
        self.say(self.rows.counters.words());
    }

    /// Opens the prediction of one of the findings about what is on screen, or says why there is none.
    pub fn predict(&mut self, which: impl FnOnce(&[Finding]) -> Option<usize>) {
        let (run, scope) = (&self.model.run, self.scope());
        let answer = self.model.answers.get(run, scope);
        let at = answer.and_then(|answer| which(&answer.findings));
        let finding = answer.zip(at).and_then(|(it, at)| it.findings.get(at));
        let step = self.step_in_view().zip(self.steps());
        let step = step.map(|(at, steps)| steps.all[at].span);
        let within = step.unwrap_or_else(|| self.figures_span());
        let opened = finding.map(
            |it| match step.and_then(|_| prediction::why_not_in_step(it)) {
                Some(reason) => Err(reason.to_owned()),
                None => self.focus.prediction.open(run, scope, it, within),
            },
        );
        let several = answer.is_some_and(|it| it.findings.len() > 1);
        let headlines = answer.and_then(|it| prediction::told(it.verdicts.first()?, &it.findings));
        // What is drawn for something else than the headline's says so.
        let other = answer.zip(headlines).filter(|it| Some(it.1) != at);
        let in_step = step.is_some();
        let why =
            other.and_then(|(it, at)| prediction::says_why_not(at, it.findings.get(at)?, in_step));
        if let Some(Err(reason)) = opened {
            self.say(reason);
        } else if let Some(at) = at.filter(|_| several) {
            self.focus.prediction.number(at + 1);
            if let Some(why) = why {
                self.say(why);
            }
        }
    }

    /// Holds the picture still, of a program with steps on the typical one; or lets it go on.
    pub(super) fn toggle_pause(&mut self) {
        let typical = self.steps().map(|it| it.typical);
        let camera = &self.focus.camera;
        if let Some(typical) = typical.filter(|_| camera.is_following && !camera.is_paused()) {
            self.show_step(typical);
            self.focus.camera.is_following = true;
        }
        let paused_at = &mut self.focus.camera.paused_at;
        *paused_at = match paused_at {
            Some(_) => None,
            None => Some(self.model.run.trace.health().received),
        };
    }
}

/// What is looked at, as views ask for it.
impl State {
    /// The whole run or a pass.
    pub fn scope(&self) -> Scope {
        self.focus.camera.scope
    }

    /// The stretch that belongs to it.
    pub fn scope_span(&self) -> Option<Span> {
        self.model.run.scope_span(self.scope())
    }

    /// First start to last end of the operations in it.
    pub fn operations(&self) -> Option<Span> {
        self.model.run.operations(self.scope())
    }

    /// The stretch that figures are reckoned over: the operations in scope, as far as they are on screen.
    pub fn figures_span(&self) -> Span {
        let operations = self.operations().unwrap_or_default();
        operations.intersect(self.focus.camera.viewport.window)
    }

    /// What the time axis counts from: the step on screen, else the first operation in scope.
    pub fn zero(&self) -> Ns {
        let step = self.step_in_view().zip(self.steps());
        step.map_or_else(|| self.first(), |(at, steps)| steps.all[at].span.start)
    }

    /// The first operation in scope.
    pub fn first(&self) -> Ns {
        let all = self.operations().or(self.scope_span());
        all.unwrap_or(self.focus.camera.viewport.window).start
    }

    /// From a device's first operation in scope to its last one: what lies around it is no idle time.
    pub fn used(&self, device: usize) -> Span {
        let run = &self.model.run;
        let used = camera::used(&run.trace.devices()[device].usage, self.operations());
        let begins = run.begins.filter(|_| self.scope() == Scope::Whole);
        begins.map_or(used, |begins| used.hull(Span::at(begins)))
    }

    /// The variant on screen, when one pass is.
    pub fn variant(&self) -> Option<usize> {
        self.model.run.variant(self.scope())
    }

    /// What is known of it: what bounds it, and what could be better.
    pub fn answer(&self) -> Option<&Answer> {
        self.model.answers.get(&self.model.run, self.scope())
    }
}
