//! Who the others wait for, on which steps, why, and what a step would take without it.

use rustc_hash::FxHashMap;

use super::collect::Unit;
use super::split::{Late, Split, Wait};
use crate::activity::{Ns, ShapeId, Span, What};
use crate::analysis::causes::{Causes, IdleCause};
use crate::analysis::stats;
use crate::analysis::steps::Steps;
use crate::trace::{LaneKind, Measure, Trace};

/// A rank whose lateness makes less of the run than this is not told of.
const WORTH: f64 = 0.01;
/// Collectives that are looked at to tell why one is late: those at which it was latest.
const LOOKED_AT: usize = 200;
/// A part of the excess that is a reason, and one that is the reason of idle time.
const MOST: f64 = 0.5;
const CAUSE: f64 = 0.3;
/// Kernels that take this much longer than another rank's same ones are slow.
const SLOW: f64 = 1.05;

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
    /// No steps are known that would tell.
    Unknown,
}

/// What a rank had more of than the one that waited longest, between what both last did together and its arrival.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// Its GPU was idle: this cause had most of it.
    Idle(Box<IdleCause>),
    /// Its GPU was idle, without one cause that had most of it.
    IdleForMany,
    /// The same kernels take this many times as long.
    SlowKernels(f64),
    /// It had this many times as much to do.
    MoreWork(f64),
    /// It waited for another rank itself, in another communicator.
    Waited(usize),
    /// Nothing of that shows.
    Unknown,
}

/// What a step takes on average, and what it would without the lateness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saving {
    pub steps: usize,
    pub now_ns: Ns,
    pub without_ns: Ns,
}

/// A rank that others wait for.
#[derive(Clone, Debug, PartialEq)]
pub struct Lateness {
    /// Index into the ranks.
    pub rank: usize,
    pub pattern: Pattern,
    pub reason: Reason,
    /// Time that the others lost and could not use, ns: what the run would be shorter by.
    pub saving_ns: Ns,
    pub saving: Option<Saving>,
}

/// What is known beside the collectives.
pub(super) struct Known<'a> {
    pub(super) trace: &'a Trace,
    pub(super) units: &'a [Unit],
    pub(super) causes: Option<&'a Causes<'a>>,
    pub(super) steps: &'a [Steps],
    /// First to last collective, ns.
    pub(super) span: Ns,
    pub(super) noise: Ns,
}

/// The ranks that others wait for, those that cost most first.
pub(super) fn of(known: &Known<'_>, split: &Split) -> Vec<Lateness> {
    let mut by_rank: Vec<Vec<Late>> = vec![Vec::new(); known.units.len()];
    for late in &split.late {
        by_rank[late.rank].push(*late);
    }
    let mut found: Vec<Lateness> = by_rank
        .into_iter()
        .enumerate()
        .filter_map(|(rank, all)| one(known, split, rank, all))
        .collect();
    found.sort_by_key(|late| (std::cmp::Reverse(late.saving_ns), late.rank));
    found
}

fn one(known: &Known<'_>, split: &Split, rank: usize, mut all: Vec<Late>) -> Option<Lateness> {
    let exposed: Ns = all.iter().map(|late| late.exposed).sum();
    if exposed as f64 <= WORTH * known.span as f64 {
        return None;
    }
    let process = known.units[rank].process;
    let steps = known.steps.iter().find(|steps| steps.process == process);
    let (mut pattern, mut saving_ns, mut saving) = (Pattern::Unknown, exposed, None);
    if let Some(steps) = steps {
        let spans = steps.steady();
        let by_step = |what: fn(&Late) -> Ns| -> Vec<f64> {
            let mut sums = vec![0.0; spans.len()];
            for late in &all {
                if let Some(step) = step_of(spans, late.start) {
                    sums[step] += what(late) as f64;
                }
            }
            sums
        };
        let (by, useful) = (by_step(|late| late.by), by_step(|late| late.exposed));
        let late = late_steps(&by, known.noise as f64, steps.median_ns as f64);
        let of_steps = if late.is_empty() {
            pattern = Pattern::Steady;
            useful.iter().sum::<f64>()
        } else {
            pattern = Pattern::ByTurns {
                late: late.len(),
                of: spans.len(),
            };
            let usual = stats::median(&useful).unwrap_or(0.0);
            saving_ns = late
                .iter()
                .map(|&i| (useful[i] - usual).max(0.0) as Ns)
                .sum();
            // Why it is late is asked of the steps on which it is.
            all.retain(|l| step_of(spans, l.start).is_some_and(|step| late.contains(&step)));
            saving_ns as f64
        };
        let count = spans.len() as Ns;
        let now_ns = steps.steady_span().len() / count.max(1);
        saving = Some(Saving {
            steps: spans.len(),
            now_ns,
            without_ns: (now_ns - of_steps as Ns / count.max(1)).max(0),
        });
    }
    Some(Lateness {
        rank,
        pattern,
        reason: reason(known, split, rank, all),
        saving_ns,
        saving,
    })
}

fn step_of(spans: &[Span], time: Ns) -> Option<usize> {
    let step = spans
        .partition_point(|span| span.start <= time)
        .checked_sub(1)?;
    (time < spans[step].end).then_some(step)
}

