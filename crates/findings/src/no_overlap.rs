//! Copies and kernels, or copies of both directions, one after the other on independent engines.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Copied, Finding, Occurrence, Says, Scope, declared, longest_first};
use activity::units::percent;
use activity::{Direction, MemoryKind, Ns, Place, Span, What};
use causes::graph::{CallId, EdgeKind, LATENCY_MAX, NONE};
use causes::{Cause, Culprit, Group, Piece, sum_by};
use figures::DeviceFigures;
use replay::edits;
use replay::engines::{Engines, engine};
use trace::LaneId;

/// Those of a device, in what is looked at.
pub(super) fn engines(scope: &Scope, f: &DeviceFigures) -> Engines {
    let operations = scope.operations(f).map(|it| it.1);
    let copiers = scope.trace.devices()[f.index].info.copy_engines;
    let copies_one_way = cases::ONE_COPY_ENGINE.holds(copiers == 1);
    Engines::of(scope.trace, (f.index, copies_one_way), operations)
}

/// From this part of the time on a headline names the copies that kernels take turns with.
const SAID: f64 = 0.25;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    // Kernels alone have nothing to be beside.
    if f.h2d.count + f.d2h.count == 0 {
        return None;
    }
    let engines = engines(scope, f);
    let takes_part = |&busy: &Ns| cases::ENGINE_SHARE.is_reached_by(f.part(busy));
    if engines.busy.iter().filter(|b| takes_part(b)).count() < 2 {
        return None;
    }
    let computes = takes_part(&engines.busy[0]);
    if has_nothing_beside(scope, f, computes) {
        return None;
    }
    let (saving, hidden) = (engines.hideable(), engines.hidden());
    let is_worth = cases::LARGE_SHARE.is_reached_by(f.part(saving));
    if cases::HIDDEN_SHARE.is_reached_by(hidden) || !is_worth {
        return None;
    }
    // No stream of the program's takes pages that the driver moves.
    let moved = scope.copies(f).iter();
    let moved = moved.filter(|it| it.2.place.stream >= Place::EVICTED);
    if 2 * Span::union_len(moved.map(|it| it.1).collect()) >= f.copy_ns.max(1) {
        return None;
    }
    let copies = Copies::of(scope, f);
    let are_apart = !computes && copies.are_apart();
    if cases::DONE_ALREADY.holds(are_apart && !copies.come_back_last()) {
        return None;
    }
    let hidden_at_most = match scope.planned {
        Some(_) => f.recorded_ns() - f.idle_ns - engines.least(),
        None => saving,
    };
    let most = hidden_at_most + kept(scope, f, &copies);
    let ahead = match are_apart {
        true => format!(", though queued ahead on {} streams", copies.lanes.len()),
        false => String::new(),
    };
    let found = scope.found(f.span_ns, most, &longest_first(copies.at));
    Some(Finding {
        title: format!(
            "{} run one after another{ahead}: {} of the possible overlap is used",
            engines.text(),
            percent(hidden),
        ),
        advice: match are_apart {
            true => "The driver ran all uploads first. Windows and WSL hold back what is queued: cudaStreamQuery behind each batch sends it.",
            false => advice(scope, f, computes),
        }
        .to_owned(),
        cure: if computes { "" } else { "overlapping H2D with D2H" },
        // Beside the engine that works longest the others are hidden, and no more.
        cap_ns: Some(engines.busy.iter().sum::<Ns>() - engines.busy.iter().max().unwrap_or(&0)),
        // Copies that take more have a headline of their own, and what takes little is none.
        says: (computes && f.compute_ns >= f.copy_ns && f.part(f.copy_ns) >= SAID).then(|| {
            let part = percent(f.part(f.copy_ns));
            Says::of_kernels(f, format!("copies {part}, one after another"))
        }),
        change: match are_apart {
            true => Vec::new(),
            false => match waited_with(scope, f).filter(|_| computes) {
                Some(call) => scope.changes(&format!("{call}: {BEHIND_ALL}"), None),
                None => scope.change("streams", None),
            },
        },
        refused: are_apart.then(|| "they have streams of their own already".to_owned()),
        // Copies of pageable memory block whoever asks for them, on whatever stream.
        premise: match copies.pageable > 0 && 2 * copies.pageable >= copies.copied {
            true => "pin".parse().ok(),
            false => None,
        },
        // Whether one batch needs what another left only a scenario says.
        severity: found.severity.keep_where(scope.planned.is_some() && !are_apart),
        ..found
    })
}

