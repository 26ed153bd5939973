//! Time that only the first run pays: modules loaded, functions loaded on first use, code compiled, libraries started.

mod again;

use super::{Finding, Occurrence, Scope, Severity, longest_first};
use ::program::cures::COMPILES;
use ::program::{Framework, arch_option};
use activity::units::{duration, share};
use activity::{NameId, Ns, Overhead, Span, What};
use causes::graph::{CallId, CallKind};
use causes::stacks::StackCounts;
use causes::{Culprit, Piece, first_use, is_loading};
use figures::DeviceFigures;
use figures::start_work::{FirstWork, StartWork};
use rustc_hash::{FxHashMap, FxHashSet};
use trace::{LaneId, LaneKind, SourceKind, Trace};

/// Its cure.
pub const COMPILING: &str = "compiling once";

/// What compiles up to the end is called so: that has no start which is over.
const AGAIN: &str = "compiling again and again";

const ANEW: &str = "It is compiled anew again and again: keep shapes and static arguments the same from step to step, or pad them.";

pub(super) fn check(scope: &Scope) -> Option<Finding> {
    let mut cold = Cold {
        scope,
        whole: scope.span(),
        lost: scope.lost(),
        at: Vec::new(),
        pinning: FxHashSet::default(),
        taken: FxHashSet::default(),
        pinned: StackCounts::default(),
        tuned: StackCounts::default(),
        busy: first_use::Busy::default(),
        built: FxHashSet::default(),
        is_rebuilt: false,
        has: StartWork::default(),
    };
    cold.add_driver();
    cold.add_loading();
    cold.add_first_calls();
    cold.add_first_operators();
    cold.add_built();
    cold.add_pinning();
    cold.add_taken();
    let (time, whole) = (cold.has.time(), cold.whole.len());
    let is_pinning = cold.has.is_mostly(FirstWork::Pinning, time);
    let is_tuning = cold.has.is_mostly(FirstWork::Tuning, time);
    let line = match is_tuning {
        true => cold.tuned.telling(scope.trace),
        false => cold.pinned.telling(scope.trace).filter(|_| is_pinning),
    };
    // Its time is the host's: it may be longer than all that the GPU did.
    let is_worth = cases::WORTH_SHARE.is_reached_by(share(time, whole));
    if !cases::COLD_MIN.is_reached_by(time) || !is_worth {
        return None;
    }
    let (told, what) = cold.has.told(time, whole);
    let inside = (scope.devices.iter())
        .map(|f| (idle_of_first(&cold, f), f.idle_ns))
        .max();
    let (pinned, idle) = inside.map_or((0, 0), |it| (it.0.1, it.1));
    let inside = inside.map(|it| it.0.0.min(told));
    let inside = inside.filter(|_| cold.lost.is_none());
    // What lies before the GPU's work costs none of its time.
    let inside_share = share(inside.unwrap_or(0), whole);
    let is_much = cases::WARNING_SHARE.is_reached_by(inside_share);
    // What the GPU waits for most is what a headline names, and so is its cure.
    // Of what first calls take it may be most, and yet next to nothing of the idle time.
    let held = |times: Ns, of: Ns| pinned > 0 && pinned.saturating_mul(times) >= of;
    let is_held = held(2, idle) || held(2, inside.unwrap_or(idle)) && held(5, idle);
    let is_each = cold.is_each(time);
    // What traces and lowers it goes with it.
    let beside = match is_each {
        true => scope.devices.iter().map(|f| cold.beside(f)).max(),
        false => None,
    };
    Some(Finding {
        severity: Severity::warn_where(is_much),
        beside_ns: beside.map_or(0, |it| (it - inside.unwrap_or(0)).max(0)),
        gain: (is_held && is_much)
            .then(|| format!("up to {} from pinning earlier", duration(pinned))),
        title: format!(
            "{}: {} spent on {}{}; the GPU's work spans {}",
            if is_each { AGAIN } else { "cold start" },
            duration(told),
            what,
            line.map_or_else(String::new, |it| format!(" at {}", it.place)),
            duration(whole),
        ),
        advice: match is_each {
            true if scope.framework() == Framework::Jax => COMPILES.0.to_owned(),
            true => ANEW.to_owned(),
            false => cold.advice(time, is_held),
        },
        change: scope.change(
            match is_each {
                true => "anew",
                false if cold.has.is_mostly(FirstWork::Building, time) => cache(scope),
                false => "",
            },
            None,
        ),
        cure: match () {
            () if is_tuning => "autotuning once",
            () if is_each => COMPILING,
            () if is_pinning => "pinning less",
            () => "",
        },
        next: match is_pinning {
            true => "pin only what copies need",
            false => "",
        },
        bound_ns: told,
        inside_ns: inside,
        ..scope.found(whole, told, &longest_first(cold.at))
    })
}

