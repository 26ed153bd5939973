//! Who the others wait for, on which steps, why, and what the job would take without it.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::input::Input;
use super::kernels::{More, Own};
use super::price::{Behind, Price, Replayed};
use super::scatter::{MOST, ORDINARY, is_clear, late_steps};
use super::split::{Late, Split, Wait};
use activity::stats;
use activity::{Ns, Span};
use causes::IdleCause;

/// A rank whose lateness makes less of the run than this is not told of.
const WORTH: f64 = 0.01;
/// Ranks that are replayed without, those first that came last by most.
const ASKED: usize = 8;
/// The part of idle time that is the reason of it.
const CAUSE: f64 = 0.3;
/// The part of all lateness that it has when it is on each step what it is on the usual one, to be called steady.
const STEADY: f64 = 0.3;
/// Where a rank falls behind by this part of what it does where it does most, it is asked why.
const TELLING: f64 = 0.5;
/// Stretches between collectives that tell how a rank is late, where no steps do.
const STRETCHES_MIN: usize = 8;
/// The bit of NVML's reasons for low clocks that says power cap.
const POWER_CAP: u64 = 0x04;

/// What lateness is told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// The program's steps.
    Step,
    /// Where none are known, stretches from one collective to the next of the communicator in which the rank has most.
    Collective,
}

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

/// What a rank did where it fell behind.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// Its GPU was idle: this cause had most of it.
    Idle(Box<IdleCause>),
    /// Its GPU was idle, without one cause that had most of it.
    IdleForMany,
    /// The same kernels take this many times as long as on other ranks.
    SlowKernels(f64),
    /// Its kernels are not those of the others, and take longer in all.
    MoreWork(More),
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
    /// What all of them together would be shorter by, ns.
    pub all_ns: Ns,
    /// Whether less may come of it, as GPUs are at their power cap.
    pub is_capped: bool,
}

/// A step on which a rank was late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateStep {
    /// Which of its steady steps, or of the stretches in their place.
    pub step: usize,
    /// When it came to the collective that shows it, in its own time.
    pub start: Ns,
    /// By how much it fell behind on the way there, ns.
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
    /// By how much it is late on each of these, or of `steps`, where it is latest, ns (median).
    pub by_ns: Ns,
    /// By how much it came later than the last but one, added up, ns.
    pub late_ns: Ns,
    /// `None` where the job cannot be replayed without it.
    pub saving: Option<Saving>,
}

/// What lateness of a rank is told by.
struct Units {
    unit: Stretch,
    /// In the rank's own time.
    spans: Vec<Span>,
    /// Their median length, ns.
    median: Ns,
}

/// The ranks that others wait for, those that cost most first.
pub(super) fn find(known: &Input<'_>, split: &Split) -> Vec<Lateness> {
    let mut by_rank: Vec<Vec<Late>> = vec![Vec::new(); known.units.len()];
    for late in &split.late {
        by_rank[late.rank].push(*late);
    }
    let is_worth = |time: Ns| time as f64 > WORTH * known.span as f64;
    let by = |all: &[Late]| all.iter().map(|late| late.by).sum::<Ns>();
    let mut asked: Vec<usize> = (0..by_rank.len())
        .filter(|it| is_worth(by(&by_rank[*it])))
        .collect();
    asked.sort_by_key(|it| (Reverse(by(&by_rank[*it])), *it));
    asked.truncate(ASKED);
    if asked.is_empty() {
        return Vec::new();
    }
    let replayed = known.causes.and_then(|causes| Replayed::new(known, causes));
    let mut found: Vec<Lateness> = Vec::new();
    for rank in asked {
        let Some(late) = one(known, split, rank, &by_rank[rank], replayed.as_ref()) else {
            continue;
        };
        let cost = late.saving.map_or(late.late_ns, |it| it.all_ns);
        let has_pattern =
            late.pattern != Pattern::Unknown || late.saving.is_none_or(|it| it.steps == 0);
        let is_ordinary = late.saving.is_some() && !(has_pattern && late.reason != Reason::Unknown);
        let least = if is_ordinary { ORDINARY } else { WORTH };
        if cost as f64 > least * known.span as f64 {
            found.push(late);
        }
    }
    let cost = |late: &Lateness| late.saving.map_or(late.late_ns, |saving| saving.all_ns);
    found.sort_by_key(|late| (Reverse(cost(late)), late.rank));
    found
}

