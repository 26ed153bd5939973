//! One small timeline for each cause.

use super::*;
use crate::activity::{Direction, SyncKind};
use crate::analysis::testing::Scene;
use crate::trace::Measure;

/// The cause of the only gap of the device of at least 1 us, and of the stream's.
fn cause(scene: &mut Scene, stream: u32, at: Ns) -> Explanation {
    let trace = scene.trace();
    let (lane, columns) = trace
        .streams_of(0)
        .find(|(_, l)| matches!(l.key().kind, LaneKind::Stream { stream: s, .. } if s == stream))
        .expect("the stream");
    let gap = columns.gap_at(at).expect("a gap");
    let calls = CallIndex::new(&trace);
    let found = of_stream(&trace, Some(&calls), lane, gap);
    assert_eq!(found, of_stream(&trace, None, lane, gap));
    assert_eq!(found.gap, gap);
    // Where the whole device is idle for just as long, its answer is the same.
    if trace.devices()[0].usage.time(Measure::Busy, gap) == 0 {
        assert_eq!(of_device(&trace, None, 0, gap).cause, found.cause);
    }
    found
}

/// A kernel until 10 us that was launched at 1 us.
fn begun() -> Scene {
    let mut scene = Scene::new();
    scene
        .call("cudaLaunchKernel", 1_000, 3_000)
        .kernel("first", 1, 5_000, 10_000);
    scene
}

#[test]
fn a_stream_that_waited_for_an_event_says_for_whose() {
    let mut scene = begun();
    scene
        .call("cudaLaunchKernel", 3_500, 4_000)
        .kernel("other", 2, 6_000, 90_000);
    scene
        .call("cudaEventRecord", 4_100, 4_200)
        .event(2, 5, 90_000);
    scene.call("cudaStreamWaitEvent", 4_300, 4_400);
    scene.sync(SyncKind::StreamWaitEvent, Some(1), Some(5), 4_300, 4_400);
    scene
        .call("cudaLaunchKernel", 4_500, 5_000)
        .kernel("second", 1, 92_000, 99_000);
    let found = cause(&mut scene, 1, 50_000);
    assert_eq!(found.cause, Cause::Event);
    assert_eq!(
        found.sentence,
        "stream 1 waited for an event of stream 2, until other ended 80.0 µs into the gap."
    );
    assert_eq!(found.evidence[1].span, Span::new(6_000, 90_000));
    assert_eq!(found.evidence[1].stream, Some(2));
}

#[test]
fn an_event_that_came_before_the_launch_is_not_to_blame() {
    let mut scene = begun();
    scene
        .call("cudaLaunchKernel", 3_500, 4_000)
        .kernel("other", 2, 6_000, 12_000);
    scene
        .call("cudaEventRecord", 4_100, 4_200)
        .event(2, 5, 12_000);
    scene.call("cudaStreamWaitEvent", 4_300, 4_400);
    scene.sync(SyncKind::StreamWaitEvent, Some(1), Some(5), 4_300, 4_400);
    scene
        .call("cudaLaunchKernel", 90_000, 90_500)
        .kernel("second", 1, 95_000, 99_000);
    assert_eq!(
        cause(&mut scene, 1, 50_000).cause,
        Cause::Host(HostWork::Elsewhere)
    );
}

#[test]
fn a_host_that_waits_cannot_launch() {
    let mut scene = begun();
    scene.call("cudaStreamSynchronize", 3_500, 20_000);
    scene
        .call("cudaLaunchKernel", 22_000, 23_000)
        .kernel("second", 1, 26_000, 30_000);
    let found = cause(&mut scene, 1, 15_000);
    assert_eq!(found.cause, Cause::Blocked);
    assert!(
        found
            .sentence
            .contains("cudaStreamSynchronize for the first 10.0 µs"),
        "{}",
        found.sentence
    );
    assert_eq!(found.evidence[0].thread, Some(1));
}

#[test]
fn a_copy_that_blocks_its_caller_is_a_wait() {
    let mut scene = Scene::new();
    scene
        .call("cudaMemcpy", 1_000, 14_000)
        .copy(Direction::H2D, 1, 100, 5_000, 10_000);
    scene
        .call("cudaMemcpy", 15_000, 24_000)
        .copy(Direction::H2D, 1, 100, 18_000, 22_000);
    assert_eq!(cause(&mut scene, 1, 12_000).cause, Cause::Blocked);
}

