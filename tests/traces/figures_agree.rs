//! What the screen shows of a run is what its JSON report says: of every bundled scenario, and of a run
//! written down by hand whose figures are reckoned here.

use cuptop::bundled::LIBRARY;
use std::sync::Arc;

use crate::common::{load, real_traces};
use activity::feed::{Message, Outcome};
use activity::{
    Activity, Batch, Copy, Def, DeviceInfo, Direction, Kernel, LaunchShape, MemoryKind, Place,
    Range, RangeKind, Span, What, units,
};
use cuptop::report::KnownGpus;
use cuptop::report::Report;
use cuptop::report::compare::Comparison;
use cuptop::tui::action::Action;
use cuptop::tui::app::App;
use cuptop::tui::{Theme, render};
use findings::Finding;
use ratatui::layout::Size;
use readers::file;
use scenario::{Overrides, compile};
use serde_json::Value;
use sim::{Pace, Profile, run};
use trace::{SourceInfo, Trace};

/// A line of the compare view, as it must look by the JSON's numbers.
fn expected(variant: &Value, is_baseline: bool) -> Vec<String> {
    let dash = || "—".to_owned();
    let figure = |name: &str| variant["figures"][name].as_f64();
    let time = |name: &str| figure(name).map_or_else(dash, |ns| units::duration(ns as i64));
    let share = |name: &str| figure(name).map_or_else(dash, units::percent);
    let rate = |name: &str| figure(name).map_or_else(String::new, units::rate);
    let speedup = &variant["speedup"];
    let faster = match speedup["factor"].as_f64() {
        Some(factor) if speedup["by"] == "wall" => format!("{} wall", units::factor(factor)),
        Some(factor) => units::factor(factor),
        None if is_baseline => units::factor(1.0),
        None => dash(),
    };
    vec![
        time("makespan"),
        time("wall"),
        faster,
        share("idle"),
        share("overlap"),
        rate("h2d_gbps"),
        rate("d2h_gbps"),
    ]
}

/// The lines of the compare view.
fn compare_view(app: &mut App) -> Vec<String> {
    // The table takes a quarter of the view where it is long.
    app.state.size = Size::new(
        160,
        4 * app.state.model.run.measured.variants.len() as u16 + 60,
    );
    app.act(Action::Show(3));
    let buffer = render(app, &Theme::default());
    let width = usize::from(buffer.area.width);
    let text = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|c| c.symbol()).collect();
    buffer.content.chunks(width).map(text).collect()
}

/// What the timeline says below its GPU row of the time in view.
fn legend(app: &mut App) -> String {
    app.act(Action::Show(0));
    app.state.size = Size::new(400, 60);
    // A program opens on one of its steps.
    app.act(Action::Fit);
    let buffer = render(app, &Theme::default());
    let rows = buffer.content.chunks(usize::from(buffer.area.width));
    let lines = rows.map(|row| row.iter().map(|c| c.symbol()).collect::<String>());
    // The findings stand to the right of it.
    let mut lines = lines.map(|line| line.split('│').next().unwrap_or_default().to_owned());
    let is_legend = |line: &String| {
        line.contains(" %") && (line.contains("■ kernels") || line.contains("■ copies"))
    };
    lines.find(is_legend).unwrap_or_default()
}

/// Compares the screen with a report, line by line.
fn check(app: &mut App, report: &Report, name: &str) {
    let json: Value = serde_json::from_str(&report.json().expect("json")).expect("valid");
    let variants = json["variants"].as_array().expect("variants");
    let lines = compare_view(app);
    let measured = &app.state.model.run.measured.variants;
    assert_eq!(variants.len(), measured.len(), "{name}");
    for (variant, measured) in variants.iter().zip(measured) {
        let label = measured.label();
        assert_eq!(variant["name"], measured.variant.name.as_str());
        let over = |v: &Value| v["speedup"]["over"] == label.as_str();
        let words = expected(variant, variants.iter().any(over));
        let line = format!("{label} {}", words.join(" "));
        let is_shown = |shown: &String| {
            let shown = shown.trim_start_matches(['▸', ' ']);
            shown.split_whitespace().eq(line.split_whitespace())
        };
        assert!(
            lines.iter().any(is_shown),
            "{name}: {line:?} is not in\n{}",
            lines.join("\n")
        );
    }
}

