//! The kinds of steps that a program takes by turns, and the odd ones of each.
//!
//! Steps are of one kind where they share most of their operations. A few with something more are no kind of their own: a training
//! step that also saves is an odd training step. The same operations are two kinds where the work in them is clearly of two
//! sorts, and both are more than a few.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::operations::ProcessOperations;
use super::slow::{self, Slow};
use super::{Origin, Phase, Steps};
use crate::breakdown::Breakdown;
use activity::{Direction, NameId, Ns, Span, What};
use activity::{stats, units};
use trace::{Trace, short};

/// So many kinds are told apart; what is like none of them counts to the nearest.
const KINDS_MAX: usize = 8;

/// A kind is that, and no pair of single steps, from this number on.
pub(super) const LEAST: usize = 3;

/// Times the median distance from the median it is a normal distribution's standard deviation.
const DEVIATION: f64 = 1.4826;

/// Steps of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepKind {
    /// What tells it from the other kinds: "decode", "long"; empty where there is no other.
    pub name: String,
    /// Its steps, in order: indices into [`Steps::spans`](super::Steps::spans).
    pub steps: Vec<usize>,
    /// Those of them that take over one and a half times the median; at most one in five.
    pub odd: Vec<usize>,
    /// The odd ones that cost: those with a quarter of the longest one's excess, where they come regularly or hold nearly all of it.
    /// One that holds the operations of several is measured against as many.
    pub costly: Vec<usize>,
    /// How many steps lie from one of these to the next, where that is the same for most: "every 20th step".
    pub every: Option<usize>,
    /// Whether so many take so much longer that no step is like the others: mean and range say more than a median.
    pub is_uneven: bool,
    /// The step of median length among those that are not odd, of two the shorter.
    pub typical: usize,
    /// Median time of those that are not odd.
    pub median_ns: Ns,
    /// The time that 95 % of all do not exceed.
    pub p95_ns: Ns,
    /// Median distance of their time from the median, times 1.4826: of a normal distribution its standard deviation.
    pub deviation_ns: Ns,
    /// The shortest, and the longest.
    pub range: (Ns, Ns),
    /// Time of all of them.
    pub total_ns: Ns,
    /// How many are slow: above the median by more than 5 % of it and by more than four deviations.
    pub slow_count: usize,
    /// The slowest of them, slowest first, at most [`Slow::SHOWN`].
    pub slow: Vec<Slow>,
}

