//! What an operation depended on beside what bound it: a replay needs it all.

use super::ops::Ops;
use super::{Engine, Graph, NONE, OpId};
use crate::trace::{LaneId, Trace};

impl Ops {
    /// The operations of one engine of a device by start.
    #[must_use]
    pub fn of_engine(&self, device: usize, engine: Engine) -> &[OpId] {
        self.by_engine
            .get(device)
            .map_or(&[], |lists| lists[engine as usize].as_slice())
    }
}

impl Graph {
    /// The operations of other streams that this one's stream had been told to wait for, by the records
    /// of waits and events, and that had ended before it.
    #[must_use]
    pub fn awaited(&self, trace: &Trace, op: OpId) -> Vec<OpId> {
        let i = op as usize;
        let lane = self.ops.lane[i] as LaneId;
        let list = self.ops.of_lane(lane);
        let before = list[..list.partition_point(|&o| o < op)].last();
        let after = before.map_or(crate::activity::Ns::MIN, |&o| self.issued(o));
        let process = trace.lanes()[lane].key().process;
        let waits = self.events.waits(lane, after, self.issued(op));
        let mut awaited = Vec::new();
        for wait in waits {
            let recorded = wait
                .event
                .and_then(|e| self.events.recorded(process, e, wait.context, wait.issued))
                .filter(|&(_, at)| trace.recorded(process).knows_waits(at, wait.issued));
            let Some((Some(stream), time)) = recorded else {
                continue;
            };
            let Some(on) = self.last_issued(stream, time) else {
                continue;
            };
            if on != NONE && self.ops.lane[on as usize] != self.ops.lane[i] {
                awaited.push(on);
            }
        }
        awaited
    }
}
