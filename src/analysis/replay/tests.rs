//! Replays worked out by hand, and what must hold of any.

use proptest::prelude::*;

use super::*;
use crate::activity::{Direction, SyncKind};
use crate::analysis::graph::Graph;
use crate::analysis::graph::made::{run, steps, trace_of};
use crate::analysis::tables;
use crate::analysis::testing::Scene;
use crate::trace::Trace;

fn recorded(graph: &Graph) -> Times {
    Times {
        op_start: graph.ops.start.clone(),
        op_end: graph.ops.end.clone(),
        call_start: graph.calls.start.clone(),
        call_end: graph.calls.end.clone(),
    }
}

fn program(trace: &Trace) -> (Graph, Program) {
    let graph = Graph::new(trace);
    let program = Program::of(trace, &graph);
    assert_eq!(program.run(), recorded(&graph));
    (graph, program)
}

/// A kernel from 5 to 10 us, a wait for it until 12, another launched at 14 that runs from 18 to 20.
fn waited() -> Trace {
    let mut scene = Scene::new();
    scene
        .call("cudaLaunchKernel", 1_000, 3_000)
        .kernel("first", 1, 5_000, 10_000);
    scene.call("cudaDeviceSynchronize", 3_500, 12_000);
    scene.sync(SyncKind::Context, None, None, 3_500, 12_000);
    scene
        .call("cudaLaunchKernel", 14_000, 15_000)
        .kernel("second", 1, 18_000, 20_000);
    scene.trace()
}

#[test]
fn without_a_wait_the_next_launch_comes_earlier() {
    let (_, mut program) = program(&waited());
    program.drop_wait(1);
    let times = program.run();
    // The wait still takes 1 us, so it returns at 4.5 and the launch begins 2 us later. Kernels begin 2 us
    // after their call on the median: this one could at 9.5 us. The first ends at 10, and what second took
    // beyond the usual stays: 18 - (14 + 1 + 2) = 1.
    assert_eq!(times.call_start[2], 6_500);
    assert_eq!(times.op_start[1], 11_000);
    assert_eq!(times.span(), Span::new(5_000, 13_000));
}

#[test]
fn a_wait_lasts_as_long_as_what_it_waits_for() {
    let (_, mut program) = program(&waited());
    // The first takes 1 us instead of 5: everything behind it is 4 us earlier.
    program.ops.work[0] = 1_000;
    let times = program.run();
    assert_eq!(times.call_end[1], 8_000);
    assert_eq!((times.op_start[1], times.op_end[1]), (14_000, 16_000));
    // Left out altogether, the wait has nothing to wait for but what is left of it.
    program.drop_op(0);
    program.drop_call(0);
    let times = program.run();
    // The call takes no time; its operation stays as a moment at it, and the wait returns 2 us later.
    assert_eq!((times.call_end[0], times.op_end[0]), (1_000, 1_000));
    assert_eq!(times.call_end[1], 3_000);
    assert_eq!(times.call_start[2], 5_000);
}

#[test]
fn a_copy_keeps_waiting_for_its_engine_on_a_stream_of_its_own() {
    let mut scene = Scene::new();
    scene
        .call("cudaMemcpyAsync", 0, 1_000)
        .copy(Direction::H2D, 1, 100, 5_000, 20_000);
    scene
        .call("cudaMemcpyAsync", 1_000, 2_000)
        .copy(Direction::H2D, 1, 100, 21_000, 40_000);
    scene
        .call("cudaLaunchKernel", 2_000, 3_000)
        .kernel("k", 1, 42_000, 50_000);
    let (_, mut program) = program(&scene.trace());
    let lane = program.new_lane();
    program.move_to(1, lane);
    program.move_to(2, lane);
    // The engine still serves one at a time, and the kernel follows its copy on their stream.
    assert_eq!(program.run().op_start, [5_000, 21_000, 42_000]);
    // On a stream by itself the kernel waits for its launch alone: no kernel's launch was ever seen to be
    // what held it, so it begins as its call returns, and the 2 us that it took to follow stay.
    let own = program.new_lane();
    program.move_to(2, own);
    assert_eq!(program.run().op_start, [5_000, 21_000, 5_000]);
    // A faster first copy lets the second begin earlier.
    program.ops.work[0] = 5_000;
    assert_eq!(program.run().op_start[1], 11_000);
}

