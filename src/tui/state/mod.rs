//! What all views look at: the run, what of it is on screen, what is selected, and the messages.

pub mod analyst;
pub mod answers;
pub mod camera;
pub mod counters;
pub mod idle;
mod idle_totals;
pub mod job;
mod journal;
pub mod lanes;
pub mod links;
pub mod marks;
mod measuring;
mod messages;
pub mod nest;
pub mod other_run;
mod predicted_rows;
pub mod prompt;
pub mod pulse;
mod quiet;
pub mod rows;
mod run;
pub mod search;
pub mod selection;
mod steps;
pub mod trail;
pub mod troubles;
pub mod viewport;

use ratatui::layout::Size;

use crate::tui::state::analyst::Analyst;
use crate::tui::state::answers::Answers;
use crate::tui::state::idle::Idle;
use crate::tui::state::job::Job;
use crate::tui::state::troubles::Trouble;
use activity::Span;
use activity::feed::Outcome;
use analysis::memory::MemoryUse;
pub use camera::{Camera, Scope};
use counters::Counters;
pub use journal::{Journal, LineKind};
use lanes::Lanes;
use live::machine::{GpuLoad, Machine, Process};
use marks::Marks;
use measuring::Measuring;
pub use messages::{ErrorPanel, Messages, NOT_ATTACHED, StartNotice};
use predicted_rows::PredictedRows;
use prompt::Prompt;
use pulse::Pulse;
use rows::{Row, RowKind};
pub use run::{Replay, Run};
use search::Search;
use selection::Selection;
use trace::{Clock, Trace};
use trail::Trail;

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
}

/// A process that may be attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The GPU that it is on, by NVML's number.
    pub gpu: u32,
    pub pid: u32,
    /// When it began: a later process may have its number.
    pub began: Option<u64>,
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
    /// [`State::answers`].
    pub answers: bool,
    /// Who is late, of [`State::job`].
    pub ranks: bool,
    /// The timeline itself.
    pub timeline: bool,
}

/// The state that views share. What only one of them needs is its own.
#[derive(Debug, Default)]
pub struct State {
    pub run: Run,
    /// What this machine's GPUs do, for the picker.
    pub machine: Machine,
    /// What of it is on screen.
    pub camera: Camera,
    pub selection: Selection,
    pub rows: Vec<Row>,
    /// Which of all rows those are.
    pub lanes: Lanes,
    /// Memory in use by device, as far as the rows show it.
    pub memory: Vec<MemoryUse>,
    pub messages: Messages,
    /// Which counters of GPUs have rows.
    pub counters: Counters,
    pub size: Size,
    /// Who answers what takes long.
    pub analyst: Analyst,
    /// Who keeps up the figures of the variants.
    measuring: Measuring,
    /// What bounds what is on screen, and what could be better in it.
    pub answers: Answers,
    /// How it goes on, while it does.
    pub pulse: Pulse,
    /// Why the devices were idle.
    pub idle: Idle,
    /// How the ranks of a job stand to each other.
    pub job: Job,
    /// What is wrong with what is on screen, the worst first.
    pub troubles: Vec<Trouble>,
    /// What is looked for on the timeline.
    pub search: Search,
    /// Two marks on the axis, and what was measured.
    pub marks: Marks,
    /// The places that jumps led away from.
    pub trail: Trail,
    /// Whether the screen is a picture, without words for who sits before it.
    pub is_bare: bool,
    /// The line that is being typed.
    pub prompt: Option<Prompt>,
    /// Lines that the timeline has for its rows.
    room: usize,
    /// The prediction under the timeline.
    pub ghost: PredictedRows,
    /// The one that the rows have.
    ghosted: (u32, bool),
    /// The state that passes, rows and window are of.
    pub(super) prepared: Option<(u64, Scope)>,
    needs_choice: bool,
}

