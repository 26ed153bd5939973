//! Checks a run's figures against the scenario's `[expect]`.
//!
//! A figure that cannot be measured is a failed expectation that says why.

use serde::Serialize;

use figures::passes::point_text;
use figures::variants::measure::{NO_PEAK, Run};
use figures::{Peaks, VariantFigures};
use scenario::expect::{Compare, Expectation};
use scenario::plan::Plan;

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
    plan.expectations
        .iter()
        .map(|e| check_one(plan, variants, peaks, e))
        .collect()
}

fn check_one(plan: &Plan, variants: &[VariantFigures], peaks: Peaks, e: &Expectation) -> Checked {
    let run = Run {
        plan: Some(plan),
        variants,
        peaks,
    };
    let is_meant = |i: &usize| {
        let v = &plan.variants[*i];
        v.name == e.variant && (e.point.is_none() || v.point == e.point)
    };
    let (mut failed, mut values) = (0, 0);
    let mut worst: Option<(Option<i64>, Result<f64, String>)> = None;
    for index in (0..plan.variants.len()).filter(is_meant) {
        let planned = &plan.variants[index];
        let figures = variants
            .iter()
            .find(|v| v.variant.index == index && v.variant.name == planned.name);
        let measured = match figures {
            Some(figures) => run.measure(figures, &e.figure),
            None => Err(format!("`{}` was not measured", e.variant)),
        };
        let is_ok = |&m: &f64| e.compare.holds(m, e.value);
        values += 1;
        failed += usize::from(!measured.as_ref().is_ok_and(is_ok));
        let is_worse = match (&worst, &measured) {
            (None, _) => true,
            (Some((_, Err(_))), _) => false,
            (Some((_, Ok(_))), Err(_)) => true,
            (Some((_, Ok(old))), Ok(new)) => is_further(e.compare, *new, *old),
        };
        if is_worse {
            worst = Some((planned.point, measured));
        }
    }
    let (point, measured) =
        worst.unwrap_or_else(|| (e.point, Err(format!("`{}` was not run", e.variant))));
    // Where one value is meant, its name says so.
    let swept = plan
        .sweep
        .as_ref()
        .zip(point)
        .filter(|_| !e.what.contains('['));
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
        ok: measured
            .as_ref()
            .is_ok_and(|&m| e.compare.holds(m, e.value)),
        point,
        shown: measured
            .as_ref()
            .map_or_else(|_| "—".to_owned(), |&m| e.figure.spec().unit.show(m)),
        measured: measured.as_ref().ok().copied(),
        not_judged: measured.as_ref().is_err_and(|why| why == NO_PEAK),
        why: measured.err(),
    }
}

/// Whether `new` is further from what is expected than `old`.
fn is_further(compare: Compare, new: f64, old: f64) -> bool {
    match compare {
        Compare::AtLeast | Compare::Above => new < old,
        Compare::AtMost | Compare::Below => new > old,
    }
}
