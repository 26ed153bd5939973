//! What somebody sees first, and every view at the sizes that screens have.

use cuptop::bundled::LIBRARY;
use scenario::bundled::Bundled;
use std::path::Path;
use std::sync::Arc;

use crate::common::job::Job;
use activity::feed::{Message, Outcome};
use activity::{
    Activity, Batch, Def, HostCall, Kernel, LaunchShape, Place, Range, RangeKind, Span, What,
};
use cuptop::report::KnownGpus;
use cuptop::tui::action::Action;
use cuptop::tui::app::App;
use cuptop::tui::{Theme, render};
use ratatui::layout::Size;
use scenario::plan::Plan;
use scenario::{Overrides, compile};
use sim::{Pace, Profile, run};
use trace::{SourceInfo, Trace};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 50)];

fn plan_of(scenario: &Bundled) -> Arc<Plan> {
    let compiled = compile(&LIBRARY.source(scenario), &Overrides::default());
    let compiled = compiled.unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    Arc::new(compiled.plan)
}

/// A scenario when it has ended, as the simulator runs it.
fn ended(plan: &Arc<Plan>) -> App {
    let profile = Profile::bundled();
    let feed = run(plan.clone(), &profile, Pace::AsFastAsPossible, None).expect("a thread");
    let mut trace = Trace::new(SourceInfo {
        simulated: true,
        title: "a scenario".to_owned(),
        ..SourceInfo::default()
    });
    for message in feed.receiver() {
        if let Message::Batch(batch) = message {
            trace.apply(batch);
        }
    }
    App::of_trace(trace, Some(plan.clone()), KnownGpus::default())
}

fn named(name: &str) -> App {
    let found = LIBRARY.scenarios.iter().find(|s| s.name == name);
    ended(&plan_of(found.expect("it is bundled")))
}

fn lines(app: &mut App, (width, height): (u16, u16)) -> Vec<String> {
    app.state.size = Size::new(width, height);
    app.prepare();
    let buffer = render(app, &Theme::default());
    let cells = buffer.content.chunks(usize::from(width));
    cells
        .map(|line| line.iter().map(|c| c.symbol()).collect())
        .collect()
}

#[test]
fn every_scenario_opens_on_its_mistake_at_the_place_it_wants_seen() {
    // The variant, and of which part of its pass, in µs from its first operation; none for all of it. By hand, from what
    // the scenarios say of themselves.
    let expected = [
        ("alloc_in_loop", "malloc_each", Some(300)),
        ("copy_engines", "both_ways_one_stream", None),
        ("cpu_or_gpu", "gpu_matmul_with_copies n=1024", None),
        ("cross_stream_reuse", "race", None),
        ("cuda_graph", "launches", Some(100)),
        ("fused_sin", "separate", None),
        ("memory_peak", "sequential", None),
        ("pinned_vs_pageable", "pageable_sync size=256 MiB", None),
        ("pipeline", "sequential", None),
        ("roofline", "large iterations=1024", None),
        ("sync_points", "device_sync", Some(200)),
        ("three_streams", "host_syncs", None),
        ("tiny_copies", "copies", Some(100)),
        ("transpose", "row_by_row", Some(200)),
        ("two_gpus", "through_host", None),
        ("warmup", "cold", None),
    ];
    assert_eq!(expected.len(), LIBRARY.scenarios.len());
    for scenario in LIBRARY.scenarios {
        let (_, variant, part) = expected
            .iter()
            .find(|(name, ..)| *name == scenario.name)
            .unwrap_or_else(|| panic!("{} is not in the table", scenario.name));
        let mut app = ended(&plan_of(scenario));
        let screen = lines(&mut app, (120, 40));
        let title = format!("› {variant}");
        assert!(
            screen[0].contains(&title),
            "{}: {}",
            scenario.name,
            screen[0]
        );
        let operations = app.state.operations().expect("it uses a GPU");
        let window = app.state.focus.camera.viewport.window;
        match part {
            Some(us) => {
                assert_eq!(window.start, operations.start, "{}", scenario.name);
                assert_eq!(window.len(), us * 1_000, "{}", scenario.name);
                // What it is about can be told apart there: between operations there is black.
                let title = screen
                    .iter()
                    .position(|line| line.starts_with(" streams ─"));
                let stream = &screen[title.unwrap_or_else(|| panic!("{screen:#?}")) + 1];
                let plot: String = stream.chars().skip(13).take(80).collect();
                assert!(plot.contains(' '), "{}: {plot}", scenario.name);
            }
            None => {
                assert!(window.start <= operations.start, "{}", scenario.name);
                assert!(window.end >= operations.end, "{}", scenario.name);
            }
        }
    }
}

