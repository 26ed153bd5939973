//! The report's JSON contract, and expectations against runs written down by hand.

use crate::report::{KnownGpu, KnownGpus};
use figures::Peaks;
use serde_json::json;

mod evicted;
mod expectations;

use super::*;
use activity::{Direction, LaunchShape, MemoryAction, RangeKind};
use findings::{OfSteps, Rule};
use scenario::expect::{Compare, Expectation, Figure, Kind};
use scenario::plan::{GraphSpec, KernelSpec, LaunchSpec, Op, OpKind, StreamSpec, VariantPlan};
use trace::testing::Scene;

fn launch(kernel: usize, grid: u32) -> LaunchSpec {
    LaunchSpec {
        kernel,
        grid: [grid, 1, 1],
        block: [64, 1, 1],
        shared: 0,
        args: Vec::new(),
        flops: Some(1_000),
        bytes: Some(400),
        time: None,
    }
}

fn kernel(name: &str, entry: &str) -> KernelSpec {
    KernelSpec {
        name: name.to_owned(),
        file: "k.cu".to_owned(),
        source: "".into(),
        entry: entry.to_owned(),
        site: 0,
    }
}

fn op(kind: OpKind) -> Op {
    Op { kind, site: 0 }
}

/// A variant that launches kernel 0 twice, once of them by a graph.
fn variant(name: &str, point: Option<i64>) -> VariantPlan {
    let launched = op(OpKind::Launch {
        launch: 0,
        stream: 0,
    });
    VariantPlan {
        name: name.to_owned(),
        point,
        repeat: 1,
        streams: vec![StreamSpec::default()],
        kernels: vec![kernel("add", "add_kernel")],
        launches: vec![launch(0, 4)],
        graphs: vec![GraphSpec {
            name: "g".to_owned(),
            ops: vec![launched],
        }],
        ops: vec![
            launched,
            op(OpKind::GraphLaunch {
                graph: 0,
                stream: 0,
            }),
        ],
        ..VariantPlan::default()
    }
}

fn plan(variants: Vec<VariantPlan>, expectations: Vec<Expectation>) -> Plan {
    Plan {
        pairs: Vec::new(),
        name: "test".to_owned(),
        about: String::new(),
        look_for: String::new(),
        sweep: None,
        variants,
        runs: 0,
        sites: Vec::new(),
        expectations,
    }
}

fn expectation(variant: &str, figure: Figure, compare: Compare, value: f64) -> Expectation {
    Expectation {
        what: format!("{variant}.figure"),
        variant: variant.to_owned(),
        point: None,
        figure,
        compare,
        value,
        expected: format!("{value}"),
        site: 0,
    }
}

fn shape() -> LaunchShape {
    LaunchShape {
        grid: [4, 1, 1],
        block: [64, 1, 1],
        ..LaunchShape::default()
    }
}

/// The operations of [`scene`] without the ranges that make it a run.
fn known(peaks: Peaks) -> KnownGpus {
    KnownGpus::from_iter([KnownGpu {
        peaks,
        ..KnownGpu::default()
    }])
}

fn device_scene() -> Scene {
    let mut scene = Scene::new();
    for (at, makespan) in [(1000, 1000), (3000, 250)] {
        scene.copy(Direction::H2D, 1, 500, at + 200, at + 210);
        scene.shaped(shape(), "add_kernel", 1, at + 205, at + 255);
        let end = at + 200 + makespan;
        scene.shaped(shape(), "add_kernel", 1, end - 150, end);
    }
    scene
}

/// `slow` takes 1000 ns, `fast` 250; the kernel of each runs twice for 50 ns and 150 ns.
fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.memory(MemoryAction::Alloc, 1, 4096, 0);
    for (index, name, at, makespan) in [(0, "slow", 1000, 1000), (1, "fast", 3000, 250)] {
        scene.range(RangeKind::Variant, name, index, at, at + 1800);
        scene.range(RangeKind::Repeat, name, 0, at + 100, at + 1700);
        scene.range(RangeKind::Phase, "load", 0, at + 100, at + 160);
        scene.copy(Direction::H2D, 1, 500, at + 200, at + 210);
        scene.shaped(shape(), "add_kernel", 1, at + 205, at + 255);
        let end = at + 200 + makespan;
        scene.shaped(shape(), "add_kernel", 1, end - 150, end);
    }
    scene
}

