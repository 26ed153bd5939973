//! Whether one side is faster than the other, what shows it, and where the difference lies.

mod words;

use serde::Serialize;

use super::side::{ComparedRun, Measured, PartKind, Stretch, Subject};
use super::tried::Tried;
use super::{Comparison, OperationChange, changes, comparable};
use activity::stats::{self, Difference, Summary, Verdict};
use activity::{Ns, Span, units};
use figures::steps::Origin;

/// Two sides, each of one run or several.
#[derive(Clone, Debug, Serialize)]
pub struct CompareReport {
    /// Which meaning the fields have: that of a report's JSON.
    pub schema: u32,
    /// The first line: "B is 2.43× faster …".
    pub text: String,
    /// What the samples are: "runs", "steps", "repeats", or "one run" where there is one sample a side.
    pub samples: &'static str,
    /// What is compared: a row for each variant, else one.
    pub rows: Vec<ComparedRow>,
    /// Geometric mean of the rows' ratios, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geometric_mean: Option<f64>,
    /// Why the two sides may not be the same thing.
    pub warnings: Vec<String>,
    /// What `--fail-over` came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_over: Option<FailOver>,
    /// What the first finding that is gone had promised; absent where none is, and of scenarios' runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<Tried>,
    /// Figures of one run of each side, that of median time.
    #[serde(flatten)]
    pub figures: Comparison,
}

/// One thing on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRow {
    /// What: "makespan", "step", or a variant's name.
    pub of: String,
    /// The first side's samples.
    pub a: Samples,
    /// The second side's.
    pub b: Samples,
    /// Median of B over median of A.
    pub ratio: f64,
    /// The 95 % interval of the ratio.
    pub low: Option<f64>,
    /// Its other end.
    pub high: Option<f64>,
    /// How often chance alone would give as much.
    pub p: Option<f64>,
    /// Whether a difference is shown; null with too few samples.
    pub shown: Option<bool>,
    /// Samples a side that are needed for p or for the interval, where they are missing.
    pub need: Option<usize>,
    /// How far apart halves of A's samples lie, as a share.
    pub floor: Option<f64>,
    /// Where the difference lies, between the two that are of median time; sums to the difference.
    pub why: Vec<Part>,
    /// Operations of those two whose number or time changed, the greatest change first.
    pub changed: Vec<OperationChange>,
    /// Share of the copy time during which a kernel ran, in A and B.
    #[serde(skip)]
    pub(super) overlap: [f64; 2],
    /// Share of the time in which nothing ran, in A and B.
    #[serde(skip)]
    pub(super) idle: [f64; 2],
    /// When those two were, each on the clock of its timeline.
    #[serde(skip)]
    pub spans: [Span; 2],
    /// The least and the greatest ratio of steps within one run a side.
    #[serde(skip)]
    pub(super) between_steps: Option<(f64, f64)>,
    /// Medians of the whole runs, where these are compared by their steps.
    #[serde(skip)]
    pub(super) wholes: Option<[Ns; 2]>,
    /// How much longer A's longest sample is than its shortest, where they are enough to tell.
    #[serde(skip)]
    apart: Option<f64>,
    #[serde(skip)]
    pub(super) difference: Difference,
}

impl ComparedRow {
    /// "2.43× faster", where a difference is told.
    pub fn told(&self) -> Option<String> {
        words::verdict(self)
    }

    /// The stretch of median time of one side: "8.32 ms · idle 2 % · overlap 0 %".
    pub fn in_words(&self, side: usize) -> String {
        format!(
            "{} · idle {} · overlap {}",
            units::duration(self.spans[side].len()),
            units::percent(self.idle[side]),
            units::percent(self.overlap[side])
        )
    }
}

/// Samples of one side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Samples {
    pub count: usize,
    pub median_ns: f64,
    /// The 95 % interval of the median.
    pub low_ns: Option<f64>,
    /// Its other end.
    pub high_ns: Option<f64>,
    #[serde(skip)]
    pub(super) summary: Summary,
}

/// A part of the difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// What: "compute", "copy", "overlap", "memset", "not recorded", "idle: …".
    pub cause: PartKind,
    /// In A. Overlap is below 0: it is counted in compute and in copy.
    pub a_ns: Ns,
    pub b_ns: Ns,
    /// How much more time it is in B.
    pub change_ns: Ns,
}

