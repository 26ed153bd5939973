//! Every bundled scenario runs on the simulator, and what it expects of a GPU holds there too.
//!
//! `cargo test --test scenarios scenarios_on_sim -- --nocapture` prints the figures.

#![expect(clippy::print_stdout, reason = "figures, for whoever tunes the model")]

use cuptop::bundled::LIBRARY;
use scenario::bundled::Bundled;
use std::sync::Arc;

use activity::Def;
use activity::feed::{Message, Outcome};
use cuptop::report::KnownGpus;
use cuptop::report::Report;
use cuptop::report::expect::check;
use figures::Peaks;
use figures::class::Class;
use figures::passes::Passes;
use figures::testing::variants;
use figures::variants::RunFigures;
use scenario::figures::{CAUSES, Kind};
use scenario::plan::{CopySpec, OpKind, Plan};
use scenario::{Overrides, Source, compile, template};
use sim::{Pace, Profile, run};
use trace::{Measure, SourceInfo, Trace};

fn plan_of(scenario: &Bundled) -> Arc<Plan> {
    let compiled = compile(&LIBRARY.source(scenario), &Overrides::default());
    Arc::new(
        compiled
            .unwrap_or_else(|errors| panic!("{}", errors.render(false)))
            .plan,
    )
}

fn simulate(plan: Arc<Plan>) -> Trace {
    simulate_on(plan, &Profile::bundled())
}

fn simulate_on(plan: Arc<Plan>, profile: &Profile) -> Trace {
    sampled(plan, profile, None)
}

fn sampled(plan: Arc<Plan>, profile: &Profile, hz: Option<u32>) -> Trace {
    let feed = run(plan, profile, Pace::AsFastAsPossible, hz).expect("a thread");
    let mut trace = Trace::new(SourceInfo::default());
    for message in feed.receiver() {
        match message {
            Message::Batch(batch) => trace.apply(batch),
            Message::Finished(outcome) => assert_eq!(outcome, Outcome::Complete),
            other => panic!("unexpected {other:?}"),
        }
    }
    trace
}

#[test]
fn sixteen_scenarios_are_bundled_and_each_expects_something() {
    assert_eq!(LIBRARY.scenarios.len(), 16);
    for scenario in LIBRARY.scenarios {
        let plan = plan_of(scenario);
        assert!(!plan.expectations.is_empty(), "{}", scenario.name);
        assert!(
            !plan.about.is_empty() && !plan.look_for.is_empty(),
            "{}",
            scenario.name
        );
        assert!(
            plan.variants.len() >= 2,
            "{}: a mistake and its cure",
            scenario.name
        );
    }
}

fn peaks_of(profile: &Profile) -> Peaks {
    Peaks {
        h2d: Some(profile.copy.h2d_gbps),
        d2h: Some(profile.copy.d2h_gbps),
        memory: Some(profile.device.memory_gbps),
        flops: Some(profile.device.fp32_tflops * 1e12),
        ..Peaks::default()
    }
}

