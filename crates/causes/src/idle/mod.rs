//! Why nothing ran: each gap cut into pieces, each piece with its cause, its culprit and how sure that is.
//!
//! From the operation that ends a gap the walk goes back along the edges of the [dependency graph](crate::graph) that
//! bound each start. What of that way lies in the gap are the gap's pieces, and they sum to it. Beyond the gap's start
//! the walk goes on to the GPU operation that it reaches. The sync passed there is the pieces' *root*, why nothing had
//! been queued ahead. `docs/ANSWERS.md` explains it, and has the table of causes.
//!
//! `kinds` is the table of causes, and `groups` says what each is added up under. `gaps` finds them, and `explain` asks
//! for one. `locks` finds calls that waited for another's. `walk` walks, `sum` adds up. `limits` has what the timeline's own launches and queues take, and `host` what a thread did between
//! calls. `missing` finds operations that ran without leaving a record, `slices` turns of another process, and `staging` what
//! runtimes stage. `seen` has the source lines that samples saw meanwhile, and `words` says them.

mod explain;
mod gaps;
mod groups;
mod host;
mod kinds;
mod limits;
mod locks;
mod missing;
mod seen;
mod slices;
mod staging;
mod sum;
#[cfg(test)]
mod tests;
mod walk;
mod words;

pub use explain::explain;
use gaps::One;
pub use gaps::Pieces;
pub use groups::{LAUNCH_GAP_MAX, is_mpi};
pub use kinds::{Bound, Cause, Certainty, Culprit, Gap, Group, Piece, Shares};
pub use missing::{LeftOut, launched};
pub use slices::Turns;
pub use sum::{IdleCause, sum_by};
pub use words::Explanation;

use std::sync::{Arc, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::first_use::{self, FirstUse};
use crate::graph::{CallId, Engine, Graph, OpId};
use activity::units::share;
use activity::{Direction, Metric, Ns, Span, What};
use trace::{LaneId, LaneKey, LaneKind, Measure, Trace, made};

/// So many operations are looked at together: what is known of them stays in a processor's cache.
const STRETCH: usize = 1 << 14;

/// What answers for gaps.
#[derive(Clone, Debug)]
pub struct Causes<'a> {
    pub(crate) trace: &'a Trace,
    graph: &'a Graph,
    ready: Arc<Ready>,
}

/// What is known beside the graph to answer for gaps. Made once for many questions.
#[derive(Debug)]
pub struct Ready {
    limits: limits::Limits,
    host: host::Host,
    /// Operations before which others ran that left no record, with the call that shows it.
    missing: FxHashMap<OpId, CallId>,
    /// Processes of which next to all calls were left out of the file.
    left_out: Vec<LeftOut>,
    gaps: gaps::Gaps,
    /// Launches in which the code of their kernel is loaded.
    loading: FxHashSet<CallId>,
    /// What was done for the first time, once somebody asked.
    first: OnceLock<FirstUse>,
    /// Whether stacks of some process were sampled.
    is_sampled: bool,
    /// Whether those saw a runtime stage copies, once somebody asked.
    stages: OnceLock<bool>,
    /// Calls and operations that a walk goes back through.
    steps: usize,
    /// By device: another process, which leaves no record, has it by turns.
    turns: Vec<OnceLock<Option<Turns>>>,
}

impl Ready {
    pub fn new(trace: &Trace, graph: &Graph) -> Self {
        made("causes");
        Ready {
            limits: limits::Limits::of(graph),
            host: host::Host::of(trace),
            missing: missing::find(trace, graph),
            left_out: LeftOut::find(trace, graph),
            gaps: gaps::Gaps::new(trace.devices().len()),
            loading: first_use::loading(trace, graph),
            first: OnceLock::new(),
            is_sampled: trace.processes().iter().any(|it| !it.sampled.is_empty()),
            stages: OnceLock::new(),
            steps: match uses_many_devices(trace) {
                true => STEPS,
                false => usize::MAX,
            },
            turns: vec![OnceLock::new(); trace.devices().len()],
        }
    }
}

impl Causes<'_> {
    /// Whether a process has so many devices that no gap is explained to its end.
    pub fn ends_early(&self) -> bool {
        self.ready.steps < usize::MAX
    }
}

/// No process has more devices. In each one's gaps it launches to all the others: there are as many steps as launches times devices.
const DEVICES: usize = 16;
const STEPS: usize = 32;

fn uses_many_devices(trace: &Trace) -> bool {
    let mut used: FxHashMap<usize, FxHashSet<usize>> = FxHashMap::default();
    for key in trace.streams().map(|(_, lane)| lane.key()) {
        if let Some(device) = key.kind.device() {
            used.entry(key.process).or_default().insert(device);
        }
    }
    used.values().any(|devices| devices.len() > DEVICES)
}

