//! Whether two sides are the same thing at all.

use super::side::{Run, Stretch};
use activity::Ns;
use activity::text::printable;
use activity::units::duration;
use activity::units::{count, percent};

/// Operations of names that only one side has are said from this share of its operations' time on.
const FOREIGN_MIN: f64 = 0.01;

/// What the runs ran on.
pub(super) fn sources(a: &Run, b: &Run) -> Vec<String> {
    let (a, b) = (&a.report, &b.report);
    let mut warnings = Vec::new();
    if a.source.simulated != b.source.simulated {
        let (sim, real) = if a.source.simulated {
            ("A", "B")
        } else {
            ("B", "A")
        };
        warnings.push(format!(
            "{sim} is simulated and {real} was measured on a GPU"
        ));
    }
    let names = |report: &crate::report::Report| -> Vec<String> {
        let devices = report.devices.iter().filter(|d| !d.name.is_empty());
        devices.map(|d| d.name.clone()).collect()
    };
    let (on_a, on_b) = (names(a), names(b));
    if on_a != on_b && !on_a.is_empty() && !on_b.is_empty() {
        warnings.push(format!(
            "A ran on {}, B on {}",
            on_a.join(" and "),
            on_b.join(" and ")
        ));
    } else if a.devices.len() != b.devices.len() {
        warnings.push(format!(
            "A used {} GPUs, B {}",
            a.devices.len(),
            b.devices.len()
        ));
    }
    for (side, report) in [("A", a), ("B", b)] {
        let losses = report.health.source.losses();
        if losses > 0 {
            warnings.push(format!(
                "{side} is incomplete: {} records lost",
                count(losses)
            ));
        }
    }
    for (side, report) in [("A", a), ("B", b)] {
        let off: Ns = report.devices.iter().map(|d| d.not_recorded_ns).sum();
        if off > 0 {
            warnings.push(format!("{side} was not recorded for {}", duration(off)));
        }
    }
    warnings
}

/// What was run.
pub(super) fn operations(of: &str, a: &Stretch, b: &Stretch, warnings: &mut Vec<String>) {
    let (n, m) = (a.count(), b.count());
    if n != m {
        let (n, m) = (count(n), count(m));
        warnings.push(format!("{}: {n} operations in A, {m} in B", printable(of)));
    }
    for (side, one, other) in [("A", a, b), ("B", b, a)] {
        let all: i64 = one.operations.values().map(|(_, ns)| ns).sum();
        let foreign = one.operations.iter();
        let foreign: Vec<(&String, i64)> = foreign
            .filter(|(name, _)| !other.operations.contains_key(*name))
            .map(|(name, (_, ns))| (name, *ns))
            .collect();
        let time: i64 = foreign.iter().map(|(_, ns)| ns).sum();
        let share = analysis::figures::share(time, all);
        if share < FOREIGN_MIN {
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
                percent(share),
                activity::text::cut_middle(name, 60)
            ));
        }
    }
}
