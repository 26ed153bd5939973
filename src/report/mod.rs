//! Figures for people (text) and programs (JSON).
//!
//! A [`Report`] holds everything that is said about a timeline; [`Report::json`] and [`text::render`]
//! are its two forms, [`compare`] sets two of them side by side. The JSON field names are a contract:
//! add, don't rename.

pub mod compare;
pub mod expect;
pub mod steps;
mod table;
pub mod text;

use std::path::PathBuf;

use serde::Serialize;

use crate::activity::{Health, Ns, Span};
use crate::analysis::figures::{self, DeviceFigures, Peaks};
use crate::analysis::findings::{self, Finding, Scope};
use crate::analysis::gaps::{Explanation, by_cause};
use crate::analysis::launches::{self, LaunchDelay, QueueDepth};
use crate::analysis::memory::MemoryUse;
use crate::analysis::tables::{self, NameRow};
use crate::analysis::{CallIndex, VariantFigures, passes};
use crate::scenario::plan::Plan;
use crate::trace::Trace;

pub use expect::Checked;

/// Everything that is said about a timeline.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of the program that said it.
    pub cuptop: &'static str,
    /// Where the timeline is from.
    pub source: Source,
    /// Figures of every device that has an operation.
    pub devices: Vec<DeviceFigures>,
    /// How operations followed their host calls, for the same devices in the same order.
    pub launches: Vec<Launches>,
    /// Why the devices were idle, for gaps of a microsecond and more.
    pub idle: Vec<Idle>,
    /// Kernels by name, most time first.
    pub kernels: Vec<NameRow>,
    /// Host calls by name, most time first.
    pub calls: Vec<NameRow>,
    /// Time for which the host waited for the GPU.
    pub sync_ns: Ns,
    /// The most device memory in use at one time; absent when no allocation was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
    /// The steps of each process that has some.
    pub steps: Vec<steps::StepsReport>,
    /// What was received and what was not.
    pub health: HealthReport,
    /// What could be better.
    pub findings: Vec<Finding>,
    /// The variants of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variants: Option<Vec<VariantReport>>,
    /// What the scenario expects of its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expectations: Option<Vec<Checked>>,
    /// The peaks that rates are compared with.
    #[serde(skip)]
    pub peaks: Peaks,
}

/// Where a timeline is from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The kind of source ("kineto").
    pub kind: &'static str,
    /// What to call it.
    pub title: String,
    /// The file or directory, where there is one.
    pub path: Option<PathBuf>,
    /// Whether no GPU was involved.
    pub simulated: bool,
}

/// How the operations of one device followed their host calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Launches {
    /// The device's id.
    pub device: u32,
    /// Start of the host call to start of the operation.
    pub delay: LaunchDelay,
    /// Operations that were called for and had not begun.
    pub queue: QueueDepth,
}

/// Part of a device's idle time that has one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Idle {
    /// The device's id.
    pub device: u32,
    /// The cause in a few words.
    pub cause: &'static str,
    /// Gaps.
    pub count: u64,
    /// Their lengths together.
    pub total_ns: Ns,
}

/// What was received and what was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HealthReport {
    /// Records that arrived, the rejected ones included.
    pub received: u64,
    /// Records that the collecting library said it dropped.
    pub dropped: u64,
    /// Records that arrived after one that started later; they stand where they belong.
    pub late: u64,
    /// Records that could not be written or read.
    pub lost: u64,
    /// Records of a kind that is not known.
    pub unknown: u64,
    /// Records that were not believable.
    pub rejected: Rejected,
}

/// Records that were not believable, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// Start or end time zero.
    pub no_timestamp: u64,
    /// Ended before it started.
    pub end_before_start: u64,
    /// A time outside the session.
    pub bad_clock: u64,
}

/// One variant of a run (at one value of the sweep), as its median repeat was.
#[derive(Clone, Debug, Serialize)]
pub struct VariantReport {
    /// Its name.
    pub name: String,
    /// The sweep's value it ran at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<i64>,
    /// Measured passes.
    pub repeats: usize,
    /// First operation's start to the last one's end.
    pub makespan_ns: Ns,
    /// The host's time around it.
    pub wall_ns: Ns,
    /// Every repeat's makespan, in order.
    pub makespans_ns: Vec<Ns>,
    /// Figures by device.
    pub devices: Vec<DeviceFigures>,
    /// Kernels by name, most time first.
    pub kernels: Vec<NameRow>,
    /// Named phases of the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<NameRow>,
    /// The most device memory in use at one time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
    /// Why the devices were idle, for gaps of a microsecond and more.
    pub idle: Vec<Idle>,
    /// What could be better.
    pub findings: Vec<Finding>,
    /// All figures, for tables and charts.
    #[serde(skip)]
    pub figures: VariantFigures,
}

