//! Programs that several tests look at, a GPU with round numbers, and how a timeline is looked at.

use super::Scene;
use crate::causes::Causes;
use crate::figures::{self, Peaks};
use crate::findings::Scope;
use crate::graph::Graph;
use crate::program::GpuRates;
use crate::{CallIndex, DeviceFigures, watching};
use activity::{Ns, Span};
use trace::Trace;

/// A GPU with round numbers. Nobody measured graphs on it.
pub fn known() -> GpuRates {
    GpuRates {
        source: "made up".to_owned(),
        h2d_gbps: Some(50.0),
        d2h_gbps: Some(50.0),
        copy_fixed: Some([1_000, 1_000]),
        copy_call: Some(2_000),
        sync_call: Some(500),
        launch_call: Some(3_000),
        launch: Some([5_000, 4_000]),
        kernel_fixed: Some(500),
        queued: Some([1_000, 1_000, 1_000, 1_000]),
        event: Some(1_000),
        wake: Some(2_000),
        ..GpuRates::default()
    }
}

/// The same GPU, on which somebody measured graphs.
pub fn known_with_graphs() -> GpuRates {
    GpuRates {
        graph_call: Some([1_000, 100]),
        graph_upload: Some(300),
        graph_node: Some(200),
        ..known()
    }
}

/// So many kernels of 20 us; the host waits for each, and launches the next 13 us later.
pub fn waits(count: i64) -> Scene {
    let mut made = Scene::new();
    for i in 0..count {
        let at = 40_000 * i;
        made.call("cudaLaunchKernel", at, at + 3_000);
        made.kernel("k", 7, at + 5_000, at + 25_000);
        made.call("cudaStreamSynchronize", at + 4_000, at + 27_000);
    }
    made
}

/// So many kernels that take `kernel` ns, launched `apart` ns from each other by calls of 6 us. Each begins 8 us after its call
/// did, or 0.5 us behind the one before.
pub fn launched(count: i64, apart: Ns, kernel: Ns) -> Scene {
    let mut made = Scene::new();
    let mut free = 0;
    for i in 0..count {
        let at = i * apart;
        made.call("cudaLaunchKernel", at, at + 6_000);
        let start = free.max(at + 8_000);
        made.kernel("k", 1, start, start + kernel);
        free = start + kernel + 500;
    }
    made
}

/// A kernel for each of these times: one name, one stream, no calls.
pub fn kernels(spans: &[(Ns, Ns)]) -> Trace {
    let mut made = Scene::new();
    for &(start, end) in spans {
        made.kernel("kernel", 0, start, end);
    }
    made.trace()
}

/// Asks something of what is known of a timeline, or of a window of it.
pub fn in_scope<T>(
    trace: &Trace,
    window: Option<Span>,
    peaks: Peaks,
    ask: impl FnOnce(&Scope<'_>) -> T,
) -> T {
    let devices: Vec<DeviceFigures> = figures::count(trace, Some(&CallIndex::new(trace)), window);
    let graph = Graph::new(trace);
    let causes = Causes::new(trace, &graph);
    let watching = watching::measure(trace, &causes, &devices, window);
    let mut scope = Scope::new(trace, &causes, window, &devices, peaks);
    scope.watching = watching.as_ref();
    ask(&scope)
}
