//! Collectives split into transfer and waiting. The shortest of a collective's kernels is the transfer, which all take.
//! What another's takes longer, it waited for the last rank to arrive.
//!
//! That needs no clock but each rank's own, and holds for mutual operations. One that goes one way (a broadcast) can end on
//! one rank before another has begun. There a rank waits no longer than until the last one comes, on the clock of all.

use super::clocks::Clocks;
use super::collect::{Kind, Part, Unit};
use super::group::Group;
use super::operation::Operation;
use activity::{Ns, Span, What};
use trace::{Lane, LaneId, Trace};

/// Ranks that arrive no further apart than this arrive together, whatever the residual says.
const TOGETHER: Ns = 10_000;

/// Sums of one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Collectives that were judged.
    pub judged: u64,
    /// Those that go one way, or of which no other rank's part is known.
    pub unjudged: u64,
    /// Time that its part of the transfers took, ns.
    pub transfer_ns: Ns,
    /// Time that it waited inside collectives for others, ns.
    pub wait_ns: Ns,
    /// Of that, the time in which nothing else ran on its device.
    pub exposed_ns: Ns,
    /// Collectives at which it arrived last, by more than the clocks' ends lie apart.
    pub last_arrivals: u64,
    /// By how much later than the last but one, added up.
    pub late_ns: Ns,
}

/// A collective at which one rank was clearly last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// Who.
    pub rank: usize,
    /// When it began, in its own time.
    pub start: Ns,
    /// How much later than the last but one it came, ns.
    pub by: Ns,
    /// Its part of the collective.
    pub lane: LaneId,
    pub row: usize,
}

/// A stretch of waiting on one rank, in its own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub span: Span,
    /// The rank that came last.
    pub for_rank: usize,
    /// The collective's kernel that it is the first part of.
    pub lane: LaneId,
    pub row: usize,
    /// Of it, the time in which nothing else ran on the device, ns.
    pub exposed: Ns,
}

/// How fast messages of one kind went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    pub operation: Operation,
    /// Bytes of a message on a rank.
    pub bytes: u64,
    /// Ranks.
    pub ranks: u32,
    pub count: u64,
    /// Median transfer, ns.
    pub transfer_ns: Ns,
    /// Bytes over the slowest link per time, as nccl-tests reckon it, GB/s.
    pub bus_gbps: f64,
}

/// What the collectives of all groups come to.
#[derive(Clone, Debug, Default)]
pub struct Split {
    /// By rank.
    pub sums: Vec<Sums>,
    /// By rank, in order of time.
    pub waits: Vec<Vec<Wait>>,
    /// In order of group and time.
    pub late: Vec<Late>,
    /// Of those that go one way the ones in which somebody waited for the last rank. They tell nobody a straggler: a root may
    /// leave before others come.
    pub late_one_way: Vec<Late>,
    pub rates: Vec<Rate>,
    /// Collectives of which some ranks' parts are missing: their transfer may be shorter than what is said.
    pub incomplete: u64,
}

/// Splits all collectives. Ranks whose arrival lies no further from the next than the clocks' noise came together.
pub(super) fn measure(
    trace: &Trace,
    units: &[Unit],
    groups: &[Group],
    clocks: &Clocks,
    split: &mut Split,
) {
    let noise = clocks.noise().max(TOGETHER);
    let lanes = |unit: &Unit| streams(trace, *unit).map(|(id, _)| id).collect();
    let lanes: Vec<Vec<LaneId>> = units.iter().map(lanes).collect();
    split.waits = vec![Vec::new(); units.len()];
    let mut times: Vec<(Kind, u32, Ns)> = Vec::new();
    for group in groups {
        let width = group.size.unwrap_or(group.ranks.len() as u32);
        let is_wrong = group.collectives().any(|it| {
            let is_pair = it[0].1.kind.operation == Operation::Pair;
            is_pair && are_two(trace, group, &it, (clocks, noise))
        });
        for members in group.collectives() {
            let operation = members[0].1.kind.operation;
            let of_rank = |(slot, part)| (group.ranks[slot], part);
            let mut members: Vec<(usize, &Part)> = members.into_iter().map(of_rank).collect();
            let is_known = |(rank, _): &(usize, &Part)| clocks.residuals[*rank].is_some();
            if operation.is_one_way() && !is_wrong && members.iter().all(is_known) {
                add_one_way(trace, &lanes, &mut members, (clocks, noise), split);
                continue;
            }
            if !operation.is_mutual() {
                for (rank, _) in &members {
                    split.sums[*rank].unjudged += 1;
                }
                continue;
            }
            split.incomplete += u64::from((members.len() as u64) < u64::from(width));
            // The last one to come waits least; of those that came together, the first in the group's order.
            members.sort_by_key(|it| it.1.span.len());
            let transfer = members[0].1.span.len();
            times.push((members[0].1.kind, width, transfer));
            add_waits(trace, &lanes, &members, |_| Ns::MAX, split);
            if members[1].1.span.len() - transfer > noise {
                add_late(&members, split);
            }
        }
        for (slot, alone) in group.alone().into_iter().enumerate() {
            split.sums[group.ranks[slot]].unjudged += alone;
        }
    }
    for waits in &mut split.waits {
        waits.sort_by_key(|wait| wait.span);
    }
    split.rates = rates(times);
}

