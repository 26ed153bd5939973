//! Calls that take long the first time: a library that starts, a kernel whose code is loaded when it is first launched.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph::{CallId, CallKind, Graph, NONE, OpId};
use crate::thresholds;
use activity::stats::lower_median;
use activity::{NameId, Ns, RangeKind, Span, What};
use trace::{Lane, LaneId, LaneKey, LaneKind, SourceKind, Trace};

/// Calls of a function whose times are looked at.
const SAMPLE: usize = 1_000;

/// So many calls of a function at least tell what one takes.
const CALLS_MIN: usize = 4;

/// Of fewer calls those before the quickest are such where they took this long, and operators are first ones from it
/// on. Contexts take 50 ms and more, and so do libraries that start or try what is fastest. The caches that a first
/// call of Python code fills take a few hundred microseconds.
const FEW_MIN: Ns = 10_000_000;

/// Whether a call took so much longer than its function does at the median that something else than its work took the time.
pub(crate) fn is_outlier(time: Ns, median: Ns) -> bool {
    time >= thresholds::COLD_MIN && time >= thresholds::OUTLIER * median
}

/// When something was done for the first time, and where its row is.
pub(crate) type First = (Span, (LaneId, usize));

/// What a program did for the first time, in the whole of its timeline. Nothing of one whose beginning is not there.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstUse {
    /// Calls, in order of time.
    pub(crate) calls: Vec<First>,
    /// Operators, in order of time.
    pub(crate) operators: Vec<First>,
    /// Kernels that were launched for the first time, each with when the CPU made it ready.
    pub(crate) made: FxHashMap<OpId, Span>,
}

impl FirstUse {
    pub(crate) fn of(trace: &Trace, graph: &Graph) -> Self {
        if !has_beginning(trace, graph) {
            return FirstUse::default();
        }
        let operators = operators(trace, graph);
        FirstUse {
            calls: calls(trace, graph, &operators),
            made: made(trace, graph),
            operators,
        }
    }

    /// Whether a call is one of them.
    pub(crate) fn has_call(&self, span: Span, at: (LaneId, usize)) -> bool {
        self.calls.binary_search(&(span, at)).is_ok()
    }

    /// Whether a stretch lies in an operator that is one of them.
    pub(crate) fn has_operator(&self, span: Span) -> bool {
        let mut all = self.operators.iter();
        all.any(|(first, _)| first.start <= span.start && span.end <= first.end)
    }
}

