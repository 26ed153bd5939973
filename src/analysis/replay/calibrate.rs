//! From a graph to a program: what each start and each return has of its own.

use super::{CallColumns, Hold, OpColumns, Program, State, Target};
use crate::activity::{Ns, SyncKind};
use crate::analysis::graph::{CallId, CallKind, EdgeKind, Engine, Graph, NONE, OpId};
use crate::trace::{LaneId, LaneKind, Trace};

/// What a wait takes that has nothing to wait for, at most: on an H200, 0.6 to 1.2 us.
const WAIT_MAX: Ns = 1_000;

impl Program {
    /// The run that a graph was made of, as it was.
    #[must_use]
    pub fn of(trace: &Trace, graph: &Graph) -> Program {
        let mut program = Program {
            ops: ops(trace, graph),
            calls: calls(trace, graph),
            order: order(graph),
            serial: vec![false; trace.lanes().len()],
            engines: trace.devices().len() * SIDES,
            processes: trace.processes().len(),
        };
        program.calibrate(graph);
        program
    }

    /// Goes through what was recorded and notes for each start and return what nothing explains of it.
    fn calibrate(&mut self, graph: &Graph) {
        let mut state = State::of(self);
        let order = std::mem::take(&mut self.order);
        for &event in &order {
            let (node, is_end) = ((event / 2) as usize, event % 2 == 1);
            match (node.checked_sub(self.calls.work.len()), is_end) {
                (None, false) => {
                    let start = graph.calls.start[node];
                    let before = state.before_call(self, node);
                    self.calls.think[node] = before.map_or(0, |time| start - time);
                    state.times.call_start[node] = start;
                }
                (None, true) => {
                    let end = graph.calls.end[node];
                    self.returned(graph, node as CallId, state.awaited(self, node));
                    state.times.call_end[node] = end;
                }
                (Some(op), false) => {
                    let (hold, time) = state.before_op(self, op);
                    self.ops.hold[op] = hold;
                    if hold != Hold::Nothing {
                        self.ops.residual[op] = graph.ops.start[op] - time;
                    }
                    state.begun(self, op, graph.ops.start[op]);
                }
                (Some(op), true) => state.ended(self, op, graph.ops.end[op]),
            }
        }
        self.order = order;
    }

    /// What a call takes by itself, and what its return takes after what it waited for.
    fn returned(&mut self, graph: &Graph, call: CallId, awaited: Option<Ns>) {
        let i = call as usize;
        let span = graph.calls.span(call);
        self.calls.work[i] = span.len();
        let awaited = awaited.filter(|&time| time > span.start && time <= span.end);
        let Some(time) = awaited.filter(|_| graph.calls.waited[i] != NONE) else {
            return;
        };
        let tail = span.end - time;
        let (work, hold) = match graph.calls.kind[i] {
            CallKind::WaitDevice => (WAIT_MAX, Hold::WaitDevice),
            CallKind::WaitStream => (WAIT_MAX, Hold::WaitStream),
            CallKind::WaitEvent => (WAIT_MAX, Hold::WaitEvent),
            // Its operation cannot begin before the call does.
            CallKind::Copy => (0, Hold::WaitCopy),
            _ => (tail, Hold::WaitOther),
        };
        self.calls.work[i] = work.min(span.len());
        self.calls.tail[i] = tail;
        self.calls.hold[i] = hold;
    }
}

/// Engines that are told apart.
const SIDES: usize = 7;

fn side(engine: Engine) -> u8 {
    match engine {
        Engine::Memset => Engine::Compute as u8,
        other => other as u8,
    }
}

fn ops(trace: &Trace, graph: &Graph) -> OpColumns {
    let n = graph.ops.len();
    let key = |op: usize| trace.lanes()[graph.ops.lane[op] as LaneId].key();
    let engine = |op: usize| match key(op).kind {
        LaneKind::Stream { device, .. } if graph.ops.engine[op].is_serial() => {
            (device * SIDES + graph.ops.engine[op] as usize) as u32
        }
        _ => NONE,
    };
    let launch: Vec<Hold> = (0..n).map(|op| launch(graph, op)).collect();
    let mut columns = OpColumns {
        work: (0..n).map(|op| graph.ops.span(op as OpId).len()).collect(),
        residual: vec![0; n],
        lane: graph.ops.lane.clone(),
        engine: (0..n).map(engine).collect(),
        call: graph.ops.call.clone(),
        lag: lags(graph, &launch),
        hold: vec![Hold::Nothing; n],
        recorded: graph.ops.start.clone(),
        first_edge: Vec::with_capacity(n + 1),
        edges: Vec::new(),
        process: (0..n).map(|op| key(op).process as u32).collect(),
        launch,
        side: graph.ops.engine.iter().map(|&e| side(e)).collect(),
    };
    for op in 0..n {
        columns.first_edge.push(columns.edges.len() as u32);
        let edges = &mut columns.edges;
        graph.between_streams(trace, op as OpId, |kind, source| edges.push((kind, source)));
        if matches!(
            graph.ops.edge[op],
            EdgeKind::DefaultLikely | EdgeKind::OtherLikely
        ) {
            edges.push((graph.ops.edge[op], graph.ops.bind[op]));
        }
    }
    columns.first_edge.push(columns.edges.len() as u32);
    columns
}