const BEHIND_ALL: &str = "behind all batches, not behind each";

/// The call that waits longest, of a program whose streams are there already.
fn waited_with<'s>(scope: &'s Scope, f: &DeviceFigures) -> Option<&'s str> {
    if whole_streams(scope, f) < 2 {
        return None;
    }
    let calls = &scope.causes.graph().calls;
    let waits = scope.processes(f).into_iter();
    let waits = waits.flat_map(|process| calls.ended(process, Ns::MAX));
    let waits = waits.filter(|it| calls.kind[**it as usize].is_wait());
    let name = |it: &CallId| {
        let (lane, row) = calls.at(*it);
        match scope.trace.what(lane, row) {
            What::Call(it) => Some(it.name),
            _ => None,
        }
    };
    let all = waits.filter_map(|it| Some((name(it)?, calls.span(*it).len())));
    let most = sum_by(all).into_iter().next()?.0;
    Some(scope.trace.names().short(most))
}

/// What to do about engines that take turns.
fn advice(scope: &Scope, f: &DeviceFigures, computes: bool) -> &'static str {
    match computes {
        false => {
            "Where batches are independent, put the two directions on two streams, with pinned memory: each has its own copy engine."
        }
        true if whole_streams(scope, f) > 1 => {
            "Each stream has a batch of its own: ask for all of them, with pinned memory, before the CPU waits for any."
        }
        true if waits_for_kernels(scope, f) => {
            "The copies wait for kernels that still use the buffer: add a second one, and fill it meanwhile."
        }
        true => {
            "Cut the work into independent batches, each on its own stream with pinned memory: one copies while another computes."
        }
    }
}

/// Whether nothing could run beside it: there is one batch, or one graph that works in the same memory again and again.
fn has_nothing_beside(scope: &Scope, f: &DeviceFigures, computes: bool) -> bool {
    // Of a scenario it is known which way is the way back.
    let has_one_batch = match (computes, scope.planned) {
        (true, _) => has_one_batch(scope, f),
        (false, Some(planned)) => declared::has_way_back(planned),
        (false, None) => [f.h2d.count, f.d2h.count].iter().any(|&n| n < 2),
    };
    let graph = scope.causes.graph();
    let ops = scope
        .operations(f)
        .filter_map(|((lane, row), _)| graph.op_at(lane, row));
    let is_one_graph = || edits::is_one_graph(scope.trace, graph, ops);
    cases::ONE_BATCH.holds(has_one_batch) || cases::ONE_GRAPH.holds(is_one_graph())
}

/// The copies of a device.
#[derive(Default)]
struct Copies {
    /// Those from and to the CPU, on how many streams, and how many of pinned memory were queued ahead.
    at: Vec<(Ns, Occurrence)>,
    lanes: FxHashSet<LaneId>,
    ready: usize,
    /// How long all of them run, and those of pageable memory. What asks for the latter.
    copied: Ns,
    pageable: Ns,
    staging: FxHashSet<CallId>,
    /// When the last upload ends, and the first copy back starts.
    up: Ns,
    back: Option<Ns>,
}

impl Copies {
    fn of(scope: &Scope, f: &DeviceFigures) -> Self {
        let graph = scope.causes.graph();
        let mut copies = Copies::default();
        for &(place, span, copy) in scope.copies(f) {
            let call = graph.call_at(place);
            if matches!(copy.direction, Direction::H2D | Direction::D2H) {
                copies.at.push((span.len(), Occurrence::Row(place)));
                copies.lanes.insert(place.0);
                match copy.direction {
                    Direction::H2D => copies.up = copies.up.max(span.end),
                    _ => {
                        copies.back = copies
                            .back
                            .map(|it| it.min(span.start))
                            .or(Some(span.start));
                    }
                }
                let is_queued =
                    call != NONE && graph.calls.end[call as usize] + LATENCY_MAX < span.start;
                let is_pinned = [copy.from, copy.to].contains(&MemoryKind::Pinned);
                copies.ready += usize::from(is_queued && is_pinned);
            }
            copies.copied += span.len();
            if copy.is_pageable() {
                copies.pageable += span.len();
                copies.staging.insert(call);
            }
        }
        copies
    }

