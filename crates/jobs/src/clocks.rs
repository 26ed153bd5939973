//! The ranks' clocks, aligned on the ends of their collectives.
//!
//! What cannot end on one rank before it has begun on all ends on all at about the same moment. A rank's clock lies off
//! by a line (offset and drift) through these ends. Ranks of one process, or of one export, have one clock. What the ends lie off the line is the residual, which stands beside
//! every figure that rests on it. On a timeline set to one clock already, a rank whose line lies within its residual
//! stays there.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::group::Group;
use super::line::{self, Line};
use activity::stats;
use activity::text::plural;
use activity::units::duration;
use activity::{Ns, Span};
use trace::parallel;

/// Collectives of a communicator that are looked at, spread over all that there are.
const POINTS: usize = 2_000;
/// Fewer collectives of two ranks show no residual, and may be alike by chance: they align nothing.
const LEAST: usize = 3;
/// Rounds in which each rank is set against the others as they were left by the round before.
const ROUNDS: usize = 3;
/// A host's ranks share one line where that fits them this much worse at most, and by no more than some us.
const SHARED: f64 = 1.25;
const SHARED_NS: f64 = 2_000.0;

/// A clock that was set is not set again for less, ns.
const STAYS: Ns = 1_000;

/// Collectives whose medians are looked for together.
const AT_ONCE: usize = 128;

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
    /// How well each is known; `None` for a rank that shares no collective with that one: its wall clock is believed.
    /// On a host of which others are known, that host's line is believed.
    pub residuals: Vec<Option<Residual>>,
    /// Of all together.
    pub residual: Option<Residual>,
}

impl Clocks {
    /// Times of two ranks that lie no further apart than this are not told apart, ns.
    pub fn noise(&self) -> Ns {
        self.residual.map_or(0, |residual| residual.p95_ns as Ns)
    }

    /// How well they are aligned, in a few words: "clocks aligned to ± 14 us over 96 collectives", else "wall clock".
    pub fn words(&self) -> String {
        let long = self.short().replacen("clocks", "clocks aligned to", 1);
        let count = self
            .residual
            .map(|it| plural(it.count as u64, "collective"));
        count.map_or(long.clone(), |count| format!("{long} over {count}"))
    }

    /// The same where there is little room: "clocks ± 14 us".
    pub fn short(&self) -> String {
        match self.residual {
            Some(it) => format!("clocks ± {}", duration(it.median_ns as Ns)),
            None => "wall clock".to_owned(),
        }
    }
}

/// The end of each rank's part of a collective, by rank.
type Ends = Vec<(usize, Ns)>;

/// Times on a rank's own clock, and on that of all as the others have it.
type Points = Vec<(Ns, Ns)>;

/// Aligns so many ranks, on these hosts (empty: unknown). Those of one owner have its clock. Of ranks that are `set` to one clock those
/// stay as they are whose lines have not changed beyond what the ends tell.
pub(super) fn align(hosts: &[&str], owners: &[usize], groups: &[Group], is_set: bool) -> Clocks {
    let ranks = hosts.len();
    let (collectives, count) = ends(groups);
    let root = root(groups);
    let (mut lines, mut is_known) = spread(ranks, root, groups);
    // The first of an owner's ranks that is known stands for all of them.
    let mates = |rank: usize| (0..ranks).filter(move |&mate| owners[mate] == owners[rank]);
    for rank in 0..ranks {
        let known = [root].into_iter().filter(|_| owners[rank] == owners[root]);
        if let Some(mate) = known.chain(mates(rank)).find(|&mate| is_known[mate]) {
            (lines[rank], is_known[rank]) = (lines[mate], true);
        }
    }
    for _ in 0..ROUNDS {
        let points = points(&collectives, &lines, &is_known);
        let all: Vec<usize> = (0..ranks).collect();
        let records = points.iter().map(Vec::len).sum();
        lines = parallel::map(records, &all, |&rank| {
            let is_asked = owners[rank] != owners[root] && is_known[rank];
            let improved = is_asked.then(|| {
                let all = mates(rank).flat_map(|mate| points[mate].iter().copied());
                line::through(&all.collect::<Points>(), Some(&lines[rank]))
            });
            improved.flatten().unwrap_or(lines[rank])
        });
    }
    let last = points(&collectives, &lines, &is_known);
    share_hosts(hosts, root, &is_known, &mut lines, &last);
    let off = |lines: &[Line]| -> Vec<Vec<f64>> {
        let points = points(&collectives, lines, &is_known);
        let of = |rank: usize| match is_known[rank] {
            true => distances(&lines[rank], &points[rank]),
            false => Vec::new(),
        };
        (0..ranks).map(of).collect()
    };
    let mut all = off(&lines);
    if is_set {
        let all_off = all.concat();
        let limit = stats::quantile(&all_off, 0.95).unwrap_or(0.0) as Ns;
        for (line, points) in lines.iter_mut().zip(&last) {
            let (first, end) = (points.first(), points.last());
            let moves = first.zip(end).map_or_else(
                || line.offset.abs(),
                |(first, end)| line.most(Span::new(first.0, end.0)),
            );
            if moves <= limit.max(STAYS) {
                *line = Line::default();
            }
        }
        all = off(&lines);
    }
    Clocks {
        residuals: all.iter().map(|off| residual(off, off.len())).collect(),
        residual: residual(&all.concat(), count),
        lines,
    }
}

/// How far the points lie off a line, ns.
fn distances(line: &Line, points: &[(Ns, Ns)]) -> Vec<f64> {
    let off = |(own, other): &(Ns, Ns)| (line.apply(*own) - other).abs() as f64;
    points.iter().map(off).collect()
}