/// First calls of a function, and first launches of a kernel, that took much longer than those after them. What took
/// long a few times counts too, while the program was still at such.
fn calls(trace: &Trace, graph: &Graph, operators: &[First]) -> Vec<First> {
    // Each process has a first call of its own.
    type Function = (usize, NameId);
    let mut calls: FxHashMap<Function, Vec<CallId>> = FxHashMap::default();
    let mut met: FxHashSet<(Function, Option<NameId>)> = FxHashSet::default();
    let mut first: Vec<(CallId, Function)> = Vec::new();
    let mut kernels: Vec<(CallId, Function)> = Vec::new();
    // By process, its first call that is no quick question: whatever it is, it makes the context.
    let mut opening: FxHashMap<usize, CallId> = FxHashMap::default();
    for call in 0..graph.calls.len() as CallId {
        let i = call as usize;
        let kind = graph.calls.kind[i];
        let (lane, row) = graph.calls.at(call);
        let process = trace.lanes()[lane].key().process;
        if graph.calls.span(call).len() >= thresholds::COLD_MIN {
            opening.entry(process).or_insert(call);
        }
        // Copies take as long as they have bytes, waits as long as they wait; what loads is counted as such.
        let is_asked = matches!(kind, CallKind::Launch | CallKind::Memory | CallKind::Other);
        if !is_asked || graph.calls.waited[i] != NONE {
            continue;
        }
        let What::Call(of) = trace.what(lane, row) else {
            continue;
        };
        // A launch that failed does not load less when it is tried again.
        if kind == CallKind::Launch && of.code != 0 {
            continue;
        }
        let kernel = match kind {
            CallKind::Launch => kernel(trace, graph, graph.calls.first_op[i]),
            _ => None,
        };
        let function = (process, of.name);
        let list = calls.entry(function).or_default();
        if met.insert((function, kernel)) {
            first.push((call, function));
            kernels.extend(kernel.map(|_| (call, function)));
            // Where most launches load code, only the others tell what one takes.
            if kernel.is_some() {
                continue;
            }
        }
        if list.len() < SAMPLE {
            list.push(call);
        }
    }
    let time = |call: &CallId| graph.calls.span(*call).len();
    let medians: FxHashMap<Function, Ns> = calls
        .iter()
        .filter(|(_, list)| list.len() >= CALLS_MIN)
        .filter_map(|(&name, list)| {
            let mut times: Vec<Ns> = list.iter().map(time).collect();
            Some((name, lower_median(&mut times)?))
        })
        .collect();
    let mut slow: Vec<CallId> = first
        .into_iter()
        .filter(|(call, name)| {
            let median = medians.get(name);
            median.is_some_and(|&median| is_outlier(time(call), median))
        })
        .map(|(call, _)| call)
        .collect();
    let few = calls.iter().filter(|(_, list)| list.len() < CALLS_MIN);
    let opens = |call: &CallId| opening.values().any(|of| of == call);
    // Where few launches are no first ones there is nothing to hold a first one against, but loading code takes longer than any launch.
    let is_alone = |it: &&(CallId, Function)| !medians.contains_key(&it.1);
    let alone = kernels.iter().filter(is_alone).map(|it| it.0);
    slow.extend(alone.filter(|call| time(call) >= thresholds::COLD_MIN));
    for (name, list) in few {
        let quick = (0..list.len())
            .min_by_key(|&at| time(&list[at]))
            .unwrap_or(0);
        // What locks pages takes as long as they are many.
        let locks = trace.names().full(name.1).contains("Host");
        let is_slow = |call: &CallId| {
            time(call) >= FEW_MIN.max(thresholds::OUTLIER * time(&list[quick]))
                && (!locks || opens(call))
        };
        slow.extend(list[..quick].iter().copied().filter(is_slow));
        let only = list.iter().filter(|call| list.len() == 1 && opens(call));
        slow.extend(only.filter(|call| time(call) >= FEW_MIN));
    }
    let cold = slow.iter().map(|&call| graph.calls.end[call as usize]);
    let cold = cold.chain(operators.iter().map(|it| it.0.end));
    // What precedes all kernels has not begun to work.
    let launched = graph
        .calls
        .kind
        .iter()
        .position(|&it| it == CallKind::Launch);
    let launched = launched.map_or(Ns::MIN, |call| graph.calls.start[call]);
    let cold = cold.max().unwrap_or(Ns::MIN);
    for (name, list) in &calls {
        let median = medians.get(name).copied().unwrap_or(0);
        let is_long = |call: &CallId| time(call) >= FEW_MIN && is_outlier(time(call), median);
        let long: Vec<CallId> = list.iter().copied().filter(is_long).collect();
        let until = if median > 0 { cold.max(launched) } else { cold };
        let is_cold = |&call: &CallId| graph.calls.start[call as usize] < until;
        let locks = trace.names().full(name.1).contains("Host");
        if long.len() < CALLS_MIN && long.iter().all(is_cold) && !(locks && median == 0) {
            slow.extend(long);
        }
    }
    // A copy takes as long as it has bytes. What a first one takes beyond that makes the context, but where a profiler begins later.
    let is_late = trace.source.kind == SourceKind::Kineto;
    let is_opening_copy = |call: &&CallId| {
        let (lane, row) = graph.calls.at(**call);
        let is_memset = || match trace.what(lane, row) {
            What::Call(of) => trace.names().full(of.name).contains("Memset"),
            _ => false,
        };
        let moved = match graph.calls.first_op[**call as usize] {
            NONE => is_memset().then_some(0),
            op => Some(graph.ops.span(op).len()),
        };
        let is_long = |moved| time(call) >= FEW_MIN.max(thresholds::OUTLIER * moved);
        graph.calls.kind[**call as usize] == CallKind::Copy
            && !is_late
            && moved.is_some_and(is_long)
    };
    slow.extend(opening.values().filter(is_opening_copy));
    slow.sort_unstable();
    slow.dedup();
    // PyTorch's profiler starts in the first launch that it sees. Where it is the only slow one, nothing was loaded.
    let is_launch = |call: &&CallId| kernels.iter().any(|it| it.0 == **call);
    if is_late && kernels.len() > CALLS_MIN && slow.iter().filter(is_launch).count() == 1 {
        slow.retain(|call| *call != kernels[0].0 || time(call) >= FEW_MIN);
    }
    let found = slow.into_iter();
    let mut found: Vec<First> = found
        .map(|call| (graph.calls.span(call), graph.calls.at(call)))
        .collect();
    found.sort_unstable();
    found
}