/// What keeps compiled kernels from run to run: PyTorch's Inductor, which names its kernels, has a cache of its own.
pub(super) fn cache(scope: &Scope) -> &'static str {
    let is_its = |it: &str| {
        it.starts_with("triton_poi_")
            || it.starts_with("triton_red_")
            || it.starts_with("triton_per_")
    };
    match scope.has_name(is_its) {
        true => "inductor",
        false => "cache",
    }
}

/// How long a device is idle while the CPU does what it does but once, and how long of it in these calls.
fn idle_of_first(cold: &Cold, f: &DeviceFigures) -> (Ns, Ns) {
    let (scope, pinning) = (cold.scope, &cold.pinning);
    // The pause before what follows the stretch lies in it, too.
    let mut looked = f.clone();
    let end = scope.window_on(f.index).map_or(Ns::MAX, |it| it.end);
    looked.span.end = f.span.end.min(end);
    let first = scope.idle_that(&looked, |gap, piece| {
        let is_first = piece.cause.is_of_host() && scope.causes.is_first(gap.next, piece);
        (is_first || is_in(piece, &cold.taken)) && !is_in(piece, pinning)
    });
    // What is pinned for the first time behind the start counts, too.
    let whole = || scope.within(None, scope.devices);
    let pinned = || whole().idle_that(f, |_, piece| is_in(piece, pinning));
    let pinned = if pinning.is_empty() { 0 } else { pinned() };
    (first + pinned, pinned)
}

/// Whether one of these calls is what a piece is.
pub(super) fn is_in(piece: &Piece, calls: &FxHashSet<CallId>) -> bool {
    matches!(piece.culprit, Culprit::Call(call) if calls.contains(&call))
}

/// See [`first_use::pinning`].
pub(super) fn pinning<'s>(scope: &'s Scope) -> &'s FxHashSet<CallId> {
    let find = || first_use::pinning(scope.trace, scope.causes.graph());
    scope.program.pinning.get_or_init(find)
}

/// No context takes as long.
const CONTEXT_MAX: Ns = 1_000_000_000;

/// What a program does but once, on the clock of all processes.
struct Cold<'s, 'a> {
    scope: &'s Scope<'a>,
    /// The GPU's work.
    whole: Span,
    /// From when on records of it are lost.
    lost: Option<Ns>,
    at: Vec<(Ns, Occurrence)>,
    /// Calls that lock memory, and calls that take memory of a device and keep it.
    pinning: FxHashSet<CallId>,
    taken: FxHashSet<CallId>,
    /// What the CPU was seen at while it locked memory.
    pinned: StackCounts,
    /// And while Triton tried configurations.
    tuned: StackCounts,
    /// When the GPUs work.
    busy: first_use::Busy,
    /// Kernels that were built, and whether one was more than once.
    built: FxHashSet<NameId>,
    is_rebuilt: bool,
    has: StartWork,
}

