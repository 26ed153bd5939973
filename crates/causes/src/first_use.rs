//! Calls that take long the first time: a library that starts, a kernel whose code is loaded when it is first launched.

mod calls;
mod made;
mod system;

use rustc_hash::{FxHashMap, FxHashSet};

pub use system::{is_file_io, is_file_output, is_system_wait};

use crate::graph::{CallId, CallKind, Graph, NONE, OpId};
use activity::stats::lower_median;
use activity::{NameId, Ns, RangeKind, Span, What};
use calls::uses_context;
pub use calls::{Busy, loading, pinning, starts_library};
use trace::{LaneId, LaneKey, LaneKind, SourceKind, Trace};

/// Names of calls that allocate or free device memory, in CUDA and in HIP. Stream-ordered ones (`…Async`) come from a
/// pool, and cost next to nothing while that keeps its memory.
pub fn is_allocation(name: &str) -> bool {
    let bare = ["cuda", "hip", "cuMem"].iter();
    let bare = bare.filter_map(|prefix| name.strip_prefix(prefix)).next();
    bare.is_some_and(|it| {
        let is_one = ["Malloc", "Alloc", "Free"]
            .iter()
            .any(|n| it.starts_with(n));
        is_one && !it.contains("Host")
    })
}

/// No context takes less.
pub const CONTEXT_MIN: Ns = 50_000_000;

/// Calls of a function whose times are looked at.
const SAMPLE: usize = 1_000;

/// Whether a call took so much longer than its function does at the median that something else than its work took the time.
pub fn is_outlier(time: Ns, median: Ns) -> bool {
    cases::COLD_MIN.is_reached_by(time) && time >= cases::OUTLIER.value().saturating_mul(median)
}

/// When something was done for the first time, and where its row is.
pub type First = (Span, (LaneId, usize));

/// What a program did for the first time, in the whole of its timeline. Nothing of one whose beginning is not there.
#[derive(Clone, Debug, Default)]
pub struct FirstUse {
    /// Calls, in order of time.
    pub calls: Vec<First>,
    /// Operators, in order of time.
    pub operators: Vec<First>,
    /// Kernels that were launched for the first time, each with when the CPU made it ready.
    pub made: FxHashMap<OpId, Span>,
    /// Of those kernels the ones that a library was started for, and those that were compiled for all that is known.
    pub started: FxHashSet<OpId>,
    pub compiled: FxHashSet<OpId>,
    /// And those that ranges or samples show to be compiled. Of others a name or what was loaded last tells that, and no record.
    pub seen: FxHashSet<OpId>,
    /// Of `calls`, those that made their process's context.
    pub opening: FxHashSet<(LaneId, usize)>,
    /// And those that made the context of a further GPU.
    pub further: FxHashSet<(LaneId, usize)>,
    /// What launches of a kernel for the first time began, of a program that was seen to load its kernels one by one then.
    pub launches: FxHashSet<OpId>,
}

/// How a kernel was made ready before its first launch.
#[derive(Clone, Copy, Debug)]
struct Made {
    span: Span,
    starts: bool,
    compiles: bool,
    is_seen: bool,
}

/// So many kernels that run for the first time, and so many calls that are slow then, tell a program that starts.
const STARTS: usize = 8;

impl FirstUse {
    pub fn of(trace: &Trace, graph: &Graph) -> Self {
        if !has_beginning(trace, graph) {
            return FirstUse::default();
        }
        let operators = operators(trace, graph);
        let calls = ComparableCalls::of(trace, graph);
        let opening = calls.opening.values().map(|&call| graph.calls.at(call));
        let made = made::made(trace, graph);
        let those = |is_such: fn(&Made) -> bool| {
            let such = made.iter().filter(|it| is_such(it.1));
            such.map(|it| *it.0).collect()
        };
        let slow = first_calls(&calls, &operators);
        let launches = launches(&calls, slow.len());
        let further = calls.further_contexts().into_iter();
        FirstUse {
            launches,
            opening: opening.collect(),
            further: further.map(|call| graph.calls.at(call)).collect(),
            calls: slow,
            started: those(|it| it.starts),
            compiled: those(|it| it.compiles),
            seen: those(|it| it.is_seen),
            made: made.iter().map(|(op, it)| (*op, it.span)).collect(),
            operators,
        }
    }