fn launch(graph: &Graph, op: usize) -> Hold {
    if graph.ops.is_graph(op as OpId) {
        return Hold::LaunchGraph;
    }
    match graph.ops.engine[op] {
        Engine::Compute => Hold::LaunchKernel,
        Engine::Memset => Hold::LaunchMemset,
        _ => Hold::LaunchCopy,
    }
}

/// From each operation's call to the moment that it could begin at: when the call is over, and what lies
/// between that and the start of the operations that only their launch held, on the median.
fn lags(graph: &Graph, launch: &[Hold]) -> Vec<Ns> {
    let after_call = |op: usize| {
        let call = graph.ops.call[op];
        (call != NONE).then(|| graph.ops.start[op] - graph.calls.end[call as usize])
    };
    // The bytes of a staged copy are on their way while the call lasts: that is work, not latency.
    let is_staging = |op: usize| graph.ops.is_staged(op as OpId);
    let mut all: Vec<Vec<Ns>> = vec![Vec::new(); Hold::COUNT];
    for (op, &hold) in launch.iter().enumerate() {
        if graph.ops.edge[op] == EdgeKind::Launch && !is_staging(op) {
            all[hold as usize].extend(after_call(op));
        }
    }
    let medians: Vec<Ns> = all
        .iter_mut()
        .map(|all| super::error::median(all))
        .collect();
    let lag = |(op, &hold): (usize, &Hold)| {
        let call = graph.ops.call[op];
        if call == NONE {
            return 0;
        }
        let span = graph.calls.span(call);
        let seen = graph.ops.start[op] - span.start;
        if is_staging(op) && graph.ops.start[op] <= span.end {
            return seen.max(0);
        }
        let usual = (span.len() + medians[hold as usize]).max(0);
        match graph.ops.edge[op] {
            EdgeKind::Launch => usual,
            _ => usual.min(seen).max(0),
        }
    };
    launch.iter().enumerate().map(lag).collect()
}

fn calls(trace: &Trace, graph: &Graph) -> CallColumns {
    let n = graph.calls.len();
    CallColumns {
        work: vec![0; n],
        think: vec![0; n],
        target: (0..n).map(|c| target(trace, graph, c as CallId)).collect(),
        tail: vec![0; n],
        hold: vec![Hold::Nothing; n],
        previous: graph.calls.previous.clone(),
        handed: graph.calls.handed.clone(),
        recorded: graph.calls.start.clone(),
    }
}

fn target(trace: &Trace, graph: &Graph, call: CallId) -> Target {
    let i = call as usize;
    let waited = graph.calls.waited[i];
    let process = || trace.lanes()[graph.calls.at(call).0].key().process as u32;
    let lane = || match waited {
        NONE => Target::Nothing,
        op => Target::Lane(graph.ops.lane[op as usize]),
    };
    match (graph.calls.kind[i], graph.awaits(call)) {
        (CallKind::WaitDevice | CallKind::WaitStream | CallKind::WaitEvent, Some(kind)) => {
            match kind {
                SyncKind::Context => Target::Process(process()),
                SyncKind::Stream => lane(),
                _ if waited == NONE => Target::Nothing,
                _ => Target::Op(waited),
            }
        }
        (CallKind::WaitDevice, None) => Target::Process(process()),
        (CallKind::WaitStream, None) => lane(),
        _ if waited == NONE => Target::Nothing,
        _ => Target::Op(waited),
    }
}

/// Starts and ends as recorded. At one moment what ends comes before what begins, and a thing without length
/// begins and ends before the next begins.
fn order(graph: &Graph) -> Vec<u32> {
    let calls = graph.calls.len();
    let mut events: Vec<(Ns, bool, u32)> = Vec::with_capacity((calls + graph.ops.len()) * 2);
    let mut add = |node: usize, start: Ns, end: Ns| {
        events.push((start, true, node as u32 * 2));
        events.push((end, start == end, node as u32 * 2 + 1));
    };
    for i in 0..calls {
        add(i, graph.calls.start[i], graph.calls.end[i]);
    }
    for i in 0..graph.ops.len() {
        add(calls + i, graph.ops.start[i], graph.ops.end[i]);
    }
    events.sort();
    events.into_iter().map(|event| event.2).collect()
}
