//! Between what a simulated run lies, by how far the figures of the profile lay apart when they were measured.
//!
//! The run itself is the model with the middle of each figure. With each at its quickest, and with each at its slowest, the model says how
//! much of a variant's time is what varies.

use super::page::Page;
use super::runs;
use super::table::Table;
use super::{Report, VariantReport};
use crate::activity::Ns;
use crate::activity::units::duration;
use crate::analysis::VariantFigures;
use crate::analysis::passes::Passes;

impl Report {
    /// Takes in the same plan at both ends of what was measured: each variant gets the least and the greatest makespan, its own included.
    pub fn foretell(&mut self, ends: &[Passes]) {
        for variant in self.variants.iter_mut().flatten() {
            variant.makespan_range_ns = between(&variant.figures, ends);
        }
    }
}

/// The least and the greatest makespan of a variant in ns, its own and those of the same variant in `ends`; `None` where one of
/// these lacks it.
#[must_use]
pub fn between(figures: &VariantFigures, ends: &[Passes]) -> Option<[Ns; 2]> {
    let found: Option<Vec<Ns>> = (ends.iter())
        .map(|passes| {
            let same = passes.variants.get(figures.position)?;
            let pass = passes.representative(figures.position)?;
            (*same == figures.variant).then(|| passes.list[pass].makespan())
        })
        .collect();
    let own = figures.makespan_ns;
    found.filter(|found| !found.is_empty()).map(|found| {
        let least = found.iter().fold(own, |least, &ns| least.min(ns));
        [least, found.into_iter().fold(own, Ns::max)]
    })
}

/// The makespans with their ends.
pub(super) fn section(page: &mut Page, variants: &[VariantReport]) {
    let told: Vec<(&VariantReport, [Ns; 2])> = (variants.iter())
        .filter_map(|v| Some((v, v.makespan_range_ns?)))
        .collect();
    if told.is_empty() {
        return;
    }
    page.title("What a GPU would take, as far as the calibration tells");
    let mut table = Table::new(["", "quick", "usual", "slow", "slow to quick"]);
    for (v, [least, most]) in told {
        table.row([
            runs::name(v),
            duration(least),
            duration(v.figures.makespan_ns),
            duration(most),
            match least {
                0 => String::new(),
                _ => format!("{:.2}×", most as f64 / least as f64),
            },
        ]);
    }
    page.table(&table);
    page.wrapped(
        "makespans by the model with each figure of the profile as it was at its quickest, in the middle, and at its slowest among the processes that \
         calibrated it; a run on that GPU can still lie outside, where something else takes its time or the model is wrong",
    );
}