/// The multiprocessors are busy for so much more of the time than anything recorded ran that others had them.
const OTHERS_SHARE: f64 = 0.1;

/// Whether NVML names another program on a device, and its multiprocessors are busier than all that was recorded can make them.
fn is_shared(trace: &Trace, device: usize) -> bool {
    let usage = &trace.devices()[device].usage;
    let readings = trace
        .readings(device)
        .filter(|it| it.others().next().is_some());
    readings.zip(usage.span()).is_some_and(|(it, span)| {
        let own = share(usage.total(Measure::Compute), span.len());
        it.level(Metric::Sm, span)
            .is_some_and(|it| it.mean >= own + OTHERS_SHARE)
    })
}

impl<'a> Causes<'a> {
    /// Gets ready for questions about `trace`, whose graph is `graph`.
    pub fn new(trace: &'a Trace, graph: &'a Graph) -> Self {
        Self::ready(trace, graph, &Arc::new(Ready::new(trace, graph)))
    }

    /// The same of what was made ready before for this graph.
    pub fn ready(trace: &'a Trace, graph: &'a Graph, ready: &Arc<Ready>) -> Self {
        Causes {
            trace,
            graph,
            ready: Arc::clone(ready),
        }
    }

    /// The graph that answers.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// What the program did for the first time, wherever in its timeline.
    pub fn first_use(&self) -> &FirstUse {
        let of = || FirstUse::of(self.trace, self.graph);
        self.ready.first.get_or_init(of)
    }

    /// Whether a piece of the gap before an operation is what only the first of its name takes.
    pub fn is_first(&self, next: OpId, piece: &Piece) -> bool {
        match piece.culprit {
            _ if piece.cause == Cause::Load || self.makes(next, piece) => true,
            _ if self.first_use().has_operator(piece.span) => true,
            Culprit::Call(call) => self.is_slow_first(call),
            _ => false,
        }
    }

    /// Whether a piece is the CPU's own work before a kernel that runs for the first time, or the profiler's in a slow first call.
    /// Behind a copy back the CPU may work on what came. Where stacks were sampled they say on what.
    pub fn is_once(&self, next: OpId, piece: &Piece) -> bool {
        let first = self.first_use();
        let name = || Some(self.trace.names().full(self.host_name(piece.culprit)?));
        let waits = |name: &str| first_use::is_system_wait(name) || name.ends_with("sleep");
        match piece.cause {
            Cause::Profiler => first.has_call_around(piece.span),
            Cause::Host => {
                first.launches.contains(&next)
                    && !name().is_some_and(waits)
                    && !self.comes_back_before(next)
                    && self
                        .trace
                        .processes()
                        .iter()
                        .all(|it| it.sampled.is_empty())
            }
            _ => false,
        }
    }

    /// The operation that begins before another one on its device.
    fn before(&self, next: OpId) -> Option<OpId> {
        let ops = &self.graph.ops;
        let (before, _) = ops.around(self.device(next)?, ops.start[next as usize]);
        before.last().copied()
    }

    /// Whether the operation before another one on its device brings something back.
    fn comes_back_before(&self, next: OpId) -> bool {
        let before = self.before(next);
        let what = before.map(|op| self.graph.what(self.trace, op));
        matches!(what, Some(What::Copy(it)) if it.direction == Direction::D2H)
    }

    /// Whether a call was slow because it did something for the first time.
    fn is_slow_first(&self, call: CallId) -> bool {
        let calls = &self.graph.calls;
        self.first_use().has_call(calls.span(call), calls.at(call))
    }

    /// Whether a piece before an operation is work of the CPU that made its kernel ready.
    pub fn makes(&self, next: OpId, piece: &Piece) -> bool {
        let made = self.first_use().made.get(&next);
        made.is_some_and(|made| made.start <= piece.span.start && piece.span.end <= made.end)
    }

    /// What an ordinary launch onto an engine takes here at most: the 99th percentile, no more than
    /// [`LATENCY_MAX`](crate::graph::LATENCY_MAX).
    pub fn latency(&self, engine: Engine) -> Ns {
        self.ready.limits.latency(engine)
    }

    /// The stretches of a device (index into [`Trace::devices`]) with nothing running. They lie between the first and
    /// the last of the operations that start within `window`, or of all.
    pub fn gaps_of_device(&self, device: usize, window: Option<Span>) -> impl Iterator<Item = Gap> {
        let gaps = self.gaps(device, window);
        gaps.map(|(gap, _)| gap)
            .filter(move |gap| self.is_recorded(device, *gap))
    }