impl Cold<'_, '_> {
    fn advice(&self, time: Ns, is_held: bool) -> String {
        let is_mostly = |work| self.has.is_mostly(work, time);
        match is_mostly(FirstWork::Loading) && is_cuda(self.scope) {
            true if first_use::loads_ahead(self.scope.trace, self.scope.causes.graph()) => "All code is loaded ahead here. Let each kernel be loaded at its first launch: CUDA_MODULE_LOADING=LAZY.",
            true => "Warm up before measuring: run everything once, or load ahead with CUDA_MODULE_LOADING=EAGER. The program still takes that time.",
            false if is_mostly(FirstWork::Building) => "Warm up before measuring: run everything once. The program still takes that time: only a cache kept from run to run saves it.",
            false if is_mostly(FirstWork::Tuning) => "Triton tries them anew for each value of the autotuner's key: pad sizes to a few, or leave them out of the key.",
            false if is_held => "Pin host memory before the GPU's work begins, and only what copies need.",
            false if is_mostly(FirstWork::Pinning) => "Pin only what copies need, or in another thread.",
            false => "Warm up before measuring: run everything once. The program still takes that time.",
        }
        .to_owned()
            // Others make PTX themselves, on purpose.
            + &match self.has.is_compiled(time) && self.scope.framework() == Framework::Cuda {
                true => format!(" The driver also compiles PTX for this GPU: build for its architecture ({}), so that the program brings machine code.", arch_option(self.scope.trace)),
                false if is_mostly(FirstWork::Building) && self.has.is_guess() => {
                    " No record shows the compiler: a kernel is launched for the first time behind it.".to_owned()
                }
                false => String::new(),
            }
    }

    /// How long a device runs no kernel where it is idle in some of that.
    fn beside(&self, f: &DeviceFigures) -> Ns {
        let all = Span::merged(self.has.spans.concat());
        let holds = |gap: &Span| {
            let at = all.partition_point(|it| it.end <= gap.start);
            all.get(at).is_some_and(|it| it.start < gap.end)
        };
        let gaps = self.scope.gaps(f).map(|it| it.0.span);
        let ops = &self.scope.causes.graph().ops;
        let free = ops.without_kernels(f.index, f.span, gaps.filter(holds), Ns::MAX);
        free.min(f.recorded_ns() - f.work_ns())
    }

    /// What the driver asks its files before the first call.
    fn add_driver(&mut self) {
        let is_start = self.is_of_start();
        let all = figures::driver::set_up(self.scope.trace).into_iter();
        for (place, span) in all.filter(|_| is_start) {
            self.push(FirstWork::Driver, span, place);
        }
    }

    /// Calls that load code or make a context, and overheads that are named so.
    fn add_loading(&mut self) {
        let trace = self.scope.trace;
        let mut known: FxHashMap<u32, bool> = FxHashMap::default();
        for (id, lane) in trace.lanes().iter().enumerate() {
            let key = lane.key();
            if !matches!(key.kind, LaneKind::Thread { .. } | LaneKind::Overhead) {
                continue;
            }
            for row in self.scope.rows(id) {
                let what = trace.what_id(id, row);
                let is_one = known.entry(what);
                if !*is_one.or_insert_with(|| is_cold(trace, trace.what(id, row))) {
                    continue;
                }
                let activity = trace.activity(id, row);
                let span = self.scope.on_all(key.process, activity.span);
                if self.is_behind(span) {
                    continue;
                }
                let name = |id: NameId| trace.names().full(id);
                let compiler = |id| name(id).to_lowercase().contains("compiler");
                let work = match activity.what {
                    What::Call(call) if is_context(name(call.name)) => FirstWork::Context,
                    What::Overhead(it) if is_unseen_context(name(it.name)) => {
                        FirstWork::UnseenContext
                    }
                    What::Overhead(it) if compiler(it.name) => {
                        self.has.compiler = true;
                        // That it opens compiles nothing yet.
                        let opens = name(it.name).starts_with("dlopen");
                        [FirstWork::Compiling, FirstWork::Loading][usize::from(opens)]
                    }
                    _ => FirstWork::Loading,
                };
                let span = match activity.what {
                    What::Call(_) if work == FirstWork::Loading => {
                        self.busy.without_wait(trace, key.process, activity.span)
                    }
                    _ => activity.span,
                };
                if !span.is_empty() {
                    self.push(work, span, (id, row));
                }
            }
        }
    }

