//! Threads of one process that work by turns, though each has work of its own.

use rustc_hash::{FxHashMap, FxHashSet};

use activity::units::share;
use activity::{Ns, Span, What};
use causes::graph::{CallId, Graph, NONE};
use trace::{LaneId, Trace, describe};

/// A thread that calls nothing for so long has stopped launching.
const PAUSE: Ns = 100_000;

/// Waits that take this part of the threads' turns lie within the lock.
const HELD: f64 = 0.3;

/// A process's threads that take turns.
#[derive(Clone, Debug)]
pub struct Turns {
    /// What the first of them is called.
    pub name: String,
    /// How long any is at its turn, and the part of the time that this is.
    pub together: Ns,
    pub part: f64,
    /// Whether they wait for the GPU while it is their turn.
    pub hold_it: bool,
    /// Where each begins: a lane, and a row of it.
    pub at: Vec<(LaneId, usize)>,
}

impl Turns {
    /// The threads of a process that launch within `window`, where one at a time goes on.
    pub fn of(trace: &Trace, graph: &Graph, process: usize, window: Span) -> Option<Turns> {
        let threads = Launcher::all(trace, graph, process, window);
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
        let is_gil = || waited < HELD && runs_alone(trace, process, window, &threads);
        let is_always = cases::LAUNCHING_SHARE.is_reached_by(part);
        (is_always && (is_one || is_gil())).then(|| Turns {
            name: threads[0].name.clone(),
            together,
            part,
            hold_it: waited >= HELD,
            at: threads.iter().map(|it| it.first).collect(),
        })
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
    first: (LaneId, usize),
}

impl Launcher {
    /// Those of a process, where they do the same onto streams of their own: else they hand over to each other.
    fn all(trace: &Trace, graph: &Graph, process: usize, window: Span) -> Vec<Launcher> {
        let lanes = trace.threads_in(process);
        let threads = lanes.filter_map(|(lane, _, thread)| {
            let name = || describe::thread(trace, process, thread);
            Self::of(trace, graph, (lane, thread), window, name)
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
        trace: &Trace,
        graph: &Graph,
        (lane, thread): (LaneId, u32),
        window: Span,
        name: impl Fn() -> String,
    ) -> Option<Launcher> {
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
            first: graph.calls.at(calls.clone().next()?),
        })
    }
}

/// Whether samples saw several threads in Python at the same time, of which few ran. Where nothing is in their way, all do.
fn runs_alone(trace: &Trace, process: usize, window: Span, threads: &[Launcher]) -> bool {
    let mut looks: FxHashMap<Ns, (u64, u64)> = FxHashMap::default();
    let sampled = &trace.processes()[process].sampled;
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
