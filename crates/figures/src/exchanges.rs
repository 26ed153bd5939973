//! Data that processes exchange through the host's memory: copied back, handed to MPI, and copied up again.

use rustc_hash::{FxHashMap, FxHashSet};

use activity::{Copy, Direction, NameId, Ns, Place, RangeKind, Span, What};
use causes::graph::{CallId, Graph, NONE, OpId};
use causes::{is_mpi, sum_by};
use trace::{LaneId, LaneKey, LaneKind, Trace};

/// So many calls lie between a copy back and the copy up at most.
const CALLS_MAX: usize = 64;

/// Values of fewer bytes are looked at by the CPU, or made by it.
const VALUE_BYTES: u64 = 64;

/// Calls of MPI that move no data, by parts of their names.
const NO_DATA: [&str; 6] = ["Barrier", "Init", "Finalize", "Comm_", "Abort", "Wtime"];

/// What the processes of a device exchange in that way.
#[derive(Clone, Debug, Default)]
pub struct Exchanges {
    /// The call of MPI that takes most of it.
    pub by: String,
    /// Whether MPI itself copies for the most part: it was given the device's pointers.
    pub within: bool,
    /// From each copy back to its copy up.
    pub spans: Vec<Span>,
    /// The copies up.
    pub ops: Vec<OpId>,
    pub bytes: u64,
    /// Calls of the copies, and waits for them.
    pub calls: FxHashSet<CallId>,
}

/// What a device's processes exchange within a window, or in all.
pub fn find(trace: &Trace, graph: &Graph, device: usize, window: Option<Span>) -> Exchanges {
    let mut threads: FxHashMap<u32, Vec<(CallId, OpId, Copy)>> = FxHashMap::default();
    for &op in graph.ops.of_device(device) {
        let call = graph.ops.call[op as usize];
        let is_in = window.is_none_or(|it| it.contains(graph.ops.start[op as usize]));
        if let What::Copy(copy) = graph.what(trace, op)
            && is_in
            && call != NONE
            && copy.place.stream < Place::EVICTED
            && copy.bytes > VALUE_BYTES
        {
            let thread = threads.entry(graph.calls.lane[call as usize]);
            thread.or_default().push((call, op, copy));
        }
    }
    let mut threads: Vec<_> = threads.into_iter().collect();
    threads.sort_unstable_by_key(|it| it.0);
    let mut found = Exchanges::default();
    let (mut times, mut within) = (Vec::new(), 0);
    for (lane, mut copies) in threads {
        copies.sort_unstable_by_key(|it| it.0);
        let mpi = mpi_of(trace, lane as LaneId);
        let mut down: Vec<(CallId, u64)> = Vec::new();
        // Whether some of those were taken up: the next copy back begins another round.
        let mut is_over = false;
        for (call, op, copy) in copies {
            match copy.direction {
                Direction::D2H => {
                    if std::mem::take(&mut is_over) || down.len() == CALLS_MAX {
                        down.clear();
                    }
                    down.push((call, copy.bytes));
                }
                Direction::H2D => {
                    let Some(at) = down.iter().position(|it| it.1 == copy.bytes) else {
                        continue;
                    };
                    let back = down[at].0;
                    if let Some((name, is_within)) = found.add(graph, &mpi, [back, call]) {
                        down.remove(at);
                        is_over = true;
                        within += usize::from(is_within);
                        times.push((
                            name,
                            graph.calls.end[call as usize] - graph.calls.start[back as usize],
                        ));
                        found.ops.push(op);
                        found.bytes += copy.bytes;
                    }
                }
                _ => {}
            }
        }
    }
    found.within = 2 * within > found.ops.len();
    let most = sum_by(times).into_iter().next();
    found.by = most.map_or_else(String::new, |it| trace.names().full(it.0).to_owned());
    found
}

/// A thread's calls of MPI that move data, in order.
fn mpi_of(trace: &Trace, calls: LaneId) -> Vec<(Span, NameId)> {
    let key = trace.lanes()[calls].key();
    let LaneKind::Thread { thread } = key.kind else {
        return Vec::new();
    };
    let kind = LaneKind::Range {
        kind: RangeKind::Nvtx,
        thread,
    };
    let Some(id) = trace.lane_id(LaneKey { kind, ..key }) else {
        return Vec::new();
    };
    let lane = &trace.lanes()[id];
    let moves = |name: &str| is_mpi(name) && !NO_DATA.iter().any(|it| name.contains(it));
    let of = |row| {
        let name = trace.what(id, row).name()?;
        moves(trace.names().full(name)).then(|| (lane.span(row), name))
    };
    lane.kept().filter_map(of).collect()
}

impl Exchanges {
    /// Adds a copy back and the copy up behind it where MPI had the data meanwhile, and the CPU did little else with it. Answers by
    /// which call, and whether that is around both.
    fn add(
        &mut self,
        graph: &Graph,
        mpi: &[(Span, NameId)],
        [back, up]: [CallId; 2],
    ) -> Option<(NameId, bool)> {
        let calls = &graph.calls;
        let all = Span::new(calls.start[back as usize], calls.end[up as usize]);
        let first = mpi.partition_point(|it| it.0.end <= all.start);
        let its = mpi[first..]
            .iter()
            .take_while(|it| it.0.start < calls.start[up as usize]);
        let its: Vec<_> = its.collect();
        let longest = its.iter().max_by_key(|it| it.0.len())?;
        let between = std::iter::successors(Some(up), |&it| Some(calls.previous[it as usize]));
        let between: Vec<CallId> = between
            .take(CALLS_MAX)
            .take_while(|&it| it != NONE && it >= back)
            .collect();
        let known = its.iter().map(|it| it.0.intersect(all));
        let known: Vec<Span> = known
            .chain(between.iter().map(|&it| calls.span(it)))
            .collect();
        let own: Ns = all.len() - Span::union_len(known);
        if between.last() != Some(&back) || cases::WORKS_ON_EXCHANGED.holds(2 * own > all.len()) {
            return None;
        }
        // MPI reads what the kernels before left.
        let before = calls.previous[back as usize];
        let behind = calls
            .next(up)
            .filter(|&it| calls.kind[it as usize].is_wait());
        let waits = between
            .into_iter()
            .chain(behind)
            .chain((before != NONE).then_some(before));
        self.calls
            .extend(waits.filter(|&it| calls.kind[it as usize].is_wait()));
        self.calls.extend([back, up]);
        let end = behind.map_or(all.end, |it| calls.end[it as usize]);
        self.spans.push(Span { end, ..all });
        Some((
            longest.1,
            longest.0.start <= all.start && longest.0.end >= calls.start[up as usize],
        ))
    }
}
