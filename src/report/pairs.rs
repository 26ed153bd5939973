//! The mistakes of a run and their cures: what an edit of the one is predicted to bring, and what the other took.

use serde::Serialize;

use super::page::Page;

use activity::Ns;
use activity::text::printable;
use activity::units::{duration, percent, share};
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
    /// The CPU's time around the same.
    pub mistake_wall_ns: Ns,
    pub cure_wall_ns: Ns,
}

/// A prediction that is off by less is a good one.
const OFF: f64 = 0.1;

impl PairReport {
    /// How far the prediction is off what the cure took, where that is much: "−26 %".
    fn off(&self) -> Option<String> {
        let off = share(self.predicted_ns? - self.cure_ns, self.cure_ns);
        let sign = if off < 0.0 { "−" } else { "+" };
        (off.abs() >= OFF).then(|| sign.to_owned() + &percent(off.abs()))
    }

    /// Whether the GPU's gain is less than what the CPU does for it.
    fn is_slower_by_wall(&self) -> bool {
        self.cure_ns < self.mistake_ns && self.cure_wall_ns > self.mistake_wall_ns
    }
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
            let mut figures = facts.variants().iter();
            let wall = figures.find(|it| it.position == place)?.wall_ns;
            Some((passes.variants[place].label(), whatif, wall))
        };
        let (mistake, before, mistake_wall_ns) = of(&pair.mistake)?;
        let (cure, after, cure_wall_ns) = of(&pair.cure)?;
        let outcome = before.predict(&pair.edit).outcome.ok();
        Some(PairReport {
            mistake,
            cure,
            edit: pair.edit.to_string(),
            mistake_ns: before.measured(),
            predicted_ns: outcome.map(|it| it.predicted),
            cure_ns: after.measured(),
            mistake_wall_ns,
            cure_wall_ns,
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
        ["", "edit", "takes", "predicted", "cure took", "cure"],
        rows,
    );
    // What the CPU does around it tells more.
    for pair in pairs.iter().filter(|it| !it.is_slower_by_wall()) {
        if let Some(off) = pair.off() {
            let [edit, cure] = [&pair.edit, &pair.cure].map(|it| printable(it));
            page.wrapped(&format!(
                "The prediction of `{edit}` is off what {cure} took by {off}."
            ));
        }
    }
    for pair in pairs.iter().filter(|it| it.is_slower_by_wall()) {
        let [mistake, cure] = [&pair.mistake, &pair.cure].map(|it| printable(it));
        let around = pair.cure_wall_ns - pair.cure_ns;
        let [takes, took, around] = [pair.mistake_wall_ns, pair.cure_wall_ns, around].map(duration);
        page.wrapped(&format!(
            "By the wall clock {cure} takes {took} a repeat, {around} of it around the GPU's work; {mistake} takes {takes}."
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_and_the_wall_clock_are_held_to_what_a_cure_took() {
        let is_slower = |cure_ns, cure_wall_ns| {
            let pair = PairReport {
                mistake: "kernels".to_owned(),
                cure: "graph".to_owned(),
                edit: "graph".to_owned(),
                mistake_ns: 12_500,
                predicted_ns: None,
                cure_ns,
                mistake_wall_ns: 12_600,
                cure_wall_ns,
            };
            pair.is_slower_by_wall()
        };
        assert!(is_slower(8_230, 14_100));
        assert!(!is_slower(8_230, 12_000));
        let off = |predicted_ns, cure_ns| {
            let pair = PairReport {
                mistake: String::new(),
                cure: String::new(),
                edit: String::new(),
                mistake_ns: 12_500,
                predicted_ns,
                cure_ns,
                mistake_wall_ns: 0,
                cure_wall_ns: 0,
            };
            pair.off()
        };
        assert_eq!(off(Some(6_090), 8_230).as_deref(), Some("−26 %"));
        assert_eq!(off(Some(110), 100).as_deref(), Some("+10 %"));
        assert_eq!(off(Some(109), 100), None);
        assert_eq!(off(None, 100), None);
        // By both clocks it is slower: the table shows that.
        assert!(!is_slower(13_000, 14_100));
    }
}
