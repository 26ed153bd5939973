//! What a device runs around a moment.

use super::{CallId, CallKind, Engine, Graph, OpId, Ops};
use activity::{Ns, Span, What};
use trace::Trace;

impl Ops {
    /// The operations of a device that begin before a moment, and the others.
    pub fn around(&self, device: usize, time: Ns) -> (&[OpId], &[OpId]) {
        let all = self.of_device(device);
        all.split_at(all.partition_point(|&op| self.start[op as usize] < time))
    }

    /// When the first kernel of a device starts, in all of the timeline.
    pub fn first_kernel(&self, device: usize) -> Option<Ns> {
        let first = self.of_engine(device, Engine::Compute).first();
        first.map(|op| self.start[*op as usize])
    }

    /// How long a device runs no kernel around these gaps of `span`, which come in order of time. Of more than `most` between two
    /// kernels the gap alone counts.
    pub fn without_kernels(
        &self,
        device: usize,
        span: Span,
        gaps: impl Iterator<Item = Span>,
        most: Ns,
    ) -> Ns {
        let mut kernels = self.of_engine(device, Engine::Compute).iter().peekable();
        let (mut ended, mut free, mut until) = (span.start, 0, span.start);
        for gap in gaps {
            while let Some(&op) = kernels.next_if(|op| self.start[**op as usize] < gap.end) {
                ended = ended.max(self.end[op as usize]);
            }
            let next = kernels
                .peek()
                .map_or(Ns::MAX, |op| self.start[**op as usize]);
            let next = next.min(span.end.max(gap.end));
            let between = next - ended.max(until);
            let (counted, end) = match between > most {
                true => (gap.len().min(between), gap.end),
                false => (between.max(0), next),
            };
            free += counted;
            until = end.max(until);
        }
        free
    }
}

impl Graph {
    /// The last operation of a device that begins before a moment.
    pub fn last_before(&self, trace: &Trace, device: usize, time: Ns) -> Option<What> {
        let last = self.ops.around(device, time).0.last();
        last.map(|&op| self.what(trace, op))
    }

    /// The first operation of a device that begins at a moment or later.
    pub fn first_from(&self, trace: &Trace, device: usize, time: Ns) -> Option<What> {
        let next = self.ops.around(device, time).1.first();
        next.map(|&op| self.what(trace, op))
    }

    /// Whether a pause that ends then lies behind a device's first operation that the program asked for, and not behind its
    /// last one. Before nothing can be prepared ahead, and behind nothing launched.
    pub fn may_be_ahead(&self, trace: &Trace, device: usize) -> impl Fn(Ns) -> bool {
        let is_asked = |op: &&OpId| !self.what(trace, **op).is_migration();
        let (ops, all) = (&self.ops, self.ops.of_device(device));
        let (first, last) = (all.iter().find(is_asked), all.iter().rfind(is_asked));
        let start = |op: Option<&OpId>| op.map_or(Ns::MIN, |&op| ops.start[op as usize]);
        let (first, last) = (start(first), start(last));
        move |end| first < end && end <= last
    }

    /// Whether at least half of the calls that take memory of a device take managed memory.
    pub fn takes_managed(&self, trace: &Trace) -> bool {
        let is_one = |it: &usize| self.calls.kind[*it] == CallKind::Memory;
        let (mut managed, mut others) = (0, 0);
        for call in (0..self.calls.len()).filter(is_one) {
            let name = self.function(trace, call as CallId);
            let is_of_device = name.contains("lloc") && !name.contains("Host");
            managed += usize::from(name.contains("llocManaged"));
            others += usize::from(is_of_device && !name.contains("llocManaged"));
        }
        managed >= others
    }
}
