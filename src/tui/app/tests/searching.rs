//! Looking for names: what is found follows from the fixture's own description.

use super::*;
use crate::tui::{Theme, render, tests::text};

fn foot(app: &mut App) -> String {
    let screen = text(&render(app, &Theme::default()));
    screen.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn hits_are_gone_through_in_the_order_of_their_starts() {
    let mut app = app();
    // While it is typed nothing is selected, and letters that are keys elsewhere are letters.
    press(&mut app, "/MATq");
    assert!(foot(&mut app).contains("/MATq▏ none"), "{}", foot(&mut app));
    let erase = KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE);
    let action = keys::resolve(erase, app.context()).expect("a key");
    app.act(action);
    app.prepare();
    // Four batches in this pass and four in the other.
    assert!(foot(&mut app).contains("/MAT▏ 4"), "{}", foot(&mut app));
    assert_eq!(selected(&app), None);
    press(&mut app, "^");
    let kernel = |batch: i64| Some((STREAMED + (batch * 400 + 300) * US, 400 * US));
    assert_eq!(selected(&app), kernel(0));
    assert!(foot(&mut app).contains("/MAT 1 of 4"), "{}", foot(&mut app));
    press(&mut app, "nn");
    assert_eq!((selected(&app), row_label(&app)), (kernel(2), "s2"));
    // Round the end, and back again.
    press(&mut app, "nn");
    assert_eq!(selected(&app), kernel(0));
    press(&mut app, "N");
    assert_eq!(selected(&app), kernel(3));
    press(&mut app, "~~n");
    assert!(!foot(&mut app).contains("MAT"));
}

#[test]
fn what_is_elsewhere_in_the_run_is_not_gone_to_and_said() {
    let mut app = app();
    // The calls that wait for a stream are the sequential pass's.
    press(&mut app, "/streamsync^");
    assert_eq!(selected(&app), None);
    let foot_now = foot(&mut app);
    assert!(foot_now.contains("4 in the whole run"), "{foot_now}");
    press(&mut app, "a^");
    press(&mut app, "n");
    assert_eq!(selected(&app), Some((EPOCH + 30 * US, 1_070 * US)));
}

#[test]
fn lanes_are_found_by_their_names() {
    let mut app = app();
    press(&mut app, "/re:S[13]^");
    assert!(foot(&mut app).contains("2 lanes"), "{}", foot(&mut app));
    assert_eq!(row_label(&app), "s1");
    press(&mut app, "n");
    assert_eq!(row_label(&app), "s3");
    press(&mut app, "~/re:(^");
    assert!(
        foot(&mut app).contains("unclosed group"),
        "{}",
        foot(&mut app)
    );
}

#[test]
fn lists_show_the_lines_that_have_it() {
    let mut app = app();
    let middle = |app: &mut App| text(&render(app, &Theme::default()));
    press(&mut app, "2/mAtm^");
    let screen = middle(&mut app);
    assert!(
        screen.contains("matmul_tiled") && !screen.contains("H2D"),
        "{screen}"
    );
    // Kernels, uploads and downloads.
    assert!(
        foot(&mut app).contains("/mAtm 1 of 3"),
        "{}",
        foot(&mut app)
    );
    // The share is still that of all operations: 400 of 1000 us.
    assert!(screen.contains("40 %"), "{screen}");
    press(&mut app, "~");
    assert!(middle(&mut app).contains("H2D"));
}

#[test]
fn keys_answer_while_a_long_timeline_is_looked_through() {
    let (wake, answers) = crossbeam_channel::bounded(1);
    let mut trace = fixture::trace();
    let call = trace.activity(0, 0);
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
    holder.light().ask(
        &app.state.model.analyst,
        &app.state.model.run,
        0,
        move |_, _| {
            let _ = held.recv_timeout(Duration::from_secs(20));
        },
    );
    press(&mut app, "/matmul^");
    assert!(foot(&mut app).contains("searching"), "{}", foot(&mut app));
    press(&mut app, "j");
    let before = app.state.focus.selection;
    assert!(before.row.is_some());
    go.send_timeout((), Duration::from_secs(20))
        .expect("it waits");
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while !foot(&mut app).contains(" of 4") {
        assert!(std::time::Instant::now() < until, "{}", foot(&mut app));
        let _ = answers.recv_timeout(Duration::from_millis(20));
    }
    assert_ne!(app.state.focus.selection, before);
}
