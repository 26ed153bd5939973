//! Marks, the way back, and the link between a call and its operation. Figures follow from the fixture's own
//! description.

use super::*;
use crate::tui::action::Action;
use crate::tui::draw::layout::Layout;
use crate::tui::{Theme, render, tests::text};
use activity::Direction;

#[test]
fn two_marks_measure_what_lies_between() {
    let mut app = app();
    // From the first kernel of the sequential pass to the end of the second.
    press(&mut app, "v/matmul^mnm");
    let from = SEQUENTIAL + 300 * US;
    let span = app.state.focus.marks.span().expect("two marks");
    assert_eq!(span, Span::new(from, from + 1_500 * US));
    let found = app
        .state
        .focus
        .marks
        .measured(&app.state.model.run)
        .expect("an answer");
    let gpu = &found.devices[0];
    // Kernel 400, download 300, nothing 100, upload 300, kernel 400.
    assert_eq!(
        (gpu.parts.busy, gpu.parts.idle(), gpu.outside),
        (1_400 * US, 100 * US, 0)
    );
    assert_eq!((gpu.parts.compute, gpu.parts.copy), (800 * US, 600 * US));
    assert_eq!(
        gpu.causes.map(|causes| causes.iter().sum::<Ns>()),
        Some(100 * US)
    );
    let mib16 = f64::from(16 << 20);
    assert_eq!(
        gpu.bytes,
        [(Direction::H2D, mib16), (Direction::D2H, mib16)]
    );
    assert_eq!((found.kernels, found.copies, found.launches), (2, 2, 1));
    let screen = text(&render(&mut app, &Theme::default()));
    for words in [
        "measured 1.50 ms",
        "GPU busy 1.40 ms (93 %)",
        "idle 100 µs: ",
        "moved H2D 16 MiB, D2H 16 MiB",
        "1 launch call",
        "─ 1.50 ms ─",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    // Something else is looked at: its own details, the line on the axis stays.
    press(&mut app, "n");
    let screen = text(&render(&mut app, &Theme::default()));
    assert!(
        screen.contains("grid 128×128") && screen.contains("─ 1.50 ms ─"),
        "{screen}"
    );
    // First the search, then the marks.
    press(&mut app, "~~");
    assert_eq!(app.state.focus.marks.span(), None);
    assert!(selected(&app).is_some());
}

#[test]
fn time_before_the_first_operation_has_no_cause_and_is_said() {
    let mut app = app();
    let before = Span::new(SEQUENTIAL - 50 * US, SEQUENTIAL + 100 * US);
    let selection = app.state.focus.selection;
    app.state.focus.marks.measure(before, selection);
    app.prepare();
    let found = app
        .state
        .focus
        .marks
        .measured(&app.state.model.run)
        .expect("an answer");
    let gpu = &found.devices[0];
    assert_eq!(
        (gpu.parts.busy, gpu.parts.idle(), gpu.outside),
        (100 * US, 50 * US, 50 * US)
    );
    // A third of the upload's 16 MiB.
    let (direction, bytes) = gpu.bytes[0];
    assert_eq!(direction, Direction::H2D);
    assert!((bytes - f64::from(16 << 20) / 3.0).abs() < 1.0, "{bytes}");
}

#[test]
fn a_drag_on_a_lane_measures_and_one_on_the_axis_pans() {
    let mut app = app();
    app.prepare();
    let axis = Layout::of(&app.state).axis;
    let window = app.state.focus.camera.viewport.window;
    let drag = |app: &mut App, y: u16| {
        app.act(Action::Drag {
            from: (axis.x + 20, y),
            x: axis.x + 9,
            columns: -11,
        });
        app.prepare();
    };
    drag(&mut app, axis.y + 3);
    let span = app.state.focus.marks.span().expect("a measure");
    // Columns 9 to 20 with both ends.
    let column = window.len() as f64 / f64::from(axis.width);
    let expected = (9.0 * column, 21.0 * column);
    let found = (
        (span.start - window.start) as f64,
        (span.end - window.start) as f64,
    );
    assert!((found.0 - expected.0).abs() < 1.5 && (found.1 - expected.1).abs() < 1.5);
    assert_eq!(app.state.focus.camera.viewport.window, window);
    press(&mut app, "+");
    let zoomed = app.state.focus.camera.viewport.window;
    drag(&mut app, axis.y);
    assert_eq!(app.state.focus.marks.span(), Some(span));
    assert_ne!(app.state.focus.camera.viewport.window, zoomed);
}

#[test]
fn the_way_back_leads_through_the_places_jumped_from() {
    let mut app = app();
    press(&mut app, "u");
    assert_eq!(
        app.state.messages.flash.as_deref(),
        Some("no jump to go back from")
    );
    press(&mut app, "2jj");
    let operations = app.views.current;
    press(&mut app, "^");
    let (window, at) = (app.state.focus.camera.viewport.window, selected(&app));
    assert!(at.is_some() && app.views.is_home());
    press(&mut app, "v");
    let sequential = app.state.focus.camera.scope;
    press(&mut app, "u");
    assert_eq!(
        (app.state.focus.camera.viewport.window, selected(&app)),
        (window, at)
    );
    // The list as it was left: its cursor leads to the same operation again.
    press(&mut app, "u");
    assert_eq!(app.views.current, operations);
    press(&mut app, "^");
    assert_eq!(selected(&app), at);
    press(&mut app, "uU");
    assert_eq!(selected(&app), at);
    press(&mut app, "v");
    assert_eq!(app.state.focus.camera.scope, sequential);
    // A new jump leaves nothing to go forward to.
    press(&mut app, "U");
    assert_eq!(app.state.focus.camera.scope, sequential);
}

#[test]
fn a_key_leads_from_an_operation_to_its_call_and_back() {
    let mut app = app();
    // The second upload of the sequential pass, and the first call of its batch.
    press(&mut app, "v/matmul^~nn");
    let upload = Some((SEQUENTIAL + 1_100 * US, 300 * US));
    assert_eq!(selected(&app), upload);
    press(&mut app, "t");
    assert_eq!(selected(&app), Some((EPOCH + 1_100 * US, 10 * US)));
    press(&mut app, "t");
    assert_eq!(selected(&app), upload);
}
