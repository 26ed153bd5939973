//! What a program copies to a GPU before it works, and how fast copies can be.

use activity::{DeviceInfo, Direction, Ns, What};
use causes::graph::{Engine, Graph, OpId};
use trace::Trace;

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
