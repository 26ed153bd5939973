//! Keys as a table of actions. The help, which is also how actions are looked for and run, and the hints at the foot of
//! the screen are made from it.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::action::{Action, Context};

/// What one wants; the help is in these groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Cause,
    Move,
    Search,
    Rows,
    Views,
    Program,
}

impl Purpose {
    /// The groups of the help in their order, and what they are called.
    #[rustfmt::skip]
    pub const ALL: [(Purpose, &'static str); 6] = [
        (Cause, "find the cause"), (Move, "move"), (Search, "search and measure"), (Rows, "rows"), (Views, "views"),
        (Program, "program"),
    ];
}

/// A key with what it does.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    pub purpose: Purpose,
    pub context: Context,
    pub key: KeyCode,
    pub action: Action,
    /// In words, for the help. Bindings without words are other keys for what stands above them.
    pub help: &'static str,
    /// The word in the hints at the foot of the screen; empty for none.
    pub hint: &'static str,
}

const fn key(
    purpose: Purpose,
    context: Context,
    key: KeyCode,
    action: Action,
    help: &'static str,
    hint: &'static str,
) -> Binding {
    Binding {
        purpose,
        context,
        key,
        action,
        help,
        hint,
    }
}

use crate::tui::action::Context::{Any, Found, Lines, List, Picker, Prompt, Timeline};
use KeyCode::Char;
use Purpose::{Cause, Move, Program, Rows, Search, Views};

