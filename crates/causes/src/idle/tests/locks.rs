//! Calls that wait for another thread's.

use super::*;
use activity::HostCall;

/// Launches of 5 us on thread 1, one of which lasts from 200 to 900 us; what thread 2 is in meanwhile, and when.
fn two_threads(other: &str, from: Ns, to: Ns) -> Scene {
    let mut scene = Scene::new();
    for i in 0..8 {
        let at = 20_000 * i;
        scene.call("cudaLaunchKernel", at, at + 5_000);
        scene.kernel("k", 7, at + 6_000, at + 12_000);
    }
    let name = scene.name(other);
    let what = What::Call(HostCall {
        thread: 2,
        name,
        code: 0,
    });
    scene.push(from, to, 900, what);
    scene.call("cudaLaunchKernel", 200_000, 900_000);
    scene.kernel("k", 7, 901_000, 910_000);
    scene
}

#[test]
fn a_launch_that_returns_with_another_threads_allocation_waited_for_its_lock() {
    // The last kernel before ended at 152 us; that thread's own work until 200; the lock until 896; the rest of the launch and
    // 1 us until the kernel began.
    let (found, told) = pieces(&mut two_threads("cudaMalloc", 100_000, 896_000), 7, 500_000);
    let expected = [
        (Cause::Host, 48_000, Fact),
        (Cause::Lock, 696_000, Likely),
        (Cause::SlowLaunch, 5_000, Fact),
    ];
    assert_eq!(found, expected);
    let words = "696 µs of 749 µs for a driver lock, held by another thread's cudaMalloc";
    assert!(told.sentence.contains(words), "{}", told.sentence);
    for (other, from, to) in [
        // It began after the launch did, or had returned long before it.
        ("cudaMalloc", 210_000, 896_000),
        ("cudaMalloc", 100_000, 700_000),
        // It waits for the device, or is short as a rule.
        ("cudaDeviceSynchronize", 100_000, 896_000),
        ("cudaLaunchKernel", 100_000, 896_000),
    ] {
        let (found, _) = pieces(&mut two_threads(other, from, to), 7, 500_000);
        let is_slow = found.iter().all(|piece| piece.0 != Cause::Lock);
        assert!(is_slow, "{other} {from} {to}: {found:?}");
    }
}
