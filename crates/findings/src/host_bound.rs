//! The GPU waits for the host, which is at other work for long.

use rustc_hash::{FxHashMap, FxHashSet};

use super::asleep;
use super::words::seen_at;
use super::{DeviceFigures, Finding, Occurrence, Rule, Says, Scope, longest_first};
use ::program::cures::*;
use ::program::{At, Framework, Known};
use activity::units::{duration, percent, share};
use activity::{Frame, NameId, Ns, Span};
use causes::graph::{CallKind, OpId};
use causes::stacks::{self, LineShare, StackCounts};
use causes::{Bound, Group, Piece, first_use, is_mpi, needs};
use figures::{communication::packs, gil, lines};
use trace::describe::{host_name, is_input};
use trace::samples::short_file;

/// Rules that tell of what stacks slow down, too.
const SLOWED: &[Rule] = &[Rule::LaunchBound, Rule::SyncInLoop];

/// Whether a range hands frames to a video decoder of the GPU, which brings them in the layout that only such kernels read.
fn is_decoder(scope: &Scope, name: &str) -> bool {
    let hands = name.starts_with("avcodec_") || name.starts_with("cuvid");
    hands && scope.has_name(|it| it.contains("NV12"))
}

/// Whether events are waited for all along, as is done to take times, and memory is taken and given back for it.
fn searches(scope: &Scope, f: &DeviceFigures) -> bool {
    let graph = scope.causes.graph();
    let calls =
        (0..graph.calls.len() as u32).filter(|&it| f.span.contains(graph.calls.start[it as usize]));
    let of = |kind| {
        calls
            .clone()
            .filter(|&it| graph.calls.kind[it as usize] == kind)
            .count()
    };
    cases::LOOP_MIN.is_reached_by(of(CallKind::Memory))
        && of(CallKind::WaitEvent) >= of(CallKind::Memory)
}

/// Whether ranges show that DistributedDataParallel broadcasts something: only buffers go that way within its forward.
pub(super) fn sends_buffers(scope: &Scope) -> bool {
    scope.has_name(|it| it == "DistributedDataParallel.forward")
        && scope.has_name(|it| it == "nccl:broadcast")
}

