//! Where the time of a device went: classes that sum to it.

use std::hash::Hash;
use std::ops::AddAssign;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Bound, STALL_SHARE, path};
use activity::text::{NAME_MAX, cut_name};
use activity::units::{count, percent, share};
use activity::{Direction, NameId, Ns, ShapeId, Span, What};
use causes::graph::{CallId, NONE, OpId};
use causes::stacks::StackCounts;
use causes::{
    Cause, Causes, Certainty, Culprit, Gap, Group, Piece, Shares, first_use, is_mpi, sum_by,
};
use figures::DeviceFigures;
use figures::collectives::Collectives;
use figures::steps::Steps;
use jobs::JobAnalysis;
use trace::{LaneId, Trace, short};

/// One operation that takes less says nothing of a program.
const SHORT: Ns = 1_000_000;

/// So does what a few operations take, where that is shorter.
const TOO_LITTLE: Ns = 100_000;

/// The time of a device (or of several, added up) by what bounds it.
#[derive(Clone, Debug, Default)]
pub(super) struct Split {
    /// First operation to last.
    pub span: Span,
    /// The same of each device, added up.
    pub sum: Ns,
    /// What of it was not recorded: no part of any share.
    pub not_recorded: Ns,
    /// Idle time as the legend has it.
    pub groups: Shares,
    /// By what bounds it; it sums to the device's time. `Nothing` is the profiler's own, where records are missing, and what
    /// was not recorded.
    pub times: [Ns; Bound::Unknown as usize + 1],
    /// What of `Peer` collective kernels take, but `waiting`.
    pub collective: Ns,
    /// Waiting inside collectives for ranks that came later, with nothing beside it: a part of `Peer`.
    pub waiting: Ns,
    /// The same by the rank that came last (index into [`jobs::Alignment::ranks`]).
    pub waited_for: FxHashMap<usize, Ns>,
    /// What only first calls take, and loading code, of all of it and by what that was.
    pub cold: FxHashMap<CpuWork, Ns>,
    /// Idle time in `Host` by what the host was at.
    pub host_by: FxHashMap<CpuWork, Ns>,
    /// Idle time in `Sync` by the waiting call.
    pub sync_by: FxHashMap<NameId, Ns>,
    /// What the launching threads were seen doing in idle time, by class.
    pub seen: FxHashMap<Bound, StackCounts>,
    /// Idle time in `Host` of which the cause is likely, and no fact.
    pub likely: Ns,
    /// Idle time in which kernels are likely compiled: no record shows it.
    pub unseen: Ns,
    /// Waits of `Sync`.
    pub syncs: u64,
    /// Of the time before pages of managed memory come back, what lies behind all kernels.
    pub pages_behind: Ns,
    /// Kernels, copies to and from memory of the host, and others.
    pub counts: [u64; 3],
    /// All operations, memsets too.
    pub operations: u64,
    /// Kernels that CUDA graphs launched.
    pub in_graphs: u64,
    /// Kernels by name: time.
    pub kernels: FxHashMap<NameId, Ns>,
    /// Time of CUDA graphs of which only the whole was recorded.
    pub graphs: Ns,
    /// What memsets set.
    pub memset_bytes: u64,
    /// The shapes that kernels were launched with.
    pub shapes: FxHashSet<ShapeId>,
    /// Time in which a copy of each direction ran.
    pub directions: [Ns; Direction::NAMED.len()],
    /// Time in which any kernel ran (but `waiting`), in which any copy ran, and both.
    pub computing: Ns,
    /// See `computing`.
    pub copying: Ns,
    /// See `computing`.
    pub both: Ns,
    /// Launched operations waited so long for another process to leave the GPU.
    pub turns: Ns,
    /// And so long for no recorded reason.
    pub late: Ns,
    /// Idle time without a cause before operations of graphs that were launched earlier.
    pub of_graphs: Ns,
    /// The least that it could take.
    pub ideal: Ns,
}

