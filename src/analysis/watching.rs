//! What recording a program may have cost it: an estimate, from how many records there are and what a record was measured to cost.
//!
//! Measured on an H200 (driver 580, CUPTI 13.0; `docs/measured`), against the same program alone: a launch with its call
//! and kernel record 0.7 to 2.6 µs more of the launching thread, a node of a graph 0.15 to 0.95 µs more of the graph (most where its kernels
//! take a microsecond themselves). What
//! CUPTI says of itself (its overhead records) is counted, not estimated, and is part of neither.

use serde::Serialize;

use super::figures::DeviceFigures;
use super::graph::{Graph, OpId};
use super::tables;
use crate::activity::{Ns, Span, What};
use crate::trace::{LaneKind, SourceKind, Trace};

/// ns of the launching thread that recording a launch and its kernel takes: least and most that was measured.
const LAUNCH_NS: (f64, f64) = (700.0, 2600.0);
/// ns that recording a node of a graph takes: least and most that was measured.
const NODE_NS: (f64, f64) = (150.0, 950.0);

/// What watching may have cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WatchingCost {
    /// Always: all but the counts and `overhead_ns` are estimates.
    pub estimate: bool,
    /// What they rest on.
    pub basis: &'static str,
    /// Operations that were launched one by one.
    pub launches: u64,
    /// Nodes of graphs that were recorded.
    pub graph_nodes: u64,
    /// The first operation's start to the last one's end.
    pub span_ns: Ns,
    /// Time in which the profiler or the driver said that it was at work on itself, between the first operation and the last.
    pub overhead_ns: Ns,
    /// What recording launches took of the launching threads: least and most. It costs a program that waits for its
    /// launches this, and another one nothing.
    pub launches_ns: [Ns; 2],
    /// What recording nodes took of the graphs: least and most.
    pub nodes_ns: [Ns; 2],
}

/// What recording may have cost; `None` for what cuptop did not record on a GPU, and without operations.
#[must_use]
pub fn of(trace: &Trace, graph: &Graph, devices: &[DeviceFigures]) -> Option<WatchingCost> {
    let is_ours = matches!(
        trace.source.kind,
        SourceKind::Cuda | SourceKind::Traced | SourceKind::Recording
    );
    if !is_ours || trace.source.simulated {
        return None;
    }
    let span = devices.iter().map(|f| f.span).reduce(Span::hull)?;
    let nodes = (0..graph.ops.len())
        .filter(|&op| {
            let op = op as OpId;
            let (lane, row) = graph.ops.place(op);
            // A launch that was recorded as a whole is one record.
            graph.ops.is_graph(op) && !matches!(trace.activity(lane, row).what, What::Graph(_))
        })
        .count() as u64;
    let launches = graph.ops.len() as u64 - nodes;
    let mut overheads = Vec::new();
    for lane in trace.lanes() {
        if lane.key().kind == LaneKind::Overhead {
            let rows = lane.rows(span);
            overheads.extend(rows.map(|row| lane.span(row).intersect(span)));
        }
    }
    let cost = |count: u64, (least, most): (f64, f64)| {
        let all = count as f64;
        [(all * least) as Ns, (all * most) as Ns]
    };
    Some(WatchingCost {
        estimate: true,
        basis: "measured on an H200: 0.7 to 2.6 us a launch, 0.15 to 0.95 us a node of a graph",
        launches,
        graph_nodes: nodes,
        span_ns: span.len(),
        overhead_ns: tables::union(overheads),
        launches_ns: cost(launches, LAUNCH_NS),
        nodes_ns: cost(nodes, NODE_NS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::Kernel;
    use crate::analysis::figures;
    use crate::analysis::testing::{Scene, place};

    #[test]
    fn launches_and_nodes_are_told_apart() {
        let mut scene = Scene::new();
        for i in 0..10 {
            scene.kernel("k", 1, i * 10_000, i * 10_000 + 5_000);
        }
        for i in 0..1000 {
            let node = Kernel {
                place: place(2),
                shape: 0,
                graph: 7,
                node: i as u64 + 1,
            };
            let at = 100_000 + i * 1000;
            scene.push(at, at + 900, 0, What::Kernel(node));
        }
        scene.overhead("buffer flush", 50_000, 60_000);
        scene.overhead("buffer flush", 55_000, 70_000);
        let mut trace = scene.trace();
        let devices = figures::of(&trace, None, None);
        // A timeline of the simulator cost nothing to record.
        let graph = Graph::new(&trace);
        assert_eq!(of(&trace, &graph, &devices), None);
        trace.source.kind = SourceKind::Traced;
        let cost = of(&trace, &graph, &devices).expect("recorded by cuptop");
        assert_eq!((cost.launches, cost.graph_nodes), (10, 1000));
        assert_eq!(cost.launches_ns, [7_000, 26_000]);
        assert_eq!(cost.nodes_ns, [150_000, 950_000]);
        assert_eq!(cost.overhead_ns, 20_000);
        assert_eq!(cost.span_ns, 1_099_900);
    }
}
