//! The ranks' clocks, aligned on the ends of their collectives.
//!
//! What cannot end on one rank before it has begun on all ends on all at about the same moment. A line (offset and drift)
//! through these ends is what a rank's clock lies off; what the ends lie off the line is the residual, which is said with every
//! figure that rests on it. Times on the timeline stay as they were recorded.

use super::group::Group;
use super::line::Line;
use crate::activity::Ns;
use crate::analysis::stats;

/// Collectives of a rank that are looked at, spread over all that there are.
const POINTS: usize = 2_000;
/// Rounds in which each rank is set against the others as they were left by the round before.
const ROUNDS: usize = 3;
/// A host's ranks share one line where that fits them this much worse at most, and by no more than some us.
const SHARED: f64 = 1.25;
const SHARED_NS: f64 = 2_000.0;

/// How well the ends of collectives lie together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Residual {
    /// Median distance of a rank's end from that of the others, ns.
    pub median_ns: f64,
    /// The distance that 95 % do not exceed, ns.
    pub p95_ns: f64,
    /// Collectives that it rests on.
    pub count: usize,
}

/// What was found of the clocks.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    /// From each rank's own time to that of one of them, whose clock is that of all.
    pub lines: Vec<Line>,
    /// How well each is known; `None` for a rank that shares no collective with that one, whose wall clock (or, on a
    /// host of which others are known, that host's line) is believed.
    pub residuals: Vec<Option<Residual>>,
    /// Of all together.
    pub residual: Option<Residual>,
}

/// The end of each rank's part of a collective, by rank.
type Ends = Vec<(usize, Ns)>;

/// A rank's ends and those of the others, by these lines.
type Points<'a> = dyn Fn(&[Line], usize) -> Vec<(Ns, Ns)> + 'a;

/// Aligns so many ranks, on these hosts (empty: unknown).
pub(super) fn align(hosts: &[&str], groups: &[Group]) -> Clocks {
    let ranks = hosts.len();
    let collectives = ends(groups);
    let mut of_rank: Vec<Vec<usize>> = vec![Vec::new(); ranks];
    for (at, members) in collectives.iter().enumerate() {
        for (rank, _) in members {
            of_rank[*rank].push(at);
        }
    }
    for list in &mut of_rank {
        let step = list.len().div_ceil(POINTS).max(1);
        *list = list.iter().copied().step_by(step).collect();
    }
    let root = root(groups);
    let (mut lines, is_known) = spread(ranks, root, groups);
    let others = |lines: &[Line], rank: usize, at: usize| -> Option<(Ns, Ns)> {
        let members = &collectives[at];
        let own = members.iter().find(|(r, _)| *r == rank)?.1;
        let known = members.iter().filter(|(r, _)| *r != rank && is_known[*r]);
        let ends: Vec<f64> = known
            // Against its own end, for the sake of small numbers.
            .map(|(r, end)| lines[*r].apply(*end).saturating_sub(own) as f64)
            .collect();
        Some((own, own.saturating_add(stats::median(&ends)? as Ns)))
    };
    let points = |lines: &[Line], rank: usize| -> Vec<(Ns, Ns)> {
        let mine = of_rank[rank].iter();
        mine.filter_map(|&at| others(lines, rank, at)).collect()
    };
    for _ in 0..ROUNDS {
        for rank in (0..ranks).filter(|&rank| rank != root && is_known[rank]) {
            if let Some(line) = Line::through(&points(&lines, rank)) {
                lines[rank] = line;
            }
        }
    }
    share_hosts(hosts, root, &is_known, &mut lines, &points);
    let off = |rank: usize| -> Vec<f64> {
        let mine = points(&lines, rank).into_iter();
        mine.map(|(own, other)| (lines[rank].apply(own) - other).abs() as f64)
            .collect()
    };
    let all: Vec<Vec<f64>> = (0..ranks)
        .map(|rank| {
            if is_known[rank] {
                off(rank)
            } else {
                Vec::new()
            }
        })
        .collect();
    Clocks {
        residuals: all.iter().map(|off| residual(off, off.len())).collect(),
        residual: residual(&all.concat(), collectives.len()),
        lines,
    }
}

fn residual(off: &[f64], count: usize) -> Option<Residual> {
    Some(Residual {
        median_ns: stats::median(off)?,
        p95_ns: stats::quantile(off, 0.95)?,
        count,
    })
}