/// What the host was at while the GPU was idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum CpuWork {
    /// A CUDA call, a CPU op, a range.
    Name(NameId),
    /// Loading GPU code.
    Load,
    /// Building a kernel before its first launch.
    Build,
    /// Anything before a kernel runs for the first time.
    Once,
    /// Managed memory, whose pages come back to it.
    Pages,
    /// Processes that begin with CUDA meanwhile.
    Late,
    /// Nothing that is recorded.
    Untraced,
}

impl Split {
    pub(super) fn of(
        trace: &Trace,
        causes: &Causes<'_>,
        f: &DeviceFigures,
        window: Option<Span>,
        ranks: Option<&JobAnalysis>,
    ) -> Split {
        let mut split = Split {
            span: f.span,
            sum: f.span_ns,
            computing: f.compute_ns,
            copying: f.copy_ns,
            both: f.overlap_ns,
            not_recorded: f.not_recorded_ns,
            counts: [
                f.kernels,
                f.h2d.count + f.d2h.count,
                f.d2d.count + f.p2p.count,
            ],
            operations: f.ops,
            ..Split::default()
        };
        *split.at(Bound::Nothing) = f.not_recorded_ns;
        for (time, direction) in split.directions.iter_mut().zip(Direction::NAMED) {
            *time = f.direction(direction).map_or(0, |d| d.busy_ns);
        }
        split.busy(f);
        let in_collectives = split.waiting(ranks, f, window);
        let alone = Collectives::of(trace, f, window).alone;
        split.collective = (alone - split.waiting).clamp(0, split.time_of(Bound::Compute));
        *split.at(Bound::Compute) -= split.collective;
        *split.at(Bound::Peer) += split.collective;
        split.kernels(trace, f, window, &in_collectives);
        let mut waits = FxHashSet::default();
        for (gap, pieces) in causes.gaps_over(f.index, window, f.span) {
            split.gap((trace, causes), &mut waits, (gap, &pieces));
        }
        if let Some(others) = causes.turns(f.index).filter(|_| split.turns > 0) {
            split.turns += others.in_kernels(f.span).sum::<Ns>();
        }
        split.syncs = waits.len() as u64;
        let graph = causes.graph();
        let ops = graph.ops.of_device(f.index);
        let from = |time: Ns| ops.partition_point(|&op| graph.ops.start[op as usize] < time);
        let until = if f.span_ns == 0 {
            f.span.end + 1
        } else {
            f.span.end
        };
        let ops = ops[from(f.span.start)..from(until)].iter();
        let is_node = |&&op: &&OpId| {
            graph.ops.is_graph(op) && matches!(graph.what(trace, op), What::Kernel(_))
        };
        let in_graphs = ops.clone().filter(is_node);
        split.in_graphs = (in_graphs.count() as u64).min(f.kernels);
        let engines = match trace.devices()[f.index].info.copy_engines {
            1 => f.h2d.busy_ns + f.d2h.busy_ns,
            _ => split.directions.iter().copied().max().unwrap_or(0),
        };
        split.ideal = f
            .compute_ns
            .max(engines)
            .max(path::longest_chain(graph, f.index, f.span))
            .min(f.recorded_ns());
        split
    }

    /// Of the steps of the main kind that are not odd; `None` where nothing ran in them on the device.
    pub(super) fn of_steps(
        trace: &Trace,
        causes: &Causes<'_>,
        device: usize,
        steps: &Steps,
        ranks: Option<&JobAnalysis>,
    ) -> Option<Split> {
        let of = |window: Span| {
            let f = figures::of_device(trace, device, Some(window))?;
            let f = f.with_idle(0, causes.pause_behind(device, window));
            Some(Split::of(trace, causes, &f, Some(window), ranks))
        };
        let stretches = steps.stretches(steps.main().regular());
        let splits = stretches.into_iter().filter_map(of);
        splits.reduce(|before, after| {
            let ideal = before.ideal + after.ideal;
            Split {
                ideal,
                ..before.add(after)
            }
        })
    }