    fn gaps(
        &self,
        device: usize,
        window: Option<Span>,
    ) -> impl Iterator<Item = (Gap, Option<One>)> {
        // Whoever asks for all asks for them again.
        if window.is_none() && !self.ready.gaps.has_all(device) {
            self.idle_of_each(&[device]);
        }
        self.ready.gaps.find(self.graph, device, window)
    }

    /// The same, each with its pieces: see [`Causes::pieces`].
    pub fn gaps_with_pieces(
        &self,
        device: usize,
        window: Option<Span>,
    ) -> impl Iterator<Item = (Gap, Pieces)> {
        let gaps = self.gaps(device, window);
        gaps.filter(move |(gap, _)| self.is_recorded(device, *gap))
            .map(|(gap, one)| (gap, gaps::pieces(gap, one, || self.pieces(gap))))
    }

    /// The same of figures that count over `span`. Whole steps have the pause behind their last operation
    /// ([`Causes::pause_behind`]). One that is marked has the time from its beginning (`figures::steps::begins`).
    pub fn gaps_over(
        &self,
        device: usize,
        window: Option<Span>,
        span: Span,
    ) -> impl Iterator<Item = (Gap, Pieces)> {
        let until = span.end;
        let first = self.graph.ops.of_device(device).first();
        let lead = first.filter(|_| window.is_none()).map(|&next| Gap {
            span: Span::new(
                span.start,
                self.graph.ops.start[next as usize].max(span.start),
            ),
            next,
        });
        let lead = lead.filter(|gap| !gap.span.is_empty() && self.is_recorded(device, *gap));
        let lead = lead.map(|gap| (gap, self.pieces(gap).into()));
        let steps = window.filter(|window| window.end == until);
        let over = steps.and_then(|steps| self.gap_over_end(device, steps));
        let pause = over.map(|gap| {
            let span = Span::new(gap.span.start, until);
            let clipped = self.pieces(gap).into_iter().map(|piece| Piece {
                span: piece.span.intersect(span),
                ..piece
            });
            let pieces = clipped.filter(|piece| !piece.span.is_empty()).collect();
            (Gap { span, ..gap }, pieces)
        });
        let gaps = self.gaps_with_pieces(device, window);
        lead.into_iter().chain(gaps).chain(pause)
    }

    /// How long nothing runs behind the last operation of whole steps, until the next step begins.
    pub fn pause_behind(&self, device: usize, steps: Span) -> Ns {
        let gap = self.gap_over_end(device, steps);
        gap.map_or(0, |gap| steps.end - gap.span.start)
    }

    fn gap_over_end(&self, device: usize, steps: Span) -> Option<Gap> {
        let ops = &self.graph.ops;
        let of_device = ops.of_device(device);
        let behind = of_device.partition_point(|&op| ops.start[op as usize] < steps.end);
        let ends = gaps::within(self.graph, of_device, steps).iter();
        let end = ends.map(|&op| ops.end[op as usize]).max()?;
        let next = *of_device.get(behind)?;
        let gap = Gap {
            span: Span::new(end, ops.start[next as usize].max(end)),
            next,
        };
        (end < steps.end && self.is_recorded(device, gap)).then_some(gap)
    }

    /// Whether nothing ran there: else nobody knows.
    fn is_recorded(&self, device: usize, gap: Gap) -> bool {
        !self.trace.is_unrecorded(device, gap.span)
    }

    /// The gap's pieces in order of time. They sum to it.
    pub fn pieces(&self, gap: Gap) -> Vec<Piece> {
        let mut pieces = self.walked(gap);
        self.put_turns(gap, &mut pieces);
        self.put_staging(gap, &mut pieces);
        pieces
    }

