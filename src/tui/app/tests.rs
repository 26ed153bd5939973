//! Keys in, state out: (before, keys, after). The times follow from the fixture's own description.

mod attaching;
mod choosing;
mod job;
mod measuring;
mod naming;
mod offering;
mod searching;
mod standing;
mod stepping;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Size;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::*;
use crate::board::{Entry, Told};
use crate::tui::fixture::{self, EPOCH};
use crate::tui::keys;
use crate::tui::state::LineFrom;
use crate::tui::state::analyst::{Analyst, Question};
use crate::tui::state::selection::Item;
use crate::tui::tests::{gpus, wrong_input};
use crate::tui::view::FINDINGS;
use activity::feed::{Message, Progress};
use activity::{Activity, Ns, RangeKind, Span, What};
use trace::testing::Scene;
use trace::{SourceInfo, SourceKind};

const US: Ns = 1_000;
/// Where `sequential`'s first operation starts.
const SEQUENTIAL: Ns = EPOCH + 100 * US;
/// Where `streamed`'s first operation starts.
const STREAMED: Ns = EPOCH + 10_100 * US;

fn app() -> App {
    let mut app = App::of_trace(fixture::trace(), None, gpus());
    app.state.size = Size::new(120, 40);
    app
}

/// Presses keys, as the shell would: a letter each, `^` for Enter, `~` for Escape.
fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    for key in keys.chars() {
        let code = match key {
            '^' => KeyCode::Enter,
            '~' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        let event = KeyEvent::new(code, KeyModifiers::NONE);
        app.prepare();
        if let Some(action) = keys::resolve(event, app.context()) {
            effects.extend(app.act(action));
        }
    }
    app.prepare();
    effects
}

fn selected(app: &App) -> Option<(Ns, Ns)> {
    let span = app.state.focus.selection.item.span()?;
    Some((span.start, span.len()))
}

fn row_label(app: &App) -> &str {
    let at = app
        .state
        .focus
        .selection
        .position(&app.state.rows.list)
        .expect("a selected row");
    &app.state.rows.list[at].label
}

#[test]
fn a_complete_run_opens_on_its_last_variant() {
    let app = app();
    assert_eq!(app.state.variant(), Some(1));
    assert_eq!(app.state.zero(), STREAMED);
    // Four batches of 1000 µs, 400 µs apart.
    assert_eq!(
        app.state.model.run.measured.variants[1].makespan_ns,
        2_200 * US
    );
    assert_eq!(
        app.state.model.run.measured.variants[0].makespan_ns,
        4_300 * US
    );
    let labels: Vec<&str> = app
        .state
        .rows
        .list
        .iter()
        .map(|r| r.label.as_str())
        .collect();
    let expected = [
        "GPU", "H2D", "D2H", "parallel", "streams", "s0", "s1", "s2", "s3", "host", "main",
    ];
    assert_eq!(labels, expected);
}

#[test]
fn variants_go_round() {
    let mut app = app();
    press(&mut app, "v");
    assert_eq!(
        (app.state.variant(), app.state.zero()),
        (Some(0), SEQUENTIAL)
    );
    press(&mut app, "v");
    assert_eq!(app.state.variant(), Some(1));
    press(&mut app, "VV");
    assert_eq!(app.state.variant(), Some(1));
    press(&mut app, "a");
    assert_eq!(
        (app.state.variant(), app.state.focus.camera.scope),
        (None, Scope::Whole)
    );
    press(&mut app, "a");
    assert_eq!(app.state.variant(), Some(1));
}