/// By the scenario its copy is launched at once and waits for the event behind the first GPU's copy, in whichever repeat.
#[test]
fn what_the_second_gpu_waits_for_is_told() {
    let mut app = named("two_gpus");
    lines(&mut app, (120, 40));
    app.act(Action::LongestGap);
    let told = lines(&mut app, (120, 40)).join("\n");
    assert!(
        told.contains("GPU 1 begins at 1.21 ms: waiting for another stream's event"),
        "{told}"
    );
}

#[test]
fn a_cure_of_the_only_finding_has_no_number() {
    for is_selected in [false, true] {
        let mut app = named("sync_points");
        lines(&mut app, (120, 40));
        if is_selected {
            app.act(Action::LongestGap);
        }
        app.act(Action::Predict);
        let told = lines(&mut app, (120, 40)).join("\n");
        assert!(told.contains("predicted with no-sync"), "{told}");
        assert!(!told.contains("finding 1: predicted"), "{told}");
    }
}

/// One app for each view with something in it, and the key of the view.
fn views() -> Vec<(App, usize)> {
    let mut all = Vec::new();
    for view in [0, 1, 2, 3] {
        all.push((named("pipeline"), view));
    }
    let mut app = named("pipeline");
    app.take(Message::Output {
        is_error: false,
        line: "step 1: a line that is longer than a narrow screen has columns for it, so that its end is on none "
            .repeat(2),
    });
    app.take(Message::Notice {
        is_warning: true,
        text: "3 records name a device that is not known".to_owned(),
    });
    app.take(Message::Notice {
        is_warning: true,
        text: "a notice that is longer than a narrow screen has columns for it, so that its end is on none "
            .repeat(2),
    });
    all.push((app, 4));
    let job = Job {
        ranks: 16,
        steps: 12,
        idle: |rank, _| if rank == 3 { 4_000_000 } else { 0 },
        ..Job::default()
    };
    let mut app = App::new(Vec::new());
    app.start(SourceInfo::default(), None, KnownGpus::default());
    let batches: Vec<Batch> = job.batches().0;
    for batch in batches {
        app.take(Message::Batch(batch));
    }
    app.take(Message::Finished(Outcome::Complete));
    all.push((app, 5));
    let trace = with_functions();
    all.push((App::of_trace(trace, None, KnownGpus::default()), 6));
    all.push((named("cpu_or_gpu"), 7));
    all
}

/// Kernels that wait for two Python functions in turn, as a profiler records them.
fn with_functions() -> Trace {
    const US: i64 = 1_000;
    let names = [
        "a_kernel",
        "cudaLaunchKernel",
        "train.py(12): main",
        "train.py(88): next_batch",
        "a_file_of_a_long_name_in_some_package.py(140): a_function_of_a_name_that_is_as_long",
    ];
    let mut batch = Batch {
        defs: (0..)
            .zip(names)
            .map(|(id, text)| Def::Name {
                id,
                text: text.to_owned(),
            })
            .collect(),
        ..Batch::default()
    };
    batch.defs.push(Def::Shape {
        id: 0,
        shape: LaunchShape::default(),
    });
    let mut add = |start: i64, end: i64, correlation, what| {
        batch.items.push(Activity {
            span: Span::new(start * US, end * US),
            correlation,
            what,
        });
    };
    let function = |name| {
        What::Range(Range {
            kind: RangeKind::Function,
            name,
            thread: 1,
            index: 0,
        })
    };
    add(0, 42_000, 0, function(2));
    for step in 0..40 {
        let (start, id) = (step * 1_000, step as u32 + 1);
        add(start, start + 700, 0, function(3 + id % 2));
        let call = HostCall {
            thread: 1,
            name: 1,
            code: 0,
        };
        add(start + 700, start + 710, id, What::Call(call));
        let kernel = Kernel {
            place: Place::default(),
            shape: 0,
            graph: 0,
            node: 0,
        };
        add(start + 720, start + 1_000, id, What::Kernel(kernel));
    }
    batch.items.sort_by_key(|item| item.span.start);
    let mut trace = Trace::new(SourceInfo::default());
    trace.apply(batch);
    trace
}

