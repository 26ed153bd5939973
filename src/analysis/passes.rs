//! How a run of a scenario falls into variants and passes, and the figures of each variant.
//!
//! The source marks them: a `Variant` range around all passes of a variant, a `Warmup` or `Repeat`
//! range around each pass. A pass ends with a wait for all devices, so its operations are those that
//! start inside its range. While a variant still runs its own range is not there yet; its repeats are
//! told from those of the variant before by the order of their numbers.

use crate::activity::{Direction, Ns, RangeKind, Span, What};
use crate::trace::{LaneKind, Trace};

use super::calls::CallIndex;
use super::figures::{self, DeviceFigures};
use super::memory::MemoryUse;
use super::tables::{self, NameRow, ShapeTime};

/// One measured pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Its number, from 0.
    pub index: u32,
    /// The host's time around it, on the timeline's clock.
    pub span: Span,
    /// Its operations' first start to last end; `None` when it has none.
    pub operations: Option<Span>,
}

impl Repeat {
    /// First operation's start to the last one's end; 0 when there is none.
    #[must_use]
    pub fn makespan(&self) -> Ns {
        self.operations.map_or(0, Span::len)
    }

    /// The host's time around it.
    #[must_use]
    pub fn wall(&self) -> Ns {
        self.span.len()
    }
}

/// One variant of a run: its passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passes {
    /// Its place in the plan's list of variants.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// All of it, warm-up included; while it runs, as far as its passes reach.
    pub span: Span,
    /// Whether it is over.
    pub is_complete: bool,
    /// Measured passes, in order; at least one.
    pub repeats: Vec<Repeat>,
    /// The repeat that describes the variant: the median by makespan, of an even number the shorter of
    /// the two in the middle.
    pub median: usize,
}

impl Passes {
    /// The repeat that describes the variant.
    #[must_use]
    pub fn median(&self) -> &Repeat {
        &self.repeats[self.median]
    }
}

/// The figures of one variant, those of its median repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantFigures {
    /// Its passes.
    pub passes: Passes,
    /// The sweep's value it ran at: the caller knows the plan and fills it in.
    pub point: Option<i64>,
    /// First operation's start to the last one's end; 0 when nothing ran on a GPU.
    pub makespan_ns: Ns,
    /// The host's time around the repeat.
    pub wall_ns: Ns,
    /// Figures by device.
    pub devices: Vec<DeviceFigures>,
    /// Time for which nothing ran on any device, within the makespan.
    pub idle_ns: Ns,
    /// Named phases of the host.
    pub phases: Vec<NameRow>,
    /// The most device memory in use at one time; `None` when the source recorded no allocation.
    pub peak_memory: Option<u64>,
    /// Kernels by name.
    pub kernels: Vec<NameRow>,
    /// Kernels by launch configuration.
    pub shapes: Vec<ShapeTime>,
}

impl VariantFigures {
    /// Sums a figure over the devices.
    fn sum<T: std::iter::Sum>(&self, figure: impl Fn(&DeviceFigures) -> T) -> T {
        self.devices.iter().map(figure).sum()
    }

    /// Operations of the GPUs.
    #[must_use]
    pub fn ops(&self) -> u64 {
        self.sum(|d| d.ops)
    }

    /// Kernels of the GPUs.
    #[must_use]
    pub fn kernel_count(&self) -> u64 {
        self.sum(|d| d.kernels)
    }

    /// Share of the devices' copy time during which a kernel ran on the same device; `None` when
    /// nothing was copied.
    #[must_use]
    pub fn overlap(&self) -> Option<f64> {
        let copy: Ns = self.sum(|d| d.copy_ns);
        (copy > 0).then(|| figures::share(self.sum(|d| d.overlap_ns), copy))
    }

    /// Share of the makespan during which nothing ran on any device; `None` when nothing ran at all.
    #[must_use]
    pub fn idle(&self) -> Option<f64> {
        (self.makespan_ns > 0).then(|| figures::share(self.idle_ns, self.makespan_ns))
    }

    /// GB/s of one direction, over all devices: bytes over the sum of the copies' durations.
    #[must_use]
    pub fn gbps(&self, direction: Direction) -> Option<f64> {
        let bytes = self.sum(|d| d.direction(direction).map_or(0, |c| c.bytes));
        let time = self.sum(|d| d.direction(direction).map_or(0, |c| c.sum_ns));
        crate::activity::units::gb_per_s(bytes, time)
    }
}

/// The figures of every variant that has a measured pass, in the order they ran.
#[must_use]
pub fn variants(trace: &Trace) -> Vec<VariantFigures> {
    let calls = CallIndex::new(trace);
    let memory = MemoryUse::of(trace, None);
    passes(trace)
        .into_iter()
        .map(|passes| of_variant(trace, &calls, &memory, passes))
        .collect()
}