/// Every key but the digits, which go by the bar of views.
#[rustfmt::skip]
pub const BINDINGS: &[Binding] = &[
    key(Cause, Timeline, Char('L'), Action::LongestGap, "longest gap; again: next", "longest gap"),
    key(Cause, Timeline, Char('g'), Action::Gap(1), "next gap", "gap"),
    key(Cause, Timeline, Char('G'), Action::Gap(-1), "previous gap", ""),
    key(Cause, Timeline, KeyCode::Enter, Action::ZoomToSelection, "closer (double click)", "closer"),
    key(Cause, Timeline, Char('z'), Action::ZoomToSelection, "", ""),
    key(Cause, Any, Char('i'), Action::Predict, "what a cure would save", "cure"),
    key(Cause, Timeline, Char('t'), Action::OtherEnd, "go to operation, or call", ""),
    key(Cause, Picker, Char('J'), Action::Job, "how jobs stand: all ranks", "jobs"),
    key(Cause, Any, Char('!'), Action::Troubles, "errors, losses, races", "errors"),
    key(Move, Any, Char(']'), Action::Step(1), "next step, or repeat", "step"),
    key(Move, Any, Char('['), Action::Step(-1), "previous step, or repeat", ""),
    key(Move, Timeline, Char('f'), Action::Follow, "follow the newest data", "follow"),
    key(Move, Timeline, Char(' '), Action::Pause, "pause, resume", "pause"),
    key(Move, Timeline, Char('+'), Action::Zoom(1), "zoom in (wheel)", ""),
    key(Move, Timeline, Char('='), Action::Zoom(1), "", ""),
    key(Move, Timeline, Char('-'), Action::Zoom(-1), "zoom out (wheel)", ""),
    key(Move, Timeline, Char('h'), Action::Pan(-1), "earlier (drag the axis)", ""),
    key(Move, Timeline, KeyCode::Left, Action::Pan(-1), "", ""),
    key(Move, Timeline, Char('l'), Action::Pan(1), "later (drag the axis)", ""),
    key(Move, Timeline, KeyCode::Right, Action::Pan(1), "", ""),
    key(Move, Timeline, KeyCode::Home, Action::PanStart, "to the start", ""),
    key(Move, Timeline, KeyCode::End, Action::PanEnd, "to the end", ""),
    key(Move, Timeline, Char('0'), Action::Fit, "run; again: operations", "run"),
    key(Move, Timeline, Char('k'), Action::Up, "row above (click)", ""),
    key(Move, Timeline, KeyCode::Up, Action::Up, "", ""),
    key(Move, Timeline, Char('j'), Action::Down, "row below (click)", ""),
    key(Move, Timeline, KeyCode::Down, Action::Down, "", ""),
    key(Move, Timeline, Char('n'), Action::Operation(1), "next operation of the row", "next"),
    key(Move, Timeline, Char('w'), Action::Operation(1), "", ""),
    key(Move, Timeline, Char('p'), Action::Operation(-1), "previous operation", ""),
    key(Move, Timeline, Char('b'), Action::Operation(-1), "", ""),
    key(Move, Any, Char('u'), Action::Return, "back from the last jump", "back"),
    key(Move, Any, KeyCode::Backspace, Action::Return, "", ""),
    key(Move, Any, Char('U'), Action::Forward, "forward again", ""),
    key(Move, Any, KeyCode::PageUp, Action::PageUp, "a page up", ""),
    key(Move, Any, KeyCode::PageDown, Action::PageDown, "a page down", ""),
    key(Move, Lines, Char('k'), Action::Up, "line above", ""),
    key(Move, Lines, KeyCode::Up, Action::Up, "", ""),
    key(Move, Lines, Char('j'), Action::Down, "line below", ""),
    key(Move, Lines, KeyCode::Down, Action::Down, "", ""),
    key(Move, Lines, KeyCode::Home, Action::First, "first line", ""),
    key(Move, Lines, KeyCode::End, Action::Last, "last line", ""),
    key(Move, Lines, Char('G'), Action::Last, "", ""),
    key(Move, List, KeyCode::Enter, Action::Choose, "go to it on the timeline", "go to"),
    key(Move, Picker, KeyCode::Enter, Action::Choose, "run it; explain attaching", "open"),
    key(Search, Timeline, Char('/'), Action::Find, "look for a name", "find"),
    key(Search, Found, Char('n'), Action::Hit(1), "next hit", "next"),
    key(Search, Found, Char('N'), Action::Hit(-1), "previous hit", ""),
    key(Search, List, Char('/'), Action::Find, "only lines with a name", "find"),
    key(Search, Picker, Char('/'), Action::Find, "only those with a word", "filter"),
    key(Search, Picker, Char(' '), Action::Mark, "compare two traces", "compare two"),
    key(Search, Prompt, KeyCode::Enter, Action::Choose, "take it", "done"),
    key(Search, Prompt, KeyCode::Backspace, Action::Erase, "take a letter back", ""),
    key(Search, Prompt, KeyCode::Esc, Action::Back, "end", "end"),
    key(Search, Prompt, KeyCode::Up, Action::Up, "line above", ""),
    key(Search, Prompt, KeyCode::Down, Action::Down, "line below", ""),
    key(Search, Prompt, KeyCode::PageUp, Action::PageUp, "a page up", ""),
    key(Search, Prompt, KeyCode::PageDown, Action::PageDown, "a page down", ""),
    key(Search, Timeline, Char('m'), Action::Mark, "mark; measure (drag)", "mark"),
    key(Search, Timeline, Char('.'), Action::FindThis, "look for this name", ""),
    key(Search, Any, Char('y'), Action::Copy, "copy the name or the line", ""),
    key(Rows, Timeline, Char('F'), Action::FoldLanes, "fold this group (click)", ""),
    key(Rows, Timeline, Char('&'), Action::FilterLanes, "rows by name, or not:name", ""),
    key(Rows, Timeline, Char('S'), Action::ShowLanes, "show all rows", ""),
    key(Rows, Timeline, Char('c'), Action::Counters, "counters: few, all, none", ""),
    key(Views, Any, KeyCode::Tab, Action::View(1), "next view", "view"),
    key(Views, Any, KeyCode::BackTab, Action::View(-1), "previous view", ""),
    key(Views, Any, Char('v'), Action::Variant(1), "next variant", "variant"),
    key(Views, Any, Char('V'), Action::Variant(-1), "previous variant", ""),
    key(Views, Any, Char('>'), Action::Point(1), "next value of the sweep", ""),
    key(Views, Any, Char('<'), Action::Point(-1), "previous value", ""),
    key(Views, Any, Char('a'), Action::WholeRun, "all repeats, or one", ""),
    key(Views, List, Char('o'), Action::Sort, "order; chart of a sweep", "order"),
    key(Program, Any, Char('r'), Action::Rerun, "run again", "rerun"),
    key(Program, Any, Char('x'), Action::Stop, "stop the run", ""),
    key(Program, Any, Char('e'), Action::Edit, "edit scenario, or line", "edit"),
    key(Program, Any, Char('s'), Action::Save, "save as SVG and text", "save"),
    key(Program, Any, Char('R'), Action::Record, "recording on or off", ""),
    key(Program, Any, Char('K'), Action::Keep, "keep the recording", ""),
    key(Program, Any, Char('?'), Action::Help, "keys; type: a name, a step", "help"),
    key(Program, Any, Char(':'), Action::Help, "", ""),
    key(Program, Any, KeyCode::F(1), Action::Help, "", ""),
    key(Program, Any, KeyCode::Esc, Action::Back, "close; select nothing", ""),
    key(Program, Any, Char('q'), Action::Quit, "quit", "quit"),
];