#[test]
fn no_view_is_empty_or_runs_out_of_the_screen_at_any_size() {
    for (mut app, view) in views() {
        app.act(Action::Show(view));
        for size in SIZES {
            let screen = lines(&mut app, size);
            let shown = screen.join("\n");
            assert_eq!(app.views.current, view);
            // Header, verdict and tabs, then the view: not a blank area with a word in it.
            let (first, last) = (3, screen.len() - 6);
            let told = screen[first..last]
                .iter()
                .filter(|line| !line.trim().is_empty());
            assert!(
                told.count() > usize::from(view < 4),
                "{view} {size:?}\n{shown}"
            );
            for line in &screen {
                // What does not fit ends in an ellipsis, and the last column is left free.
                let last = line.chars().last().unwrap_or(' ');
                let is_cut = last.is_alphanumeric();
                assert!(!is_cut, "{view} {size:?}: {line}\n{shown}");
            }
            // The two keys that lead on from anywhere.
            let foot = &screen[screen.len() - 1];
            assert!(
                foot.contains("? help") && foot.contains("q quit"),
                "{view} {size:?}: {foot}"
            );
        }
    }
}

#[test]
fn every_list_can_be_searched_and_nothing_else_is_offered_to_be() {
    // What to type, a word of what is left, and one of what is not, by what the views are made of.
    let expected = [
        (0, None),
        (1, Some(("TMUL", "matmul_tiled", "H2D"))),
        (2, Some(("overlap", "overlap", "no finding has this"))),
        (3, Some(("streamed", "streamed", "▸ sequential"))),
        (4, Some(("notice", "a notice that", "step 1"))),
        (5, Some(("rank 3", "rank 3", "rank 12"))),
        (6, Some(("88", "train.py:88", "a_file_of"))),
        (7, None),
    ];
    for ((mut app, view), (of, typed)) in views().into_iter().zip(expected) {
        assert_eq!(view, of);
        app.act(Action::Show(view));
        let foot = |app: &mut App| lines(app, (200, 50)).pop().unwrap_or_default();
        let is_offered = view == 0 || typed.is_some();
        assert_eq!(foot(&mut app).contains("/ find"), is_offered, "view {view}");
        let Some((typed, kept, gone)) = typed else {
            continue;
        };
        app.act(Action::Find);
        for letter in typed.chars() {
            app.act(Action::Type(letter));
        }
        app.act(Action::Choose);
        let screen = lines(&mut app, (120, 40));
        let tabs = screen.iter().position(|line| line.contains("1:timeline"));
        let screen = screen[tabs.expect("tabs") + 1..].join("\n");
        assert!(screen.contains(kept), "view {view}: {screen}");
        assert!(!screen.contains(gone), "view {view}: {screen}");
        let foot = foot(&mut app);
        assert!(foot.contains(&format!("/{typed} ")), "view {view}: {foot}");
        assert!(foot.contains(" of "), "view {view}: {foot}");
    }
}

#[test]
fn no_verdict_of_a_scenario_is_cut_on_the_smallest_usual_screen() {
    for scenario in LIBRARY.scenarios {
        let mut app = ended(&plan_of(scenario));
        for _ in 0..app.state.model.run.passes.variants.len().min(4) {
            app.act(Action::Variant(1));
            let screen = lines(&mut app, (80, 24));
            let tabs = screen.iter().position(|line| line.contains("1:timeline"));
            // What is wrong has a line above it, and a key that shows all of it.
            let is_alert = screen[1].contains('✗');
            let verdict = &screen[1 + usize::from(is_alert)..tabs.expect("tabs")];
            assert!(
                verdict.iter().all(|line| !line.contains('…')),
                "{}: {verdict:#?}",
                scenario.name
            );
        }
    }
}

#[test]
fn what_is_said_of_a_gap_stands_whole_on_a_small_screen_or_says_that_it_does_not() {
    let (mut whole, mut all) = (0, 0);
    for scenario in LIBRARY.scenarios {
        let mut app = ended(&plan_of(scenario));
        for moves in [&[Action::LongestGap][..], &[Action::Down, Action::Gap(1)]] {
            for action in moves {
                app.act(*action);
            }
            let screen = lines(&mut app, (80, 24));
            if !format!("{:?}", app.state.focus.selection.item).starts_with("Gap") {
                continue;
            }
            // What is copied is all of it, whatever is on screen.
            let said = format!("{:?}", app.act(Action::Copy));
            let said = said
                .trim_start_matches("Some(Copy(\"")
                .trim_end_matches("\"))");
            let bare = |text: &str| -> String {
                let is_kept = |c: &char| !c.is_whitespace() && !"·▐▌".contains(*c);
                text.chars().filter(is_kept).collect()
            };
            let details = &screen[screen.len() - 4..screen.len() - 1];
            let shown = bare(&details.concat());
            all += 1;
            whole += usize::from(bare(said) == shown);
            if bare(said) != shown {
                let (kept, _) = shown
                    .split_once('…')
                    .unwrap_or_else(|| panic!("{}: {said}\n{details:#?}", scenario.name));
                assert!(bare(said).starts_with(kept), "{said}\n{details:#?}");
            }
        }
    }
    // Nearly all of them do. Of others the end is cut: its share, which comes last, or what is small of the cause.
    assert!(all > 16 && 10 * whole > 9 * all, "{whole} of {all}");
}

