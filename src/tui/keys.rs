//! Keys as a table of actions. The help and the hints at the foot of the screen are made from it.

use std::sync::LazyLock;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::action::{Action, Context};
use super::view::VIEWS;

/// A key with what it does.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// Where.
    pub context: Context,
    pub key: KeyCode,
    /// What it does.
    pub action: Action,
    /// In words, for the help. Bindings without words are other keys for what stands above them.
    pub help: &'static str,
    /// The word in the hints at the foot of the screen; empty for none.
    pub hint: &'static str,
}

const fn key(
    context: Context,
    key: KeyCode,
    action: Action,
    help: &'static str,
    hint: &'static str,
) -> Binding {
    Binding {
        context,
        key,
        action,
        help,
        hint,
    }
}

use crate::tui::action::Context::{Any, Chart, Found, List, Picker, Prompt, Timeline};
use KeyCode::Char;

/// The keys before those of the views.
const FIRST: &[Binding] = &[
    key(
        Timeline,
        Char('f'),
        Action::Follow,
        "follow the newest data",
        "follow",
    ),
    key(
        Timeline,
        Char(' '),
        Action::Pause,
        "hold the picture, let it go on",
        "pause",
    ),
    key(Timeline, Char('+'), Action::ZoomIn, "zoom in (wheel)", ""),
    key(Timeline, Char('='), Action::ZoomIn, "", ""),
    key(Timeline, Char('-'), Action::ZoomOut, "zoom out (wheel)", ""),
    key(Timeline, Char('h'), Action::PanLeft, "earlier (drag)", ""),
    key(Timeline, KeyCode::Left, Action::PanLeft, "", ""),
    key(Timeline, Char('l'), Action::PanRight, "later (drag)", ""),
    key(Timeline, KeyCode::Right, Action::PanRight, "", ""),
    key(
        Timeline,
        KeyCode::Home,
        Action::PanStart,
        "to the start",
        "",
    ),
    key(Timeline, KeyCode::End, Action::PanEnd, "to the end", ""),
    key(
        Timeline,
        Char('0'),
        Action::Fit,
        "show all; again: operations only",
        "fit",
    ),
    key(Timeline, Char('k'), Action::Up, "lane above (click)", ""),
    key(Timeline, KeyCode::Up, Action::Up, "", ""),
    key(Timeline, Char('j'), Action::Down, "lane below (click)", ""),
    key(Timeline, KeyCode::Down, Action::Down, "", ""),
    key(
        Timeline,
        Char('n'),
        Action::NextOperation,
        "next operation of the lane",
        "next",
    ),
    key(Timeline, Char('w'), Action::NextOperation, "", ""),
    key(
        Timeline,
        Char('p'),
        Action::PreviousOperation,
        "operation before",
        "",
    ),
    key(Timeline, Char('b'), Action::PreviousOperation, "", ""),
    key(
        Timeline,
        Char('g'),
        Action::NextGap,
        "next gap of the GPU or lane",
        "gap",
    ),
    key(Timeline, Char('G'), Action::PreviousGap, "gap before", ""),
    key(
        Timeline,
        Char('L'),
        Action::LongestGap,
        "its longest gap",
        "longest",
    ),
    key(Timeline, Char('/'), Action::Find, "look for a name", "find"),
    key(
        Found,
        Char('n'),
        Action::NextHit,
        "next one of what is looked for",
        "next",
    ),
    key(Found, Char('N'), Action::PreviousHit, "the one before", ""),
    key(
        Prompt,
        KeyCode::Enter,
        Action::Choose,
        "look for it",
        "done",
    ),
    key(
        Prompt,
        KeyCode::Backspace,
        Action::Erase,
        "take it back",
        "",
    ),
    key(Prompt, KeyCode::Esc, Action::Back, "end the search", "end"),
    key(
        Timeline,
        Char('t'),
        Action::OtherEnd,
        "from call to operation, and back",
        "",
    ),
    key(
        Timeline,
        Char('m'),
        Action::Mark,
        "mark, measure (drag on the axis)",
        "mark",
    ),
    key(
        Timeline,
        KeyCode::Enter,
        Action::ZoomToSelection,
        "zoom to what is selected",
        "",
    ),
    key(Timeline, Char('z'), Action::ZoomToSelection, "", ""),
    key(Timeline, Char('H'), Action::HideLane, "hide the row", ""),
    key(
        Timeline,
        Char('P'),
        Action::PinLane,
        "pin the row to the top, or not",
        "",
    ),
    key(
        Timeline,
        Char('F'),
        Action::FoldLanes,
        "fold its group, or unfold it (click)",
        "",
    ),
    key(
        Timeline,
        Char('&'),
        Action::FilterLanes,
        "only lanes with a name",
        "",
    ),
    key(
        Timeline,
        Char('S'),
        Action::ShowLanes,
        "show all lanes again",
        "",
    ),
    key(
        Timeline,
        Char('c'),
        Action::Counters,
        "hardware counters: few, all, none",
        "",
    ),
    key(
        Any,
        Char('v'),
        Action::NextVariant,
        "next variant",
        "variant",
    ),
    key(
        Any,
        Char('V'),
        Action::PreviousVariant,
        "variant before",
        "",
    ),
    key(
        Any,
        Char('>'),
        Action::NextPoint,
        "same variant, next value of the sweep",
        "",
    ),
    key(
        Any,
        Char('<'),
        Action::PreviousPoint,
        "the value of the sweep before",
        "",
    ),
    key(
        Any,
        Char(']'),
        Action::NextPass,
        "next pass of the variant",
        "",
    ),
    key(Any, Char('['), Action::PreviousPass, "pass before", ""),
    key(
        Any,
        Char('a'),
        Action::WholeRun,
        "the whole run, or one pass",
        "",
    ),
    key(List, Char('k'), Action::Up, "line above", ""),
    key(List, KeyCode::Up, Action::Up, "", ""),
    key(List, Char('j'), Action::Down, "line below", ""),
    key(List, KeyCode::Down, Action::Down, "", ""),
    key(
        List,
        KeyCode::Enter,
        Action::Choose,
        "go to it on the timeline",
        "go to",
    ),
    key(
        List,
        Char('/'),
        Action::Find,
        "only lines with a name",
        "find",
    ),
    key(
        List,
        Char('o'),
        Action::Sort,
        "order by the next column",
        "order",
    ),
    key(Chart, Char('o'), Action::Sort, "the next figure", "figure"),
    key(
        Any,
        Char('i'),
        Action::Predict,
        "what a finding would save",
        "predict",
    ),
    key(
        Any,
        Char('u'),
        Action::Return,
        "back to before the last jump",
        "back",
    ),
    key(Any, KeyCode::Backspace, Action::Return, "", ""),
    key(Any, Char('U'), Action::Forward, "forward again", ""),
    key(Any, KeyCode::PageUp, Action::PageUp, "a page up", ""),
    key(Any, KeyCode::PageDown, Action::PageDown, "a page down", ""),
    key(Picker, Char('k'), Action::Up, "the line above", ""),
    key(Picker, KeyCode::Up, Action::Up, "", ""),
    key(Picker, Char('j'), Action::Down, "the line below", ""),
    key(Picker, KeyCode::Down, Action::Down, "", ""),
    key(
        Picker,
        KeyCode::Enter,
        Action::Choose,
        "run it, or show what attaching means",
        "open",
    ),
    key(
        Picker,
        Char('/'),
        Action::Find,
        "only those with a word",
        "filter",
    ),
    key(Picker, KeyCode::Home, Action::First, "the first one", ""),
    key(Picker, KeyCode::End, Action::Last, "the last one", ""),
    key(Picker, Char('G'), Action::Last, "", ""),
    key(List, KeyCode::Home, Action::First, "the first line", ""),
    key(List, KeyCode::End, Action::Last, "the last line", ""),
    key(List, Char('G'), Action::Last, "", ""),
];