    /// Whether a call is one of them.
    pub fn has_call(&self, span: Span, at: (LaneId, usize)) -> bool {
        self.calls.binary_search(&(span, at)).is_ok()
    }

    /// Whether a stretch lies in an operator that is one of them.
    pub fn has_operator(&self, span: Span) -> bool {
        lies_in(&self.operators, span)
    }

    /// Whether a stretch lies in a call that is one of them.
    pub fn has_call_around(&self, span: Span) -> bool {
        lies_in(&self.calls, span)
    }
}

/// See [`FirstUse::launches`]. What runs each kernel but two or three times does all of it for the first time.
fn launches(calls: &ComparableCalls<'_>, slow: usize) -> FxHashSet<OpId> {
    let made = &calls.graph.calls;
    let op = |call: CallId| Some(made.first_op[call as usize]).filter(|it| *it != NONE);
    let first = calls.first.iter().filter(|it| it.2);
    let first: FxHashSet<OpId> = first.filter_map(|it| op(it.0)).collect();
    if slow < STARTS || first.len() < STARTS || calls.is_of_kineto() {
        return FxHashSet::default();
    }
    let launch = |it: &CallId| made.kind[*it as usize] == CallKind::Launch;
    let all = (0..made.len() as CallId).filter(launch).filter_map(op);
    let all: FxHashSet<OpId> = all.take(3 * first.len()).collect();
    if all.len() < 3 * first.len() {
        all
    } else {
        first
    }
}

fn lies_in(all: &[First], span: Span) -> bool {
    let mut all = all.iter();
    all.any(|(first, _)| first.start <= span.start && span.end <= first.end)
}

/// First calls of a function, and first launches of a kernel, that took much longer than those after them. What took
/// long a few times counts too, while the program was still at such.
fn first_calls(calls: &ComparableCalls<'_>, operators: &[First]) -> Vec<First> {
    let graph = calls.graph;
    let mut slow = calls.slow_first();
    slow.extend(calls.slow_of_few());
    let cold = slow.iter().map(|&call| graph.calls.end[call as usize]);
    let cold = cold.chain(operators.iter().map(|it| it.0.end)).max();
    let cold = cold.map_or(Ns::MIN, |it| calls.goes_on_from(it));
    slow.extend(calls.slow_before(cold));
    slow.extend(calls.opening_copies());
    slow.extend(calls.further_contexts());
    slow.sort_unstable();
    slow.dedup();
    calls.leave_out_profilers(&mut slow);
    let found = slow.into_iter();
    let mut found: Vec<First> = found
        .map(|call| (graph.calls.span(call), graph.calls.at(call)))
        .collect();
    found.sort_unstable();
    found
}

/// A function that a process calls: each has first calls of its own.
type Function = (usize, NameId);

/// The calls of a program, as far as their times can be compared.
struct ComparableCalls<'t> {
    trace: &'t Trace,
    graph: &'t Graph,
    /// By function, without those that launch a kernel for the first time.
    all: FxHashMap<Function, Vec<CallId>>,
    /// What a call takes, where there are enough to tell.
    medians: FxHashMap<Function, Ns>,
    /// First calls of a function, and first launches of a kernel; whether it is one of the latter.
    first: Vec<(CallId, Function, bool)>,
    /// By process its first call that is no quick question: whatever it is, it makes the context.
    opening: FxHashMap<usize, CallId>,
    /// Likewise of one whose context was there by then; and which have one, by calls that need it.
    behind: FxHashMap<usize, CallId>,
    has_context: FxHashSet<usize>,
}

