//! How a run of a scenario falls into variants and passes.
//!
//! The source marks them: a `Variant` range around all passes of a variant, a `Warmup` or `Repeat` range around each
//! pass. A pass ends with a wait for all devices, so its operations are those that start inside its range. A range is
//! known when it ends. While a variant still runs, names and numbers tell its passes from those of the variant before.
//! The pass that runs now is what comes after the last range.

use std::collections::BTreeSet;

use serde::Serialize;

use activity::{NameId, Ns, RangeKind, Span, What, units};
use scenario::plan::Plan;
use scenario::value::Unit;
use trace::{LaneKind, Trace};

/// One pass of a variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Index into [`Passes::variants`].
    pub variant: usize,
    /// Whether it is measured; else it warms up.
    pub is_measured: bool,
    /// Which of its kind, from 0.
    pub index: u32,
    /// The host's time around it, on the timeline's clock.
    pub span: Span,
    /// First start to greatest end of the operations that start in it.
    pub operations: Option<Span>,
    /// How many those are.
    pub ops: usize,
    /// Whether it is not known to have ended.
    pub is_open: bool,
}

impl Pass {
    /// First operation's start to the last one's end; 0 when there is none.
    pub fn makespan(&self) -> Ns {
        self.operations.map_or(0, Span::len)
    }

    /// The host's time around it.
    pub fn wall(&self) -> Ns {
        self.span.len()
    }

    /// "repeat 2", "warm-up 1".
    pub fn label(&self) -> String {
        let kind = if self.is_measured {
            "repeat"
        } else {
            "warm-up"
        };
        format!("{kind} {}", self.index + 1)
    }
}

/// A variant that has run or begun to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Variant {
    /// Its place in the plan's list of variants.
    #[serde(skip)]
    pub index: usize,
    pub name: String,
    /// The sweep's value it ran at, where a plan says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<i64>,
    /// What the sweep's values count, and the parameter that takes them.
    #[serde(skip)]
    pub unit: Unit,
    #[serde(skip)]
    param: String,
    /// Which one of its name, from 1, where several have it and no plan tells them apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nth: Option<u32>,
    /// Whether it is over.
    #[serde(skip)]
    pub is_complete: bool,
    /// The name of the variant that it is compared with, where a plan says what it is compared with.
    #[serde(skip)]
    baseline: Option<Option<String>>,
}

impl Variant {
    /// The sweep's value: "bytes=64 MiB".
    pub fn value(&self) -> Option<String> {
        let point = point_text(self.point?, self.unit);
        Some(format!("{}={point}", self.param))
    }

    /// The name with the sweep's value: "pinned bytes=64 MiB".
    pub fn label(&self) -> String {
        match (self.value(), self.nth) {
            (Some(value), _) => format!("{} {value}", self.name),
            (None, Some(nth)) => format!("{} #{nth}", self.name),
            (None, None) => self.name.clone(),
        }
    }
}

/// A value of a sweep for people.
pub fn point_text(point: i64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => units::bytes(point.max(0) as u64),
        Unit::Time => units::duration(point),
        _ => units::number(point as f64),
    }
}

/// All passes of a run, in the order in which they ran; kept up as the run grows.
#[derive(Clone, Debug, Default)]
pub struct Passes {
    pub list: Vec<Pass>,
    /// The variants that have run or begun to.
    pub variants: Vec<Variant>,
    /// When the pass that runs now began, where that is known: what ended before is none of it.
    pub known_start: Option<Ns>,
    marks: Marks,
    open: OpenPass,
}

/// Passes at the end whose operations may still arrive after the range that ends them. While the run
/// goes on only these are looked at again; when it has ended, all are.
const UNSETTLED: usize = 4;

impl Passes {
    /// The passes of a timeline that is complete.
    pub fn of_trace(trace: &Trace, plan: Option<&Plan>) -> Self {
        let mut passes = Passes::default();
        passes.update(trace, plan, false);
        passes
    }

    /// Brings the list up to date. While `is_running`, what comes after the last range is an open pass.
    pub fn update(&mut self, trace: &Trace, plan: Option<&Plan>, is_running: bool) {
        self.marks.update(trace);
        let mut known = std::mem::take(&mut self.list);
        known.retain(|pass| !pass.is_open);
        self.variants.clear();
        if self.marks.passes.is_empty() && plan.is_none() {
            return;
        }
        self.assign(trace);
        let count = self.list.len();
        for (i, pass) in self.list.iter_mut().enumerate() {
            let before = known.get(i).filter(|before| before.span == pass.span);
            let is_settled = is_running && i + UNSETTLED < count;
            let ops = match before {
                Some(before) if is_settled => before.ops,
                _ => ops_in(trace, pass.span),
            };
            pass.ops = ops;
            pass.operations = match before {
                // Rows are added and never taken away.
                Some(before) if before.ops == ops => before.operations,
                _ => hull(trace, pass.span),
            };
        }
        if is_running {
            self.add_open(trace, plan);
        }
        self.name(plan);
    }

