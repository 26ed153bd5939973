//! What a program copies to a GPU before it works, and how fast copies can be.

use activity::{DeviceInfo, Direction, Ns, Span, What};
use causes::graph::{CallId, Engine, Graph, NONE, OpId};
use rustc_hash::FxHashMap;
use trace::{LaneId, Trace};

/// Until when copies bring a program what it works with, once. They come before kernels have run for a hundredth of their
/// time, fewer bytes later, and kernels take longer than what is copied later.
pub fn set_up_ends(trace: &Trace, graph: &Graph, device: usize) -> Option<Ns> {
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

/// The CPU goes through memory no faster, in GB/s. Measured: a core of a server reads and writes 10 to 20.
pub const CPU_RATE: u64 = 50;

/// Of fewer bytes a pause between two calls is long enough to write them.
const LARGE: u64 = 1 << 20;

/// How many uploads in a part bring what their thread had no time to write since the last kernel. And how long they take.
pub fn unwritten(trace: &Trace, graph: &Graph, device: usize, part: Span) -> (usize, Ns) {
    let (calls, ops) = (&graph.calls, &graph.ops);
    let mut free: FxHashMap<LaneId, Vec<Ns>> = FxHashMap::default();
    let mut known: FxHashMap<u64, (u64, [CallId; 2])> = FxHashMap::default();
    let (mut number, mut time, mut kernels) = (0, 0, 0);
    let ops_of = ops.of_device(device).iter();
    for &op in ops_of.filter(|op| part.contains(ops.start[**op as usize])) {
        let copy = match graph.what(trace, op) {
            What::Copy(it) if it.direction == Direction::H2D && it.bytes >= LARGE => it,
            it => {
                kernels += u64::from(matches!(it, What::Kernel(_)));
                continue;
            }
        };
        let call = ops.call[op as usize];
        let (round, [before, last]) = known.entry(copy.bytes).or_insert((0, [NONE; 2]));
        if *round < kernels {
            (*round, *before) = (kernels, *last);
        }
        *last = call;
        if call == NONE || *before >= call || calls.at(call).0 != calls.at(*before).0 {
            continue;
        }
        let lane = calls.at(call).0;
        let free = free.entry(lane).or_insert_with(|| outside(graph, lane));
        let at = |it: CallId| calls.of_lane(lane).partition_point(|of| *of < it);
        if free[at(call)] - free[at(*before)] < (copy.bytes / CPU_RATE) as Ns {
            (number, time) = (number + 1, time + ops.span(op).len());
        }
    }
    (number, time)
}

/// For each call of a thread, how long that was in no call before.
fn outside(graph: &Graph, lane: LaneId) -> Vec<Ns> {
    let (mut sum, mut until) = (0, Ns::MAX);
    let calls = graph.calls.of_lane(lane).iter();
    let outside = calls.map(|&it| {
        let span = graph.calls.span(it);
        sum += span.start.saturating_sub(until).max(0);
        until = if until == Ns::MAX {
            span.end
        } else {
            until.max(span.end)
        };
        sum
    });
    outside.collect()
}

/// Lanes of a card by its name: small ones of its makers have eight.
fn lanes_of(name: &str) -> f64 {
    let mut words = name.split(' ');
    let is_small = |it: &str| {
        "2050 3050 4050 4060 5050 5060"
            .split(' ')
            .any(|of| of == it)
    };
    match words.any(is_small) || name.contains("4070 Laptop") {
        true => 8.0,
        false => 16.0,
    }
}

/// What pinned copies reach at best, GB/s: on PCIe 3.0, 4.0 and 5.0, by compute capability and recorded lanes. `None` where the GPU is no
/// card: it shares the CPU's memory, or has a link of its own to it.
pub fn link_of(info: &DeviceInfo) -> Option<f64> {
    let lanes = info.link.rsplit_once(" x").and_then(|it| it.1.parse().ok());
    let card = match info.capability {
        _ if info.name.contains("GH200") || info.name.contains(" GB") => None,
        (5, 3) | (6, 2) | (7, 2) | (8, 7) | (11, _) | (12, 1) => None,
        // Of a card that nothing is known of, as of the latest one.
        (1..=7, _) => Some(13.0),
        (8, _) => Some(27.0),
        _ => Some(57.0),
    };
    card.map(|card| card * lanes.unwrap_or_else(|| lanes_of(&info.name)) / 16.0)
}
