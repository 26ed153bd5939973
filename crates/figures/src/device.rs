//! The figures of a device: how long it was busy, computing, copying, both; how fast it copied; how
//! long it idled.
//!
//! Definitions, all in integer nanoseconds: a length of time is the length of a union of spans, so two
//! kernels at once count once. `span_ns` reaches from the first operation's start to the last one's
//! end, `idle_ns` is what of it is not busy. `copy_ns` counts copies of every direction, memsets are
//! not copies. `overlap_ns` is the time during which a kernel and a copy ran. GB/s is bytes over the
//! *sum* of the copies' durations: what one copy saw, not what the link carried. Gaps lie between
//! merged operations; an operation without length still ends one gap and begins the next. A gap that touches a while in which
//! recording was off is none: it counts as `not_recorded_ns`, which `idle_ns` does not hold.
//!
//! Field names are those of the JSON report and are a contract: add, don't rename.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use activity::units::{gb_per_s, share};
use activity::{Direction, NameId, Ns, Place, Span, What};
use causes::IdleCause;
use trace::{CallIndex, Engine, LaneKind, Measure, Trace, Usage, engine_of, parallel};

/// The most that the hardware can do by a profile, for "% of peak": GB/s, where nothing else is said. `None` where it does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Peaks {
    /// Host to device, pinned, large.
    pub h2d: Option<f64>,
    /// Device to host, pinned, large.
    pub d2h: Option<f64>,
    /// Within a device, each byte counted once.
    pub d2d: Option<f64>,
    /// Between two devices.
    pub p2p: Option<f64>,
    pub memory: Option<f64>,
    /// Single precision, FLOP/s.
    pub flops: Option<f64>,
}

impl Peaks {
    /// The peak of one direction.
    pub fn rate(&self, direction: Direction) -> Option<f64> {
        match direction {
            Direction::H2D => self.h2d,
            Direction::D2H => self.d2h,
            Direction::D2D => self.d2d,
            Direction::P2P => self.p2p,
            Direction::Other => None,
        }
    }
}

/// The figures of one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceFigures {
    /// The device's id.
    pub device: u32,
    /// Index into [`Trace::devices`].
    #[serde(skip)]
    pub index: usize,
    /// Its name; empty where unknown.
    pub name: String,
    /// So many GPUs of that name the machine has beside it, and a program that needs them uses none of them.
    #[serde(skip)]
    pub unused: u32,
    /// Kernels, copies, memsets and whole graphs.
    pub ops: u64,
    pub kernels: u64,
    pub memsets: u64,
    /// Launches of CUDA graphs of which only the whole was recorded: what is in them is not known. Absent when there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub graphs: u64,
    /// First operation's start to the last one's end.
    pub span_ns: Ns,
    /// Anything ran.
    pub busy_ns: Ns,
    /// Nothing ran.
    pub idle_ns: Ns,
    /// Other devices worked before its first operation; absent where it was the first.
    #[serde(skip_serializing_if = "is_zero")]
    pub before_ns: Ns,
    /// Others worked behind its last one; absent where it was the last.
    #[serde(skip_serializing_if = "is_zero")]
    pub behind_ns: Ns,
    /// Stretches without an operation that touch a while in which recording was off: neither busy nor idle.
    /// Absent when there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_recorded_ns: Ns,
    /// A kernel ran.
    pub compute_ns: Ns,
    /// A copy ran.
    pub copy_ns: Ns,
    /// A kernel and a copy ran.
    pub overlap_ns: Ns,
    /// Copies from host to device.
    pub h2d: DirectionFigures,
    /// Copies from device to host.
    pub d2h: DirectionFigures,
    /// Copies within the device.
    pub d2d: DirectionFigures,
    pub p2p: DirectionFigures,
    /// Operations of each stream id.
    pub streams: BTreeMap<u32, u64>,
    /// Streams: two processes may have the same id.
    #[serde(skip)]
    pub stream_count: usize,
    /// Stretches with nothing running.
    pub gaps: GapFigures,
    /// Why nothing ran; sums to `idle_ns`. Whoever has the dependency graph fills it in.
    pub idle: Vec<IdleCause>,
    /// Operations whose correlation id no host call of the timeline has, whichever process made it;
    /// `None` when the calls were not looked at.
    pub no_api: Option<u64>,
    /// When the operations were, in the timeline's own time.
    #[serde(skip)]
    pub span: Span,
}