/// The keys behind those of the views.
const LAST: &[Binding] = &[
    key(Any, KeyCode::Tab, Action::NextView, "next view", "view"),
    key(
        Any,
        KeyCode::BackTab,
        Action::PreviousView,
        "view before",
        "",
    ),
    key(Any, Char('r'), Action::Rerun, "run again", "rerun"),
    key(Any, Char('x'), Action::Stop, "stop the run", ""),
    key(
        Any,
        Char('e'),
        Action::Edit,
        "edit the scenario in $EDITOR",
        "edit",
    ),
    key(
        Any,
        Char('s'),
        Action::Save,
        "save the screen as SVG and text",
        "save",
    ),
    key(
        Any,
        Char('y'),
        Action::Copy,
        "copy the name or the line",
        "",
    ),
    key(
        Any,
        Char('C'),
        Action::Colors,
        "other colours (light, colour-blind)",
        "",
    ),
    key(
        Any,
        Char('R'),
        Action::Record,
        "recording of a traced program on or off",
        "",
    ),
    key(
        Any,
        Char('K'),
        Action::Keep,
        "keep the recording of a traced program",
        "",
    ),
    key(
        Any,
        Char('W'),
        Action::KeepWindow,
        "keep what it holds of the window in view",
        "",
    ),
    key(
        Any,
        Char('!'),
        Action::Troubles,
        "all that is wrong",
        "wrong",
    ),
    key(Any, Char('?'), Action::Help, "this help", "help"),
    key(
        Any,
        KeyCode::Esc,
        Action::Back,
        "close, or select nothing",
        "",
    ),
    key(Any, Char('q'), Action::Quit, "quit", "quit"),
];

/// Every key, those of the table of views among them.
pub static BINDINGS: LazyLock<Vec<Binding>> = LazyLock::new(|| {
    let views = VIEWS.iter().enumerate().map(|(i, view)| {
        let show = Action::Show(i);
        key(Any, Char(view.key), show, view.help, "")
    });
    let (first, last) = (FIRST.iter().copied(), LAST.iter().copied());
    first.chain(views).chain(last).collect()
});