#[test]
fn operations_and_gaps_are_stepped_through() {
    let mut app = app();
    press(&mut app, "vn");
    assert_eq!(row_label(&app), "main");
    assert_eq!(selected(&app), Some((SEQUENTIAL, 300 * US)));
    press(&mut app, "n");
    assert_eq!(selected(&app), Some((SEQUENTIAL + 300 * US, 400 * US)));
    // 100 µs between two batches.
    press(&mut app, "g");
    assert_eq!(selected(&app), Some((SEQUENTIAL + 1_000 * US, 100 * US)));
    assert!(matches!(app.state.focus.selection.item, Item::Gap(_)));
    press(&mut app, "g");
    assert_eq!(selected(&app), Some((SEQUENTIAL + 2_100 * US, 100 * US)));
    press(&mut app, "G");
    assert_eq!(selected(&app), Some((SEQUENTIAL + 1_000 * US, 100 * US)));
    // From a gap to the operation behind it, and back to the one before it.
    press(&mut app, "n");
    assert_eq!(selected(&app), Some((SEQUENTIAL + 1_100 * US, 300 * US)));
    press(&mut app, "p");
    assert_eq!(selected(&app), Some((SEQUENTIAL + 700 * US, 300 * US)));
}

#[test]
fn the_last_gap_is_said_to_be_the_last() {
    let mut app = app();
    press(&mut app, "vngggg");
    assert!(
        app.state.messages.flash.is_some(),
        "{:?}",
        app.state.focus.selection
    );
    // The gap to the next variant's pass is none of this one's.
    assert_eq!(selected(&app), Some((SEQUENTIAL + 3_200 * US, 100 * US)));
}

#[test]
fn a_gap_of_the_profilers_is_not_gone_to_and_is_told() {
    let said = |is_profilers: bool| {
        let mut scene = Scene::new();
        scene.kernel("k", 1, 10_000, 310_000);
        let (end, next) = (2_280_000, if is_profilers { 2_300_000 } else { 310_000 });
        scene.overhead("Activity Buffer Request", 320_000, end);
        scene.kernel("k", 1, next, 2_600_000);
        let mut app = App::of_trace(scene.trace(), None, gpus());
        app.state.size = Size::new(120, 40);
        press(&mut app, "L");
        app.state.messages.flash.unwrap_or_default()
    };
    assert!(said(true).contains("profiler overhead"), "{}", said(true));
    assert!(said(false).contains("no GPU is idle"), "{}", said(false));
}

#[test]
fn rows_are_stepped_through_without_titles() {
    let mut app = app();
    press(&mut app, "n");
    assert_eq!(row_label(&app), "s0");
    press(&mut app, "j");
    assert_eq!(row_label(&app), "s1");
    press(&mut app, "jjj");
    assert_eq!(row_label(&app), "main");
    press(&mut app, "kkkkk");
    assert_eq!(row_label(&app), "parallel");
    press(&mut app, "kkkkk");
    assert_eq!(row_label(&app), "GPU");
    press(&mut app, "~");
    assert_eq!(app.state.focus.selection.row, None);
}

#[test]
fn enter_zooms_to_the_selection_and_zero_shows_all_again() {
    let mut app = app();
    let all = app.state.focus.camera.viewport.window;
    press(&mut app, "n^");
    // The upload of 300 µs with a quarter around it, as far as the pass reaches.
    let window = app.state.focus.camera.viewport.window;
    assert_eq!(window.len(), 450 * US);
    assert!(window.contains(STREAMED) && window.contains(STREAMED + 299 * US));
    let viewport = &app.state.focus.camera.viewport;
    assert_ne!(viewport.window, viewport.bounds);
    press(&mut app, "0");
    assert_eq!(app.state.focus.camera.viewport.window, all);
}

#[test]
fn a_click_selects_what_is_under_it() {
    let mut app = app();
    let layout = Layout::of(&app.state);
    // s1's kernel runs from 700 to 1100 µs after the first operation.
    let x = (layout.axis.x..layout.axis.right())
        .find(|&x| {
            layout
                .time_at(x, app.state.focus.camera.viewport.window)
                .is_some_and(|t| t > STREAMED + 800 * US)
        })
        .expect("a column");
    let screen = crate::tui::tests::text(&crate::tui::render(&mut app, &Theme::default()));
    let y = screen
        .lines()
        .position(|l| l.starts_with(" s1"))
        .expect("a line") as u16;
    app.act(crate::tui::action::Action::Click { x, y });
    assert_eq!(selected(&app), Some((STREAMED + 700 * US, 400 * US)));
    // The headline is laid out among the findings.
    let at = layout.verdict;
    app.act(crate::tui::action::Action::Click {
        x: at.x + 2,
        y: at.y,
    });
    assert_eq!(app.views.current, FINDINGS);
}

