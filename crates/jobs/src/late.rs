//! Who the others wait for, on which steps, why, and what a step would take without it.

use rustc_hash::FxHashMap;

use super::delay_origin::{self, Arose, Behind};
use super::rank_pair::{Input, RankPairs, Stretch, Units};
use super::split::{Late, Split, Wait};
use super::work::{self, MOST, SLOW};
use activity::stats;
use activity::{Ns, Span};
use causes::IdleCause;
use trace::parallel;

/// A rank whose lateness makes less of the run than this is not told of.
const WORTH: f64 = 0.01;
/// Of the ranks that a late one works with, so many are held against it.
const ASKED: usize = 8;
/// The part of idle time that is the reason of it.
const CAUSE: f64 = 0.3;
/// The part of all lateness that it has when it is on each step what it is on the usual one, to be called steady.
const STEADY: f64 = 0.3;
/// Being behind by less than this part of a step is not told from unevenness.
const LEAST: f64 = 0.005;

/// How a rank is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// On most steps about alike.
    Steady,
    /// On some steps much more than on the others.
    ByTurns {
        /// How many.
        late: usize,
        /// Steps that were looked at.
        of: usize,
    },
    /// Too few steps and collectives would tell.
    Unknown,
}

/// Where a rank fell behind one that runs the same kernels.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// Its GPU was idle: this cause had most of it.
    Idle(Box<IdleCause>),
    /// Its GPU was idle, without one cause that had most of it.
    IdleForMany,
    /// The same kernels take this many times as long.
    SlowKernels(f64),
    /// Its kernels are not those of the others, and take longer in all.
    MoreWork(work::More),
    /// It waited for another rank itself, in another communicator.
    Waited(usize),
    /// Nothing of that shows, or no other rank runs the same kernels.
    Unknown,
}

/// What a step takes on average, and what it would without the lateness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saving {
    pub steps: usize,
    pub now_ns: Ns,
    pub without_ns: Ns,
    /// What all of them together would be shorter by, ns.
    pub all_ns: Ns,
}

/// A step on which a rank was late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateStep {
    /// Which of its steady steps, or of the stretches in their place.
    pub step: usize,
    /// When it came to the collective that shows it, in its own time.
    pub start: Ns,
    /// By how much later than the last but one, ns.
    pub by: Ns,
}

/// A rank that others wait for.
#[derive(Clone, Debug, PartialEq)]
pub struct Lateness {
    /// Index into the ranks.
    pub rank: usize,
    pub pattern: Pattern,
    /// What `pattern`, `steps` and `saving` count.
    pub unit: Stretch,
    /// The steps on which it is late, when by turns and where a collective shows it; else empty.
    pub steps: Vec<LateStep>,
    pub reason: Reason,
    /// Time that the others waited for it and had no other work, ns.
    pub exposed_ns: Ns,
    /// `None` where no other rank runs the same kernels in its steps.
    pub saving: Option<Saving>,
}

/// The ranks that others wait for, those that cost most first.
pub(super) fn find(known: &Input<'_>, split: &Split) -> Vec<Lateness> {
    let mut by_rank: Vec<Vec<Late>> = vec![Vec::new(); known.units.len()];
    for late in &split.late {
        by_rank[late.rank].push(*late);
    }
    let sides = RankPairs::new(known, split);
    let mut found: Vec<Lateness> = by_rank
        .into_iter()
        .enumerate()
        .filter_map(|(rank, all)| one(known, split, &sides, rank, &all))
        .collect();
    let cost = |late: &Lateness| late.saving.map_or(late.exposed_ns, |saving| saving.all_ns);
    found.sort_by_key(|late| (std::cmp::Reverse(cost(late)), late.rank));
    found
}

fn one(
    known: &Input<'_>,
    split: &Split,
    sides: &RankPairs<'_>,
    rank: usize,
    all: &[Late],
) -> Option<Lateness> {
    let exposed_ns: Ns = all.iter().map(|late| late.exposed).sum();
    let is_worth = |time: Ns| time as f64 > WORTH * known.span as f64;
    let by: Ns = all.iter().map(|late| late.by).sum();
    if !is_worth(by) {
        return None;
    }
    let without_steps = || Lateness {
        rank,
        pattern: Pattern::Unknown,
        unit: Stretch::Step,
        steps: Vec::new(),
        reason: Reason::Unknown,
        exposed_ns,
        saving: None,
    };
    let Some(units) = sides.units(rank) else {
        return is_worth(exposed_ns).then(without_steps);
    };
    let spans = units.spans;
    let least = known.noise.max((LEAST * units.median as f64) as Ns);
    let others = asked(sides, rank);
    let arose = fell_behind(sides, rank, &others, least);
    let by_step = cost_by_step(arose.as_ref(), spans, all);
    let late = late_steps(&by_step, known.noise as f64, units.median as f64);
    let cost = by_step.iter().sum::<f64>();
    let saving = arose.as_ref().map(|_| {
        let count = (spans.len() as Ns).max(1);
        let whole = spans.iter().copied().reduce(Span::hull);
        let now_ns = whole.unwrap_or_default().len() / count;
        Saving {
            steps: spans.len(),
            now_ns,
            without_ns: (now_ns - cost as Ns / count).max(0),
            all_ns: cost as Ns,
        }
    });
    // Where steps are known, what was lost before and behind them is of the start and the end.
    let exposed_ns = match &arose {
        Some(_) => exposed_ns,
        None => by_step.iter().sum::<f64>() as Ns,
    };
    if !is_worth(saving.map_or(exposed_ns, |saving| saving.all_ns)) {
        return None;
    }
    Some(Lateness {
        rank,
        pattern: pattern(late.len(), &by_step),
        unit: units.unit,
        steps: named(&units, &late, all, arose.as_ref().map(|it| &it.nearest)),
        reason: match arose {
            Some(arose) => reason(known, &split.waits[rank], rank, &arose.nearest, &late),
            None => {
                work::more(sides, rank, &others, &units).map_or(Reason::Unknown, Reason::MoreWork)
            }
        },
        exposed_ns,
        saving,
    })
}