    fn add_first_calls(&mut self) {
        let (scope, trace) = (self.scope, self.scope.trace);
        for &(span, place) in &scope.causes.first_use().calls {
            // A question whether something is done waits for nothing but its turn, and starts no library.
            let asks = trace_name(scope, place).is_some_and(|it| it.ends_with("Query"));
            if cases::ASKS_FOR_WORK.holds(asks) {
                continue;
            }
            let is_known = self.has.all.contains(&self.on_all(span, place));
            if is_known || !self.is_looked_at(span, place) {
                continue;
            }
            let locks = trace_name(scope, place).is_some_and(first_use::pins);
            // What a launch takes so long for the first time is its kernel's code.
            let is_launch =
                |name: NameId| CallKind::of(trace.names().full(name)) == CallKind::Launch;
            let work = match trace.what(place.0, place.1) {
                What::Call(of) if is_launch(of.name) && !self.opens(span, place) => {
                    FirstWork::Loading
                }
                // A context takes no second.
                _ if locks && span.len() >= CONTEXT_MAX => FirstWork::Pinning,
                _ if self.opens(span, place) => FirstWork::Context,
                _ if locks => FirstWork::Pinning,
                _ if first_use::starts_library(trace, place) => FirstWork::First,
                What::Call(of) if trace.names().full(of.name).contains("llocManaged") => {
                    FirstWork::Managed
                }
                What::Call(of) if first_use::is_allocation(trace.names().full(of.name)) => {
                    FirstWork::Memory
                }
                What::Call(of) if CallKind::of(trace.names().full(of.name)) == CallKind::Copy => {
                    FirstWork::Staging
                }
                _ => FirstWork::First,
            };
            let parts = match work {
                FirstWork::Loading => {
                    let process = self.process_of(place);
                    self.busy.idle_in(trace, process, span)
                }
                _ => vec![span],
            };
            if !parts.is_empty() {
                self.push_parts(work, span, &parts, place);
            }
        }
    }

    fn push_parts(&mut self, work: FirstWork, span: Span, parts: &[Span], place: (LaneId, usize)) {
        let parts = parts.iter().map(|it| self.on_all(*it, place));
        let parts: Vec<Span> = parts.collect();
        let time = parts.iter().map(|it| it.len()).sum();
        parts.into_iter().for_each(|it| self.has.add(work, it));
        self.has.all.insert(self.on_all(span, place));
        self.at.push((time, Occurrence::Row(place)));
    }

    fn push(&mut self, work: FirstWork, span: Span, place: (LaneId, usize)) {
        self.push_parts(work, span, &[span], place);
    }

    /// Whether a call makes the context, whatever it is: what comes behind the GPU's first operation starts a library. PyTorch's
    /// profiler begins later, most of the time.
    fn opens(&self, span: Span, place: (LaneId, usize)) -> bool {
        let name = trace_name(self.scope, place).unwrap_or_default();
        // A stream of another GPU takes so long for its context, and so does the choice of one; a pool of memory takes less.
        let makes = name.contains("StreamCreate") || name.contains("SetDevice");
        let (first, trace) = (self.scope.causes.first_use(), self.scope.trace);
        let has_run = || first_use::has_run(trace, self.process_of(place), span.start);
        if !cases::FEW_MIN.is_reached_by(span.len()) || !name.contains("SetDevice") && has_run() {
            return false;
        }
        let graph = self.scope.causes.graph();
        let frees = name.contains("Free") && first_use::is_before_all(trace, graph, place);
        if trace.source.kind == SourceKind::Kineto {
            return frees && span.len() >= first_use::CONTEXT_MIN;
        }
        match (makes, name.contains("MallocAsync")) {
            (true, _) => true,
            _ if frees || first.further.contains(&place) => true,
            (_, is_pool) => {
                first.opening.contains(&place)
                    // A call by that name made it already.
                    && self.has.sum_of(FirstWork::Context) < span.len()
                    && !(is_pool && span.len() < first_use::CONTEXT_MIN)
            }
        }
    }