/// What a key asks for in a context.
#[must_use]
pub fn resolve(event: KeyEvent, context: Context) -> Option<Action> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    if event.modifiers.contains(KeyModifiers::CONTROL) {
        return (event.code == Char('c')).then_some(Action::Quit);
    }
    if context == Prompt {
        // Letters are letters there, and what is no letter and not bound does nothing.
        return bound(Prompt, event.code).or(match event.code {
            Char(c) => Some(Action::Type(c)),
            _ => None,
        });
    }
    let own = own(context).iter();
    let mut actions = own.chain([&Any]).filter_map(|c| bound(*c, event.code));
    actions.next()
}

fn bound(context: Context, key: KeyCode) -> Option<Action> {
    let mut all = BINDINGS.iter();
    all.find(|b| b.context == context && b.key == key)
        .map(|b| b.action)
}

/// The contexts whose keys count in one besides those of [`Context::Any`], the ones that go first first.
#[must_use]
pub fn own(context: Context) -> &'static [Context] {
    match context {
        Any => &[],
        Timeline => &[Timeline],
        Found => &[Found, Timeline],
        List => &[List],
        Chart => &[Chart],
        Picker => &[Picker],
        Prompt => &[Prompt],
    }
}

/// How a key is written in the help: "space", "j ↓".
#[must_use]
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
        KeyCode::Backspace => "backspace".to_owned(),
        other => format!("{other:?}"),
    }
}

/// A line of the help: all keys of one action in a context, and what they do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelpLine {
    pub keys: String,
    /// What they do.
    pub text: &'static str,
}

/// The help for some contexts, in the table's order, without keys that would do nothing now.
#[must_use]
pub fn help(
    contexts: &[Context],
    is_ascii: bool,
    is_offered: impl Fn(Action) -> bool,
) -> Vec<HelpLine> {
    BINDINGS
        .iter()
        .filter(|b| contexts.contains(&b.context) && !b.help.is_empty() && is_offered(b.action))
        .map(|b| {
            let keys: Vec<String> = BINDINGS
                .iter()
                .filter(|other| other.context == b.context && other.action == b.action)
                .map(|other| label(other.key, is_ascii))
                .collect();
            HelpLine {
                keys: keys.join(" "),
                text: b.help,
            }
        })
        .collect()
}

/// What matters most of the hints, the first of which are kept longest; others follow in the table's order.
const FOREMOST: &[Action] = &[
    Action::Choose,
    Action::Sort,
    Action::NextHit,
    Action::NextGap,
    Action::NextVariant,
    Action::NextView,
    Action::Follow,
    Action::LongestGap,
    Action::NextOperation,
    Action::Pause,
    Action::Fit,
    Action::Troubles,
    Action::Find,
];

/// The hints for a context: key and word, the most useful first, help and quit last. In the picker there is
/// no run that others could act on.
pub fn hints(
    context: Context,
    is_offered: impl Fn(Action) -> bool,
) -> impl Iterator<Item = (KeyCode, &'static str)> {
    let is_for = move |b: &Binding| match (b.context, context) {
        (Any, Picker) => matches!(b.action, Action::Help | Action::Quit),
        (Any, Prompt) => false,
        (Any, _) => true,
        (of, Found) if of != Found => of == Timeline && bound(Found, b.key).is_none(),
        (of, _) => of == context,
    };
    let mut hints: Vec<&Binding> = BINDINGS
        .iter()
        .filter(|b| is_for(b) && !b.hint.is_empty() && is_offered(b.action))
        .collect();
    hints.sort_by_key(|b| match b.action {
        Action::Help => usize::MAX - 1,
        Action::Quit => usize::MAX,
        action => FOREMOST
            .iter()
            .position(|a| *a == action)
            .unwrap_or(FOREMOST.len()),
    });
    hints.into_iter().map(|b| (b.key, b.hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_key_means_two_things_in_one_context() {
        let mut seen = HashSet::new();
        for b in BINDINGS.iter() {
            assert!(
                seen.insert((b.context, b.key)),
                "{:?} {:?}",
                b.context,
                b.key
            );
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
        let press = |code| KeyEvent::new(code, KeyModifiers::NONE);
        assert_eq!(resolve(press(Char('j')), Timeline), Some(Action::Down));
        assert_eq!(resolve(press(Char('q')), Picker), Some(Action::Quit));
        assert_eq!(resolve(press(Char('f')), List), None);
        let interrupt = KeyEvent::new(Char('c'), KeyModifiers::CONTROL);
        assert_eq!(resolve(interrupt, List), Some(Action::Quit));
    }

    #[test]
    fn the_help_joins_the_keys_of_one_action() {
        let lines = help(&[Timeline], false, |_| true);
        let pan = lines.iter().find(|l| l.text == "earlier (drag)");
        assert_eq!(pan.map(|l| l.keys.as_str()), Some("h ←"));
    }
}