impl StepKind {
    /// The steps that are not odd: what is said of "each step" is said of these.
    pub fn regular(&self) -> impl Iterator<Item = usize> + '_ {
        let is_odd = |step: &usize| self.odd.binary_search(step).is_ok();
        self.steps.iter().copied().filter(move |step| !is_odd(step))
    }

    /// How long they take: "56.1 ms", of uneven ones "36.4 to 203 ms".
    pub fn length(&self) -> String {
        match self.is_uneven {
            true => units::range(self.range),
            false => units::duration(self.median_ns),
        }
    }

    /// How many odd steps there are among so many of the kind, or which come regularly: "every 20th step", "2 of 12 steps".
    pub fn odd_text(&self, all: &str) -> String {
        let name = match self.name.as_str() {
            "" => String::new(),
            name => format!("{name} "),
        };
        match self.every {
            Some(every) => format!("every {} {name}step", ordinal(every)),
            None => format!("{} of {all} {name}steps", self.costly.len()),
        }
    }

    fn of(
        holds: &dyn Fn(usize) -> usize,
        spans: &[Span],
        steps: Vec<usize>,
        name: String,
    ) -> Option<StepKind> {
        let length = |step: &usize| spans[*step].len();
        let times: Vec<f64> = steps.iter().map(|step| length(step) as f64).collect();
        let median = stats::median(&times)? as Ns;
        let limit = cases::ODD_TIMES.value() * median as f64;
        let mut usual: Vec<usize> = steps.iter().map(|step| holds(*step)).collect();
        usual.sort_unstable();
        let usual = usual[steps.len() / 2].max(1);
        let held = |step: &usize| (holds(*step) / usual).max(1);
        let is_odd = |step: &usize| length(step) as f64 > limit;
        let mut odd: Vec<usize> = steps.iter().copied().filter(is_odd).collect();
        let spread = stats::median_deviation(&times)? * DEVIATION;
        let is_wide = cases::WIDE_SPREAD.is_reached_by(spread / median.max(1) as f64);
        let is_uneven = !are_few(odd.len(), steps.len()) && steps.len() >= LEAST || is_wide;
        if is_uneven || steps.len() < LEAST {
            odd.clear();
        }
        let mut kind = StepKind {
            p95_ns: stats::quantile(&times, 0.95)? as Ns,
            range: (
                steps.iter().map(length).min()?,
                steps.iter().map(length).max()?,
            ),
            total_ns: steps.iter().map(length).sum(),
            name,
            steps,
            odd,
            is_uneven,
            ..StepKind::default()
        };
        let mut regular: Vec<usize> = kind.regular().collect();
        let times: Vec<f64> = regular.iter().map(|step| length(step) as f64).collect();
        kind.median_ns = stats::median(&times)? as Ns;
        kind.deviation_ns = (stats::median_deviation(&times)? * DEVIATION) as Ns;
        regular.sort_by_key(|step| (length(step), *step));
        kind.typical = regular[(regular.len() - 1) / 2];
        let more = |step: &usize| length(step) - kind.median_ns;
        let is_one = |step: &usize| length(step) as f64 > limit * held(step) as f64;
        let own: Vec<usize> = kind.odd.iter().copied().filter(is_one).collect();
        let most = own.iter().map(more).max().unwrap_or_default();
        let much = |step: &&usize| 4 * more(step) >= most;
        kind.costly = own.iter().filter(much).copied().collect();
        kind.every = rhythm(&kind.steps, &kind.costly);
        let cost = |of: &[usize]| of.iter().map(more).sum::<Ns>();
        if kind.every.is_none() && 10 * cost(&kind.costly) < 9 * cost(&own) {
            kind.costly = own;
        }
        Some(kind)
    }
}

/// How many of the steps lie from one of some to the next: three of four times the same, and twice at least. One behind the other they
/// are a stretch of the run, and no rhythm.
fn rhythm(steps: &[usize], some: &[usize]) -> Option<usize> {
    let place = |step: &usize| steps.binary_search(step).ok();
    let places: Vec<usize> = some.iter().filter_map(place).collect();
    let mut apart: Vec<usize> = places.windows(2).map(|it| it[1] - it[0]).collect();
    apart.sort_unstable();
    let usual = *apart.get(apart.len() / 2)?;
    let same = apart.iter().filter(|it| **it == usual).count();
    (usual > 1 && same >= 2 && 4 * same >= 3 * apart.len()).then_some(usual)
}

/// Whether so many of all are few enough to be odd.
fn are_few(some: usize, all: usize) -> bool {
    some as f64 <= cases::ODD_PART.value() * all as f64
}

