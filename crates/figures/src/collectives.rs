//! Kernels of communication that a device ran: what they took, and with nothing beside them.

use rustc_hash::FxHashMap;

use crate::communication::is_communication;
use crate::device::DeviceFigures;
use activity::{LaunchShape, NameId, Ns, Span, What};
use trace::{LaneId, Trace};

/// The collective kernels of a device.
#[derive(Clone, Debug, Default)]
pub struct Collectives {
    pub rows: Vec<(LaneId, usize)>,
    /// Time in which one ran.
    pub took: Ns,
    /// Time in which one ran, and nothing else of the device did.
    pub alone: Ns,
    /// The one that took most time, and how much.
    pub most: Option<(NameId, Ns)>,
}

impl Collectives {
    /// Those that start within `window`, or all; `f` are the figures of the same operations.
    pub fn of(trace: &Trace, f: &DeviceFigures, window: Option<Span>) -> Collectives {
        let mut known: FxHashMap<NameId, bool> = FxHashMap::default();
        let mut by: FxHashMap<NameId, Ns> = FxHashMap::default();
        let mut found = Collectives::default();
        let mut mine = Vec::new();
        let all = || {
            trace.streams_of(f.index).flat_map(|(id, lane)| {
                let rows = lane.rows_in(window);
                let rows = trace.activities(id, rows);
                rows.map(move |(row, activity)| ((id, row), activity))
            })
        };
        for (at, activity) in all() {
            let What::Kernel(kernel) = activity.what else {
                continue;
            };
            let name = trace.shape(kernel.shape).name;
            let is_one = known
                .entry(name)
                .or_insert_with(|| is_communication(trace.names().full(name)));
            if *is_one {
                *by.entry(name).or_default() += activity.span.len();
                found.rows.push(at);
                mine.push(activity.span);
            }
        }
        if !found.rows.is_empty() {
            let mut rows = found.rows.iter().peekable();
            // The same order: what is no row of theirs is another operation.
            let others = all().filter(|(at, _)| rows.next_if(|it| *it == at).is_none());
            let others = Span::union_len(others.map(|it| it.1.span).collect());
            found.alone = (f.busy_ns - others).max(0);
        }
        found.took = Span::union_len(mine);
        found.most = by.into_iter().max_by_key(|&(name, time)| (time, name));
        found
    }
}

/// An exchange over NVLink that works for so long moves 20 GB.
const TOO_LONG: Ns = 100_000_000;

/// How many of the longest take ten times as long as others of their kernel and size, and how long. Each ends when the last rank has
/// come, so that they most likely wait for one. `rows` has the longest first. Without a size buckets of gradients differ; of exchanges
/// the longest tells, and what it takes beyond the next where it is most of all. `are_alike`: those of one kernel send as much.
pub fn waiting(trace: &Trace, rows: &[(LaneId, usize)], are_alike: bool) -> (usize, Ns) {
    let all: Vec<One> = rows.iter().map(|&at| One::new(trace, at)).collect();
    // Those of several streams may wait at the same time.
    let sum = |of: &[One]| Span::union_len(of.iter().map(|it| it.span).collect());
    let far = last_far(&all, are_alike).map(|at| (at + 1, sum(&all[..=at])));
    match (far, &*all) {
        (Some(far), [first, ..]) if are_alike => {
            let alike = all.iter().filter(|it| it.kind == first.kind);
            let more = beyond(&mut alike.map(|it| it.span).collect::<Vec<_>>());
            if more.1 > far.1 { more } else { far }
        }
        (Some(far), _) => far,
        (None, [first, second, _, ..]) if 2 * first.span.len() >= sum(&all) => {
            (0, first.span.len() - second.span.len())
        }
        (None, [first, ..]) if are_alike => {
            let alike = all.iter().filter(|it| it.kind == first.kind);
            let mut alike: Vec<Span> = alike.map(|it| it.span).collect();
            let far = late(&alike);
            [far, beyond(&mut alike)]
                .into_iter()
                .max_by_key(|it| it.1)
                .unwrap_or(far)
        }
        _ => (0, 0),
    }
}

/// A collective: when it ran, of what kernel and size it is, where these are known.
struct One {
    span: Span,
    kind: Option<(NameId, Option<[u64; 2]>)>,
    is_exchange: bool,
}