/// What a rank's lateness cost by step, ns. Without kernels that are the same, what others lost is all that is known of it.
fn cost_by_step(arose: Option<&Cost>, spans: &[Span], all: &[Late]) -> Vec<f64> {
    if let Some(arose) = arose {
        return arose.cost.iter().map(|cost| *cost as f64).collect();
    }
    let mut sums = vec![0.0; spans.len()];
    for late in all {
        if let Some(step) = step_of(spans, late.start) {
            sums[step] += late.exposed as f64;
        }
    }
    sums
}

/// Whether a rank is late in all steps alike, or in so many of them.
fn pattern(late: usize, by_step: &[f64]) -> Pattern {
    let cost = by_step.iter().sum::<f64>();
    let usual = stats::median(by_step).unwrap_or(0.0) * by_step.len() as f64;
    match late {
        0 if usual >= STEADY * cost => Pattern::Steady,
        0 => Pattern::Unknown,
        late => Pattern::ByTurns {
            late,
            of: by_step.len(),
        },
    }
}

/// What a rank's falling behind cost all others.
struct Cost {
    /// By step, ns: what even the one that is next to it lost.
    cost: Vec<Ns>,
    /// How it fell behind that one.
    nearest: Arose,
}

/// The ranks that a late one works with, some of them where they are many.
fn asked(sides: &RankPairs<'_>, rank: usize) -> Vec<usize> {
    let groups = sides.known.groups.iter();
    let mut others: Vec<usize> = groups
        .filter(|group| group.ranks.contains(&rank))
        .flat_map(|group| group.ranks.iter().copied())
        .filter(|other| *other != rank)
        .collect();
    others.sort_unstable();
    others.dedup();
    let stride = others.len().div_ceil(ASKED).max(1);
    others.into_iter().step_by(stride).collect()
}

fn fell_behind(sides: &RankPairs<'_>, rank: usize, others: &[usize], least: Ns) -> Option<Cost> {
    let late = sides.side(rank)?;
    let all = parallel::map(sides.known.records(), others, |&other| {
        let begun = sides.begun(rank, other);
        delay_origin::between((&late, rank), &sides.side(other)?, &begun, least)
    });
    let all: Vec<Arose> = all.into_iter().flatten().collect();
    let mut cost: Option<Vec<Ns>> = None;
    for arose in &all {
        let by = arose.by_step();
        cost = Some(match cost {
            None => by,
            Some(before) => before.iter().zip(by).map(|(a, b)| (*a).min(b)).collect(),
        });
    }
    let total = |arose: &Arose| arose.paid.iter().map(|behind| behind.by).sum::<Ns>();
    Some(Cost {
        cost: cost?,
        nearest: all.into_iter().min_by_key(total)?,
    })
}

/// These steps, each with the collective that shows it. That is the first one, up to the end of the next step, that it
/// came to late by half of that. Where a step begins is no matter of collectives: its own may lie in the next.
fn named(units: &Units<'_>, late: &[usize], all: &[Late], arose: Option<&Arose>) -> Vec<LateStep> {
    let mut all = all.to_vec();
    all.sort_unstable_by_key(|late| late.start);
    let mut most: FxHashMap<usize, Behind> = FxHashMap::default();
    for behind in arose.into_iter().flat_map(|arose| &arose.paid) {
        let most = most.entry(behind.step).or_insert(*behind);
        if behind.by > most.by {
            *most = *behind;
        }
    }
    let of_step = |&step: &usize| {
        let span = units.spans[step];
        let (near, least) = match most.get(&step) {
            Some(behind) => {
                // In a kernel, or before the first that is known: anywhere in the step.
                let since = behind.idle.map_or(span.start, |idle| idle.end);
                let until = since.max(span.end).saturating_add(units.median);
                (Span::new(since, until), behind.by / 2)
            }
            None => (span, Ns::MAX),
        };
        let from = all.partition_point(|late| late.start < near.start);
        let here = || all[from..].iter().take_while(|late| late.start < near.end);
        // The first that shows it: at the next it may be late anew.
        let first = here().find(|late| late.by >= least);
        let latest = first.or_else(|| here().max_by_key(|late| late.by))?;
        Some(LateStep {
            step: step_of(units.spans, latest.start).unwrap_or(step),
            start: latest.start,
            by: latest.by,
        })
    };
    late.iter().filter_map(of_step).collect()
}