impl Report {
    /// Works out everything that is said about a timeline. With the plan of a run, that includes its
    /// variants and what the scenario expects of them.
    #[must_use]
    pub fn new(trace: &Trace, plan: Option<&Plan>, peaks: Peaks) -> Report {
        let calls = CallIndex::new(trace);
        let devices = figures::of(trace, &calls, None);
        let memory = MemoryUse::of(trace, None);
        let variants = plan.map(|plan| variants(trace, &calls, &memory, plan, peaks));
        let expectations = plan.zip(variants.as_ref()).map(|(plan, variants)| {
            let figures: Vec<&VariantFigures> = variants.iter().map(|v| &v.figures).collect();
            expect::check(plan, &figures)
        });
        let launches = devices
            .iter()
            .map(|f| {
                let (delay, queue) = launches::of_device(trace, &calls, f.index, None);
                Launches {
                    device: f.device,
                    delay,
                    queue,
                }
            })
            .collect();
        let scope = Scope::new(trace, &calls, None, &devices, peaks);
        let findings = findings::of(&scope);
        let idle = idle(&scope);
        Report {
            cuptop: env!("CARGO_PKG_VERSION"),
            source: Source {
                kind: trace.source.kind.label(),
                title: trace.source.title.clone(),
                path: trace.source.path.clone(),
                simulated: trace.source.simulated,
            },
            launches,
            idle,
            kernels: tables::kernels(trace, None),
            calls: tables::calls(trace, None),
            sync_ns: tables::sync_time(trace, None),
            peak_memory: memory.peak(trace.extent().map_or_else(Span::default, with_end)),
            steps: crate::analysis::steps::of(trace, None)
                .iter()
                .map(|s| steps::StepsReport::new(trace, s))
                .collect(),
            health: HealthReport::new(&trace.health(), trace.late()),
            findings,
            variants,
            expectations,
            devices,
            peaks,
        }
    }

    /// The report as JSON, on several lines.
    ///
    /// # Errors
    /// Never for a report that [`Report::new`] made; the serializer's signature has it.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    /// Whether every expectation holds; also when there is none.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        self.expectations.iter().flatten().all(|e| e.ok)
    }
}

/// Idle time by device and cause, most time first.
fn idle(scope: &Scope) -> Vec<Idle> {
    let of = |(f, gaps): (&DeviceFigures, &Vec<Explanation>)| {
        let device = f.device;
        by_cause(gaps).into_iter().map(move |c| Idle {
            device,
            cause: c.cause.label(),
            count: c.count,
            total_ns: c.total_ns,
        })
    };
    scope.devices.iter().zip(&scope.gaps).flat_map(of).collect()
}

/// A span that holds its last moment too.
fn with_end(span: Span) -> Span {
    Span::new(span.start, span.end + 1)
}

fn variants(
    trace: &Trace,
    calls: &CallIndex,
    memory: &MemoryUse,
    plan: &Plan,
    peaks: Peaks,
) -> Vec<VariantReport> {
    let report = |passes: passes::Passes| {
        let mut figures = passes::of_variant(trace, calls, memory, passes);
        figures.point = plan
            .variants
            .get(figures.passes.index)
            .filter(|v| v.name == figures.passes.name)
            .and_then(|v| v.point);
        let window = Some(figures.passes.median().span);
        let scope = Scope::new(trace, calls, window, &figures.devices, peaks);
        let (findings, idle) = (findings::of(&scope), idle(&scope));
        VariantReport {
            name: figures.passes.name.clone(),
            point: figures.point,
            repeats: figures.passes.repeats.len(),
            makespan_ns: figures.makespan_ns,
            wall_ns: figures.wall_ns,
            makespans_ns: figures
                .passes
                .repeats
                .iter()
                .map(|r| r.makespan())
                .collect(),
            devices: figures.devices.clone(),
            kernels: figures.kernels.clone(),
            phases: figures.phases.clone(),
            peak_memory: figures.peak_memory,
            idle,
            findings,
            figures,
        }
    };
    passes::passes(trace).into_iter().map(report).collect()
}

impl HealthReport {
    /// From the source's counters and the store's.
    #[must_use]
    pub fn new(health: &Health, late: u64) -> Self {
        HealthReport {
            received: health.received,
            dropped: health.dropped,
            late,
            lost: health.lost,
            unknown: health.unknown,
            rejected: Rejected {
                no_timestamp: health.no_timestamp,
                end_before_start: health.end_before_start,
                bad_clock: health.bad_clock,
            },
        }
    }

    /// Everything that was collected and is not on the timeline.
    #[must_use]
    pub fn losses(&self) -> u64 {
        let r = &self.rejected;
        self.dropped + self.lost + self.unknown + r.no_timestamp + r.end_before_start + r.bad_clock
    }
}

#[cfg(test)]
mod tests;