/// What is said of a range or a call that takes time, where its name says enough.
fn cure_by_name(scope: &Scope, it: NameId, is_most: bool) -> Option<Cure> {
    let name = scope.trace.names().full(it);
    Some(match () {
        () if name.contains("_MultiProcessingDataLoaderIter") => WORKERS,
        () if is_input(name) => INPUT,
        () if is_most && packs(name) && sends_buffers(scope) => BUFFERS,
        () if is_most && first_use::is_file_output(name) => OUTPUT,
        () if is_mpi(name) => MPI,
        () if is_most && is_decoder(scope, name) => DECODER,
        () if is_most && first_use::is_system_wait(name) => match scope.framework() {
            Framework::PyTorch => LOADERS,
            _ => OTHERS,
        },
        () => Known::of_op(name).filter(|_| is_most)?.cured(),
    })
}

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    // What waits for the host is a part of what is idle. Without a kernel there is no work yet: data is set up.
    if !cases::HOST_SHARE.is_reached_by(f.idle_share()) || cases::NO_KERNEL.holds(f.kernels == 0) {
        return None;
    }
    let work = HostWork::of(scope, f);
    let idle: Ns = work.at.iter().map(|a| a.0).sum();
    let longest = work.at.iter().map(|a| a.0).max();
    let is_once = scope.window.is_none() && longest.is_some_and(|longest| 2 * longest > idle);
    if cases::ONE_LONG_GAP.holds(is_once) || !cases::HOST_SHARE.is_reached_by(f.part(idle)) {
        return None;
    }
    let (most, time) = work.most(scope)?;
    let line = work.seen.at_work(scope.trace);
    let part = share(time, idle);
    let is_most = cases::NAMED_PART.is_reached_by(part);
    let name = most.filter(|_| is_most);
    let name = name.map(|name| named(scope, name));
    (name.is_some() || line.is_some() || scope.planned.is_some()).then_some(())?;
    let doing = doing(name.as_deref(), is_most, part);
    let gaps = work.at.iter().zip(&work.before).map(|it| (it.0.0, it.1.0));
    let (is_managed, on_fetched) = (scope.is_managed_at(f, gaps), 2 * work.on_fetched >= idle);
    let is_traced = scope.planned.is_none() && work.takes_stacks(scope);
    let is_gil = line.is_some() && gil::is_held(scope.trace, scope.causes, &work.before);
    let searches = work.is_at(scope, "torch/nn/modules/conv.py", 2) && searches(scope, f);
    let known = (scope.sources(line.as_ref())).known(scope.trace, &work.seen, At::Work);
    let alone = work.seen.load_alone(scope.trace);
    let why = match (is_traced, is_gil, &line) {
        (true, ..) => Some("much of it taking stacks, as anomaly detection does".to_owned()),
        _ if searches => Some("most of it trying cuDNN's algorithms".to_owned()),
        (_, true, Some(it)) => Some(format!("waiting for the GIL, held by {}", it.culprit())),
        (.., Some(it)) if alone => Some(format!(
            "waiting for a DataLoader without workers, in {}",
            it.place
        )),
        (.., it) => known.zip(it.as_ref()).map(|(known, it)| known.at(it)),
    };
    let by_name = most.and_then(|it| cure_by_name(scope, it, is_most));
    let awaits = !is_traced && line.is_some() && asleep::awaits_results(scope, f);
    let bound = match is_traced || searches {
        // It also slows down launches, and waits behind each gradient or trial.
        true => f.idle_ns,
        // Kernels wait for pages, too, and nobody knows how long.
        false if is_managed => f.recorded_ns(),
        // Syncs go with its work.
        false if on_fetched || awaits => idle.max(f.idle_ns),
        false => idle,
    };
    let beside = scope.beside(f, work.before.iter().map(|it| it.0), bound, Ns::MAX)
        + scope.ahead(f, bound, |gap| {
            let told = work.before.binary_search_by_key(&gap.span, |it| it.0);
            told.is_ok()
        });
    // Copies go with work on what they bring back, too: kernels stay.
    let beside = match !is_traced && !is_managed && (on_fetched || awaits) {
        true => beside.max(f.recorded_ns() - f.compute_ns - bound),
        false => beside,
    };
    let seen = seen_at(line.as_ref());
    let loads = format!("{doing}{seen}").to_lowercase().contains("load") || scope.planned.is_some();
    let told = match (is_traced, is_gil, by_name) {
        (true, ..) => TRACED,
        (_, true, _) => GIL,
        _ if work.starts_workers(scope, line.as_ref()) => KEPT,
        (.., Some(cure)) => cure,
        _ if searches => SEARCHES,
        _ if work.is_at(scope, "jax/_src/compiler.py", 3) => COMPILES,
        _ if work.unpickles(scope) => POOLED,
        _ if awaits => AWAITED,
        _ if alone => ALONE,
        _ if scope.sources(line.as_ref()).makes_and_moves() => MADE,
        _ if let Some(it) = known.filter(|_| !seen.contains("DataLoader")) => it.cured(),
        _ if line.as_ref().is_some_and(|it| it.is_blocked) => BLOCKED,
        _ if line.as_ref().is_some_and(LineShare::is_native) => NATIVE,
        _ if loads => LOADS,
        _ if is_managed => MANAGED,
        _ if on_fetched && 2 * work.on_data >= idle => FETCHED,
        _ => OTHER,
    };
    let (advice, cure) = in_words(scope, told, &seen);
    let does = known.filter(|it| [it.cured(), LOADS, ALONE].contains(&told));
    let does = does.map_or_else(String::new, |it| format!("It {}. ", it.does));
    Some(Finding {
        title: format!(
            "the GPU waits for the CPU for {} ({}){doing}{seen}",
            duration(idle),
            percent(f.part(idle)),
        ),
        advice: does + &advice,
        change: scope.change(told.2, line.as_ref()),
        says: why.map(|why| Says {
            bound: Bound::Host,
            part: f.part(idle),
            why,
        }),
        instead_of: if is_traced { SLOWED } else { &[] },
        cure,
        beside_ns: beside,
        ..scope.found(f.span_ns, bound, &longest_first(work.at))
    })
}