/// "20th", "2nd".
fn ordinal(n: usize) -> String {
    let ending = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// The kinds of steady steps, the one that takes most time first; those of one or two steps last.
pub(super) fn find(trace: &Trace, all: &Steps) -> Vec<StepKind> {
    let (process, spans) = (all.process, &all.spans[..]);
    let is_known = all.steady.clone().any(|step| all.batch(step).is_some());
    let groups = match is_known {
        true => by_phase(all),
        false => by_operations(trace, process, spans, all.steady.clone()),
    };
    // How many operations a step of a pattern holds: where that was not told apart for a while, several ordinary steps are one.
    let operations = ProcessOperations::new(trace, process, spans.len());
    let holds = |step: usize| match &all.from {
        Origin::Period { .. } => operations.count(spans[step]),
        _ => 1,
    };
    let mut kinds = Vec::new();
    for (steps, name) in groups {
        let halves = match is_known {
            true => vec![steps],
            false => by_work(trace, process, spans, &steps),
        };
        let is_split = halves.len() > 1;
        for (steps, length) in halves.into_iter().zip(["short", "long"]) {
            let words = [name.as_str(), if is_split { length } else { "" }];
            let words: Vec<&str> = words.into_iter().filter(|it| !it.is_empty()).collect();
            kinds.extend(StepKind::of(&holds, spans, steps, words.join(" ")));
        }
    }
    kinds.sort_by_key(|kind| Reverse((kind.steps.len() >= LEAST, kind.total_ns)));
    for kind in &mut kinds {
        let usual = (kind.median_ns, kind.deviation_ns);
        let slow = slow::find(trace, process, (spans, &kind.steps), usual);
        (kind.slow_count, kind.slow) = slow.unwrap_or_default();
    }
    kinds
}

/// The steady steps by what they are for.
fn by_phase(all: &Steps) -> Vec<(Vec<usize>, String)> {
    let of_phase = |phase: Phase| {
        let is_one = |step: &usize| all.batch(*step).is_some_and(|it| it.phase == phase);
        let steps: Vec<usize> = all.steady.clone().filter(is_one).collect();
        (steps, phase.word().to_owned())
    };
    let kinds = Phase::ALL.map(of_phase).into_iter();
    kinds.filter(|it| !it.0.is_empty()).collect()
}

/// What an operation is taken for: a kernel of this name, a copy of this direction, or anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Operation {
    Kernel(NameId),
    Copy(Direction),
    Other,
}

/// How often a step has each operation, sorted.
type Counts = Vec<(Operation, u32)>;

/// How much of their operations two steps share, and how much of the first's the second has.
fn likeness(a: &Counts, b: &Counts) -> (f64, f64) {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        if x.0 == y.0 {
            common += x.1.min(y.1);
        }
        i += usize::from(x.0 <= y.0);
        j += usize::from(y.0 <= x.0);
    }
    let sum = |of: &Counts| f64::from(of.iter().map(|it| it.1).sum::<u32>());
    let common = f64::from(common);
    (
        2.0 * common / (sum(a) + sum(b)).max(1.0),
        common / sum(a).max(1.0),
    )
}

/// Groups of steps that share most of their operations, each with what tells it apart.
fn by_operations(
    trace: &Trace,
    process: usize,
    spans: &[Span],
    steady: std::ops::Range<usize>,
) -> Vec<(Vec<usize>, String)> {
    let operations = ProcessOperations::new(trace, process, steady.len());
    let counts = |span: Span| -> Counts {
        let mut of: FxHashMap<Operation, u32> = FxHashMap::default();
        for (id, _, rows) in operations.starting(span) {
            for row in rows {
                let operation = match trace.what(id, row) {
                    What::Kernel(kernel) => Operation::Kernel(trace.shape(kernel.shape).name),
                    What::Copy(copy) => Operation::Copy(copy.direction),
                    _ => Operation::Other,
                };
                *of.entry(operation).or_default() += 1;
            }
        }
        let mut counts: Counts = of.into_iter().collect();
        counts.sort_unstable();
        counts
    };
    let mut known: FxHashMap<Counts, usize> = FxHashMap::default();
    let mut groups: Vec<(Counts, Vec<usize>)> = Vec::new();
    for step in steady {
        let counts = counts(spans[step]);
        let group = known.get(&counts).copied().unwrap_or_else(|| {
            let like = groups.iter().map(|it| likeness(&it.0, &counts).0);
            let best = like.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
            match best {
                Some((group, share))
                    if cases::ALIKE_SHARE.is_reached_by(share) || groups.len() == KINDS_MAX =>
                {
                    group
                }
                _ => {
                    groups.push((counts.clone(), Vec::new()));
                    groups.len() - 1
                }
            }
        });
        known.insert(counts, group);
        groups[group].1.push(step);
    }
    groups.sort_by_key(|it| Reverse(it.1.len()));
    let (few, mut kept): (Vec<_>, Vec<_>) = groups.iter().enumerate().partition(|(at, it)| {
        let all = it.1.len() + groups[0].1.len();
        let holds = cases::ALIKE_SHARE.is_reached_by(likeness(&groups[0].0, &it.0).1);
        *at > 0
            && (it.1.len() == 1 || cases::SOMETHING_MORE.holds(are_few(it.1.len(), all) && holds))
    });
    let mut main = kept.swap_remove(0).1.1.clone();
    main.extend(few.iter().flat_map(|(_, it)| &it.1));
    main.sort_unstable();
    let others = kept.iter().map(|(_, it)| it.1.clone());
    let all = std::iter::once(main).chain(others);
    let models: Vec<&Counts> = std::iter::once(&groups[0].0)
        .chain(kept.iter().map(|(_, it)| &it.0))
        .collect();
    let names = (0..models.len()).map(|at| name(trace, &models, at));
    all.zip(names).collect()
}

