//! One small timeline for each cause, with pieces worked out by hand.

use super::*;
use crate::testing::gaps_of_stream;
use activity::{
    Activity, Batch, Copy, Direction, HostCall, Kernel, MemoryKind, Overhead, Place, SyncKind, What,
};
use trace::testing::{Scene, pinned, place};
use trace::{LaneKind, Measure};

mod host;
mod locks;
mod streams;

/// Cause, length and certainty of each piece of the gap of `stream` at `at`, and the sentence.
fn pieces(scene: &mut Scene, stream: u32, at: Ns) -> (Vec<(Cause, Ns, Certainty)>, Explanation) {
    let trace = scene.trace();
    pieces_of(&trace, stream, at)
}

fn pieces_of(trace: &Trace, stream: u32, at: Ns) -> (Vec<(Cause, Ns, Certainty)>, Explanation) {
    let (lane, columns) = trace
        .streams_of(0)
        .find(|(_, l)| matches!(l.key().kind, LaneKind::Stream { stream: s, .. } if s == stream))
        .expect("the stream");
    let span = columns.gap_at(at).expect("a gap");
    let graph = Graph::new(trace);
    let causes = Causes::new(trace, &graph);
    let gap = gaps_of_stream(&graph, lane)
        .into_iter()
        .find(|gap| gap.span == span)
        .expect("the same gap");
    let found = causes.explain(gap);
    // From the records around it alone the answer is the same, and for the device where that idles too.
    assert_eq!(explain(trace, None, &[lane], span), found);
    if trace.devices()[0].usage.time(Measure::Busy, span) == 0
        && causes.gaps_of_device(0, None).any(|g| g == gap)
    {
        let lanes: Vec<_> = trace.streams_of(0).map(|(id, _)| id).collect();
        assert_eq!(explain(trace, None, &lanes, span), found);
    }
    let mut time = span.start;
    for piece in &found.pieces {
        assert_eq!(piece.span.start, time, "{:?}", found.pieces);
        time = piece.span.end;
    }
    assert_eq!(time, span.end);
    let short = |p: &Piece| (p.cause, p.span.len(), p.certainty);
    (found.pieces.iter().map(short).collect(), found)
}

use Certainty::{Fact, Likely};

/// A kernel until 10 us that was launched at 1 us.
fn begun() -> Scene {
    let mut scene = Scene::new();
    scene
        .call("cudaLaunchKernel", 1_000, 3_000)
        .kernel("first", 1, 5_000, 10_000);
    scene
}
