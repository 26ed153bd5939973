//! Copies of pageable host memory: the driver stages them through its own pinned buffer.

use rustc_hash::FxHashSet;

use super::{Copied, DeviceFigures, Finding, Occurrence, Scope, longest_first};
use crate::thresholds;
use activity::units::{bytes, count, duration, rate};
use activity::{Direction, Ns, What};
use causes::graph::{CallId, Engine, Graph, NONE, OpId};
use causes::{Cause, Culprit, Piece};
use trace::Trace;

pub(super) fn check(scope: &Scope, figures: &DeviceFigures) -> Option<Finding> {
    let graph = scope.causes.graph();
    let mut calls: FxHashSet<CallId> = FxHashSet::default();
    let mut ops: FxHashSet<OpId> = FxHashSet::default();
    let mut at = Vec::new();
    let (mut moved, mut time, mut saving) = (0u64, 0 as Ns, 0.0);
    let link = link(scope, figures);
    let set_up = match scope.window {
        None => set_up_ends(scope.trace, graph, figures.index),
        Some(_) => None,
    };
    for &(place, span, copy) in scope.copies(figures) {
        let is_set_up =
            copy.direction == Direction::H2D && set_up.is_some_and(|end| span.start < end);
        if !copy.is_staged() || is_set_up {
            continue;
        }
        let length = span.len();
        moved += copy.bytes;
        time += length;
        let peak = scope.peaks.rate(copy.direction).or(link);
        let at_peak = peak.map_or(0.0, |peak| copy.bytes as f64 / peak);
        saving += (length as f64 - at_peak).max(0.0);
        ops.extend(graph.op_at(place.0, place.1));
        calls.extend(Some(graph.call_at(place)).filter(|&call| call != NONE));
        at.push((length, Occurrence::Row(place)));
    }
    if at.is_empty() {
        return None;
    }
    // The call of such a copy returns when it is staged; until then nothing else is launched. It also begins in another way:
    // what the device itself takes before it is not the pinned copy's.
    let idle = scope.idle_that(figures, |gap, piece| {
        let is_before =
            ops.contains(&gap.next) && matches!(piece.cause, Cause::EngineChange | Cause::Latency);
        is_before || is_in(piece, &calls)
    });
    let saving = saving as Ns + idle;
    if !cases::WORTH_SHARE.is_reached_by(figures.part(saving)) {
        return None;
    }
    let staging = match 10 * idle >= time {
        true => format!(", and the calls keep the GPU idle for {}", duration(idle)),
        false => String::new(),
    };
    let at = longest_first(at);
    let gbps = moved as f64 / time.max(1) as f64;
    Some(Finding {
        title: format!(
            "{} of pageable memory {} at {} GB/s: {} in {}{staging}",
            activity::text::counted(at.len() as u64, "copy", "copies"),
            if at.len() == 1 { "runs" } else { "run" },
            rate(gbps),
            bytes(moved),
            duration(time),
        ),
        advice: format!(
            "Pin the host memory of {} (cudaMallocHost, pin_memory=True): pinned copies run at link speed and can overlap.",
            if at.len() == 1 {
                "this copy".to_owned()
            } else {
                format!("these {} copies", count(at.len() as u64))
            },
        ),
        at_most: link.and_then(|link| format!("pin:{link}GB/s").parse().ok()),
        ..scope.found(figures.span_ns, saving, &at)
    })
}

/// Until when copies bring a program what it works with, once. They come before kernels have run for a hundredth of their
/// time, fewer bytes later, and kernels take longer than what is copied later.
fn set_up_ends(trace: &Trace, graph: &Graph, device: usize) -> Option<Ns> {
    let ops = &graph.ops;
    let length = |op: &OpId| ops.span(*op).len();
    let kernels = ops.of_engine(device, Engine::Compute);
    let all: Ns = kernels.iter().map(length).sum();
    let mut left = all - all / 100;
    let first = kernels.iter().rev().find(|op| {
        left -= length(op);
        left <= 0
    });
    let end = ops.start[*first? as usize];
    let (mut bytes, mut copying) = ([0, 0], 0);
    for op in ops.of_device(device) {
        let (lane, row) = ops.place(*op);
        let What::Copy(copy) = trace.what(lane, row) else {
            continue;
        };
        let is_later = ops.start[*op as usize] >= end;
        if copy.direction == Direction::H2D && copy.is_staged() {
            bytes[usize::from(is_later)] += copy.bytes;
        }
        copying += if is_later { length(op) } else { 0 };
    }
    (bytes[0] > bytes[1] && all > copying).then_some(end)
}

/// What pinned copies reach at best, GB/s: on PCIe 3.0, 4.0 and 5.0, by compute capability and recorded lanes. A large
/// copy may show more. `None` where the GPU is no card: it shares the CPU's memory, or has a link of its own to it.
pub(super) fn link(scope: &Scope, f: &DeviceFigures) -> Option<f64> {
    let info = &scope.trace.devices()[f.index].info;
    let lanes = info.link.rsplit_once(" x").and_then(|it| it.1.parse().ok());
    let card = match info.capability {
        _ if info.name.contains("GH200") || info.name.contains(" GB") => None,
        (0, _) | (5, 3) | (6, 2) | (7, 2) | (8, 7) | (11, _) | (12, 1) => None,
        (1..=7, _) => Some(13.0),
        (8, _) => Some(27.0),
        _ => Some(57.0),
    };
    let card = card.map(|card| card * lanes.unwrap_or(16.0) / 16.0);
    let is_large = |it: &&Copied| {
        let crosses = matches!(it.2.direction, Direction::H2D | Direction::D2H);
        crosses && it.2.bytes >= thresholds::LARGE_BYTES
    };
    let large = scope.copies(f).iter().filter(is_large);
    let seen = large.map(|it| it.2.bytes as f64 / it.1.len().max(1) as f64);
    card.map(|card| seen.fold(card, f64::max))
}

/// Whether idle time was in one of these calls.
fn is_in(piece: &Piece, calls: &FxHashSet<CallId>) -> bool {
    matches!(piece.culprit, Culprit::Call(call) if calls.contains(&call))
}