    fn add_first_operators(&mut self) {
        let scope = self.scope;
        for &(span, place) in &scope.causes.first_use().operators {
            if !self.is_looked_at(span, place) {
                continue;
            }
            let own = first_use::own(scope.trace, place).into_iter();
            let own: Vec<Span> = own.map(|part| self.on_all(part, place)).collect();
            let time = own.iter().map(|part| part.len()).sum::<Ns>();
            // The calls in it may be all there is to it.
            if cases::COLD_MIN.is_reached_by(time - within(&own, &self.has.spans.concat())) {
                let work = match trace_name(scope, place) {
                    Some(name) if first_use::is_search(name) => FirstWork::Trying,
                    Some(name) if first_use::is_compiler(name) => FirstWork::Building,
                    // TensorFlow runs any operator in it.
                    Some("EagerKernelExecute") => FirstWork::Before,
                    _ => FirstWork::First,
                };
                self.at.push((time, Occurrence::Row(place)));
                own.into_iter().for_each(|part| self.has.add(work, part));
            }
        }
    }

    fn add_built(&mut self) {
        let scope = self.scope;
        let graph = scope.causes.graph();
        for (&op, &span) in &scope.causes.first_use().made {
            let place = graph.calls.at(graph.ops.call[op as usize]);
            if self.is_looked_at(span, place) {
                let first = scope.causes.first_use();
                let (is_started, is_compiled) =
                    (first.started.contains(&op), first.compiled.contains(&op));
                let mut seen = StackCounts::default();
                scope.causes.add_samples(op, span, &mut seen);
                let work = match is_started {
                    true => FirstWork::First,
                    false if tunes(scope, &seen) => {
                        self.tuned.add(&seen);
                        FirstWork::Tuning
                    }
                    false if is_compiled && seen.are_of_building(scope.trace) => {
                        FirstWork::Building
                    }
                    false => FirstWork::Before,
                };
                let all = self.on_all(span, place);
                if work == FirstWork::Building && !first.seen.contains(&op) {
                    self.has.unseen.push(all);
                }
                if let Some(kernel) = first_use::kernel(scope.trace, graph, op)
                    && work == FirstWork::Building
                {
                    self.is_rebuilt |= !self.built.insert(kernel);
                }
                self.has.add(work, all);
                let gap = |device| Occurrence::Gap(device, span);
                let at = scope.causes.device(op).map_or(Occurrence::Row(place), gap);
                self.at.push((span.len(), at));
            }
        }
    }

    /// Whether the program's start is looked at.
    fn is_of_start(&self) -> bool {
        let first = self.scope.trace.operations_extent();
        let window = self.scope.window.zip(first);
        window.is_none_or(|(window, first)| window.start <= first.start)
    }

    fn add_pinning(&mut self) {
        let (scope, graph) = (self.scope, self.scope.causes.graph());
        for &call in pinning(scope) {
            let (place, span) = (graph.calls.at(call), graph.calls.span(call));
            let is_first = self.is_of_start() && !self.is_behind(self.on_all(span, place));
            if !is_first && !self.is_looked_at(span, place) {
                continue;
            }
            self.pinning.insert(call);
            if let LaneKind::Thread { thread } = scope.trace.lanes()[place.0].key().kind {
                let process = self.process_of(place);
                self.pinned.add_samples(scope.trace, process, thread, span);
            }
            if !self.has.all.contains(&self.on_all(span, place)) {
                self.push(FirstWork::Pinning, span, place);
            }
        }
    }

