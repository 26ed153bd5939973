//! The ranges and CPU ops that the CPU was in.

use rustc_hash::FxHashMap;

use crate::graph::{CallId, Graph, OpId};
use crate::nested::{LEVELS, NONE, Nested};
use crate::{Causes, sum_by};
use activity::{Ns, RangeKind, Span, What};
use trace::{LaneId, LaneKey, LaneKind, Trace};

/// Of the threads that somebody asked for.
#[derive(Debug)]
pub struct Around<'t> {
    trace: &'t Trace,
    nested: FxHashMap<LaneId, Option<(LaneId, Nested)>>,
}

impl<'t> Around<'t> {
    /// Of the threads of a timeline.
    pub fn new(trace: &'t Trace) -> Self {
        Around {
            trace,
            nested: FxHashMap::default(),
        }
    }

    /// Those around the beginning of a call, innermost first.
    pub fn call(&mut self, graph: &Graph, call: CallId) -> Vec<&'t str> {
        self.at(graph.calls.at(call).0, graph.calls.start[call as usize])
    }

    /// Those of the thread whose calls are on a lane, at a moment.
    pub fn at(&mut self, calls: LaneId, time: Ns) -> Vec<&'t str> {
        let trace = self.trace;
        let known = self.nested.entry(calls);
        let Some((lane, nested)) = known.or_insert_with(|| of_thread(trace, calls)) else {
            return Vec::new();
        };
        let innermost = nested.at(time).filter(|&row| row != NONE);
        let outwards = |row: &u32| Some(nested.parent(*row)).filter(|&row| row != NONE);
        let rows = std::iter::successors(innermost, outwards);
        let name = |row: u32| {
            let name = trace.what(*lane, row as usize).name();
            name.map(|name| trace.names().full(name))
        };
        rows.take(LEVELS).filter_map(name).collect()
    }
}

/// The waits of some processes, each with how much of it lies within these gaps, which are apart and in order. Those that lie beside all are left out.
pub fn waits_within(causes: &Causes<'_>, processes: &[usize], gaps: &[Span]) -> Vec<(CallId, Ns)> {
    let calls = &causes.graph().calls;
    let threads = processes.iter().flat_map(|it| causes.trace.threads_in(*it));
    let its = threads.flat_map(|(lane, ..)| calls.of_lane(lane)).copied();
    let waits = its.filter(|&it| calls.kind[it as usize].is_wait());
    let held = |wait: CallId| -> Ns {
        let span = calls.span(wait);
        let from = gaps.partition_point(|it| it.end <= span.start);
        let within = gaps[from..].iter().take_while(|it| it.start < span.end);
        within.map(|it| it.intersect(span).len()).sum()
    };
    let waits = waits.map(|it| (it, held(it)));
    waits.filter(|it| it.1 > 0).collect()
}

/// What was around calls by these names, most of what each call counts for first.
pub fn by_name(
    causes: &Causes<'_>,
    calls: impl Iterator<Item = (CallId, Ns)>,
    name: impl Fn(&[&str]) -> Option<String>,
) -> Vec<(String, Ns)> {
    let mut around = Around::new(causes.trace);
    let mut names = |call| name(&around.call(causes.graph(), call));
    sum_by(calls.filter_map(|(call, counts)| Some((names(call)?, counts))))
}

/// Operators that others are made of: they do not say what a value is needed for.
const PARTS: &str = "aten::_local_scalar_dense aten::copy_ aten::_to_copy aten::clone aten::contiguous aten::resize_ aten::empty";

/// The innermost of PyTorch's operators among names, which are innermost first, that says what is done: `aten::matmul` of sparse matrices
/// waits in `aten::_coalesce`.
pub fn innermost(names: &[&str]) -> Option<String> {
    let ops = || names.iter().take_while(|it| it.starts_with("aten::"));
    let is_part = |name: &str| PARTS.split(' ').any(|it| it == name);
    let op = ops().find(|it| !is_part(it)).or(ops().last())?;
    Some((*op).to_owned())
}

/// An operation that ends a gap. A memset has no name: PyTorch's operator around its call says whose it is.
pub fn op_in_sentence(causes: &Causes<'_>, op: OpId) -> String {
    let (trace, graph) = (causes.trace, causes.graph());
    let what = graph.what(trace, op);
    let told = graph.in_sentence(trace, op);
    let call = graph.ops.call[op as usize];
    let is_memset = matches!(what, What::Memset(_)) && call != NONE;
    let around = is_memset.then(|| Around::new(trace).call(graph, call));
    let operator = around.and_then(|it| innermost(&it));
    operator.map_or(told.clone(), |it| format!("{told} of {it}"))
}

/// The outermost of PyTorch's operators among names, which are innermost first.
pub fn outermost(names: &[&str]) -> Option<String> {
    let is_op = |name: &&&str| name.starts_with("aten::");
    names.iter().rfind(is_op).map(|it| (*it).to_owned())
}

fn of_thread(trace: &Trace, calls: LaneId) -> Option<(LaneId, Nested)> {
    let key = trace.lanes()[calls].key();
    let LaneKind::Thread { thread } = key.kind else {
        return None;
    };
    // CPU ops lie among the ranges.
    let kind = LaneKind::Range {
        kind: RangeKind::Nvtx,
        thread,
    };
    let lane = trace.lane_id(LaneKey { kind, ..key })?;
    Some((lane, Nested::of(trace, lane, |_, _| {})))
}

/// PyTorch's ranges around the step of an optimizer.
pub const OPTIMIZER: &str = "Optimizer.step#";

/// Who did it: the innermost op that says so, and the program's own range around all ("aten::item in Optimizer.step#Adam.step").
pub fn told(names: &[&str]) -> Option<String> {
    let is_op = |name: &&&str| name.starts_with("aten::");
    let mut ops = names.iter().take_while(is_op);
    // Ranges of one length lie in no order.
    let item = ops.find(|it| **it == "aten::item");
    let op = item.map(|it| (*it).to_owned()).or_else(|| innermost(names));
    let mut ranges = names.iter().skip_while(is_op);
    let range = ranges.find(|it| !is_op(it) && !it.starts_with("ProfilerStep"));
    match (op, range) {
        (Some(op), Some(range)) => Some(format!("{op} in {range}")),
        (op, range) => op.or(range.map(|&it| it.to_owned())),
    }
}