/// A kernel's first launch, the time since the launch or wait before, and the shortest such time before a later launch.
struct Making {
    op: OpId,
    span: Span,
    later: Ns,
    /// Whether a tenth of it loaded code, and whether a name says that the kernel was compiled.
    loads: bool,
    compiles: bool,
}

/// First launches of a kernel that the CPU made ready, each with the time since the launch or wait before. Libraries that
/// compile at run time look for it, build it and load it there.
fn made(trace: &Trace, graph: &Graph) -> FxHashMap<OpId, Span> {
    let calls = &graph.calls;
    // By thread: since when it has launched nothing, what of that it loaded, and until when.
    let mut threads: FxHashMap<LaneId, (Ns, Ns, Ns)> = FxHashMap::default();
    let mut kernels: FxHashMap<(usize, NameId), Making> = FxHashMap::default();
    for call in 0..calls.len() as CallId {
        let (lane, span) = (calls.at(call).0, calls.span(call));
        match calls.kind[call as usize] {
            CallKind::Load => {
                let load = |it: &mut (Ns, Ns, Ns)| *it = (it.0, it.1 + span.len(), span.end);
                threads.entry(lane).and_modify(load);
            }
            // A wait for nothing parts nothing.
            kind if kind.is_wait() && calls.waited[call as usize] == NONE => {}
            kind if kind.is_wait() || matches!(kind, CallKind::Copy | CallKind::Launch) => {
                let op = calls.first_op[call as usize];
                let before = threads.insert(lane, (span.end, 0, Ns::MIN));
                let Some(((since, loading, loaded), name)) = before.zip(kernel(trace, graph, op))
                else {
                    continue;
                };
                let made = Span::new(since.min(span.start), span.start);
                let few = made.len() / thresholds::OUTLIER;
                let key = (trace.lanes()[lane].key().process, name);
                let first = kernels.entry(key);
                let first = first.and_modify(|it| it.later = it.later.min(made.len()));
                first.or_insert_with(|| Making {
                    op,
                    span: made,
                    loads: loading >= few,
                    compiles: made.len() >= FEW_MIN && is_compiled(trace.names().full(name))
                        || made.len() >= thresholds::COLD_MIN
                            && compiles(trace, lane, made, loaded >= span.start - few),
                    later: Ns::MAX,
                });
            }
            _ => {}
        }
    }
    // Other work may lie between, too: reading a file takes much longer than loading.
    kernels.retain(|_, it| {
        let is_quick = it.later == Ns::MAX || is_outlier(it.span.len(), it.later);
        is_quick && it.span.len() >= thresholds::COLD_MIN && (it.loads || it.compiles)
    });
    // One that is launched again shows what a launch takes here.
    let is_shown = kernels.values().any(|it| it.later != Ns::MAX);
    kernels.retain(|_, it| is_shown || it.compiles);
    kernels.into_values().map(|it| (it.op, it.span)).collect()
}

/// Whether a kernel is named as `torch.compile`, nvFuser, CuPy and Julia name what they compile at run time. Numba appends
/// `$` and a number, TorchScript a hash.
fn is_compiled(name: &str) -> bool {
    let number_after = |mark: char| {
        let (_, end) = name.split('(').next()?.rsplit_once(mark)?;
        end.bytes()
            .all(|it| it.is_ascii_digit())
            .then_some(end.len())
    };
    let makers = ["triton_", "nvfuser_", "cupy_", "julia_"];
    makers.iter().any(|maker| name.starts_with(maker))
        || number_after('$') > Some(0)
        || name.starts_with("fused_") && number_after('_') >= Some(10)
}