/// The steps on which lateness is out of the ordinary; none when it is much the same on all.
fn late_steps(by: &[f64], noise: f64, step: f64) -> Vec<usize> {
    let (Some(usual), Some(spread)) = (stats::median(by), stats::median_deviation(by)) else {
        return Vec::new();
    };
    let limit = usual + (4.0 * 1.4826 * spread).max(2.0 * noise).max(0.02 * step);
    let late: Vec<usize> = (0..by.len()).filter(|&i| by[i] > limit).collect();
    let more: f64 = late.iter().map(|&i| by[i] - usual).sum();
    let is_most = more >= MOST * by.iter().sum::<f64>();
    if is_most && late.len() * 2 <= by.len() {
        late
    } else {
        Vec::new()
    }
}

fn reason(known: &Known<'_>, split: &Split, rank: usize, mut all: Vec<Late>) -> Reason {
    // One other rank to compare with: the one that waited longest most often.
    let mut firsts: FxHashMap<usize, Ns> = FxHashMap::default();
    for late in &all {
        *firsts.entry(late.first).or_default() += late.by;
    }
    let Some((&other, _)) = firsts.iter().max_by_key(|(rank, by)| (**by, **rank)) else {
        return Reason::Unknown;
    };
    all.retain(|late| late.first == other && late.before < late.start);
    all.sort_by_key(|late| std::cmp::Reverse(late.by));
    all.truncate(LOOKED_AT);
    let own = apart(all.iter().map(|l| Span::new(l.before, l.start)));
    let others = apart(all.iter().map(|l| Span::new(l.first_before, l.first_start)));
    let length = |spans: &[Span]| spans.iter().map(|span| span.len()).sum::<Ns>();
    let busy = |rank: usize, spans: &[Span]| -> Ns {
        let usage = &known.trace.devices()[known.units[rank].device].usage;
        spans
            .iter()
            .map(|span| usage.time(Measure::Busy, *span))
            .sum()
    };
    let (waited, whom) = waited(&split.waits[rank], &own);
    let waited_more = waited - self::waited(&split.waits[other], &others).0;
    let excess = length(&own) - length(&others);
    let (busy_own, busy_other) = (busy(rank, &own), busy(other, &others));
    let worked_more = busy_own - busy_other - waited_more;
    let most = (MOST * excess as f64) as Ns;
    match excess {
        ..=0 => Reason::Unknown,
        _ if waited_more >= most => whom.map_or(Reason::Unknown, Reason::Waited),
        _ if worked_more >= most => {
            let ratio = kernel_ratio(known, (rank, &own), (other, &others));
            if ratio >= SLOW {
                return Reason::SlowKernels(ratio);
            }
            Reason::MoreWork(busy_own as f64 / busy_other.max(1) as f64)
        }
        _ if excess - worked_more - waited_more >= most => {
            let idle = excess - (busy_own - busy_other);
            idle_reason(known, (rank, &own), (other, &others), idle)
        }
        _ => Reason::Unknown,
    }
}

/// Stretches in order of time, without those that lie in another.
fn apart(spans: impl Iterator<Item = Span>) -> Vec<Span> {
    let mut spans: Vec<Span> = spans.collect();
    spans.sort_unstable();
    let mut apart: Vec<Span> = Vec::new();
    for span in spans {
        if apart.last().is_none_or(|last| last.end <= span.start) {
            apart.push(span);
        }
    }
    apart
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

fn idle_reason(
    known: &Known<'_>,
    (rank, own): (usize, &[Span]),
    (other, others): (usize, &[Span]),
    excess: Ns,
) -> Reason {
    let Some(causes) = known.causes else {
        return Reason::IdleForMany;
    };
    let device = |rank: usize| [known.units[rank].device];
    let theirs = causes.idle_within(&device(other), others);
    let more = |cause: &IdleCause| -> Ns {
        let same = theirs
            .iter()
            .filter(|o| (o.kind, &o.culprit) == (cause.kind, &cause.culprit));
        cause.total_ns - same.map(|o| o.total_ns).sum::<Ns>()
    };
    let mine = causes.idle_within(&device(rank), own);
    let most = mine.into_iter().max_by_key(|cause| more(cause));
    match most {
        Some(cause) if more(&cause) as f64 >= CAUSE * excess as f64 => {
            Reason::Idle(Box::new(cause))
        }
        _ => Reason::IdleForMany,
    }
}

/// How many times as long the kernels take that both ran in these stretches.
fn kernel_ratio(
    known: &Known<'_>,
    (rank, own): (usize, &[Span]),
    (other, others): (usize, &[Span]),
) -> f64 {
    let (mine, theirs) = (kernels(known, rank, own), kernels(known, other, others));
    let (mut own, mut other) = (0.0, 0.0);
    for (shape, (count, time)) in &mine {
        if let Some((count_other, time_other)) = theirs.get(shape) {
            own += *time as f64;
            other += *time_other as f64 / *count_other as f64 * *count as f64;
        }
    }
    if other > 0.0 { own / other } else { 1.0 }
}

/// Count and time of a rank's kernels, but collectives, by what they are.
fn kernels(known: &Known<'_>, rank: usize, spans: &[Span]) -> FxHashMap<ShapeId, (u64, Ns)> {
    let unit = known.units[rank];
    let mut sums: FxHashMap<ShapeId, (u64, Ns)> = FxHashMap::default();
    for (id, lane) in known.trace.lanes().iter().enumerate() {
        let key = lane.key();
        let is_its = matches!(key.kind, LaneKind::Stream { device, .. } if device == unit.device);
        if !is_its || key.process != unit.process {
            continue;
        }
        for span in spans {
            for row in lane.starting(*span) {
                if let What::Kernel(kernel) = known.trace.activity(id, row).what {
                    let sum = sums.entry(kernel.shape).or_default();
                    sum.0 += 1;
                    sum.1 += lane.span(row).len();
                }
            }
        }
    }
    sums
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
