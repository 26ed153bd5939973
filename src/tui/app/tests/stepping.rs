//! A program's steps: one is on screen, the others and the whole run are a key away; and the longest gaps of what is in view.

use super::*;
use crate::tui::action::Action;
use crate::tui::view::Place;
use crate::tui::{render, tests::text};
use activity::{Direction, Kernel, SyncKind, What};
use trace::Trace;
use trace::testing::pinned;

const MS: Ns = 1_000_000;
const STEPS: i64 = 20;
/// The step that takes 40 ms; the others take 10.
const LONG: i64 = 11;

/// Each step is an upload and three kernels, 4 ms in all; then the GPU waits for the CPU.
fn trace() -> Trace {
    let mut scene = Scene::new();
    let mut at = MS;
    for step in 0..STEPS {
        scene.call("cudaMemcpyAsync", at - 20_000, at - 10_000);
        scene.copy_of(pinned(Direction::H2D, 7, 1 << 20), at, at + MS);
        for i in 1..4 {
            let start = at + i * MS;
            scene.call("cudaLaunchKernel", start - 20_000, start - 10_000);
            scene.kernel(
                ["", "forward", "loss", "backward"][i as usize],
                7,
                start,
                start + MS,
            );
        }
        at += if step == LONG { 40 * MS } else { 10 * MS };
    }
    scene.trace()
}

/// Where a step begins, by the numbers above.
fn start(step: i64) -> Ns {
    MS + step * 10 * MS + if step > LONG { 30 * MS } else { 0 }
}

fn opened(size: Size) -> App {
    let mut app = App::of_trace(trace(), None, gpus());
    app.state.size = size;
    app.prepare();
    app
}

fn window(app: &App) -> Span {
    app.state.focus.camera.viewport.window
}

pub(super) fn screen(app: &mut App) -> String {
    text(&render(app, &Theme::default()))
}

/// The step that is across the whole width, which must be one of them.
fn step(app: &App) -> i64 {
    let window = window(app);
    let is_it = |step: &i64| window == Span::new(start(*step), start(step + 1));
    (0..STEPS)
        .find(is_it)
        .unwrap_or_else(|| panic!("{window:?} is no step"))
}

#[test]
fn a_program_opens_on_its_typical_step_and_keys_lead_to_the_others() {
    let mut app = opened(Size::new(120, 40));
    let typical = step(&app);
    assert_ne!(typical, LONG);
    let words = format!("step {} of {STEPS} · 10.0 ms · typical", typical + 1);
    assert!(screen(&mut app).contains(&words), "{}", screen(&mut app));
    assert_eq!(
        app.state.zero(),
        start(typical),
        "the axis begins with the step"
    );
    press(&mut app, "]");
    assert_eq!(step(&app), typical + 1);
    press(&mut app, "[[");
    assert_eq!(step(&app), typical - 1);
    // Back from the last jump.
    press(&mut app, "u");
    assert_eq!(step(&app), typical);
    press(&mut app, ":12^");
    assert_eq!(step(&app), LONG);
    // Where not all has room, its cause goes before its length.
    let words = "step 12 of 20 · +30.0 ms: untraced CPU work";
    assert!(screen(&mut app).contains(words), "{}", screen(&mut app));
    press(&mut app, "?:1^[");
    assert_eq!(step(&app), 0);
    assert_eq!(
        app.state.messages.flash.as_deref(),
        Some("this is the first step")
    );
    press(&mut app, ":99^");
    assert_eq!((step(&app), app.overlay), (0, Overlay::None));
    // The run, then its operations; from there a step is the typical one.
    press(&mut app, "~0");
    let viewport = &app.state.focus.camera.viewport;
    assert_eq!(
        (viewport.window, app.state.step_in_view()),
        (viewport.bounds, None)
    );
    assert!(screen(&mut app).contains("19 steps of 10.0 ms · 1 odd · 1 unfinished"));
    press(&mut app, "]");
    assert_eq!(step(&app), typical);
}