    /// Several devices beside each other.
    pub(super) fn add(mut self, other: Split) -> Split {
        for (into, from) in [
            (&mut self.sum, other.sum),
            (&mut self.waiting, other.waiting),
            (&mut self.collective, other.collective),
            (&mut self.not_recorded, other.not_recorded),
            (&mut self.computing, other.computing),
            (&mut self.copying, other.copying),
            (&mut self.both, other.both),
            (&mut self.graphs, other.graphs),
            (&mut self.turns, other.turns),
            (&mut self.late, other.late),
            (&mut self.of_graphs, other.of_graphs),
            (&mut self.likely, other.likely),
            (&mut self.unseen, other.unseen),
            (&mut self.pages_behind, other.pages_behind),
        ] {
            *into += from;
        }
        add_each(&mut self.times, other.times);
        add_each(&mut self.groups, other.groups);
        add_each(&mut self.counts, other.counts);
        self.operations += other.operations;
        add_each(&mut self.directions, other.directions);
        add(&mut self.waited_for, other.waited_for);
        add(&mut self.host_by, other.host_by);
        add(&mut self.cold, other.cold);
        add(&mut self.sync_by, other.sync_by);
        add(&mut self.kernels, other.kernels);
        for (class, seen) in &other.seen {
            self.seen.entry(*class).or_default().add(seen);
        }
        self.shapes.extend(other.shapes);
        self.syncs += other.syncs;
        self.memset_bytes += other.memset_bytes;
        self.in_graphs += other.in_graphs;
        self.span = self.span.hull(other.span);
        self.ideal = self.ideal.max(other.ideal);
        self
    }

    /// The time that shares are of.
    pub(super) fn whole(&self) -> Ns {
        (self.sum - self.not_recorded).max(0)
    }

    /// Idle time.
    pub(super) fn idle(&self) -> Ns {
        self.groups.iter().sum()
    }

    /// Whether it is one short operation and nothing else, or a few in next to no time.
    pub(super) fn is_single(&self) -> bool {
        let [kernels, copies, _] = self.counts;
        let is_one = kernels + copies <= 1 && self.idle() == 0 && self.sum < SHORT;
        let are_few = (1..=4).contains(&(kernels + copies)) && self.sum < TOO_LITTLE;
        (is_one || cases::FEW_OPERATIONS.holds(are_few)) && self.time_of(Bound::Peer) == 0
    }

    /// Idle time that only first calls take.
    pub(super) fn cold(&self) -> Ns {
        self.cold.values().sum()
    }

    /// What of the CPU's work loads or builds GPU code.
    pub(super) fn loading(&self) -> Ns {
        let of = |work| self.host_by.get(&work).copied().unwrap_or(0);
        of(CpuWork::Load) + of(CpuWork::Build) + of(CpuWork::Once)
    }

    /// Whether that is most of the idle time that another process does not take. It is told before next to as much that nothing
    /// explains.
    pub(super) fn is_cold(&self) -> bool {
        let [others, unknown] = [Group::Process, Group::Unknown].map(|it| self.groups[it as usize]);
        2 * self.cold() + unknown / 10 >= (self.idle() - others).max(1)
    }

    /// The time without the profiler's own and what left no record: what decides what bounds it.
    pub(super) fn counted(&self) -> Ns {
        (self.sum - self.times[Bound::Nothing as usize]).max(0)
    }

    /// Whether waiting in collectives for later ranks is most of what other devices take, or by itself enough to be bound by.
    pub(super) fn waits_for_ranks(&self) -> bool {
        let is_large = share(self.waiting, self.counted()) >= STALL_SHARE;
        self.waiting > 0 && (is_large || 2 * self.waiting >= self.time_of(Bound::Peer))
    }

