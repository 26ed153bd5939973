//! Memory of the device, or pinned memory, taken or given back between launches, over and over.

use rustc_hash::{FxHashMap, FxHashSet};

use super::words::seen_at;
use super::{Finding, Occurrence, Rule, Scope, cold_start, longest_first};
use ::program::Framework;
use activity::stats::lower_median;
use activity::text::counted;
use activity::units::{count, duration, share};
use activity::{NameId, Ns, Span, What};
use causes::graph::{CallKind, NONE};
use causes::stacks::StackCounts;
use causes::{Gap, Group, Piece, first_use};
use figures::DeviceFigures;
use figures::launches::{CallWork, streams_anew};

/// So many arrays with an allocation each are no cache that fills: one allocation is enough for all.
const MANY: usize = 1_000;

const OF_POOL: &str = "Let the pool keep its memory: raise its release threshold (cudaMemPoolSetAttribute). At threshold 0 the pool releases all unused memory at each sync.";

const OF_LOOP: &str = "Allocate before the loop and reuse, or take memory from a pool (cudaMallocAsync). cudaFree waits for the whole GPU.";

const OF_PINNED: &str = "Pin once before the loop and reuse: to lock and unlock pages takes as long as there are pages, and cudaFreeHost waits for the whole GPU.";

const NEAR_LIMIT: (&str, &str, &str) = (
    "PyTorch's allocator gives blocks back and takes new ones inside operations: GPU memory is nearly full, or in pieces. Smaller batches need less.",
    "retry",
    "using less memory",
);

pub(super) fn check(scope: &Scope) -> Option<Finding> {
    // Allocations before the first operation and after the last one are set-up and clean-up.
    let span = scope.devices.iter().map(|f| f.span).reduce(Span::hull);
    let span = span.or_else(|| launches(scope))?;
    let calls = Calls::of(scope, span)?;
    let (once, outliers, later) = calls.outliers(scope, span);
    // Kernels and copies take what they take without these calls.
    let idle = scope.devices.iter().map(|f| f.idle_ns).max();
    let idle = idle.unwrap_or(span.len());
    let pooled = calls.sum_of(scope, |name| name.contains("Async"));
    let time = calls.time;
    let is_pool = 2 * pooled > time;
    let is_pinned = 2 * calls.sum_of(scope, first_use::pins) > time;
    // A pool gives memory back in syncs, which last as long as that takes.
    let synced = |f: &DeviceFigures| {
        scope.idle_that(f, |gap, it| scope.causes.group(*gap, it) == Group::Sync)
    };
    let synced = scope.devices.iter().filter(|_| is_pool).map(synced).max();
    let own = calls.time - once + later;
    let bound = (own + synced.unwrap_or(0)).min(idle);
    // A pool that keeps its memory costs next to nothing.
    let part = share(own.min(idle), span.len());
    let is_worth = match is_pool {
        true => cases::WARNING_SHARE.is_reached_by(part),
        false => cases::WORTH_SHARE.is_reached_by(part),
    };
    let ends = cases::CACHE_THAT_ENDS.holds(!calls.goes_on);
    let fills = cases::CACHE_THAT_FILLS.holds(calls.fill_a_cache(scope));
    let number = calls.at.len() as u64;
    // A short program that gives back what it took for each piece of work has the same cure, be it no loop.
    let is_most = !is_pool
        && share(own.min(idle), idle) > 0.5
        && cases::LOOP_MIN.is_reached_by(calls.at.len())
        && 3 * calls.freed >= calls.at.len();
    let is_loop = cases::LOOP_MIN.is_reached_by(calls.rounds) && !ends || is_most;
    if !is_loop || fills || !is_worth {
        return None;
    }
    let (advice, change, cure) = match calls.freed_inside {
        _ if is_pool => (OF_POOL, "pool", ""),
        inside if inside > 0 && 2 * inside >= calls.freed => NEAR_LIMIT,
        _ if is_pinned => (OF_PINNED, "", ""),
        _ => (OF_LOOP, "reuse", ""),
    };
    let streams = streams_anew(scope.trace, scope.causes.graph(), span);
    let streams = streams.filter(|it| cases::WORTH_SHARE.is_reached_by(share(it.1, span.len())));
    let streams = streams.map_or_else(String::new, |(number, time)| {
        let (number, time) = (count(number), duration(time));
        format!(" Make streams once, too: {number} calls make and destroy some in {time}.")
    });
    let line = calls.seen.telling(scope.trace);
    let waits = scope.devices.iter().max_by_key(|f| f.idle_ns);
    let mut beside = waits.map_or(0, |f| scope.ahead(f, bound, |_| false));
    if is_pinned {
        // The CPU's caches know nothing of pages that are new each time: to fill them takes longer, though no longer than to pin them.
        let is_work = |gap: &Gap, it: &Piece| scope.causes.group(*gap, it) == Group::Host;
        beside += waits.map_or(0, |f| scope.idle_that(f, is_work)).min(time);
    }
    // No graph holds what takes memory: what launching costs is next.
    let launching = waits.map_or(0, |f| {
        scope.idle_that(f, |gap, it| scope.causes.group(*gap, it) == Group::Launch)
    });
    let is_told = cases::LAUNCH_IDLE_SHARE.is_reached_by(share(launching, span.len()));
    let is_before = is_told && !is_pool && own > 2 * launching;
    Some(Finding {
        instead_of: if is_before { &[Rule::LaunchBound] } else { &[] },
        title: format!(
            "{} between launches take {}{}{}{}",
            counted(number, "allocation or free", "allocations and frees"),
            duration(time),
            calls.mostly(scope),
            match outliers {
                0 => String::new(),
                many => format!(
                    ", {} of it in {} (over 10× the median)",
                    duration(once),
                    counted(many, "outlier", "outliers")
                ),
            },
            seen_at(line.as_ref()),
        ),
        advice: advice.to_owned() + &streams,
        change: scope.change(change, line.as_ref()),
        cure,
        beside_ns: beside.min(idle - bound),
        // Copies and kernels may run beside each other where no call waits.
        cap_ns: Some(time + beside + waits.map_or(0, |f| f.copy_ns.min(f.compute_ns))),
        refused: is_pool
            .then(|| "what goes back to the driver in syncs is not replayed".to_owned()),
        ..scope.found(span.len(), bound, &longest_first(calls.at))
    })
}

