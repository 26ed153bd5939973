//! Properties of the graph and of the causes told from it, on made-up programs; and that neither is slow
//! on the inputs that were.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::idle::{Cause, Causes, Certainty};
use crate::testing::gaps_of_stream;
use crate::testing::{run, steps, trace_of};
use activity::{Activity, Batch, HostCall, Overhead, What};
use trace::LaneKey;
use trace::testing::Scene;

/// What a graph says, in terms that do not depend on the order of arrival.
fn said(trace: &Trace, graph: &Graph) -> Vec<String> {
    type Place = (LaneKey, usize);
    let key = |(lane, row): (LaneId, usize)| -> Place { (trace.lanes()[lane].key(), row) };
    let call = |c: CallId| (c != NONE).then(|| key(graph.calls.at(c)));
    let op = |o: OpId| (o != NONE).then(|| key(graph.ops.place(o)));
    let ops = (0..graph.ops.len()).map(|i| {
        let source = match graph.ops.edge[i] {
            EdgeKind::Launch => call(graph.ops.bind[i]),
            _ => op(graph.ops.bind[i]),
        };
        let edge = graph.ops.edge[i];
        format!(
            "{:?} {edge:?} {source:?} {:?}",
            op(i as OpId),
            call(graph.ops.call[i])
        )
    });
    let calls = (0..graph.calls.len()).map(|i| {
        format!(
            "{:?} {:?} {:?} {:?} {:?} {:?}",
            call(i as CallId),
            call(graph.calls.previous[i]),
            call(graph.calls.handed[i]),
            op(graph.calls.waited[i]),
            call(graph.calls.root[i]),
            op(graph.calls.first_op[i]),
        )
    });
    ops.chain(calls).collect()
}

/// From the first start to the last end of what starts within `window` on the device, and for how long nothing of that
/// ran.
fn span_and_idle(trace: &Trace, window: Option<Span>) -> Option<(Span, Ns)> {
    let rows = trace.streams_of(0).flat_map(|(_, lane)| {
        let rows = window.map_or(lane.kept(), |window| lane.starting(window));
        rows.map(|row| lane.span(row))
    });
    let spans: Vec<Span> = rows.collect();
    let span = spans.iter().copied().reduce(Span::hull)?;
    Some((span, span.len() - Span::union_len(spans)))
}

proptest! {
    #[test]
    fn pieces_partition_the_idle_time_of_devices_and_streams(steps in steps()) {
        let trace = trace_of(run(&steps));
        let graph = Graph::new(&trace);
        let causes = Causes::new(&trace, &graph);
        if let Some((span, _)) = span_and_idle(&trace, None) {
            let half = Span::new(span.start, span.start + span.len() / 2 + 1);
            for window in [None, Some(half)] {
                let sum: Ns = causes.idle(0, window).iter().map(|it| it.total_ns).sum();
                let idle = span_and_idle(&trace, window).map_or(0, |it| it.1);
                prop_assert_eq!(sum, idle);
            }
        }
        for (lane, columns) in trace.streams_of(0) {
            let mut idle = 0;
            for gap in gaps_of_stream(&graph, lane) {
                let mut time = gap.span.start;
                let pieces = causes.pieces(gap);
                for (at, piece) in pieces.iter().enumerate() {
                    prop_assert_eq!(piece.span.start, time);
                    prop_assert!(!piece.span.is_empty());
                    time = piece.span.end;
                    if let Some(root) = piece.root {
                        prop_assert!(graph.calls.end[root as usize] <= gap.span.end);
                    }
                    // What is due to a wait ends where that is made up for.
                    let rest = pieces.get(at + 1).filter(|it| it.cause == piece.cause);
                    let is_cut = piece.root.is_some() && rest.is_some_and(|it| it.root.is_none());
                    if piece.cause == Cause::Latency && !is_cut {
                        prop_assert_eq!(piece.certainty, Certainty::Fact);
                        // The operation that the piece leads to began within the limit of its call.
                        let ops = graph.ops.of_lane(lane).iter().chain(graph.ops.of_device(0));
                        let is_on_time = ops.into_iter().any(|&op| {
                            let call = graph.ops.call[op as usize];
                            let start = graph.ops.start[op as usize];
                            call != NONE
                                && start == piece.span.end
                                && start - graph.calls.start[call as usize] <= causes.latency(graph.ops.engine[op as usize])
                        });
                        prop_assert!(is_on_time);
                    }
                }
                prop_assert_eq!(time, gap.span.end);
                idle += gap.span.len();
            }
            let extent = columns.extent().expect("operations");
            prop_assert_eq!(idle, extent.len() - columns.busy(extent));
        }
    }

    #[test]
    fn order_of_arrival_and_batching_change_nothing(
        steps in steps(),
        order in prop::collection::vec(any::<u16>(), 180),
        cuts in prop::collection::vec(1usize..20, 1..12),
    ) {
        let batch = run(&steps);
        let whole = trace_of(batch.clone());
        let expected = said(&whole, &Graph::new(&whole));
        let mut items: Vec<(u16, Activity)> = order.into_iter().chain(std::iter::repeat(0)).zip(batch.items.clone()).collect();
        items.sort_by_key(|item| item.0);
        let mut trace = Trace::default();
        trace.apply(Batch { items: Vec::new(), ..batch });
        let mut rest = items.as_slice();
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let (now, later) = rest.split_at(cut.min(rest.len()));
            trace.apply(Batch { items: now.iter().map(|item| item.1).collect(), ..Batch::default() });
            rest = later;
        }
        prop_assert_eq!(said(&trace, &Graph::new(&trace)), expected);
    }
}