#[test]
fn operations_moved_onto_one_stream_follow_each_other() {
    let mut scene = Scene::new();
    for stream in 1..=2i64 {
        let at = stream * 1_000;
        scene.call("cudaLaunchKernel", at, at + 900).kernel(
            "k",
            stream as u32,
            at + 5_000,
            at + 25_000,
        );
    }
    let (_, mut program) = program(&scene.trace());
    let lane = program.ops.lane[0];
    program.move_to(1, lane);
    assert_eq!(program.run().op_start, [6_000, 26_000]);
}

#[test]
fn an_event_holds_until_its_edge_is_dropped() {
    let mut scene = Scene::new();
    scene
        .call("cudaLaunchKernel", 0, 1_000)
        .kernel("first", 1, 5_000, 50_000);
    scene
        .call("cudaEventRecord", 1_100, 1_200)
        .event(1, 5, 1_200);
    scene.call("cudaStreamWaitEvent", 1_300, 1_400);
    scene.sync(SyncKind::StreamWaitEvent, Some(2), Some(5), 1_300, 1_400);
    scene
        .call("cudaLaunchKernel", 2_000, 3_000)
        .kernel("second", 2, 52_000, 60_000);
    let (_, mut program) = program(&scene.trace());
    assert_eq!(program.ops.hold[1], Hold::Event);
    assert_eq!(program.edges(1).count(), 1);
    program.ops.work[0] = 10_000;
    assert_eq!(program.run().op_start[1], 17_000);
    program.drop_edges(1, |kind, _| kind == EdgeKind::Event);
    // Launched at 2, the call takes 1 and a kernel 4 us more on the median; 2 us were its own.
    assert_eq!(program.run().op_start[1], 9_000);
}

#[test]
fn the_error_is_what_the_medians_leave() {
    // Four kernels in a queue with pauses of 1, 1, 1 and 5 us: with the median they end 4 us earlier.
    let mut scene = Scene::new();
    let mut start = 10_000;
    for (i, pause) in [0, 1_000, 1_000, 1_000, 5_000].into_iter().enumerate() {
        start += pause;
        let at = i as Ns * 1_000;
        scene
            .call("cudaLaunchKernel", at, at + 900)
            .kernel("k", 1, start, start + 10_000);
        start += 10_000;
    }
    let (_, program) = program(&scene.trace());
    // 58 us in all: five kernels of 10 and 8 of pauses.
    let error = program.replay_error().expect("operations");
    assert!((error - 4.0 / 58.0).abs() < 1e-12, "{error}");
}

proptest! {
    #[test]
    fn unchanged_it_gives_the_recorded_times(steps in steps()) {
        let trace = trace_of(run(&steps));
        let graph = Graph::new(&trace);
        prop_assert_eq!(Program::of(&trace, &graph).run(), recorded(&graph));
    }

    #[test]
    fn shorter_operations_and_calls_never_make_it_longer(
        steps in steps(),
        parts in prop::collection::vec(0i64..=100, 120),
    ) {
        let trace = trace_of(run(&steps));
        let graph = Graph::new(&trace);
        let mut program = Program::of(&trace, &graph);
        let (ops, calls) = (program.ops.work.iter_mut(), program.calls.work.iter_mut());
        for (work, part) in ops.chain(calls).zip(parts.into_iter().cycle()) {
            *work = *work * part / 100;
        }
        let (before, after) = (recorded(&graph), program.run());
        let is_sooner = |a: &[Ns], b: &[Ns]| a.iter().zip(b).all(|(a, b)| a <= b);
        prop_assert!(is_sooner(&after.op_start, &before.op_start));
        prop_assert!(is_sooner(&after.op_end, &before.op_end));
        prop_assert!(is_sooner(&after.call_end, &before.call_end));
    }

    #[test]
    fn without_waits_no_more_is_saved_than_they_last(steps in steps()) {
        let trace = trace_of(run(&steps));
        let graph = Graph::new(&trace);
        let mut program = Program::of(&trace, &graph);
        let mut waits = Vec::new();
        for call in 0..graph.calls.len() as CallId {
            if graph.calls.kind[call as usize].is_wait() {
                program.drop_wait(call);
                waits.push(graph.calls.span(call));
            }
        }
        let (before, after) = (recorded(&graph), program.run());
        let end = |times: &Times| times.op_end.iter().max().copied().unwrap_or(0);
        let saved = end(&before) - end(&after);
        prop_assert!((0..=tables::union(waits)).contains(&saved), "{}", saved);
    }
}
