//! What keeps standing in the header, which keys are offered, and where jumps lead.

use super::*;
use crate::tui::action::Action;
use crate::tui::frame::why_not;
use crate::tui::state::StartNotice;
use crate::tui::{Theme, render, tests::text};

fn screen(app: &mut App, width: u16, height: u16) -> String {
    app.state.size = Size::new(width, height);
    text(&render(app, &Theme::default()))
}

/// The lines of the screen above the view.
fn head(app: &mut App) -> String {
    let screen = screen(app, 80, 24);
    screen.lines().take(2).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_broken_file_stands_in_every_view_until_it_runs_again() {
    let mut app = app();
    app.fail(&wrong_input(
        "error: unknown key `repat`\n  --> mine.toml:20:1\n   |\n",
    ));
    press(&mut app, "~");
    for view in ["1", "2", "3", "4", "7"] {
        press(&mut app, view);
        let head = head(&mut app);
        assert!(
            head.contains("✗ mine.toml:20:1: unknown key `repat`; the run before is shown"),
            "view {view}: {head}"
        );
    }
    app.start(fixture::source(), None, gpus());
    assert!(!head(&mut app).contains("mine.toml"));
}

/// What the source waits for: what alarms in every view until it is told anew, and on a timeline that is still empty what to do.
#[test]
fn whom_a_source_waits_for_stands_until_it_comes() {
    use activity::feed::SourceStatus;
    let standing = |all: &[(bool, &str)]| {
        let told = all.iter().map(|&(is_alarming, text)| SourceStatus {
            is_alarming,
            text: text.to_owned(),
        });
        Message::Status(told.collect())
    };
    let mut app = App::new(Vec::new());
    app.start(fixture::source(), None, gpus());
    assert!(screen(&mut app, 80, 24).contains("waiting for the first records"));
    app.take(standing(&[(
        false,
        "nothing is recorded in runs yet\ndo \u{1b}[31mthis",
    )]));
    let shown = screen(&mut app, 80, 24);
    assert!(
        shown.contains("  nothing is recorded in runs yet\n"),
        "{shown}"
    );
    assert!(shown.contains("  do \\u{1b}[31mthis\n"), "{shown}");
    assert!(!head(&mut app).contains("nothing is recorded"));

    app.take(standing(&[
        (true, "gpu02: no word for 8 s"),
        (false, "1 of 3 ranks"),
    ]));
    for view in ["1", "2", "3", "7"] {
        press(&mut app, view);
        let head = head(&mut app);
        assert!(
            head.contains("✗ gpu02: no word for 8 s"),
            "view {view}: {head}"
        );
    }
    app.take(standing(&[]));
    assert!(!head(&mut app).contains("gpu02"));
    // What was waited for until the end is not any more.
    app.take(standing(&[(true, "rank 3 silent for 12 s")]));
    app.take(Message::Finished(Outcome::Complete));
    assert!(!head(&mut app).contains("silent"));
}

#[test]
fn a_failed_expectation_stands_in_every_view() {
    let (mut plan, trace) = fixture::roofline();
    // The fixture's GPU reaches 60 TFLOP/s; nothing reaches a thousand times that.
    let made = Arc::make_mut(&mut plan);
    made.expectations
        .retain(|it| it.figure.kind == scenario::figures::Kind::KernelFlops);
    made.expectations.truncate(1);
    let expectation = made.expectations.first_mut().expect("one");
    expectation.compare = scenario::expect::Compare::AtLeast;
    expectation.value = 1e18;
    let (what, expected) = (expectation.what.clone(), expectation.expected.clone());
    let mut app = App::of_trace(trace, Some(plan), gpus());
    for view in ["1", "2", "4", "5"] {
        press(&mut app, view);
        let head = head(&mut app);
        let said = format!("✗ expected {what} {expected}");
        assert!(head.contains(&said[..40]), "view {view}: {head}");
    }
    // All of it, at a key.
    press(&mut app, "!");
    let all = screen(&mut app, 80, 24);
    assert!(
        all.contains("errors, losses, races") && all.contains("SIMULATED: no GPU"),
        "{all}"
    );
}

#[test]
fn the_key_for_errors_points_to_warnings_in_the_log() {
    let mut app = app();
    app.state.model.troubles = Vec::new();
    let why = |app: &App| why_not(Action::Troubles, &app.state, &app.views).unwrap_or_default();
    assert!(why(&app).ends_with("3 has what costs time"));
    app.state.messages.said(&StartNotice {
        is_warning: true,
        is_race: false,
        text: "no Python lines".to_owned(),
    });
    assert!(why(&app).ends_with("the log has a warning (tab)"));
}

#[test]
fn a_race_stands_in_the_header_and_is_one_warning() {
    let mut app = app();
    let said = |is_race, text: &str| StartNotice {
        is_warning: is_race,
        is_race,
        text: text.to_owned(),
    };
    let lines = "warning: race on `x`: nothing orders the two\n --> r.toml:3:1\n  |\n3 | copy\n  |";
    let messages = &mut app.state.messages;
    messages.said(&said(true, lines));
    messages.said(&said(false, "simulating: no driver"));
    messages.flash = None;
    assert!(head(&mut app).contains("✗ race on `x`: nothing orders the two"));
    let log = &app.state.messages.log;
    assert_eq!(log.count(LineKind::Warning), 1);
    // What is calm is in the log and nowhere else.
    assert!(log.lines.iter().any(|line| line.text.contains("no driver")));
    assert_eq!(app.state.messages.flash, None);
    // The next run is of the mended file: neither the race nor its lines stay. What a source noticed does.
    app.take(Message::Notice {
        is_warning: true,
        text: "a record is late".to_owned(),
    });
    app.start(fixture::source(), None, gpus());
    let lines = app.state.messages.log.lines.iter();
    let kept: Vec<_> = lines.map(|it| (it.kind, it.text.as_str())).collect();
    assert_eq!(kept, [(LineKind::Plain, "a record is late")]);
}

#[test]
fn keys_that_would_do_nothing_are_not_offered() {
    let mut trace = Trace::new(SourceInfo {
        kind: SourceKind::Kineto,
        ..fixture::source()
    });
    for batch in fixture::batches() {
        trace.apply(batch);
    }
    let mut app = App::of_trace(trace, None, gpus());
    let foot = |app: &mut App| screen(app, 200, 50).lines().last().map(str::to_owned);
    let offered = foot(&mut app).unwrap_or_default();
    for dead in ["r rerun", "e edit", "f follow", "space pause"] {
        assert!(!offered.contains(dead), "{offered}");
    }
    assert!(
        offered.contains("v variant") && offered.ends_with("? help  q quit"),
        "{offered}"
    );
    // The most useful ones are the last to go, and a click on one is the key.
    let narrow = screen(&mut app, 80, 24);
    let foot = narrow.lines().last().unwrap_or_default();
    // Nothing is found, and kernels bound it: the view of operations says more.
    let keys = "2:operations  L longest gap  g gap  v variant  tab view  ? help  q quit";
    assert!(foot.contains(keys), "{foot}");
    let x = foot.find("tab view").expect("a hint") as u16;
    app.act(Action::Click { x, y: 23 });
    assert_eq!(app.views.current, 1);
}

#[test]
fn the_help_turns_to_its_last_line_and_cuts_none() {
    let mut app = app();
    app.state.size = Size::new(80, 24);
    press(&mut app, "?");
    let top = screen(&mut app, 80, 24);
    assert!(
        top.contains("page 1 of 2") && top.contains("zoom in (wheel)"),
        "{top}"
    );
    for _ in 0..60 {
        app.act(Action::Down);
    }
    let bottom = screen(&mut app, 80, 24);
    for wanted in [
        "q quit",
        "? : F1 keys; type: a name, a step",
        "esc close; select nothing",
        "5 notices, program's output",
    ] {
        assert!(bottom.contains(wanted), "{bottom}");
    }
}

#[test]
fn a_jump_from_a_list_fits_what_it_leads_to() {
    let mut app = App::of_trace(fixture::pageable(), None, gpus());
    app.state.size = Size::new(120, 40);
    press(&mut app, "3");
    // Past the title and the advice: the first place.
    press(&mut app, "jj^");
    let (start, length) = selected(&app).expect("a place");
    let window = app.state.focus.camera.viewport.window;
    assert!(window.start <= start && start + length <= window.end);
    assert!(window.len() <= 3 * length, "{window:?} for {length}");
}

#[test]
fn the_gaps_of_the_gpu_are_those_of_the_pass() {
    let mut app = app();
    press(&mut app, "v");
    // `sequential`: 100 us before each batch but the first, which is no gap of the pass.
    for i in 1..4 {
        press(&mut app, "g");
        assert_eq!(row_label(&app), "GPU");
        let expected = (SEQUENTIAL + i * 1_100 * US - 100 * US, 100 * US);
        assert_eq!(selected(&app), Some(expected));
    }
    let last = selected(&app);
    press(&mut app, "g");
    assert_eq!(selected(&app), last);
    let flash = app.state.messages.flash.clone().unwrap_or_default();
    assert_eq!(flash, "no gap after this one on this row of this pass");
    // In the whole run the longest is the one between the variants: from 4400 us to 10,100 us.
    press(&mut app, "~aL");
    assert_eq!(selected(&app), Some((EPOCH + 4_400 * US, 5_700 * US)));
}

/// Whatever moves, zooms, steps and selects, the pass that is shown stays, and so does all within it.
#[test]
fn moving_never_changes_the_scope() {
    let mut app = app();
    press(&mut app, "v");
    let scope = app.state.focus.camera.scope;
    let within = app.state.scope_span().expect("a pass");
    let bounds = app.state.focus.camera.viewport.bounds;
    let keys: Vec<char> = "hl+-=0kjnpgGLtm^zwbuUHPFS/~".chars().collect();
    let mut chance = 7_u64;
    for i in 0..3_000 {
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let key = keys[(chance >> 33) as usize % keys.len()];
        press(&mut app, &key.to_string());
        let camera = &app.state.focus.camera;
        assert_eq!(camera.scope, scope, "{i}: {key}");
        let window = camera.viewport.window;
        assert!(
            bounds.start <= window.start && window.end <= bounds.end,
            "{i}: {key} {window:?}"
        );
        if let Some((start, length)) = selected(&app) {
            let selected = Span::new(start, start + length);
            assert!(selected.overlaps(within), "{i}: {key} {selected:?}");
        }
    }
}

#[test]
fn streams_stand_in_the_order_of_their_first_use_and_rows_without_data_are_left_out() {
    let app = app();
    // `streamed` uses s0 to s3, each 400 us after the one before, and not the main stream.
    let streams = |app: &App| -> Vec<String> {
        let rows = app.state.rows.list.iter();
        let is_stream = |row: &&crate::tui::state::row::Row| {
            matches!(row.kind, crate::tui::state::row::RowKind::Stream(_))
        };
        rows.filter(is_stream)
            .map(|row| row.label.clone())
            .collect()
    };
    assert_eq!(streams(&app), ["s0", "s1", "s2", "s3"]);
    // The same the other way round: the last one is used first.
    let mut trace = Trace::new(fixture::source());
    for mut batch in fixture::batches() {
        for item in &mut batch.items {
            let place = match &mut item.what {
                What::Kernel(kernel) => &mut kernel.place,
                What::Copy(copy) => &mut copy.place,
                _ => continue,
            };
            if place.stream >= 13 {
                place.stream = 29 - place.stream;
            }
        }
        trace.apply(batch);
    }
    let app = App::of_trace(trace, None, gpus());
    assert_eq!(streams(&app), ["s3", "s2", "s1", "s0"]);
}

#[test]
fn rows_have_two_lines_where_there_is_room() {
    let mut app = app();
    let lines_of = |app: &mut App, height: u16, name: &str| {
        let screen = screen(app, 120, height);
        let mut lines = screen
            .lines()
            .skip_while(|line| !line.starts_with(&format!(" {name} ")));
        let below = lines.nth(1).unwrap_or_default();
        // The second line of a row has no name.
        1 + usize::from(below.starts_with("      ") && !below.trim().is_empty())
    };
    assert_eq!(lines_of(&mut app, 24, "s1"), 1);
    assert_eq!(lines_of(&mut app, 40, "s1"), 2);
}