/// What a graph and all causes take. Bounds are some fifty times what an optimised build needs: what was
/// quadratic took minutes.
fn takes(trace: &Trace) -> Duration {
    let started = Instant::now();
    let graph = Graph::new(trace);
    let causes = Causes::new(trace, &graph);
    let sum: Ns = causes.idle(0, None).iter().map(|it| it.total_ns).sum();
    assert_eq!(Some(sum), span_and_idle(trace, None).map(|it| it.1));
    started.elapsed()
}

const GENEROUS: Duration = Duration::from_secs(20);

#[test]
fn kernels_each_on_a_stream_of_its_own_are_linear() {
    let mut scene = Scene::new();
    for i in 0..20_000u32 {
        let at = Ns::from(i) * 10_000;
        scene
            .call("cudaLaunchKernel", at, at + 3_000)
            .kernel("k", i + 1, at + 5_000, at + 9_000);
    }
    assert!(takes(&scene.trace()) < GENEROUS);
}

#[test]
fn overheads_that_overlap_are_linear() {
    let mut scene = Scene::new();
    for i in 0..20_000i64 {
        let at = i * 10_000;
        scene
            .call("cudaLaunchKernel", at, at + 3_000)
            .kernel("k", 1, at + 5_000, at + 9_000);
        scene.overhead("activity buffer flush", at, at + 1_000_000_000);
    }
    assert!(takes(&scene.trace()) < GENEROUS);
}

#[test]
fn threads_that_are_each_in_one_long_call_are_linear() {
    let mut scene = Scene::new();
    let name = scene.name("cudaDeviceSynchronize");
    for thread in 0..3_000u32 {
        let call = What::Call(HostCall {
            thread: thread + 10,
            name,
            code: 0,
        });
        scene.push(Ns::from(thread), 10_000_000_000, 1_000_000 + thread, call);
    }
    for i in 0..20_000i64 {
        let at = 100_000 + i * 100_000;
        scene
            .call("cudaLaunchKernel", at, at + 3_000)
            .kernel("k", 1, at + 5_000, at + 9_000);
    }
    assert!(takes(&scene.trace()) < GENEROUS);
}

#[test]
fn ranges_around_everything_are_linear() {
    let mut scene = Scene::new();
    scene.range(activity::RangeKind::Nvtx, "all", 0, 0, 10_000_000_000);
    for i in 0..20_000i64 {
        let at = i * 10_000;
        scene.range(activity::RangeKind::Nvtx, "step", 0, at, at + 9_900);
        scene
            .call("cudaLaunchKernel", at, at + 3_000)
            .kernel("k", 1, at + 5_000, at + 9_000);
    }
    let name = scene.name("buffer request");
    let overhead = What::Overhead(Overhead { name, thread: 0 });
    scene.push(50_000, 90_000, 0, overhead);
    assert!(takes(&scene.trace()) < GENEROUS);
}
