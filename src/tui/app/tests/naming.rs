//! Names of what is selected: whole on the screen where there is room, and whole when they are copied.

use super::*;
use crate::tui::{Theme, render, tests::text};
use activity::{Batch, Def};

/// 181 characters without a space, and the letters at their ends tell the pieces apart.
fn long_name() -> String {
    format!(
        "void_begin_{}_middle_{}_end",
        "a".repeat(80),
        "z".repeat(78)
    )
}

/// The fixture's pipeline with a long name for its kernel.
fn app_with_long_name() -> App {
    let mut trace = Trace::new(fixture::source());
    for mut batch in fixture::batches() {
        for def in &mut batch.defs {
            if let Def::Name { id: 0, text } = def {
                *text = long_name();
            }
        }
        trace.apply(Batch { ..batch });
    }
    let mut app = App::of_trace(trace, None, gpus());
    app.state.size = Size::new(120, 40);
    app
}

#[test]
fn the_whole_name_stands_in_the_details_where_there_is_room() {
    let mut app = app_with_long_name();
    press(&mut app, "/middle^");
    let details = |app: &mut App, height: u16| {
        app.state.size = Size::new(120, height);
        let screen = text(&render(app, &Theme::default()));
        let lines: Vec<&str> = screen.lines().map(str::trim).collect();
        // The lines of the details stand between their rule and the foot.
        let rule = lines.iter().rposition(|line| line.starts_with('─'));
        lines[rule.map_or(0, |at| at + 1)..].concat()
    };
    let whole = details(&mut app, 40);
    assert!(whole.contains(&long_name()), "{whole}");
    assert!(whole.contains("grid 128×128"), "{whole}");
    // One line: both ends, and the facts have gone.
    let short = details(&mut app, 19);
    assert!(
        short.contains("void_begin_") && short.contains("…") && short.contains("_end"),
        "{short}"
    );
}

#[test]
fn enter_opens_the_view_of_what_cannot_be_closer() {
    // Closer once, and then among the findings, or among the operations.
    for (keys, view) in [("vg", 2), ("vn", 1)] {
        let mut app = app_with_long_name();
        press(&mut app, keys);
        press(&mut app, "^");
        assert_eq!(app.views.current, 0, "{keys}");
        press(&mut app, "^");
        assert_eq!(app.views.current, view, "{keys}");
    }
}

#[test]
fn what_is_copied_is_the_whole_of_it() {
    let mut app = app_with_long_name();
    assert_eq!(press(&mut app, "y"), []);
    let said = app.state.messages.flash.clone();
    assert!(said.is_some_and(|text| text.starts_with("nothing to copy")));
    let name = [Effect::Copy(long_name())];
    assert_eq!(press(&mut app, "/middle^y"), name);
    // The line of the table, whose name is the short one there: kernels take the most.
    assert_eq!(press(&mut app, "2y"), name);
    // Of a gap all that is said of it.
    let gap = press(&mut app, "1~~vgy");
    let [Effect::Copy(text)] = &gap[..] else {
        panic!("{gap:?}");
    };
    assert!(
        text.starts_with("GPU idle 100 µs: unknown · ") && !text.contains("computing"),
        "{text}"
    );
}