/// What was decided against a threshold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailOver {
    /// The threshold, as a share.
    pub threshold: f64,
    /// Whether every row could be decided.
    pub decided: bool,
    /// "regressed", "no regression shown" or "undecided".
    pub decision: &'static str,
    /// What decided: "intervals" of several runs a side, or "medians" that lie further apart than runs of one program do.
    pub by: &'static str,
    /// What of B is slower by more than the threshold.
    pub regressed: Vec<String>,
    /// Runs a side that could decide what is not; null when all is.
    pub need: Option<usize>,
    /// The same in a sentence.
    pub text: String,
}

impl CompareReport {
    /// Compares two sides; `None` when they have nothing that could be compared. `fail_over` is a share
    /// of A's time.
    pub fn new(
        a: &[ComparedRun],
        b: &[ComparedRun],
        fail_over: Option<f64>,
    ) -> Option<CompareReport> {
        if a.is_empty() || b.is_empty() {
            return None;
        }
        let are_runs = a.len() > 1 || b.len() > 1;
        let mut warnings = comparable::sources(a, b);
        let (subjects, samples) = subjects(a, b, &mut warnings);
        let mut rows = Vec::new();
        let (mut shown, mut are_different) = (None, false);
        for (of_a, of_b) in &subjects {
            let of = |runs, subject| side(runs, subject, are_runs);
            let (Some(side_a), Some(side_b)) = (of(a, of_a), of(b, of_b)) else {
                continue;
            };
            shown.get_or_insert((side_a.run, side_b.run));
            let stretches = (&side_a.stretch, &side_b.stretch);
            are_different =
                comparable::operations(&name(of_a), stretches.0, stretches.1, &mut warnings);
            let mut row = row(name(of_a), &side_a, &side_b);
            if let Some(row) = &mut row
                && samples == "steps"
            {
                let whole = |runs| of(runs, &Subject::Makespan).map(|it| it.stretch.window.len());
                row.wholes = whole(a).zip(whole(b)).map(<[Ns; 2]>::from);
                if !are_runs {
                    row.between_steps = between(&side_a.samples, &side_b.samples);
                }
            }
            rows.extend(row);
        }
        let (run_a, run_b) = shown?;
        let ratios: Vec<f64> = rows.iter().map(|r| r.ratio).collect();
        let is_whole = samples == "makespan";
        let samples = match samples {
            _ if are_runs => "runs",
            "makespan" => "one run",
            other => other,
        };
        Some(CompareReport {
            schema: crate::report::SCHEMA,
            text: match rows.as_slice() {
                [row] if is_whole && are_different => words::different(row, [a, b]),
                rows => words::headline(rows),
            },
            samples,
            geometric_mean: (rows.len() > 1)
                .then(|| stats::geometric_mean(&ratios))
                .flatten(),
            fail_over: fail_over
                .map(|threshold| FailOver::new(threshold, [a.len(), b.len()], &rows)),
            tried: match rows.as_slice() {
                [row] if a[run_a].variants().next().is_none() => {
                    let medians = [row.a.median_ns, row.b.median_ns];
                    Tried::of(&a[run_a].report, &b[run_b].report, medians)
                }
                _ => None,
            },
            rows,
            warnings,
            figures: Comparison::new(&a[run_a].report, &b[run_b].report),
        })
    }

    /// Whether it is decided that B is slower than `--fail-over` allows.
    pub fn has_regressed(&self) -> bool {
        let regressed = self.fail_over.as_ref().map(|f| &f.regressed);
        regressed.is_some_and(|r| !r.is_empty())
    }

    /// As JSON, on several lines.
    ///
    /// # Errors
    /// Never; the serializer's signature has it.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(activity::text::plain_json)
    }
}

fn name(subject: &Subject) -> String {
    match subject {
        Subject::Makespan => "makespan".to_owned(),
        Subject::Step(_) => "step".to_owned(),
        Subject::Variant(name) => name.clone(),
    }
}

/// What all runs of both sides have: variants, else steps, else the whole.
fn subjects(
    a: &[ComparedRun],
    b: &[ComparedRun],
    warnings: &mut Vec<String>,
) -> (Vec<(Subject, Subject)>, &'static str) {
    let all = || a.iter().chain(b);
    let has_variants = |run: &ComparedRun| run.variants().next().is_some();
    if all().all(has_variants) {
        let mut pairs = Vec::new();
        let mut missing = Vec::new();
        for subject in a[0].variants().chain(b[0].variants()) {
            let pair = (subject.clone(), subject.clone());
            if pairs.contains(&pair) || missing.contains(subject) {
                continue;
            }
            if all().all(|run| run.find(subject).is_some()) {
                pairs.push(pair);
            } else {
                missing.push(subject.clone());
                warnings.push(format!("variant {} is missing in some runs", name(subject)));
            }
        }
        return (pairs, "repeats");
    }
    // Every run may be cut into steps of its own length: its own origin is what it is asked for.
    let steps: Option<Vec<&Measured>> = all().map(ComparedRun::step).collect();
    if let Some(steps) = steps
        && steps.iter().all(|s| are_alike(steps[0], s))
    {
        let of = |runs: &[ComparedRun]| runs[0].step().map(|m| m.subject.clone());
        if let (Some(a), Some(b)) = (of(a), of(b)) {
            return (vec![(a, b)], "steps");
        }
    }
    (vec![(Subject::Makespan, Subject::Makespan)], "makespan")
}

