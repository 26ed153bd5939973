//! Threads of one process that work by turns, though each has work of its own. A lock lets one of them go on at a time, in
//! Python the GIL.

use rustc_hash::{FxHashMap, FxHashSet};

use super::scope::Turns;
use super::{DeviceFigures, Finding, Occurrence, Rule, Says, Scope};
use ::program::Framework;
use activity::units::{duration, percent, share};
use activity::{Ns, Span, What};
use causes::Bound;
use causes::graph::{CallId, NONE};
use trace::{LaneId, describe};

/// A thread that calls nothing for so long has stopped launching.
const PAUSE: Ns = 100_000;

/// Waits that take this part of the threads' turns lie within the lock.
const HELD: f64 = 0.3;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if !cases::LAUNCH_IDLE_SHARE.is_reached_by(f.idle_share()) {
        return None;
    }
    // Its threads launch onto all devices of a process, which may be many: they are looked at once.
    let of = |it: usize| {
        scope.turns[it]
            .get_or_init(|| of_process(scope, it))
            .as_ref()
    };
    let it = scope.processes(f).into_iter().find_map(of)?;
    let (lock, advice) = lock(scope, it.waited);
    let (bound, cure) = match it.waited < HELD {
        true => (Bound::Launch, ""),
        false => (Bound::Sync, "releasing the lock"),
    };
    let n = it.at.len();
    let saving = (it.together - it.together / n as Ns).max(f.idle_ns);
    Some(Finding {
        title: format!(
            "{n} threads ({} and others) take turns for {} ({}): {lock} makes them no faster than one",
            it.name,
            duration(it.together),
            percent(it.part),
        ),
        advice: advice.to_owned(),
        says: Some(Says {
            bound,
            part: f.part(f.idle_ns),
            why: format!("{n} threads take turns ({lock})"),
        }),
        cure,
        instead_of: &[Rule::LaunchBound, Rule::SyncInLoop],
        ..scope.found(f.span_ns, saving, &it.at)
    })
}

fn of_process(scope: &Scope, process: usize) -> Option<Turns> {
    let streams = scope.trace.streams_in(process);
    let its: FxHashSet<usize> = streams.filter_map(|it| it.1.key().kind.device()).collect();
    let work = scope.devices.iter().filter(|f| its.contains(&f.index));
    let work = work.map(|f| f.span).reduce(Span::hull);
    let window = scope.window_of(process).or(work)?;
    let threads = Launcher::all(scope, process, window);
    if threads.len() < 2 {
        return None;
    }
    let turns = || threads.iter().flat_map(|it| &it.turns).copied();
    let sum: Ns = turns().map(Span::len).sum();
    let together = Span::union_len(turns().collect());
    let waited = share(threads.iter().map(|it| it.waited).sum(), sum);
    let part = share(together, window.len());
    // One at a time, and nearly always one; or of all that launch at the same time one runs.
    let is_one = !cases::LAUNCH_BESIDE.is_reached_by(share(sum, together));
    let is_gil = || waited < HELD && runs_alone(scope, process, window, &threads);
    let is_always = cases::LAUNCHING_SHARE.is_reached_by(part);
    (is_always && (is_one || is_gil())).then(|| Turns {
        name: threads[0].name.clone(),
        together,
        part,
        waited,
        at: threads.iter().map(|it| it.first).collect(),
    })
}

/// What lets one thread go on at a time, and what to do about it.
fn lock(scope: &Scope, waited: f64) -> (&'static str, &'static str) {
    let is_python =
        scope.trace.stacks().files().next().is_some() || scope.framework() != Framework::Cuda;
    match (waited < HELD, is_python) {
        (false, _) => (
            "a lock",
            "Release the lock before the wait for the GPU: each thread has a stream of its own.",
        ),
        (_, true) => (
            "the GIL",
            "Launch from processes, or from one thread in larger batches; a CUDA graph takes the GIL once for many kernels.",
        ),
        (_, false) => (
            "a lock",
            "Launch from processes, or from one thread in larger batches, or do less under the lock.",
        ),
    }
}

/// A thread that launches onto streams that no other one uses.
struct Launcher {
    name: String,
    thread: u32,
    /// From a launch to the end of the wait for it, or to the last launch before a pause.
    turns: Vec<Span>,
    /// How long the waits in them take.
    waited: Ns,
    kernels: FxHashSet<u32>,
    streams: FxHashSet<LaneId>,
    first: Occurrence,
}

