//! What an operation depended on beside what bound it: a replay needs it all.

use super::ops::Ops;
use super::{Engine, Graph, NONE, OpId};
use crate::trace::Trace;

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
        let lane = self.ops.lane[op as usize];
        let awaited = self.event_waits(trace, op).filter_map(|(_, record)| {
            let (stream, time) = record?;
            self.last_issued(stream?, time)
        });
        awaited
            .filter(|&on| on != NONE && self.ops.lane[on as usize] != lane)
            .collect()
    }
}
