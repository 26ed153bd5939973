//! Which kernels are collectives, and which communicator each belongs to.
//!
//! Kineto says both of each kernel. Else the kernel's name says the operation, where it may be paired ("ncclDevKernel_AllReduce_…", before NCCL
//! 2.19 "ncclKernel_AllReduce_…"). Where that is a send, the range around its launch says it (`host_hint`). The stream
//! stands for the communicator: NCCL's order of operations is that of one stream, in graphs as well.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::host_hint::HostHints;
use super::operation::Operation;
use activity::{Ns, ShapeId, Span, What};
use figures::communication::may_be_paired;
use trace::{LaneId, LaneKind, Trace};

/// What collectives of different ranks must have in common to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub operation: Operation,
    /// Bytes by which rates are reckoned: the whole message on one rank, the larger of in and out; 0 where unknown.
    pub bytes: u64,
}

/// One rank's part of a collective: a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
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

/// Whether kernels of this shape are collectives.
pub(super) fn is_one(trace: &Trace, shape: ShapeId) -> bool {
    let shape = trace.shape(shape);
    trace.collective(&shape).is_some() || may_be_paired(trace.names().full(shape.name))
}

/// What is known of a shape's kernels, with the communicator where that has a name; `None` for those that are no collective.
type ShapeUse = Option<(Kind, Option<usize>)>;

/// Collectives that belong together: of a rank, and of a named communicator or on one stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    unit: Unit,
    on: Result<usize, LaneId>,
}

/// Names of communicators with their sizes, each once. Of sends and receives also whether it sends, and with whom: NCCL
/// pairs what goes one way between two ranks by order, so that each way counts as a communicator.
type Names = Vec<(String, u32, Option<(bool, u32)>)>;

fn know(trace: &Trace, shape: ShapeId, names: &mut Names) -> ShapeUse {
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
        let way = it.peer.and_then(|peer| match it.operation.as_str() {
            "send" => Some((true, peer)),
            "recv" => Some((false, peer)),
            _ => None,
        });
        let own = (it.group.clone(), it.size, way);
        let at = names.iter().position(|it| *it == own);
        let at = at.unwrap_or_else(|| {
            names.push(own);
            names.len() - 1
        });
        return Some((kind, Some(at)));
    }
    let name = trace.names().full(shape.name);
    may_be_paired(name).then(|| {
        let kind = Kind {
            operation: Operation::of(name),
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

/// Every collective of a timeline by rank and communicator. Ranks are in order of number, else of host and process.
pub(super) fn find(trace: &Trace) -> (Vec<Unit>, Vec<Channel>) {
    let mut shapes: FxHashMap<ShapeId, ShapeUse> = FxHashMap::default();
    let mut names = Names::new();
    let mut said: Option<HostHints<'_>> = None;
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
        for (row, activity) in trace.activities(id, lane.first_row()..lane.len()) {
            let What::Kernel(kernel) = activity.what else {
                continue;
            };
            let known = shapes
                .entry(kernel.shape)
                .or_insert_with(|| know(trace, kernel.shape, &mut names));
            let Some((mut kind, label)) = *known else {
                continue;
            };
            if label.is_none() && !kind.operation.is_mutual() {
                // Its name may be that of the kernel alone.
                let said = said.get_or_insert_with(|| HostHints::of(trace));
                let operation = said.operation(key.process, activity.correlation);
                kind.operation = operation.unwrap_or(kind.operation);
            }
            let part = Part {
                kind,
                span: activity.span,
                lane: id,
                row,
            };
            // A named communicator is one, whatever streams it is used on.
            let on = label.ok_or(id);
            found.entry(Key { unit, on }).or_default().push(part);
        }
    }
    let order = |unit: Unit| {
        let info = &trace.processes()[unit.process].info;
        let number = info.rank.unwrap_or(u32::MAX);
        (number, &info.host, info.pid, unit)
    };
    let units: BTreeSet<_> = found.keys().map(|key| order(key.unit)).collect();
    let units: Vec<Unit> = units.into_iter().map(|it| it.3).collect();
    let ranks: FxHashMap<Unit, usize> = units.iter().copied().zip(0..).collect();
    let mut found: Vec<_> = found.into_iter().collect();
    for (_, parts) in &mut found {
        parts.sort_by_key(|part| (part.span.start, part.row));
    }
    let began = |parts: &[Part]| parts.first().map_or(Ns::MAX, |part| part.span.start);
    found.sort_by_key(|(key, parts)| (key.unit, began(parts), key.on));
    let mut streams = vec![0; units.len()];
    let channels = found.into_iter().filter_map(|(key, mut parts)| {
        let rank = *ranks.get(&key.unit)?;
        let number = trace.processes()[key.unit.process].info.rank;
        let named = key.on.ok().map(|at| names[at].clone());
        let label = match (named, number) {
            (Some((name, size, None)), _) => Label::Named(name, size),
            (Some((name, _, Some((is_send, peer)))), Some(own)) => {
                let (from, to) = if is_send { (own, peer) } else { (peer, own) };
                let pair = |it: &mut Part| it.kind.operation = Operation::Pair;
                parts.iter_mut().for_each(pair);
                Label::Named(format!("{name} {from} to {to}"), 2)
            }
            // Whose sends these are is not known.
            _ => {
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
mod tests;
