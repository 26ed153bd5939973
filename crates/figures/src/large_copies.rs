//! Large copies by when they were asked for, beside the launches of kernels.

use activity::{Copy, Direction, Ns, Span};
use causes::graph::{Engine, Graph};
use trace::LaneId;

/// Whether as many values may go forth as came back, of types that differ by up to four times in size. Other data are of the next round.
pub fn is_made_of(went: u64, came: u64) -> bool {
    let times = (went as f64 / came as f64).log2();
    times.abs() < 2.01 && (times - times.round()).abs() < 0.01
}

/// The large copies of a device by when they were asked for, and when its kernels were launched.
pub struct LargeCopies {
    copies: Vec<(Ns, Direction, Span, u64)>,
    kernels: Vec<Ns>,
}

impl LargeCopies {
    /// Of some copies of a device: where each stands, when it ran, and what it moved.
    pub fn of<'c>(
        graph: &Graph,
        device: usize,
        copies: impl Iterator<Item = &'c ((LaneId, usize), Span, Copy)>,
    ) -> LargeCopies {
        let issued = |(lane, row)| graph.op_at(lane, row).map(|op| graph.issued(op));
        let is_large = |it: &&((LaneId, usize), Span, Copy)| it.2.bytes > Copy::TINY_BYTES;
        let large = copies.filter(is_large);
        let copies = large
            .filter_map(|&(at, span, copy)| Some((issued(at)?, copy.direction, span, copy.bytes)));
        let ops = graph.ops.of_device(device).iter();
        let kernels = ops.filter(|op| graph.ops.engine[**op as usize] == Engine::Compute);
        let mut kernels: Vec<Ns> = kernels.map(|&op| graph.issued(op)).collect();
        kernels.sort_unstable();
        let mut copies: Vec<_> = copies.collect();
        copies.sort_by_key(|it| it.0);
        LargeCopies { copies, kernels }
    }

    /// When the next kernel is launched.
    pub fn next_kernel(&self, time: Ns) -> Ns {
        let at = self.kernels.partition_point(|&it| it < time);
        self.kernels.get(at).copied().unwrap_or(Ns::MAX)
    }

    /// How long copies run that were asked for within a stretch and end by a time, and what they move.
    pub fn sum(&self, direction: Direction, asked: Span, by: Ns) -> (Ns, u64) {
        let from = self.copies.partition_point(|it| it.0 < asked.start);
        let its = self.copies[from..]
            .iter()
            .take_while(|it| asked.contains(it.0));
        let its = its.filter(|it| it.1 == direction && it.2.end <= by);
        its.fold((0, 0), |(time, bytes), it| {
            (time + it.2.len(), bytes + it.3)
        })
    }
}
