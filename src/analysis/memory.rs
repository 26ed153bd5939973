//! Device memory in use over time, from allocations and frees.

use rustc_hash::FxHashMap;

use crate::activity::{MemoryAction, MemoryKind, Ns, Span, What};
use crate::trace::{LaneKind, Trace};

/// How many bytes of device memory the program held, as steps. What was allocated before the
/// timeline began is not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// When the sum changed and to what, in order; several at one moment are possible.
    pub steps: Vec<(Ns, u64)>,
    /// Frees of memory whose allocation is not on the timeline.
    pub unmatched: u64,
}

impl MemoryUse {
    /// Memory of one device (index into [`Trace::devices`]), or of all together.
    #[must_use]
    pub fn of(trace: &Trace, device: Option<usize>) -> Self {
        let mut ops = Vec::new();
        for (id, lane) in trace.lanes().iter().enumerate() {
            let key = lane.key();
            let LaneKind::Memory { device: on } = key.kind else {
                continue;
            };
            if device.is_some_and(|wanted| wanted != on) {
                continue;
            }
            for row in 0..lane.len() {
                let activity = trace.activity(id, row);
                let What::Memory(op) = activity.what else {
                    continue;
                };
                if matches!(op.kind, MemoryKind::Pageable | MemoryKind::Pinned) {
                    continue;
                }
                ops.push((activity.span.start, key.process, op));
            }
        }
        // A stable sort: what one process did at one moment stays in its order.
        ops.sort_by_key(|op| op.0);
        let mut live: FxHashMap<(usize, u64), u64> = FxHashMap::default();
        let mut out = MemoryUse::default();
        let mut now = 0u64;
        for (time, process, op) in ops {
            if op.action == MemoryAction::Free {
                match live.remove(&(process, op.address)) {
                    Some(bytes) => now = now.saturating_sub(bytes),
                    None => out.unmatched += 1,
                }
            } else {
                // An address that is given out again was freed without a record.
                if let Some(old) = live.insert((process, op.address), op.bytes) {
                    now = now.saturating_sub(old);
                }
                now = now.saturating_add(op.bytes);
            }
            out.steps.push((time, now));
        }
        out
    }

    /// Bytes in use just after `time`.
    #[must_use]
    pub fn at(&self, time: Ns) -> u64 {
        let next = self.steps.partition_point(|s| s.0 <= time);
        next.checked_sub(1).map_or(0, |i| self.steps[i].1)
    }

    /// The most that was in use at one time within `window`; `None` when the timeline has no
    /// allocation up to its end.
    #[must_use]
    pub fn peak(&self, window: Span) -> Option<u64> {
        let to = self.steps.partition_point(|s| s.0 < window.end);
        if to == 0 {
            return None;
        }
        let from = self.steps.partition_point(|s| s.0 <= window.start);
        let at_start = self.at(window.start);
        Some(
            self.steps[from.min(to)..to]
                .iter()
                .fold(at_start, |peak, s| peak.max(s.1)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::{Activity, Batch, MemoryOp, Place};

    fn op(time: Ns, action: MemoryAction, address: u64, bytes: u64) -> Activity {
        Activity {
            span: Span::at(time),
            correlation: 0,
            what: What::Memory(MemoryOp {
                action,
                kind: MemoryKind::Device,
                place: Place::default(),
                bytes,
                address,
                is_async: false,
            }),
        }
    }

    #[test]
    fn a_free_gives_back_what_its_address_was_given() {
        use MemoryAction::{Alloc, Free};
        let mut trace = Trace::default();
        trace.apply(Batch {
            items: vec![
                op(10, Alloc, 0xa, 100),
                op(20, Alloc, 0xb, 50),
                op(30, Free, 0xa, 0),
                op(40, Free, 0xc, 7),
                op(50, Alloc, 0xa, 30),
            ],
            ..Batch::default()
        });
        let memory = MemoryUse::of(&trace, None);
        assert_eq!(
            memory.steps,
            [(10, 100), (20, 150), (30, 50), (40, 50), (50, 80)]
        );
        assert_eq!(memory.unmatched, 1);
        assert_eq!(memory.peak(Span::new(0, 100)), Some(150));
        assert_eq!(memory.peak(Span::new(35, 45)), Some(50));
        assert_eq!(memory.peak(Span::new(25, 45)), Some(150));
        assert_eq!(memory.peak(Span::new(0, 5)), None);
        assert_eq!(MemoryUse::of(&trace, Some(1)), MemoryUse::default());
    }
}