/// Copies of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DirectionFigures {
    /// Copies.
    pub count: u64,
    pub bytes: u64,
    /// At least one ran.
    pub busy_ns: Ns,
    /// Bytes over the sum of durations; `None` when that sum is zero.
    #[serde(serialize_with = "four_decimals")]
    pub gbps: Option<f64>,
    /// Sum of durations.
    #[serde(skip)]
    pub sum_ns: Ns,
}

/// Stretches of a device with nothing running, between two operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GapFigures {
    /// Longer than 10 us.
    pub over_10us: u64,
    /// Longer than 100 us.
    pub over_100us: u64,
    /// Longer than 1 ms.
    pub over_1ms: u64,
    pub longest_ns: Ns,
}

impl DeviceFigures {
    /// Of a step that is marked: with the time before its first operation, from where it begins.
    pub fn since(self, begins: Option<Ns>) -> Self {
        let lead = begins.map_or(0, |begins| (self.span.start - begins).max(0));
        self.with_idle(lead, 0)
    }

    /// With so much more idle time before the first operation and behind the last.
    pub fn with_idle(self, before: Ns, behind: Ns) -> Self {
        DeviceFigures {
            span: Span::new(self.span.start - before, self.span.end + behind),
            span_ns: self.span_ns + before + behind,
            idle_ns: self.idle_ns + before + behind,
            ..self
        }
    }

    /// Copies of one direction; `None` for [`Direction::Other`], which has no figure of its own.
    pub fn direction(&self, direction: Direction) -> Option<&DirectionFigures> {
        match direction {
            Direction::H2D => Some(&self.h2d),
            Direction::D2H => Some(&self.d2h),
            Direction::D2D => Some(&self.d2d),
            Direction::P2P => Some(&self.p2p),
            Direction::Other => None,
        }
    }

    fn direction_mut(&mut self, direction: Direction) -> Option<&mut DirectionFigures> {
        match direction {
            Direction::H2D => Some(&mut self.h2d),
            Direction::D2H => Some(&mut self.d2h),
            Direction::D2D => Some(&mut self.d2d),
            Direction::P2P => Some(&mut self.p2p),
            Direction::Other => None,
        }
    }

    /// `span_ns` without what was not recorded.
    pub fn recorded_ns(&self) -> Ns {
        self.span_ns - self.not_recorded_ns
    }

    /// The time of its work. Where kernels do next to nothing, copies are the work.
    pub fn work_ns(&self) -> Ns {
        self.compute_ns.max(self.copy_ns)
    }

    /// A time as a share of the recorded one.
    pub fn part(&self, time: Ns) -> f64 {
        share(time, self.recorded_ns())
    }

    /// Share of the recorded time in which nothing ran.
    pub fn idle_share(&self) -> f64 {
        self.part(self.idle_ns)
    }

    /// Share of copy time during which a kernel ran; `None` when nothing was copied, or pages moved by themselves: kernels
    /// wait for those.
    pub fn overlap_share(&self) -> Option<f64> {
        let is_asked = self.streams.values().sum::<u64>() == self.ops;
        (self.copy_ns > 0 && is_asked).then(|| share(self.overlap_ns, self.copy_ns))
    }
}

/// The figures of the operations that *start* within `window` (of all of them without one), for every
/// device that has one, by device id.
pub fn count(trace: &Trace, calls: Option<&CallIndex>, window: Option<Span>) -> Vec<DeviceFigures> {
    of_each(trace, calls, &|_| window)
}

