//! What an operation depended on beside what bound it: a replay needs it all.

use super::ops::Ops;
use super::{Engine, Graph, NONE, OpId};
use trace::Trace;

impl Ops {
    /// The operations of one engine of a device by start.
    pub fn of_engine(&self, device: usize, engine: Engine) -> &[OpId] {
        self.by_engine
            .get(device)
            .map_or(&[], |lists| lists[engine as usize].as_slice())
    }

    /// How many operations of each engine of a device stand before an operation.
    pub fn before_on_engines(&self, device: usize, op: OpId) -> [usize; Engine::COUNT] {
        let lists = self.by_engine.get(device);
        let before = |engine: usize| lists.map_or(0, |of| of[engine].partition_point(|&o| o < op));
        std::array::from_fn(before)
    }

    /// The operations of its stream that stand before an operation, by start.
    pub fn before_on_lane(&self, op: OpId) -> &[OpId] {
        let i = op as usize;
        let (first, list) = &self.by_lane[self.lane[i] as usize];
        &list[..(self.row[i] - first) as usize]
    }
}

impl Graph {
    /// The operations of other streams that this one's stream had to wait for, by records of waits and events, and that
    /// ended before it.
    pub fn awaited<'g>(&'g self, trace: &'g Trace, op: OpId) -> impl Iterator<Item = OpId> + 'g {
        let lane = self.ops.lane[op as usize];
        let awaited = self.event_waits(trace, op).filter_map(|(_, record)| {
            let (stream, time) = record?;
            self.last_issued(stream?, time)
        });
        awaited.filter(move |&on| on != NONE && self.ops.lane[on as usize] != lane)
    }
}
