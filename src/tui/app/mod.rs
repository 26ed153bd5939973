//! The state of the screen: pure, without I/O, threads or a clock of its own.
//!
//! The shell hands it messages of the feed ([`App::take`]), actions ([`App::act`]) and the time
//! ([`App::tick`]); before a frame it brings what is derived up to date ([`App::prepare`]); the
//! widgets then draw from `&App`. What the app wants done outside itself comes back as an [`Effect`].

mod act;
mod findings;
mod follow;
mod journal;
mod messages;
mod mouse;
pub mod nest;
pub mod passes;
pub mod rows;
pub mod selection;
pub mod viewport;

use std::sync::Arc;
use std::time::Duration;

use ratatui::layout::Size;

use super::action::View;
use super::sweep::{self, Work};
use crate::activity::feed::{Outcome, Progress};
use crate::activity::{DeviceInfo, Ns, Span};
use crate::analysis::figures;
use crate::analysis::memory::MemoryUse;
use crate::scenario::plan::Plan;
use crate::trace::{SourceInfo, Trace};
pub use findings::{FindingLine, Findings};
pub use journal::{Journal, Line, LineKind};
use passes::{Figures, Passes};
use rows::Row;
use selection::Selection;
use viewport::Viewport;

/// What the app wants the shell to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Leave.
    Quit,
    /// Run again what ran, or the scenario that the picker chose.
    Start(Wanted),
    /// Ask the source to stop.
    Stop,
    /// Save the screen.
    Save,
    /// Open the scenario in the editor.
    Edit,
}

/// What to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// What the session was opened with, or what ran last.
    #[default]
    Same,
    /// A bundled scenario.
    Scenario(String),
}

/// A line of the picker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// What to run.
    pub name: String,
    /// What it shows.
    pub about: String,
}

/// The most that the hardware can do, for "% of peak".
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Peaks {
    /// Copies, GB/s by direction.
    pub copies: figures::Peaks,
    /// Device memory, GB/s.
    pub memory: Option<f64>,
    /// Single precision, FLOP/s.
    pub flops: Option<f64>,
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPanel {
    /// In a few words.
    pub title: &'static str,
    /// The whole of it, line by line.
    pub text: String,
}

/// How the run stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Nothing was started: the picker.
    #[default]
    Idle,
    /// A source is at work.
    Running,
    /// It ended.
    Ended(Outcome),
}

/// What is on the timeline: the whole run or one pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    #[default]
    Whole,
    /// A pass: index into [`Passes::list`].
    Pass(usize),
}

/// A variant's figures, of the pass that represents it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VariantRow {
    /// Index into [`Passes::variants`].
    pub variant: usize,
    /// Its name with the sweep's value.
    pub label: String,
    /// First operation's start to the last one's end.
    pub makespan: Ns,
    /// The host's time around the pass.
    pub wall: Ns,
    /// The rest.
    pub figures: Figures,
}

/// The state. Its fields are read by the widgets and changed by [`App::take`] and [`App::act`].
#[derive(Debug, Default)]
pub struct App {
    /// The timeline.
    pub trace: Trace,
    /// The scenario, when one runs.
    pub plan: Option<Arc<Plan>>,
    /// What the kernels of each of the plan's variants declare to do.
    pub work: Vec<Work>,
    /// For "% of peak".
    pub peaks: Peaks,
    /// How the run stands.
    pub status: Status,
    /// How far long work has come.
    pub progress: Option<Progress>,
    /// Since the run began; stands still when it ended.
    pub elapsed: Duration,
    /// Passes and variants.
    pub passes: Passes,
    /// What is on the timeline.
    pub scope: Scope,
    /// Which stretch of it.
    pub viewport: Viewport,
    /// Whether the window goes along with new data.
    pub is_following: bool,
    /// Whether the picture is held still.
    pub is_paused: bool,
    /// Records that had been received when it was paused.
    paused_at: u64,
    /// The rows of the timeline.
    pub rows: Vec<Row>,
    /// The first row on screen.
    pub first_row: usize,
    /// What is selected.
    pub selection: Selection,
    /// Which view.
    pub view: View,
    /// Whether the help lies on top.
    pub is_help_open: bool,
    /// Where the cursor of the list views is, and of the picker.
    pub cursor: usize,
    /// The column that the operations table is ordered by.
    pub sort: usize,
    /// Notices.
    pub log: Journal,
    /// What the watched program printed.
    pub output: Journal,
    /// What went wrong last; lies above the last good run.
    pub error: Option<ErrorPanel>,
    /// A word on the last action, until the next one.
    pub flash: Option<String>,
    /// What could be better in what is on screen.
    pub findings: Findings,
    /// Memory in use by device, as far as the rows show it.
    pub memory: Vec<MemoryUse>,
    /// The figures of the run before; empty when there is none.
    pub previous: Vec<VariantRow>,
    /// The scenarios to pick from.
    pub choices: Vec<Choice>,
    /// The terminal's size.
    pub size: Size,
    /// The variant that was chosen by hand, to come back to after a rerun.
    chosen: Option<String>,
    prepared: Option<(u64, Scope)>,
    needs_choice: bool,
}