/// From the first launch to the last, of a recording without any operation: calls tell as much of themselves.
fn launches(scope: &Scope) -> Option<Span> {
    let has_none = scope.trace.operations_extent().is_none();
    let calls = &scope.causes.graph().calls;
    let all = causes::launched(scope.trace, scope.causes.graph());
    let spans = all.into_iter().map(|it| {
        let [start, end] = [&calls.start, &calls.end].map(|of| of[it as usize]);
        Span::new(start, end)
    });
    spans.reduce(Span::hull).filter(|_| has_none)
}

/// The allocations and frees of a program.
#[derive(Default)]
struct Calls {
    at: Vec<(Ns, Occurrence)>,
    /// By function, how long each took and when it began.
    by_name: FxHashMap<NameId, Vec<(Ns, Ns)>>,
    time: Ns,
    /// How often some came behind a launch, and whether they still did so at the end: a cache that fills is full before.
    rounds: usize,
    goes_on: bool,
    /// Frees, also behind the last operation.
    freed: usize,
    /// Frees inside an operation of PyTorch, which nobody asked for.
    freed_inside: usize,
    /// What the CPU was seen at in them.
    seen: StackCounts,
}

impl Calls {
    fn of(scope: &Scope, span: Span) -> Option<Self> {
        let is_any = scope
            .has_name(|name| matches!(CallWork::of(name), CallWork::Allocation | CallWork::Pins));
        is_any.then_some(())?;
        let mut calls = Calls::default();
        let (graph, mut met) = (scope.causes.graph(), FxHashSet::default());
        let once = cold_start::pinning(scope);
        // What is taken before a thread launches, where processes share memory, sets their exchange up, as NCCL does.
        let shares = scope.has_name(|name| name.contains("IpcOpenMemHandle"));
        let mut kinds: FxHashMap<NameId, CallWork> = FxHashMap::default();
        let mut launched = graph.calls.kind.iter().zip(&graph.calls.start);
        let launched = launched
            .find(|it| *it.0 == CallKind::Launch)
            .map(|it| *it.1);
        for (id, lane, thread) in scope.trace.threads() {
            let (mut has_launched, mut has_copied, mut launches) = (false, false, false);
            for (row, call) in scope.trace.activities(id, scope.rows(id)) {
                let What::Call(what) = call.what else {
                    continue;
                };
                let name = scope.trace.names().full(what.name);
                let kind = kinds.entry(what.name).or_insert_with(|| CallWork::of(name));
                let by = || graph.calls.find(lane.key().process, call.correlation);
                // What another thread pins delays no launch, and what is pinned once is no loop's.
                let pins = *kind == CallWork::Pins && launches && !once.contains(&by());
                // What starts a library, or makes the context, is a cold start whatever the call.
                let starts = cases::FEW_MIN.is_reached_by(call.span.len())
                    && launched.is_some_and(|it| call.span.start < it);
                let is_first = starts || scope.causes.first_use().has_call(call.span, (id, row));
                let sets_up = shares && !launches;
                if *kind == CallWork::Allocation && !is_first && !sets_up || pins {
                    let gives_back = name.contains("Free") || name.contains("Unreg");
                    calls.freed += usize::from(gives_back);
                    if call.span.overlaps(span) {
                        let time = call.span.intersect(span).len();
                        calls.time += time;
                        let process = lane.key().process;
                        calls
                            .seen
                            .add_samples(scope.trace, process, thread, call.span);
                        calls.at.push((call.span.len(), Occurrence::Row((id, row))));
                        let list = calls.by_name.entry(what.name).or_default();
                        list.push((time, call.span.start));
                        let op = (gives_back && by() != NONE)
                            .then(|| first_use::operator(scope.trace, graph, by()));
                        let is_op = op.flatten().is_some_and(|it| it.1.starts_with("aten::"));
                        calls.freed_inside += usize::from(is_op);
                        // Arrays that are brought one by one are taken one by one.
                        let follows = has_launched || has_copied && !gives_back;
                        calls.rounds += usize::from(follows);
                        let is_late = call.span.start >= span.end - span.len() / 4;
                        calls.goes_on |= follows && is_late;
                        (has_launched, has_copied) = (false, false);
                    }
                } else if *kind == CallWork::Copy {
                    has_copied = true;
                } else if *kind == CallWork::Launch {
                    launches = true;
                    let op = match by() {
                        NONE => NONE,
                        found => graph.calls.first_op[found as usize],
                    };
                    let kernel = first_use::kernel(scope.trace, graph, op);
                    let is_new = kernel.is_some_and(|kernel| met.insert(kernel));
                    has_launched |= !cases::NO_LOOP_YET.holds(is_new);
                }
            }
        }
        Some(calls)
    }