/// Which of some stretches a moment lies in; they are in order.
pub(super) fn step_of(spans: &[Span], time: Ns) -> Option<usize> {
    let step = spans
        .partition_point(|span| span.start <= time)
        .checked_sub(1)?;
    (time < spans[step].end).then_some(step)
}

/// The steps on which lateness is out of the ordinary; none when it is much the same on all. In order of lateness the
/// widest distance parts them from the others: half of the greatest lateness at least.
fn late_steps(by: &[f64], noise: f64, step: f64) -> Vec<usize> {
    let mut sorted = by.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(&most) = sorted.last() else {
        return Vec::new();
    };
    let apart = |two: &&[f64]| two[1] - two[0];
    let widest = sorted
        .windows(2)
        .max_by(|a, b| apart(a).total_cmp(&apart(b)));
    let least = (most / 2.0).max(2.0 * noise).max(0.02 * step);
    let Some(&[_, from]) = widest.filter(|two| apart(two) >= least) else {
        return Vec::new();
    };
    let late: Vec<usize> = (0..by.len()).filter(|&i| by[i] >= from).collect();
    let all: f64 = late.iter().map(|&i| by[i]).sum();
    let is_most = all >= MOST * by.iter().sum::<f64>();
    if is_most && late.len() * 2 <= by.len() {
        late
    } else {
        Vec::new()
    }
}

/// Why a rank fell behind, on these steps or, when there are none, on all.
fn reason(known: &Input<'_>, waits: &[Wait], rank: usize, arose: &Arose, late: &[usize]) -> Reason {
    let asked = |step: usize| late.is_empty() || late.contains(&step);
    let here: Vec<&Behind> = arose.paid.iter().filter(|it| asked(it.step)).collect();
    let all: Ns = here.iter().map(|it| it.by).sum();
    let idle = here.iter().filter(|it| it.idle.is_some());
    let idle: Ns = idle.map(|it| it.by).sum();
    let most = (MOST * all as f64) as Ns;
    if all <= 0 {
        return Reason::Unknown;
    }
    if all - idle >= most {
        let steps = arose.worked.iter().enumerate().filter(|(i, _)| asked(*i));
        let (mine, theirs) = steps.fold((0, 0), |sum, (_, it)| (sum.0 + it.0, sum.1 + it.1));
        let ratio = mine as f64 / theirs.max(1) as f64;
        return if ratio >= SLOW {
            Reason::SlowKernels(ratio)
        } else {
            Reason::Unknown
        };
    }
    let spans = Span::merged(here.iter().filter_map(|it| it.idle).collect());
    let (waited, whom) = waited(waits, &spans);
    if waited >= most {
        return whom.map_or(Reason::Unknown, Reason::Waited);
    }
    let causes = known
        .causes
        .map(|causes| causes.idle_within(&[known.units[rank].device], &spans));
    match causes.and_then(|all| all.into_iter().max_by_key(|cause| cause.total_ns)) {
        Some(cause) if cause.total_ns as f64 >= CAUSE * idle as f64 => {
            Reason::Idle(Box::new(cause))
        }
        _ => Reason::IdleForMany,
    }
}

/// How long a rank itself waited for others within these stretches, and mostly for whom.
fn waited(waits: &[Wait], spans: &[Span]) -> (Ns, Option<usize>) {
    let mut by: FxHashMap<usize, Ns> = FxHashMap::default();
    for span in spans {
        let from = waits.partition_point(|wait| wait.span.start < span.start);
        for wait in waits[from..]
            .iter()
            .take_while(|wait| wait.span.start < span.end)
        {
            *by.entry(wait.for_rank).or_default() += wait.span.intersect(*span).len().max(0);
        }
    }
    let whom = by.iter().max_by_key(|(rank, time)| (**time, **rank));
    (by.values().sum(), whom.map(|(rank, _)| *rank))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_third_step_is_by_turns_and_every_step_is_not() {
        let third: Vec<f64> = (0..12)
            .map(|i| if i % 3 == 0 { 3_000_000.0 } else { 40_000.0 })
            .collect();
        assert_eq!(late_steps(&third, 30_000.0, 2e7), [0, 3, 6, 9]);
        let every: Vec<f64> = (0..12)
            .map(|i| 3_000_000.0 + f64::from(i) * 1_000.0)
            .collect();
        assert!(late_steps(&every, 30_000.0, 2e7).is_empty());
        assert!(late_steps(&[], 30_000.0, 2e7).is_empty());
    }
}
