//! Chains of dependencies: the one that ends with the last operation, and the longest one on the GPU.

use activity::{Ns, Span};
use causes::graph::{EdgeKind, Graph, NONE, OpId};

/// Of the chain that ends with `last`, followed back along what bound each start to the beginning of `span`:
/// how much lies on the host.
pub(super) fn on_host(graph: &Graph, last: OpId, span: Span) -> Ns {
    let (ops, calls) = (&graph.ops, &graph.calls);
    let mut host: Ns = 0;
    let mut time = span.end;
    let mut to = |from: Ns, time: &mut Ns, is_host: bool| {
        let from = from.max(span.start);
        if from < *time {
            if is_host {
                host += *time - from;
            }
            *time = from;
        }
    };
    let mut op = last;
    // Each step goes back in time, or along one of the graph's edges at one moment.
    let mut left = ops.len() + calls.len();
    'ops: while time > span.start && left > 0 {
        left -= 1;
        to(ops.start[op as usize], &mut time, false);
        let source = ops.bind[op as usize];
        match ops.edge[op as usize] {
            EdgeKind::None => break,
            EdgeKind::Launch => {
                let mut call = source;
                to(calls.start[call as usize], &mut time, true);
                while time > span.start && left > 0 {
                    left -= 1;
                    call = match calls.handed[call as usize] {
                        NONE => calls.previous[call as usize],
                        other => other,
                    };
                    if call == NONE {
                        break 'ops;
                    }
                    to(calls.end[call as usize], &mut time, true);
                    let waited = calls.waited[call as usize];
                    if waited != NONE && ops.end[waited as usize] <= time {
                        to(ops.end[waited as usize], &mut time, true);
                        op = waited;
                        continue 'ops;
                    }
                    to(calls.start[call as usize], &mut time, true);
                }
            }
            _ => {
                to(ops.end[source as usize], &mut time, false);
                op = source;
            }
        }
    }
    host
}

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
