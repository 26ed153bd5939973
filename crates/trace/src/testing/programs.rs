//! Programs that several tests look at.

use super::Scene;
use crate::Trace;
use activity::Ns;

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