impl<'t> ComparableCalls<'t> {
    fn of(trace: &'t Trace, graph: &'t Graph) -> Self {
        let mut calls = ComparableCalls {
            trace,
            graph,
            all: FxHashMap::default(),
            medians: FxHashMap::default(),
            first: Vec::new(),
            opening: FxHashMap::default(),
            behind: FxHashMap::default(),
            has_context: FxHashSet::default(),
        };
        let mut met: FxHashSet<(Function, Option<NameId>)> = FxHashSet::default();
        for call in 0..graph.calls.len() as CallId {
            calls.add(call, &mut met);
        }
        let told = calls.all.iter();
        let told = told.filter(|it| cases::CALLS_MIN.is_reached_by(it.1.len()));
        let median = |list: &[CallId]| {
            let mut times: Vec<Ns> = list.iter().map(|it| calls.time(it)).collect();
            lower_median(&mut times)
        };
        calls.medians = told
            .filter_map(|(&function, list)| Some((function, median(list)?)))
            .collect();
        calls
    }

    fn time(&self, call: &CallId) -> Ns {
        self.graph.calls.span(*call).len()
    }

    fn add(&mut self, call: CallId, met: &mut FxHashSet<(Function, Option<NameId>)>) {
        let calls = &self.graph.calls;
        let (i, kind) = (call as usize, calls.kind[call as usize]);
        let (lane, row) = calls.at(call);
        let process = self.trace.lanes()[lane].key().process;
        // A library of kernels is loaded without a context.
        let needs_context = kind != CallKind::Load
            || !self
                .graph
                .function(self.trace, call)
                .contains("LibraryLoad");
        if needs_context && cases::COLD_MIN.is_reached_by(self.time(&call)) {
            let is_there = self.has_context.contains(&process)
                && !self.opening.contains_key(&process)
                && !self.is_of_kineto();
            let known = match cases::HAS_CONTEXT.holds(is_there) {
                true => &mut self.behind,
                false => &mut self.opening,
            };
            let opening = known.entry(process).or_insert(call);
            let is_quick = !cases::FEW_MIN.is_reached_by(calls.span(*opening).len());
            let takes = cases::FEW_MIN.is_reached_by(calls.span(call).len())
                && kind == CallKind::Memory
                && !self.has_context.contains(&process)
                && !self.graph.function(self.trace, call).contains("Host");
            let launched = || self.first.iter().any(|it| it.2);
            if cases::ONE_ALLOCATION.holds(is_quick && takes && !launched()) {
                *opening = call;
            }
        }
        if uses_context(self.trace, self.graph, call) {
            self.has_context.insert(process);
        }
        // Copies take as long as they have bytes, waits as long as they wait; what loads is counted as such.
        let is_asked = matches!(kind, CallKind::Launch | CallKind::Memory | CallKind::Other);
        if !is_asked || calls.waited[i] != NONE {
            return;
        }
        let What::Call(of) = self.trace.what(lane, row) else {
            return;
        };
        if cases::FAILED_LAUNCH.holds(kind == CallKind::Launch && of.code != 0) {
            return;
        }
        let kernel = match kind {
            CallKind::Launch => kernel(self.trace, self.graph, calls.first_op[i]),
            _ => None,
        };
        let function = (process, of.name);
        let list = self.all.entry(function).or_default();
        if met.insert((function, kernel)) {
            self.first.push((call, function, kernel.is_some()));
            if cases::FIRST_LAUNCHES.holds(kernel.is_some()) {
                return;
            }
        }
        if list.len() < SAMPLE {
            list.push(call);
        }
    }

    /// First ones that took much longer than those after them. Few launches may be no first ones, so that there is nothing to
    /// hold one against.
    fn slow_first(&self) -> Vec<CallId> {
        let is_slow = |(call, function, is_launch): &&(CallId, Function, bool)| {
            let time = making(self.graph, *call);
            match self.medians.get(function) {
                Some(&median) => {
                    let takes_all = || self.opens(call) && time >= CONTEXT_MIN;
                    is_outlier(time, median)
                        || is_outlier(time, self.quickest(*function)) && takes_all()
                }
                None => {
                    cases::LAUNCH_ALONE.holds(*is_launch && cases::COLD_MIN.is_reached_by(time))
                }
            }
        };
        let slow = self.first.iter().filter(is_slow);
        slow.map(|it| it.0).collect()
    }