    /// Kernels that were launched one by one.
    pub(super) fn launched(&self) -> u64 {
        self.counts[0].saturating_sub(self.in_graphs)
    }

    /// What CUDA graphs run of most kernels, and which most of those are: one that a headline names may be another.
    pub(super) fn of_graphs(&self, trace: &Trace) -> Option<String> {
        let [kernels, of] = [self.in_graphs, self.counts[0]];
        let most = || {
            let streams = trace.streams();
            let all = streams.flat_map(|(id, lane)| trace.activities(id, lane.kept()));
            let (mut nodes, mut single, mut within, mut whole) = (Vec::new(), Vec::new(), 0, 0);
            for (_, it) in all {
                let What::Kernel(kernel) = it.what else {
                    continue;
                };
                let (name, time) = (trace.shape(kernel.shape).name, it.span.len());
                whole += time;
                if kernel.graph == 0 {
                    single.push((name, time));
                    continue;
                }
                within += time;
                nodes.push((name, 1));
            }
            let name = |id| cut_name(&short::short(trace.names().full(id)), NAME_MAX);
            let most = name(sum_by(nodes).first()?.0);
            let graphs = percent(share(within, whole));
            let kernels = format!("{} of {} kernels", count(kernels), count(of));
            // Many short ones are not what the GPU works for.
            Some(match sum_by(single).first().filter(|it| it.1 > within) {
                Some(&(id, time)) => {
                    let part = percent(share(time, whole));
                    format!(
                        "{} takes {part} of kernel time, CUDA graphs {graphs}: {kernels}, mostly {most}",
                        name(id)
                    )
                }
                None => format!("CUDA graphs run {kernels}, {graphs} of their time, mostly {most}"),
            })
        };
        (2 * kernels > of).then(most).flatten()
    }

    /// Whether most of what runs are graphs that were recorded as a whole.
    pub(super) fn are_graphs(&self) -> bool {
        self.graphs > 0 && self.graphs >= self.kernels.values().sum()
    }

    /// Whether much of what computing takes is waiting for another process to leave the GPU.
    pub(super) fn is_shared(&self) -> bool {
        self.turns > 0 && 5 * self.turns >= 2 * self.time_of(Bound::Compute)
    }

    /// What belongs to copying in which no copy ran: staging, and gaps before copies.
    pub(super) fn before_copies(&self) -> Ns {
        (self.time_of(Bound::Copy) - self.copying).max(0)
    }

    /// Whether copies run for most of what copying takes.
    pub(super) fn copies_run(&self) -> bool {
        self.before_copies() <= self.copying
    }

    /// What memsets take, where that is most of what computing does. They move bytes and do nothing else.
    pub(super) fn memsets(&self) -> Option<Ns> {
        let worked = self.computing + self.graphs;
        Some(self.time_of(Bound::Compute) - worked).filter(|it| *it > worked)
    }

    pub(super) fn time_of(&self, bound: Bound) -> Ns {
        match bound {
            Bound::Nothing => 0,
            bound => self.times[bound as usize],
        }
    }

    fn at(&mut self, bound: Bound) -> &mut Ns {
        &mut self.times[bound as usize]
    }

    /// While a kernel and a copy ran, the busier engine is what takes the time.
    fn busy(&mut self, f: &DeviceFigures) {
        let engine = self.directions.iter().copied().max().unwrap_or(0);
        *self.at(Bound::Compute) += f.busy_ns - f.copy_ns;
        let copies = match f.p2p.busy_ns > 0 && f.p2p.busy_ns == engine {
            true => Bound::Peer,
            false => Bound::Copy,
        };
        *self.at(copies) += f.copy_ns - f.overlap_ns;
        let both = match engine > f.compute_ns {
            true => copies,
            false => Bound::Compute,
        };
        *self.at(both) += f.overlap_ns;
    }