#[test]
fn field_names_are_the_contract() {
    let plan = plan(
        vec![variant("slow", None), variant("fast", None)],
        vec![expectation(
            "fast",
            Figure::new(Kind::Ops, ""),
            Compare::AtLeast,
            1.0,
        )],
    );
    let report = Report::new(&scene().trace(), Some(&plan), KnownGpus::default());
    let json: serde_json::Value =
        serde_json::from_str(&report.json().expect("json")).expect("valid");
    let has = |value: &serde_json::Value, keys: &[&str]| {
        for key in keys {
            assert!(value.get(key).is_some(), "{key} is missing in {value}");
        }
    };
    has(
        &json,
        &[
            "cuptop",
            "schema",
            "source",
            "devices",
            "health",
            "findings",
            "variants",
            "expectations",
        ],
    );
    has(&json["source"], &["kind", "path", "simulated"]);
    has(
        &json["devices"][0],
        &[
            "device",
            "name",
            "ops",
            "kernels",
            "memsets",
            "span_ns",
            "busy_ns",
            "idle_ns",
            "compute_ns",
            "copy_ns",
            "overlap_ns",
            "h2d",
            "d2h",
            "d2d",
            "p2p",
            "streams",
            "gaps",
            "no_api",
        ],
    );
    has(
        &json["devices"][0]["h2d"],
        &["count", "bytes", "busy_ns", "gbps"],
    );
    has(
        &json["devices"][0]["gaps"],
        &["over_10us", "over_100us", "over_1ms", "longest_ns"],
    );
    has(
        &json["health"],
        &["received", "dropped", "late", "rejected"],
    );
    has(
        &json["health"]["rejected"],
        &["no_timestamp", "end_before_start"],
    );
    has(
        &json["variants"][0],
        &[
            "name",
            "repeats",
            "makespan_ns",
            "wall_ns",
            "devices",
            "findings",
        ],
    );
    has(
        &json["expectations"][0],
        &["what", "expected", "measured", "ok"],
    );
    assert_eq!(json["variants"][0]["makespan_ns"], json!(1000));
    assert_eq!(json["expectations"][0]["measured"], json!(3.0));
    // Without a plan the ranges tell the variants, but nothing is expected of them.
    let report = Report::new(&scene().trace(), None, KnownGpus::default());
    let json = serde_json::to_value(&report).expect("json");
    assert_eq!(json["variants"][1]["name"], json!("fast"));
    assert!(json.get("expectations").is_none());
    // A timeline that is no run has none.
    let mut scene = Scene::new();
    scene.kernel("k", 1, 0, 10);
    let report = Report::new(&scene.trace(), None, KnownGpus::default());
    let json = serde_json::to_value(&report).expect("json");
    assert!(json.get("variants").is_none());
}

fn simulated() -> Trace {
    let mut trace = scene().trace();
    trace.source.simulated = true;
    trace.source.title = "evil\u{1b}[2Jtitle".to_owned();
    trace.apply(activity::Batch {
        health: Some(Health {
            received: 12_000,
            dropped: 7,
            ..Health::default()
        }),
        ..activity::Batch::default()
    });
    trace
}