    /// Of a few calls of a function those before the quickest, and one that makes the context.
    fn slow_of_few(&self) -> Vec<CallId> {
        let mut slow = Vec::new();
        let is_few = |it: &(&Function, &Vec<CallId>)| !self.medians.contains_key(it.0);
        for (function, list) in self.all.iter().filter(is_few) {
            let quick = (0..list.len())
                .min_by_key(|&at| self.time(&list[at]))
                .unwrap_or(0);
            let is_slow = |call: &CallId| {
                let time = self.time(call);
                let is_like_others = time
                    < cases::OUTLIER
                        .value()
                        .saturating_mul(self.time(&list[quick]));
                cases::FEW_MIN.is_reached_by(time)
                    && !is_like_others
                    && !cases::LOCKS_PAGES.holds(self.locks(*function) && !self.opens(call))
            };
            slow.extend(list[..quick].iter().copied().filter(is_slow));
            if let [only] = list[..]
                && cases::FEW_MIN.is_reached_by(self.time(&only))
                && cases::OPENING_CALL.holds(self.opens(&only) || self.is_managed(*function))
            {
                slow.push(only);
            }
        }
        slow
    }

    fn quickest(&self, function: Function) -> Ns {
        let times = self.all.get(&function).into_iter().flatten();
        times.map(|it| self.time(it)).min().unwrap_or(Ns::MAX)
    }

    /// Calls before the first launch that made the context of a further GPU: a stream, or what comes right behind the choice of one.
    /// It takes far longer than its function does.
    fn further_contexts(&self) -> Vec<CallId> {
        let calls = &self.graph.calls;
        let launched = calls.kind.iter().position(|&it| it == CallKind::Launch);
        let mut chosen: FxHashSet<LaneId> = FxHashSet::default();
        let mut found = Vec::new();
        for call in 0..launched.unwrap_or(0) as CallId {
            let (lane, row) = calls.at(call);
            let What::Call(of) = self.trace.what(lane, row) else {
                continue;
            };
            let name = self.trace.names().full(of.name);
            let chooses = name.contains("SetDevice");
            let is_next = match chooses {
                true => !chosen.insert(lane),
                false => chosen.remove(&lane),
            };
            let is_asked = matches!(
                calls.kind[call as usize],
                CallKind::Memory | CallKind::Other
            );
            let makes = name.contains("StreamCreate") || is_next && !chooses && is_asked;
            let process = self.trace.lanes()[lane].key().process;
            let time = self.time(&call);
            if makes
                && time >= CONTEXT_MIN
                && !self.opens(&call)
                && is_outlier(time, self.quickest((process, of.name)))
            {
                found.push(call);
            }
        }
        found
    }

    /// Until when nothing is asked of a GPU behind a moment: the libraries start one after the other.
    fn goes_on_from(&self, cold: Ns) -> Ns {
        let calls = &self.graph.calls;
        let asks = |it: &usize| matches!(calls.kind[*it], CallKind::Launch | CallKind::Copy);
        let next = (0..calls.len()).filter(asks);
        let next = next.map(|it| calls.start[it]).find(|it| *it >= cold);
        next.unwrap_or(cold)
    }

    /// What took long a few times, before the last first one had ended, which was then, or before all kernels.
    fn slow_before(&self, cold: Ns) -> Vec<CallId> {
        let calls = &self.graph.calls;
        let launched = calls.kind.iter().position(|&it| it == CallKind::Launch);
        let launched = launched.map_or(Ns::MIN, |call| calls.start[call]);
        let mut slow = Vec::new();
        for (function, list) in &self.all {
            let median = self.medians.get(function).copied().unwrap_or(0);
            let name = self.trace.names().full(function.1);
            // Asking how many blocks fit takes microseconds, whenever that is.
            let asks = name.contains("Occupancy");
            let allocates = name.to_lowercase().contains("alloc") && !self.locks(*function);
            let is_long = |call: &&CallId| {
                let time = self.time(call);
                let is_much = cases::FEW_MIN.is_reached_by(time)
                    || cases::SLOW_QUESTION.holds(asks)
                    || allocates && cases::COLD_ALLOCATION.is_reached_by(time);
                is_much && is_outlier(time, median)
            };
            let long: Vec<CallId> = list.iter().filter(is_long).copied().collect();
            let until = match cases::BEFORE_LAUNCHES.holds(median > 0) {
                true => cold.max(launched),
                false => cold,
            };
            let is_cold = |&call: &CallId| asks || calls.start[call as usize] < until;
            let locks = cases::LOCKS_PAGES.holds(self.locks(*function) && median == 0);
            let is_few = long.len() < cases::CALLS_MIN.value();
            if cases::COLD_MEANWHILE.holds(is_few && long.iter().all(is_cold) && !locks) {
                slow.extend(long);
            }
        }
        slow
    }

