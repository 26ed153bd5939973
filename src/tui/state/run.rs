//! The run that is on screen: its timeline, its plan, and how it stands.

use std::sync::Arc;
use std::time::Duration;

use super::other_run::OtherRun;
use super::{Scope, Status};
use crate::report::{Checked, KnownGpus, expect};
use activity::feed::{Outcome, Pause, Progress, SourceStatus};
use activity::{DeviceInfo, Ns, Span};
use figures::passes::{Pass, Passes};
use figures::steps;
use figures::variants::{RunFigures, VariantFigures};
use scenario::plan::Plan;
use trace::{Clock, SourceInfo, SourceKind, Trace};

/// A timeline that was complete, played once more.
#[derive(Clone, Debug)]
pub struct Replay {
    /// How many times as fast as it happened.
    pub speed: f64,
    /// The stretches that will be on screen one after another, in order: passes, or all of it.
    pub stretches: Vec<Span>,
    /// Holds it.
    pub pause: Pause,
}

#[derive(Debug, Default)]
pub struct Run {
    /// How many were started before it in this session.
    pub number: u64,
    pub trace: Trace,
    /// The scenario, when one runs.
    pub plan: Option<Arc<Plan>>,
    /// For "% of peak".
    pub gpus: KnownGpus,
    /// How it stands.
    pub status: Status,
    /// How far long work has come.
    pub progress: Option<Progress>,
    /// Whom the source waits for, while it does.
    pub standing: Vec<SourceStatus>,
    /// How many times that has changed.
    pub stood: u64,
    /// Whether it has ended and is about to be put on the one clock of its ranks.
    pub awaits_clocks: bool,
    /// Whether that was done since it has ended.
    pub is_settled: bool,
    /// How it is played, when it was complete before it began.
    pub replay: Option<Replay>,
    /// What it is compared with, when it is one of two.
    pub beside: Option<Arc<OtherRun>>,
    /// Since it began; stands still when it ended.
    pub elapsed: Duration,
    /// Passes and variants.
    pub passes: Passes,
    /// The figures of the variants, as far as they are known.
    pub measured: RunFigures,
    /// Goes up whenever those change.
    pub figured: u64,
    /// The figures of the run before; empty when there is none.
    pub previous: Vec<VariantFigures>,
    /// What came of its scenario's expectations, once it is complete.
    pub checked: Vec<Checked>,
    /// Where the only step begins that is marked, before the first operation.
    pub(in crate::tui) begins: Option<Ns>,
    /// The timeline that the passes are of, and whether it was to go on.
    pub(in crate::tui) passes_of: Option<(u64, bool)>,
}

impl Run {
    /// A run of a timeline that is complete or yet to come.
    pub fn new(trace: Trace, plan: Option<Arc<Plan>>, gpus: KnownGpus, status: Status) -> Self {
        Run {
            trace,
            plan,
            gpus,
            status,
            ..Run::default()
        }
    }

    /// The next run of the session; the figures of this one stay for comparison.
    pub fn next(&mut self, source: SourceInfo, plan: Option<Arc<Plan>>, gpus: KnownGpus) -> Run {
        let variants = std::mem::take(&mut self.measured).variants;
        Run {
            number: self.number + 1,
            previous: if variants.is_empty() {
                std::mem::take(&mut self.previous)
            } else {
                variants
            },
            ..Run::new(Trace::new(source), plan, gpus, Status::Running)
        }
    }

    /// Takes the figures of the variants.
    pub(super) fn figure(&mut self, measured: RunFigures) {
        self.measured = measured;
        self.figured += 1;
        self.check();
    }

    /// Holds what was measured to what the scenario expects, when all of it ran.
    fn check(&mut self) {
        let is_complete = self.status == Status::Ended(Outcome::Complete) && self.measured.is_final;
        self.checked = match &self.plan {
            Some(plan) if is_complete => {
                expect::check(plan, &self.measured.variants, self.gpus.peaks(&self.trace))
            }
            _ => Vec::new(),
        };
    }