    /// Lists the passes that have ended, each with its variant.
    fn assign(&mut self, trace: &Trace) {
        for mark in &self.marks.passes {
            let holder = self.marks.variant_of(mark);
            let name = holder.map_or(mark.name, |holder| holder.name);
            let continues = self.list.last().is_some_and(|pass| {
                let variant = &self.variants[pass.variant];
                match holder {
                    Some(holder) => {
                        variant.is_complete
                            && holder.span.start <= pass.span.start
                            && pass.span.end <= holder.span.end
                            && variant.index == holder.index as usize
                    }
                    None => {
                        !variant.is_complete
                            && variant.name == trace.names().full(name)
                            && (pass.is_measured, pass.index) < (mark.is_measured, mark.index)
                    }
                }
            });
            if !continues {
                let next = self.variants.last().map_or(0, |last| last.index + 1);
                self.variants.push(Variant {
                    index: holder.map_or(next, |holder| holder.index as usize),
                    name: trace.names().full(name).to_owned(),
                    is_complete: holder.is_some(),
                    ..Variant::default()
                });
            }
            self.list.push(Pass {
                variant: self.variants.len() - 1,
                is_measured: mark.is_measured,
                index: mark.index,
                span: mark.span,
                operations: None,
                ops: 0,
                is_open: false,
            });
        }
    }

    fn add_open(&mut self, trace: &Trace, plan: Option<&Plan>) {
        let Some(extent) = trace.extent() else {
            return;
        };
        let from = self.list.last().map_or(extent.start, |p| p.span.end);
        let from = self.known_start.map_or(from, |known| known.max(from));
        self.open.update(trace, from);
        let Some(operations) = self.open.operations else {
            return;
        };
        let planned = |index: usize| plan.and_then(|p| p.variants.get(index));
        // The variant whose passes are not all there yet; its own range is there when they are.
        let last = self.variants.last();
        let index = match last {
            Some(last) if !last.is_complete => {
                let done = self.of_variant(self.variants.len() - 1).count() as u32;
                let all = planned(last.index).map_or(u32::MAX, |v| v.warmup + v.repeat);
                last.index + usize::from(done >= all)
            }
            Some(last) => last.index + 1,
            None => 0,
        };
        let is_new = last.is_none_or(|last| last.index != index);
        if is_new {
            self.variants.push(Variant {
                index,
                name: planned(index).map_or_else(|| "…".to_owned(), |v| v.name.clone()),
                ..Variant::default()
            });
        }
        let variant = self.variants.len() - 1;
        let done = self.of_variant(variant).count() as u32;
        let warmup = planned(index).map_or(0, |v| v.warmup);
        self.list.push(Pass {
            variant,
            is_measured: done >= warmup,
            index: if done >= warmup { done - warmup } else { done },
            span: Span::new(from, extent.end.max(from)),
            operations: Some(operations),
            ops: self.open.ops,
            is_open: true,
        });
    }

    /// What a plan says of the variants, and how those of one name are told apart without one.
    fn name(&mut self, plan: Option<&Plan>) {
        for variant in &mut self.variants {
            let planned = plan
                .and_then(|plan| plan.variants.get(variant.index))
                .filter(|planned| planned.name == variant.name);
            variant.point = planned.and_then(|planned| planned.point);
            variant.baseline = planned.map(|planned| planned.baseline.clone());
            if let Some(sweep) = plan.and_then(|plan| plan.sweep.as_ref()) {
                variant.unit = sweep.unit;
                variant.param.clone_from(&sweep.param);
            }
        }
        for i in 0..self.variants.len() {
            let of_name = |v: &&Variant| v.name == self.variants[i].name;
            if self.variants[i].point.is_none() && self.variants.iter().filter(of_name).count() > 1
            {
                let before = self.variants[..i].iter().filter(of_name).count();
                self.variants[i].nth = Some(before as u32 + 1);
            }
        }
    }

    /// The pass that stands for a variant: the measured one whose makespan is the median, else the last one. It is the
    /// lower of two; of equal ones the CPU's time decides.
    pub fn representative(&self, variant: usize) -> Option<usize> {
        let mut measured: Vec<(Ns, Ns, usize)> = self
            .measured(variant)
            .map(|i| (self.list[i].makespan(), self.list[i].wall(), i))
            .collect();
        measured.sort_unstable();
        match measured.len() {
            0 => self.of_variant(variant).last(),
            n => Some(measured[(n - 1) / 2].2),
        }
    }

