//! What was once said wrongly of real traces.

use super::*;
use crate::testing::{launched, place};
use activity::{Kernel, SyncKind, What};
use trace::SourceKind;

/// One launch of a graph of 2,000 kernels of this time, 1.3 us apart.
fn graph(time: Ns) -> Scene {
    let mut scene = Scene::new();
    scene.call("cudaGraphLaunch", 1_000, 31_000);
    scene.kernel("k", 1, 40_000, 40_000 + time);
    for i in 1..2_000 {
        let start = 40_000 + (time + 1_300) * i;
        let kernel = Kernel {
            place: place(1),
            shape: 0,
            graph: 1,
            node: i as u64,
        };
        scene.push(start, start + time, 1, What::Kernel(kernel));
    }
    scene
}

#[test]
fn a_graph_that_is_launched_once_is_not_launch_bound() {
    // The GPU is idle for 39 % of the time: it takes that between two nodes.
    cured("launch-bound", &mut graph(2_000));
}

#[test]
fn records_of_nodes_cost_where_nodes_are_short() {
    let found = |time: Ns| {
        let mut trace = graph(time).trace();
        trace.source.kind = SourceKind::Traced;
        in_scope(&trace, None, PEAKS, |scope| {
            all(scope).into_iter().find(|f| f.rule == "graph-records")
        })
    };
    // 0.15 us a node at the least: 4.5 % of 3.3 us, and 0.15 % of 100.
    let told = found(2_000);
    let told = told.expect("found");
    assert_eq!((told.bound_ns, told.severity), (0, Severity::Info));
    assert_eq!(found(98_700), None);
}

#[test]
fn records_of_launches_cost_where_the_gpu_waits_for_them() {
    let found = |mut scene: Scene| {
        let mut trace = scene.trace();
        trace.source.kind = SourceKind::Traced;
        let all = in_scope(&trace, None, PEAKS, all);
        all.into_iter().find(|f| f.rule == "launch-records")
    };
    // 199 gaps of 8 us with a launch in each, 0.7 to 2.6 us, in 1.992 ms.
    let told = found(launched(200, 10_000, 2_000)).expect("found");
    assert_eq!((told.bound_ns, told.severity), (0, Severity::Info));
    assert!(
        told.title.contains("139 µs to 517 µs (7 % to 26 %"),
        "{}",
        told.title
    );
    assert!(!told.advice.contains("--waits"), "{}", told.advice);
    // The GPU is never without work, or what it waits for takes long.
    assert_eq!(found(launched(200, 10_000, 20_000)), None);
    assert_eq!(found(launched(200, 200_000, 2_000)), None);
    // What waits were recorded for is the first thing to leave out.
    let mut waits = launched(200, 10_000, 2_000);
    waits.sync(SyncKind::Stream, Some(1), None, 2_100_000, 2_110_000);
    let told = found(waits).expect("found");
    assert!(
        told.advice.starts_with("Leave out --waits"),
        "{}",
        told.advice
    );
}

/// Kernels of 10 us that are waited for for 12, so far apart.
fn waited_for(apart: Ns) -> Scene {
    let mut scene = Scene::new();
    for i in 0..20 {
        let at = i * apart;
        scene.call("cudaLaunchKernel", at, at + 3_000);
        scene.kernel("k", 1, at + 5_000, at + 15_000);
        scene.call("cudaStreamSynchronize", at + 4_000, at + 16_000);
    }
    scene
}

#[test]
fn without_waits_no_more_is_saved_than_they_last() {
    let found = sick("sync-in-loop", &mut waited_for(50_000));
    // 19 of them are followed by idle time, of 1 us within and no more than 11 us after.
    assert!(found.bound_ns <= 20 * 12_000, "{found:?}");
    // What follows a wait is not its fault beyond what it lasted: 0.24 of 200 ms.
    cured("sync-in-loop", &mut waited_for(10_000_000));
}
