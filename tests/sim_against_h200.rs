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
use cuptop::analysis::{VariantFigures, variants};
use cuptop::scenario::figures::Kind;
use cuptop::scenario::plan::Plan;
use cuptop::scenario::{Overrides, Source, bundled, compile};
use cuptop::source::sim::{Pace, Profile, run};
use cuptop::trace::{SourceInfo, Trace};
use serde::Deserialize;

/// How far the simulator may be off: a share of the makespan, beyond what the GPU's own repeats differ
/// by, and a difference of two shares of overlap.
const TOLERANCE: f64 = 0.10;

/// A variant that the model does not get right within the tolerance.
struct Miss {
    scenario: &'static str,
    variant: &'static str,
    point: Option<i64>,
    /// Its makespan as a share of the GPU's median. It may get nearer to 1, and no further off.
    ratio: f64,
    /// What the model lacks.
    _missing: &'static str,
}

const KNOWN_MISSES: &[Miss] = &[
    Miss {
        scenario: "warmup",
        variant: "cold",
        point: None,
        ratio: 0.75,
        _missing: "the host's filling of its buffers (52 us), and what the first memset (19 us), the first \
                   copy's DMA (12 us) and the first synchronizations take longer than later ones",
    },
    Miss {
        scenario: "cpu_or_gpu",
        variant: "gpu_matmul_with_copies",
        point: Some(32),
        ratio: 0.627,
        _missing: SMALL_COPIES,
    },
    Miss {
        scenario: "cpu_or_gpu",
        variant: "gpu_matmul_with_copies",
        point: Some(64),
        ratio: 0.548,
        _missing: SMALL_COPIES,
    },
    Miss {
        scenario: "cpu_or_gpu",
        variant: "gpu_sin_with_copies",
        point: Some(256),
        ratio: 0.709,
        _missing: "whether the download is ready a little before or a little after the engine looks: the model \
                   has it before, the GPU after, which is a whole period (9.3 us) later",
    },
];

const SMALL_COPIES: &str = "two copies of a few KiB that follow each other in one direction are often 9 us apart, as \
                            if on two engines; larger ones never are";

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
    /// Of the shortest and the longest repeat.
    makespan_range_ns: [i64; 2],
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
    variants::variants(&trace, Some(plan))
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
            let spec = &plan.variants[simulated.variant.index];
            let Some(real) =
                (measured.variants.iter()).find(|v| v.name == spec.name && v.point == spec.point)
            else {
                wrong.push(format!("{} {} was not measured", scenario.name, spec.name));
                continue;
            };
            let known = (KNOWN_MISSES.iter()).find(|miss| {
                miss.scenario == scenario.name
                    && miss.variant == spec.name
                    && miss.point == spec.point
            });
            for miss in compare(&simulated, spec.point, real, known.map(|miss| miss.ratio)) {
                wrong.push(format!("{} {miss}", scenario.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Prints a variant's two sides and says what is too far off; `known` is how far the makespan is known to be.
fn compare(
    simulated: &VariantFigures,
    point: Option<i64>,
    real: &MeasuredVariant,
    known: Option<f64>,
) -> Vec<String> {
    let name = match point {
        Some(point) => format!("{} @ {point}", real.name),
        None => real.name.clone(),
    };
    let ratio = |simulated: f64, real: f64| if real > 0.0 { simulated / real } else { 1.0 };
    let makespan = ratio(simulated.makespan_ns as f64, real.makespan_ns as f64);
    let wall = ratio(simulated.wall_ns as f64, real.wall_ns as f64);
    let overlap = simulated.value(Kind::Overlap).unwrap_or(0.0) - real.overlap.unwrap_or(0.0);
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
    let [least, most] = real
        .makespan_range_ns
        .map(|ns| ratio(ns as f64, real.makespan_ns as f64));
    // A known miss may be 2 % further off than what was written down, for changes elsewhere.
    let low = (least - TOLERANCE).min(known.unwrap_or(1.0) - 0.02);
    let high = (most + TOLERANCE).max(known.unwrap_or(1.0) + 0.02);
    if !(low..=high).contains(&makespan) {
        misses.push(format!("{name}: makespan is {makespan:.3} of the GPU's"));
    }
    if overlap.abs() > TOLERANCE {
        misses.push(format!("{name}: overlap differs by {overlap:+.3}"));
    }
    misses
}