/// By rank, each of its ends, and the median of those of the others whose clocks are known, by these lines.
fn points(collectives: &[Ends], lines: &[Line], is_known: &[bool]) -> Vec<Points> {
    let records = collectives.iter().map(Vec::len).sum();
    let some: Vec<&[Ends]> = collectives.chunks(AT_ONCE).collect();
    let medians = parallel::map(records, &some, |some| {
        let mut found: Vec<(usize, Ns, Ns)> = Vec::new();
        let mut ends: Vec<(Ns, usize)> = Vec::new();
        for members in *some {
            ends.clear();
            let known = members.iter().filter(|(rank, _)| is_known[*rank]);
            ends.extend(known.map(|&(rank, end)| (lines[rank].apply(end), rank)));
            ends.sort_unstable();
            for &(rank, own) in members {
                let place = (lines[rank].apply(own), rank);
                let without = ends.binary_search(&place).ok();
                if let Some(median) = median_without(&ends, without) {
                    found.push((rank, own, median));
                }
            }
        }
        found
    });
    let mut points = vec![Points::new(); lines.len()];
    for (rank, own, median) in medians.into_iter().flatten() {
        points[rank].push((own, median));
    }
    points
}

/// The median time of a sorted row, of which one is left out.
fn median_without(sorted: &[(Ns, usize)], without: Option<usize>) -> Option<Ns> {
    let count = sorted.len() - usize::from(without.is_some());
    let at = |i: usize| {
        let skipped = usize::from(without.is_some_and(|without| i >= without));
        sorted[i + skipped].0
    };
    match count {
        0 => None,
        odd if odd % 2 == 1 => Some(at(odd / 2)),
        even => Some(at(even / 2 - 1).midpoint(at(even / 2))),
    }
}

fn residual(off: &[f64], count: usize) -> Option<Residual> {
    Some(Residual {
        median_ns: stats::median(off)?,
        p95_ns: stats::quantile(off, 0.95)?,
        count,
    })
}

/// The ends of collectives that say something, of those that are looked at, and how many such there are.
fn ends(groups: &[Group]) -> (Vec<Ends>, usize) {
    let mut all = Vec::new();
    let mut count = 0;
    for group in groups {
        let mutual: Vec<usize> = (0..group.rows())
            .filter(|&row| group.is_mutual(row))
            .collect();
        count += mutual.len();
        for &row in mutual.iter().step_by(mutual.len().div_ceil(POINTS).max(1)) {
            let members = group.members(row).into_iter();
            let ends = members.map(|(slot, part)| (group.ranks[slot], part.span.end));
            all.push(ends.collect());
        }
    }
    (all, count)
}

/// Whose clock is that of all: of the ranks of the greatest communicator the first.
fn root(groups: &[Group]) -> usize {
    let first = groups.first().and_then(|group| group.ranks.iter().min());
    first.copied().unwrap_or(0)
}

/// First lines: through the ends of two ranks each, from the root on to whoever shares a communicator with one that is
/// known. All of a communicator were matched with its first, which so shares most with each.
fn spread(ranks: usize, root: usize, groups: &[Group]) -> (Vec<Line>, Vec<bool>) {
    let mut lines = vec![Line::default(); ranks];
    let mut is_known = vec![false; ranks];
    if let Some(first) = is_known.get_mut(root) {
        *first = true;
    }
    let mut set = |slot: usize, by: usize, group: &Group, is_known: &mut [bool]| {
        let (rank, with) = (group.ranks[slot], group.ranks[by]);
        let points = shared(group, slot, by);
        if points.len() < LEAST {
            return;
        }
        if let Some(line) = line::through(&points, None) {
            lines[rank] = line.then(&lines[with]);
            is_known[rank] = true;
        }
    };
    loop {
        let before = is_known.iter().filter(|known| **known).count();
        for group in groups {
            let slots = 0..group.ranks.len();
            if !is_known[group.ranks[0]] {
                let known = slots.clone().filter(|&slot| is_known[group.ranks[slot]]);
                let most = known.max_by_key(|&slot| (shared(group, 0, slot).len(), Reverse(slot)));
                if let Some(slot) = most {
                    set(0, slot, group, &mut is_known);
                }
            }
            if is_known[group.ranks[0]] {
                for slot in slots {
                    if !is_known[group.ranks[slot]] {
                        set(slot, 0, group, &mut is_known);
                    }
                }
            }
        }
        if is_known.iter().filter(|known| **known).count() == before {
            return (lines, is_known);
        }
    }
}

/// The ends of the collectives of two ranks of a group.
fn shared(group: &Group, slot: usize, other: usize) -> Points {
    let step = group.rows().div_ceil(POINTS).max(1);
    let rows = (0..group.rows()).step_by(step);
    rows.filter_map(|row| {
        let (own, other) = (group.part(row, slot)?, group.part(row, other)?);
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
    points: &[Points],
) {
    let names: BTreeSet<&str> = hosts.iter().copied().collect();
    for name in names.into_iter().filter(|host| !host.is_empty()) {
        let here = |known: bool| -> Vec<usize> {
            let all = 0..hosts.len();
            all.filter(|&r| hosts[r] == name && is_known[r] == known)
                .collect()
        };
        let known = here(true);
        let Some(&first) = known.first() else {
            continue;
        };
        let all: Vec<&[(Ns, Ns)]> = known.iter().map(|&r| points[r].as_slice()).collect();
        let line = match known.contains(&root) {
            true => Some(Line::default()),
            false => line::through(&all.concat(), None),
        };
        let Some(line) = line else {
            continue;
        };
        let off = |line: &Line, points: &[(Ns, Ns)]| -> f64 {
            stats::median(&distances(line, points)).unwrap_or(0.0)
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