    /// What a program takes of a device's memory while that works, and hardly gives back, is taken once, as a cache takes it.
    fn add_taken(&mut self) {
        let (graph, trace) = (self.scope.causes.graph(), self.scope.trace);
        let name = |it: &CallId| graph.function(trace, *it);
        let kind = |it: &CallId| graph.calls.kind[*it as usize];
        let all = (0..graph.calls.len() as CallId).filter(|it| kind(it) == CallKind::Memory);
        let all = all.filter(|it| first_use::is_allocation(name(it)));
        let (freed, mut taken): (Vec<_>, Vec<_>) = all.partition(|it| name(it).contains("Free"));
        taken.retain(|it| cases::COLD_MIN.is_reached_by(graph.calls.span(*it).len()));
        if 10 * freed.len() > taken.len() || !cases::LOOP_MIN.is_reached_by(taken.len()) {
            return;
        }
        for call in taken {
            let (place, span) = (graph.calls.at(call), graph.calls.span(call));
            let all = self.on_all(span, place);
            let is_inside = all.start >= self.whole.start && self.is_looked_at(span, place);
            if is_inside && !self.has.all.contains(&all) {
                self.taken.insert(call);
                self.push(FirstWork::Memory, span, place);
            }
        }
    }

    fn is_looked_at(&self, span: Span, place: (LaneId, usize)) -> bool {
        let window = self.scope.window_of(self.process_of(place));
        let is_in = window.is_none_or(|w| (w.start..w.end).contains(&span.start));
        is_in && !self.is_behind(self.on_all(span, place))
    }

    /// Whether it begins behind the GPU's work, or what is known of that: a first run does not pay for what is let go.
    fn is_behind(&self, span: Span) -> bool {
        let is_unknown = self.lost.is_some_and(|it| span.start >= it);
        is_unknown || cases::BEHIND_THE_WORK.holds(span.start >= self.whole.end)
    }

    fn on_all(&self, span: Span, place: (LaneId, usize)) -> Span {
        self.scope.on_all(self.process_of(place), span)
    }

    fn process_of(&self, (lane, _): (LaneId, usize)) -> usize {
        self.scope.trace.lanes()[lane].key().process
    }
}

/// Whether Triton was seen trying configurations of a kernel for half of a stretch.
fn tunes(scope: &Scope, seen: &StackCounts) -> bool {
    let tuning = seen.filtered(scope.trace, |it| it.file.ends_with("runtime/autotuner.py"));
    tuning.all > 0 && 2 * tuning.all >= seen.all
}

/// Whether the program's calls are CUDA's: HIP and old TensorFlow have no such setting.
fn is_cuda(scope: &Scope) -> bool {
    !scope.has_name(|it| it.starts_with("hip") || it.starts_with("Launch of "))
}

/// How much of `parts` lies within `spans`.
fn within(parts: &[Span], spans: &[Span]) -> Ns {
    let both = [parts, spans].concat();
    Span::union_len(parts.to_vec()) + Span::union_len(spans.to_vec()) - Span::union_len(both)
}

/// Whether a call or a profiler's record is one of loading code or making a context.
fn is_cold(trace: &Trace, what: What) -> bool {
    let is_one = |name: &str| match what {
        What::Call(_) => CallKind::of(name) == CallKind::Load || is_context(name),
        What::Overhead(_) => is_loading(name) || is_unseen_context(name),
        _ => false,
    };
    what.name().is_some_and(|id| is_one(trace.names().full(id)))
}

/// The name of a call or a range.
fn trace_name<'s>(scope: &Scope<'s>, (lane, row): (LaneId, usize)) -> Option<&'s str> {
    let name = scope.trace.what(lane, row).name()?;
    Some(scope.trace.names().full(name))
}

fn is_context(name: &str) -> bool {
    name.contains("CtxCreate") || name.contains("PrimaryCtxRetain")
}

fn is_unseen_context(name: &str) -> bool {
    name.starts_with(Overhead::CONTEXT)
}
