//! The longest chain of dependencies on a device.

use activity::{Ns, Span};
use causes::graph::{EdgeKind, Graph};

/// The longest chain of operations that wait for each other's events, or follow each other in a graph. It is of those
/// that start within `span` on the device. With a stream for every operation it would still take that long.
pub(super) fn longest_chain(graph: &Graph, device: usize, span: Span) -> Ns {
    let ops = &graph.ops;
    let list = ops.of_device(device);
    let from = list.partition_point(|&op| ops.start[op as usize] < span.start);
    let to = list.partition_point(|&op| ops.start[op as usize] <= span.end);
    let list = &list[from..to.max(from)];
    // By place in the list: other devices' operations lie between this one's.
    let mut chain: Vec<Ns> = Vec::with_capacity(list.len());
    for (at, &op) in list.iter().enumerate() {
        let before = match ops.edge[op as usize] {
            EdgeKind::Event | EdgeKind::GraphNode => {
                let source = list[..at].binary_search(&ops.bind[op as usize]);
                source.map_or(0, |source| chain[source])
            }
            _ => 0,
        };
        let length = ops.end[op as usize].min(span.end) - ops.start[op as usize];
        chain.push(before + length.max(0));
    }
    chain.into_iter().max().unwrap_or(0)
}
