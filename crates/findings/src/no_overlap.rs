//! Copies and kernels, or copies of both directions, one after the other on independent engines.

use rustc_hash::FxHashSet;

use super::{Copied, Finding, Rule, Says, Scope, Severity, configs, declared, longest_first};
use ::program::Framework;
use activity::units::percent;
use activity::{Frame, Ns, Place, Span};
use causes::graph::{CallId, EdgeKind};
use causes::{Bound, Cause, Culprit, Group, Piece, around, sum_by};
use figures::DeviceFigures;
use figures::host_copies::HostCopies;
use replay::edits;
use replay::engines::{self, Engines};

/// Those of a device, in what is looked at.
pub(super) fn engines_of(scope: &Scope, f: &DeviceFigures) -> Engines {
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
    let is_hook = |it: &Frame| it.function.contains("save_on_cpu");
    if f.part(f.copy_ns) >= SAID && scope.trace.stacks().all().any(is_hook) {
        return Some(saved_on_cpu(scope, f));
    }
    let engines = engines_of(scope, f);
    let takes_part = |&busy: &Ns| cases::ENGINE_SHARE.is_reached_by(f.part(busy));
    if engines.busy.iter().filter(|b| takes_part(b)).count() < 2 {
        return None;
    }
    let computes = takes_part(&engines.busy[0]);
    if has_nothing_beside(scope, f, computes) {
        return in_chunks(scope, f, &engines).filter(|_| computes);
    }
    let copies = HostCopies::of(scope.causes.graph(), scope.copies(f));
    let (saving, hidden) = (engines.hideable(), engines.hidden());
    let is_worth = match copies.are_pinned() {
        true => cases::WARNING_SHARE.is_reached_by(f.part(saving)),
        false => cases::LARGE_SHARE.is_reached_by(f.part(saving)),
    };
    if cases::HIDDEN_SHARE.is_reached_by(hidden) || !is_worth {
        return None;
    }
    // No stream of the program's takes pages that the driver moves.
    let moved = scope.copies(f).iter();
    let moved = moved.filter(|it| it.2.place.stream >= Place::EVICTED);
    if 2 * Span::union_len(moved.map(|it| it.1).collect()) >= f.copy_ns.max(1) {
        return None;
    }
    let are_apart = !computes && copies.are_apart();
    if cases::DONE_ALREADY.holds(are_apart && !copies.come_back_last()) {
        return None;
    }
    let are_beside = computes && copies.are_beside(scope.trace, scope.window_on(f.index));
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
        refused: (are_apart || are_beside).then(|| "they have streams of their own already".to_owned()),
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

/// What PyTorch's `save_on_cpu` costs: all copies, and what waits for them.
fn saved_on_cpu(scope: &Scope, f: &DeviceFigures) -> Finding {
    let at = scope.copies(f).iter().map(|it| (it.1.len(), it.0));
    let (most, part) = (f.recorded_ns() - f.compute_ns, f.part(f.copy_ns));
    Finding {
        title: format!("activations go to the CPU's memory in forward and come back in backward (save_on_cpu): copies run {} of the time", percent(part)),
        advice: "Leave save_on_cpu out where the GPU's memory allows, or checkpoint some blocks where it does not.".to_owned(),
        cure: "keeping activations on the GPU",
        change: scope.changes("save_on_cpu: leave out where memory allows", None),
        says: Some(Says { bound: Bound::Copy, part, why: "activations go to the CPU and back (save_on_cpu)".to_owned() }),
        refused: Some("those copies need not be".to_owned()),
        instead_of: &[Rule::PageableCopy],
        ..scope.found(f.span_ns, most, &longest_first(at.collect()))
    }
}

/// One batch in pinned memory: where a part of the data gives a part of the result, pieces of it could be beside each other. What
/// is launched again and again has all of the data to go through.
fn in_chunks(scope: &Scope, f: &DeviceFigures, engines: &Engines) -> Option<Finding> {
    let copies = HostCopies::of(scope.causes.graph(), scope.copies(f));
    let kernels = configs::of_device(scope, f);
    // Half of a grid fills the GPU, too.
    let is_large = kernels.first()?.row.fill.waves >= Some(2.0);
    let is_own = scope.planned.is_none() && scope.framework() == Framework::Cuda;
    let is_one =
        is_own && are_once(scope, f) && is_large && copies.are_pinned() && !scope.is_managed(f);
    let saving = engines.hideable();
    if !is_one || !cases::WARNING_SHARE.is_reached_by(f.part(saving)) {
        return None;
    }
    let found = scope.found(f.span_ns, saving, &longest_first(copies.at));
    Some(Finding {
        severity: Severity::Info,
        title: format!("{} run one after another, in one batch", engines.text()),
        advice: "Where parts of the data give parts of the result, work in chunks, each on its own stream. One then copies while another computes.".to_owned(),
        cure: "working in chunks",
        refused: Some("how finely the work can be cut is not known".to_owned()),
        ..found
    })
}

/// Whether each kernel was launched once: none works on one batch and then on the next.
fn are_once(scope: &Scope, f: &DeviceFigures) -> bool {
    let all = configs::of_device(scope, f).iter();
    all.map(|it| it.shape.name).collect::<FxHashSet<_>>().len() as u64 == f.kernels
}

const BEHIND_ALL: &str = "behind all batches, not behind each";

/// The call that waits longest, of a program whose streams are there already.
fn waited_with<'s>(scope: &'s Scope, f: &DeviceFigures) -> Option<&'s str> {
    if whole_streams(scope, f) < 2 {
        return None;
    }
    let waits = around::waits_within(scope.causes, &scope.processes(f), &[f.span]);
    let name = |it: CallId| scope.causes.host_name(Culprit::Call(it));
    let all = waits.into_iter().filter_map(|it| Some((name(it.0)?, it.1)));
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
        (true, planned) => has_one_batch(scope, f) || planned.is_none() && are_once(scope, f),
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

/// Idle time that would go, too, as other batches are there.
fn kept(scope: &Scope, f: &DeviceFigures, copies: &HostCopies) -> Ns {
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
    let is_one = || engines::is_one_batch(scope.operations(f).map(|it| it.1));
    let is_program = scope.planned.is_none();
    f.kernels < 2 || is_program && whole_streams(scope, f) < 2 && is_one()
}

/// How many streams have a batch of their own: they bring data, work, and bring results back.
fn whole_streams(scope: &Scope, f: &DeviceFigures) -> usize {
    engines::whole_streams(scope.operations(f).map(|((lane, _), it)| (lane, it)))
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