    /// What took far longer than its function does, in how many calls, and what of it is the loop's. That comes once a round, or all
    /// over the time. What a program's first calls take beyond the others is not.
    fn outliers(&self, scope: &Scope, span: Span) -> (Ns, u64, Ns) {
        let first = &scope.causes.first_use().calls;
        let cold = first.iter().map(|it| it.0.end).max().unwrap_or(Ns::MIN);
        let (mut once, mut outliers, mut later) = (0 as Ns, 0u64, Vec::new());
        let mut eighths = FxHashSet::default();
        for times in self.by_name.values() {
            let mut lengths: Vec<Ns> = times.iter().map(|it| it.0).collect();
            let median = lower_median(&mut lengths).unwrap_or(0);
            let is_outlier = |it: &&(Ns, Ns)| first_use::is_outlier(it.0, median);
            for &(time, start) in times.iter().filter(is_outlier) {
                once += time;
                outliers += 1;
                later.extend((start >= cold).then_some(time));
                eighths.insert((start - span.start) / (span.len() / 8).max(1));
            }
        }
        let are_many = cases::LOOP_MIN.is_reached_by(outliers as usize);
        match cases::LOOP_MIN.is_reached_by(later.len()) {
            _ if cases::SPREAD_OUTLIERS.holds(are_many && eighths.len() >= 4) => {
                (once, outliers, once)
            }
            true => (once, outliers, later.iter().sum()),
            false => (once, outliers, 0),
        }
    }

    /// The function that takes most of their time, where one takes half of it.
    fn mostly(&self, scope: &Scope) -> String {
        let sum = |it: &Vec<(Ns, Ns)>| it.iter().map(|it| it.0).sum::<Ns>();
        let most = self.by_name.iter().map(|it| (sum(it.1), *it.0)).max();
        most.filter(|it| 2 * it.0 > self.time && self.by_name.len() > 1)
            .map_or_else(String::new, |it| {
                format!(", mostly {}", scope.trace.names().short(it.1))
            })
    }

    /// What calls of such functions take.
    fn sum_of(&self, scope: &Scope, is_one: impl Fn(&str) -> bool) -> Ns {
        let of = self.by_name.iter();
        let of = of.filter(|it| is_one(scope.trace.names().full(*it.0)));
        of.flat_map(|it| it.1).map(|it| it.0).sum()
    }

    /// Whether a program that starts fills the cache of its allocator: it takes memory, and gives hardly any back.
    fn fill_a_cache(&self, scope: &Scope) -> bool {
        let mut first = scope.causes.first_use().calls.iter();
        // PyTorch keeps what it took, and what is never given back is taken once.
        let keeps = self.freed == 0 && scope.framework() == Framework::PyTorch;
        10 * self.freed < self.at.len()
            && (keeps
                || self.at.len() < MANY
                    && first.any(|(call, (lane, _))| {
                        let window = scope.window_of(scope.trace.lanes()[*lane].key().process);
                        window.is_none_or(|it| call.end > it.start)
                    }))
    }
}
