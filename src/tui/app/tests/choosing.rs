//! Rows that are hidden or kept by name, or folded.

use super::*;
use crate::tui::action::Action;
use crate::tui::{Theme, render, tests::text};
use ratatui::style::Modifier;

fn labels(app: &App) -> Vec<&str> {
    app.state
        .rows
        .list
        .iter()
        .map(|row| row.label.as_str())
        .collect()
}

fn screen(app: &mut App) -> String {
    text(&render(app, &Theme::default()))
}

const ALL: [&str; 11] = [
    "GPU", "H2D", "D2H", "parallel", "streams", "s0", "s1", "s2", "s3", "host", "main",
];

#[test]
fn hidden_lanes_are_said_at_every_size_until_they_are_shown_again() {
    let mut app = app();
    app.prepare();
    assert_eq!(labels(&app), ALL);
    press(&mut app, "&not:re:s[12]^");
    let rest: Vec<&str> = ALL
        .into_iter()
        .filter(|label| !["s1", "s2"].contains(label))
        .collect();
    assert_eq!(labels(&app), rest);
    for (width, height) in [(200, 50), (120, 40), (80, 24), (60, 10)] {
        app.state.size = Size::new(width, height);
        let screen = screen(&mut app);
        assert!(screen.contains("2 lanes hidden, S shows all"), "{screen}");
    }
    // A rerun is no reason to forget it.
    app.start(fixture::source(), None, gpus());
    for batch in fixture::batches() {
        app.take(Message::Batch(batch));
    }
    app.take(Message::Finished(Outcome::Complete));
    app.prepare();
    assert_eq!(labels(&app), rest);
    press(&mut app, "S");
    assert_eq!(labels(&app), ALL);
    assert!(!screen(&mut app).contains("hidden"));
}

#[test]
fn what_is_jumped_to_is_shown_again() {
    let mut app = app();
    // The longest upload of the pass: all take as long, so the first, on s0.
    press(&mut app, "&not:s0^2/h2d^^");
    assert_eq!(row_label(&app), "s0");
    assert_eq!(selected(&app), Some((STREAMED, 300 * US)));
    // From a kernel to its call on a folded thread.
    press(&mut app, "/main^~F/matmul^~t");
    assert_eq!(row_label(&app), "main");
}

#[test]
fn a_group_folds_to_a_row_that_opens_it() {
    let mut app = app();
    press(&mut app, "/s2^~F");
    let folded = [
        "GPU",
        "H2D",
        "D2H",
        "parallel",
        "streams · 4 lanes folded",
        "host",
        "main",
    ];
    assert_eq!(labels(&app), folded);
    assert_eq!(row_label(&app), "streams · 4 lanes folded");
    let row = screen(&mut app);
    assert!(row.contains("▸ streams · 4 lanes folded"), "{row}");
    press(&mut app, "F");
    assert_eq!((labels(&app), row_label(&app)), (ALL.to_vec(), "s0"));
}

#[test]
fn only_lanes_with_a_name() {
    let mut app = app();
    press(&mut app, "&");
    let foot = screen(&mut app);
    assert!(
        foot.contains("&▏ a name keeps rows with it, not:name hides them"),
        "{foot}"
    );
    press(&mut app, "S2");
    // The GPU's row stays, it is what all is about.
    assert_eq!(labels(&app), ["GPU", "streams", "s2"]);
    let foot = screen(&mut app);
    assert!(foot.contains("&S2▏ 2 of 9 lanes"), "{foot}");
    press(&mut app, "^");
    let rule = screen(&mut app);
    assert!(rule.contains("7 lanes hidden, S shows all (&S2)"), "{rule}");
    press(&mut app, "&~");
    assert_eq!(labels(&app), ALL);
}

#[test]
fn lanes_without_a_name() {
    let mut app = app();
    // A title stands for all that is under it; the GPU's row goes when it is meant itself.
    press(&mut app, "&not:streams^");
    assert_eq!(
        labels(&app),
        ["GPU", "H2D", "D2H", "parallel", "host", "main"]
    );
    press(&mut app, "&not:gpu^");
    assert_eq!(labels(&app), ALL[1..]);
    press(&mut app, "S");
    assert_eq!(labels(&app), ALL);
}

#[test]
fn a_click_on_the_head_of_a_column_orders_by_it() {
    let mut app = app();
    app.state.size = Size::new(120, 40);
    press(&mut app, "2");
    app.prepare();
    // What lines are ordered by is bright.
    let is_bold = |app: &mut App, head: &str| {
        let buf = render(app, &Theme::default());
        let row = |y: u16| -> String { (0..120).map(|x| buf[(x, y)].symbol()).collect() };
        let y = (0..40)
            .find(|y| row(*y).contains("count"))
            .expect("a heading");
        let x = row(y).find(head).expect("a column") as u16;
        (x, y, buf[(x, y)].modifier.contains(Modifier::BOLD))
    };
    let (x, y, is_count) = is_bold(&mut app, "count");
    assert!(!is_count && is_bold(&mut app, "total").2);
    // A line is no head.
    app.act(Action::Click { x, y: y + 2 });
    assert!(!is_bold(&mut app, "count").2);
    app.act(Action::Click { x, y });
    app.prepare();
    assert!(is_bold(&mut app, "count").2 && !is_bold(&mut app, "total").2);
}