    /// Whether all uploads end before anything comes back, whatever was called first.
    fn come_back_last(&self) -> bool {
        self.back.is_some_and(|it| self.up <= it)
    }

    /// Whether what could be done is done: a driver may keep them apart, as on Windows.
    fn are_apart(&self) -> bool {
        self.pageable == 0 && self.lanes.len() > 1 && 2 * self.ready > self.at.len()
    }
}

/// Idle time that would go, too, as other batches are there.
fn kept(scope: &Scope, f: &DeviceFigures, copies: &Copies) -> Ns {
    let is_staging = |piece: &Piece| matches!(piece.culprit, Culprit::Call(call) if copies.staging.contains(&call));
    scope.idle_that(f, |gap, piece| {
        let group = scope.causes.group(*gap, piece);
        match scope.planned {
            // The CPU's own work, and what loads and allocates, take their time beside nothing. What pageable copies take of
            // the CPU is a matter of pinning.
            Some(_) => !matches!(group, Group::Host | Group::SetUp) && !is_staging(piece),
            // What the device itself takes between two operations.
            None => group == Group::Queue || piece.cause == Cause::Latency,
        }
    })
}

/// Whether there is one batch: it has nothing beside it, and its way back nothing to be beside.
pub(super) fn has_one_batch(scope: &Scope, f: &DeviceFigures) -> bool {
    f.kernels < 2 || (scope.planned.is_none() && is_one_batch(scope, f))
}

/// Whether all that is copied to the device is there before the first kernel, and nothing is copied back before the last. Streams that
/// each bring data, work, and bring results back have a batch each.
fn is_one_batch(scope: &Scope, f: &DeviceFigures) -> bool {
    let mut all = [None::<Span>; 3];
    for (_, activity) in scope.operations(f) {
        if let Some(engine) = engine(&activity) {
            all[engine] = Some(all[engine].map_or(activity.span, |it| it.hull(activity.span)));
        }
    }
    let [Some(kernels), up, down] = all else {
        return false;
    };
    if whole_streams(scope, f) > 1 {
        return false;
    }
    up.is_none_or(|up| up.end <= kernels.start) && down.is_none_or(|it| it.start >= kernels.end)
}

/// How many streams use all three. Where most of the copies' time lies on another stream, they bring no batch of their own.
fn whole_streams(scope: &Scope, f: &DeviceFigures) -> usize {
    let mut by = FxHashMap::<LaneId, [Ns; 3]>::default();
    for ((lane, _), activity) in scope.operations(f) {
        if let Some(engine) = engine(&activity) {
            by.entry(lane).or_default()[engine] += activity.span.len().max(1);
        }
    }
    let copied = |it: &[Ns; 3]| it[1] + it[2];
    let all: Ns = by.values().map(copied).sum();
    by.retain(|_, it| !it.contains(&0));
    match 2 * by.values().map(copied).sum::<Ns>() >= all {
        true => by.len(),
        false => 0,
    }
}

/// Whether most copies were held back by an event of another stream.
fn waits_for_kernels(scope: &Scope, f: &DeviceFigures) -> bool {
    let graph = scope.causes.graph();
    let is_held = |&&((lane, row), ..): &&Copied| {
        let edge = graph.op_at(lane, row).map(|op| graph.ops.edge[op as usize]);
        matches!(edge, Some(EdgeKind::Event | EdgeKind::EventLikely))
    };
    let held = scope.copies(f).iter().filter(is_held).count();
    held * 2 >= scope.copies(f).len() && held > 0
}