/// What a key asks for in a context.
pub fn resolve(event: KeyEvent, context: Context) -> Option<Action> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    if event.modifiers.contains(KeyModifiers::CONTROL) {
        // As in a shell it takes back the line that is typed.
        let action = if context == Prompt {
            Action::Back
        } else {
            Action::Quit
        };
        return match event.code {
            Char('c') => Some(action),
            // As editors have it.
            Char('p') if context != Prompt => Some(Action::Help),
            _ => None,
        };
    }
    if context == Prompt {
        // Letters are letters there, and what is no letter and not bound does nothing.
        return bound(Prompt, event.code).or(match event.code {
            Char(c) => Some(Action::Type(c)),
            _ => None,
        });
    }
    if let Char(digit @ '1'..='9') = event.code {
        return Some(Action::ShowNth(digit as usize - '1' as usize));
    }
    let own = own_contexts(context).iter();
    let mut actions = own.chain([&Any]).filter_map(|c| bound(*c, event.code));
    actions.next()
}

fn bound(context: Context, key: KeyCode) -> Option<Action> {
    let mut all = BINDINGS.iter();
    all.find(|b| b.context == context && b.key == key)
        .map(|b| b.action)
}

/// The contexts whose keys count in one besides those of [`Context::Any`], the ones that go first first.
pub fn own_contexts(context: Context) -> &'static [Context] {
    match context {
        Any | Lines => &[],
        Timeline => &[Timeline],
        Found => &[Found, Timeline],
        List => &[List, Lines],
        Picker => &[Picker, Lines],
        Prompt => &[Prompt],
    }
}

/// How a key is written in the help: "space", "j ↓".
pub fn label(key: KeyCode, is_ascii: bool) -> String {
    let arrow = |unicode: &str, ascii: &str| if is_ascii { ascii } else { unicode }.to_owned();
    match key {
        Char(' ') => "space".to_owned(),
        Char(c) => c.to_string(),
        KeyCode::Left => arrow("←", "left"),
        KeyCode::Right => arrow("→", "right"),
        KeyCode::Up => arrow("↑", "up"),
        KeyCode::Down => arrow("↓", "down"),
        KeyCode::Enter => "enter".to_owned(),
        KeyCode::Tab => "tab".to_owned(),
        KeyCode::BackTab => "shift-tab".to_owned(),
        KeyCode::Home => "home".to_owned(),
        KeyCode::End => "end".to_owned(),
        KeyCode::PageUp => "pgup".to_owned(),
        KeyCode::PageDown => "pgdn".to_owned(),
        KeyCode::Esc => "esc".to_owned(),
        KeyCode::Backspace => "bksp".to_owned(),
        KeyCode::F(n) => format!("F{n}"),
        other => format!("{other:?}"),
    }
}