/// Whether a thread was in ranges named like compiling for half of a time. What is called compiled runs. Where it then
/// `loads`, a wait for another process is one for a compiler.
fn compiles(trace: &Trace, thread: LaneId, span: Span, loads: bool) -> bool {
    let key = trace.lanes()[thread].key();
    let LaneKind::Thread { thread } = key.kind else {
        return false;
    };
    let is_mine = |lane: &Lane| {
        let of = lane.key();
        of.process == key.process
            && matches!(of.kind, LaneKind::Range { thread: of, .. } if of == thread)
    };
    let lanes = trace.lanes().iter().enumerate().filter(|it| is_mine(it.1));
    let rows = lanes.flat_map(|(id, lane)| lane.rows(span).map(move |row| (id, row)));
    let named = rows.filter(|&(id, row)| {
        let What::Range(range) = trace.what(id, row) else {
            return false;
        };
        let name = trace.names().full(range.name).to_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        loads && ["poll", "ppoll", "waitpid", "wait4"].contains(&name.as_str())
            || has(&["nvrtc", "compil", "jit"]) && !has(&["compiled", "jitter"])
    });
    let named = named.map(|(id, row)| trace.lanes()[id].span(row).intersect(span));
    let named = Span::merged(named.collect()).into_iter().map(Span::len);
    2 * named.sum::<Ns>() >= span.len()
}

