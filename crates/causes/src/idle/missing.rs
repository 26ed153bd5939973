//! Operations that ran without leaving a record.
//!
//! A graph's launches leave as many operations each, but where the profiler loses some. A launch that
//! leaves none, among launches that do, ran all the same. Ids of calls that go on where no call is on record tell of calls that were left out.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph::{CallId, CallKind, Graph, NONE, OpId};
use activity::{Ns, What};
use trace::{LaneId, SourceKind, Trace};

/// Launches of a process leave records when this part of them does.
const RECORDED: f64 = 0.9;

/// So many ids of calls lie between the first and the last, and one in so many has a record. In a pause so long so many pass.
/// What is never recorded, such as cudaGetDevice, has the most ids all along, and a library at its start has them once.
const IDS_MIN: u32 = 10_000;
const CALLS_MIN: usize = 100;
const RECORDED_MIN: u64 = 100;
const PASSED_MIN: u32 = 1_000;
const PAUSE_MIN: Ns = 1_000_000;

/// A process of which next to all CUDA calls were left out of the file. So many are on record, and to so many CUPTI gave ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub process: usize,
    pub calls: u64,
    pub of: u64,
}

impl LeftOut {
    /// The processes of which a file has next to no calls.
    pub fn find(trace: &Trace, graph: &Graph) -> Vec<LeftOut> {
        if !matches!(trace.source.kind, SourceKind::Kineto | SourceKind::Nsys) {
            return Vec::new();
        }
        let lists = graph.calls.by_correlation.iter().enumerate();
        lists
            .filter_map(|(process, list)| {
                let (first, last) = (list.first()?.0, list.last()?.0);
                let (calls, of) = (list.len() as u64, u64::from(last - first) + 1);
                let is_few =
                    list.len() >= CALLS_MIN && last - first >= IDS_MIN && calls * RECORDED_MIN < of;
                let is_pause = |pair: &[(u32, CallId)]| {
                    let [(id, before), (next, after)] = [pair[0], pair[1]];
                    let pause =
                        graph.calls.start[after as usize] - graph.calls.end[before as usize];
                    next - id >= PASSED_MIN && pause >= PAUSE_MIN
                };
                (is_few && list.windows(2).any(is_pause)).then_some(LeftOut { process, calls, of })
            })
            .collect()
    }
}

/// Operations before which others must have run, with the call that launched those.
pub(super) fn find(trace: &Trace, graph: &Graph) -> FxHashMap<OpId, CallId> {
    let mut missing = FxHashMap::default();
    short_graphs(trace, graph, &mut missing);
    silent_launches(trace, graph, &mut missing);
    missing
}

/// Launches of graphs that left fewer operations than the same graph usually does.
fn short_graphs(trace: &Trace, graph: &Graph, missing: &mut FxHashMap<OpId, CallId>) {
    // Operations and the last of them, by launch.
    let mut launches: FxHashMap<CallId, (u32, u32, OpId)> = FxHashMap::default();
    for op in 0..graph.ops.len() as OpId {
        let call = graph.ops.call[op as usize];
        if call == NONE || !graph.ops.is_graph(op) {
            continue;
        }
        let id = graph.what(trace, op).graph();
        // Without an id nobody knows which graphs are one.
        if id == 0 {
            continue;
        }
        let launch = launches.entry(call).or_insert((id, 0, op));
        launch.1 += 1;
        launch.2 = op;
    }
    let mut counts: FxHashMap<(usize, u32), FxHashMap<u32, u32>> = FxHashMap::default();
    for (&call, &(id, count, _)) in &launches {
        let of = counts.entry((graph.process(trace, call), id)).or_default();
        *of.entry(count).or_default() += 1;
    }
    let usual = |key: (usize, u32)| {
        let of = counts.get(&key)?;
        let most = of.iter().max_by_key(|&(&count, &times)| (times, count))?;
        (*most.1 > 1).then_some(*most.0)
    };
    for (&call, &(id, count, last)) in &launches {
        if usual((graph.process(trace, call), id)).is_some_and(|usual| count < usual) {
            for op in [graph.calls.first_op[call as usize], last] {
                missing.insert(op, call);
            }
            let (lane, row) = graph.ops.place(last);
            if let Some(next) = graph.op_at(lane, row + 1) {
                missing.insert(next, call);
            }
        }
    }
}