impl One {
    fn new(trace: &Trace, (lane, row): (LaneId, usize)) -> One {
        let shape = match trace.what(lane, row) {
            What::Kernel(of) => Some(trace.shape(of.shape)),
            _ => None,
        };
        let size = |of: LaunchShape| {
            let elements = trace.collective(&of).map(|it| it.elements);
            elements.filter(|it| *it != [0; 2])
        };
        One {
            span: trace.lanes()[lane].span(row),
            kind: shape.map(|it| (it.name, size(it))),
            is_exchange: shape.is_some_and(|it| trace.names().full(it.name).contains("SendRecv")),
        }
    }
}

/// The last in the first half that takes ten times as long as the next of its kind, if that has several.
fn last_far(all: &[One], are_alike: bool) -> Option<usize> {
    let exchanges = all.iter().take_while(|it| it.is_exchange).count();
    // How many of a kind come behind, and what the longest of them takes.
    let mut behind: FxHashMap<_, (usize, Ns)> = FxHashMap::default();
    for (at, one) in all.iter().enumerate().rev() {
        let length = one.span.len();
        let known = behind.entry(one.kind).or_default();
        let (count, next) = std::mem::replace(known, (known.0 + 1, length));
        let is_sized = are_alike || one.kind.is_some_and(|it| it.1.is_some());
        // One in each of several steps may wait. What is that long sends no data all the time.
        let are_first = at < exchanges && (at == 0 || length >= TOO_LONG);
        let times = match are_first {
            true => cases::LONG_EXCHANGE.value(),
            false => cases::OUTLIER.value(),
        };
        if at < all.len() / 2
            && (is_sized || are_first)
            && cases::CALLS_MIN.is_reached_by(count + 1)
            && length >= next.saturating_mul(times)
        {
            return Some(at);
        }
    }
    None
}

/// So many in a row are of one pass of a model, and send as much each.
const PASS: usize = 32;

/// Lengths are told apart by a twentieth, from over a fifth beyond the usual on.
const BIN: f64 = 0.05;
const FIRST_BIN: usize = 4;

/// How many take a fifth longer than the quickest tenth of those in a row with them, and how much longer in all. Messages of a few
/// sizes have a few lengths, and what waits has any: else nothing is told.
fn beyond(all: &mut [Span]) -> (usize, Ns) {
    all.sort_unstable();
    let (mut waits, mut bins) = (Vec::new(), Vec::new());
    for row in all.chunks(PASS) {
        let mut lengths: Vec<Ns> = row.iter().map(|it| it.len()).collect();
        lengths.sort_unstable();
        let usual = lengths[lengths.len() / 10].max(1);
        for it in row {
            let bin = ((it.len() as f64 / usual as f64).ln() / BIN) as usize;
            if bin >= FIRST_BIN {
                waits.push(Span::new(it.start, it.end - usual));
                bins.push(bin);
            }
        }
    }
    bins.sort_unstable();
    // The last tenth lies far apart.
    bins.truncate(9 * bins.len() / 10);
    let wide = bins.last().map_or(0, |it| it + 1 - FIRST_BIN);
    let number = bins.len();
    bins.dedup();
    match number >= PASS && wide >= PASS / 4 && 3 * bins.len() >= 2 * wide {
        true => (waits.len(), Span::union_len(waits)),
        false => (0, 0),
    }
}

/// How many of one kind and size, the longest first, take twice as long as the quickest tenth, and how much longer. What waits
/// does so for any time; where they take about the same, there is more to send.
fn late(all: &[Span]) -> (usize, Ns) {
    let usual = all[all.len() - 1 - all.len() / 10].len();
    let late = &all[..all.partition_point(|it| it.len() >= 2 * usual)];
    let length = |part: usize| late[part * late.len() / 4].len();
    let is_spread = late.len() > 3 && length(1) >= 2 * length(3);
    let waits = late.iter().map(|it| Span::new(it.start, it.end - usual));
    match cases::LOOP_MIN.is_reached_by(all.len()) && is_spread {
        true => (late.len(), Span::union_len(waits.collect())),
        false => (0, 0),
    }
}