/// Nothing where its lateness on steps is no more than chance.
fn one(
    known: &Input<'_>,
    split: &Split,
    rank: usize,
    all: &[Late],
    replayed: Option<&Replayed<'_>>,
) -> Option<Lateness> {
    let units = units(known, rank);
    let spans = &units.spans;
    let (noise, step) = (known.noise as f64, units.median as f64);
    let whole = spans.iter().copied().reduce(Span::hull);
    let looked = whole.unwrap_or(Span::new(Ns::MIN, Ns::MAX));
    let price = replayed.map(|it| price(it, (rank, split), spans, (noise, step), looked));
    let saved = price.as_ref().map(|it| it.within(looked).max(0));
    let on_steps = price.as_ref().map(|it| on_steps(it, spans));
    // Without a replay what the others waited is all that is known of it.
    let behind = price.map_or_else(|| waited_for(all), |it| it.behind);
    let (by_step, of_step) = in_steps(&behind, spans);
    // By how much it falls behind is often made up for by the end of a step.
    let by_step: Vec<f64> = on_steps.unwrap_or(by_step);
    let late = late_steps(&by_step, noise, step);
    let named = late.iter().filter_map(|&step| {
        let (start, by) = of_step.get(&step).map(|it| (it.span.end, it.by))?;
        Some(LateStep { step, start, by })
    });
    let count = (spans.len() as Ns).max(1);
    let now_ns = whole.unwrap_or_default().len() / count;
    // Start-up does other things than the steps that are told of.
    let within = |it: &&Behind| match step_of(spans, it.span.end) {
        Some(step) => late.is_empty() || late.contains(&step),
        None => spans.is_empty(),
    };
    let asked: Vec<Behind> = behind.iter().filter(within).copied().collect();
    let told = of_step
        .iter()
        .filter(|it| late.is_empty() || late.contains(it.0));
    let told: Vec<f64> = told.map(|it| it.1.by as f64).collect();
    Some(Lateness {
        rank,
        by_ns: stats::median(&told).unwrap_or(0.0) as Ns,
        pattern: pattern(late.len(), &by_step)?,
        unit: units.unit,
        steps: named.collect(),
        reason: reason(known, &split.waits[rank], rank, &asked),
        late_ns: all.iter().map(|late| late.by).sum(),
        saving: saved.map(|all_ns| Saving {
            steps: spans.len(),
            now_ns,
            without_ns: (now_ns - all_ns / count).max(0),
            all_ns,
            is_capped: is_capped(known, looked),
        }),
    })
}

/// What others waited for a rank each time.
fn waited_for(all: &[Late]) -> Vec<Behind> {
    let waited = |late: &Late| Behind {
        span: Span::new(late.start - late.by, late.start),
        by: late.by,
    };
    all.iter().map(waited).collect()
}

/// By how much it is behind in each step, and the time at which that is most.
fn in_steps(behind: &[Behind], spans: &[Span]) -> (Vec<f64>, FxHashMap<usize, Behind>) {
    let mut by_step = vec![0.0; spans.len()];
    let mut of_step: FxHashMap<usize, Behind> = FxHashMap::default();
    for it in behind {
        if let Some(step) = step_of(spans, it.span.end) {
            by_step[step] += it.by as f64;
            let most = of_step.entry(step).or_insert(*it);
            if it.by > most.by {
                *most = *it;
            }
        }
    }
    (by_step, of_step)
}

