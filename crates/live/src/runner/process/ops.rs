//! How many records a plan's operations must leave.

use scenario::plan::{Op, OpKind, VariantPlan};

use super::super::protocol::Issued;

/// What one pass of a variant issues, when every operation of it succeeds. Launches of graphs that are recorded
/// as a whole leave one record each.
pub(super) fn issued(variant: &VariantPlan, has_whole_graphs: bool) -> Issued {
    let mut issued = Issued::default();
    let is_launch = |op: &&Op| matches!(op.kind, OpKind::GraphLaunch { .. });
    let (graphs, each): (Vec<&Op>, Vec<&Op>) = variant
        .ops
        .iter()
        .partition(|op| has_whole_graphs && is_launch(op));
    issued.graphs(graphs.len() as u64);
    for op in each
        .into_iter()
        .flat_map(|op| variant.unrolled(std::slice::from_ref(op)))
    {
        match op.kind {
            OpKind::Launch { .. } => issued.kernels(1),
            OpKind::Memset { bytes, .. } => issued.memsets(u64::from(bytes > 0)),
            OpKind::Copy(it) => issued.copies(it.direction, op.kind.pieces().left()),
            _ => {}
        }
    }
    issued
}

/// Whether a variant allocates from a pool.
pub(super) fn uses_pool(variant: &VariantPlan) -> bool {
    let mut ops = variant.listed();
    ops.any(|op| matches!(op.kind, OpKind::Alloc { stream, .. } if stream.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use activity::Direction;
    use scenario::plan::{BufferSpec, CopySpec, GraphSpec, MemRef, Op, StreamSpec};

    fn op(kind: OpKind) -> Op {
        Op { kind, site: 0 }
    }

    fn copy(bytes: u64, chunk: u64) -> Op {
        let at = MemRef::default();
        op(OpKind::Copy(CopySpec {
            direction: Direction::H2D,
            from: at,
            to: at,
            bytes,
            chunk,
            stream: 0,
            is_async: true,
        }))
    }

    #[test]
    fn pieces_and_graph_nodes_are_counted_as_cuda_records_them() {
        let launch = op(OpKind::Launch {
            launch: 0,
            stream: 0,
        });
        let graph = op(OpKind::GraphLaunch {
            graph: 0,
            stream: 0,
        });
        let variant = VariantPlan {
            streams: vec![StreamSpec::default()],
            buffers: vec![BufferSpec::default()],
            graphs: vec![GraphSpec {
                name: "g".to_owned(),
                ops: vec![launch, launch, copy(10, 0)],
            }],
            ops: vec![
                op(OpKind::Capture {
                    graph: 0,
                    stream: 0,
                }),
                graph,
                graph,
                launch,
                copy(100, 30),
                copy(0, 0),
            ],
            ..VariantPlan::default()
        };
        let counts = issued(&variant, false);
        // Two launches of the graph with two kernels and one copy each, one kernel, four pieces.
        assert_eq!(counts.0[..2], [5, 6]);
        assert_eq!(counts.total(), 11);
        // As a whole: two graphs, one kernel, four pieces.
        let counts = issued(&variant, true);
        assert_eq!((counts.0[6], &counts.0[..2]), (2, &[1, 4][..]));
        assert_eq!(counts.total(), 7);
    }
}