impl App {
    /// An app that shows the picker.
    #[must_use]
    pub fn new(choices: Vec<Choice>) -> Self {
        App {
            choices,
            is_following: true,
            ..App::default()
        }
    }

    /// An app that shows a timeline that is complete.
    #[must_use]
    pub fn of_trace(trace: Trace, plan: Option<Arc<Plan>>, peaks: Peaks) -> Self {
        let mut app = App {
            trace,
            work: plan.as_deref().map_or_else(Vec::new, sweep::work),
            plan,
            peaks,
            is_following: true,
            needs_choice: true,
            status: Status::Ended(Outcome::Complete),
            ..App::default()
        };
        app.prepare();
        app
    }

    /// A new run begins. The figures of the one before stay for comparison.
    pub fn start(&mut self, source: SourceInfo, plan: Option<Arc<Plan>>, peaks: Peaks) {
        self.remember();
        self.trace = Trace::new(source);
        self.work = plan.as_deref().map_or_else(Vec::new, sweep::work);
        self.plan = plan;
        self.peaks = peaks;
        self.status = Status::Running;
        self.progress = None;
        self.elapsed = Duration::ZERO;
        self.passes = Passes::default();
        self.scope = Scope::Whole;
        self.viewport = Viewport::default();
        self.is_following = true;
        self.is_paused = false;
        self.rows.clear();
        self.first_row = 0;
        self.selection = Selection::default();
        self.error = None;
        self.flash = None;
        self.output = Journal::default();
        self.findings = Findings::default();
        self.prepared = None;
    }

    /// Time goes on.
    pub fn tick(&mut self, elapsed: Duration) {
        if self.status == Status::Running {
            self.elapsed = elapsed;
        }
    }

    /// Whether the picker is what is on screen.
    #[must_use]
    pub fn is_picking(&self) -> bool {
        self.status == Status::Idle
    }

    /// Records that came since the picture was held still.
    #[must_use]
    pub fn behind(&self) -> u64 {
        let received = self.trace.health().received;
        received.saturating_sub(self.paused_at)
    }

    /// Whether a source is at work.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.status == Status::Running
    }

    /// The stretch that belongs to the scope: of a pass its operations, of the whole run everything.
    #[must_use]
    pub fn scope_span(&self) -> Option<Span> {
        match self.scope {
            Scope::Whole => self.trace.extent(),
            Scope::Pass(i) => {
                let pass = self.passes.list.get(i)?;
                Some(match pass.operations {
                    Some(operations) => operations.hull(pass.span),
                    None => pass.span,
                })
            }
        }
    }

    /// The stretch that figures are reckoned over: the operations in scope, as far as they are on screen.
    #[must_use]
    pub fn figures_span(&self) -> Span {
        let operations = match self.scope {
            Scope::Whole => self.trace.operations_extent(),
            Scope::Pass(i) => self.passes.list.get(i).and_then(|p| p.operations),
        };
        operations
            .unwrap_or_default()
            .intersect(self.viewport.window)
    }

    /// Whether only a part of the operations in scope is on screen.
    #[must_use]
    pub fn is_zoomed(&self) -> bool {
        let operations = match self.scope {
            Scope::Whole => self.trace.operations_extent(),
            Scope::Pass(i) => self.passes.list.get(i).and_then(|p| p.operations),
        };
        operations.is_some_and(|span| self.viewport.window.intersect(span) != span)
    }

    /// What the time axis counts from: the first operation in scope.
    #[must_use]
    pub fn zero(&self) -> Ns {
        let operations = match self.scope {
            Scope::Whole => self.trace.operations_extent(),
            Scope::Pass(i) => self.passes.list.get(i).and_then(|p| p.operations),
        };
        operations
            .or(self.scope_span())
            .map_or(self.viewport.window.start, |span| span.start)
    }

    /// The variant on screen, when one pass is.
    #[must_use]
    pub fn variant(&self) -> Option<usize> {
        match self.scope {
            Scope::Whole => None,
            Scope::Pass(i) => self.passes.list.get(i).map(|p| p.variant),
        }
    }

    /// The device to name in the header: the first.
    #[must_use]
    pub fn device(&self) -> Option<&DeviceInfo> {
        self.trace.devices().first().map(|d| &d.info)
    }

    /// The figures of each variant that has a measured pass.
    #[must_use]
    pub fn variant_figures(&self) -> Vec<VariantRow> {
        (0..self.passes.variants.len())
            .filter_map(|v| {
                let pass = &self.passes.list[self.passes.representative(v)?];
                (!pass.is_open && pass.is_measured).then(|| VariantRow {
                    variant: v,
                    label: self.passes.variants[v].label(),
                    makespan: pass.makespan(),
                    wall: pass.span.len(),
                    figures: pass
                        .operations
                        .map_or_else(Figures::default, |window| Figures::of(&self.trace, window)),
                })
            })
            .collect()
    }

    fn remember(&mut self) {
        let variants = self.variant_figures();
        if !variants.is_empty() {
            self.previous = variants;
        }
    }
}

#[cfg(test)]
mod tests;