impl State {
    /// A process and its GPU, as long as it is there.
    pub fn target(&self, target: Target) -> Option<(&GpuLoad, &Process)> {
        let (gpu, process) = self.machine.process(target.gpu, target.pid)?;
        (process.began() == target.began).then_some((gpu, process))
    }

    /// Says a word on the last action, until the next one.
    pub fn say(&mut self, text: impl Into<String>) {
        self.messages.flash = Some(text.into());
    }

    /// Puts a warning into the log.
    pub fn note(&mut self, text: String) {
        let log = &mut self.messages.log;
        log.push(self.run.elapsed, LineKind::Warning, &text);
    }

    /// Another run takes the place of this one.
    pub fn replace(&mut self, run: Run) {
        self.needs_choice = matches!(run.status, Status::Ended(_));
        self.camera = Camera {
            chosen: self.camera.chosen.take(),
            ..Camera::following()
        };
        self.run = run;
        self.rows.clear();
        self.memory.clear();
        self.selection = Selection::default();
        self.marks.clear();
        self.trail = Trail::default();
        self.messages.begin();
        self.prepared = None;
    }

    /// The run has ended: the camera may go where it is best looked at.
    pub(super) fn end(&mut self) {
        self.needs_choice = self.camera.is_following;
        self.prepared = None;
    }

    /// Brings passes, rows, scope and window up to date with the timeline.
    pub fn prepare(&mut self) {
        let revision = self.run.trace.revision();
        if self.prepared == Some((revision, self.camera.scope)) && !self.needs_choice {
            self.measuring.prepare(&self.analyst, &mut self.run);
            return;
        }
        if self.prepared.map(|(seen, _)| seen) != Some(revision) || self.needs_choice {
            let is_running = self.run.is_running();
            let playing = self.run.playing();
            self.run.passes.known_start = playing.map(|stretch| stretch.start);
            let Run {
                passes,
                trace,
                plan,
                ..
            } = &mut self.run;
            passes.update(trace, plan.as_deref(), is_running);
            self.camera.keep_scope(&self.run);
        }
        // Of the passes as they are now: before they are up to date nothing may be asked.
        self.measuring.prepare(&self.analyst, &mut self.run);
        if self.needs_choice {
            self.needs_choice = false;
            self.camera.choose_variant(&self.run);
        } else if self.camera.is_following && !self.camera.is_paused() {
            self.camera.follow(&self.run);
        }
        self.settle();
    }

    /// Takes what was found out about what is on screen, and asks anew when it has changed.
    pub fn answer(&mut self, shown: ViewNeeds) {
        self.align(shown);
        let (run, camera) = (&self.run, &self.camera);
        self.answers
            .prepare(&self.analyst, run, camera, shown.answers);
        if run.is_running() && !camera.is_paused() {
            let answer = self.answers.get(run, camera.scope);
            let step = answer.and_then(|answer| answer.steps);
            self.pulse.beat(run, step.map(|step| step.median));
        }
        let facts = &self.answers.facts;
        if shown.timeline {
            self.idle.prepare(&self.analyst, run, camera, facts);
        }
        self.ghost.prepare(&self.analyst, run, camera, facts);
        self.search.prepare(&self.analyst, run);
        self.marks.prepare(&self.analyst, run);
        let (messages, answers) = (&self.messages, &self.answers);
        self.troubles = if run.is_none() {
            Vec::new()
        } else {
            troubles::find(run, messages, answers, camera.scope)
        };
        if self.ghosted != self.ghost.version() {
            self.settle();
        }
    }

    /// Takes what was found out about the ranks of a job, and puts the timeline on their clock when that is told.
    fn align(&mut self, shown: ViewNeeds) {
        let facts = &self.answers.facts;
        self.job
            .prepare(&self.analyst, &self.run, facts, shown.ranks);
        if let Some(clocks) = self.job.take_clocks(&self.run) {
            self.set_clocks(&clocks);
            let facts = &self.answers.facts;
            self.job
                .prepare(&self.analyst, &self.run, facts, shown.ranks);
        }
        self.run.awaits_clocks = self.job.is_to_tell_clocks(&self.analyst, &self.run);
    }

