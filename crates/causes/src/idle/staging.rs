//! Copies that a runtime stages itself, as those of OpenMP and OpenACC do. Between two parts the CPU brings the next into a
//! buffer, and no call shows it.

use super::{Cause, Causes, Certainty, Gap, Piece};
use crate::graph::OpId;
use crate::stacks::StackCounts;
use activity::{Direction, Span, What};

/// So many operations of a device tell whether it is done.
const SAMPLE: usize = 1 << 16;

impl Causes<'_> {
    /// Calls the CPU's work between two copies of one direction staging, where samples of such work mostly saw it.
    pub(super) fn put_staging(&self, gap: Gap, pieces: &mut [Piece]) {
        if !self.ready.is_sampled || !self.goes_on(gap.next) || !self.stages() {
            return;
        }
        for piece in pieces.iter_mut().filter(|it| it.cause == Cause::Host) {
            (piece.cause, piece.certainty) = (Cause::Staging, Certainty::Likely);
            piece.root = None;
        }
    }

    /// Whether an operation copies in the direction of the one before it.
    fn goes_on(&self, next: OpId) -> bool {
        let direction = self.direction(next);
        let before = self.before(next).and_then(|it| self.direction(it));
        direction.is_some() && before == direction
    }

    fn direction(&self, op: OpId) -> Option<Direction> {
        match self.graph.what(self.trace, op) {
            What::Copy(it) => Some(it.direction),
            _ => None,
        }
    }

    fn stages(&self) -> bool {
        *self.ready.stages.get_or_init(|| {
            let ops = &self.graph.ops;
            let mut seen = StackCounts::default();
            for device in 0..self.trace.devices().len() {
                let all = ops.of_device(device);
                let all = &all[..all.len().min(SAMPLE)];
                for two in all.windows(2).filter(|it| self.direction(it[0]).is_some()) {
                    let [end, start] = [ops.end[two[0] as usize], ops.start[two[1] as usize]];
                    if end < start && self.direction(two[0]) == self.direction(two[1]) {
                        self.add_samples(two[1], Span::new(end, start), &mut seen);
                    }
                }
            }
            seen.are_of_staging(self.trace)
        })
    }
}