    fn walked(&self, gap: Gap) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.walk(gap, &mut pieces);
        pieces
    }

    /// The idle time of a device by cause, culprit and root, most time first. Sums to the idle time of the
    /// operations that start within `window`, or of all.
    pub fn idle(&self, device: usize, window: Option<Span>) -> Vec<IdleCause> {
        if window.is_none() && !self.ready.gaps.has_all(device) {
            return self.idle_of_each(&[device]).swap_remove(0);
        }
        let mut sums = sum::Sums::default();
        for (gap, pieces) in self.gaps_with_pieces(device, window) {
            for piece in &*pieces {
                sums.add(self, gap, piece);
            }
        }
        sums.rows(self)
    }

    /// The same of all that several devices did. Operations lie in memory in order of time, whatever their device: so
    /// all devices go through them together, in short stretches.
    pub fn idle_of_each(&self, devices: &[usize]) -> Vec<Vec<IdleCause>> {
        let ops = &self.graph.ops;
        let new = |device: &usize| {
            let ops = ops.of_device(*device);
            (ops, gaps::Walked::with_capacity(ops.len()))
        };
        let mut each: Vec<_> = devices.iter().map(new).collect();
        let mut pieces = Vec::new();
        for until in (0..ops.len().div_ceil(STRETCH)).map(|stretch| (stretch + 1) * STRETCH) {
            for ((left, walked), &device) in each.iter_mut().zip(devices) {
                let (here, behind) =
                    left.split_at(left.partition_point(|&op| (op as usize) < until));
                *left = behind;
                for &next in here {
                    let Some(ends) = walked.next(self.graph, next) else {
                        continue;
                    };
                    let gap = ends.gap(self.graph);
                    pieces.clear();
                    if self.is_recorded(device, gap) {
                        self.walk(gap, &mut pieces);
                        self.put_turns(gap, &mut pieces);
                        self.put_staging(gap, &mut pieces);
                    }
                    for piece in &pieces {
                        walked.sums.add(self, gap, piece);
                    }
                    walked.add(ends, &pieces);
                }
            }
        }
        let each = each.into_iter().zip(devices);
        let kept = each.map(|((_, walked), &device)| self.ready.gaps.keep(device, walked));
        kept.map(|sums| sums.rows(self)).collect()
    }

    /// The idle time of a device within `span` by group, as a legend has it.
    pub fn shares_within(&self, device: usize, span: Span) -> Shares {
        let mut shares = Shares::default();
        for (gap, one) in self.gaps(device, None) {
            if gap.span.end <= span.start || !self.is_recorded(device, gap) {
                continue;
            }
            if gap.span.start >= span.end {
                break;
            }
            for piece in gaps::pieces(gap, one, || self.pieces(gap)) {
                shares[self.group(gap, &piece) as usize] += piece.span.intersect(span).len().max(0);
            }
        }
        shares
    }

    /// The idle time within `spans`, which are in order and apart, of all devices that a process has
    /// operations on, by cause, most time first.
    pub fn idle_of_process(&self, process: usize, spans: &[Span]) -> Vec<IdleCause> {
        let streams = self.trace.streams_in(process);
        let mut devices: Vec<usize> = streams.filter_map(|it| it.1.key().kind.device()).collect();
        devices.sort_unstable();
        devices.dedup();
        self.idle_within(&devices, spans)
    }

    /// The idle time within `spans`, which are in order and apart, of these devices (indices into
    /// [`Trace::devices`]) by cause, most time first.
    pub fn idle_within(&self, devices: &[usize], spans: &[Span]) -> Vec<IdleCause> {
        let mut sums = sum::Sums::default();
        for &device in devices {
            for (gap, one) in self.gaps(device, None) {
                let first = spans.partition_point(|s| s.end <= gap.span.start);
                let near = &spans[first..];
                let near = &near[..near.partition_point(|s| s.start < gap.span.end)];
                if near.is_empty() || !self.is_recorded(device, gap) {
                    continue;
                }
                for piece in gaps::pieces(gap, one, || self.pieces(gap)) {
                    for span in near {
                        let span = piece.span.intersect(*span);
                        if !span.is_empty() {
                            sums.add(self, gap, &Piece { span, ..piece });
                        }
                    }
                }
            }
        }
        sums.rows(self)
    }
}

/// Whether an overhead is the driver's for loading or compiling GPU code: its record says so.
pub fn is_loading(name: &str) -> bool {
    host::taker(name) == Some(host::Taker::Load)
}

/// What the profiler itself took of a stretch, by its records.
pub fn profilers(trace: &Trace, within: Span) -> impl Iterator<Item = Span> {
    let kind = LaneKind::Overhead;
    let lane = move |process| trace.lane_id(LaneKey { process, kind });
    let lanes = (0..trace.processes().len()).filter_map(lane);
    let rows = move |id: LaneId| trace.lanes()[id].rows(within).map(move |row| (id, row));
    let all = lanes.flat_map(rows);
    let is_own = |&(id, row): &(usize, usize)| {
        let name = trace.what(id, row).name().map(|it| trace.names().full(it));
        name.and_then(host::taker) == Some(host::Taker::Profiler)
    };
    let own = all.filter(is_own);
    own.map(move |(id, row)| trace.lanes()[id].span(row).intersect(within))
}

/// Whether a gap is the profiler's own time for half or more: nobody looks for that.
pub fn is_profilers(trace: &Trace, gap: Span) -> bool {
    let own: Ns = profilers(trace, gap).map(|it| it.len().max(0)).sum();
    2 * own >= gap.len().max(1)
}