#[test]
fn the_compare_view_and_the_report_say_the_same_of_every_bundled_scenario() {
    for scenario in LIBRARY.scenarios {
        let compiled = compile(&LIBRARY.source(scenario), &Overrides::default());
        let plan = Arc::new(compiled.expect("a bundled scenario compiles").plan);
        let feed = run(
            plan.clone(),
            &Profile::bundled(),
            Pace::AsFastAsPossible,
            None,
        )
        .expect("a thread");
        let mut app = App::new(Vec::new());
        let source = SourceInfo::default();
        app.start(source, Some(plan.clone()), KnownGpus::default());
        let mut trace = Trace::new(SourceInfo::default());
        for (i, message) in feed.receiver().iter().enumerate() {
            if let Message::Batch(batch) = &message {
                trace.apply(batch.clone());
            }
            let is_last = matches!(message, Message::Finished(Outcome::Complete));
            app.take(message);
            // Passes and figures grow with the run, as on a screen.
            if i % 16 == 0 {
                app.prepare();
            }
            if is_last {
                break;
            }
        }
        app.prepare();
        let report = Report::new(&trace, Some(&plan), KnownGpus::default());
        let measured = report.variants.as_ref().expect("a run").len();
        assert_eq!(measured, plan.variants.len(), "{}", scenario.name);
        check(&mut app, &report, scenario.name);
        check_findings(&mut app, &report, scenario.name);
    }
}

/// What the screen finds in what is on it.
fn found(app: &App) -> &[Finding] {
    let state = &app.state;
    let answer = state.answer();
    &answer.expect("an answer").findings
}

/// Compares the findings of each variant, and of all together, with those of the report.
fn check_findings(app: &mut App, report: &Report, name: &str) {
    let variants = report.variants.as_deref().expect("variants");
    for _ in variants {
        app.act(Action::Variant(1));
        app.prepare();
        let shown = app.state.variant();
        let of = variants.iter().find(|v| Some(v.figures.position) == shown);
        let of = of.expect("the variant on screen is in the report");
        assert_eq!(found(app), of.findings, "{name} {}", of.figures.label());
    }
    app.act(Action::WholeRun);
    app.prepare();
    assert_eq!(found(app), report.findings, "{name}");
}

/// Two devices that work in turns; copies of one direction on two streams at once; kernels of one stream
/// that overlap, the longest not the last to start.
fn by_hand() -> Trace {
    let place = |device, stream| Place {
        device,
        context: 1,
        stream,
    };
    let item = |start, end, what| Activity {
        span: Span::new(start, end),
        correlation: 0,
        what,
    };
    let copy = |device, stream, start, end| {
        let copy = Copy {
            place: place(device, stream),
            direction: Direction::H2D,
            from: MemoryKind::Pinned,
            to: MemoryKind::Device,
            is_async: true,
            bytes: 1_000,
            peer: 0,
            graph: 0,
            node: 0,
        };
        item(start, end, What::Copy(copy))
    };
    let kernel = |device, stream, start, end| {
        let kernel = Kernel {
            place: place(device, stream),
            shape: 0,
            graph: 0,
            node: 0,
        };
        item(start, end, What::Kernel(kernel))
    };
    let range = |kind, start, end| {
        let range = Range {
            kind,
            name: 0,
            thread: 1,
            index: 0,
        };
        item(start, end, What::Range(range))
    };
    let device = |id| {
        Def::Device(DeviceInfo {
            id,
            ..DeviceInfo::default()
        })
    };
    let mut trace = Trace::new(SourceInfo::default());
    trace.apply(Batch {
        defs: vec![
            Def::Name {
                id: 0,
                text: "turns".to_owned(),
            },
            Def::Shape {
                id: 0,
                shape: LaunchShape::default(),
            },
            device(0),
            device(1),
        ],
        items: vec![
            copy(0, 1, 1_000, 1_100),
            copy(0, 2, 1_050, 1_150),
            kernel(1, 3, 1_150, 1_550),
            kernel(1, 3, 1_200, 1_250),
            kernel(0, 1, 1_600, 1_650),
            range(RangeKind::Repeat, 900, 1_800),
            range(RangeKind::Variant, 800, 1_900),
        ],
        ..Batch::default()
    });
    trace
}

#[test]
fn two_devices_and_operations_that_overlap_count_as_the_definitions_say() {
    let trace = by_hand();
    let report = Report::new(&trace, None, KnownGpus::default());
    let json: Value = serde_json::from_str(&report.json().expect("json")).expect("valid");
    let figures = &json["variants"][0]["figures"];
    // From 1000 to 1650; nothing runs on either device from 1550 to 1600. Each copy moves 10 bytes a
    // nanosecond, the link 13.3. No kernel runs beside a copy of its device.
    let by_hand = [
        ("makespan", 650.0),
        ("wall", 900.0),
        ("idle", 50.0 / 650.0),
        ("overlap", 0.0),
        ("h2d_gbps", 10.0),
        ("ops", 5.0),
        ("kernels", 3.0),
    ];
    assert_eq!(
        figures.as_object().map(|all| all.len()),
        Some(by_hand.len())
    );
    for (name, value) in by_hand {
        let found = figures[name].as_f64().expect(name);
        assert!((found - value).abs() < 1e-12, "{name}: {found}");
    }
    let mut app = App::of_trace(trace, None, KnownGpus::default());
    check(&mut app, &report, "by hand");
}

