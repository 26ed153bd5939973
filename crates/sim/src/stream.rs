//! A stream's queue, what it has to wait for, and a graph in the middle of its run.

use std::collections::VecDeque;
use std::sync::Arc;

use super::program::{Graph, Item, StreamConfig, Upload};
use activity::{Correlation, Ns, What};
use profile::Latency;

/// How long an engine waits before it turns to other work. A copy that would have had to wait for a kernel for 0.67 us
/// mostly started at once. One that followed a copy after 0.75 us never did.
const LOOK: Ns = 700;

/// How many looks come at known times. In a recording of small copies and kernels (`halo`) the first two stood within
/// 0.5 us. What came later was spread over a whole period.
const KNOWN_LOOKS: Ns = 2;

#[derive(Debug, Default)]
pub(super) struct Stream {
    pub config: StreamConfig,
    pub queue: VecDeque<Queued>,
    /// Items ever queued, and ever done.
    pub submitted: u64,
    pub completed: u64,
    pub is_head_running: bool,
    /// The graph at the head, while it runs.
    pub graph: Option<GraphRun>,
    /// The next operation starts no earlier (an event of another stream was waited for).
    pub not_before: Ns,
    /// Time that the device spends on other things before the next operation starts.
    pub pause: Ns,
    last_end: Option<(Ns, What)>,
}

/// Something in a stream's queue.
#[derive(Debug)]
pub(super) struct Queued {
    pub item: Item,
    pub correlation: Correlation,
    /// The device does not know of it before.
    pub arrival: Ns,
    /// For events: the how-manieth recording is meant.
    pub event_turn: u64,
}

impl Stream {
    pub(super) fn new(config: StreamConfig) -> Stream {
        Stream {
            config,
            not_before: Ns::MIN,
            ..Stream::default()
        }
    }

    pub(super) fn device(&self) -> usize {
        self.config.place.device as usize
    }

    /// Whether something that was queued is not done.
    pub(super) fn is_behind(&self) -> bool {
        self.completed < self.submitted
    }

    /// When an operation at the head, known to the device since `arrival`, can start, as far as the
    /// stream itself is concerned.
    pub(super) fn ready_time(&self, what: What, arrival: Ns, latency: &Latency) -> Ns {
        let Some((end, before)) = self.last_end else {
            return self.not_before;
        };
        let (gap, is_other_engine) = match (before, what) {
            (What::Copy(a), What::Copy(b)) if a.direction == b.direction => {
                (latency.copy_to_copy_ns, false)
            }
            (What::Copy(_), _) => (latency.copy_to_kernel_ns, true),
            (_, What::Copy(_)) => (latency.kernel_to_copy_ns, true),
            // Kernels and memsets are launched alike.
            _ => (latency.kernel_to_kernel_ns, false),
        };
        let free = end + gap + self.pause;
        let seen = if is_other_engine && latency.poll_ns > 0 {
            seen(free, arrival, latency.poll_ns)
        } else {
            free
        };
        self.not_before.max(seen)
    }

    /// An operation of this stream ended.
    pub(super) fn ended(&mut self, what: What, now: Ns) {
        self.last_end = Some((now, what));
        self.pause = 0;
    }
}

/// When an engine that looks every `poll` ns from `arrival` on sees that an operation can start.
///
/// After some looks nobody knows when the next one comes: they are not that regular. Then it is half a period, the
/// mean. If looks stayed in step with the host's calls, a loop would always just miss one, or never.
fn seen(free: Ns, arrival: Ns, poll: Ns) -> Ns {
    let late = (free - LOOK - arrival).max(0);
    let looks = (late + poll - 1) / poll;
    if looks > KNOWN_LOOKS {
        return free + poll / 2;
    }
    free.max(arrival + looks * poll)
}

/// A graph that runs.
#[derive(Debug)]
pub(super) struct GraphRun {
    pub graph: Arc<Graph>,
    pub correlation: Correlation,
    /// When the launch began with the nodes.
    began: Ns,
    upload: Upload,
    /// For each node, how many of those it depends on are not done.
    missing: Vec<u32>,
    /// For each node, who depends on it.
    followers: Vec<Vec<u32>>,
    left: usize,
}

impl GraphRun {
    pub(super) fn new(
        graph: Arc<Graph>,
        correlation: Correlation,
        began: Ns,
        upload: Upload,
    ) -> GraphRun {
        let count = graph.nodes.len();
        let missing = (graph.nodes.iter()).map(|n| n.after.len() as u32).collect();
        let mut followers = vec![Vec::new(); count];
        for (node, index) in graph.nodes.iter().zip(0..) {
            for before in &node.after {
                followers[*before as usize].push(index);
            }
        }
        GraphRun {
            left: count,
            graph,
            correlation,
            began,
            upload,
            missing,
            followers,
        }
    }

    /// When the launch hands a node to the device.
    pub(super) fn handed_over(&self, node: u32) -> Ns {
        let prepared = self.graph.nodes[node as usize].portion_end;
        self.began + Ns::from(prepared) * self.upload.node_ns
    }

    /// Nodes that depend on none.
    pub(super) fn roots(&self) -> Vec<u32> {
        (self.missing.iter().zip(0..))
            .filter(|(missing, _)| **missing == 0)
            .map(|(_, node)| node)
            .collect()
    }

    /// A node is done. Returns those that can start now.
    pub(super) fn finish(&mut self, node: u32) -> Vec<u32> {
        self.left -= 1;
        let mut ready = std::mem::take(&mut self.followers[node as usize]);
        ready.retain(|follower| {
            let missing = &mut self.missing[*follower as usize];
            *missing -= 1;
            *missing == 0
        });
        ready
    }

    pub(super) fn is_over(&self) -> bool {
        self.left == 0
    }
}