#[test]
fn a_host_that_is_late_says_what_it_did() {
    let cases = [
        ("cudaMalloc", HostWork::Allocating),
        ("cuModuleLoadData", HostWork::Loading),
        ("cudaGetDeviceProperties", HostWork::Calling),
    ];
    for (name, work) in cases {
        let mut scene = begun();
        scene.call(name, 12_000, 80_000);
        scene
            .call("cudaLaunchKernel", 81_000, 82_000)
            .kernel("second", 1, 86_000, 90_000);
        let found = cause(&mut scene, 1, 50_000);
        assert_eq!(found.cause, Cause::Host(work), "{name}");
        assert_eq!(found.evidence[0].span, Span::new(12_000, 80_000));
    }
    let mut scene = begun();
    scene.overhead("lazy function loading", 12_000, 80_000);
    scene
        .call("cudaLaunchKernel", 81_000, 82_000)
        .kernel("second", 1, 86_000, 90_000);
    assert_eq!(
        cause(&mut scene, 1, 50_000).cause,
        Cause::Host(HostWork::Loading)
    );
    let mut scene = begun();
    scene
        .call("cudaLaunchKernel", 81_000, 82_000)
        .kernel("second", 1, 86_000, 90_000);
    let found = cause(&mut scene, 1, 50_000);
    assert_eq!(found.cause, Cause::Host(HostWork::Elsewhere));
    assert!(
        found.sentence.contains("outside CUDA for 71.0 µs"),
        "{}",
        found.sentence
    );
}

#[test]
fn a_short_wait_before_long_work_is_not_to_blame() {
    let mut scene = begun();
    scene.call("cudaStreamSynchronize", 3_500, 11_000);
    scene
        .call("cudaLaunchKernel", 81_000, 82_000)
        .kernel("second", 1, 86_000, 90_000);
    assert_eq!(
        cause(&mut scene, 1, 50_000).cause,
        Cause::Host(HostWork::Elsewhere)
    );
}

#[test]
fn launched_in_time_it_waited_for_the_engine_or_for_the_launch() {
    let mut scene = Scene::new();
    scene
        .call("cudaMemcpyAsync", 1_000, 2_000)
        .copy(Direction::H2D, 1, 100, 5_000, 10_000);
    scene
        .call("cudaMemcpyAsync", 2_000, 3_000)
        .copy(Direction::H2D, 2, 100, 10_000, 90_000);
    scene
        .call("cudaMemcpyAsync", 3_000, 4_000)
        .copy(Direction::H2D, 1, 100, 90_500, 95_000);
    let found = cause(&mut scene, 1, 50_000);
    assert_eq!(found.cause, Cause::Engine);
    assert!(
        found
            .sentence
            .starts_with("The H2D copy engine worked for stream 2"),
        "{}",
        found.sentence
    );
    // A copy the other way takes nothing from it.
    let mut scene = Scene::new();
    scene
        .call("cudaMemcpyAsync", 1_000, 2_000)
        .copy(Direction::H2D, 1, 100, 5_000, 10_000);
    scene
        .call("cudaMemcpyAsync", 2_000, 3_000)
        .copy(Direction::D2H, 2, 100, 10_000, 90_000);
    scene
        .call("cudaMemcpyAsync", 3_000, 4_000)
        .copy(Direction::H2D, 1, 100, 90_500, 95_000);
    assert_eq!(cause(&mut scene, 1, 50_000).cause, Cause::Unknown);
    let mut scene = begun();
    scene
        .call("cudaLaunchKernel", 4_000, 7_000)
        .kernel("second", 1, 14_000, 20_000);
    assert_eq!(cause(&mut scene, 1, 12_000).cause, Cause::Latency);
}

#[test]
fn the_profilers_own_time_is_called_so() {
    let mut scene = begun();
    scene.overhead("activity buffer flush", 10_500, 80_000);
    scene
        .call("cudaLaunchKernel", 81_000, 82_000)
        .kernel("second", 1, 86_000, 90_000);
    assert_eq!(cause(&mut scene, 1, 50_000).cause, Cause::Profiler);
    let mut scene = begun();
    scene.overhead("activity buffer flush", 10_500, 80_000);
    scene
        .call("cudaLaunchKernel", 4_000, 5_000)
        .kernel("second", 1, 86_000, 90_000);
    assert_eq!(cause(&mut scene, 1, 50_000).cause, Cause::Profiler);
}

#[test]
fn what_nothing_shows_is_unknown() {
    let mut scene = begun();
    scene.without_call().kernel("second", 1, 86_000, 90_000);
    let found = cause(&mut scene, 1, 50_000);
    assert_eq!(found.cause, Cause::Unknown);
    assert!(
        found.sentence.contains("is not on the timeline"),
        "{}",
        found.sentence
    );
    let mut scene = begun();
    scene
        .call("cudaLaunchKernel", 4_000, 5_000)
        .kernel("second", 1, 86_000, 90_000);
    assert_eq!(cause(&mut scene, 1, 50_000).cause, Cause::Unknown);
}