/// Whether a receive ended before its send began, where they were counted from other ends.
fn are_two(
    trace: &Trace,
    group: &Group,
    members: &[(usize, &Part)],
    (clocks, noise): (&Clocks, Ns),
) -> bool {
    let on_all = |slot: usize, time| clocks.lines[group.ranks[slot]].apply(time);
    let is_send = |part: &Part| match trace.what(part.lane, part.row) {
        What::Kernel(it) => trace
            .collective(&trace.shape(it.shape))
            .is_some_and(|it| it.operation == "send"),
        _ => false,
    };
    type Parts<'a> = Vec<(usize, &'a Part)>;
    let (sends, receives): (Parts<'_>, Parts<'_>) = members.iter().partition(|it| is_send(it.1));
    let began = sends.iter().map(|it| on_all(it.0, it.1.span.start)).max();
    let ended = receives.iter().map(|it| on_all(it.0, it.1.span.end)).min();
    began
        .zip(ended)
        .is_some_and(|(began, ended)| ended + noise < began)
}

/// Adds what ranks waited in one that goes one way, as far as the last one came later than the clocks' noise.
fn add_one_way(
    trace: &Trace,
    lanes: &[Vec<LaneId>],
    members: &mut [(usize, &Part)],
    (clocks, noise): (&Clocks, Ns),
    split: &mut Split,
) {
    let came = |it: &(usize, &Part)| clocks.lines[it.0].apply(it.1.span.start);
    members.sort_by_key(|it| std::cmp::Reverse(came(it)));
    let last = members.first().map_or(0, came);
    let at_most = |it: &(usize, &Part)| match last - came(it) {
        late if late > noise => late,
        _ => 0,
    };
    add_waits(trace, lanes, members, at_most, split);
    let shortest = members.iter().map(|it| it.1.span.len()).min();
    let waited = |it: &(usize, &Part)| (it.1.span.len() - shortest.unwrap_or(0)).min(at_most(it));
    if let [(rank, last), others @ ..] = &*members
        && let Some(by) = others.iter().map(waited).filter(|by| *by > 0).min()
    {
        split.late_one_way.push(Late {
            rank: *rank,
            start: last.span.start,
            by,
            lane: last.lane,
            row: last.row,
        });
    }
}

/// Adds what each rank waited in a collective until the last one came, and `at_most` so long. Members come last one first.
fn add_waits(
    trace: &Trace,
    lanes: &[Vec<LaneId>],
    members: &[(usize, &Part)],
    at_most: impl Fn(&(usize, &Part)) -> Ns,
    split: &mut Split,
) {
    let last = members[0].0;
    let lengths = members.iter().map(|it| it.1.span.len());
    let transfer = lengths.min().unwrap_or(0);
    for member in members {
        let &(rank, part) = member;
        let waited = (part.span.len() - transfer).min(at_most(member));
        let sums = &mut split.sums[rank];
        sums.judged += 1;
        sums.transfer_ns += part.span.len() - waited;
        let wait = Span::new(part.span.start, part.span.start + waited);
        sums.wait_ns += wait.len();
        if !wait.is_empty() {
            let exposed = exposed(trace, &lanes[rank], part.lane, wait);
            sums.exposed_ns += exposed;
            split.waits[rank].push(Wait {
                span: wait,
                for_rank: last,
                lane: part.lane,
                row: part.row,
                exposed,
            });
        }
    }
}