/// Every collective whose ends say something.
fn ends(groups: &[Group]) -> Vec<Ends> {
    let mut all = Vec::new();
    for group in groups {
        for members in group.collectives() {
            if members[0].1.kind.operation.is_mutual() {
                let ends = members.iter();
                all.push(
                    ends.map(|(slot, part)| (group.ranks[*slot], part.span.end))
                        .collect(),
                );
            }
        }
    }
    all
}

/// Whose clock is that of all: of the ranks of the greatest communicator the first.
fn root(groups: &[Group]) -> usize {
    let first = groups.first().and_then(|group| group.ranks.iter().min());
    first.copied().unwrap_or(0)
}

/// First lines: through the ends of two ranks each, from the root on to whoever shares a communicator with one that is
/// known.
fn spread(ranks: usize, root: usize, groups: &[Group]) -> (Vec<Line>, Vec<bool>) {
    let mut lines = vec![Line::default(); ranks];
    let mut is_known = vec![false; ranks];
    if let Some(first) = is_known.get_mut(root) {
        *first = true;
    }
    loop {
        let before = is_known.iter().filter(|known| **known).count();
        for group in groups {
            for (slot, &rank) in group.ranks.iter().enumerate() {
                if is_known[rank] {
                    continue;
                }
                // Against the one of those known that it shares most with.
                let with = group.ranks.iter().enumerate();
                let best = with
                    .filter(|(_, other)| is_known[**other])
                    .map(|(other, _)| (other, shared(group, slot, other)))
                    .max_by_key(|(other, points)| (points.len(), std::cmp::Reverse(*other)));
                if let Some((other, points)) = best
                    && let Some(line) = Line::through(&points)
                {
                    lines[rank] = line.then(&lines[group.ranks[other]]);
                    is_known[rank] = true;
                }
            }
        }
        if is_known.iter().filter(|known| **known).count() == before {
            return (lines, is_known);
        }
    }
}

/// The ends of the collectives of two ranks of a group.
fn shared(group: &Group, slot: usize, other: usize) -> Vec<(Ns, Ns)> {
    let step = group.rows().div_ceil(POINTS).max(1);
    let rows = (0..group.rows()).step_by(step);
    rows.filter_map(|row| {
        let members = group.members(row);
        let end = |wanted: usize| {
            members
                .iter()
                .find(|(s, _)| *s == wanted)
                .map(|(_, part)| part)
        };
        let (own, other) = (end(slot)?, end(other)?);
        let is_mutual = own.kind.operation.is_mutual();
        is_mutual.then_some((own.span.end, other.span.end))
    })
    .collect()
}

/// Processes of one host read one clock. Where one line fits all of a host's ranks about as well as a line each, it
/// is theirs: there are more ends for it. Ranks without a line of their own get that of their host's others.
fn share_hosts(
    hosts: &[&str],
    root: usize,
    is_known: &[bool],
    lines: &mut [Line],
    points: &Points<'_>,
) {
    let mut names: Vec<&str> = hosts
        .iter()
        .copied()
        .filter(|host| !host.is_empty())
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let here = |known: bool| -> Vec<usize> {
            let all = 0..hosts.len();
            all.filter(|&r| hosts[r] == name && is_known[r] == known)
                .collect()
        };
        let known = here(true);
        let Some(&first) = known.first() else {
            continue;
        };
        let all: Vec<Vec<(Ns, Ns)>> = known.iter().map(|&r| points(lines, r)).collect();
        let line = match known.contains(&root) {
            true => Some(Line::default()),
            false => Line::through(&all.concat()),
        };
        let Some(line) = line else {
            continue;
        };
        let off = |line: &Line, points: &[(Ns, Ns)]| -> f64 {
            let off = points
                .iter()
                .map(|(x, y)| (line.apply(*x) - y).abs() as f64);
            stats::median(&off.collect::<Vec<_>>()).unwrap_or(0.0)
        };
        let fits = known.iter().zip(&all).all(|(&rank, points)| {
            off(&line, points) <= SHARED * off(&lines[rank], points) + SHARED_NS
        });
        if fits {
            for &rank in &known {
                lines[rank] = line;
            }
        }
        for rank in here(false) {
            lines[rank] = if fits { line } else { lines[first] };
        }
    }
}
