//! Which kernels are collectives, and which communicator each belongs to.
//!
//! Kineto says both of each kernel. Else the kernel's name says the operation ("ncclDevKernel_AllReduce_…", before
//! NCCL 2.19 "ncclKernel_AllReduce_…") and its stream stands for the communicator: NCCL's order of operations is that of
//! one stream, in graphs as well.

use rustc_hash::FxHashMap;

use crate::activity::{Ns, ShapeId, Span, What};
use crate::trace::{LaneId, LaneKind, Trace};

/// What a collective does, as far as it matters for who waits for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Barrier,
    /// One rank sends, the others receive.
    Broadcast,
    /// One rank receives what the others send.
    Reduce,
    /// A rank sends to another, or receives.
    PointToPoint,
    /// Something else, or several at once.
    Other,
}

impl Operation {
    /// By a word of PyTorch's or NCCL's; `None` for what names none.
    #[must_use]
    pub fn of(name: &str) -> Operation {
        let plain: String = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .collect();
        // In this order: "reduce" is part of others' names.
        const WORDS: [(&str, Operation); 14] = [
            ("allreduce", Operation::AllReduce),
            ("allgather", Operation::AllGather),
            ("reducescatter", Operation::ReduceScatter),
            ("alltoall", Operation::AllToAll),
            ("barrier", Operation::Barrier),
            ("broadcast", Operation::Broadcast),
            ("sendrecv", Operation::PointToPoint),
            ("send", Operation::PointToPoint),
            ("recv", Operation::PointToPoint),
            ("scatter", Operation::Broadcast),
            ("gather", Operation::Reduce),
            ("reduce", Operation::Reduce),
            ("coalesced", Operation::Other),
            ("generic", Operation::Other),
        ];
        let found = WORDS.iter().find(|(word, _)| plain.contains(word));
        found.map_or(Operation::Other, |&(_, operation)| operation)
    }

    /// Whether it cannot end on any rank before it has begun on all: only then the shortest of its kernels is the
    /// transfer, and the ends of all lie together.
    #[must_use]
    pub fn is_mutual(self) -> bool {
        matches!(
            self,
            Operation::AllReduce
                | Operation::AllGather
                | Operation::ReduceScatter
                | Operation::AllToAll
                | Operation::Barrier
        )
    }

    /// Its name in figures.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Operation::AllReduce => "all-reduce",
            Operation::AllGather => "all-gather",
            Operation::ReduceScatter => "reduce-scatter",
            Operation::AllToAll => "all-to-all",
            Operation::Barrier => "barrier",
            Operation::Broadcast => "broadcast",
            Operation::Reduce => "reduce",
            Operation::PointToPoint => "send/receive",
            Operation::Other => "other",
        }
    }
}

/// What collectives of different ranks must have in common to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    pub operation: Operation,
    /// Bytes by which rates are reckoned: the whole message on one rank, the larger of in and out; 0 where unknown.
    pub bytes: u64,
}

/// One rank's part of a collective: a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub kind: Kind,
    pub span: Span,
    pub lane: LaneId,
    pub row: usize,
}

/// What tells a communicator.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Label {
    /// The program's name for it, its ranks, and how many they are.
    Named(String, u32),
    /// Not named: the how-manieth stream with collectives of its rank.
    Stream(usize),
}

/// The collectives of one rank on one communicator, in order of start.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    /// Index into the ranks.
    pub(super) rank: usize,
    pub(super) label: Label,
    pub(super) parts: Vec<Part>,
}

/// Where collectives ran: a process, and one of its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Unit {
    pub(super) process: usize,
    pub(super) device: usize,
}

/// Whether a kernel's name is that of NCCL or of RCCL, which took it over.
fn is_collective(name: &str) -> bool {
    name.starts_with("ncclDevKernel") || name.starts_with("ncclKernel")
}

/// Whether kernels of this shape are collectives.
pub(super) fn is_one(trace: &Trace, shape: ShapeId) -> bool {
    let shape = trace.shape(shape);
    trace.collective(&shape).is_some() || is_collective(trace.names().full(shape.name))
}

/// What is known of a shape's kernels, with the communicator where that has a name; `None` for those that are no collective.
type Known = Option<(Kind, Option<usize>)>;

/// Collectives that belong together: of a rank, and of a named communicator or on one stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    unit: Unit,
    on: Result<usize, LaneId>,
}

/// Names of communicators with their sizes, each once.
type Names = Vec<(String, u32)>;

