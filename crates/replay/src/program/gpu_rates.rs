//! What is known of a GPU beside what a recording shows: measured rates and delays.

use activity::Ns;
use causes::graph::Engine;

/// Rates and delays of one GPU; `None` where nobody measured them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuRates {
    /// Where they come from, in a few words.
    pub source: String,
    /// Pinned copies to the device in GB/s.
    pub h2d_gbps: Option<f64>,
    /// Pinned copies from the device in GB/s.
    pub d2h_gbps: Option<f64>,
    /// Time that a copy takes beside its bytes: to the device, from it.
    pub copy_fixed: Option<[Ns; 2]>,
    /// The call of an asynchronous copy.
    pub copy_call: Option<Ns>,
    /// A call that waits, when there is nothing to wait for.
    pub sync_call: Option<Ns>,
    pub launch_call: Option<Ns>,
    /// From the start of a launch's call, and of a copy's, to that of the operation, on an idle device.
    pub launch: Option<[Ns; 2]>,
    /// What an empty kernel takes.
    pub kernel_fixed: Option<Ns>,
    /// Between two queued operations of a stream: kernels; kernel and copy; copy and kernel; copies.
    pub queued: Option<[Ns; 4]>,
    /// From an operation's end to that of one which waited for its event.
    pub event: Option<Ns>,
    /// From an operation's end to the return of the call that waited for it.
    pub wake: Option<Ns>,
    /// The call that launches a graph: a fixed part, and one for each node.
    pub graph_call: Option<[Ns; 2]>,
    /// More of it, for each node, at a graph's first launch.
    pub graph_upload: Option<Ns>,
    /// Between two nodes of a graph.
    pub graph_node: Option<Ns>,
    /// Rate of a copy while the other direction is in use over its rate alone.
    pub link_share: Option<f64>,
}

impl GpuRates {
    /// Between two queued operations of a stream.
    pub fn between(&self, from: Engine, to: Engine) -> Option<Ns> {
        let at = 2 * usize::from(from.is_copy()) + usize::from(to.is_copy());
        self.queued.map(|times| times[at])
    }

    /// From the start of a call to that of its operation, on an idle device.
    pub fn latency(&self, to: Engine) -> Option<Ns> {
        self.launch.map(|times| times[usize::from(to.is_copy())])
    }

    /// A copy of pinned memory in GB/s.
    pub fn pinned(&self, engine: Engine) -> Option<f64> {
        match engine {
            Engine::H2D => self.h2d_gbps,
            Engine::D2H => self.d2h_gbps,
            _ => None,
        }
    }

    /// Time that a copy takes beside its bytes.
    pub fn copy_fixed(&self, engine: Engine) -> Ns {
        let [h2d, d2h] = self.copy_fixed.unwrap_or([0, 0]);
        if engine == Engine::D2H { d2h } else { h2d }
    }
}