    /// Copies and memsets that make the context, or are the first behind that, by what they take beyond their bytes.
    fn opening_copies(&self) -> impl Iterator<Item = CallId> {
        let is_one = |call: &CallId| {
            let calls = &self.graph.calls;
            let moved = match calls.first_op[*call as usize] {
                NONE => self
                    .graph
                    .function(self.trace, *call)
                    .contains("Memset")
                    .then_some(0),
                op => Some(self.graph.ops.span(op).len()),
            };
            let time = self.time(call);
            let is_slow = |moved| {
                cases::FEW_MIN.is_reached_by(time)
                    && time >= cases::OUTLIER.value().saturating_mul(moved)
            };
            calls.kind[*call as usize] == CallKind::Copy
                && !cases::BEGINS_LATE.holds(self.is_of_kineto())
                && moved.is_some_and(is_slow)
        };
        let first = self.opening.values().chain(self.behind.values());
        first.copied().filter(is_one)
    }

    /// Leaves out the first launch of all where it is the only slow one: PyTorch's profiler starts in it.
    fn leave_out_profilers(&self, slow: &mut Vec<CallId>) {
        let launches = self.first.iter().filter(|it| it.2);
        let launches: Vec<CallId> = launches.map(|it| it.0).collect();
        let is_profilers = self.is_of_kineto()
            && launches.len() > cases::CALLS_MIN.value()
            && slow.iter().filter(|call| launches.contains(call)).count() == 1;
        if is_profilers {
            let is_quick = |call: &CallId| !cases::FEW_MIN.is_reached_by(self.time(call));
            slow.retain(|call| {
                !cases::PROFILER_STARTS.holds(*call == launches[0] && is_quick(call))
            });
        }
    }

    /// Whether it is the first of its process that is no quick question.
    fn opens(&self, call: &CallId) -> bool {
        self.opening.values().any(|of| of == call)
    }

    /// Whether a function locks pages.
    fn locks(&self, function: Function) -> bool {
        pins(self.trace.names().full(function.1))
    }

    /// Whether a function takes managed memory, which is set up the first time.
    fn is_managed(&self, function: Function) -> bool {
        self.trace.names().full(function.1).contains("llocManaged")
    }

    fn is_of_kineto(&self) -> bool {
        self.trace.source.kind == SourceKind::Kineto
    }
}

/// What a call takes; nothing where what it launched began in its first half: what it does behind that makes nothing ready.
fn making(graph: &Graph, call: CallId) -> Ns {
    let (span, op) = (graph.calls.span(call), graph.calls.first_op[call as usize]);
    let is_ready = op != NONE && 2 * (graph.ops.start[op as usize] - span.start) < span.len();
    if is_ready { 0 } else { span.len() }
}

/// How long the thread of a lane waits for the GPU within a stretch.
fn waits(trace: &Trace, key: LaneKey, within: Span) -> Ns {
    let LaneKind::Range { thread, .. } = key.kind else {
        return 0;
    };
    let kind = LaneKind::Thread { thread };
    let calls = trace.lane_id(LaneKey { kind, ..key });
    let rows = calls.into_iter().flat_map(|id| {
        let rows = trace.activities(id, trace.lanes()[id].starting(within));
        rows.filter(|(_, it)| {
            let name = it.what.name().map(|it| trace.names().full(it));
            name.is_some_and(|it| CallKind::of(it).is_wait())
        })
    });
    rows.map(|(_, it)| it.span.intersect(within).len()).sum()
}