/// The figures of one variant.
#[must_use]
pub fn of_variant(
    trace: &Trace,
    calls: &CallIndex,
    memory: &MemoryUse,
    passes: Passes,
) -> VariantFigures {
    let median = *passes.median();
    let window = Some(median.span);
    let busy = median.operations.map_or(0, |operations| {
        let mut spans = Vec::new();
        for_operations(trace, median.span, |span| spans.push(span));
        debug_assert!(spans.iter().all(|s| s.intersect(operations) == *s));
        tables::union(spans)
    });
    VariantFigures {
        point: None,
        makespan_ns: median.makespan(),
        wall_ns: median.wall(),
        devices: figures::of(trace, calls, window),
        idle_ns: median.makespan() - busy,
        phases: tables::ranges(trace, RangeKind::Phase, window),
        peak_memory: memory.peak(median.span),
        kernels: tables::kernels(trace, window),
        shapes: tables::shapes(trace, window),
        passes,
    }
}

/// The variants of a run that have a measured pass, in the order they ran.
#[must_use]
pub fn passes(trace: &Trace) -> Vec<Passes> {
    let mut variants = marks(trace, RangeKind::Variant);
    let mut repeats = marks(trace, RangeKind::Repeat);
    variants.sort_by_key(|m| m.span.start);
    repeats.sort_by_key(|m| m.span.start);
    let mut out: Vec<Passes> = Vec::new();
    let mut next = 0;
    for variant in &variants {
        while next < repeats.len() && repeats[next].span.start < variant.span.start {
            push_open(&mut out, trace, &repeats[next]);
            next += 1;
        }
        let from = next;
        while next < repeats.len() && repeats[next].span.start < variant.span.end {
            next += 1;
        }
        let inside: Vec<Repeat> = repeats[from..next]
            .iter()
            .map(|m| repeat(trace, m))
            .collect();
        if !inside.is_empty() {
            out.push(Passes {
                index: variant.index as usize,
                name: variant.name.clone(),
                span: variant.span,
                is_complete: true,
                median: median(&inside),
                repeats: inside,
            });
        }
    }
    for mark in &repeats[next..] {
        push_open(&mut out, trace, mark);
    }
    out
}

/// A range that marks a variant or a pass.
struct Mark {
    span: Span,
    name: String,
    index: u32,
}

fn marks(trace: &Trace, wanted: RangeKind) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (id, lane) in trace.lanes().iter().enumerate() {
        if !matches!(lane.key().kind, LaneKind::Range { kind, .. } if kind == wanted) {
            continue;
        }
        for row in 0..lane.len() {
            let activity = trace.activity(id, row);
            if let What::Range(range) = activity.what {
                marks.push(Mark {
                    span: activity.span,
                    name: trace.names().full(range.name).to_owned(),
                    index: range.index,
                });
            }
        }
    }
    marks
}

/// Adds a repeat whose variant has not ended, to the last variant when it continues it.
fn push_open(out: &mut Vec<Passes>, trace: &Trace, mark: &Mark) {
    let new = repeat(trace, mark);
    match out.last_mut() {
        Some(last)
            if !last.is_complete
                && last.name == mark.name
                && last.repeats.last().is_some_and(|r| r.index < new.index) =>
        {
            last.span = last.span.hull(new.span);
            last.repeats.push(new);
            last.median = median(&last.repeats);
        }
        last => {
            let index = last.map_or(0, |last| last.index + 1);
            out.push(Passes {
                index,
                name: mark.name.clone(),
                span: new.span,
                is_complete: false,
                repeats: vec![new],
                median: 0,
            });
        }
    }
}

fn repeat(trace: &Trace, mark: &Mark) -> Repeat {
    let mut operations: Option<Span> = None;
    for_operations(trace, mark.span, |span| {
        operations = Some(operations.map_or(span, |all| all.hull(span)));
    });
    Repeat {
        index: mark.index,
        span: mark.span,
        operations,
    }
}

fn for_operations(trace: &Trace, window: Span, mut f: impl FnMut(Span)) {
    for lane in trace.lanes() {
        if matches!(lane.key().kind, LaneKind::Stream { .. }) {
            lane.starting(window).for_each(|row| f(lane.span(row)));
        }
    }
}

/// The position of the median by makespan, then by wall time.
fn median(repeats: &[Repeat]) -> usize {
    let mut order: Vec<usize> = (0..repeats.len()).collect();
    order.sort_by_key(|&i| (repeats[i].makespan(), repeats[i].wall()));
    order
        .get((repeats.len().saturating_sub(1)) / 2)
        .copied()
        .unwrap_or(0)
}
