//! The simulator against an H200: makespan and overlap of the bundled scenarios, within 10 %.
//!
//! `tests/data/h200/SCENARIO.json` holds what `cuptop run SCENARIO --headless --json` said on the GPU,
//! cut down by `tests/gpu/figures.py`. A scenario that was not measured is not compared, and a line says
//! so. `cargo test --test sim_against_h200 -- --nocapture` prints both sides, kernel by kernel.

#![expect(clippy::print_stdout, reason = "figures, for whoever tunes the model")]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use cuptop::activity::feed::Message;
use cuptop::analysis::{VariantFigures, passes};
use cuptop::scenario::plan::Plan;
use cuptop::scenario::{Overrides, Source, bundled, compile};
use cuptop::source::sim::{Pace, Profile, run};
use cuptop::trace::{SourceInfo, Trace};
use serde::Deserialize;

/// How far the simulator may be off: a share of the makespan, and a difference of two shares of overlap.
const TOLERANCE: f64 = 0.10;

/// Variants that the model does not get right within the tolerance, and which effect is missing.
const KNOWN_MISSES: &[(&str, &str, &str)] = &[];

#[derive(Deserialize)]
struct Measured {
    /// When and on what.
    on: String,
    variants: Vec<MeasuredVariant>,
}

#[derive(Deserialize)]
struct MeasuredVariant {
    name: String,
    point: Option<i64>,
    makespan_ns: i64,
    wall_ns: i64,
    overlap: Option<f64>,
    /// Mean duration of each kernel, in ns.
    kernels: HashMap<String, f64>,
}

fn measured(scenario: &str) -> Option<Measured> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/h200");
    let text = std::fs::read_to_string(folder.join(format!("{scenario}.json"))).ok()?;
    Some(serde_json::from_str(&text).expect("figures of a run"))
}

fn simulate(plan: &Arc<Plan>) -> Vec<VariantFigures> {
    let profile = Profile::bundled();
    let feed = run(plan.clone(), &profile, Pace::AsFastAsPossible).expect("a thread");
    let mut trace = Trace::new(SourceInfo::default());
    for message in feed.receiver() {
        if let Message::Batch(batch) = message {
            trace.apply(batch);
        }
    }
    passes::variants(&trace)
}

#[test]
fn makespan_and_overlap_are_those_of_the_gpu() {
    let mut wrong = Vec::new();
    for scenario in bundled::SCENARIOS {
        let Some(measured) = measured(scenario.name) else {
            println!("skipped: {} was not measured on an H200", scenario.name);
            continue;
        };
        println!("{} ({})", scenario.name, measured.on);
        let compiled = compile(&Source::from(scenario), &Overrides::default());
        let plan = compiled
            .unwrap_or_else(|errors| panic!("{}", errors.render(false)))
            .plan;
        let plan = Arc::new(plan);
        for simulated in simulate(&plan) {
            let spec = &plan.variants[simulated.passes.index];
            let Some(real) =
                (measured.variants.iter()).find(|v| v.name == spec.name && v.point == spec.point)
            else {
                wrong.push(format!("{} {} was not measured", scenario.name, spec.name));
                continue;
            };
            let known = (KNOWN_MISSES.iter()).any(|(in_scenario, variant, _)| {
                *in_scenario == scenario.name && *variant == spec.name
            });
            for miss in compare(&simulated, spec.point, real) {
                if !known {
                    wrong.push(format!("{} {miss}", scenario.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Prints a variant's two sides and says what is too far off.
fn compare(simulated: &VariantFigures, point: Option<i64>, real: &MeasuredVariant) -> Vec<String> {
    let name = match point {
        Some(point) => format!("{} @ {point}", real.name),
        None => real.name.clone(),
    };
    let ratio = |simulated: f64, real: f64| if real > 0.0 { simulated / real } else { 1.0 };
    let makespan = ratio(simulated.makespan_ns as f64, real.makespan_ns as f64);
    let wall = ratio(simulated.wall_ns as f64, real.wall_ns as f64);
    let overlap = simulated.overlap().unwrap_or(0.0) - real.overlap.unwrap_or(0.0);
    println!(
        "  {name:36} makespan {:>10} ns x {makespan:.3}, wall {:>10} ns x {wall:.3}, overlap {overlap:+.3}",
        real.makespan_ns, real.wall_ns
    );
    for kernel in &simulated.kernels {
        let mean = kernel.total_ns as f64 / kernel.count.max(1) as f64;
        if let Some(real) = real.kernels.get(&kernel.name) {
            println!(
                "    {:34} {real:>10.0} ns x {:.3}",
                kernel.name,
                ratio(mean, *real)
            );
        }
    }
    let mut misses = Vec::new();
    if (makespan - 1.0).abs() > TOLERANCE {
        misses.push(format!("{name}: makespan is {makespan:.3} of the GPU's"));
    }
    if overlap.abs() > TOLERANCE {
        misses.push(format!("{name}: overlap differs by {overlap:+.3}"));
    }
    misses
}
