//! What recording a program may have cost it: an estimate, from how many records there are and what a record was measured to cost.
//!
//! Measured on an H200 (driver 580, CUPTI 13.0; `docs/measured`), against the same program alone. A launch with its
//! call and kernel record takes 0.7 to 2.6 µs more of the launching thread. A node of a graph takes 0.15 to 0.95 µs
//! more of the graph (most where its kernels take a microsecond themselves). What CUPTI says of itself (its overhead
//! records) is counted, not estimated, and is part of neither.

use serde::Serialize;

use crate::DeviceFigures;
use activity::{Ns, Span, What, units};
use causes::Causes;
use causes::graph::{NONE, OpId};
use trace::{LaneKind, SourceKind, Trace};

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
    /// How much longer launches' records made a device idle, least and most. It is what one takes, at most the gap, for
    /// each gap before an operation that was launched after its beginning. Of the device that watching cost most.
    pub waited_ns: [Ns; 2],
    /// By which part of its time that and the nodes' made this device longer: least and most.
    pub share: [f64; 2],
    /// Records that have come of the whole run, of whatever kind.
    pub records: u64,
}

/// How much longer launches' records may have made a device idle: least and most.
fn waited(causes: &Causes, f: &DeviceFigures, window: Option<Span>) -> [Ns; 2] {
    let graph = causes.graph();
    let mut sum = [0, 0];
    for gap in causes.gaps_of_device(f.index, window) {
        let call = graph.ops.call[gap.next as usize];
        if graph.ops.is_graph(gap.next) || call == NONE {
            continue;
        }
        // What was launched before the device ran out of work comes no sooner for a quicker launch.
        if graph.calls.end[call as usize] > gap.span.start {
            let length = gap.span.len() as f64;
            sum[0] += LAUNCH_NS.0.min(length) as Ns;
            sum[1] += LAUNCH_NS.1.min(length) as Ns;
        }
    }
    sum
}

/// What recording may have cost what starts within `window`, or all; `devices` are their figures. `None` for what cuptop did not record
/// on a GPU, and without operations.
pub fn measure(
    trace: &Trace,
    causes: &Causes,
    devices: &[DeviceFigures],
    window: Option<Span>,
) -> Option<WatchingCost> {
    let graph = causes.graph();
    let is_ours = matches!(
        trace.source.kind,
        SourceKind::Cuda | SourceKind::Traced | SourceKind::Recording
    );
    if !is_ours || trace.source.simulated {
        return None;
    }
    let span = devices.iter().map(|f| f.span).reduce(Span::hull)?;
    // A launch of a graph that was recorded as a whole is one record.
    let is_node =
        |op: OpId| graph.ops.is_graph(op) && !matches!(graph.what(trace, op), What::Graph(_));
    let cost = |count: u64, (least, most): (f64, f64)| {
        let all = count as f64;
        [(all * least) as Ns, (all * most) as Ns]
    };
    let (mut launches, mut nodes) = (0, 0);
    let (mut waited_ns, mut share) = ([0, 0], [0.0, 0.0]);
    for f in devices {
        let (mut launched, mut in_graphs) = (0, 0);
        for &op in graph.ops.of_device(f.index) {
            let start = graph.ops.span(op).start;
            if (f.span.start..=f.span.end).contains(&start) {
                *if is_node(op) {
                    &mut in_graphs
                } else {
                    &mut launched
                } += 1;
            }
        }
        let waited = waited(causes, f, window);
        let worked = cost(in_graphs, NODE_NS);
        let part = |end: usize| units::share(waited[end] + worked[end], f.recorded_ns()).min(1.0);
        if part(1) > share[1] {
            (waited_ns, share) = (waited, [part(0), part(1)]);
        }
        launches += launched;
        nodes += in_graphs;
    }
    let mut overheads = Vec::new();
    for lane in trace.lanes() {
        if lane.key().kind == LaneKind::Overhead {
            let rows = lane.rows(span);
            overheads.extend(rows.map(|row| lane.span(row).intersect(span)));
        }
    }
    Some(WatchingCost {
        estimate: true,
        basis: "measured on an H200: 0.7 to 2.6 us a launch, 0.15 to 0.95 us a node of a graph",
        launches,
        graph_nodes: nodes,
        span_ns: span.len(),
        overhead_ns: Span::union_len(overheads),
        launches_ns: cost(launches, LAUNCH_NS),
        nodes_ns: cost(nodes, NODE_NS),
        waited_ns,
        share,
        records: trace.health().received,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use activity::Kernel;
    use causes::graph::Graph;
    use trace::CallIndex;
    use trace::testing::{Scene, launched, place};

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
        let devices = crate::count(&trace, None, None);
        // A timeline of the simulator cost nothing to record.
        let graph = Graph::new(&trace);
        assert_eq!(
            measure(&trace, &Causes::new(&trace, &graph), &devices, None),
            None
        );
        trace.source.kind = SourceKind::Traced;
        let causes = Causes::new(&trace, &graph);
        let cost = measure(&trace, &causes, &devices, None).expect("recorded by cuptop");
        assert_eq!((cost.launches, cost.graph_nodes), (10, 1000));
        assert_eq!(cost.launches_ns, [7_000, 26_000]);
        assert_eq!(cost.nodes_ns, [150_000, 950_000]);
        assert_eq!(cost.overhead_ns, 20_000);
        assert_eq!(cost.span_ns, 1_099_900);
        // Without calls nothing says that the GPU waited for launches; nodes are 0.15 to 0.95 us each.
        assert_eq!(cost.waited_ns, [0, 0]);
        let [least, most] = cost.share;
        assert!((least - 150.0 / 1_099.9).abs() < 1e-9, "{cost:?}");
        assert!((most - 950.0 / 1_099.9).abs() < 1e-9, "{cost:?}");
    }

    fn cost(kernel: Ns) -> WatchingCost {
        let mut trace = launched(10, 10_000, kernel).trace();
        trace.source.kind = SourceKind::Traced;
        let graph = Graph::new(&trace);
        let devices = crate::count(&trace, Some(&CallIndex::new(&trace)), None);
        let causes = Causes::new(&trace, &graph);
        measure(&trace, &causes, &devices, None).expect("recorded by cuptop")
    }

    #[test]
    fn a_gpu_that_never_waits_loses_nothing_by_its_launches() {
        // Nine gaps of 8 us, each with a launch in it.
        let cost = cost(2_000);
        assert_eq!(cost.waited_ns, [9 * 700, 9 * 2_600]);
        assert!((cost.share[0] - 6.3 / 92.0).abs() < 1e-9, "{cost:?}");
        // Launched ahead: each is 0.5 us behind the one before.
        assert_eq!(self::cost(20_000).share, [0.0, 0.0]);
    }
}