    /// Sets the clocks of its processes. What was found out or counted by time before is not of it any more: it has
    /// another number.
    pub(super) fn set_clocks(&mut self, clocks: &[Clock]) -> bool {
        self.is_settled = !self.is_running();
        let is_moved = self.trace.retime(clocks);
        if is_moved {
            self.number += 1;
            self.passes = Passes::default();
            self.passes_of = None;
        }
        is_moved
    }

    /// Brings the passes up to date with the timeline.
    pub(super) fn find_passes(&mut self) {
        let is_running = self.is_running();
        let now = Some((self.trace.revision(), is_running));
        if self.passes_of != now {
            self.passes_of = now;
            self.passes.known_start = self.playing().map(|stretch| stretch.start);
            self.passes
                .update(&self.trace, self.plan.as_deref(), is_running);
            let first = self.trace.operations_extent();
            let first = first.filter(|_| !is_running && self.plan.is_none());
            let begins = first.and_then(|_| steps::begins(&self.trace, 0));
            self.begins = begins.filter(|it| first.is_some_and(|first| *it < first.start));
        }
    }

    /// Whether trace files are still being read for it. They hold a whole timeline, and nothing is said of a part of one.
    pub fn is_being_read(&self) -> bool {
        let is_file = matches!(
            self.trace.source.kind,
            SourceKind::Kineto | SourceKind::Nsys
        );
        is_file && self.is_running() && self.replay.is_none()
    }

    /// Records on the timeline.
    pub fn records(&self) -> usize {
        self.trace.lanes().iter().map(|lane| lane.len()).sum()
    }

    /// The stretch of a replay that is on or comes next: where it will end is known.
    pub fn playing(&self) -> Option<Span> {
        let replay = self.replay.as_ref().filter(|_| self.is_running())?;
        let now = self.trace.extent()?.end;
        let mut stretches = replay.stretches.iter();
        stretches.find(|stretch| stretch.end > now).copied()
    }

    /// The pass that a scope is, if it is one.
    pub fn pass(&self, scope: Scope) -> Option<&Pass> {
        match scope {
            Scope::Whole => None,
            Scope::Pass(i) => self.passes.list.get(i),
        }
    }

    /// The variant that a scope is a pass of.
    pub fn variant(&self, scope: Scope) -> Option<usize> {
        self.pass(scope).map(|pass| pass.variant)
    }

    /// The stretch that belongs to a scope: of a pass its operations, of the whole run everything.
    pub fn scope_span(&self, scope: Scope) -> Option<Span> {
        match scope {
            Scope::Whole => {
                let extent = self.trace.extent()?;
                Some(self.playing().map_or(extent, |all| extent.hull(all)))
            }
            Scope::Pass(i) => {
                let pass = self.passes.list.get(i)?;
                // Where its end is known already, the picture need not move.
                let span = match self.playing() {
                    Some(whole) if pass.is_open => whole.hull(pass.span),
                    _ => pass.span,
                };
                Some(match pass.operations {
                    Some(operations) => operations.hull(span),
                    None => span,
                })
            }
        }
    }

    /// First start to last end of the operations in a scope, from where a single step begins that is marked.
    pub fn operations(&self, scope: Scope) -> Option<Span> {
        match scope {
            Scope::Whole => {
                let begins = self.begins.map(Span::at).into_iter();
                Some(begins.fold(self.trace.operations_extent()?, Span::hull))
            }
            Scope::Pass(i) => self.passes.list.get(i).and_then(|p| p.operations),
        }
    }

    /// Whether a source is at work.
    pub fn is_running(&self) -> bool {
        self.status == Status::Running
    }

    /// Whether nothing was started yet.
    pub fn is_none(&self) -> bool {
        self.status == Status::Idle
    }

    /// Whether its scenario goes through values of a parameter.
    pub fn is_swept(&self) -> bool {
        self.plan.as_ref().is_some_and(|p| p.sweep.is_some())
    }

    /// The device to name in the header: the first.
    pub fn device(&self) -> Option<&DeviceInfo> {
        self.trace.devices().first().map(|d| &d.info)
    }
}