/// What the CPU is in, by its name.
fn named(scope: &Scope, name: NameId) -> String {
    let call = host_name(scope.trace, name);
    match first_use::is_file_output(scope.trace.names().full(name)) {
        true => format!("writing a file ({call})"),
        false => call,
    }
}

/// What takes most of it.
fn doing(name: Option<&str>, is_most: bool, part: f64) -> String {
    match (name, is_most) {
        (Some(name), _) => format!(", {} of it in {name}", percent(part)),
        (None, true) => format!(", {} of it outside CUDA calls", percent(part)),
        _ => String::new(),
    }
}

/// A cure in words, with what the workers do where the CPU was seen at taking their batches. Those that have nothing to do are not what
/// is slow.
fn in_words(scope: &Scope, told: Cure, seen: &str) -> (String, &'static str) {
    let (advice, cure, change) = told;
    if change != "workers" || !seen.contains("DataLoader") {
        return (advice.to_owned(), cure);
    }
    let workers = lines::workers(scope.trace);
    let (advice, cure) = match workers.iter().any(|it| 5 * it.waiting < 4 * it.samples) {
        true => (WORKERS.0, MORE_WORKERS),
        false => (advice, cure),
    };
    let words = lines::workers_in_words(&workers).map(|it| format!(" {it}."));
    (advice.to_owned() + &words.unwrap_or_default(), cure)
}

/// What the host does while a device waits for it.
#[derive(Default)]
struct HostWork {
    /// The gaps, and how much of each it is.
    at: Vec<(Ns, Occurrence)>,
    /// The same gaps whole, and the operations behind them.
    before: Vec<(Span, OpId)>,
    by_name: FxHashMap<Option<NameId>, Ns>,
    seen: StackCounts,
    /// What of it comes behind a wait for something that came back, and for more than one value.
    on_fetched: Ns,
    on_data: Ns,
}

impl HostWork {
    /// What it is at for most of the time, and for how long.
    fn most(&self, scope: &Scope) -> Option<(Option<NameId>, Ns)> {
        let by_name = self.by_name.iter().map(|(name, time)| (*name, *time));
        let most = by_name.clone().max_by_key(|&(name, time)| (time, name))?;
        // What is written goes to the disk by several calls.
        let writes = |it: &(Option<NameId>, Ns)| {
            let name = it.0.map(|name| scope.trace.names().full(name));
            name.is_some_and(first_use::is_file_output)
        };
        let written: Ns = by_name.clone().filter(writes).map(|it| it.1).sum();
        let first = by_name
            .filter(writes)
            .max_by_key(|&(name, time)| (time, name));
        match first.filter(|_| written >= most.1) {
            Some((name, _)) => Some((name, written)),
            None => Some(most),
        }
    }

    /// Whether samples saw Python take stacks for a fifth of it, in a program of PyTorch.
    fn takes_stacks(&self, scope: &Scope) -> bool {
        let is_its = |it: &Frame| matches!(short_file(&it.file), "traceback.py" | "linecache.py");
        let taking = self.seen.filtered(scope.trace, is_its).all;
        taking > 2 && 5 * taking >= self.seen.all && scope.framework() == Framework::PyTorch
    }

    /// Whether one of so many samples saw it in a file.
    fn is_at(&self, scope: &Scope, file: &str, of: u64) -> bool {
        let there = self
            .seen
            .filtered(scope.trace, |it| short_file(&it.file) == file);
        there.all > 2 && of * there.all >= self.seen.all
    }