    /// Takes what the device waited for other ranks out of what it computed. Returns it by kernel.
    fn waiting(
        &mut self,
        ranks: Option<&JobAnalysis>,
        f: &DeviceFigures,
        window: Option<Span>,
    ) -> FxHashMap<(LaneId, usize), Ns> {
        let mut by_kernel = FxHashMap::default();
        let Some(ranks) = ranks else {
            return by_kernel;
        };
        for (wait, exposed) in ranks.waits_on(f.index, window) {
            // Of several ranks on one device each may wait while another computes.
            let time = exposed.min(self.time_of(Bound::Compute));
            *self.at(Bound::Compute) -= time;
            self.computing = (self.computing - time).max(0);
            *self.at(Bound::Peer) += time;
            self.waiting += time;
            *self.waited_for.entry(wait.for_rank).or_default() += time;
            by_kernel.insert((wait.lane, wait.row), time);
        }
        by_kernel
    }

    fn kernels(
        &mut self,
        trace: &Trace,
        f: &DeviceFigures,
        window: Option<Span>,
        waiting: &FxHashMap<(LaneId, usize), Ns>,
    ) {
        let mut shapes: FxHashMap<ShapeId, Ns> = FxHashMap::default();
        for (id, lane) in trace.streams_of(f.index) {
            let rows = lane.rows_in(window);
            for (row, activity) in trace.activities(id, rows) {
                if let What::Kernel(kernel) = activity.what {
                    let waited = waiting.get(&(id, row)).copied().unwrap_or(0);
                    *shapes.entry(kernel.shape).or_default() += activity.span.len() - waited;
                } else if let What::Memset(it) = activity.what {
                    self.memset_bytes += it.bytes;
                } else if matches!(activity.what, What::Graph(_)) {
                    self.graphs += activity.span.len();
                }
            }
        }
        for (id, time) in shapes {
            *self.kernels.entry(trace.shape(id).name).or_default() += time;
            self.shapes.insert(id);
        }
    }

