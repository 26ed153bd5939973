//! What launches and queues take on this timeline when nothing is in the way.

use super::locks;
use crate::graph::{CallId, CallKind, EdgeKind, Engine, Graph, LATENCY_MAX, NONE, OpId};
use activity::Ns;
use activity::stats::lower_median;

/// Operations, and calls, of a timeline that tell what is usual on it. They are the first ones, so that a cause does
/// not change with what comes after it.
const SAMPLE: usize = 1 << 16;

/// The 99th percentiles, none above [`LATENCY_MAX`]: what takes longer is not ordinary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// From a call to its operation where nothing else held that back: launches and copies differ.
    latency: [Ns; Engine::COUNT],
    /// From the end of what an operation waited for to its start: on one engine, and from one to another.
    pub queued: [Ns; 2],
    /// What the calls of launches and of copies that nothing stages take at the median; `None` without any.
    plain: [Option<Ns>; 2],
    /// What a thread does at most between two launches of one dense sequence.
    pub think: Ns,
    /// The same where graphs hold most operations: what is left to launch is no dense sequence.
    pub think_beside: Ns,
}

/// A thread that is at something for less may be on its way to the next launch.
const THINK_MIN: Ns = 100_000;

/// … as may one that takes no more than so many times what it takes at the median.
const THINK_TIMES: Ns = 10;

impl Limits {
    pub(super) fn of(graph: &Graph) -> Limits {
        let mut latencies: [Vec<Ns>; Engine::COUNT] = Default::default();
        let mut queued = [Vec::new(), Vec::new()];
        for i in 0..graph.ops.len().min(SAMPLE) {
            let op = i as OpId;
            match graph.ops.edge[i] {
                EdgeKind::None => {}
                EdgeKind::Launch if graph.ops.is_graph(op) || stages_first(graph, op) => {}
                EdgeKind::Launch => {
                    let call = graph.calls.start[graph.ops.bind[i] as usize];
                    let side = graph.ops.engine[i].side();
                    latencies[side as usize].push(graph.ops.start[i] - call);
                }
                _ => queued[usize::from(changes_engine(graph, op))].push(graph.residual(op)),
            }
        }
        // An engine that was never idle when it was given work says nothing: then the others do.
        let all = percentile(&mut latencies.concat());
        let of = |mut mine: Vec<Ns>| match mine.is_empty() {
            true => all,
            false => percentile(&mut mine),
        };
        let think = THINK_MIN.max(usual_think(graph).saturating_mul(THINK_TIMES));
        let looked = graph.ops.len().min(SAMPLE);
        let nodes = (0..looked).filter(|it| graph.ops.is_graph(*it as OpId));
        Limits {
            latency: latencies.map(of),
            queued: queued.map(|mut all| percentile(&mut all)),
            plain: plain(graph),
            think,
            think_beside: if 2 * nodes.count() > looked {
                THINK_MIN
            } else {
                think
            },
        }
    }

    /// What the call of a launch, or of a copy that nothing stages, takes as a rule.
    pub(super) fn usual(&self, kind: CallKind) -> Option<Ns> {
        match kind {
            CallKind::Launch => self.plain[0],
            CallKind::Copy => self.plain[1],
            _ => None,
        }
    }

    /// What an ordinary launch onto this engine takes at most.
    pub(super) fn latency(&self, engine: Engine) -> Ns {
        self.latency[engine.side() as usize]
    }
}

/// What a thread does between two launches at the median.
fn usual_think(graph: &Graph) -> Ns {
    let calls = &graph.calls;
    let is_launch = |call: CallId| calls.kind[call as usize] == CallKind::Launch;
    let launches = (0..calls.len().min(SAMPLE) as CallId).filter(|&call| is_launch(call));
    let between = launches.filter_map(|call| {
        let before = calls.previous[call as usize];
        let follows = before != NONE && is_launch(before);
        follows.then(|| calls.start[call as usize] - calls.end[before as usize])
    });
    lower_median(&mut between.collect::<Vec<Ns>>()).unwrap_or(0)
}

fn plain(graph: &Graph) -> [Option<Ns>; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for call in 0..graph.calls.len().min(SAMPLE) as CallId {
        if locks::is_plain(graph, call) {
            let is_copy = graph.calls.kind[call as usize] == CallKind::Copy;
            times[usize::from(is_copy)].push(graph.calls.span(call).len());
        }
    }
    times.map(|mut times| lower_median(&mut times))
}

/// Whether the host brings the bytes to a buffer of the driver's before the operation can begin.
pub(super) fn stages_first(graph: &Graph, op: OpId) -> bool {
    graph.ops.is_staged(op) && graph.ops.engine[op as usize] != Engine::D2H
}

/// Whether what bound an operation ran on another engine.
pub(super) fn changes_engine(graph: &Graph, op: OpId) -> bool {
    let source = graph.ops.bind[op as usize];
    if source == NONE || graph.ops.edge[op as usize] == EdgeKind::Launch {
        return false;
    }
    let engine = |op: OpId| graph.ops.engine[op as usize];
    engine(op).side() != engine(source).side()
}

/// The smallest that 99 of 100 do not exceed (nearest rank), no more than [`LATENCY_MAX`].
fn percentile(all: &mut [Ns]) -> Ns {
    let rank = (all.len() * 99).div_ceil(100);
    match rank.checked_sub(1) {
        Some(at) => (*all.select_nth_unstable(at).1).min(LATENCY_MAX),
        None => LATENCY_MAX,
    }
}