/// What is saved without a rank; where that may be chance, or is more, what is at the places where it loses time.
fn price(
    replayed: &Replayed<'_>,
    (rank, split): (usize, &Split),
    steps: &[Span],
    (noise, step): (f64, f64),
    looked: Span,
) -> Price {
    let price = replayed.price(rank, split);
    let by = on_steps(&price, steps);
    let late = late_steps(&by, noise, step).len();
    // A single late step is no reason not to ask for more.
    let is_told = late != 1 && pattern(late, &by).is_some();
    let is_better = |it: &Price| !is_told || it.within(looked) < price.within(looked);
    let at_places = replayed.at_places(rank, steps, step, noise);
    at_places.filter(is_better).unwrap_or(price)
}

fn on_steps(price: &Price, steps: &[Span]) -> Vec<f64> {
    let within = steps.iter().map(|it| price.within(*it) as f64);
    within.collect()
}

/// Whether their power cap held GPUs down for a tenth of a stretch: who waits less draws more there, and clocks go down for it.
fn is_capped(known: &Input<'_>, stretch: Span) -> bool {
    let readings = known.units.iter().map(|it| known.trace.readings(it.device));
    let slowed = readings.flatten().map(|it| it.slowed(POWER_CAP, stretch));
    let (capped, looked) = slowed.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    capped > 0 && 10 * capped >= looked
}

/// A rank's steps, else its stretches between collectives where there are enough of them.
fn units(known: &Input<'_>, rank: usize) -> Units {
    let process = known.units[rank].process;
    if let Some(steps) = known.steps.iter().find(|steps| steps.process == process) {
        return Units {
            unit: Stretch::Step,
            spans: steps.steady().to_vec(),
            median: steps.main().median_ns,
        };
    }
    let of_groups = known.groups.iter().filter_map(|group| {
        let slot = group.slot(rank)?;
        let starts = (0..group.rows()).filter_map(|row| Some(group.part(row, slot)?.span.start));
        Some(starts.collect::<Vec<Ns>>())
    });
    let mut starts = of_groups.max_by_key(Vec::len).unwrap_or_default();
    starts.sort_unstable();
    let two = starts.windows(2).map(|two| Span::new(two[0], two[1]));
    let mut spans: Vec<Span> = two.filter(|span| !span.is_empty()).collect();
    if spans.len() < STRETCHES_MIN {
        spans.clear();
    }
    let lengths: Vec<f64> = spans.iter().map(|span| span.len() as f64).collect();
    Units {
        unit: Stretch::Collective,
        median: stats::median(&lengths).unwrap_or(0.0) as Ns,
        spans,
    }
}

/// Whether a rank is late in all steps alike, or in so many of them; nothing where it is so by chance.
fn pattern(late: usize, by_step: &[f64]) -> Option<Pattern> {
    let cost = by_step.iter().sum::<f64>();
    let usual = stats::median(by_step).unwrap_or(0.0) * by_step.len() as f64;
    match late {
        0 if by_step.is_empty() => Some(Pattern::Unknown),
        0 if !is_clear(by_step) => None,
        0 if usual >= STEADY * cost => Some(Pattern::Steady),
        0 => Some(Pattern::Unknown),
        late => Some(Pattern::ByTurns {
            late,
            of: by_step.len(),
        }),
    }
}

/// Which of some stretches a moment lies in; they are in order.
pub(super) fn step_of(spans: &[Span], time: Ns) -> Option<usize> {
    let step = spans
        .partition_point(|span| span.start <= time)
        .checked_sub(1)?;
    (time < spans[step].end).then_some(step)
}

