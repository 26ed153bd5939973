//! What watching cost a scenario, measured: its repeats unwatched, watched, and unwatched again.
//!
//! The host's time of a repeat is compared, by its median over the repeats. The two unwatched runs tell what this machine can tell apart: it
//! gives one and the same scenario another time from process to process.

use serde::Serialize;

use super::passes::Passes;
use super::stats;
use crate::activity::Ns;

/// The repeats of a variant in a run that nobody watched, in ns.
pub type Unwatched = (String, Vec<Ns>);

/// What watching cost a variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overhead {
    /// Its name, with the value of a sweep.
    pub variant: String,
    /// Repeats in each run.
    pub repeats: u64,
    /// Median time of a repeat in the unwatched runs before and after.
    pub unwatched_ns: [Ns; 2],
    /// The same, watched.
    pub watched_ns: Ns,
    /// How much longer a repeat took watched than in the mean of the unwatched runs: 0.02 is 2 %.
    pub overhead: f64,
    /// By how much the unwatched runs differ, of their mean: a smaller overhead than this is none that was seen.
    pub resolution: f64,
}

impl Overhead {
    /// Whether it is more than the unwatched runs differ by.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        self.overhead.abs() > self.resolution
    }
}

/// What watching cost each variant. Variants that did not run in all three are left out.
#[must_use]
pub fn of(passes: &Passes, before: &[Unwatched], after: &[Unwatched]) -> Vec<Overhead> {
    let variants = passes.variants.iter().enumerate();
    let runs = variants.zip(before.iter().zip(after));
    runs.filter_map(|((index, variant), (before, after))| {
        let watched: Vec<Ns> = passes
            .measured(index)
            .map(|pass| passes.list[pass].wall())
            .collect();
        if before.0 != variant.name || after.0 != variant.name {
            return None;
        }
        let unwatched_ns = [median(&before.1)?, median(&after.1)?];
        let watched_ns = median(&watched)?;
        let [first, second] = unwatched_ns.map(|it| it as f64);
        let mean = f64::midpoint(first, second).max(1.0);
        Some(Overhead {
            variant: variant.label(),
            repeats: watched.len() as u64,
            unwatched_ns,
            watched_ns,
            overhead: watched_ns as f64 / mean - 1.0,
            resolution: (first - second).abs() / mean,
        })
    })
    .collect()
}

fn median(walls: &[Ns]) -> Option<Ns> {
    let samples: Vec<f64> = walls.iter().map(|&wall| wall as f64).collect();
    stats::median(&samples).map(|median| median.round() as Ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::RangeKind;
    use crate::analysis::testing::Scene;

    /// Two variants of three repeats, watched: 100, 110, 120 and 205, 200, 400.
    #[test]
    fn medians_are_compared_and_what_two_runs_differ_by_is_told() {
        let mut scene = Scene::new();
        let mut at = 0;
        for (name, walls) in [("a", [100, 110, 120]), ("b", [205, 200, 400])] {
            let begin = at;
            for (index, wall) in (0..).zip(walls) {
                scene.kernel("k", 1, at + 10, at + 20);
                scene.range(RangeKind::Repeat, name, index, at, at + wall);
                at += 1000;
            }
            scene.range(RangeKind::Variant, name, 0, begin, at);
        }
        let trace = scene.trace();
        let passes = Passes::of_trace(&trace, None);
        let run =
            |a: &[Ns], b: &[Ns]| vec![("a".to_owned(), a.to_vec()), ("b".to_owned(), b.to_vec())];
        let before = run(&[99, 100, 300], &[200, 180]);
        let after = run(&[100, 100, 90], &[230, 210, 190]);
        let found = of(&passes, &before, &after);
        let told: Vec<_> = found
            .iter()
            .map(|it| {
                (
                    it.variant.as_str(),
                    it.repeats,
                    it.unwatched_ns,
                    it.watched_ns,
                )
            })
            .collect();
        assert_eq!(told, [("a", 3, [100, 100], 110), ("b", 3, [190, 210], 205)]);
        // 110 / 100 - 1 and 0; 205 / 200 - 1 and 20 / 200.
        assert!((found[0].overhead - 0.1).abs() < 1e-12 && found[0].is_seen());
        assert!((found[1].overhead - 0.025).abs() < 1e-12 && !found[1].is_seen());
        assert!((found[1].resolution - 0.1).abs() < 1e-12);
        // A variant that failed in one of the runs, or is another.
        assert_eq!(of(&passes, &before, &after[..1]).len(), 1);
        assert_eq!(of(&passes, &before[1..], &after).len(), 0);
    }
}