    /// Sets the clocks of processes. Rows, selection and marks stay. The window stays on the same stretch, of the
    /// process that is selected, else of the first one.
    fn set_clocks(&mut self, clocks: &[Clock]) {
        let selected = self.selection.row.and_then(|row| row.lane());
        let lanes = self.run.trace.lanes();
        let process = selected.and_then(|lane| Some(lanes.get(lane)?.key().process));
        let process = process.unwrap_or(0);
        let recorded = |trace: &Trace, span: Span| trace.as_recorded(process, span);
        let own = |span: Span| recorded(&self.run.trace, span);
        let (window, item) = (own(self.camera.viewport.window), self.selection.item);
        let cursor = own(Span::at(self.selection.cursor)).start;
        let item_span = item.span().map(own);
        if !self.run.set_clocks(clocks) {
            return;
        }
        let clock = self.run.trace.clock(process);
        self.selection
            .retime(clock.apply(cursor), item_span.map(|span| clock.span(span)));
        if !self.camera.is_following {
            self.camera.viewport.window = clock.span(window);
            let extent = self.run.trace.extent();
            self.camera.is_following = !extent.is_some_and(|it| it.overlaps(clock.span(window)));
        }
        // Where jumps led away from, and what was measured, may be anywhere now.
        self.marks.clear();
        self.trail = Trail::default();
        self.memory.clear();
        self.job.clocks_set(&self.run);
        self.needs_choice |= self.camera.is_following && !self.run.is_running();
        self.prepared = None;
        self.prepare();
    }

    /// The timeline has this many lines for its rows.
    pub fn set_room(&mut self, room: usize) {
        if self.room != room {
            self.room = room;
            self.settle();
        }
    }

    /// Rows, bounds and selection for the scope as it is now.
    fn settle(&mut self) {
        let trace = &self.run.trace;
        let scope = self.camera.scope_span(&self.run).unwrap_or_default();
        self.camera.bound(&self.run);
        let is_whole = self.camera.scope == Scope::Whole;
        let all = rows::all(trace, scope, is_whole, self.counters);
        let (minor, lines) = quiet::minor(trace, scope, &all);
        self.rows = self.lanes.choose(all, minor);
        if self.lanes.leaves_minor_out() {
            self.rows.extend(lines);
        }
        rows::deepen(trace, scope, self.room, &mut self.rows);
        self.ghosted = self.ghost.version();
        rows::put_ghost(
            &mut self.rows,
            self.ghost.rows(&self.run, self.camera.scope),
        );
        self.memory
            .resize_with(trace.devices().len(), MemoryUse::default);
        for (device, memory) in self.memory.iter_mut().enumerate() {
            let kind = RowKind::Memory(device);
            if self.rows.iter().any(|row| row.kind == kind) {
                memory.update(trace, Some(device));
            }
        }
        self.selection.settle(trace, &self.rows);
        self.prepared = Some((trace.revision(), self.camera.scope));
    }

    /// Puts the whole run or a pass on screen.
    pub fn show(&mut self, scope: Scope) {
        self.camera.show(&self.run, scope);
        self.selection = Selection::default();
        self.settle();
    }

    pub(super) fn toggle_follow(&mut self) {
        self.camera.is_following = !self.camera.is_following;
        self.camera.paused_at = None;
        if self.camera.is_following {
            self.prepared = None;
            if matches!(self.run.status, Status::Ended(_)) {
                self.needs_choice = true;
            }
        }
    }

    /// Shows more or fewer counters of the hardware.
    pub(super) fn step_counters(&mut self) {
        self.counters = self.counters.next();
        self.say(self.counters.words());
        self.settle();
    }

    pub(super) fn toggle_pause(&mut self) {
        self.camera.paused_at = match self.camera.paused_at {
            Some(_) => None,
            None => Some(self.run.trace.health().received),
        };
        self.prepared = None;
    }
}