/// Launches that left no operation, where nearly all others of their process did.
fn silent_launches(trace: &Trace, graph: &Graph, missing: &mut FxHashMap<OpId, CallId>) {
    let (calls, all) = (&graph.calls, launched(trace, graph));
    let mut tally: FxHashMap<usize, (u64, u64)> = FxHashMap::default();
    for &call in &all {
        let of = tally.entry(graph.process(trace, call)).or_default();
        of.0 += 1;
        of.1 += u64::from(calls.first_op[call as usize] != NONE);
    }
    let mut silent: FxHashMap<LaneId, CallId> = FxHashMap::default();
    // Before a thread's first launch that left an operation, and after its last, nothing was recorded.
    let mut has_begun: FxHashMap<LaneId, ()> = FxHashMap::default();
    for call in 0..calls.len() as CallId {
        let (lane, _) = calls.at(call);
        let op = calls.first_op[call as usize];
        if op != NONE {
            has_begun.insert(lane, ());
            if let Some(silent) = silent.remove(&lane) {
                missing.insert(op, silent);
            }
            continue;
        }
        let process = graph.process(trace, call);
        let (of, recorded) = tally.get(&process).copied().unwrap_or_default();
        let is_silent = has_begun.contains_key(&lane) && recorded as f64 >= of as f64 * RECORDED;
        if is_silent && all.binary_search(&call).is_ok() {
            silent.insert(lane, call);
        }
    }
}

/// Launches of kernels and graphs, by start, that have run: they returned no error, and went into no graph.
pub fn launched(trace: &Trace, graph: &Graph) -> Vec<CallId> {
    let captured = captured(graph);
    let has_run = |call: CallId| {
        let (lane, row) = graph.calls.at(call);
        !captured.contains(&call)
            && matches!(trace.what(lane, row), What::Call(it) if it.code == 0)
            && !graph.function(trace, call).contains("HostFunc")
    };
    let is_one = |&call: &CallId| {
        let has_record = graph.calls.first_op[call as usize] != NONE;
        graph.calls.kind[call as usize].is_launch() && (has_record || has_run(call))
    };
    (0..graph.calls.len() as CallId).filter(is_one).collect()
}

/// Launches that went into a graph: the thread was capturing. Where no call says so, launches without operations tell it, which right after
/// become those of a graph that has as many.
fn captured(graph: &Graph) -> FxHashSet<CallId> {
    let mut capturing: FxHashSet<LaneId> = FxHashSet::default();
    let mut captured = FxHashSet::default();
    let mut silent: FxHashMap<LaneId, Vec<CallId>> = FxHashMap::default();
    let nodes = |launch| {
        let first = graph.calls.first_op[launch as usize];
        let of_it = |&op: &OpId| graph.ops.call[op as usize] == launch;
        match first {
            NONE => 0,
            first => (first..graph.ops.len() as OpId).take_while(of_it).count(),
        }
    };
    for call in 0..graph.calls.len() as CallId {
        let lane = graph.calls.at(call).0;
        let kind = graph.calls.kind[call as usize];
        if kind == CallKind::Launch && graph.calls.first_op[call as usize] == NONE {
            silent.entry(lane).or_default().push(call);
        } else if !silent.is_empty()
            && (kind.is_launch() || kind.is_wait() || kind == CallKind::Copy)
            && let Some(run) = silent.remove(&lane)
            && kind == CallKind::GraphLaunch
            && nodes(call) >= run.len()
        {
            captured.extend(run);
        }
        match kind {
            CallKind::CaptureBegin => {
                capturing.insert(lane);
            }
            CallKind::CaptureEnd => {
                capturing.remove(&lane);
            }
            CallKind::Launch if capturing.contains(&lane) => {
                captured.insert(call);
            }
            _ => {}
        }
    }
    captured
}