/// An odd step is no gap: the GPU works in it for 4 of its 40 ms.
#[test]
fn a_place_in_which_the_gpu_works_opens_as_a_stretch() {
    let mut app = opened(Size::new(120, 40));
    press(&mut app, "3/busy^");
    let listed = screen(&mut app);
    assert!(listed.contains("for 40.0 ms"), "{listed}");
    assert!(listed.contains("GPU busy 10 % of it"), "{listed}");
    press(&mut app, "^");
    assert_eq!(step(&app), LONG);
    assert_eq!(app.state.focus.selection.item, Item::None);
    let opened = screen(&mut app);
    let told = "measured 40.0 ms";
    assert!(
        opened.contains(told) && !opened.contains("GPU idle 40.0 ms"),
        "{opened}"
    );
    assert!(opened.contains("GPU busy 4.00 ms (10 %)"), "{opened}");
    // A gap is one still.
    app.go_to(&Place::new(
        app.state.focus.selection.row,
        None,
        Span::new(start(0) + 4 * MS, start(1)),
    ));
    assert!(matches!(app.state.focus.selection.item, Item::Gap(_)));
}

#[test]
fn whoever_looks_elsewhere_before_the_steps_are_known_is_left_there() {
    let mut app = App::new(Vec::new());
    app.state.size = Size::new(120, 40);
    app.state.replace(Run::new(
        trace(),
        None,
        gpus(),
        Status::Ended(Outcome::Complete),
    ));
    app.state.focus.camera.update(&app.state.model.run);
    let before = window(&app);
    app.state.focus.camera.viewport.zoom(before.start, 0.5);
    let moved = window(&app);
    app.prepare();
    assert!(app.state.steps().is_some());
    assert_eq!(window(&app), moved);
}

#[test]
fn a_click_on_a_bar_leads_to_its_step() {
    for size in [Size::new(80, 24), Size::new(120, 40), Size::new(200, 50)] {
        let mut app = opened(size);
        let typical = step(&app);
        let seen = screen(&mut app);
        let y = seen
            .lines()
            .position(|line| line.starts_with(" steps"))
            .expect("a line of steps");
        let line = seen.lines().nth(y).unwrap_or_default();
        let column = |sign: char| line.chars().position(|c| c == sign).expect("a bracket") as u16;
        let (before, behind) = (column('['), column(']'));
        let y = y as u16;
        for (x, expected) in [
            (behind + 1, typical + 1),
            (before, typical),
            (before - 1, typical),
        ] {
            press(&mut app, &format!(":{}^", typical + 1));
            app.act(Action::Click { x, y });
            app.prepare();
            let expected = if x < before { expected - 1 } else { expected };
            // A bracket belongs to the bar before it.
            let expected = if x == before { typical - 1 } else { expected };
            assert_eq!(step(&app), expected, "{size:?} {x}: {line}");
        }
    }
}

#[test]
fn a_paused_program_shows_its_typical_step() {
    let mut app = App::new(Vec::new());
    app.state.size = Size::new(120, 40);
    let source = SourceInfo {
        kind: SourceKind::Traced,
        ..fixture::source()
    };
    app.state
        .replace(Run::new(Trace::new(source), None, gpus(), Status::Running));
    let mut all = trace();
    std::mem::swap(&mut app.state.model.run.trace, &mut all);
    app.prepare();
    assert!(app.state.focus.camera.is_following);
    press(&mut app, " ");
    assert_ne!(step(&app), LONG);
    press(&mut app, " ");
    assert!(app.state.focus.camera.is_following && app.state.step_in_view().is_none());
}

/// Two GPUs: the first is idle for 1 ms and 3 ms, the second for 2 ms and 5 ms.
fn two_gpus() -> App {
    let mut scene = Scene::new();
    for (device, spans) in [
        (0, [(0, 10), (11, 20), (23, 40)]),
        (1, [(0, 12), (14, 20), (25, 40)]),
    ] {
        for (start, end) in spans {
            let kernel = Kernel {
                place: activity::Place {
                    device,
                    context: device + 1,
                    stream: 7,
                },
                shape: 0,
                graph: 0,
                node: 0,
            };
            scene.push(start * MS, end * MS, 0, What::Kernel(kernel));
        }
    }
    let mut app = App::of_trace(scene.trace(), None, gpus());
    app.state.size = Size::new(120, 40);
    app.prepare();
    app
}