/// The same, where each device (by its index) has a window of its own.
pub fn of_each(
    trace: &Trace,
    calls: Option<&CallIndex>,
    window: &(dyn Fn(usize) -> Option<Span> + Sync),
) -> Vec<DeviceFigures> {
    if window(0).is_none() {
        trace::made("figures");
    }
    let records = trace.streams().map(|(_, lane)| lane.len()).sum();
    let devices: Vec<usize> = (0..trace.devices().len()).collect();
    let of_each = parallel::map(records, &devices, |&device| {
        one(trace, calls, window(device), device)
    });
    let mut all: Vec<DeviceFigures> = of_each.into_iter().flatten().collect();
    all.sort_by_key(|f| f.device);
    if let Some(hull) = all.iter().map(|f| f.span).reduce(Span::hull) {
        for f in &mut all {
            (f.before_ns, f.behind_ns) = (f.span.start - hull.start, hull.end - f.span.end);
        }
    }
    if let [only] = &mut all[..] {
        only.unused = unused(trace, only);
    }
    all
}

/// A program that runs for less has no use for a second GPU; nor has one that computes for a smaller part of that.
const LONG: Ns = 1_000_000_000;
const COMPUTES: f64 = 0.7;

/// See [`DeviceFigures::unused`]. Of a job of several processes a recording may hold one.
fn unused(trace: &Trace, only: &DeviceFigures) -> u32 {
    let alike = trace.devices()[only.index].info.alike;
    let computes = only.span_ns >= LONG && only.part(only.compute_ns) >= COMPUTES;
    let is_one = || {
        let names = trace.names();
        let mut names = (0..names.len() as NameId).map(|id| names.full(id));
        let is_of_job = |it: &str| it.starts_with("MPI_") || it.contains("nccl");
        trace.processes().len() == 1 && trace.devices().len() == 1 && !names.any(is_of_job)
    };
    match alike > 1 && computes && is_one() {
        true => alike - 1,
        false => 0,
    }
}

/// The same of one device, by its index.
pub fn of_device(trace: &Trace, device: usize, window: Option<Span>) -> Option<DeviceFigures> {
    one(trace, None, window, device)
}

fn one(
    trace: &Trace,
    calls: Option<&CallIndex>,
    window: Option<Span>,
    index: usize,
) -> Option<DeviceFigures> {
    let keeps = window.is_some() || trace.evicted().is_some();
    let mut tally = Tally::default();
    for (id, lane) in trace.streams_of(index) {
        let rows = lane.rows_in(window);
        let LaneKind::Stream { stream, .. } = lane.key().kind else {
            continue;
        };
        if rows.is_empty() {
            continue;
        }
        if stream < Place::EVICTED {
            *tally.figures.streams.entry(stream).or_default() += rows.len() as u64;
            tally.figures.stream_count += 1;
        }
        for (_, activity) in trace.activities(id, rows) {
            tally.take(activity.span, &activity.what, keeps);
            if let Some(calls) = calls {
                let is_unknown = !calls.is_known(activity.correlation);
                *tally.figures.no_api.get_or_insert(0) += u64::from(is_unknown);
            }
        }
    }
    if tally.figures.ops == 0 {
        return None;
    }
    let is_partial = trace.has_unrecorded();
    let device = &trace.devices()[index];
    let is_unrecorded = |gap: Span| is_partial && trace.is_unrecorded(index, gap);
    // What a device's usage says of what was let go stands by itself in the report.
    let usage = (window.is_none() && trace.evicted().is_none()).then_some(&device.usage);
    let mut figures = tally.finish(usage, is_unrecorded);
    figures.index = index;
    figures.device = device.info.id;
    figures.name.clone_from(&device.info.name);
    Some(figures)
}

/// Operations that are added to a usage at once: it sorts as many, in memory of its own.
const AT_ONCE: usize = 1 << 16;

/// What is gathered of one device.
#[derive(Default)]
struct Tally {
    figures: DeviceFigures,
    /// What the operations add up to, where the device's own usage holds more than was asked for.
    own: Usage,
    /// Those that are still to be added to it.
    spans: Vec<(Span, Engine)>,
    /// Operations without length, which a usage does not hold.
    instants: Vec<Ns>,
}