#[test]
fn following_shows_the_latest_pass_and_moving_stops_it() {
    let mut app = App::new(Vec::new());
    app.state.size = Size::new(120, 40);
    app.start(fixture::source(), None, gpus());
    let mut batches = fixture::batches().into_iter();
    app.take(Message::Batch(batches.next().expect("sequential")));
    app.prepare();
    assert_eq!(
        (app.state.zero(), app.state.focus.camera.is_following),
        (SEQUENTIAL, true)
    );
    press(&mut app, "+");
    assert!(!app.state.focus.camera.is_following);
    let window = app.state.focus.camera.viewport.window;
    app.take(Message::Batch(batches.next().expect("streamed")));
    app.prepare();
    assert_eq!(
        (app.state.zero(), app.state.focus.camera.viewport.window),
        (SEQUENTIAL, window)
    );
    press(&mut app, "f");
    assert_eq!(
        (app.state.zero(), app.state.focus.camera.is_following),
        (STREAMED, true)
    );
}

#[test]
fn nothing_is_said_of_files_that_are_still_being_read() {
    let mut app = App::new(Vec::new());
    app.state.size = Size::new(120, 40);
    let source = SourceInfo {
        kind: SourceKind::Kineto,
        ..fixture::source()
    };
    app.start(source, None, gpus());
    let screen =
        |app: &mut App| crate::tui::tests::text(&crate::tui::render(app, &Theme::default()));
    app.take(Message::Progress(Progress {
        what: "reading a.json".to_owned(),
        done: 1_000_000,
        total: 4_000_000,
    }));
    let before = screen(&mut app);
    assert!(before.contains("◆ reading a.json 25"), "{before}");
    app.take(Message::Progress(Progress {
        what: "reading a.json".to_owned(),
        done: 4_000_000,
        total: 4_000_000,
    }));
    for batch in fixture::batches() {
        app.take(Message::Batch(batch));
    }
    let meanwhile = screen(&mut app);
    assert!(meanwhile.contains("still being read"), "{meanwhile}");
    assert!(
        meanwhile.contains("◆ reading") && !meanwhile.contains("LIVE"),
        "{meanwhile}"
    );
    let idle = |app: &App| -> i64 {
        app.state
            .model
            .idle
            .idle_within(&app.state.model.run, 0, app.state.figures_span())
            .iter()
            .sum()
    };
    assert_eq!(idle(&app), 0);
    app.take(Message::Finished(Outcome::Complete));
    assert!(!screen(&mut app).contains("reading"));
    assert!(idle(&app) > 0);
}

#[test]
fn a_paused_picture_stands_still_until_it_goes_on() {
    let mut app = App::new(Vec::new());
    app.start(fixture::source(), None, gpus());
    let mut batches = fixture::batches().into_iter();
    app.take(Message::Batch(batches.next().expect("sequential")));
    press(&mut app, " ");
    let window = app.state.focus.camera.viewport.window;
    app.take(Message::Batch(batches.next().expect("streamed")));
    app.prepare();
    assert_eq!(
        (
            app.state.focus.camera.is_paused(),
            app.state.focus.camera.viewport.window
        ),
        (true, window)
    );
    // Nothing that came meanwhile is lost.
    assert_eq!(
        app.state.model.run.trace.health().received,
        fixture::trace().health().received
    );
    press(&mut app, " ");
    assert_eq!(
        (app.state.focus.camera.is_paused(), app.state.zero()),
        (false, STREAMED)
    );
}

