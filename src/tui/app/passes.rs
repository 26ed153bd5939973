//! Which stretch of the timeline is which pass of which variant of a scenario.
//!
//! Host ranges say so: `Variant` around all passes of one, `Warmup` and `Repeat` around each pass.
//! A range is known when it ends, so the pass that is running now is what comes after the last one.

use crate::activity::{Direction, Ns, RangeKind, Span, What};
use crate::scenario::plan::Plan;
use crate::trace::{LaneKind, Measure, Trace};
use crate::tui::figure::number;

/// One pass of a variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Index into [`Passes::variants`].
    pub variant: usize,
    /// Whether it is measured; else it warms up.
    pub is_measured: bool,
    /// Which of its kind, from 0.
    pub index: u32,
    /// The host's time around it.
    pub span: Span,
    /// First start to last end of the operations that start in it.
    pub operations: Option<Span>,
    /// Whether it is not known to have ended.
    pub is_open: bool,
}

/// A variant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Its value of the sweep, in words, where there is one.
    pub point: Option<i64>,
}

impl Variant {
    /// The name with the sweep's value.
    #[must_use]
    pub fn label(&self) -> String {
        match self.point {
            Some(point) => format!("{} @ {}", self.name, number(point as f64)),
            None => self.name.clone(),
        }
    }
}

/// All passes in the order in which they ran.
#[derive(Clone, Debug, Default)]
pub struct Passes {
    /// The passes.
    pub list: Vec<Pass>,
    /// The variants that have run or begun to.
    pub variants: Vec<Variant>,
}

/// Passes at the end whose operations may still arrive after the range that ends them.
const UNSETTLED: usize = 4;

impl Passes {
    /// Brings the list up to date. While `is_running`, what comes after the last range is an open pass.
    pub fn update(&mut self, trace: &Trace, plan: Option<&Plan>, is_running: bool) {
        let ranges = ranges(trace);
        let known: Vec<(Span, Option<Span>)> = self
            .list
            .iter()
            .filter(|p| !p.is_open)
            .map(|p| (p.span, p.operations))
            .collect();
        self.list.clear();
        self.variants.clear();
        if ranges.passes.is_empty() && plan.is_none() {
            return;
        }
        for (i, range) in ranges.passes.iter().enumerate() {
            let variant = ranges.variant_of(range.span);
            self.name(variant, plan, Some(&range.name));
            let settled = i + UNSETTLED < ranges.passes.len() && is_running;
            let operations = match known.get(i) {
                Some((span, operations)) if settled && *span == range.span => *operations,
                _ => operations_in(trace, range.span),
            };
            self.list.push(Pass {
                variant,
                is_measured: range.is_measured,
                index: range.index,
                span: range.span,
                operations,
                is_open: false,
            });
        }
        if is_running {
            self.add_open(trace, plan, &ranges);
        }
    }

    fn add_open(&mut self, trace: &Trace, plan: Option<&Plan>, ranges: &Ranges) {
        let Some(extent) = trace.extent() else {
            return;
        };
        let from = self.list.last().map_or(extent.start, |p| p.span.end);
        let span = Span::new(from, extent.end);
        let Some(operations) = operations_in(trace, span) else {
            return;
        };
        let variant = ranges.variants.len();
        let done = self.list.iter().filter(|p| p.variant == variant).count() as u32;
        let warmup = plan
            .and_then(|p| p.variants.get(variant))
            .map_or(0, |v| v.warmup);
        self.name(variant, plan, None);
        self.list.push(Pass {
            variant,
            is_measured: done >= warmup,
            index: if done >= warmup { done - warmup } else { done },
            span,
            operations: Some(operations),
            is_open: true,
        });
    }

    fn name(&mut self, variant: usize, plan: Option<&Plan>, name: Option<&str>) {
        while self.variants.len() <= variant {
            let known = plan.and_then(|p| p.variants.get(self.variants.len()));
            self.variants.push(Variant {
                name: known.map_or_else(|| "…".to_owned(), |v| v.name.clone()),
                point: known.and_then(|v| v.point),
            });
        }
        if let Some(name) = name {
            self.variants[variant].name = name.to_owned();
        }
    }

    /// The pass that stands for a variant: the measured one whose makespan is the median (the lower of
    /// two; of equal ones, by the host's time), as in reports; else the last one.
    #[must_use]
    pub fn representative(&self, variant: usize) -> Option<usize> {
        let mut measured: Vec<(Ns, Ns, usize)> = self
            .of(variant)
            .filter(|&i| self.list[i].is_measured && !self.list[i].is_open)
            .map(|i| (self.list[i].makespan(), self.list[i].span.len(), i))
            .collect();
        measured.sort_unstable();
        match measured.len() {
            0 => self.of(variant).last(),
            n => Some(measured[(n - 1) / 2].2),
        }
    }

    /// The passes of a variant.
    pub fn of(&self, variant: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.list.len()).filter(move |&i| self.list[i].variant == variant)
    }

    /// The median makespan of a variant's measured passes that have ended.
    #[must_use]
    pub fn makespan(&self, variant: usize) -> Option<Ns> {
        let pass = &self.list[self.representative(variant)?];
        (pass.is_measured && !pass.is_open && pass.operations.is_some()).then(|| pass.makespan())
    }
}