impl Tally {
    fn take(&mut self, span: Span, what: &What, keep: bool) {
        let figures = &mut self.figures;
        // Lanes of streams hold nothing else.
        let Some(engine) = engine_of(what) else {
            return;
        };
        match what {
            What::Kernel(_) => figures.kernels += 1,
            What::Memset(_) => figures.memsets += 1,
            What::Graph(_) => figures.graphs += 1,
            What::Copy(copy) => {
                if let Some(direction) = figures.direction_mut(copy.direction) {
                    direction.count += 1;
                    direction.bytes += copy.bytes;
                    direction.sum_ns += span.len();
                }
            }
            _ => {}
        }
        figures.span = if figures.ops == 0 {
            span
        } else {
            figures.span.hull(span)
        };
        figures.ops += 1;
        if span.is_empty() {
            self.instants.push(span.start);
        } else if keep {
            self.spans.push((span, engine));
            if self.spans.len() >= AT_ONCE {
                self.add();
            }
        }
    }

    fn add(&mut self) {
        self.own.add(&mut self.spans);
        self.spans.clear();
    }

    /// Works the lengths of time out, from `usage` when that holds just these operations.
    fn finish(
        mut self,
        usage: Option<&Usage>,
        is_unrecorded: impl Fn(Span) -> bool,
    ) -> DeviceFigures {
        self.add();
        let usage = usage.unwrap_or(&self.own);
        let mut figures = self.figures;
        figures.span_ns = figures.span.len();
        figures.busy_ns = usage.total(Measure::Busy);
        figures.compute_ns = usage.total(Measure::Compute);
        figures.copy_ns = usage.total(Measure::Copy);
        figures.overlap_ns = usage.total(Measure::Overlap);
        for direction in Direction::NAMED {
            if let Some(d) = figures.direction_mut(direction) {
                d.busy_ns = usage.total(Measure::Direction(direction));
                d.gbps = gb_per_s(d.bytes, d.sum_ns);
            }
        }
        self.instants.sort_unstable();
        (figures.gaps, figures.not_recorded_ns) =
            gaps(usage, figures.span, &self.instants, is_unrecorded);
        figures.idle_ns = figures.span_ns - figures.busy_ns - figures.not_recorded_ns;
        figures
    }
}

/// Counts the gaps between merged operations: the stretches of `usage`, and `instants` in order. Those that are not
/// recorded are no gaps; their length is returned beside.
fn gaps(
    usage: &Usage,
    span: Span,
    instants: &[Ns],
    is_unrecorded: impl Fn(Span) -> bool,
) -> (GapFigures, Ns) {
    let mut found = GapFigures::default();
    let mut not_recorded = 0;
    let mut stretches = usage.stretches(Measure::Busy, span).peekable();
    let mut instants = instants.iter().map(|&t| Span::at(t)).peekable();
    let mut end = span.start;
    loop {
        let next = match (stretches.peek(), instants.peek()) {
            (Some(a), Some(b)) if b.start < a.start => instants.next(),
            (Some(_), _) => stretches.next(),
            (None, _) => instants.next(),
        };
        let Some(next) = next else {
            return (found, not_recorded);
        };
        let mut gap = next.start - end;
        if gap > 0 && is_unrecorded(Span::new(end, next.start)) {
            not_recorded += gap;
            gap = 0;
        }
        found.over_10us += u64::from(gap > 10_000);
        found.over_100us += u64::from(gap > 100_000);
        found.over_1ms += u64::from(gap > 1_000_000);
        found.longest_ns = found.longest_ns.max(gap);
        end = end.max(next.end);
    }
}

fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The report gives rates to four decimals, rounded from the exact decimal form (as Python's `round` does).
fn four_decimals<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    let rounded = value.map(|value| format!("{value:.4}").parse().unwrap_or(value));
    rounded.serialize(serializer)
}