#[test]
fn the_picker_starts_what_it_points_at() {
    let choice = |name: &str| Choice {
        name: name.to_owned(),
        about: String::new(),
        ..Default::default()
    };
    let mut app = App::new(vec![choice("one"), choice("two")]);
    let effects = press(&mut app, "jjj^");
    let expected = Effect::Start(NextRun::Scenario("two".to_owned()));
    assert_eq!(effects, [expected]);
}

/// Of two marked traces the older one is what the other is compared with.
#[test]
fn the_picker_opens_traces_of_the_folder_and_compares_two() {
    let trace = |name: &str, told: &str, seconds: u64| Entry {
        path: PathBuf::from(name),
        written: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
        size: 1,
        told: Some(Told {
            headline: told.to_owned(),
            ..Told::default()
        }),
        longer: None,
    };
    let lesson = Choice {
        name: "lesson".to_owned(),
        ..Default::default()
    };
    let mut app = App::new(vec![lesson]);
    app.state.model.board = vec![
        trace("new.json.gz", "launch-bound", 9),
        trace("old.json.gz", "copy-bound", 5),
    ];
    let [new, old] = ["new.json.gz", "old.json.gz"].map(PathBuf::from);
    app.prepare();
    let expected = Effect::Start(NextRun::Open(new.clone()));
    assert_eq!(press(&mut app, "^"), [expected]);
    // Marked, and no longer.
    assert_eq!(press(&mut app, "  "), []);
    let expected = Effect::Start(NextRun::Compare([old, new]));
    assert_eq!(press(&mut app, " j "), [expected]);
    assert_eq!(press(&mut app, "j "), [], "a lesson is no trace");
    let said = app.state.messages.flash.as_ref().map(|it| it.to_string());
    assert!(said.is_some_and(|it| it.contains("to compare two")));
}

#[test]
fn a_rerun_keeps_the_figures_and_the_variant() {
    let mut app = app();
    assert_eq!(press(&mut app, "vr"), [Effect::Start(NextRun::Same)]);
    app.start(fixture::source(), None, gpus());
    let makespans: Vec<Ns> = app
        .state
        .model
        .run
        .previous
        .iter()
        .map(|v| v.makespan_ns)
        .collect();
    assert_eq!(makespans, [4_300 * US, 2_200 * US]);
    for batch in fixture::batches() {
        app.take(Message::Batch(batch));
    }
    app.take(Message::Finished(Outcome::Complete));
    app.prepare();
    assert_eq!(app.state.variant(), Some(0));
    // A save is answered, also when nothing has changed.
    let said = app.state.messages.flash.clone().unwrap_or_default();
    assert!(
        said.starts_with("ran again, run ") && said.ends_with(": sequential 4.30 ms, as before"),
        "{said}"
    );
    // Of several variants the one is told that changed most, whichever is on screen: here the last takes twice as long.
    app.state.messages.noticed(LineFrom::Cuptop, true, "a race");
    app.start(fixture::source(), None, gpus());
    let mut batches = fixture::batches();
    let items = || batches.iter().flat_map(|it| &it.items);
    let is_variant =
        |it: &&Activity| matches!(it.what, What::Range(it) if it.kind == RangeKind::Variant);
    let last = items().filter(is_variant).map(|it| it.span.start).max();
    let slow = |at: Ns| at + (at - last.unwrap_or(0)).max(0);
    for item in batches.iter_mut().flat_map(|it| &mut it.items) {
        item.span = Span::new(slow(item.span.start), slow(item.span.end));
    }
    batches
        .into_iter()
        .for_each(|it| app.take(Message::Batch(it)));
    app.take(Message::Finished(Outcome::Complete));
    app.prepare();
    assert_eq!(app.state.variant(), Some(0));
    let said = app.state.messages.flash.clone().unwrap_or_default();
    assert!(
        said.ends_with(": streamed 4.40 ms, was 2.20 ms (+100 %)"),
        "{said}"
    );
    // It stands in the log, too; what warned of the run before warns no more.
    let log = &app.state.messages.log;
    assert_eq!(log.count(LineKind::Warning), 0);
    assert!(log.lines.iter().any(|it| it.text == said));
}

