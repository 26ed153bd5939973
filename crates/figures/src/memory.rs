//! Device memory in use over time, from allocations and frees.

use rustc_hash::FxHashMap;

use activity::{MemoryAction, MemoryKind, MemoryOp, Ns, Span, What};
use trace::{LaneId, LaneKind, Trace};

/// How many bytes of device memory the program held, as steps. What was allocated before the
/// timeline began is not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// When the sum changed and to what, in order; several at one moment are possible.
    pub steps: Vec<(Ns, u64)>,
    /// Frees of memory whose allocation is not on the timeline.
    pub unmatched: u64,
    /// Bytes in use after the last step.
    now: u64,
    /// What is allocated after the last step: bytes by process and address.
    live: FxHashMap<(usize, u64), u64>,
    /// Rows of each memory lane that are in it.
    taken: FxHashMap<LaneId, usize>,
    /// Records of the timeline that had come late.
    late: u64,
}

impl MemoryUse {
    /// Memory of one device (index into [`Trace::devices`]), or of all together.
    pub fn of(trace: &Trace, device: Option<usize>) -> Self {
        let mut memory = MemoryUse::default();
        memory.update(trace, device);
        memory
    }

    /// Takes in what was added to the timeline of that device since. Only records that belong before
    /// what is known make it begin anew.
    pub fn update(&mut self, trace: &Trace, device: Option<usize>) {
        let new = || MemoryUse {
            late: trace.late(),
            ..MemoryUse::default()
        };
        if trace.late() != self.late {
            *self = new();
        }
        let known_until = self.steps.last().map(|step| step.0);
        let mut ops = self.take_new(trace, device);
        if ops.first().map(|op| op.0) < known_until && !ops.is_empty() {
            *self = new();
            ops = self.take_new(trace, device);
        }
        for (time, process, op) in ops {
            if op.action == MemoryAction::Free {
                match self.live.remove(&(process, op.address)) {
                    Some(bytes) => self.now = self.now.saturating_sub(bytes),
                    None => self.unmatched += 1,
                }
            } else {
                // An address that is given out again was freed without a record.
                if let Some(old) = self.live.insert((process, op.address), op.bytes) {
                    self.now = self.now.saturating_sub(old);
                }
                self.now = self.now.saturating_add(op.bytes);
            }
            self.steps.push((time, self.now));
        }
    }

    /// The rows that are not in it yet, by time; they count as taken.
    fn take_new(&mut self, trace: &Trace, device: Option<usize>) -> Vec<(Ns, usize, MemoryOp)> {
        let mut ops = Vec::new();
        for (id, lane) in trace.lanes().iter().enumerate() {
            let key = lane.key();
            let LaneKind::Memory { device: on } = key.kind else {
                continue;
            };
            if device.is_some_and(|wanted| wanted != on) {
                continue;
            }
            let taken = self.taken.insert(id, lane.len()).unwrap_or(0);
            // What was forgotten cannot be asked any more.
            let taken = taken.max(lane.first_row());
            for row in taken..lane.len() {
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
        ops
    }

    /// Bytes in use just after `time`.
    pub fn at(&self, time: Ns) -> u64 {
        let next = self.steps.partition_point(|s| s.0 <= time);
        next.checked_sub(1).map_or(0, |i| self.steps[i].1)
    }

    /// The most that was in use at one time within `window`; `None` when the timeline has no
    /// allocation up to its end.
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
    use activity::{Activity, Batch, Place};

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

    #[test]
    fn growing_by_what_came_is_the_same_as_beginning_anew() {
        use MemoryAction::{Alloc, Free};
        let batches = [
            vec![op(10, Alloc, 0xa, 100), op(20, Alloc, 0xb, 50)],
            vec![op(30, Free, 0xa, 0)],
            // Late: before what is there already.
            vec![op(15, Alloc, 0xc, 8), op(40, Free, 0xc, 0)],
            vec![op(50, Free, 0xb, 0), op(50, Alloc, 0xb, 7)],
        ];
        // By hand: 0xc is allocated between the two others.
        let expected: [&[(Ns, u64)]; 4] = [
            &[(10, 100), (20, 150)],
            &[(10, 100), (20, 150), (30, 50)],
            &[(10, 100), (15, 108), (20, 158), (30, 58), (40, 50)],
            &[
                (10, 100),
                (15, 108),
                (20, 158),
                (30, 58),
                (40, 50),
                (50, 0),
                (50, 7),
            ],
        ];
        let mut trace = Trace::default();
        let mut memory = MemoryUse::default();
        for (items, expected) in batches.into_iter().zip(expected) {
            trace.apply(Batch {
                items,
                ..Batch::default()
            });
            memory.update(&trace, Some(0));
            assert_eq!(memory.steps, expected);
            assert_eq!(memory, MemoryUse::of(&trace, Some(0)));
        }
    }
}