    fn gap(
        &mut self,
        (trace, causes): (&Trace, &Causes<'_>),
        waits: &mut FxHashSet<CallId>,
        (gap, pieces): (Gap, &[Piece]),
    ) {
        let mut seen: FxHashMap<Bound, StackCounts> = FxHashMap::default();
        for piece in pieces {
            let length = piece.span.len();
            let group = causes.group(gap, piece);
            self.groups[group as usize] += length;
            let is_behind = piece.cause == Cause::Pages && causes.is_behind_kernels(gap);
            self.pages_behind += if is_behind { length } else { 0 };
            let bound = match causes.wait_of(piece).filter(|_| group == Group::Sync) {
                Some(wait) => {
                    *self.at(Bound::Sync) += length;
                    waits.insert(causes.graph().calls.with_copy(wait));
                    if let Some(name) = causes.host_name(Culprit::Call(wait)) {
                        *self.sync_by.entry(name).or_default() += length;
                        if causes.is_first(gap.next, piece) {
                            *self.cold.entry(CpuWork::Name(name)).or_default() += length;
                        }
                    }
                    Bound::Sync
                }
                None => {
                    let bound = causes.bound(gap, piece);
                    let is_open = bound == Bound::Unknown && launches_before(causes, gap);
                    self.of_graphs += if is_open { length } else { 0 };
                    self.piece((trace, causes), gap.next, piece, bound);
                    bound
                }
            };
            if piece.cause.is_of_host() && causes.is_sampled() {
                let seen = seen.entry(bound).or_default();
                causes.add_samples(gap.next, piece.span, seen);
            }
        }
        for (bound, seen) in seen {
            self.seen.entry(bound).or_default().add_gap(&seen);
        }
    }

    /// Puts what is left of a piece where it belongs.
    fn piece(
        &mut self,
        (trace, causes): (&Trace, &Causes<'_>),
        next: OpId,
        piece: &Piece,
        bound: Bound,
    ) {
        let time = piece.span.len();
        let doing = || match piece.cause {
            Cause::Load => CpuWork::Load,
            Cause::Pages => CpuWork::Pages,
            _ if causes.makes(next, piece) => match causes.first_use().started.contains(&next) {
                // What started a library has a name.
                true => match (piece.culprit, causes.host_name(piece.culprit)) {
                    (Culprit::Call(_), Some(name)) => CpuWork::Name(name),
                    _ => CpuWork::Load,
                },
                false if causes.first_use().compiled.contains(&next) => CpuWork::Build,
                false => CpuWork::Once,
            },
            _ => match causes.host_name(piece.culprit) {
                // What torch.compile calls its code says nothing: the kernel that waited does.
                Some(name) if trace.names().full(name).starts_with("CompiledFunction") => {
                    let kernel = first_use::kernel(trace, causes.graph(), next);
                    CpuWork::Name(kernel.unwrap_or(name))
                }
                Some(name) if first_use::is_compiler(trace.names().full(name)) => CpuWork::Build,
                Some(name) if is_mpi(trace.names().full(name)) && begins_in(trace, piece.span) => {
                    CpuWork::Late
                }
                name => name.map_or(CpuWork::Untraced, CpuWork::Name),
            },
        };
        if bound == Bound::Host {
            self.likely += time * Ns::from(piece.certainty == Certainty::Likely);
            // What is named may begin later or end sooner.
            let inside = match piece.culprit {
                Culprit::Row(lane, row) => {
                    let range = trace.lanes()[lane as usize].span(row as usize);
                    range.intersect(piece.span).len()
                }
                _ => time,
            };
            *self.host_by.entry(doing()).or_default() += inside;
        }
        let is_open = matches!(piece.cause, Cause::LateStart | Cause::Unknown);
        let is_known = piece.cause.is_of_host() && !is_open;
        let is_unseen = || causes.makes(next, piece) && !causes.first_use().seen.contains(&next);
        if doing() == CpuWork::Build && is_unseen() {
            self.unseen += time;
        }
        if is_known && causes.is_first(next, piece) {
            *self.cold.entry(doing()).or_default() += time;
        } else if causes.is_once(next, piece) {
            let work = match piece.cause {
                Cause::Profiler => CpuWork::Load,
                _ => CpuWork::Once,
            };
            *self.cold.entry(work).or_default() += time;
        }
        match piece.cause {
            Cause::Process => self.turns += time,
            Cause::LateStart => self.late += time,
            _ => {}
        }
        *self.at(bound) += time;
    }
}

/// Whether a gap lies before an operation of a graph that was launched before it.
fn launches_before(causes: &Causes<'_>, gap: Gap) -> bool {
    let graph = causes.graph();
    let call = graph.ops.call[gap.next as usize];
    graph.ops.is_graph(gap.next) && call != NONE && graph.calls.end[call as usize] <= gap.span.start
}

/// Whether a process makes its first call meanwhile. A short wait is an exchange.
fn begins_in(trace: &Trace, span: Span) -> bool {
    let mut first: FxHashMap<usize, Ns> = FxHashMap::default();
    let lanes = trace.threads().filter(|_| span.len() >= SHORT);
    for (lane, extent) in lanes.filter_map(|it| Some((it.1, it.1.extent()?))) {
        let begin = first.entry(lane.key().process).or_insert(extent.start);
        *begin = extent.start.min(*begin);
    }
    first.values().any(|it| span.contains(*it))
}

fn add_each<T: AddAssign, const N: usize>(into: &mut [T; N], from: [T; N]) {
    into.iter_mut()
        .zip(from)
        .for_each(|(into, from)| *into += from);
}

fn add<K: Eq + Hash>(into: &mut FxHashMap<K, Ns>, from: FxHashMap<K, Ns>) {
    for (key, time) in from {
        *into.entry(key).or_default() += time;
    }
}