impl Launcher {
    /// Those of a process, where they do the same onto streams of their own: else they hand over to each other.
    fn all(scope: &Scope, process: usize, window: Span) -> Vec<Launcher> {
        let lanes = scope.trace.threads_in(process);
        let threads = lanes.filter_map(|(lane, _, thread)| {
            let name = || describe::thread(scope.trace, process, thread);
            Self::of(scope, (lane, thread), window, name)
        });
        let mut threads: Vec<Launcher> = threads.filter(|it| !it.streams.is_empty()).collect();
        threads.sort_by(|a, b| a.name.cmp(&b.name));
        let mut met = FxHashSet::default();
        let mut streams = threads.iter().flat_map(|it| &it.streams);
        let is_shared = !streams.all(|it| met.insert(*it));
        let is_alike = |it: &Launcher| {
            let both = it.kernels.intersection(&threads[0].kernels).count();
            2 * both > it.kernels.len().max(threads[0].kernels.len())
        };
        let are_others = !threads.iter().all(is_alike);
        match cases::ONE_STREAM.holds(is_shared) || cases::OTHER_KERNELS.holds(are_others) {
            true => Vec::new(),
            false => threads,
        }
    }

    fn of(
        scope: &Scope,
        (lane, thread): (LaneId, u32),
        window: Span,
        name: impl Fn() -> String,
    ) -> Option<Launcher> {
        let (trace, graph) = (scope.trace, scope.causes.graph());
        let is_here = |call: &CallId| window.contains(graph.calls.start[*call as usize]);
        let calls = graph.calls.of_lane(lane).iter().copied().filter(is_here);
        let mut kernels = FxHashSet::default();
        let mut streams: FxHashMap<LaneId, usize> = FxHashMap::default();
        let mut its: Vec<(Span, bool)> = Vec::new();
        for call in calls.clone() {
            let kind = graph.calls.kind[call as usize];
            let is_launch = kind.is_launch();
            // A wait without a launch before it is none of a turn.
            if is_launch || kind.is_wait() && its.last().is_some_and(|it| !it.1) {
                its.push((graph.calls.span(call), kind.is_wait()));
            }
            let op = graph.calls.first_op[call as usize];
            if let Some(place) = (is_launch && op != NONE).then(|| graph.ops.place(op)) {
                *streams.entry(place.0).or_default() += 1;
                if let What::Kernel(it) = trace.what(place.0, place.1) {
                    kernels.insert(trace.shape(it.shape).name);
                }
            }
        }
        let waits = its.iter().filter(|it| it.1);
        if !cases::MANY_LAUNCHES.is_reached_by(its.len() - waits.clone().count()) {
            return None;
        }
        let turns = its.chunk_by(|a, b| !a.1 && b.0.start - a.0.end < PAUSE);
        Some(Launcher {
            name: name(),
            thread,
            waited: waits.map(|it| it.0.len()).sum(),
            turns: turns.map(|it| it[0].0.hull(it[it.len() - 1].0)).collect(),
            kernels,
            // What goes elsewhere once is set-up.
            streams: streams
                .into_iter()
                .filter(|it| 10 * it.1 > its.len())
                .map(|it| it.0)
                .collect(),
            first: Occurrence::Row(graph.calls.at(calls.clone().next()?)),
        })
    }
}

/// Whether samples saw several threads in Python at the same time, of which few ran. Where nothing is in their way, all do.
fn runs_alone(scope: &Scope, process: usize, window: Span, threads: &[Launcher]) -> bool {
    let mut looks: FxHashMap<Ns, (u64, u64)> = FxHashMap::default();
    let sampled = &scope.trace.processes()[process].sampled;
    for it in threads {
        for sample in sampled.within(it.thread, window) {
            let look = looks.entry(sample.time).or_default();
            *look = (look.0 + 1, look.1 + u64::from(sample.is_running));
        }
    }
    let several = looks.values().filter(|it| it.0 > 1);
    let (seen, ran) = several.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    seen >= SAMPLES_MIN && 8 * ran <= 5 * seen
}

/// Fewer samples tell nothing of what runs beside each other.
const SAMPLES_MIN: u64 = 40;
