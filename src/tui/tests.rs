//! Whole screens, text and styles, on the timeline of [`super::fixture`].

use std::fmt::Write as _;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Size;
use ratatui::style::Style;

use super::action::{Action, View};
use super::app::App;
use super::*;
use crate::activity::feed::{Failure, FailureKind, Message};
use crate::activity::{Batch, Def, Health, ProcessInfo};
use crate::analysis::figures;

pub(super) const PEAKS: Peaks = Peaks {
    copies: figures::Peaks {
        h2d: Some(57.0),
        d2h: Some(57.0),
        d2d: None,
        p2p: None,
    },
    memory: None,
    flops: None,
};

/// A start that failed by its input.
pub(super) fn wrong_input(message: &str) -> Failure {
    Failure {
        kind: FailureKind::Input,
        message: message.to_owned(),
        help: String::new(),
    }
}

/// The lines of a buffer.
pub(super) fn text(buf: &Buffer) -> String {
    let width = usize::from(buf.area().width);
    buf.content()
        .chunks(width.max(1))
        .map(|line| {
            let line: String = line.iter().map(|c| c.symbol()).collect();
            line.trim_end().to_owned() + "\n"
        })
        .collect()
}

/// The styles of a buffer: a letter for each, and what the letters mean.
fn styles(buf: &Buffer) -> String {
    let width = usize::from(buf.area().width);
    let mut known: Vec<Style> = vec![Style::reset()];
    let mut grid = String::new();
    for line in buf.content().chunks(width.max(1)) {
        let letters: String = line
            .iter()
            .map(|cell| {
                let style = cell.style();
                let at = known.iter().position(|s| *s == style).unwrap_or_else(|| {
                    known.push(style);
                    known.len() - 1
                });
                match at {
                    0 => ' ',
                    n => char::from_u32('a' as u32 + n as u32 - 1).unwrap_or('?'),
                }
            })
            .collect();
        grid.push_str(letters.trim_end());
        grid.push('\n');
    }
    for (style, letter) in known.iter().skip(1).zip('a'..) {
        let _ = writeln!(
            grid,
            "{letter}: {:?} on {:?} {:?}",
            style.fg.unwrap_or_default(),
            style.bg.unwrap_or_default(),
            style.add_modifier
        );
    }
    grid
}

fn both(app: &App) -> String {
    let buf = render(app, &Theme::default());
    format!("{}\n{}", text(&buf), styles(&buf))
}

fn done(width: u16, height: u16) -> App {
    let mut app = App::of_trace(fixture::trace(), None, PEAKS);
    app.size = Size::new(width, height);
    app.prepare();
    app
}

fn live(batches: usize) -> App {
    let mut app = App::new(Vec::new());
    app.size = Size::new(80, 24);
    app.start(fixture::source(), None, PEAKS);
    app.tick(Duration::from_millis(3_210));
    for batch in fixture::batches().into_iter().take(batches) {
        app.take(Message::Batch(batch));
    }
    app.prepare();
    app
}

#[test]
fn a_complete_run_at_three_sizes() {
    insta::assert_snapshot!("done_80x24", both(&done(80, 24)));
    insta::assert_snapshot!("done_120x40", both(&done(120, 40)));
    insta::assert_snapshot!("done_200x50", both(&done(200, 50)));
}

#[test]
fn a_live_run() {
    insta::assert_snapshot!("live_80x24", both(&live(1)));
}

#[test]
fn a_live_run_without_records() {
    insta::assert_snapshot!("empty_80x24", both(&live(0)));
}

#[test]
fn a_paused_run() {
    let mut app = live(1);
    app.act(Action::Pause);
    app.prepare();
    insta::assert_snapshot!("paused_80x24", both(&app));
}

#[test]
fn losses_are_red() {
    let mut app = live(2);
    app.take(Message::Batch(Batch {
        health: Some(Health {
            received: 1_234_567,
            dropped: 12,
            ..Health::default()
        }),
        ..Batch::default()
    }));
    app.prepare();
    insta::assert_snapshot!("losses_80x24", both(&app));
}

#[test]
fn an_error_lies_above_the_last_good_run() {
    let mut app = done(80, 24);
    app.fail(&wrong_input(
        "error: unknown key `repat`\n  --> pipeline.toml:24:1\n   |\n24 | repat = 3\n   | ^^^^^ did you mean `repeat`?",
    ));
    insta::assert_snapshot!("error_80x24", both(&app));
}