/// Adds that the last one was late.
fn add_late(members: &[(usize, &Part)], split: &mut Split) {
    let [(rank, last), (_, next), ..] = members else {
        return;
    };
    let by = next.span.len() - last.span.len();
    let sums = &mut split.sums[*rank];
    sums.last_arrivals += 1;
    sums.late_ns += by;
    split.late.push(Late {
        rank: *rank,
        start: last.span.start,
        by,
        lane: last.lane,
        row: last.row,
    });
}

/// The streams of a rank's device, of its own process.
pub(super) fn streams(trace: &Trace, unit: Unit) -> impl Iterator<Item = (LaneId, &Lane)> {
    let of_device = trace.streams_of(unit.device);
    of_device.filter(move |(_, lane)| lane.key().process == unit.process)
}

/// The time of a stretch in which no stream but `own` had work.
fn exposed(trace: &Trace, lanes: &[LaneId], own: LaneId, stretch: Span) -> Ns {
    let others = lanes.iter().filter(|lane| **lane != own);
    let busy: Ns = others.map(|&lane| trace.lanes()[lane].busy(stretch)).sum();
    (stretch.len() - busy).max(0)
}

/// Transfers by operation, size and ranks, those that took most time first.
fn rates(mut times: Vec<(Kind, u32, Ns)>) -> Vec<Rate> {
    times.sort_unstable();
    let same = times.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
    let mut rates: Vec<(Ns, Rate)> = same
        .map(|all| {
            let (kind, ranks, transfer) = all[all.len() / 2];
            let moved = kind.bytes as f64 * bus_factor(kind.operation, ranks);
            let rate = Rate {
                operation: kind.operation,
                bytes: kind.bytes,
                ranks,
                count: all.len() as u64,
                transfer_ns: transfer,
                bus_gbps: moved / (transfer as f64).max(1.0),
            };
            (all.iter().map(|(_, _, t)| t).sum(), rate)
        })
        .collect();
    rates.sort_by_key(|(total, _)| std::cmp::Reverse(*total));
    rates.into_iter().map(|(_, rate)| rate).collect()
}

/// What of a message crosses each rank's link, as the performance notes of nccl-tests have it.
fn bus_factor(operation: Operation, ranks: u32) -> f64 {
    let n = f64::from(ranks.max(1));
    match operation {
        Operation::AllReduce => 2.0 * (n - 1.0) / n,
        Operation::AllGather | Operation::ReduceScatter | Operation::AllToAll => (n - 1.0) / n,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::Residual;

    /// A broadcast of 2 ms at which one rank comes 50 ms late: the other waits for that. Where the root leaves early nobody waits.
    #[test]
    fn in_a_broadcast_a_rank_waits_until_the_last_one_comes() {
        let kind = Kind {
            operation: Operation::Broadcast,
            bytes: 4,
        };
        let part = |start, end| Part {
            kind,
            span: Span::new(start, end),
            lane: 0,
            row: 0,
        };
        let clocks = Clocks {
            lines: vec![Default::default(); 2],
            residuals: vec![Some(Residual::default()); 2],
            residual: None,
        };
        let waits = |first: Part, second: Part| {
            let mut split = Split {
                sums: vec![Sums::default(); 2],
                waits: vec![Vec::new(); 2],
                ..Split::default()
            };
            let mut members = vec![(0, &first), (1, &second)];
            let lanes = [Vec::new(), Vec::new()];
            add_one_way(
                &Trace::default(),
                &lanes,
                &mut members,
                (&clocks, TOGETHER),
                &mut split,
            );
            let late = split.late_one_way.iter().map(|it| (it.rank, it.by));
            let late: Vec<(usize, Ns)> = late.collect();
            let sums = [split.sums[0], split.sums[1]];
            (sums.map(|it| (it.wait_ns, it.transfer_ns)), late)
        };
        let ms = 1_000_000;
        let late = waits(part(0, 52 * ms), part(50 * ms, 52 * ms));
        assert_eq!(late.0, [(50 * ms, 2 * ms), (0, 2 * ms)]);
        assert_eq!(late.1, [(1, 50 * ms)]);
        let early = waits(part(0, ms), part(0, 9 * ms));
        assert_eq!(early, ([(0, ms), (0, 9 * ms)], Vec::new()));
    }
}
