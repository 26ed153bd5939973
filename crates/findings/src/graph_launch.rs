//! A CUDA graph that is launched only when the CPU has waited, and one of many short nodes: the GPU idles meanwhile.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{DeviceFigures, Finding, Occurrence, Says, Scope, longest_first};
use crate::thresholds;
use activity::text::{counted, cut_middle, listed};
use activity::units::{duration, percent, share};
use activity::{NameId, Ns, What};
use causes::around::{self, OPTIMIZER};
use causes::graph::{CallId, CallKind, NONE};
use causes::{Bound, Cause, Culprit, Gap, Piece};
use figures::busy::mostly;

/// Kernels that are named, and columns of each name.
const NAMES: usize = 3;
const NAMES_MAX: usize = 40;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if !scope.has_name(|it| it.contains("GraphLaunch")) {
        return None;
    }
    let graph = scope.causes.graph();
    let launch = |gap: &Gap, piece: &Piece| -> Option<CallId> {
        let Culprit::Call(call) = piece.culprit else {
            return None;
        };
        let is_one = graph.calls.kind[call as usize] == CallKind::GraphLaunch;
        let is_waited = scope.causes.wait_of(piece).is_some_and(|wait| wait != call);
        let is_cold = scope.causes.is_first(gap.next, piece);
        (is_one && is_waited && !is_cold).then_some(call)
    };
    let (mut time, mut at, mut launches, mut waits) =
        (0 as Ns, Vec::new(), FxHashSet::default(), None);
    for (gap, pieces) in scope.gaps(f) {
        for piece in pieces.iter() {
            if let Some(call) = launch(&gap, piece) {
                time += piece.span.len();
                waits = waits.or(scope.causes.wait_of(piece));
                if launches.insert(call) {
                    let place = Occurrence::Row(graph.calls.at(call));
                    at.push((graph.calls.span(call).len(), place));
                }
            }
        }
    }
    // Recording each node makes launches longer.
    let recorded = scope
        .watching
        .map_or(0.0, |it| share(it.nodes_ns[1], it.span_ns));
    let is_many = cases::LOOP_MIN.is_reached_by(launches.len());
    if !is_many || !cases::WARNING_SHARE.is_reached_by(f.part(time) - recorded) {
        return None;
    }
    let name = |call: CallId| scope.causes.host_name(Culprit::Call(call));
    let name = |call: CallId| name(call).map_or("a wait", |id| scope.trace.names().short(id));
    let (part, wait) = (f.part(time), name(waits?));
    Some(Finding {
        says: Some(Says {
            bound: Bound::Sync,
            part,
            why: format!("{} in cudaGraphLaunch behind a sync", percent(part)),
        }),
        title: format!(
            "{} of CUDA graphs keep the GPU idle for {} ({}): each begins only when the CPU has waited ({})",
            counted(launches.len() as u64, "launch", "launches"),
            duration(time),
            percent(part),
            wait,
        ),
        advice: "Launch the next graph before that wait, and read results one step later: cudaGraphLaunch then runs beside the GPU's work. Where a result decides what is launched, smaller graphs start sooner.".to_owned(),
        ..scope.found(f.span_ns, time, &longest_first(at))
    })
}

/// Gaps between the nodes of graphs, which are the graph's own: only fewer and longer nodes make them less.
pub(super) fn nodes(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let ops = &scope.causes.graph().ops;
    let mut all = ops.of_device(f.index).iter();
    if !all.any(|&op| ops.is_graph(op)) {
        return None;
    }
    let mut by_name: FxHashMap<NameId, Ns> = FxHashMap::default();
    let (mut short, mut kernels) = (0 as Ns, 0u64);
    for ((lane, row), activity) in scope.operations(f) {
        let op = scope.causes.graph().op_at(lane, row);
        if let (What::Kernel(kernel), Some(op)) = (activity.what, op)
            && ops.is_graph(op)
        {
            let length = activity.span.len();
            kernels += 1;
            let is_short = !cases::UNDER_FILLED_MIN.is_reached_by(length);
            short += if is_short { length } else { 0 };
            let name = scope.trace.shape(kernel.shape).name;
            *by_name.entry(name).or_default() += length;
        }
    }
    let idle = scope.idle_that(f, |gap, piece| {
        let is_waited = scope.causes.wait_of(piece).is_some();
        ops.is_graph(gap.next) && piece.cause == Cause::Queued && !is_waited
    });
    // A launch takes as long as there are nodes.
    let is_launch = |gap: &Gap, it: &Piece| ops.is_graph(gap.next) && it.cause == Cause::GraphSetup;
    let launching = scope.idle_that(f, is_launch);
    let part = f.part(idle);
    let mean = by_name.values().sum::<Ns>() / (kernels as Ns).max(1);
    let are_empty = mean < thresholds::EMPTY_NODE && f.part(idle + short + launching) > 0.5;
    if !cases::LAUNCH_IDLE_SHARE.is_reached_by(part) && !are_empty
        || !cases::LAUNCH_OPS_MIN.is_reached_by(kernels as usize)
    {
        return None;
    }
    let all = by_name.values().sum::<Ns>();
    let (most, time) = by_name.into_iter().max_by_key(|it| (it.1, it.0))?;
    let most = cut_middle(scope.trace.names().short(most), NAMES_MAX);
    let mostly = mostly(time, all);
    let at = [Occurrence::Gap(f.index, f.span)];
    let launching = if are_empty { launching } else { 0 };
    let found = scope.found(f.span_ns, idle + short + launching, &at);
    // A launch that comes late is mended more easily.
    let is_late = check(scope, f).is_some();
    Some(Finding {
        severity: found.severity.keep_where(!is_late),
        says: (!is_late).then(|| Says::of_kernels(f, match are_empty {
            true => format!("in a CUDA graph's nodes of {} each", duration(mean)),
            false => format!("{} in gaps between a CUDA graph's nodes", percent(part)),
        })),
        title: format!(
            "{} of CUDA graphs take {} each, {mostly} {most}; gaps between them take {} ({})",
            counted(kernels, "node", "nodes"),
            duration(mean),
            duration(idle),
            percent(part),
        ),
        advice: "The gaps are the graph's own. Put several nodes into one kernel (fuse them, or loop in it): fewer, longer nodes.".to_owned(),
        ..found
    })
}