/// The second GPU's stream waits for an event behind the first one's kernel: it has work, which cannot begin.
#[test]
fn what_a_gpu_waits_for_before_its_first_operation_is_told() {
    let mut scene = Scene::new();
    scene.call("cudaLaunchKernel", 0, 2_000);
    scene.kernel("first", 1, 5_000, 10 * MS);
    scene.call("cudaEventRecord", 3_000, 4_000);
    scene.event(1, 5, 4_000);
    scene.call("cudaStreamWaitEvent", 5_000, 6_000);
    let wait = activity::Sync {
        kind: SyncKind::StreamWaitEvent,
        context: 2,
        stream: Some(2),
        event: Some(5),
    };
    scene.push(5_000, 6_000, 3, What::Sync(wait));
    scene.call("cudaLaunchKernel", 7_000, 9_000);
    let place = activity::Place {
        device: 1,
        context: 2,
        stream: 2,
    };
    let kernel = Kernel {
        place,
        shape: 0,
        graph: 0,
        node: 0,
    };
    // The fourth call launched it.
    scene.push(10 * MS + 5_000, 20 * MS, 4, What::Kernel(kernel));
    let mut app = App::of_trace(scene.trace(), None, gpus());
    app.state.size = Size::new(120, 40);
    app.prepare();
    press(&mut app, "L");
    let told = screen(&mut app);
    assert!(
        told.contains("waiting for another stream's event"),
        "{told}"
    );
    assert!(!told.contains("has no work before"), "{told}");
}

#[test]
fn a_gap_that_holds_all_idle_time_is_once_where_no_steps_are() {
    let mut scene = Scene::new();
    scene.kernel("check", 7, 0, MS);
    scene.kernel("softmax", 7, 99 * MS, 100 * MS);
    let mut app = App::of_trace(scene.trace(), None, gpus());
    app.state.size = Size::new(120, 40);
    app.prepare();
    press(&mut app, "L");
    let once = screen(&mut app);
    assert!(once.contains("100 % of idle time, once"), "{once}");
    // Closer, it is a share of what was in view, and says so.
    press(&mut app, "+");
    let closer = screen(&mut app);
    assert!(
        closer.contains("100 % of idle time, once in 100 ms"),
        "{closer}"
    );
    // Each step of 10 ms has such a gap.
    let mut app = opened(Size::new(120, 40));
    press(&mut app, "L");
    let each = screen(&mut app);
    assert!(
        each.contains("of idle time") && !each.contains("once"),
        "{each}"
    );
}

/// Three repeats of ten kernels of 10 us, 20 us apart: nine gaps lie between ten, and what lies between repeats is of none.
#[test]
fn gaps_like_the_longest_lie_between_operations_of_what_is_looked_at() {
    const US: Ns = 1_000;
    let mut scene = Scene::new();
    for repeat in 0..3 {
        let begins = repeat * 300 * US;
        for at in (0..10).map(|i| begins + (10 + i * 30) * US) {
            scene.kernel("k", 7, at, at + 10 * US);
        }
        let ends = begins + 300 * US;
        scene.range(RangeKind::Repeat, "loop", repeat as u32, begins, ends);
    }
    scene.range(RangeKind::Variant, "loop", 0, 0, 900 * US);
    let mut app = App::of_trace(scene.trace(), None, gpus());
    app.state.size = Size::new(120, 40);
    app.prepare();
    press(&mut app, "vL");
    let told = screen(&mut app);
    assert!(
        told.contains("9 gaps like it: 100 % of idle time"),
        "{told}"
    );
}

#[test]
fn the_longest_gap_is_that_of_all_gpus_and_again_the_next_one() {
    let mut app = two_gpus();
    let all = window(&app);
    for (keys, gpu, from, length) in [
        ("L", "GPU 1", 20, 5),
        ("L", "GPU 0", 20, 3),
        ("L", "GPU 1", 12, 2),
        ("L", "GPU 0", 10, 1),
    ] {
        press(&mut app, keys);
        assert_eq!(
            (row_label(&app), selected(&app)),
            (gpu, Some((from * MS, length * MS)))
        );
        // What takes an eighth of the window stays in it; for less it is zoomed.
        let is_whole = window(&app) == all;
        assert_eq!(
            is_whole,
            length * 8 >= 40,
            "{length} ms: {:?}",
            window(&app)
        );
    }
    press(&mut app, "L");
    assert!(
        app.state
            .messages
            .flash
            .take()
            .is_some_and(|it| it.contains("last gap"))
    );
    // Whoever looks at more since means the longest of that.
    app.state.focus.camera.viewport.show(Span::new(0, 15 * MS));
    press(&mut app, "L0L");
    assert_eq!(selected(&app), Some((20 * MS, 5 * MS)));
    // Of what is in view, and of a lane where one is selected.
    press(&mut app, "~0");
    app.state.focus.camera.viewport.show(Span::new(0, 15 * MS));
    press(&mut app, "L");
    assert_eq!(selected(&app), Some((12 * MS, 2 * MS)));
    press(&mut app, "~0");
    let first = app
        .state
        .rows
        .list
        .iter()
        .position(|row| row.label == "stream 7")
        .expect("a stream");
    app.state.focus.selection.row = Some(app.state.rows.list[first].kind);
    press(&mut app, "L");
    assert_eq!(selected(&app), Some((20 * MS, 3 * MS)));
}