/// All keys of an action in a context.
pub fn all_keys(of: &Binding, is_ascii: bool) -> String {
    let same = |b: &&Binding| b.context == of.context && b.action == of.action;
    let keys = BINDINGS.iter().filter(same).map(|b| label(b.key, is_ascii));
    keys.collect::<Vec<_>>().join(" ")
}

/// What matters most of the hints; others follow in the table's order.
#[rustfmt::skip]
const FOREMOST: &[Action] = &[
    Action::Choose, Action::Sort, Action::Hit(1), Action::LongestGap, Action::Gap(1), Action::Variant(1), Action::Step(1),
    Action::View(1), Action::ZoomToSelection, Action::Follow, Action::Pause, Action::Troubles, Action::Find, Action::Operation(1),
    Action::Fit,
];

/// The hints for a context, the most useful first, help and quit last. In the picker there is no run that others could
/// act on.
pub fn hints(context: Context, is_offered: impl Fn(Action) -> bool) -> Vec<&'static Binding> {
    let is_for = |b: &Binding| match (b.context, context) {
        (Any, Picker) => matches!(b.action, Action::Help | Action::Quit),
        (Any, Prompt) => false,
        (Any, _) => true,
        (of, Found) if of != Found => of == Timeline && bound(Found, b.key).is_none(),
        (of, _) => of == context,
    };
    let is_shown = |b: &&Binding| is_for(b) && !b.hint.is_empty() && is_offered(b.action);
    let mut hints: Vec<&Binding> = BINDINGS.iter().filter(is_shown).collect();
    let place = |action| FOREMOST.iter().position(|it| *it == action);
    hints.sort_by_key(|b| match b.action {
        Action::Help => usize::MAX - 1,
        Action::Quit => usize::MAX,
        action => place(action).unwrap_or(FOREMOST.len()),
    });
    hints
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::draw::pen;
    use crate::tui::frame::overlay;
    use crate::tui::view::VIEWS;
    use std::collections::HashSet;

    #[test]
    fn no_key_means_two_things_in_one_context() {
        let mut seen = HashSet::new();
        for b in BINDINGS {
            assert!(
                seen.insert((b.context, b.key)),
                "{:?} {:?}",
                b.context,
                b.key
            );
        }
    }

    #[test]
    fn what_a_key_does_leaves_room_for_the_next_column_of_the_help() {
        let views = VIEWS.iter().map(|view| view.help);
        for help in BINDINGS.iter().map(|b| b.help).chain(views) {
            assert!(pen::width(help) <= overlay::WORDS, "{help}");
        }
    }

    #[test]
    fn every_action_that_has_keys_is_explained_once_a_context() {
        for b in BINDINGS.iter() {
            let explained = BINDINGS
                .iter()
                .filter(|o| o.context == b.context && o.action == b.action && !o.help.is_empty())
                .count();
            assert_eq!(explained, 1, "{:?}", b.action);
        }
    }

    #[test]
    fn the_context_goes_before_the_rest() {
        let end = KeyEvent::new(Char('c'), KeyModifiers::CONTROL);
        assert_eq!(resolve(end, Timeline), Some(Action::Quit));
        assert_eq!(resolve(end, Prompt), Some(Action::Back));
        let press = |code| KeyEvent::new(code, KeyModifiers::NONE);
        assert_eq!(resolve(press(Char('j')), Timeline), Some(Action::Down));
        assert_eq!(resolve(press(Char('q')), Picker), Some(Action::Quit));
        assert_eq!(resolve(press(Char('f')), List), None);
        let interrupt = KeyEvent::new(Char('c'), KeyModifiers::CONTROL);
        assert_eq!(resolve(interrupt, List), Some(Action::Quit));
    }

    #[test]
    fn the_help_joins_the_keys_of_one_action() {
        let pan = BINDINGS.iter().find(|b| b.action == Action::Pan(-1));
        assert_eq!(pan.map(|b| all_keys(b, false)).as_deref(), Some("h ←"));
    }
}