/// The kernels that are launched one by one though a graph is replayed, those first that run most often; `None` without a graph.
pub(super) fn beside(scope: &Scope, f: &DeviceFigures) -> Option<String> {
    let graph = scope.causes.graph();
    let mut by_name: FxHashMap<NameId, usize> = FxHashMap::default();
    let mut has_graph = false;
    for (place, activity) in scope.operations(f) {
        let op = graph.op_at(place.0, place.1).unwrap_or(NONE);
        if op != NONE && graph.ops.is_graph(op) {
            has_graph = true;
        } else if let What::Kernel(kernel) = activity.what {
            *by_name
                .entry(scope.trace.shape(kernel.shape).name)
                .or_default() += 1;
        }
    }
    let mut names: Vec<(usize, NameId)> = by_name.into_iter().map(|it| (it.1, it.0)).collect();
    names.sort_by_key(|it| std::cmp::Reverse(*it));
    let short = |it: &(usize, NameId)| cut_middle(scope.trace.names().short(it.1), NAMES_MAX);
    let names: Vec<String> = names.iter().take(NAMES).map(short).collect();
    has_graph.then(|| listed(&names))
}

/// Training steps of which graphs hold a part: the rest is launched one by one, and leaves the GPU idle.
pub(super) fn rest(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    // A server's graphs leave out on purpose what differs from step to step.
    let trains = scope.has_name(|it| it.starts_with(OPTIMIZER));
    if scope.steps == 0 || !trains || !cases::LAUNCH_IDLE_SHARE.is_reached_by(f.idle_share()) {
        return None;
    }
    let (graph, mut at, mut graphs) = (scope.causes.graph(), Vec::new(), FxHashSet::default());
    let mut calls = FxHashSet::default();
    for (place, _) in scope.operations(f) {
        match graph.call_at(place) {
            NONE => {}
            call if graph.calls.kind[call as usize] == CallKind::GraphLaunch => {
                graphs.insert(call);
            }
            call => {
                calls.insert(call);
                at.push(Occurrence::Row(place));
            }
        }
    }
    let window = scope.window_on(f.index).unwrap_or(f.span);
    let mut waits = 0;
    for process in scope.processes(f) {
        let ended = graph.calls.ended(process, window.end).iter();
        let ended = ended.filter(|&&it| graph.calls.waited[it as usize] != NONE);
        waits += ended
            .filter(|&&it| window.overlaps(graph.calls.span(it)))
            .count();
    }
    let is_waiting = cases::WAITS_BESIDE_GRAPHS.holds(waits >= scope.steps);
    let of_step = calls.len() / scope.steps;
    if graphs.len() < scope.steps || of_step < EAGER_MIN || is_waiting {
        return None;
    }
    let calls = calls.into_iter().map(|it| (it, 1));
    let own = |names: &[&str]| {
        let mut own = names
            .iter()
            .rev()
            .filter(|it| !it.starts_with("ProfilerStep"));
        own.next().map(|it| (*it).to_owned())
    };
    let places = around::by_name(scope.causes, calls, own).into_iter();
    let places: Vec<String> = places.take(NAMES).map(|it| it.0).collect();
    let within = match places.is_empty() {
        true => String::new(),
        false => format!(", in {}", listed(&places)),
    };
    Some(Finding {
        title: format!(
            "{} a step are launched one by one beside CUDA graphs{}; the GPU is idle for {} ({})",
            counted(of_step as u64, "operation", "operations"),
            within,
            duration(f.idle_ns),
            percent(f.idle_share()),
        ),
        advice: "Capture the rest of the step as well, with the loss and the optimizer: then one launch a step is left. The optimizer has to be capturable.".to_owned(),
        says: Some(Says {
            bound: Bound::Launch,
            part: f.idle_share(),
            why: format!("{of_step} operations are launched one by one beside CUDA graphs"),
        }),
        ..scope.found(f.span_ns, f.idle_ns, &at)
    })
}

/// So many operations a step beside graphs are worth capturing.
const EAGER_MIN: usize = 4;