/// What waits cost is asked of the waits alone, of a run that is reported and of one on screen.
#[test]
fn what_a_scenario_expects_of_a_cause_and_of_a_step_is_judged() {
    let bundled = LIBRARY.scenarios.iter().find(|it| it.name == "sync_points");
    let mut source = LIBRARY.source(bundled.expect("it is bundled"));
    let mut lines = vec![
        r#""no_sync.idle_by.sync" = "<= 5 %""#.to_owned(),
        r#""stream_sync.idle_by.sync" = "<= 1 %""#.to_owned(),
        r#""no_sync.step" = "<= 3 ms""#.to_owned(),
        r#""device_sync.idle" = ">= 0""#.to_owned(),
    ];
    lines.extend(CAUSES.map(|it| format!(r#""device_sync.idle_by.{it}" = ">= 0""#)));
    let (head, _) = source.text.split_once("[expect]").expect("it expects");
    source.text = format!("{head}[expect]\n{}\n", lines.join("\n")).into();
    let plan =
        compile(&source, &Overrides::default()).unwrap_or_else(|it| panic!("{}", it.render(false)));
    let plan = Arc::new(plan.plan);
    let trace = simulate(plan.clone());
    let report = Report::new(&trace, Some(&plan), KnownGpus::default());
    let checked = report.expectations.expect("a plan");
    let value = |at: usize| checked[at].measured.expect("it is measured");
    assert_eq!(
        checked[..3].iter().map(|it| it.ok).collect::<Vec<_>>(),
        [true, false, true]
    );
    let (idle, by) = (value(3), (4..11).map(value).collect::<Vec<_>>());
    assert!(
        (by.iter().sum::<f64>() - idle).abs() < 1e-9,
        "{by:?} of {idle}"
    );
    assert!(by[2] > 0.2, "100 rounds wait: {by:?}");
    // The 200 kernels of 10 us lie side by side on two streams.
    assert!((1e6..1.2e6).contains(&value(2)), "{}", value(2));
    let passes = Passes::of_trace(&trace, Some(&plan));
    let mut shown = RunFigures::default();
    shown.update(&trace, &passes, Some(&plan), false);
    assert_eq!(check(&plan, &shown.variants, Peaks::default()), checked);
}

/// The model's repeats are alike, so the fewest do. What they come to is said.
#[test]
fn a_variant_repeats_until_its_median_is_known() {
    let text = |repeat: &str, ended_after: Option<u32>| {
        let mut source = LIBRARY.source(&LIBRARY.scenarios[0]);
        let named = |name: &str| format!("name = \"{name}\"\n");
        let (from, to) = (named("sequential"), named("sequential") + repeat + "\n");
        assert!(source.text.contains(&from), "{}", source.name);
        source.text = source.text.replacen(&from, &to, 1).into();
        let compiled = compile(&source, &Overrides::default());
        let compiled = compiled.unwrap_or_else(|it| panic!("{}", it.render(false)));
        let mut plan = compiled.plan;
        let first = &mut plan.variants[0];
        first.repeat = ended_after.unwrap_or(first.repeat);
        let plan = Arc::new(plan);
        let trace = simulate(plan.clone());
        let measured = variants(&trace, Some(&plan)).swap_remove(0);
        (measured.repeats, measured.precision())
    };
    let said = |it: &str| Some(it.to_owned());
    let six = text("repeat = { until = \"2 %\" }", None);
    assert_eq!(six, (6, said("6 repeats: median ± 0 %")));
    let four = text("repeat = { until = \"2 %\" }", Some(4));
    assert_eq!(four, (4, said("4 repeats: too few for the 2 % asked")));
    assert_eq!(text("repeat = 2", None), (2, None));
}

/// A GPU with a third of an H200's rates and half of its link: what a lesson shows, it shows there, too.
#[test]
fn what_scenarios_expect_holds_on_an_a100_as_well() {
    let failed = expectations_that_fail(&Profile::assumed_a100());
    assert!(failed.is_empty(), "{failed:#?}");
}

/// What each kernel does with the simulated H200, reckoned by hand: bytes (in `fused_sin` 2^29, in `transpose` 2^27, in
/// `roofline` 2^28) or 2 * 1024 * 2^25 operations, over the profile's peak (4814.3 GB/s, 66.9 TFLOP/s) in the kernel's time. What
/// fits into 60 MB of L2 takes no DRAM: a row, the small arrays, three matrices of 16 MiB.
#[rustfmt::skip]
const DONE: [(&str, &str, &str, f64, f64, Class); 9] = [
    ("fused_sin", "separate", "sin", 0.859, 0.0, Class::Memory),
    ("fused_sin", "fused", "sin_fused", 0.834, 0.0, Class::Memory),
    ("transpose", "row_by_row", "row", 0.0, 0.0, Class::Launch),
    ("transpose", "naive", "naive", 0.113, 0.0, Class::Latency),
    ("transpose", "tiled", "tiled", 0.364, 0.0, Class::Latency),
    ("transpose", "padded", "padded", 0.724, 0.0, Class::Memory),
    ("roofline", "large iterations=1024", "fma", 0.048, 0.884, Class::Compute),
    ("roofline", "small iterations=1024", "fma", 0.0, 0.022, Class::Latency),
    ("pipeline", "sequential", "matmul", 0.0, 0.623, Class::Compute),
];

#[test]
fn the_simulators_counters_see_what_its_kernels_declare() {
    let h200 = Profile::bundled();
    for name in ["fused_sin", "transpose", "roofline", "pipeline"] {
        let scenario = LIBRARY.scenarios.iter().find(|it| it.name == name);
        let plan = plan_of(scenario.expect("bundled"));
        let trace = sampled(plan.clone(), &h200, Some(500_000));
        assert!(trace.hardware().notes[0].contains("no GPU was sampled"));
        let report = Report::new(&trace, Some(&plan), KnownGpus::from_iter([(&h200).into()]));
        let variants = report.variants.expect("a run's");
        let work = |variant: &str, kernel: &str| {
            let of = variants.iter().find(|it| it.figures.label() == variant);
            let mut work = of.expect("ran").work.iter();
            work.find(|it| it.kernel == kernel)
                .expect("declares")
                .clone()
        };
        for (_, variant, kernel, dram, issue, class) in DONE.iter().filter(|it| it.0 == name) {
            let it = work(variant, kernel);
            let is_near =
                |share: Option<f64>, by_hand: f64| (share.expect("told") - by_hand).abs() < 0.002;
            assert!(
                is_near(it.dram_share, *dram) && is_near(it.issue_share, *issue),
                "{it:?}"
            );
            assert_eq!(it.class, *class, "{it:?}");
            // Both are known: they agree within 5 points, as they should on a GPU.
            for (declared, counted) in [
                (it.declared_dram_share, it.dram_share),
                (it.declared_flops_share, it.issue_share),
            ] {
                let apart = declared.map_or(0.0, |declared| declared - counted.expect("told"));
                assert!(apart.abs() < 0.05, "{it:?}");
            }
        }
        // Nobody asked, nobody counted.
        let silent = Report::new(
            &simulate(plan.clone()),
            Some(&plan),
            KnownGpus::from_iter([(&h200).into()]),
        );
        assert!(
            silent
                .variants
                .iter()
                .flatten()
                .all(|it| it.work.is_empty())
        );
        assert!(silent.hardware.is_none());
    }
}

#[test]
fn what_scenarios_expect_holds_on_the_simulator() {
    let failed = expectations_that_fail(&Profile::bundled());
    assert!(failed.is_empty(), "{failed:#?}");
}

fn expectations_that_fail(profile: &Profile) -> Vec<String> {
    let mut failed = Vec::new();
    for scenario in LIBRARY.scenarios {
        let plan = plan_of(scenario);
        let trace = simulate_on(plan.clone(), profile);
        let figures = variants(&trace, Some(&plan));
        for v in &figures {
            println!(
                "{:20} {:34} makespan {:>10} ns, wall {:>12} ns, idle {:.2}, overlap {:.2}",
                scenario.name,
                v.label(),
                v.makespan_ns,
                v.wall_ns,
                v.value(Kind::Idle).unwrap_or(0.0),
                v.value(Kind::Overlap).unwrap_or(0.0),
            );
        }
        for checked in check(&plan, &figures, peaks_of(profile)) {
            let line = format!(
                "{}: {} {}: {} {}",
                scenario.name,
                checked.what,
                checked.expected,
                checked.shown,
                checked.why.unwrap_or_default()
            );
            println!("{} {line}", if checked.ok { "ok    " } else { "FAILED" });
            if !checked.ok {
                failed.push(line);
            }
        }
    }
    failed
}

/// What the file of `cuptop new` says is to be seen: downloads above uploads in one variant, nothing in the other.
#[test]
fn the_template_shows_what_it_says() {
    let source = Source {
        name: "new.toml".to_owned(),
        path: None,
        text: template("mine").into(),
        kernel_dir: None,
        library: LIBRARY,
    };
    let compiled = compile(&source, &Overrides::default());
    let plan = Arc::new(
        compiled
            .unwrap_or_else(|e| panic!("{}", e.render(false)))
            .plan,
    );
    assert!(
        plan.look_for
            .contains("download of one batch lies above the upload")
    );
    let trace = simulate(plan.clone());
    let figures = variants(&trace, Some(&plan));
    let together = |name: &str| {
        let variant = figures
            .iter()
            .find(|v| v.label() == name)
            .expect("a variant");
        let pass = variant.pass.operations.expect("it uses the GPU");
        let both = trace.devices()[0].usage.time(Measure::Concurrent, pass);
        both as f64 / pass.len() as f64
    };
    assert_eq!(together("sequential"), 0.0);
    assert!(together("streamed") > 0.3, "{}", together("streamed"));
}

/// Counts of what a plan's passes ask for: every operation must appear exactly once.
#[test]
fn every_operation_of_every_pass_appears_once() {
    for scenario in LIBRARY.scenarios {
        let plan = plan_of(scenario);
        let trace = simulate(plan.clone());
        for v in variants(&trace, Some(&plan)) {
            let spec = &plan.variants[v.variant.index];
            let (mut operations, mut kernels) = (0u64, 0u64);
            for op in &spec.ops {
                let inner = match op.kind {
                    OpKind::GraphLaunch { graph, .. } => spec.graphs[graph].ops.as_slice(),
                    _ => std::slice::from_ref(op),
                };
                for op in inner {
                    match op.kind {
                        OpKind::Launch { .. } => {
                            operations += 1;
                            kernels += 1;
                        }
                        OpKind::Memset { .. } => operations += 1,
                        OpKind::Copy(CopySpec { bytes, chunk, .. }) if chunk > 0 => {
                            operations += bytes.div_ceil(chunk);
                        }
                        OpKind::Copy(CopySpec { .. }) => operations += 1,
                        _ => {}
                    }
                }
            }
            let name = format!("{} {}", scenario.name, v.label());
            assert_eq!(v.value(Kind::Kernels), Some(kernels as f64), "{name}");
            // A cold pass also fills its buffers.
            let fills = if spec.cold {
                spec.buffers.len() as u64
            } else {
                0
            };
            assert_eq!(
                v.value(Kind::Ops),
                Some((operations + fills) as f64),
                "{name}"
            );
        }
    }
}

/// Copies of managed memory are copies: another buffer is at their other end.
#[test]
fn a_copy_with_managed_memory_is_called_a_copy() {
    let text = r#"
name = "Managed"
[buffers.a]
bytes = 64
host = "managed"
[buffers.b]
bytes = 64
host = "pinned"
[[variant]]
name = "v"
repeat = 1
steps = [{ d2h = "a", to = "b", stream = "s" }, { sync = "device" }]
"#;
    let source = Source {
        name: "managed.toml".to_owned(),
        path: None,
        text: text.into(),
        kernel_dir: None,
        library: LIBRARY,
    };
    let plan = compile(&source, &Overrides::default()).expect("valid").plan;
    let feed = run(
        Arc::new(plan),
        &Profile::bundled(),
        Pace::AsFastAsPossible,
        None,
    )
    .expect("a thread");
    let mut names = Vec::new();
    for message in feed.receiver() {
        if let Message::Batch(batch) = message {
            for def in batch.defs {
                if let Def::Name { text, .. } = def {
                    names.push(text);
                }
            }
        }
    }
    assert!(
        names.iter().any(|name| name == "cuMemcpyDtoHAsync"),
        "{names:?}"
    );
    assert!(
        !names.iter().any(|name| name.contains("Prefetch")),
        "{names:?}"
    );
}
