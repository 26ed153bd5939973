//! Whether two sides are the same thing at all.

use std::collections::BTreeSet;

use super::side::{ComparedRun, Stretch};
use activity::Ns;
use activity::text::{plural, printable};
use activity::units::{count, duration, percent, share};

/// Operations of names that only one side has are said from this share of its operations' time on.
const FOREIGN_MIN: f64 = 0.01;

/// From this share on, on both sides, they run different kernels.
const MOST: f64 = 0.5;

/// What the runs ran on, and how much of them is missing: of all runs of both sides.
pub(super) fn sources(a: &[ComparedRun], b: &[ComparedRun]) -> Vec<String> {
    let mut warnings = Vec::new();
    let is_simulated = |runs: &[ComparedRun]| runs.iter().any(|it| it.report.source.simulated);
    if is_simulated(a) != is_simulated(b) {
        let (sim, real) = if is_simulated(a) {
            ("A", "B")
        } else {
            ("B", "A")
        };
        warnings.push(format!(
            "{sim} is simulated and {real} was measured on a GPU"
        ));
    }
    let gpus = |runs: &[ComparedRun]| -> Vec<String> {
        let names = runs.iter().map(|run| {
            let names = run.report.devices.iter().map(|d| d.name.as_str());
            names
                .filter(|it| !it.is_empty())
                .collect::<Vec<_>>()
                .join(" and ")
        });
        let named: BTreeSet<String> = names.filter(|it| !it.is_empty()).collect();
        named.into_iter().collect()
    };
    let counts = [a, b].map(|runs| runs.first().map_or(0, |it| it.report.devices.len()));
    let (on_a, on_b) = (gpus(a), gpus(b));
    if on_a != on_b && !on_a.is_empty() && !on_b.is_empty() {
        warnings.push(format!(
            "A ran on {}, B on {}",
            on_a.join(" or "),
            on_b.join(" or ")
        ));
    } else if counts[0] != counts[1] {
        let [on_a, on_b] = counts.map(|it| plural(it as u64, "GPU"));
        warnings.push(format!("A ran on {on_a}, B on {on_b}"));
    }
    for (side, runs) in [("A", a), ("B", b)] {
        let losses: u64 = runs.iter().map(|it| it.report.health.source.losses()).sum();
        if losses > 0 {
            warnings.push(format!(
                "{side} is incomplete: {} records lost",
                count(losses)
            ));
        }
        let cut = runs.iter().filter(|it| it.is_cut).count();
        if cut > 0 {
            let all = runs.len();
            warnings.push(format!(
                "{side} has {all} runs, of which {cut} failed or were cut off"
            ));
        }
        let devices = runs.iter().flat_map(|it| &it.report.devices);
        let off: Ns = devices.map(|d| d.not_recorded_ns).sum();
        if off > 0 {
            warnings.push(format!("recording of {side} was off for {}", duration(off)));
        }
    }
    warnings
}

/// What was run. Returns whether most of it, on either side, is what the other one lacks.
pub(super) fn operations(of: &str, a: &Stretch, b: &Stretch, warnings: &mut Vec<String>) -> bool {
    let mut are_different = true;
    let (n, m) = (a.count(), b.count());
    if n != m {
        let (n, m) = (count(n), count(m));
        warnings.push(format!("{}: {n} operations in A, {m} in B", printable(of)));
    }
    for (side, one, other) in [("A", a, b), ("B", b, a)] {
        let all: i64 = one.operations.values().map(|(_, ns)| ns).sum();
        let foreign = one.operations.iter();
        let foreign = foreign.filter(|(name, _)| !other.operations.contains_key(*name));
        let foreign: Vec<(&String, i64)> = foreign.map(|(name, (_, ns))| (name, *ns)).collect();
        let time: i64 = foreign.iter().map(|(_, ns)| ns).sum();
        let part = share(time, all);
        are_different &= part >= MOST;
        if part < FOREIGN_MIN {
            continue;
        }
        // Of equals the first by name, so that the same two sides give the same words.
        let largest = foreign
            .iter()
            .max_by_key(|(name, ns)| (*ns, std::cmp::Reverse(*name)));
        if let Some((name, _)) = largest {
            warnings.push(format!(
                "{}: {} of the time in {side} is in operations that the other side lacks, such as {}",
                printable(of),
                percent(part),
                activity::text::cut_middle(name, 60)
            ));
        }
    }
    are_different
}
