//! Calls that take long the first time: a library that starts, a kernel whose code is loaded when it is first launched.

mod calls;
mod comparable;
mod made;
mod system;

use rustc_hash::{FxHashMap, FxHashSet};

pub use system::{is_file_io, is_file_output, is_system_wait};

use crate::graph::{CallId, CallKind, Graph, NONE, OpId};
use activity::stats::lower_median;
use activity::{NameId, Ns, RangeKind, Span, What};
pub use calls::{Busy, has_run, is_before_all, loading, loads_ahead, pinning, starts_library};
use comparable::ComparableCalls;
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
    let waits = calls::waiting_together(calls.trace, graph);
    slow.retain(|it| !waits.contains(it));
    let found = slow.into_iter();
    let mut found: Vec<First> = found
        .map(|call| (graph.calls.span(call), graph.calls.at(call)))
        .collect();
    found.sort_unstable();
    found
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
        let base = |name: NameId| {
            let is_number = |it: char| it.is_ascii_digit() || it == ' ';
            trace.names().full(name).trim_end_matches(is_number)
        };
        // The second longest of a name: of few it is asked.
        let second = |name: NameId| {
            let its = rows.iter().filter(|it| base(*it.0) == base(name));
            let times = its.flat_map(|it| it.1).map(|row| lane.span(*row).len());
            let two = times.fold([0, 0], |of: [Ns; 2], it| {
                [of[0].max(it), of[1].max(of[0].min(it))]
            });
            two[1]
        };
        let told = |it: &(&NameId, &Vec<usize>)| cases::CALLS_MIN.is_reached_by(it.1.len());
        for (&name, list) in rows.iter().filter(told) {
            let time = |row: &usize| lane.span(*row).len();
            let mut times: Vec<Ns> = list.iter().map(time).collect();
            let usual = lower_median(&mut times).unwrap_or(0);
            let span = lane.span(list[0]);
            let own = span.len() - waits(trace, lane.key(), span);
            // One that comes again at that length is no first one: a step of TensorFlow runs whole functions in it.
            let is_cold = cases::FEW_MIN.is_reached_by(own) && is_outlier(own, usual);
            if is_cold && 2 * second(name) < span.len() {
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