impl Pass {
    /// First operation's start to the last one's end.
    #[must_use]
    pub fn makespan(&self) -> Ns {
        self.operations.map_or(0, Span::len)
    }

    /// "repeat 2", "warm-up 1".
    #[must_use]
    pub fn label(&self) -> String {
        let kind = if self.is_measured {
            "repeat"
        } else {
            "warm-up"
        };
        format!("{kind} {}", self.index + 1)
    }
}

struct Marked {
    span: Span,
    name: String,
    index: u32,
    is_measured: bool,
}

struct Ranges {
    passes: Vec<Marked>,
    /// Variant ranges with their position in the plan.
    variants: Vec<(Span, usize)>,
}

impl Ranges {
    /// The position of the variant that a pass belongs to. A variant that has not ended is the next one.
    fn variant_of(&self, pass: Span) -> usize {
        self.variants
            .iter()
            .find(|(span, _)| span.start <= pass.start && pass.end <= span.end)
            .map_or(self.variants.len(), |(_, position)| *position)
    }
}

fn ranges(trace: &Trace) -> Ranges {
    let mut passes = Vec::new();
    let mut variants = Vec::new();
    for (id, lane) in trace.lanes().iter().enumerate() {
        let LaneKind::Range { kind, .. } = lane.key().kind else {
            continue;
        };
        if !matches!(
            kind,
            RangeKind::Variant | RangeKind::Warmup | RangeKind::Repeat
        ) {
            continue;
        }
        for row in 0..lane.len() {
            let activity = trace.activity(id, row);
            let What::Range(range) = activity.what else {
                continue;
            };
            if kind == RangeKind::Variant {
                variants.push((activity.span, range.index as usize));
            } else {
                passes.push(Marked {
                    span: activity.span,
                    name: trace.names().full(range.name).to_owned(),
                    index: range.index,
                    is_measured: kind == RangeKind::Repeat,
                });
            }
        }
    }
    passes.sort_by_key(|p| p.span);
    variants.sort_unstable();
    Ranges { passes, variants }
}

/// First start to last end of the operations that start in `span`.
fn operations_in(trace: &Trace, span: Span) -> Option<Span> {
    trace
        .lanes()
        .iter()
        .filter(|lane| matches!(lane.key().kind, LaneKind::Stream { .. }))
        .filter_map(|lane| {
            let first = lane.next(span.start)?;
            let last = lane.previous(span.end)?;
            (first <= last).then(|| lane.span(first).hull(lane.span(last)))
        })
        .reduce(Span::hull)
}

/// Figures of a stretch of the timeline, all devices together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Its length.
    pub length: Ns,
    /// Device time: length times devices in use.
    pub device_time: Ns,
    /// Time with nothing running.
    pub idle: Ns,
    /// Time with a kernel running.
    pub compute: Ns,
    /// Time with a copy running.
    pub copy: Ns,
    /// Time with both.
    pub overlap: Ns,
    /// GB/s of copies from host to device, over the time that they took.
    pub h2d: Option<f64>,
    /// GB/s of copies from device to host.
    pub d2h: Option<f64>,
}

impl Figures {
    /// The figures of `window`. Devices that do nothing in it do not count.
    #[must_use]
    pub fn of(trace: &Trace, window: Span) -> Self {
        let mut figures = Figures {
            length: window.len(),
            ..Figures::default()
        };
        for device in trace.devices() {
            let time = |measure| device.usage.time(measure, window);
            let busy = time(Measure::Busy);
            if busy == 0 {
                continue;
            }
            figures.device_time += window.len();
            figures.idle += window.len() - busy;
            figures.compute += time(Measure::Compute);
            figures.copy += time(Measure::Copy);
            figures.overlap += time(Measure::Overlap);
        }
        figures.h2d = rate(trace, Direction::H2D, window);
        figures.d2h = rate(trace, Direction::D2H, window);
        figures
    }

    /// A part of the device time, from 0 to 1.
    #[must_use]
    pub fn share(&self, time: Ns) -> f64 {
        ratio(time, self.device_time)
    }

    /// The share of copy time during which a kernel ran.
    #[must_use]
    pub fn hidden(&self) -> Option<f64> {
        (self.copy > 0).then(|| ratio(self.overlap, self.copy))
    }
}

/// GB/s of one direction over all devices; `None` when nothing was copied.
fn rate(trace: &Trace, direction: Direction, window: Span) -> Option<f64> {
    let (mut bytes, mut time) = (0.0, 0);
    for (index, device) in trace.devices().iter().enumerate() {
        let busy = device.usage.time(Measure::Direction(direction), window);
        if busy > 0 {
            bytes += trace.bytes_moved(index, direction, window);
            time += busy;
        }
    }
    (time > 0).then(|| bytes / time as f64)
}

fn ratio(part: Ns, whole: Ns) -> f64 {
    if whole > 0 {
        part as f64 / whole as f64
    } else {
        0.0
    }
}