/// First operators of a name on their thread that took much longer than those after them, as code is compiled. And those
/// in which a library times by events what is fastest, or the compiler of XLA is at work.
fn operators(trace: &Trace, graph: &Graph) -> Vec<First> {
    let calls = 0..graph.calls.len() as CallId;
    let timed = calls.filter(|&call| graph.calls.kind[call as usize] == CallKind::WaitEvent);
    let timed = timed.filter_map(|call| operator(trace, graph, call));
    let timed = timed.filter(|(_, name)| cases::SEARCH.holds(is_search(name)));
    let mut found: Vec<First> = timed.map(|it| it.0).collect();
    for (id, lane) in trace.lanes().iter().enumerate() {
        if !matches!(lane.key().kind, LaneKind::Range { .. }) || lane.kept().start > 0 {
            continue;
        }
        let are_systems = cases::SYSTEM_CALLS.holds(trace.source.kind == SourceKind::Nsys);
        let mut rows: FxHashMap<NameId, Vec<usize>> = FxHashMap::default();
        let mut compiled = Ns::MIN;
        for (row, activity) in trace.activities(id, lane.kept()) {
            let What::Range(range) = activity.what else {
                continue;
            };
            if range.kind == RangeKind::Nvtx && is_compiler(trace.names().full(range.name)) {
                // What lies in it is a part of it.
                if activity.span.start >= compiled {
                    compiled = activity.span.end;
                    found.push((activity.span, (id, row)));
                }
            } else if range.kind == RangeKind::CpuOp && !are_systems {
                let list = rows.entry(range.name).or_default();
                if list.len() < SAMPLE {
                    list.push(row);
                }
            }
        }
        let told = |list: &Vec<usize>| cases::CALLS_MIN.is_reached_by(list.len());
        for list in rows.into_values().filter(told) {
            let time = |row: &usize| lane.span(*row).len();
            let mut times: Vec<Ns> = list.iter().map(time).collect();
            let usual = lower_median(&mut times).unwrap_or(0);
            let span = lane.span(list[0]);
            let own = span.len() - waits(trace, lane.key(), span);
            if cases::FEW_MIN.is_reached_by(own) && is_outlier(own, usual) {
                found.push((span, (id, list[0])));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether a call pins memory of the host or unpins it, by its name.
pub fn pins(name: &str) -> bool {
    name.contains("Host") && CallKind::of(name) == CallKind::Memory
}

/// Whether an operator is one of a library that waits only while it tries what is fastest, once for each shape.
pub fn is_search(name: &str) -> bool {
    name.contains("cudnn") || name.contains("miopen")
}

/// Whether a range is one that the compiler of XLA marks its work with.
pub fn is_compiler(name: &str) -> bool {
    let runs = ["XlaModule", "XlaLauncher"];
    name.starts_with("Xla") && !runs.iter().any(|it| name.starts_with(it))
}

/// The innermost CPU op, or range, that a call was made in, and its name.
pub fn operator<'t>(trace: &'t Trace, graph: &Graph, call: CallId) -> Option<(First, &'t str)> {
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

/// What of an operator's time is the host's own: without the calls in it that wait for the device or copy.
pub fn own(trace: &Trace, (lane, row): (LaneId, usize)) -> Vec<Span> {
    let key = trace.lanes()[lane].key();
    let span = trace.lanes()[lane].span(row);
    let LaneKind::Range { thread, .. } = key.kind else {
        return vec![span];
    };
    let mut own = Vec::new();
    let mut from = span.start;
    let kind = LaneKind::Thread { thread };
    if let Some(id) = trace.lane_id(LaneKey { kind, ..key }) {
        for row in trace.lanes()[id].starting(span) {
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
pub fn kernel(trace: &Trace, graph: &Graph, op: u32) -> Option<NameId> {
    match (op != NONE).then(|| graph.what(trace, op))? {
        What::Kernel(kernel) => Some(trace.shape(kernel.shape).name),
        _ => None,
    }
}

/// Whether nothing was let go and the graph has the first call: else what looks like the first is none.
fn has_beginning(trace: &Trace, graph: &Graph) -> bool {
    let names = (0..trace.names().len() as NameId).map(|id| trace.names().full(id));
    let mut steps = names.filter_map(|name| name.strip_prefix("ProfilerStep#"));
    let is_later = match steps.next() {
        Some(first) => first != "0" && steps.all(|other| other != "0"),
        None => false,
    };
    if cases::LATER_STEP.holds(is_later) {
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