/// First operators of a name on their thread that took much longer than those after them, as code is compiled. And those
/// in which a library times by events what is fastest.
fn operators(trace: &Trace, graph: &Graph) -> Vec<First> {
    let calls = 0..graph.calls.len() as CallId;
    let timed = calls.filter(|&call| graph.calls.kind[call as usize] == CallKind::WaitEvent);
    let timed = timed.filter_map(|call| operator(trace, graph, call));
    let timed = timed.filter(|(_, name)| is_search(name));
    let mut found: Vec<First> = timed.map(|it| it.0).collect();
    for (id, lane) in trace.lanes().iter().enumerate() {
        // Nsight Systems has calls of the operating system there: how long they block says nothing of the first one.
        let is_of_ops = trace.source.kind != SourceKind::Nsys
            && matches!(lane.key().kind, LaneKind::Range { .. });
        if !is_of_ops || lane.kept().start > 0 {
            continue;
        }
        let mut rows: FxHashMap<NameId, Vec<usize>> = FxHashMap::default();
        for (row, activity) in trace.activities(id, lane.kept()) {
            if let What::Range(range) = activity.what
                && range.kind == RangeKind::CpuOp
            {
                let list = rows.entry(range.name).or_default();
                if list.len() < SAMPLE {
                    list.push(row);
                }
            }
        }
        for list in rows.into_values().filter(|list| list.len() >= CALLS_MIN) {
            let time = |row: &usize| lane.span(*row).len();
            let mut times: Vec<Ns> = list.iter().map(time).collect();
            let usual = lower_median(&mut times).unwrap_or(0);
            let span = lane.span(list[0]);
            if span.len() >= FEW_MIN && is_outlier(span.len(), usual) {
                found.push((span, (id, list[0])));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether an operator is one of a library that waits only while it tries what is fastest, once for each shape.
pub(crate) fn is_search(name: &str) -> bool {
    name.contains("cudnn") || name.contains("miopen")
}

/// The innermost CPU op, or range, that a call was made in, and its name.
pub(crate) fn operator<'t>(
    trace: &'t Trace,
    graph: &Graph,
    call: CallId,
) -> Option<(First, &'t str)> {
    let (lane, row) = graph.calls.at(call);
    let lane = &trace.lanes()[lane];
    let LaneKind::Thread { thread } = lane.key().kind else {
        return None;
    };
    // CPU ops lie among the ranges.
    let kind = RangeKind::Nvtx;
    let kind = LaneKind::Range { kind, thread };
    let id = trace.lane_id(LaneKey { kind, ..lane.key() })?;
    let row = trace.lanes()[id].at(lane.span(row).start)?;
    let What::Range(op) = trace.what(id, row) else {
        return None;
    };
    let first = (trace.lanes()[id].span(row), (id, row));
    Some((first, trace.names().full(op.name)))
}

/// Launches that took long and were the first of their kernel in the process: its code is loaded meanwhile. Only what came
/// before tells, so that an answer holds while a timeline grows.
pub(crate) fn loading(trace: &Trace, graph: &Graph) -> FxHashSet<CallId> {
    let calls = &graph.calls;
    let mut long: FxHashMap<(usize, NameId), Vec<CallId>> = FxHashMap::default();
    for call in 0..calls.len() as CallId {
        let i = call as usize;
        let is_long = calls.span(call).len() >= thresholds::COLD_MIN;
        if calls.kind[i] == CallKind::Launch && is_long && calls.waited[i] == NONE {
            let process = trace.lanes()[calls.at(call).0].key().process;
            if let Some(name) = kernel(trace, graph, calls.first_op[i]) {
                long.entry((process, name)).or_default().push(call);
            }
        }
    }
    if long.is_empty() || trace.evicted().is_some() {
        return FxHashSet::default();
    }
    let mut first: FxHashMap<(usize, NameId), Ns> = FxHashMap::default();
    for (id, lane) in trace.streams() {
        for (_, activity) in trace.activities(id, lane.kept()) {
            if let What::Kernel(kernel) = activity.what {
                let of = (lane.key().process, trace.shape(kernel.shape).name);
                let start = activity.span.start;
                if long.contains_key(&of) {
                    let first = first.entry(of).or_insert(start);
                    *first = start.min(*first);
                }
            }
        }
    }
    let start = |call: CallId| graph.ops.start[calls.first_op[call as usize] as usize];
    let is_first = |(of, call): &((usize, NameId), CallId)| first.get(of) == Some(&start(*call));
    let all = long
        .into_iter()
        .flat_map(|(of, list)| list.into_iter().map(move |call| (of, call)));
    all.filter(is_first).map(|(_, call)| call).collect()
}

/// What of an operator's time is the host's own: without the calls in it that wait for the device or copy.
pub(crate) fn own(trace: &Trace, (lane, row): (LaneId, usize)) -> Vec<Span> {
    let key = trace.lanes()[lane].key();
    let span = trace.lanes()[lane].span(row);
    let LaneKind::Range { thread, .. } = key.kind else {
        return vec![span];
    };
    let mut own = Vec::new();
    let mut from = span.start;
    let mine =
        |&(_, calls, of): &(LaneId, &Lane, u32)| calls.key().process == key.process && of == thread;
    for (id, calls, _) in trace.threads().filter(mine) {
        for row in calls.starting(span) {
            let call = trace.activity(id, row);
            let What::Call(what) = call.what else {
                continue;
            };
            let kind = CallKind::of(trace.names().full(what.name));
            if kind.is_wait() || kind == CallKind::Copy {
                own.push(Span::new(from, call.span.start.max(from)));
                from = from.max(call.span.end);
            }
        }
    }
    own.push(Span::new(from.min(span.end), span.end));
    own.retain(|part| !part.is_empty());
    own
}

/// The kernel that an operation is.
pub(crate) fn kernel(trace: &Trace, graph: &Graph, op: u32) -> Option<NameId> {
    let (lane, row) = (op != NONE).then(|| graph.ops.place(op))?;
    match trace.what(lane, row) {
        What::Kernel(kernel) => Some(trace.shape(kernel.shape).name),
        _ => None,
    }
}

/// Whether nothing was let go and the graph has the first call: else what looks like the first is none. Nor is it where a
/// profiler begins with a later step than the first.
fn has_beginning(trace: &Trace, graph: &Graph) -> bool {
    let names = (0..trace.names().len() as NameId).map(|id| trace.names().full(id));
    let mut steps = names.filter_map(|name| name.strip_prefix("ProfilerStep#"));
    if let Some(first) = steps.next()
        && first != "0"
        && steps.all(|other| other != "0")
    {
        return false;
    }
    let mut begin = Ns::MAX;
    for (_, lane, _) in trace.threads().filter(|(_, lane, _)| !lane.is_empty()) {
        if lane.kept().start > 0 {
            return false;
        }
        begin = begin.min(lane.span(0).start);
    }
    let starts = &graph.calls.start;
    starts.first().is_some_and(|&start| start <= begin)
}