/// What a rank did where it fell behind.
fn reason(known: &Input<'_>, waits: &[Wait], rank: usize, behind: &[Behind]) -> Reason {
    // A quarter of all lateness is in stretches with as much as this and more. A single long one of many is not what to ask.
    let mut sorted: Vec<Ns> = behind.iter().map(|it| it.by).collect();
    sorted.sort_unstable_by_key(|by| Reverse(*by));
    let all: Ns = sorted.iter().sum();
    let mut sum = 0;
    let usual = sorted.into_iter().find(|by| {
        sum += by;
        4 * sum >= all
    });
    let telling = behind
        .iter()
        .filter(|it| it.by as f64 >= TELLING * usual.unwrap_or(0) as f64);
    let by: Ns = telling.clone().map(|it| it.by).sum();
    let spans: Vec<Span> = telling.map(|it| it.span).collect();
    let is_most = |time: Ns| time > 0 && time as f64 >= MOST * by as f64;
    let (waited, whom) = waited(waits, &spans);
    let spans = Span::merged(spans);
    if is_most(waited) {
        return whom.map_or(Reason::Unknown, Reason::Waited);
    }
    // What the same stretches are filled with anyway says nothing of why they were longer.
    let more = Own::compare(known, rank, &spans);
    if let Some(found) = more.filter(|it| is_most(it.longer)) {
        return match found.ratio {
            Some(ratio) => Reason::SlowKernels(ratio),
            None => Reason::MoreWork(found.more),
        };
    }
    let device = known.units[rank].device;
    let causes = known
        .causes
        .map(|causes| causes.idle_within(&[device], &spans));
    let causes = causes.unwrap_or_default();
    let idle: Ns = causes.iter().map(|it| it.total_ns).sum();
    match causes.into_iter().max_by_key(|cause| cause.total_ns) {
        Some(_) if !is_most(idle) => Reason::Unknown,
        Some(cause) if cause.total_ns as f64 >= CAUSE * idle as f64 => {
            Reason::Idle(Box::new(cause))
        }
        Some(_) => Reason::IdleForMany,
        None => Reason::Unknown,
    }
}

/// How long a rank itself waited for others within these stretches, and mostly for whom.
fn waited(waits: &[Wait], spans: &[Span]) -> (Ns, Option<usize>) {
    let mut by: FxHashMap<usize, Ns> = FxHashMap::default();
    for span in spans {
        // In the collective that it comes from it was no later than others.
        let from = waits.partition_point(|wait| wait.span.start <= span.start);
        for wait in waits[from..]
            .iter()
            .take_while(|wait| wait.span.start < span.end)
        {
            // What it waits beside its own work does not hold it up.
            let within = wait.span.intersect(*span).len().max(0);
            *by.entry(wait.for_rank).or_default() += within.min(wait.exposed);
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

    /// Two healthy ranks on two H100, by their steps: one launches faster for a while, then the other. Single steps would put 3.5 ms a step
    /// 3.3 standard errors above 0.
    #[test]
    fn who_is_ahead_for_a_while_is_not_late() {
        let steps = [
            -2.08, 1.71, 4.49, 11.05, 17.36, 7.47, 5.35, 14.83, 10.73, 11.96, 9.45, 8.0, 4.87,
            6.97, 2.56, 4.48, 9.35, 11.41, -4.61, 6.64, 16.21, 12.22, 8.56, 6.59, 5.51, 4.67, 6.41,
            7.84, 3.99, 2.36, 4.1, -4.05, 3.26, -3.58, 4.66, 7.87, 7.15, 2.99, -1.26, -10.64,
            -10.31, -12.12, -12.61, -15.04, -10.92, -0.03, 0.0, 0.0,
        ];
        assert_eq!(pattern(0, &steps), None);
        // The same values in another order, none beside one like it, are clear.
        let mixed: Vec<f64> = (0..48).map(|at| steps[at * 19 % 48]).collect();
        assert_eq!(pattern(0, &mixed), Some(Pattern::Steady));
    }

    /// Two ranks of which now this, now that one launches faster: 2.4 ms a step are no more than such steps scatter by (2.4 of 7 ms over
    /// the root of 12). Twelve times as many steps are.
    #[test]
    fn what_scatters_is_steady_only_where_it_is_clear() {
        let some = [
            16.6, -1.5, 5.3, -8.5, 8.2, 4.0, 3.8, -14.4, 6.1, 2.2, 5.7, 1.3,
        ];
        assert_eq!(pattern(0, &some), None);
        assert_eq!(pattern(0, &some.repeat(12)), Some(Pattern::Steady));
    }
}