#[test]
fn the_text_says_what_is_simulated_and_what_is_missing() {
    let plan = plan(
        vec![variant("slow", None), variant("fast", None)],
        vec![
            expectation(
                "fast",
                Figure::new(Kind::SpeedupOver, "slow"),
                Compare::AtLeast,
                2.0,
            ),
            expectation(
                "fast",
                Figure::new(Kind::D2hGbps, ""),
                Compare::AtLeast,
                50.0,
            ),
        ],
    );
    let trace = simulated();
    let report = Report::new(&trace, Some(&plan), KnownGpus::default());
    let text = text::render(&report, &text::Options::default());
    for part in [
        "SIMULATED",
        "12,000 records received",
        "INCOMPLETE: 7 dropped by CUPTI",
        "fast  ",
        "250 ns",
        "ok     fast.figure 2: 4.00×",
        "FAILED fast.figure 50: not measured: nothing was copied D2H",
        "add_kernel",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    assert!(!text.contains('\u{1b}'));
    let color = text::Options {
        color: true,
        ..text::Options::default()
    };
    assert!(text::render(&report, &color).contains("\u{1b}[31;1m"));
    // A timeline that is no run shows its devices instead of variants.
    let mut trace = device_scene().trace();
    trace.source.title = "no run".to_owned();
    let report = Report::new(
        &trace,
        None,
        known(Peaks {
            h2d: Some(100.0),
            ..Peaks::default()
        }),
    );
    let text = text::render(&report, &text::Options::default());
    assert!(
        text.contains("4 kernels, 2 copies, 0 memsets, on 1 stream"),
        "{text}"
    );
    assert!(text.contains("50 %"), "{text}");
}

#[test]
fn parts_come_by_name_and_as_markdown() {
    use text::{Options, Parts, Section};
    let mut scene = device_scene();
    scene.kernel("mul|a", 1, 9000, 9900);
    let report = Report::new(&scene.trace(), None, KnownGpus::default());
    let write = |parts, markdown| {
        let options = Options {
            parts,
            markdown,
            ..Options::default()
        };
        text::render(&report, &options)
    };
    let only = write(
        Parts::Only(Section::Kernels.bit() | Section::Ranks.bit()),
        false,
    );
    assert!(
        only.contains("\nKernels\n") && !only.contains("GPU 0"),
        "{only}"
    );
    assert!(only.contains("ranks: nothing of that here"), "{only}");
    let brief = write(Parts::Summary, false);
    assert!(
        brief.contains("GPU 0") && brief.ends_with("--only kernels\n"),
        "{brief}"
    );
    // 900 of 1,300 ns of kernels, in a GPU that is idle for most of the time.
    let kernels = "kernel time: 69 % in mul|a, 31 % in add_kernel";
    assert!(brief.contains(kernels), "{brief}");
    let markdown = write(Parts::All, true);
    assert!(
        markdown.contains("\n### Kernels\n\n|  | count |"),
        "{markdown}"
    );
    assert!(markdown.contains("\n| mul\\|a | 1 |"), "{markdown}");
}

#[test]
fn what_stands_out_of_kernels_is_told_beside_their_times() {
    use text::{Options, Parts, Section};
    let shape = LaunchShape {
        grid: [64, 1, 1],
        block: [32, 1, 1],
        ..LaunchShape::default()
    };
    let mut scene = device_scene();
    scene.shaped(shape, "walk", 1, 20_000, 29_000);
    let report = Report::new(&scene.trace(), None, KnownGpus::default());
    let write = |parts| {
        let options = Options {
            parts,
            ..Options::default()
        };
        text::render(&report, &options)
    };
    let table = write(Parts::Only(Section::Kernels.bit()));
    assert!(table.contains("walk: blocks of 1 warp"), "{table}");
    let brief = write(Parts::Summary);
    assert!(brief.contains("in walk (blocks of 1 warp"), "{brief}");
}

#[test]
fn no_line_is_wider_than_asked() {
    use unicode_width::UnicodeWidthStr;
    let mut scene = device_scene();
    scene.kernel(&"very_long_kernel_name_".repeat(20), 1, 9000, 9900);
    // Something to find, with a title longer than a line.
    for i in 0..100 {
        let at = 10_000 + i * 20_000;
        scene.call("cudaMemcpyAsync", at, at + 9_000);
        scene.copy(Direction::D2H, 1, 4, at + 4_000, at + 6_000);
    }
    let report = Report::new(&scene.trace(), None, KnownGpus::default());
    for width in [60, 80, 120] {
        let options = text::Options {
            width,
            ..text::Options::default()
        };
        let text = text::render(&report, &options);
        assert!(text.contains("[tiny-copies]"));
        for line in text.lines() {
            assert!(line.width() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn a_comparison_puts_the_greatest_change_first() {
    let mut a = Scene::new();
    a.kernel("same", 1, 0, 100)
        .kernel("shrinks", 1, 100, 900)
        .kernel("grows", 1, 900, 910);
    a.copy(Direction::H2D, 1, 1000, 910, 920);
    let mut b = Scene::new();
    b.kernel("same", 1, 0, 100)
        .kernel("shrinks", 1, 100, 200)
        .kernel("grows", 1, 200, 230);
    b.kernel("new", 1, 230, 280)
        .copy(Direction::H2D, 1, 1000, 300, 310);
    let report = |scene: &mut Scene| Report::new(&scene.trace(), None, KnownGpus::default());
    let comparison = compare::Comparison::new(&report(&mut a), &report(&mut b));
    let changes: Vec<_> = comparison
        .operations
        .iter()
        .map(|o| (o.name.as_str(), o.change_ns, o.count_a, o.count_b))
        .collect();
    assert_eq!(
        changes,
        [
            ("shrinks", -700, 1, 1),
            ("new", 50, 0, 1),
            ("grows", 20, 1, 1)
        ]
    );
    let group = &comparison.groups[0];
    assert_eq!(group.of, "GPU 0");
    let span = group
        .figures
        .iter()
        .find(|f| f.figure == "span_ns")
        .expect("span");
    assert_eq!((span.a, span.b), (Some(920.0), Some(310.0)));
    assert!((span.ratio.expect("ratio") - 310.0 / 920.0).abs() < 1e-12);
    let gbps = group
        .figures
        .iter()
        .find(|f| f.figure == "d2h_gbps")
        .expect("gbps");
    assert_eq!((gbps.a, gbps.ratio), (None, None));
}

#[test]
fn findings_of_a_few_of_the_steps_say_of_how_many() {
    let looked_behind = |odd: usize, count: usize| {
        let of = OfSteps {
            one: 9_200,
            all: count as Ns * 10_000,
            count,
            of: 74,
            first: 16,
            found: 79,
            is_mean: false,
        };
        let other = Finding {
            step: Some(of),
            ..Default::default()
        };
        let first = Finding {
            rule: Rule::OddSteps,
            ..other.clone()
        };
        let found: Vec<_> = vec![first; odd].into_iter().chain([other]).collect();
        text::steps_looked_at(&found).expect("steps")
    };
    let looked = |count| looked_behind(0, count);
    assert_eq!(
        looked(57),
        ": times and shares are of steps 17 to 73 of 79 (570 µs, all of usual length)"
    );
    // Those are of all steps.
    let behind = looked_behind(1, 57);
    assert_eq!(
        behind,
        ": first of all 79 steps, then of steps 17 to 73 (570 µs, all of usual length)"
    );
    assert_eq!(looked(74), " in the 74 steady steps (740 µs)");
}
