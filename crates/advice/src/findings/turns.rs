//! Threads of one process that work by turns, though each has work of its own. A lock lets one of them go on at a time, in
//! Python the GIL.

use rustc_hash::{FxHashMap, FxHashSet};

use super::program::Framework;
use super::{DeviceFigures, Finding, Occurrence, Rule, Says, Scope};
use activity::units::{duration, percent, share};
use activity::{Ns, Span, What};
use causes::Bound;
use causes::graph::{CallId, NONE};
use trace::{LaneId, LaneKind, describe};

/// A thread that calls nothing for so long has stopped launching.
const PAUSE: Ns = 100_000;

/// Waits that take this part of the threads' turns lie within the lock.
const HELD: f64 = 0.3;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if !cases::LAUNCH_IDLE_SHARE.is_reached_by(f.idle_share()) {
        return None;
    }
    let threads = Launcher::all(scope, f);
    if threads.len() < 2 {
        return None;
    }
    let turns = || threads.iter().flat_map(|it| &it.turns).copied();
    let sum: Ns = turns().map(Span::len).sum();
    let together = Span::union_len(turns().collect());
    let waited = share(threads.iter().map(|it| it.waited).sum(), sum);
    let window = scope.window_on(f.index).unwrap_or(f.span);
    // One at a time, and nearly always one; or of all that launch at the same time one runs.
    let is_one = !cases::LAUNCH_BESIDE.is_reached_by(share(sum, together));
    let is_gil = waited < HELD && runs_alone(scope, window, &threads);
    let is_always = cases::LAUNCHING_SHARE.is_reached_by(share(together, window.len()));
    if !is_always || !is_one && !is_gil {
        return None;
    }
    let (lock, advice) = lock(scope, waited);
    let n = threads.len();
    let saving = (together - together / n as Ns).max(f.idle_ns);
    let at: Vec<_> = threads.iter().map(|it| it.first).collect();
    Some(Finding {
        title: format!(
            "{n} threads ({} and others) take turns for {} ({}): {lock} makes them no faster than one",
            threads[0].name,
            duration(together),
            percent(share(together, window.len())),
        ),
        advice: advice.to_owned(),
        says: Some(Says {
            bound: if waited < HELD {
                Bound::Launch
            } else {
                Bound::Sync
            },
            part: f.part(f.idle_ns),
            why: format!("{n} threads take turns ({lock})"),
        }),
        cure: if waited < HELD {
            ""
        } else {
            "releasing the lock"
        },
        instead_of: &[Rule::LaunchBound, Rule::SyncInLoop],
        ..scope.found(f.span_ns, saving, &at)
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
    place: (usize, u32),
    /// From a launch to the end of the wait for it, or to the last launch before a pause.
    turns: Vec<Span>,
    /// How long the waits in them take.
    waited: Ns,
    kernels: FxHashSet<u32>,
    streams: FxHashSet<LaneId>,
    first: Occurrence,
}

impl Launcher {
    /// Those of a device, where they do the same onto streams of their own: else they hand over to each other.
    fn all(scope: &Scope, f: &DeviceFigures) -> Vec<Launcher> {
        let graph = scope.causes.graph();
        let window = scope.window_on(f.index).unwrap_or(f.span);
        let mut by_thread: FxHashMap<u32, Vec<CallId>> = FxHashMap::default();
        for call in 0..graph.calls.len() {
            if window.contains(graph.calls.start[call]) {
                let its = by_thread.entry(graph.calls.lane[call]).or_default();
                its.push(call as CallId);
            }
        }
        if by_thread.len() < 2 {
            return Vec::new();
        }
        let threads = by_thread.into_iter();
        let threads = threads.filter_map(|(lane, calls)| Self::of(scope, lane as LaneId, &calls));
        let mut threads: Vec<Launcher> = threads.filter(|it| !it.streams.is_empty()).collect();
        threads.sort_by(|a, b| a.name.cmp(&b.name));
        let shares = |it: &Launcher, other: &Launcher| !other.streams.is_disjoint(&it.streams);
        let count = |it: &Launcher| threads.iter().filter(|other| shares(it, other)).count();
        let is_shared = threads.iter().any(|it| count(it) > 1);
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

    fn of(scope: &Scope, lane: LaneId, calls: &[CallId]) -> Option<Launcher> {
        let graph = scope.causes.graph();
        let (trace, key) = (scope.trace, scope.trace.lanes()[lane].key());
        let LaneKind::Thread { thread } = key.kind else {
            return None;
        };
        let mut kernels = FxHashSet::default();
        let mut streams: FxHashMap<LaneId, usize> = FxHashMap::default();
        let mut its: Vec<(Span, bool)> = Vec::new();
        for &call in calls {
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
            name: describe::thread(trace, key.process, thread),
            place: (key.process, thread),
            waited: waits.map(|it| it.0.len()).sum(),
            turns: turns.map(|it| it[0].0.hull(it[it.len() - 1].0)).collect(),
            kernels,
            // What goes elsewhere once is set-up.
            streams: streams
                .into_iter()
                .filter(|it| 10 * it.1 > its.len())
                .map(|it| it.0)
                .collect(),
            first: Occurrence::Row(graph.calls.at(calls[0])),
        })
    }
}

/// Whether samples saw several threads in Python at the same time, of which few ran. Where nothing is in their way, all do.
fn runs_alone(scope: &Scope, window: Span, threads: &[Launcher]) -> bool {
    let mut looks: FxHashMap<Ns, (u64, u64)> = FxHashMap::default();
    for &(process, thread) in threads.iter().map(|it| &it.place) {
        let sampled = &scope.trace.processes()[process].sampled;
        for sample in sampled.within(thread, window) {
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
