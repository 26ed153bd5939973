//! What the values of events mean: times, threads, and the kinds of copies.

use super::decimal::ns_from_us;
use super::event::Event;
use crate::gather;
use activity::{Direction, MemoryKind, Ns};

/// Thread ids of old traces are pthread handles: 64 bits, folded here.
pub(super) fn thread_id(tid: Option<i64>) -> u32 {
    match tid {
        None | Some(-1) => 0,
        Some(tid) => u32::try_from(tid).unwrap_or((tid ^ (tid >> 32)) as u32),
    }
}

pub(super) fn times(event: &Event<'_>) -> Option<(Ns, Ns)> {
    let start = ns_from_us(event.ts?)?;
    Some((start, start.checked_add(ns_from_us(event.dur?)?)?))
}

pub(super) fn direction(name: &str) -> Direction {
    const KINDS: [&str; 9] = [
        "HtoD", "DtoH", "PtoP", "DtoD", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA",
    ];
    let kind = KINDS.into_iter().find(|kind| name.contains(kind));
    // ONNX Runtime's.
    let kind = kind.unwrap_or(match name {
        "MemcpyHostToDevice" => "HtoD",
        "MemcpyDeviceToHost" => "DtoH",
        _ => "",
    });
    gather::direction(kind).unwrap_or(Direction::Other)
}

/// "Memcpy HtoD (Pinned -> Device)".
pub(super) fn memory_kinds(name: &str) -> (MemoryKind, MemoryKind) {
    name.split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'))
        .and_then(|(inside, _)| inside.split_once("->"))
        .map_or_else(Default::default, |(from, to)| {
            (MemoryKind::named(from), MemoryKind::named(to))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The directions that CUPTI's kinds of copies have in the collector, and the reference figures give them.
    #[test]
    fn copies_of_arrays_have_the_direction_of_their_memory() {
        let expected = [
            ("Memcpy HtoD (Pinned -> Device)", Direction::H2D),
            ("Memcpy HtoA (Pageable -> Array)", Direction::H2D),
            ("Memcpy AtoH (Array -> Pinned)", Direction::D2H),
            ("Memcpy AtoA (Array -> Array)", Direction::D2D),
            ("Memcpy AtoD (Array -> Device)", Direction::D2D),
            ("Memcpy DtoA (Device -> Array)", Direction::D2D),
            ("Memcpy PtoP (Device -> Device)", Direction::P2P),
            ("MemcpyHtoDAsync", Direction::H2D),
            ("Memcpy HtoH (Pinned -> Pinned)", Direction::Other),
            ("Memcpy (Unknown -> Unknown)", Direction::Other),
        ];
        for (name, wanted) in expected {
            assert_eq!(direction(name), wanted, "{name}");
        }
    }
}
