//! The calls of a program whose times can be compared, and those that stand out as first ones.

use rustc_hash::{FxHashMap, FxHashSet};

use super::calls::{has_run, uses_context};
use super::{CONTEXT_MIN, SAMPLE, is_outlier, kernel, making, pins};
use crate::graph::{CallId, CallKind, Graph, NONE};
use activity::stats::lower_median;
use activity::{NameId, Ns, What};
use trace::{LaneId, SourceKind, Trace};

/// A function that a process calls: each has first calls of its own.
type Function = (usize, NameId);

/// The calls of a program, as far as their times can be compared.
pub(super) struct ComparableCalls<'t> {
    pub(super) trace: &'t Trace,
    pub(super) graph: &'t Graph,
    /// By function, without those that launch a kernel for the first time.
    all: FxHashMap<Function, Vec<CallId>>,
    /// What a call takes, where there are enough to tell.
    medians: FxHashMap<Function, Ns>,
    /// First calls of a function, and first launches of a kernel; whether it is one of the latter.
    pub(super) first: Vec<(CallId, Function, bool)>,
    /// By process its first call that is no quick question: whatever it is, it makes the context.
    pub(super) opening: FxHashMap<usize, CallId>,
    /// Likewise of one whose context was there by then; and which have one, by calls that need it.
    behind: FxHashMap<usize, CallId>,
    has_context: FxHashSet<usize>,
}

impl<'t> ComparableCalls<'t> {
    pub(super) fn of(trace: &'t Trace, graph: &'t Graph) -> Self {
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

    pub(super) fn time(&self, call: &CallId) -> Ns {
        self.graph.calls.span(*call).len()
    }

    pub(super) fn add(&mut self, call: CallId, met: &mut FxHashSet<(Function, Option<NameId>)>) {
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
    pub(super) fn slow_first(&self) -> Vec<CallId> {
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
    pub(super) fn slow_of_few(&self) -> Vec<CallId> {
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

    pub(super) fn quickest(&self, function: Function) -> Ns {
        let times = self.all.get(&function).into_iter().flatten();
        times.map(|it| self.time(it)).min().unwrap_or(Ns::MAX)
    }

    /// Calls before the first launch that made the context of a further GPU: a stream, or what comes right behind the choice of one.
    /// It takes far longer than its function does.
    pub(super) fn further_contexts(&self) -> Vec<CallId> {
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
                && !has_run(self.trace, process, calls.start[call as usize])
            {
                found.push(call);
            }
        }
        found
    }

    /// Until when nothing is asked of a GPU behind a moment: the libraries start one after the other.
    pub(super) fn goes_on_from(&self, cold: Ns) -> Ns {
        let calls = &self.graph.calls;
        let asks = |it: &usize| matches!(calls.kind[*it], CallKind::Launch | CallKind::Copy);
        let next = (0..calls.len()).filter(asks);
        let next = next.map(|it| calls.start[it]).find(|it| *it >= cold);
        next.unwrap_or(cold)
    }

    /// What took long a few times, before the last first one had ended, which was then, or before all kernels.
    pub(super) fn slow_before(&self, cold: Ns) -> Vec<CallId> {
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
    pub(super) fn opening_copies(&self) -> impl Iterator<Item = CallId> {
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
    pub(super) fn leave_out_profilers(&self, slow: &mut Vec<CallId>) {
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
    pub(super) fn opens(&self, call: &CallId) -> bool {
        self.opening.values().any(|of| of == call)
    }

    /// Whether a function locks pages.
    pub(super) fn locks(&self, function: Function) -> bool {
        pins(self.trace.names().full(function.1))
    }

    /// Whether a function takes managed memory, which is set up the first time.
    pub(super) fn is_managed(&self, function: Function) -> bool {
        self.trace.names().full(function.1).contains("llocManaged")
    }

    pub(super) fn is_of_kineto(&self) -> bool {
        self.trace.source.kind == SourceKind::Kineto
    }
}