#[test]
fn the_help_runs_the_line_that_was_looked_for_and_escape_closes_an_error() {
    let mut app = app();
    press(&mut app, "?");
    assert_eq!(app.overlay, Overlay::Help { at: 0 });
    press(&mut app, "next var^");
    assert_eq!((app.overlay, app.state.variant()), (Overlay::None, Some(0)));
    // Nothing typed there is a key, and nobody is kept in.
    press(&mut app, "?gv");
    assert!(matches!(app.overlay, Overlay::Help { .. }));
    press(&mut app, "~?q");
    assert_eq!((app.overlay, &app.state.prompt), (Overlay::None, &None));
    app.fail(&wrong_input("error"));
    press(&mut app, "~");
    assert_eq!(app.state.messages.error, None);
    assert_eq!(press(&mut app, "q"), [Effect::Quit]);
}

#[test]
fn the_table_leads_to_the_longest_operation() {
    let mut app = app();
    press(&mut app, "2^");
    // Kernels take the most time: 4 of 400 µs.
    assert!(app.views.is_home());
    assert_eq!(selected(&app), Some((STREAMED + 300 * US, 400 * US)));
}

#[test]
fn a_list_takes_the_line_that_is_clicked_twice() {
    let choice = |name: &str| Choice {
        name: name.to_owned(),
        about: String::new(),
        ..Default::default()
    };
    let mut app = App::new(vec![choice("one"), choice("two"), choice("three")]);
    app.state.size = Size::new(80, 24);
    let screen = crate::tui::tests::text(&crate::tui::render(&mut app, &Theme::default()));
    let y = screen
        .lines()
        .position(|l| l.contains("three"))
        .expect("a line") as u16;
    let click = crate::tui::action::Action::Click { x: 4, y };
    assert_eq!(app.act(click), None);
    let expected = Effect::Start(NextRun::Scenario("three".to_owned()));
    assert_eq!(app.act(click), Some(expected));
    // Below the last line there is nothing.
    let below = crate::tui::action::Action::Click { x: 4, y: y + 1 };
    assert_eq!(app.act(below), None);
}

/// The same streams are busy again after the pass that is shown: what is selected stays in the pass.
#[test]
fn the_selection_does_not_leave_the_pass() {
    let mut trace = fixture::trace();
    let later = fixture::batches().remove(1).items;
    trace.apply(activity::Batch {
        items: later
            .into_iter()
            .filter(Activity::is_operation)
            .map(|mut it| {
                it.span = Span::new(it.span.start + 20_000 * US, it.span.end + 20_000 * US);
                it
            })
            .collect(),
        ..activity::Batch::default()
    });
    let mut app = App::of_trace(trace, None, gpus());
    app.state.size = Size::new(120, 40);
    press(&mut app, "");
    let scope = app.state.scope_span().expect("a pass is shown");
    assert_eq!(scope.start / US, (EPOCH + 10_000 * US) / US);
    let mut told = false;
    let mut seen = std::collections::BTreeSet::new();
    for keys in [
        "j", "n", "n", "n", "n", "n", "j", "n", "n", "n", "n", "j", "p", "p", "p",
    ] {
        press(&mut app, keys);
        told |= app.state.messages.flash.is_some();
        if let Some((start, _)) = selected(&app) {
            assert!(scope.contains(start), "{keys}: {} µs", (start - EPOCH) / US);
            seen.insert(start);
        }
    }
    assert!(seen.len() > 1, "{seen:?}");
    assert!(told, "the end of the pass is said");
}

