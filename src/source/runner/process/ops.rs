//! What a plan's operations are in words, and how many records they must leave.

use crate::activity::{Direction, units};
use crate::scenario::plan::{HostMemory, Op, OpKind, SyncTarget, VariantPlan};

use super::super::protocol::Issued;

/// What one pass of a variant issues, when every operation of it succeeds.
pub(super) fn issued(variant: &VariantPlan) -> Issued {
    let mut issued = Issued::default();
    for op in &variant.ops {
        match op.kind {
            OpKind::GraphLaunch { graph, .. } => {
                for op in &variant.graphs[graph].ops {
                    count(variant, op, &mut issued);
                }
            }
            _ => count(variant, op, &mut issued),
        }
    }
    issued
}

fn count(variant: &VariantPlan, op: &Op, issued: &mut Issued) {
    match op.kind {
        OpKind::Launch { .. } => issued.kernels += 1,
        OpKind::Memset { bytes, .. } => issued.memsets += u64::from(bytes > 0),
        OpKind::Copy {
            direction,
            from,
            to,
            bytes,
            chunk,
            ..
        } => {
            let managed = variant.buffers[from.buffer].host == HostMemory::Managed;
            // A migration of managed memory is no copy to CUDA.
            if !(managed && from.buffer == to.buffer) {
                let pieces = if chunk == 0 {
                    u64::from(bytes > 0)
                } else {
                    bytes.div_ceil(chunk)
                };
                issued.copies(direction, pieces);
            }
        }
        _ => {}
    }
}

/// Whether a variant allocates from a pool.
pub(super) fn uses_pool(variant: &VariantPlan) -> bool {
    let graphs = variant.graphs.iter().flat_map(|g| &g.ops);
    variant
        .ops
        .iter()
        .chain(graphs)
        .any(|op| matches!(op.kind, OpKind::Alloc { stream, .. } if stream.is_some()))
}

/// An operation in the words of the scenario and of CUDA.
pub(super) fn describe(variant: &VariantPlan, op: &Op) -> String {
    let stream = |id: usize| format!("stream `{}`", variant.streams[id].name);
    let buffer = |id: usize| format!("`{}`", variant.buffers[id].name);
    match op.kind {
        OpKind::Launch { launch, stream: s } => {
            let kernel = &variant.kernels[variant.launches[launch].kernel];
            format!("launching kernel `{}` on {}", kernel.name, stream(s))
        }
        OpKind::Copy {
            direction,
            from,
            bytes,
            stream: s,
            ..
        } => format!(
            "copying {} {} from {} on {}",
            units::bytes(bytes),
            match direction {
                Direction::Other => "host to host",
                named => named.label(),
            },
            buffer(from.buffer),
            stream(s)
        ),
        OpKind::Memset { to, stream: s, .. } => {
            format!("memset of {} on {}", buffer(to.buffer), stream(s))
        }
        OpKind::Record { event, stream: s } => {
            format!(
                "recording event `{}` on {}",
                variant.events[event],
                stream(s)
            )
        }
        OpKind::Wait { event, stream: s } => {
            format!(
                "making {} wait for event `{}`",
                stream(s),
                variant.events[event]
            )
        }
        OpKind::Sync(SyncTarget::Stream(s)) => format!("waiting for {}", stream(s)),
        OpKind::Sync(SyncTarget::Event(e)) => format!("waiting for event `{}`", variant.events[e]),
        OpKind::Sync(SyncTarget::Device(d)) => format!("waiting for device {d}"),
        OpKind::Alloc { buffer: b, .. } => format!(
            "allocating {} for {}",
            units::bytes(variant.buffers[b].bytes),
            buffer(b)
        ),
        OpKind::Free { buffer: b, .. } => format!("freeing {}", buffer(b)),
        OpKind::Capture { graph, stream: s } => format!(
            "capturing graph `{}` on {}",
            variant.graphs[graph].name,
            stream(s)
        ),
        OpKind::GraphLaunch { graph, stream: s } => format!(
            "launching graph `{}` on {}",
            variant.graphs[graph].name,
            stream(s)
        ),
        OpKind::Host(_) => "host work".to_owned(),
        OpKind::RangeBegin(_) | OpKind::RangeEnd => "a phase".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::plan::{BufferSpec, GraphSpec, MemRef, StreamSpec};

    fn op(kind: OpKind) -> Op {
        Op { kind, site: 0 }
    }

    fn copy(buffer: usize, bytes: u64, chunk: u64) -> Op {
        let at = MemRef { buffer, offset: 0 };
        op(OpKind::Copy {
            direction: Direction::H2D,
            from: at,
            to: at,
            bytes,
            chunk,
            stream: 0,
            is_async: true,
        })
    }

    #[test]
    fn pieces_graph_nodes_and_migrations_are_counted_as_cuda_records_them() {
        let buffer = |host| BufferSpec {
            bytes: 100,
            host,
            device: Some(0),
            ..BufferSpec::default()
        };
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
            buffers: vec![buffer(HostMemory::Pinned), buffer(HostMemory::Managed)],
            graphs: vec![GraphSpec {
                name: "g".to_owned(),
                ops: vec![launch, launch, copy(0, 10, 0)],
            }],
            ops: vec![
                op(OpKind::Capture {
                    graph: 0,
                    stream: 0,
                }),
                graph,
                graph,
                launch,
                copy(0, 100, 30),
                copy(0, 0, 0),
                copy(1, 100, 0),
            ],
            ..VariantPlan::default()
        };
        let counts = issued(&variant);
        // Two launches of the graph with two kernels and one copy each, one kernel, four pieces.
        assert_eq!((counts.kernels, counts.h2d), (5, 6));
        assert_eq!(counts.total(), 11);
    }
}
