//! The run that is on screen: its timeline, its plan, and how it stands.

use std::sync::Arc;
use std::time::Duration;

use super::passes::{Figures, Passes};
use super::{Peaks, Status};
use crate::activity::feed::Progress;
use crate::activity::{DeviceInfo, Ns};
use crate::scenario::plan::Plan;
use crate::trace::{SourceInfo, Trace};
use crate::tui::sweep::{self, Work};

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

/// A run.
#[derive(Debug, Default)]
pub struct Run {
    /// How many were started before it in this session.
    pub number: u64,
    /// The timeline.
    pub trace: Trace,
    /// The scenario, when one runs.
    pub plan: Option<Arc<Plan>>,
    /// What the kernels of each of the plan's variants declare to do.
    pub work: Vec<Work>,
    /// For "% of peak".
    pub peaks: Peaks,
    /// How it stands.
    pub status: Status,
    /// How far long work has come.
    pub progress: Option<Progress>,
    /// Since it began; stands still when it ended.
    pub elapsed: Duration,
    /// Passes and variants.
    pub passes: Passes,
    /// The figures of the run before; empty when there is none.
    pub previous: Vec<VariantRow>,
}

impl Run {
    /// A run of a timeline that is complete or yet to come.
    #[must_use]
    pub fn new(trace: Trace, plan: Option<Arc<Plan>>, peaks: Peaks, status: Status) -> Self {
        Run {
            trace,
            work: plan.as_deref().map_or_else(Vec::new, sweep::work),
            plan,
            peaks,
            status,
            ..Run::default()
        }
    }

    /// The next run of the session; the figures of this one stay for comparison.
    #[must_use]
    pub fn next(&mut self, source: SourceInfo, plan: Option<Arc<Plan>>, peaks: Peaks) -> Run {
        let variants = self.variant_figures();
        Run {
            number: self.number + 1,
            previous: if variants.is_empty() {
                std::mem::take(&mut self.previous)
            } else {
                variants
            },
            ..Run::new(Trace::new(source), plan, peaks, Status::Running)
        }
    }

    /// The timeline as it is now, for another thread.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Trace> {
        self.trace.snapshot()
    }

    /// Records on the timeline.
    #[must_use]
    pub fn records(&self) -> usize {
        self.trace.lanes().iter().map(|lane| lane.len()).sum()
    }

    /// Whether a source is at work.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.status == Status::Running
    }

    /// Whether nothing was started yet.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.status == Status::Idle
    }

    /// Whether its scenario goes through values of a parameter.
    #[must_use]
    pub fn is_swept(&self) -> bool {
        self.plan.as_ref().is_some_and(|p| p.sweep.is_some())
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
}
