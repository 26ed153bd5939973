//! The mistakes of a run and their cures: what an edit of the one is predicted to bring, and what the other took.

use serde::Serialize;

use super::page::Page;

use activity::Ns;
use activity::text::printable;
use activity::units::duration;
use advice::Facts;
use replay::whatif::WhatIf;
use scenario::plan::Pair;

/// A pair of a scenario, at one value of its sweep.
#[derive(Clone, Debug, Serialize)]
pub struct PairReport {
    pub mistake: String,
    pub cure: String,
    pub edit: String,
    pub mistake_ns: Ns,
    /// Absent where nothing is predicted.
    pub predicted_ns: Option<Ns>,
    pub cure_ns: Ns,
}

/// The pairs whose variants ran; of a sweep at the value that a pair names, else at the last one.
pub(super) fn list(facts: &Facts<'_>) -> Vec<PairReport> {
    let passes = facts.passes();
    let last = passes.variants.last().and_then(|it| it.point);
    let told = |pair: &Pair| {
        let of = |name: &str| {
            let at = pair.at.or(last);
            let mut variants = passes.variants.iter();
            let place = variants.position(|it| it.name == name && it.point == at)?;
            let whatif = WhatIf::of_repeats(facts.basis(), passes, place).ok()?;
            Some((passes.variants[place].label(), whatif))
        };
        let ((mistake, before), (cure, after)) = (of(&pair.mistake)?, of(&pair.cure)?);
        let outcome = before.predict(&pair.edit).outcome.ok();
        Some(PairReport {
            mistake,
            cure,
            edit: pair.edit.to_string(),
            mistake_ns: before.measured(),
            predicted_ns: outcome.map(|it| it.predicted),
            cure_ns: after.measured(),
        })
    };
    let pairs = facts.plan.into_iter().flat_map(|plan| &plan.pairs);
    pairs.filter_map(told).collect()
}

pub(super) fn section(page: &mut Page, pairs: &[PairReport]) {
    if pairs.is_empty() {
        return;
    }
    page.title("Mistakes and their cures, by makespan");
    let rows = pairs.iter().map(|pair| {
        let [mistake, edit, cure] = [&pair.mistake, &pair.edit, &pair.cure].map(|it| printable(it));
        let predicted = pair.predicted_ns.map_or_else(|| "—".to_owned(), duration);
        let [takes, took] = [pair.mistake_ns, pair.cure_ns].map(duration);
        [mistake, edit, takes, predicted, took, cure]
    });
    page.cells(
        ["", "edit of it", "takes", "predicted", "cure took", "cure"],
        rows,
    );
}