fn know(trace: &Trace, shape: ShapeId, names: &mut Names) -> Known {
    let shape = trace.shape(shape);
    if let Some(it) = trace.collective(&shape) {
        let elements = it.elements[0].max(it.elements[1]);
        let kind = Kind {
            operation: Operation::of(&it.operation),
            bytes: elements.saturating_mul(element_bytes(&it.element)),
        };
        if it.group.is_empty() {
            return Some((kind, None));
        }
        let same = |(name, size): &(String, u32)| (name, *size) == (&it.group, it.size);
        let at = names.iter().position(same).unwrap_or_else(|| {
            names.push((it.group.clone(), it.size));
            names.len() - 1
        });
        return Some((kind, Some(at)));
    }
    let name = trace.names().full(shape.name);
    is_collective(name).then(|| {
        let kind = Kind {
            operation: Operation::of(&name[4..]),
            bytes: 0,
        };
        (kind, None)
    })
}

/// Bytes of an element by PyTorch's word for its type; 0 for one that is not known.
fn element_bytes(word: &str) -> u64 {
    match word {
        "Double" | "Long" | "ComplexFloat" | "float64" | "int64" => 8,
        "Float" | "Int" | "float32" | "int32" => 4,
        "Half" | "BFloat16" | "Short" | "float16" | "bfloat16" | "int16" => 2,
        "Byte" | "Char" | "Bool" | "Float8_e4m3fn" | "Float8_e5m2" | "uint8" | "int8" => 1,
        "ComplexDouble" => 16,
        _ => 0,
    }
}

/// Every collective of a timeline by rank and communicator. Ranks are in order of process and device.
pub(super) fn of(trace: &Trace) -> (Vec<Unit>, Vec<Channel>) {
    let mut shapes: FxHashMap<ShapeId, Known> = FxHashMap::default();
    let mut names = Names::new();
    let mut found: FxHashMap<Key, Vec<Part>> = FxHashMap::default();
    for (id, lane) in trace.lanes().iter().enumerate() {
        let key = lane.key();
        let LaneKind::Stream { device, .. } = key.kind else {
            continue;
        };
        let unit = Unit {
            process: key.process,
            device,
        };
        for row in lane.first_row()..lane.len() {
            let activity = trace.activity(id, row);
            let What::Kernel(kernel) = activity.what else {
                continue;
            };
            let known = shapes
                .entry(kernel.shape)
                .or_insert_with(|| know(trace, kernel.shape, &mut names));
            let Some((kind, label)) = known else {
                continue;
            };
            let part = Part {
                kind: *kind,
                span: activity.span,
                lane: id,
                row,
            };
            // A named communicator is one, whatever streams it is used on.
            let on = label.ok_or(id);
            found.entry(Key { unit, on }).or_default().push(part);
        }
    }
    let mut units: Vec<Unit> = found.keys().map(|key| key.unit).collect();
    units.sort_unstable();
    units.dedup();
    let mut found: Vec<_> = found.into_iter().collect();
    for (_, parts) in &mut found {
        parts.sort_by_key(|part| (part.span.start, part.row));
    }
    let began = |parts: &[Part]| parts.first().map_or(Ns::MAX, |part| part.span.start);
    found.sort_by_key(|(key, parts)| (key.unit, began(parts), key.on));
    let mut streams = vec![0; units.len()];
    let channels = found.into_iter().filter_map(|(key, parts)| {
        let rank = units.binary_search(&key.unit).ok()?;
        let label = match key.on {
            Ok(name) => {
                let (name, size) = names[name].clone();
                Label::Named(name, size)
            }
            Err(_) => {
                streams[rank] += 1;
                Label::Stream(streams[rank] - 1)
            }
        };
        Some(Channel { rank, label, parts })
    });
    let channels = channels.collect();
    (units, channels)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names as NCCL 2.18 to 2.28, PyTorch's record_param_comms and RCCL have them.
    #[test]
    fn operations_are_told_by_their_names() {
        let expected = [
            (
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                Operation::AllReduce,
            ),
            (
                "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
                Operation::AllReduce,
            ),
            (
                "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL",
                Operation::ReduceScatter,
            ),
            ("ncclDevKernel_Reduce_Sum_f32_RING_LL", Operation::Reduce),
            ("ncclDevKernel_AllGather_RING_LL", Operation::AllGather),
            ("ncclDevKernel_Broadcast_RING_LL", Operation::Broadcast),
            ("ncclDevKernel_SendRecv", Operation::PointToPoint),
            ("ncclDevKernel_Generic", Operation::Other),
            ("allreduce_coalesced", Operation::AllReduce),
            ("_allgather_base", Operation::AllGather),
            ("_reduce_scatter_base", Operation::ReduceScatter),
            ("all_to_allv", Operation::AllToAll),
            ("gather", Operation::Reduce),
            ("scatter", Operation::Broadcast),
        ];
        for (name, operation) in expected {
            assert_eq!(Operation::of(name), operation, "{name}");
        }
        assert!(is_collective(expected[0].0) && is_collective(expected[1].0));
        assert!(!is_collective("void reduce_kernel<512, 1>()"));
    }
}