/// The line below the row of GPUs.
fn legend(app: &mut App) -> String {
    let all = screen(app);
    let line = all.lines().find(|it| it.contains("■ kernels"));
    line.unwrap_or_else(|| panic!("{all}")).to_owned()
}

#[test]
fn a_share_says_what_it_is_of() {
    let mut app = opened(Size::new(120, 40));
    // By hand: three kernels of 1 ms in each step of 10 ms, and 60 of them in 224 ms.
    let step = legend(&mut app);
    assert!(step.contains("■ kernels 30 % of 10.0 ms"), "{step}");
    press(&mut app, "~0");
    let run = legend(&mut app);
    assert!(run.contains("■ kernels 27 % of 224 ms"), "{run}");
}

#[test]
fn operations_beside_steps_say_that_they_are_of_the_whole_run() {
    let mut app = opened(Size::new(80, 24));
    press(&mut app, "2");
    let seen = screen(&mut app);
    assert!(seen.contains("operation, whole run"), "{seen}");
}

#[test]
fn a_gap_that_has_left_the_view_is_told_of_no_more() {
    let mut app = opened(Size::new(120, 40));
    press(&mut app, "L");
    assert!(screen(&mut app).contains("▐GPU idle"));
    press(&mut app, "]");
    let next = screen(&mut app);
    assert!(
        !next.contains("▐GPU idle") && !next.contains("this gap"),
        "{next}"
    );
}

#[test]
fn what_is_selected_leaves_the_headline_its_cause() {
    let mut app = opened(Size::new(80, 24));
    press(&mut app, "L");
    let answer = app.state.answer().expect("an answer");
    let headline = answer.verdicts[0].headline().replace(' ', "");
    let seen = screen(&mut app);
    assert!(headline.len() > 80 && seen.contains("▐GPU idle"), "{seen}");
    let seen: String = seen.lines().skip(1).take(3).collect();
    assert!(seen.replace(' ', "").contains(&headline), "{seen}");
}

#[test]
fn what_was_noticed_takes_no_keys_from_the_foot() {
    let foot = |width: u16| {
        let mut app = opened(Size::new(width, 24));
        let former = "no Python lines: an older cuptop recorded this";
        app.state.messages.noticed(LineFrom::Cuptop, true, former);
        screen(&mut app).lines().last().expect("a foot").to_owned()
    };
    let [narrow, wide] = [80, 120].map(foot);
    for key in ["3:findings", "L longest gap"] {
        assert!(narrow.contains(key), "{narrow}");
    }
    assert!(wide.contains("an older cuptop recorded this"), "{wide}");
    // And what is in view before it.
    assert!(wide.starts_with(" 10.0 ms in view"), "{wide}");
    assert!(wide.contains("L longest gap"), "{wide}");
}

/// Ten rounds of 200 short kernels, 10 us of launching before each, and 1.5 ms of the CPU's own work behind them, a third of it of one name.
#[test]
fn the_cure_of_a_selected_gap_is_that_of_its_own_finding() {
    let (mut scene, mut at) = (Scene::new(), 0);
    for round in 0..10 {
        for _ in 0..200 {
            scene.call("cudaLaunchKernel", at, at + 900);
            scene.kernel("k", 1, at + 6_000, at + 8_000);
            at += 12_000;
        }
        let name = match round % 3 {
            0 => "flatten".to_owned(),
            _ => format!("other{round}x"),
        };
        scene.range(RangeKind::CpuOp, &name, 0, at, at + 1_500_000);
        at += 1_500_000;
    }
    let mut app = App::of_trace(scene.trace(), None, gpus());
    app.state.size = Size::new(120, 40);
    app.prepare();
    // Without a gap it is the headline's.
    press(&mut app, "i");
    let launches = screen(&mut app);
    assert!(launches.contains("using a CUDA graph"), "{launches}");
    press(&mut app, "iL");
    let gap = screen(&mut app);
    assert!(gap.contains("see finding 2"), "{gap}");
    press(&mut app, "i");
    let own = screen(&mut app);
    let why = "finding 2: no prediction: what this saves is not known";
    assert!(own.contains(why), "{own}");
}