    /// Whether it waits for a pool of processes while a thread of its own takes in what they have sent.
    fn unpickles(&self, scope: &Scope) -> bool {
        let is_its = |it: &Frame| short_file(&it.file) == "multiprocessing/connection.py";
        self.is_at(scope, "multiprocessing/pool.py", 2) && {
            let beside = self.before.iter().filter(|it| {
                let launcher = scope.causes.launcher(it.1);
                launcher.is_some_and(|at| stacks::runs_beside(scope.trace, at, it.0, is_its))
            });
            let taken: Ns = beside.map(|it| it.0.len()).sum();
            2 * taken >= self.before.iter().map(|it| it.0.len()).sum()
        }
    }

    /// Whether a DataLoader's workers are started and ended there: by what the line calls, or by a third of what it sees of loading.
    /// The rest waits for the first batches of those that are new.
    fn starts_workers(&self, scope: &Scope, line: Option<&LineShare>) -> bool {
        let loads = |it: &Frame| short_file(&it.file) == "torch/utils/data/dataloader.py";
        let starts = |it: &Frame| {
            let name = it.function.rsplit('.').next().unwrap_or_default();
            loads(it) && ["__init__", "_get_iterator", "_shutdown_workers"].contains(&name)
        };
        let starting = || {
            let starting = self.seen.filtered(scope.trace, starts).all;
            let loading = self.seen.filtered(scope.trace, loads).all;
            starting > 2 && 3 * starting >= loading && 2 * loading > self.seen.all
        };
        line.is_some_and(LineShare::starts_workers) || starting()
    }

    fn of(scope: &Scope, f: &DeviceFigures) -> Self {
        let mut work = HostWork::default();
        let may_be_ahead = scope.causes.graph().may_be_ahead(scope.trace, f.index);
        let new = new_kernels(scope, f);
        for (gap, pieces) in scope.gaps(f) {
            // Before a page that comes back the CPU reads results.
            let is_asked = may_be_ahead(gap.span.end) && !scope.causes.comes_back(gap.next);
            if !is_asked || cases::NO_NEXT_BATCH.holds(new.contains(&gap.next)) {
                continue;
            }
            // What only the first one of its name takes is a cold start.
            let is_its = |piece: &&Piece| {
                scope.causes.group(gap, piece) == Group::Host
                    && !scope.causes.is_first(gap.next, piece)
            };
            let mut sum: Ns = 0;
            for piece in pieces.iter().filter(is_its) {
                let length = piece.span.len();
                sum += length;
                let seen = &mut work.seen;
                scope.causes.add_samples(gap.next, piece.span, seen);
                let name = scope.causes.host_name(piece.culprit);
                *work.by_name.entry(name).or_default() += length;
            }
            let graph = scope.causes.graph();
            let fetches = |piece: &Piece| {
                let wait = scope.causes.wait_of(piece)?;
                needs::fetched(scope.trace, graph, wait)
            };
            if sum > 0 {
                let before = scope.comes_before(f, &gap).map(|it| it.bytes);
                let most = pieces.iter().filter_map(fetches).chain(before).max();
                work.on_fetched += if most.is_some() { sum } else { 0 };
                // One value may be a loss that is written down.
                work.on_data += if most > Some(8) { sum } else { 0 };
                work.at.push((sum, Occurrence::Gap(f.index, gap.span)));
                work.before.push((gap.span, gap.next));
            }
        }
        work
    }
}

/// The first operation of each kernel in the whole of a timeline.
fn new_kernels(scope: &Scope, f: &DeviceFigures) -> FxHashSet<OpId> {
    let graph = scope.causes.graph();
    let mut met = FxHashSet::default();
    let is_new = |op: &OpId| {
        let kernel = first_use::kernel(scope.trace, graph, *op);
        kernel.is_some_and(|kernel| met.insert(kernel))
    };
    let ops = graph.ops.of_device(f.index).iter().copied();
    match scope.window {
        Some(_) => FxHashSet::default(),
        None => ops.filter(is_new).collect(),
    }
}
