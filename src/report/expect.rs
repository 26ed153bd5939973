//! Checks a run's figures against the scenario's `[expect]`.
//!
//! A figure that cannot be measured is a failed expectation that says why.

use serde::Serialize;

use figures::passes::point_text;
use figures::variants::measure::{NO_PEAK, Run};
use figures::{Peaks, VariantFigures};
use scenario::expect::{Compare, Expectation};
use scenario::plan::{Plan, VariantPlan};

/// One expectation and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// The left side as written.
    pub what: String,
    /// The right side as written.
    pub expected: String,
    /// The figure in its own unit (a share, GB/s, FLOP/s, ns, bytes, a count). Over several values of a sweep it is the
    /// one furthest from what is expected. `None` when it cannot be measured.
    pub measured: Option<f64>,
    /// Whether it holds.
    pub ok: bool,
    /// The sweep's value that `measured` is from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<i64>,
    /// Whether it holds is not known, for what the GPU can do is not; it is not `ok`, and not failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub not_judged: bool,
    /// Why it cannot be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// `measured` for people ("55.1 GB/s").
    pub shown: String,
    /// Of a sweep, at which value that is, and at how many it fails: " at batches=2 (fails at 3 of 4 values)".
    #[serde(skip)]
    pub at: String,
}

/// Checks every expectation of `plan` against the figures of its run.
pub fn check(plan: &Plan, variants: &[VariantFigures], peaks: Peaks) -> Vec<Checked> {
    let all = plan.expectations.iter();
    all.map(|e| check_one(plan, variants, peaks, e)).collect()
}

fn check_one(plan: &Plan, variants: &[VariantFigures], peaks: Peaks, e: &Expectation) -> Checked {
    let run = Run {
        plan: Some(plan),
        variants,
        peaks,
    };
    let holds = |measured: &Result<f64, String>| {
        let is_ok = |&it: &f64| e.compare.holds(it, e.value);
        measured.as_ref().is_ok_and(is_ok)
    };
    let all = measurements(&run, plan, e);
    let failed = all.iter().filter(|(_, measured)| !holds(measured)).count();
    let values = all.len();
    let (point, measured) = worst(e.compare, all)
        .unwrap_or_else(|| (e.point, Err(format!("`{}` was not run", e.variant))));
    // Where one value is meant, its name says so.
    let swept = plan.sweep.as_ref().zip(point);
    let swept = swept.filter(|_| !e.what.contains('['));
    let mut at = swept.map_or_else(String::new, |(sweep, point)| {
        format!(" at {}={}", sweep.param, point_text(point, sweep.unit))
    });
    if failed > 0 && values > 1 {
        at += &format!(" (fails at {failed} of {values} values)");
    }
    Checked {
        at,
        what: e.what.clone(),
        expected: e.expected.clone(),
        ok: holds(&measured),
        point,
        shown: measured
            .as_ref()
            .map_or_else(|_| "—".to_owned(), |&m| e.figure.spec().unit.show(m)),
        measured: measured.as_ref().ok().copied(),
        not_judged: measured.as_ref().is_err_and(|why| why == NO_PEAK),
        why: measured.err(),
    }
}

/// A value of the sweep, and what was measured there, or why nothing was.
type Measurement = (Option<i64>, Result<f64, String>);

fn measurements(run: &Run<'_>, plan: &Plan, e: &Expectation) -> Vec<Measurement> {
    let all = plan.variants.iter().enumerate();
    let is_at = |point| e.point.is_none() || point == e.point;
    let meant = all.filter(|(_, v)| v.name == e.variant && is_at(v.point));
    let measured = |(index, planned): (usize, &VariantPlan)| {
        let mut figures = run.variants.iter();
        let figures = figures.find(|v| v.variant.index == index && v.variant.name == planned.name);
        let measured = match figures {
            Some(figures) => run.measure(figures, &e.figure),
            None => Err(format!("`{}` was not measured", e.variant)),
        };
        (planned.point, measured)
    };
    meant.map(measured).collect()
}

/// The first that was not measured, else the one that is furthest from what is expected.
fn worst(compare: Compare, all: Vec<Measurement>) -> Option<Measurement> {
    all.into_iter().reduce(|worst, next| {
        let is_worse = match (&worst.1, &next.1) {
            (Err(_), _) => false,
            (Ok(_), Err(_)) => true,
            (Ok(old), Ok(new)) => is_further(compare, *new, *old),
        };
        if is_worse { next } else { worst }
    })
}

/// Whether `new` is further from what is expected than `old`.
fn is_further(compare: Compare, new: f64, old: f64) -> bool {
    match compare {
        Compare::AtLeast | Compare::Above => new < old,
        Compare::AtMost | Compare::Below => new > old,
    }
}
