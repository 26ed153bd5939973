//! Room in the queues of streams: a launch that finds its stream's queue full waits until an operation of it begins.

use super::{NONE, Program};

/// Calls whose operations a stream takes before the next has to wait: "about 1024"; a V100's trace shows up to 1022.
const DEPTH: usize = 1_024;

impl Program<'_> {
    /// By call, the operation whose start makes room for what the call launches. Where the recording shows a queue that
    /// took more, as many as it did.
    pub(super) fn rooms(&self) -> Vec<u32> {
        let mut rooms = vec![NONE; self.calls.len()];
        let mut streams: Vec<Queue> = Vec::new();
        for (i, op) in self.ops.iter().enumerate() {
            if op.is_gone || op.call == NONE {
                continue;
            }
            let stream = op.stream as usize;
            if streams.len() <= stream {
                streams.resize_with(stream + 1, Queue::default);
            }
            let queue = &mut streams[stream];
            if queue.last == op.call {
                continue;
            }
            queue.last = op.call;
            queue.first_ops.push(i as u32);
            let place = queue.first_ops.len() - 1;
            let returned = self.call_span(op.call).end;
            let begun = |at: usize| self.op_span(queue.first_ops[at]).start;
            // Only room that was there before the call returned can be what let it return.
            let is_deeper = |depth: usize| place >= depth && begun(place - depth) >= returned;
            let mut depth = queue.depth;
            while is_deeper(depth) {
                depth += 1;
            }
            if place >= depth {
                rooms[op.call as usize] = queue.first_ops[place - depth];
            }
            queue.depth = depth;
        }
        rooms
    }
}

/// The queue of one stream.
struct Queue {
    /// The first operation of each call.
    first_ops: Vec<u32>,
    /// The call of the last one.
    last: u32,
    depth: usize,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            first_ops: Vec::new(),
            last: NONE,
            depth: DEPTH,
        }
    }
}
