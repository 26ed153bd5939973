//! Threads of one process that launch by turns, though each has work of its own. A lock lets one of them go on at a time, in
//! Python the GIL.

use rustc_hash::{FxHashMap, FxHashSet};

use super::framework::Framework;
use super::{DeviceFigures, Finding, Occurrence, Rule, Says, Scope};
use activity::stats::lower_median;
use activity::units::{duration, percent, share};
use activity::{Ns, Span, What};
use causes::Bound;
use causes::graph::{CallId, CallKind, NONE};
use trace::{LaneId, LaneKind, describe};

/// A thread that does nothing for so many times what it usually does between two launches has stopped launching.
const PAUSE: Ns = 10;

/// … and for this at least.
const PAUSE_MIN: Ns = 50_000;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if !cases::LAUNCH_IDLE_SHARE.is_reached_by(f.idle_share()) {
        return None;
    }
    let threads = Launcher::all(scope, f);
    if threads.len() < 2 || !are_alike(&threads) {
        return None;
    }
    let bursts = |it: &Launcher| -> Ns { it.bursts.iter().map(|it| it.len()).sum() };
    let sum: Ns = threads.iter().map(bursts).sum();
    let together = Span::union_len(threads.iter().flat_map(|it| it.bursts.clone()).collect());
    // One at a time, nearly always one, and each ready for longer than it launches.
    let window = scope.window_on(f.index).unwrap_or(f.span);
    let is_one = !cases::LAUNCH_BESIDE.is_reached_by(share(sum, together));
    let is_always = cases::LAUNCHING_SHARE.is_reached_by(share(together, window.len()));
    let is_ready = |it: &Launcher| window.len() - it.waited >= 2 * bursts(it);
    if !is_one || !is_always || cases::WAITS_FOR_GPU.holds(!threads.iter().all(is_ready)) {
        return None;
    }
    let is_python = scope.trace.stacks().files().next().is_some();
    let is_python = is_python || Framework::of(scope.trace) != Framework::Cuda;
    let (lock, cure) = match is_python {
        true => (
            "the GIL",
            "Launch from processes, or from one thread in larger batches; a CUDA graph takes the GIL once for many kernels.",
        ),
        false => (
            "a lock",
            "Launch from processes, or from one thread in larger batches, or do less under the lock.",
        ),
    };
    let (n, names) = (threads.len() as Ns, &threads[0].name);
    let saving = (together - together / n).min(f.idle_ns);
    let at: Vec<_> = threads.iter().map(|it| it.first).collect();
    Some(Finding {
        title: format!(
            "{n} threads ({names} and others) launch by turns for {} ({}): {lock} makes them no faster than one",
            duration(together),
            percent(share(together, window.len())),
        ),
        advice: cure.to_owned(),
        says: Some(Says {
            bound: Bound::Launch,
            part: f.part(f.idle_ns),
            why: format!("{n} threads take turns in launching ({lock})"),
        }),
        instead_of: &[Rule::LaunchBound],
        ..scope.found(f.span_ns, saving, &at)
    })
}

/// A thread that launches onto streams that no other one uses.
struct Launcher {
    name: String,
    /// When it went on launching.
    bursts: Vec<Span>,
    /// How long it was in calls that wait.
    waited: Ns,
    kernels: FxHashSet<u32>,
    streams: FxHashSet<LaneId>,
    first: Occurrence,
}

impl Launcher {
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
        let threads = by_thread.into_iter();
        let threads = threads.filter_map(|(lane, calls)| Self::of(scope, lane as LaneId, &calls));
        let mut threads: Vec<Launcher> = threads.collect();
        threads.sort_by(|a, b| a.name.cmp(&b.name));
        let others = |it: &Launcher| {
            let shares = |other: &&Launcher| !other.streams.is_disjoint(&it.streams);
            threads.iter().filter(shares).count() > 1
        };
        let is_shared = threads.iter().any(others);
        match cases::ONE_STREAM.holds(is_shared) {
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
        let (mut kernels, mut streams) = (FxHashSet::default(), FxHashSet::default());
        let (mut launches, mut waited) = (Vec::new(), 0);
        for &call in calls {
            let span = graph.calls.span(call);
            match graph.calls.kind[call as usize] {
                kind if kind.is_wait() => waited += span.len(),
                CallKind::Launch | CallKind::GraphLaunch => {
                    launches.push(span);
                    let op = graph.calls.first_op[call as usize];
                    let place = (op != NONE).then(|| graph.ops.place(op));
                    streams.extend(place.map(|it| it.0));
                    if let Some(What::Kernel(it)) = place.map(|it| trace.what(it.0, it.1)) {
                        kernels.insert(trace.shape(it.shape).name);
                    }
                }
                _ => {}
            }
        }
        if !cases::MANY_LAUNCHES.is_reached_by(launches.len()) {
            return None;
        }
        let between = launches.windows(2).map(|two| two[1].start - two[0].end);
        let usual = lower_median(&mut between.collect::<Vec<Ns>>())?;
        let pause = (PAUSE * usual).max(PAUSE_MIN);
        let bursts = launches.chunk_by(|a, b| b.start - a.end < pause);
        let bursts = bursts.map(|it| Span::new(it[0].start, it[it.len() - 1].end));
        Some(Launcher {
            name: describe::thread(trace, key.process, thread),
            bursts: bursts.collect(),
            waited,
            kernels,
            streams,
            first: Occurrence::Row(graph.calls.at(calls[0])),
        })
    }
}

/// Whether they do the same: threads that work on each other's results launch other kernels.
fn are_alike(threads: &[Launcher]) -> bool {
    let first = &threads[0].kernels;
    let is_alike = |it: &Launcher| {
        2 * it.kernels.intersection(first).count() > first.len().max(it.kernels.len())
    };
    !cases::OTHER_KERNELS.holds(!threads.iter().all(is_alike))
}
