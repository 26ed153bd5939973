//! What single calls do or need: launches that load their kernel's code, and a context.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{CONTEXT_MIN, kernel, making, pins};
use crate::graph::{CallId, CallKind, Graph, NONE};
use activity::{NameId, Ns, Span, What};
use trace::{LaneId, Trace};

/// Launches that took long and were the first of their kernel in the process: its code is loaded meanwhile. Only what came
/// before tells, so that an answer holds while a timeline grows.
pub fn loading(trace: &Trace, graph: &Graph) -> FxHashSet<CallId> {
    let calls = &graph.calls;
    let mut long: FxHashMap<(usize, NameId), Vec<CallId>> = FxHashMap::default();
    for call in 0..calls.len() as CallId {
        let i = call as usize;
        let is_long = cases::COLD_MIN.is_reached_by(making(graph, call));
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

/// Whether a call needs its process's context, and had it: a launch, a copy, a wait, memory out of a pool.
pub(super) fn uses_context(trace: &Trace, graph: &Graph, call: CallId) -> bool {
    let ((lane, row), kind) = (graph.calls.at(call), graph.calls.kind[call as usize]);
    let is_done = matches!(trace.what(lane, row), What::Call(of) if of.code == 0);
    let is_pool = || {
        let name = graph.function(trace, call);
        name.contains("MallocAsync") || name.starts_with("cuMemAlloc") && name.contains("Async")
    };
    let needs = match kind {
        CallKind::Launch | CallKind::Copy => true,
        CallKind::Memory => is_pool(),
        kind => kind.is_wait(),
    };
    is_done && needs
}

/// Whether a process took no memory before a call: a free has nothing to free then, and makes a context, as a second runtime's does.
pub fn is_before_all(trace: &Trace, graph: &Graph, place: (LaneId, usize)) -> bool {
    let calls = &graph.calls;
    let process = |it: (LaneId, usize)| trace.lanes()[it.0].key().process;
    let start = trace.lanes()[place.0].span(place.1).start;
    let takes = |it: CallId| {
        calls.kind[it as usize] == CallKind::Memory
            && process(calls.at(it)) == process(place)
            && !graph.function(trace, it).contains("Free")
    };
    let mut before = (0..calls.len() as CallId).take_while(|it| calls.start[*it as usize] < start);
    !before.any(takes)
}

/// Whether all code was loaded ahead of the first launch: what is loaded for a launch is loaded right before it.
pub fn loads_ahead(trace: &Trace, graph: &Graph) -> bool {
    let all = 0..graph.calls.len() as CallId;
    let mut kinds = graph.calls.kind.iter();
    let Some(launch) = kinds.position(|it| *it == CallKind::Launch) else {
        return false;
    };
    let launch = graph.calls.start[launch];
    let loads = all.filter(|it| graph.function(trace, *it).starts_with("cuLibraryLoad"));
    let ends: Vec<Ns> = loads.map(|it| graph.calls.span(it).end).collect();
    let ahead: Vec<Ns> = ends.iter().copied().filter(|it| *it <= launch).collect();
    let last = ahead.iter().copied().max().unwrap_or(launch);
    let are_most = 10 * ahead.len() >= 9 * ends.len();
    let are_many = cases::STARTS_LIBRARY.is_reached_by(ahead.len());
    are_most && are_many && cases::FEW_MIN.is_reached_by(launch - last)
}

/// Whether each GPU of a process ran something before a moment: its contexts are made by then.
pub fn has_run(trace: &Trace, process: usize, at: Ns) -> bool {
    let mut first: FxHashMap<usize, Ns> = FxHashMap::default();
    for (_, lane) in trace
        .streams_in(process)
        .filter(|it| !it.1.kept().is_empty())
    {
        if let Some(device) = lane.key().kind.device() {
            let start = lane.span(lane.kept().start).start;
            let first = first.entry(device).or_insert(start);
            *first = start.min(*first);
        }
    }
    !first.is_empty() && first.values().all(|it| *it < at)
}

/// Ends that differ by less are one moment.
const AT_ONCE: Ns = 1_000_000;

/// Which calls that lock pages wait with another thread's call that locks none: one lock lets both go. What began first holds it.
pub(super) fn waiting_together(trace: &Trace, graph: &Graph) -> FxHashSet<CallId> {
    let calls = &graph.calls;
    let process = |it: CallId| trace.lanes()[calls.at(it).0].key().process;
    let of = |it: CallId| (process(it), calls.at(it).0, calls.span(it));
    let is_long = |it: &CallId| calls.span(*it).len() >= CONTEXT_MIN;
    let all = (0..calls.len() as CallId).filter(is_long);
    let (locking, others): (Vec<CallId>, Vec<CallId>) =
        all.partition(|it| pins(graph.function(trace, *it)));
    let others: Vec<(usize, LaneId, Span)> = others.into_iter().map(of).collect();
    let waits = |call: &CallId| {
        let (process, lane, span) = of(*call);
        let is_one = |it: &(usize, LaneId, Span)| {
            it.0 == process
                && it.1 != lane
                && it.2.start <= span.start + AT_ONCE
                && (it.2.end - span.end).abs() <= AT_ONCE
        };
        others.iter().any(is_one)
    };
    locking.into_iter().filter(waits).collect()
}

/// Calls that lock memory of the host, which takes as long as there are pages. Of those behind the first launch only a
/// few count: more are a loop's.
pub fn pinning(trace: &Trace, graph: &Graph) -> FxHashSet<CallId> {
    let calls = &graph.calls;
    let pins = |call: &CallId| {
        let name = || graph.function(trace, *call);
        calls.kind[*call as usize] == CallKind::Memory
            && pins(name())
            && !name().contains("Free")
            && !name().contains("Un")
    };
    let mut kinds = calls.kind.iter();
    let launched = kinds.position(|it| *it == CallKind::Launch);
    let launched = launched.unwrap_or(calls.len()) as CallId;
    let is_long = |it: &CallId| cases::COLD_MIN.is_reached_by(calls.span(*it).len());
    let all = launched..calls.len() as CallId;
    let mut later: Vec<CallId> = all.filter(pins).filter(is_long).collect();
    // What is pinned anew behind what was given back is of each data set.
    let frees = |it: CallId| {
        let name = graph.function(trace, it);
        name.contains("FreeHost") || name.contains("HostUnregister")
    };
    let is_anew = |last: &CallId| (launched..*last).any(frees);
    if cases::LOOP_MIN.is_reached_by(later.len()) || later.last().is_some_and(is_anew) {
        later.clear();
    }
    let mut all: FxHashSet<CallId> = (0..launched).filter(pins).chain(later).collect();
    if !all.is_empty() {
        let waits = waiting_together(trace, graph);
        all.retain(|it| !waits.contains(it));
    }
    all
}

/// What a library asks first, and how long before its first call at most.
const QUESTIONS: [&str; 3] = ["cuInit", "GetProcAddress", "DeviceGetAttribute"];
const QUESTION_MAX: Ns = 5_000_000;

/// Whether a library starts in a call: it frees nothing, right behind questions about the driver or the device.
pub fn starts_library(trace: &Trace, (lane, row): (LaneId, usize)) -> bool {
    let (Some(before), calls) = (row.checked_sub(1), &trace.lanes()[lane]) else {
        return false;
    };
    let name = |row| match trace.what(lane, row).name() {
        Some(name) => trace.names().full(name),
        None => "",
    };
    let is_behind = calls.span(row).start - calls.span(before).end < QUESTION_MAX;
    let asks = || QUESTIONS.iter().any(|of| name(before).contains(of));
    is_behind && name(row).contains("Free") && asks()
}

/// What a call that loads code takes at most behind its wait for the GPU.
const LOADS: Ns = 1_000_000;

/// By process, when its GPUs work.
#[derive(Clone, Debug, Default)]
pub struct Busy(FxHashMap<usize, Vec<Span>>);

impl Busy {
    /// A call that loads code without its wait for the GPU: it returns when what ran meanwhile has ended.
    pub fn without_wait(&mut self, trace: &Trace, process: usize, call: Span) -> Span {
        let meanwhile = self.within(trace, process, call);
        let Some(ended) = meanwhile.last().map(|it| it.end) else {
            return call;
        };
        let wait = Span::new(call.start, ended.min(call.end));
        let worked: Ns = meanwhile.iter().map(|it| it.intersect(wait).len()).sum();
        let is_wait =
            (call.end - LOADS..=call.end).contains(&ended) && 10 * worked >= 9 * wait.len();
        match cases::LOAD_WAITS.holds(is_wait) {
            true => Span::new(ended, call.end),
            false => call,
        }
    }

    /// The parts of a call in which the GPUs have nothing to do: in others it may wait for room in a queue.
    pub fn idle_in(&mut self, trace: &Trace, process: usize, call: Span) -> Vec<Span> {
        let mut from = call.start;
        let mut idle = Vec::new();
        for it in self.within(trace, process, call) {
            idle.push(Span::new(from, it.start.max(from)));
            from = it.end.clamp(from, call.end);
        }
        idle.push(Span::new(from, call.end));
        idle.retain(|it| !it.is_empty());
        idle
    }

    /// When they work meanwhile.
    fn within(&mut self, trace: &Trace, process: usize, call: Span) -> &[Span] {
        let busy = self.0.entry(process).or_insert_with(|| {
            let lanes = trace.streams().map(|it| it.1);
            let lanes = lanes.filter(|it| it.key().process == process);
            let spans = lanes.flat_map(|lane| lane.kept().map(|row| lane.span(row)));
            Span::merged(spans.collect())
        });
        let meanwhile = &busy[busy.partition_point(|it| it.end <= call.start)..];
        &meanwhile[..meanwhile.partition_point(|it| it.start < call.end)]
    }
}