    /// The passes of a variant.
    pub fn of_variant(&self, variant: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.list.len()).filter(move |&i| self.list[i].variant == variant)
    }

    /// The passes of a variant that were measured and have ended.
    pub fn measured(&self, variant: usize) -> impl Iterator<Item = usize> + '_ {
        self.of_variant(variant)
            .filter(|&i| self.list[i].is_measured && !self.list[i].is_open)
    }

    /// The variant that one is compared with, at the same value of the sweep: that which the plan says,
    /// without a plan the first.
    pub fn baseline(&self, variant: usize) -> Option<usize> {
        let of = self.variants.get(variant)?;
        let named = match &of.baseline {
            Some(name) => Some(name.as_ref()?),
            None => None,
        };
        let is_alike = |v: &Variant| {
            v.point == of.point
                && v.nth.unwrap_or(1) == of.nth.unwrap_or(1)
                && named.is_none_or(|name| v.name == *name)
        };
        self.variants
            .iter()
            .position(is_alike)
            .filter(|&base| base != variant)
    }

    /// Whether others are compared with this variant.
    pub fn is_baseline(&self, variant: usize) -> bool {
        (0..self.variants.len()).any(|other| self.baseline(other) == Some(variant))
    }
}

/// A range that marks a variant or a pass.
#[derive(Clone, Copy, Debug)]
struct Mark {
    process: usize,
    span: Span,
    name: NameId,
    index: u32,
    is_measured: bool,
}

/// The ranges that mark variants and passes, by process and start.
#[derive(Clone, Debug, Default)]
struct Marks {
    variants: Vec<Mark>,
    passes: Vec<Mark>,
}

/// Processes whose passes are told apart. A scenario runs in one; the passes of many that ran at once would each be looked at with
/// the operations of all.
const MOST_PROCESSES: usize = 16;

impl Marks {
    /// Reads them again when there are more of them than before.
    fn update(&mut self, trace: &Trace) {
        let wanted = [RangeKind::Variant, RangeKind::Warmup, RangeKind::Repeat];
        let lanes = |below: usize| {
            let lanes = trace.lanes().iter().enumerate();
            let lanes = lanes.filter(move |(_, lane)| lane.key().process < below);
            lanes.filter_map(|(id, lane)| match lane.key().kind {
                LaneKind::Range { kind, .. } if wanted.contains(&kind) => Some((id, lane, kind)),
                _ => None,
            })
        };
        let all = lanes(usize::MAX).map(|(_, lane, _)| lane.key().process);
        let all: BTreeSet<usize> = all.collect();
        let below = all.iter().nth(MOST_PROCESSES).map_or(usize::MAX, |&it| it);
        let count: usize = lanes(below).map(|(_, lane, _)| lane.kept().len()).sum();
        if count == self.variants.len() + self.passes.len() {
            return;
        }
        self.variants.clear();
        self.passes.clear();
        for (id, lane, kind) in lanes(below) {
            for (_, activity) in trace.activities(id, lane.kept()) {
                let What::Range(range) = activity.what else {
                    continue;
                };
                let mark = Mark {
                    process: lane.key().process,
                    span: activity.span,
                    name: range.name,
                    index: range.index,
                    is_measured: kind == RangeKind::Repeat,
                };
                match kind {
                    RangeKind::Variant => self.variants.push(mark),
                    _ => self.passes.push(mark),
                }
            }
        }
        self.variants.sort_by_key(|m| (m.process, m.span));
        self.passes.sort_by_key(|m| (m.process, m.span));
    }

    /// The variant that has ended and that a pass lies in.
    fn variant_of(&self, pass: &Mark) -> Option<&Mark> {
        let behind = self
            .variants
            .partition_point(|v| (v.process, v.span.start) <= (pass.process, pass.span.start));
        let last = &self.variants[behind.checked_sub(1)?];
        (last.process == pass.process && pass.span.end <= last.span.end).then_some(last)
    }
}

/// The operations of the pass that runs now: what was counted is not looked at again.
#[derive(Clone, Debug, Default)]
struct OpenPass {
    from: Ns,
    /// Late records of the timeline when it was last looked at.
    late: u64,
    /// Rows of each lane that were.
    seen: Vec<usize>,
    operations: Option<Span>,
    ops: usize,
}

impl OpenPass {
    /// Takes in the operations that start at `from` or later and have come since.
    fn update(&mut self, trace: &Trace, from: Ns) {
        let is_same = self.from == from
            && self.late == trace.late()
            && self.seen.len() <= trace.lanes().len();
        if !is_same {
            *self = OpenPass {
                from,
                late: trace.late(),
                ..OpenPass::default()
            };
        }
        self.seen.resize(trace.lanes().len(), 0);
        let window = Span::new(from, Ns::MAX);
        for (id, lane) in trace.streams() {
            let seen = &mut self.seen[id];
            let rows = lane.starting(window);
            for row in rows.start.max(*seen)..rows.end {
                let span = lane.span(row);
                self.operations = Some(self.operations.map_or(span, |all| all.hull(span)));
                self.ops += 1;
            }
            *seen = lane.len();
        }
    }
}

/// How many operations start in `window`.
fn ops_in(trace: &Trace, window: Span) -> usize {
    let streams = trace.streams();
    streams.map(|(_, lane)| lane.starting(window).len()).sum()
}

/// First start to greatest end of the operations that start in `window`.
fn hull(trace: &Trace, window: Span) -> Option<Span> {
    trace
        .streams()
        .filter_map(|(_, lane)| lane.hull(lane.starting(window)))
        .reduce(Span::hull)
}