/// As many steps as another run has, of fewer, may be chance.
const STEPS_MIN: u64 = 10;

/// Whether steps of two runs are the same thing: marked alike, or of a like number of operations, or as many.
fn are_alike(one: &Measured, other: &Measured) -> bool {
    let is_like = |one: u64, other: u64, part| one.abs_diff(other) * part <= one.max(other);
    match (&one.subject, &other.subject) {
        (Subject::Step(Origin::Period { .. }), Subject::Step(Origin::Period { .. })) => {
            let [steps, others] = [one, other].map(|it| it.samples.len() as u64);
            // A cure may take most of a step's launches away. A program runs as many steps with it.
            let are_as_many = steps.min(others) >= STEPS_MIN && is_like(steps, others, 20);
            are_as_many || is_like(one.median.count(), other.median.count(), 3)
        }
        (Subject::Step(one), Subject::Step(other)) => one == other,
        _ => false,
    }
}

/// One subject in all runs of a side.
struct Side {
    samples: Vec<f64>,
    /// The run of median time, and in it the stretch of median time.
    run: usize,
    stretch: Stretch,
}

/// A run is one sample where a side has several of them, else what is repeated in it is.
fn side(runs: &[ComparedRun], subject: &Subject, are_runs: bool) -> Option<Side> {
    let of = |run: &ComparedRun| match subject {
        Subject::Step(_) => run.step().cloned(),
        other => run.find(other).cloned(),
    };
    let mut measured: Vec<(usize, Measured)> = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        measured.push((i, of(run)?));
    }
    let samples = match measured.as_slice() {
        [(_, one)] if !are_runs => one.samples.clone(),
        several => several
            .iter()
            .map(|(_, m)| stats::median(&m.samples))
            .collect::<Option<_>>()?,
    };
    measured.sort_by_key(|(_, m)| m.median.window.len());
    let middle = measured.len().checked_sub(1)? / 2;
    let (run, median) = measured.swap_remove(middle);
    Some(Side {
        samples,
        run,
        stretch: median.median,
    })
}

fn row(of: String, a: &Side, b: &Side) -> Option<ComparedRow> {
    let difference = Difference::of(&a.samples, &b.samples)?;
    let overlap = |s: &Stretch| units::share(s.parts.overlap, s.parts.copy);
    let idle = |s: &Stretch| units::share(s.parts.idle(), s.window.len());
    Some(ComparedRow {
        of,
        a: Samples::of(&a.samples)?,
        b: Samples::of(&b.samples)?,
        ratio: difference.ratio,
        low: difference.interval.map(|i| i.0),
        high: difference.interval.map(|i| i.1),
        p: difference.p,
        shown: difference.is_shown(),
        need: difference.need,
        floor: stats::floor(&a.samples),
        apart: (a.samples.len() >= stats::INTERVAL_MIN)
            .then(|| between(&a.samples, &a.samples).map_or(0.0, |(_, most)| most - 1.0)),
        why: why(&a.stretch, &b.stretch),
        changed: changes::find(&a.stretch.operations, &b.stretch.operations),
        overlap: [overlap(&a.stretch), overlap(&b.stretch)],
        idle: [idle(&a.stretch), idle(&b.stretch)],
        spans: [a.stretch.window, b.stretch.window],
        between_steps: None,
        wholes: None,
        difference,
    })
}

/// The least and the greatest ratio of a sample of B to one of A.
fn between(a: &[f64], b: &[f64]) -> Option<(f64, f64)> {
    let least = |of: &[f64]| of.iter().copied().reduce(f64::min);
    let greatest = |of: &[f64]| of.iter().copied().reduce(f64::max);
    Some((least(b)? / greatest(a)?, greatest(b)? / least(a)?))
}

impl Samples {
    fn of(samples: &[f64]) -> Option<Self> {
        let summary = Summary::of(samples)?;
        Some(Samples {
            count: summary.count,
            median_ns: summary.median,
            low_ns: summary.interval.map(|i| i.0),
            high_ns: summary.interval.map(|i| i.1),
            summary,
        })
    }
}