/// Words that say what a step is for.
const WORDS: [&str; 6] = ["prefill", "decode", "train", "eval", "valid", "sample"];

/// What tells a group of steps from the others, by the kernels that only they have. It is such a word in a name, else the one that is
/// there most often, and without any the number of operations.
fn name(trace: &Trace, models: &[&Counts], at: usize) -> String {
    if models.len() == 1 {
        return String::new();
    }
    let has = |model: &Counts, of: Operation| model.binary_search_by_key(&of, |it| it.0).is_ok();
    let others = || models.iter().enumerate().filter(|(i, _)| *i != at);
    let own = models[at].iter().filter_map(|&(of, count)| match of {
        Operation::Kernel(name) if !others().any(|(_, it)| has(it, of)) => {
            Some((count, trace.names().full(name)))
        }
        _ => None,
    });
    let own: Vec<(u32, &str)> = own.collect();
    let lower = own.iter().map(|it| it.1.to_lowercase());
    let lower: Vec<String> = lower.collect();
    let word = WORDS
        .iter()
        .find(|word| lower.iter().any(|it| it.contains(**word)));
    match (word, own.iter().max()) {
        (Some(word), _) => (*word).to_owned(),
        (None, Some((_, kernel))) => format!("`{}`", short::short(kernel)),
        (None, None) => {
            let operations: u32 = models[at].iter().map(|it| it.1).sum();
            format!("{operations}-operation")
        }
    }
}

/// The steps in two, where the time for which the GPU works in them is clearly of two sorts. Each is tight, and neither is few.
/// Steps in which it only waits for longer are uneven.
fn by_work(trace: &Trace, process: usize, spans: &[Span], steps: &[usize]) -> Vec<Vec<usize>> {
    let Some(device) = slow::main_device(trace, process) else {
        return vec![steps.to_vec()];
    };
    let work = |step: usize| Breakdown::of_device(trace, device, spans[step]).busy;
    let mut lengths: Vec<Ns> = steps.iter().map(|&step| work(step)).collect();
    lengths.sort_unstable();
    let ratio = |at: usize| lengths[at] as f64 / lengths[at - 1].max(1) as f64;
    let whole = || vec![steps.to_vec()];
    let Some(at) = (1..lengths.len()).max_by(|a, b| ratio(*a).total_cmp(&ratio(*b))) else {
        return whole();
    };
    let is_tight = |of: &[Ns]| {
        let of: Vec<f64> = of.iter().map(|it| *it as f64).collect();
        let (median, off) = (stats::median(&of), stats::median_deviation(&of));
        median
            .zip(off)
            .is_some_and(|(median, off)| 10.0 * off <= median)
    };
    let (short, long) = lengths.split_at(at);
    let is_many = |of: &[Ns]| of.len() >= LEAST && !are_few(of.len(), lengths.len());
    let is_clear = cases::TWO_SORTS.is_reached_by(ratio(at));
    if !(is_clear && is_many(short) && is_many(long) && is_tight(short) && is_tight(long)) {
        return whole();
    }
    let limit = lengths[at];
    let (long, short): (Vec<usize>, Vec<usize>) =
        steps.iter().partition(|step| work(**step) >= limit);
    let mean = |of: &[usize]| of.iter().map(|it| spans[*it].len()).sum::<Ns>() / of.len() as Ns;
    match cases::EQUAL_LENGTH.holds(mean(&long) - mean(&short) < mean(&short) / 10) {
        true => whole(),
        false => vec![short, long],
    }
}