#[test]
fn a_failed_program_is_said() {
    let mut app = live(1);
    app.take(Message::Finished(Outcome::Failed(Failure {
        kind: FailureKind::Program { code: 1 },
        message: "the kernel `bad` wrote out of bounds".to_owned(),
        help: "compute-sanitizer names the line".to_owned(),
    })));
    app.prepare();
    insta::assert_snapshot!("failed_80x24", text(&render(&app, &Theme::default())));
}

#[test]
fn the_help() {
    let mut app = done(120, 40);
    app.act(Action::Help);
    insta::assert_snapshot!("help_120x40", both(&app));
}

#[test]
fn a_selected_operation_and_a_selected_gap() {
    let mut app = done(120, 24);
    for action in [
        Action::PreviousVariant,
        Action::Down,
        Action::NextOperation,
        Action::NextOperation,
    ] {
        app.act(action);
        app.prepare();
    }
    insta::assert_snapshot!("operation_120x24", both(&app));
    app.act(Action::PreviousGap);
    insta::assert_snapshot!("gap_120x24", both(&app));
}

#[test]
fn the_other_views() {
    let mut app = done(100, 24);
    for view in View::ALL {
        app.act(Action::Show(view));
        let name = format!("view_{}_100x24", view.title());
        insta::assert_snapshot!(name, text(&render(&app, &Theme::default())));
    }
}

#[test]
fn the_picker() {
    let mut app = App::new(vec![
        Choice {
            name: "pipeline".to_owned(),
            about: "Eight batches: one stream against eight.".to_owned(),
        },
        Choice {
            name: "tiny_copies".to_owned(),
            about: "4096 copies of 4 bytes.".to_owned(),
        },
    ]);
    app.size = Size::new(80, 24);
    app.act(Action::Down);
    insta::assert_snapshot!("picker_80x24", both(&app));
}

#[test]
fn ascii_without_colours_is_ascii_without_colours() {
    let mut app = done(100, 30);
    app.act(Action::Down);
    app.act(Action::NextGap);
    app.prepare();
    let theme = Theme {
        level: ColorLevel::None,
        is_ascii: true,
    };
    for is_help in [false, true] {
        app.is_help_open = is_help;
        let buf = render(&app, &theme);
        assert!(text(&buf).is_ascii(), "{}", text(&buf));
        assert!(
            buf.content()
                .iter()
                .all(|c| (c.fg, c.bg) == Default::default())
        );
    }
    app.is_help_open = false;
    insta::assert_snapshot!("ascii_100x30", text(&render(&app, &theme)));
}

#[test]
fn a_simulation_says_so_at_every_width_and_in_every_view() {
    let mut app = done(80, 24);
    for width in 24..200 {
        app.size = Size::new(width, 24);
        for view in View::ALL {
            app.view = view;
            let screen = text(&render(&app, &Theme::default()));
            assert!(screen.contains("SIMULATED"), "{width} {view:?}:\n{screen}");
        }
    }
}

#[test]
fn a_killed_program_leaves_an_incomplete_timeline() {
    let mut app = live(2);
    app.take(Message::Batch(Batch {
        defs: vec![Def::Process(ProcessInfo {
            ended_well: Some(false),
            ..ProcessInfo::default()
        })],
        ..Batch::default()
    }));
    app.prepare();
    let screen = text(&render(&app, &Theme::default()));
    assert!(screen.contains("INCOMPLETE"), "{screen}");
}

#[test]
fn no_size_and_no_view_panics() {
    for (width, height) in [
        (0, 0),
        (1, 1),
        (20, 5),
        (24, 5),
        (24, 8),
        (3, 60),
        (400, 2),
        (40, 9),
        (59, 12),
        (1000, 5),
    ] {
        let mut app = done(width, height);
        for action in [
            Action::Help,
            Action::Help,
            Action::Down,
            Action::NextGap,
            Action::ZoomToSelection,
            Action::Click { x: 5, y: 4 },
            Action::Drag { columns: -3 },
            Action::Wheel {
                x: 30,
                y: 6,
                is_in: true,
            },
        ] {
            app.act(action);
            app.prepare();
            let _ = render(&app, &Theme::default());
        }
        app.fail(&wrong_input(
            "error: one\n  --> a\nsome words that are long enough to be wrapped",
        ));
        for view in View::ALL {
            app.act(Action::Show(view));
            let _ = render(&app, &Theme::default());
        }
    }
}