/// The parts of the difference, those that did not change left out: what is left sums to it.
fn why(a: &Stretch, b: &Stretch) -> Vec<Part> {
    let fixed = |s: &Stretch| {
        [
            (PartKind::Compute, s.parts.compute),
            (PartKind::Copy, s.parts.copy),
            (PartKind::Overlap, -s.parts.overlap),
            (PartKind::Memset, s.parts.memset()),
            (PartKind::NotRecorded, s.parts.not_recorded),
        ]
    };
    let mut parts: Vec<(PartKind, [Ns; 2])> = Vec::new();
    for (side, stretch) in [a, b].into_iter().enumerate() {
        for (cause, ns) in fixed(stretch)
            .into_iter()
            .chain(stretch.idle.iter().copied())
        {
            match parts.iter_mut().find(|(c, _)| *c == cause) {
                Some((_, sides)) => sides[side] += ns,
                None => {
                    let mut sides = [0, 0];
                    sides[side] = ns;
                    parts.push((cause, sides));
                }
            }
        }
    }
    let parts = parts.into_iter().map(|(cause, [a_ns, b_ns])| Part {
        cause,
        a_ns,
        b_ns,
        change_ns: b_ns - a_ns,
    });
    let mut parts: Vec<Part> = parts.filter(|p| p.change_ns != 0).collect();
    parts.sort_by_key(|p| std::cmp::Reverse(p.change_ns.abs()));
    parts
}

/// Runs of one program were seen so far apart. It stands for the spread of A's runs where these are too few to tell.
const RUNS_APART: f64 = 0.2;
/// More runs a side than this are not asked for.
const RUNS_MAX: f64 = 100.0;

impl FailOver {
    fn new(threshold: f64, runs: [usize; 2], rows: &[ComparedRow]) -> Self {
        let are_runs = runs.iter().any(|&it| it > 1);
        let decided = rows.iter().map(|row| row.decide(threshold, are_runs));
        let decided: Vec<(Verdict, Option<usize>)> = decided.collect();
        let slower = rows
            .iter()
            .zip(&decided)
            .filter(|it| it.1.0 == Verdict::Slower);
        let regressed: Vec<String> = slower.map(|it| it.0.of.clone()).collect();
        let need = decided.iter().filter_map(|it| it.1).max();
        let limit = units::percent(threshold);
        let has_interval = |row: &ComparedRow| are_runs && row.difference.interval.is_some();
        let has_intervals = rows.iter().all(has_interval);
        let (by, told) = match has_intervals {
            true => ("intervals", ""),
            false => (
                "medians",
                ", by medians further apart than runs of one program",
            ),
        };
        let (decision, text) = match need {
            _ if !regressed.is_empty() => {
                let all = regressed.join(", ");
                (
                    "regressed",
                    format!("regression: {all} slower by more than {limit}{told}"),
                )
            }
            None => (
                "no regression shown",
                format!("no regression of more than {limit} shown"),
            ),
            Some(need) => {
                let [a, b] = runs;
                let text = format!(
                    "undecided: record {need} runs a side, which may decide (A has {a}, B {b})"
                );
                ("undecided", text)
            }
        };
        FailOver {
            threshold,
            decided: need.is_none(),
            decision,
            by,
            regressed,
            need,
            text,
        }
    }
}

impl ComparedRow {
    /// What is shown against a threshold, and how many runs a side would show more.
    fn decide(&self, threshold: f64, are_runs: bool) -> (Verdict, Option<usize>) {
        let limit = 1.0 + threshold;
        let enough = self.difference.interval.filter(|_| are_runs);
        let Some((low, high)) = enough else {
            let apart = self.apart.filter(|_| are_runs).unwrap_or(RUNS_APART);
            return match self.ratio {
                ratio if ratio > limit + apart => (Verdict::Slower, None),
                ratio if ratio < limit - apart => (Verdict::NotShown, None),
                _ => (Verdict::TooFew, Some(stats::INTERVAL_MIN)),
            };
        };
        let verdict = self.difference.verdict(threshold);
        if verdict == Verdict::Slower || high <= limit {
            return (verdict, None);
        }
        // The interval narrows with the root of the runs: so many bring its end from here to the limit.
        let reach = if self.ratio > limit {
            self.ratio - low
        } else {
            high - self.ratio
        };
        let runs = 2.0 / (1.0 / self.a.count as f64 + 1.0 / self.b.count as f64);
        let need = (runs * (reach / (self.ratio - limit)).powi(2)).ceil();
        let need =
            (need <= RUNS_MAX).then_some((need as usize).max(self.a.count.min(self.b.count) + 1));
        (Verdict::NotShown, need)
    }
}