#[test]
fn what_could_be_better_is_told_to_its_last_word() {
    let mut app = named("pipeline");
    app.act(Action::Show(2));
    let words = |lines: &[String]| -> String {
        let words = lines.iter().flat_map(|line| line.split_whitespace());
        words.collect::<Vec<_>>().join(" ")
    };
    let whole = words(&lines(&mut app, (300, 60))[3..12]);
    let advice = whole.split("⚠").nth(1).unwrap_or_else(|| panic!("{whole}"));
    let advice = advice.split(" at ").next().unwrap_or(advice).trim();
    assert!(advice.len() > 60, "{advice}");
    for size in [(60, 40), (80, 24), (100, 30)] {
        let narrow = words(&lines(&mut app, size)[3..]).replace("▸ ", "");
        assert!(narrow.contains(advice), "{size:?}: {advice}\n{narrow}");
    }
}

#[test]
fn the_smallest_usual_screen_shows_the_way_on() {
    for scenario in LIBRARY.scenarios {
        let mut app = ended(&plan_of(scenario));
        let foot = lines(&mut app, (80, 24)).pop().unwrap_or_default();
        assert!(foot.contains("g gap"), "{}: {foot}", scenario.name);
    }
    // Both variants with their times, below the rows.
    let screen = lines(&mut named("pipeline"), (80, 24));
    let variants: Vec<&String> = screen
        .iter()
        .skip_while(|line| !line.contains("variants by makespan"))
        .skip(1)
        .take(2)
        .collect();
    assert!(
        variants.len() == 2
            && variants[0].starts_with("▸sequential")
            && variants[1].starts_with(" streamed"),
        "{screen:#?}"
    );
    let before = |line: &str, unit: &str| -> Option<f64> {
        line[..line.find(unit)?]
            .split_whitespace()
            .last()?
            .parse()
            .ok()
    };
    let times: Vec<f64> = variants
        .iter()
        .filter_map(|line| before(line, " ms"))
        .collect();
    let factor = before(variants[1], "×").expect("a factor");
    // The times are printed with three digits each.
    assert!(
        (times[0] / times[1] - factor).abs() < 0.02 && factor > 1.9,
        "{screen:#?}"
    );
}

/// The table of what must hold names tests that exist.
#[test]
fn every_property_names_tests_that_are_there() {
    fn sources(folder: &Path, text: &mut String) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, text);
            } else if path.extension().is_some_and(|it| it == "rs") {
                text.push_str(&std::fs::read_to_string(path).expect("UTF-8"));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = String::new();
    for folder in ["src", "crates", "tests"] {
        sources(&root.join(folder), &mut all);
    }
    let table = std::fs::read_to_string(root.join("tests/screen_properties.md")).expect("a table");
    let mut named = 0;
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        let tests = line.trim_end_matches(" |").rsplit(" | ").next();
        for test in tests.unwrap_or_default().split(", ") {
            let test = test.trim_matches('`');
            let is_there = test == "test" || all.contains(&format!("fn {test}("));
            assert!(is_there, "no test is called {test}: {line}");
            named += 1;
        }
    }
    assert!(named > 100, "{named}");
}

#[test]
fn a_sweep_is_gone_through_by_variants_and_by_values() {
    let mut app = named("cpu_or_gpu");
    let title = |app: &mut App| {
        let line = lines(app, (120, 40))[0].clone();
        let title = line.split('›').nth(1).unwrap_or_default();
        title
            .split("  ")
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    assert!(title(&mut app).starts_with("gpu_matmul_with_copies n=1024"));
    app.act(Action::Variant(1));
    assert!(title(&mut app).starts_with("gpu_matmul_alone n=1024"));
    app.act(Action::Point(1));
    assert!(title(&mut app).starts_with("gpu_matmul_alone n=32"));
    app.act(Action::Point(-1));
    app.act(Action::Variant(-1));
    assert!(title(&mut app).starts_with("gpu_matmul_with_copies n=1024"));
    // Tabs take clicks.
    let screen = lines(&mut app, (200, 50));
    let y = screen.iter().position(|line| line.contains("1:timeline"));
    let y = y.expect("tabs");
    let line = screen[y].clone();
    let x = line[..line.find("2:operations").expect("a tab")]
        .chars()
        .count() as u16;
    app.act(Action::Click { x, y: y as u16 });
    assert_eq!(app.views.current, 1);
}