/// While something long is computed every key does what it does, and the view says so.
#[test]
fn no_key_waits_for_what_takes_long() {
    let (wake, answers) = crossbeam_channel::bounded(1);
    let mut trace = fixture::trace();
    let call = fixture::batches()[0]
        .items
        .iter()
        .find(|it| matches!(it.what, What::Call(_)))
        .copied()
        .expect("a call");
    // Enough that nothing is answered at once.
    trace.apply(activity::Batch {
        items: vec![call; 100_001],
        ..activity::Batch::default()
    });
    let mut app = App::new(Vec::new());
    app.state.size = Size::new(120, 40);
    app.state.model.analyst = Analyst::start(&wake).expect("threads");
    let status = Status::Ended(Outcome::Complete);
    app.state.replace(Run::new(trace, None, gpus(), status));
    let (go, held) = crossbeam_channel::bounded::<()>(0);
    let mut holder: Question<u8, ()> = Question::default();
    holder.ask(
        &app.state.model.analyst,
        &app.state.model.run,
        0,
        move |_, _| {
            let _ = held.recv_timeout(Duration::from_secs(20));
        },
    );
    let screen =
        |app: &mut App| crate::tui::tests::text(&crate::tui::render(app, &Theme::default()));
    press(&mut app, "3");
    assert!(
        screen(&mut app).contains("computing"),
        "{}",
        screen(&mut app)
    );
    press(&mut app, "2");
    assert!(
        screen(&mut app).contains("computing"),
        "{}",
        screen(&mut app)
    );
    // The cause of a gap does not wait behind it.
    press(&mut app, "1vng");
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while !screen(&mut app).contains("idle 100 µs") || screen(&mut app).contains("computing why …")
    {
        assert!(std::time::Instant::now() < until, "{}", screen(&mut app));
        let _ = answers.recv_timeout(Duration::from_millis(20));
    }
    go.send_timeout((), Duration::from_secs(20))
        .expect("it waits");
    press(&mut app, "2");
    while !screen(&mut app).contains("matmul_tiled") {
        assert!(std::time::Instant::now() < until, "{}", screen(&mut app));
        let _ = answers.recv_timeout(Duration::from_millis(20));
    }
}

#[test]
fn what_was_let_go_can_be_looked_at_and_not_selected() {
    let mut trace = fixture::trace();
    let end = trace.extent().expect("records").end;
    trace.evict_before(STREAMED + 1_000 * US);
    let mut app = App::of_trace(trace, None, gpus());
    app.state.size = Size::new(120, 40);
    let theme = Theme::default();
    // Every view, and on the timeline whatever moves from row to row, from operation to operation, back beyond what is left.
    for keys in [
        "a0",
        "nnn",
        "pppppp",
        "ggg",
        "GGGGGG",
        "jnpjnpjnp",
        "2",
        "3",
        "4",
        "1",
        "0n^",
        "v",
        "V",
    ] {
        press(&mut app, keys);
        let mut buf = Buffer::empty(ratatui::layout::Rect::new(0, 0, 120, 40));
        app.draw(&theme, &mut buf);
        if let Some((start, _)) = selected(&app) {
            assert!(start <= end);
        }
    }
}

#[test]
fn the_picker_is_filtered_and_come_back_to() {
    let choice = |name: &str, about: &str| Choice {
        name: name.to_owned(),
        about: about.to_owned(),
        ..Choice::default()
    };
    let mut app = App::new(vec![
        choice("pipeline", "one stream against eight"),
        choice("warmup", "a cold start"),
        choice("streams", "three of them"),
    ]);
    app.state.size = Size::new(80, 24);
    press(&mut app, "/cold^");
    let wanted = NextRun::Scenario("warmup".to_owned());
    assert_eq!(press(&mut app, "^"), [Effect::Start(wanted)]);
    // Its run; escape first clears the selection, then leads back.
    app.start(fixture::source(), None, gpus());
    for batch in fixture::batches() {
        app.take(Message::Batch(batch));
    }
    app.finish(Outcome::Complete);
    press(&mut app, "j");
    assert!(press(&mut app, "~").is_empty() && !app.is_picking());
    assert_eq!(press(&mut app, "~"), [Effect::Leave]);
    assert!(app.is_picking());
    // All of them, the last one.
    press(&mut app, "~G");
    let wanted = NextRun::Scenario("streams".to_owned());
    assert_eq!(press(&mut app, "^"), [Effect::Start(wanted)]);
}
