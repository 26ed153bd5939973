//! The timeline as it is now, for another thread.

use std::sync::Arc;

use super::{Device, Process, Trace};

impl Trace {
    /// The timeline as it is now, for another thread to read while this one goes on.
    ///
    /// It shares chunks with this one: it costs a pointer and a few sums a chunk, not a row. A chunk that this one
    /// changes while a snapshot holds it is copied then: the open end of each lane, and chunks with late records.
    /// Tables that only intake needs stay behind, so nothing can be added to a snapshot.
    pub fn snapshot(&self) -> Arc<Trace> {
        Arc::new(Trace {
            source: self.source.clone(),
            names: self.names.snapshot(),
            shapes: self.shapes.snapshot(),
            collectives: self.collectives.snapshot(),
            details: self.details.snapshot(),
            lanes: self.lanes.clone(),
            lane_ids: self.lane_ids.clone(),
            lanes_by: self.lanes_by.clone(),
            devices: self.devices.iter().map(Device::snapshot).collect(),
            processes: self.processes.iter().map(Process::snapshot).collect(),
            far_calls: self.far_calls.clone(),
            stacks: self.stacks.snapshot(),
            room_for_frames: 0,
            extent: self.extent,
            late: self.late,
            claimed: self.claimed,
            unbelievable: self.unbelievable,
            evicted: self.evicted,
            limit: None,
            unchecked: 0,
            hardware: self.hardware.clone(),
            is_on_one_clock: self.is_on_one_clock,
            revision: self.revision,
        })
    }
}

impl Device {
    fn snapshot(&self) -> Device {
        Device {
            info: self.info.clone(),
            usage: self.usage.clone(),
            copied_bytes: self.copied_bytes.clone(),
            processes: self.processes.clone(),
            ..Device::default()
        }
    }
}

impl Process {
    fn snapshot(&self) -> Process {
        Process {
            info: self.info.clone(),
            health: self.health,
            recorded: self.recorded.clone(),
            streams: self.streams.clone(),
            threads: self.threads.clone(),
            off_cpu: self.off_cpu.clone(),
            sampled: self.sampled.snapshot(),
            graphs: self.graphs.clone(),
            clock: self.clock,
            ..Process::default()
        }
    }
}