#[test]
fn a_saved_run_knows_its_variants_without_the_scenario() {
    let scenario = LIBRARY
        .scenarios
        .iter()
        .find(|s| s.name == "pipeline")
        .expect("it is bundled");
    let compiled = compile(&LIBRARY.source(scenario), &Overrides::default());
    let plan = Arc::new(compiled.expect("it compiles").plan);
    let folder = tempfile::tempdir().expect("a folder");
    let saved = folder.path().join("run");
    let drain = |feed: activity::feed::Feed| {
        let mut trace = Trace::new(SourceInfo::default());
        for message in feed.receiver() {
            match message {
                Message::Batch(batch) => trace.apply(batch),
                Message::Finished(outcome) => assert_eq!(outcome, Outcome::Complete),
                _ => {}
            }
        }
        trace
    };
    let feed = run(
        plan.clone(),
        &Profile::bundled(),
        Pace::AsFastAsPossible,
        None,
    )
    .expect("a thread");
    let ran = drain(recording::tee(feed, &saved).expect("a recording"));
    let opened = drain(
        file::open(&[saved], &mut |_| {})
            .expect("it can be opened")
            .feed,
    );
    let of = |trace: &Trace, plan| Report::new(trace, plan, KnownGpus::default());
    let (ran, opened) = (of(&ran, Some(&*plan)), of(&opened, None));
    let brief = |report: &Report| -> Vec<(String, usize, Vec<i64>, i64)> {
        let variants = report.variants.iter().flatten().map(|v| &v.figures);
        let one =
            |v: &figures::VariantFigures| (v.label(), v.repeats, v.makespans_ns.clone(), v.wall_ns);
        variants.map(one).collect()
    };
    let names: Vec<&str> = plan.variants.iter().map(|v| v.name.as_str()).collect();
    let found = brief(&opened);
    let labels: Vec<&str> = found.iter().map(|v| v.0.as_str()).collect();
    assert_eq!(labels, names);
    assert_eq!(found, brief(&ran));
    // Two runs are compared variant by variant.
    let comparison = Comparison::new(&ran, &opened);
    let groups: Vec<&str> = comparison.groups.iter().map(|g| g.of.as_str()).collect();
    assert_eq!(groups, names);
    for group in &comparison.groups {
        let makespan = group.figures.iter().find(|f| f.figure == "makespan");
        assert_eq!(
            makespan.expect("a makespan").ratio,
            Some(1.0),
            "{}",
            group.of
        );
    }
}

/// Of real traces the legend says the shares of the time in view, which is all of it.
#[test]
fn the_legend_and_the_report_say_the_same_of_every_real_trace() {
    let of = |f: &Finding| {
        (
            f.rule.name(),
            f.title.clone(),
            f.saving_ns,
            f.refused.clone(),
        )
    };
    for (path, _) in real_traces() {
        let name = path.display().to_string();
        let trace = load(std::slice::from_ref(&path)).trace;
        let report = Report::new(&trace, None, KnownGpus::default());
        let json: Value = serde_json::from_str(&report.json().expect("json")).expect("valid");
        let devices = json["devices"].as_array().expect("devices");
        let mut app = App::of_trace(trace, None, KnownGpus::default());
        if json["variants"].is_array() {
            check(&mut app, &report, &name);
            continue;
        }
        let start_up = report.start_up_findings.iter().flatten();
        let rules: Vec<_> = report.findings.iter().chain(start_up).map(of).collect();
        let shown: Vec<_> = found(&app).iter().map(of).collect();
        assert_eq!(shown, rules, "{name}");
        let legend = legend(&mut app);
        // Of several devices: their times together.
        let sum = |key: &str| devices.iter().filter_map(|d| d[key].as_f64()).sum::<f64>();
        let starts_together = devices.len() == 1;
        let (ran, idle) = legend.split_once("idle:").unwrap_or((&legend, ""));
        let kernels = ran.split_once("copies").map_or(ran, |parts| parts.0);
        for (part, key) in [(idle, "idle_ns"), (kernels, "compute_ns")] {
            let words: Vec<&str> = part.split_whitespace().collect();
            let shares = words.windows(2).filter(|it| it[1] == "%");
            let shares: Vec<f64> = shares.filter_map(|it| it[0].parse().ok()).collect();
            let share = 100.0 * sum(key) / sum("span_ns");
            let off = (shares.iter().sum::<f64>() - share).abs();
            // Each is written to a whole per cent, or to a tenth of one below 1 %. Devices that do not begin and end
            // together are idle on the screen for what the others work before and after.
            let allowed =
                if starts_together { 0.0 } else { 2.0 } + 0.5 * shares.len().max(1) as f64;
            assert!(
                off <= allowed,
                "{name}: {key} is {share:.2} %, and shown: {legend}"
            );
        }
    }
}
