//! One side of a comparison: its runs, and what of them takes time.

use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};

use crate::report::{self, KnownGpus, Report};
use activity::{Ns, Span};
use advice::Facts;
use causes::{Causes, Group, sum_by};
use figures::breakdown::Breakdown;
use figures::passes::Passes;
use figures::steps::{self, Origin};
use trace::{Trace, describe};

/// What is compared: something that takes time, and is done once or several times in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// First operation's start to the last one's end.
    Makespan,
    /// A steady step of the program.
    Step(Origin),
    /// A repeat of a variant of a scenario.
    Variant(String),
}

/// A subject in one run.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) subject: Subject,
    /// Times in ns.
    pub(super) samples: Vec<f64>,
    /// The one of median length, of an even number the shorter of the two in the middle.
    pub(super) median: Stretch,
}

/// What a part of the time went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    Compute,
    Copy,
    /// Counted in both of these.
    Overlap,
    Memset,
    NotRecorded,
    /// Nothing ran, on several devices that share it.
    Idle,
    /// Nothing ran, for causes of this group: the legend's sums.
    IdleBy(Group),
    /// Nothing ran before the first operation or after the last.
    IdleOutside,
}

impl PartKind {
    /// What people read.
    pub fn label(self) -> String {
        match self {
            // It has a sign of its own: what runs at once is in both of the others.
            Self::Overlap => "less overlap".to_owned(),
            of => of.name(|it| it.label().to_owned()),
        }
    }

    pub fn is_idle(self) -> bool {
        matches!(self, Self::Idle | Self::IdleBy(_) | Self::IdleOutside)
    }

    fn name(self, of_group: fn(Group) -> String) -> String {
        let name = match self {
            Self::Compute => "compute",
            Self::Copy => "copy",
            Self::Overlap => "overlap",
            Self::Memset => "memset",
            Self::NotRecorded => "not recorded",
            Self::Idle => "idle",
            Self::IdleBy(group) => return format!("idle: {}", of_group(group)),
            Self::IdleOutside => "idle: before the first operation or after the last",
        };
        name.to_owned()
    }
}

impl Serialize for PartKind {
    fn serialize<S: Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        into.serialize_str(&self.name(|it| it.id()))
    }
}

/// A stretch of time and what it went to.
#[derive(Clone, Debug, Default)]
pub(super) struct Stretch {
    /// When it was.
    pub(super) window: Span,
    /// Of all devices together.
    pub(super) parts: Breakdown,
    /// Nothing ran, by group of causes.
    pub(super) idle: Vec<(PartKind, Ns)>,
    /// By name: how many, and the sum of their durations.
    pub(super) operations: FxHashMap<String, (u64, Ns)>,
}

impl Stretch {
    pub(super) fn count(&self) -> u64 {
        self.operations.values().map(|(n, _)| n).sum()
    }

    fn of(facts: &Facts<'_>, causes: &Causes<'_>, window: Span) -> Self {
        let trace = facts.trace;
        let parts = Breakdown::together(trace, window);
        Stretch {
            window,
            parts,
            idle: idle_by_group(facts, causes, window, parts.idle()),
            operations: operations(trace, window),
        }
    }
}

/// Idle time by group of causes. Where several devices share it, it has none.
fn idle_by_group(
    facts: &Facts<'_>,
    causes: &Causes<'_>,
    window: Span,
    idle: Ns,
) -> Vec<(PartKind, Ns)> {
    let devices = facts.figures(Some(window));
    let [device] = &*devices else {
        return vec![(PartKind::Idle, idle)];
    };
    let idle_rows = causes.idle_within(&[device.index], &[window]);
    let rows = sum_by(idle_rows.iter().map(|row| (row.group, row.total_ns)));
    let explained: Ns = rows.iter().map(|row| row.1).sum();
    let rows = rows.into_iter();
    let mut all: Vec<_> = rows.map(|(of, ns)| (PartKind::IdleBy(of), ns)).collect();
    if idle > explained {
        all.push((PartKind::IdleOutside, idle - explained));
    }
    all
}

fn operations(trace: &Trace, window: Span) -> FxHashMap<String, (u64, Ns)> {
    let mut all: FxHashMap<&str, (u64, Ns)> = FxHashMap::default();
    for (id, lane) in trace.streams() {
        for row in lane.starting(window) {
            let activity = trace.activity(id, row);
            let Some(name) = describe::operation_name(trace, &activity.what) else {
                continue;
            };
            let sum = all.entry(name).or_default();
            *sum = (sum.0 + 1, sum.1 + activity.span.len());
        }
    }
    let owned = all.into_iter();
    owned.map(|(name, sum)| (name.to_owned(), sum)).collect()
}

/// A run: what a report says of it, and what of it can be compared.
#[derive(Clone, Debug)]
pub struct ComparedRun {
    /// Its figures.
    pub report: Report,
    /// Whether a process of it was killed, or ended without a word.
    pub(super) is_cut: bool,
    pub(super) measured: Vec<Measured>,
}

impl ComparedRun {
    /// From a timeline that is complete.
    pub fn of(trace: &Trace) -> Self {
        let facts = report::facts(trace, None, KnownGpus::default());
        let report = Report::from(&facts);
        let causes = facts.causes();
        let measure = |subject: Subject, spans: &[Span]| {
            let mut order: Vec<Span> = spans.to_vec();
            order.sort_by_key(|span| span.len());
            let median = *order.get(order.len().checked_sub(1)? / 2)?;
            Some(Measured {
                subject,
                samples: spans.iter().map(|s| s.len() as f64).collect(),
                median: Stretch::of(&facts, &causes, median),
            })
        };
        let mut measured = Vec::new();
        for (name, spans) in variants(facts.passes()) {
            measured.extend(measure(Subject::Variant(name), &spans));
        }
        if measured.is_empty() {
            if let Some(main) = steps::main(facts.steps()) {
                let regular: Vec<Span> = main.main().regular().map(|it| main.spans[it]).collect();
                measured.extend(measure(Subject::Step(main.from.clone()), &regular));
            }
            if let Some(span) = trace.operations_extent() {
                measured.extend(measure(Subject::Makespan, &[span]));
            }
        }
        let mut processes = trace.processes().iter();
        ComparedRun {
            report,
            is_cut: processes.any(|it| it.info.ended_well == Some(false)),
            measured,
        }
    }

    pub(super) fn find(&self, subject: &Subject) -> Option<&Measured> {
        self.measured.iter().find(|m| m.subject == *subject)
    }

    pub(super) fn variants(&self) -> impl Iterator<Item = &Subject> {
        let subjects = self.measured.iter().map(|m| &m.subject);
        subjects.filter(|s| matches!(s, Subject::Variant(_)))
    }

    pub(super) fn step(&self) -> Option<&Measured> {
        self.measured
            .iter()
            .find(|m| matches!(m.subject, Subject::Step(_)))
    }
}

/// The measured passes of each variant of a scenario's run that did something, as spans of their
/// operations. A variant that ran at several points of a sweep is several.
fn variants(passes: &Passes) -> Vec<(String, Vec<Span>)> {
    let spans = |variant| {
        let measured = passes.measured(variant);
        measured.filter_map(|i| passes.list[i].operations).collect()
    };
    let variants = passes.variants.iter().enumerate();
    variants.map(|(i, v)| (v.label(), spans(i))).collect()
}
