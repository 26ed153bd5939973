//! What lies above the screen: the help and the error of the last start.

use super::offered::is_offered;
use crate::tui::action::{Action, Context};
use crate::tui::draw::panel::{Panel, PanelLine};
use crate::tui::draw::prelude::*;
use crate::tui::keys;
use crate::tui::state::troubles::{Trouble, Weight};
use crate::tui::state::{ErrorPanel, State, Target};
use crate::tui::view::{VIEWS, Views};
use activity::text::counted;
use causes::Group;

/// What lies above the screen because a key asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlay {
    #[default]
    None,
    /// The help, with the cursor on this one of its lines.
    Help { at: usize },
    /// All that is wrong.
    Troubles,
    /// What attaching to a process means.
    Attach(Target),
    /// How the job of a process stands, or all that use CUDA here, from this line on.
    Job { pid: Option<u32>, at: usize },
}

/// The help: the marks of the timeline, then what can be done, by what one wants. What is typed leaves lines that have it.
#[derive(Clone, Debug, Default)]
pub struct HelpText {
    lines: Vec<HelpLine>,
    /// Columns and lines of it on screen.
    columns: usize,
    rows: usize,
}

#[derive(Clone, Debug)]
enum HelpLine {
    Title(&'static str),
    /// A line of the legend.
    Mark(usize),
    Key {
        /// By glyphs of the terminal, and in ASCII.
        keys: [String; 2],
        text: &'static str,
        action: Action,
        is_offered: bool,
    },
}

impl HelpLine {
    /// Whether a key's line has what is typed, or is of just this key.
    fn has(&self, typed: &str) -> bool {
        match self {
            HelpLine::Key { keys, text, .. } => {
                text.to_lowercase().contains(typed) || keys[0].to_lowercase() == typed
            }
            _ => true,
        }
    }
}

/// The lines of the keys for a purpose that count here, the digits of the views among them.
fn key_lines(
    purpose: keys::Purpose,
    is_here: impl Fn(Context) -> bool,
    state: &State,
    views: &Views,
) -> Vec<HelpLine> {
    let line = |keys: [String; 2], text: &'static str, action: Action| HelpLine::Key {
        keys,
        text,
        action,
        is_offered: is_offered(action, state, views),
    };
    let bound = keys::BINDINGS
        .iter()
        .filter(|b| b.purpose == purpose && is_here(b.context) && !b.help.is_empty());
    let mut lines: Vec<HelpLine> = bound
        .map(|b| {
            let keys = [false, true].map(|is_ascii| keys::all_keys(b, is_ascii));
            line(keys, b.help, b.action)
        })
        .collect();
    // A number is a step's.
    let typed = state.prompt.as_ref().map_or("", |it| &it.text);
    let typed = typed.trim_start_matches(':');
    let step = typed.parse::<usize>().ok().and_then(|it| it.checked_sub(1));
    if let (keys::Purpose::Move, Some(at)) = (purpose, step) {
        let keys = [typed.to_owned(), typed.to_owned()];
        lines.insert(0, line(keys, "go to this step", Action::ToStep(at)));
    }
    if purpose == keys::Purpose::Views && !state.model.run.is_none() {
        lines.extend(views.bar(state).zip(1..).map(|(view, number)| {
            let key = number.to_string();
            line([key.clone(), key], VIEWS[view].help, Action::Show(view))
        }));
    }
    lines
}

/// Columns of the screen for a column of the help, and for the keys in it.
const WIDTH: usize = 38;
const KEYS: usize = 9;
/// Columns for what a key does: a space stands before them, and one before the next column.
#[cfg(test)]
pub const WORDS: usize = WIDTH - KEYS - 3;

impl HelpText {
    /// Prepares it for an area.
    pub fn new(state: &State, views: &Views, area: Rect) -> Self {
        let here = match views.on_screen(state).context() {
            Context::Timeline if state.focus.search.is_on() => Context::Found,
            context => context,
        };
        let typed = state.prompt.as_ref().map_or("", |it| &it.text);
        let typed = typed.trim_start_matches(':').to_lowercase();
        let is_here = |of: Context| of == Context::Any || keys::own_contexts(here).contains(&of);
        let mut lines = Vec::new();
        if typed.is_empty() && is_here(Context::Timeline) {
            lines.push(HelpLine::Title("marks and colours"));
            lines.extend((0..MARKS).map(HelpLine::Mark));
        }
        for (purpose, title) in keys::Purpose::ALL {
            let keys = key_lines(purpose, is_here, state, views);
            let found: Vec<HelpLine> = keys.into_iter().filter(|it| it.has(&typed)).collect();
            if !found.is_empty() {
                lines.push(HelpLine::Title(title));
                lines.extend(found);
            }
        }
        let columns = (usize::from(area.width).saturating_sub(4) / WIDTH).clamp(1, 4);
        let rows = usize::from(area.height).saturating_sub(2).max(1);
        HelpText {
            // Where not all fits, pages are turned.
            rows: rows.min(lines.len().div_ceil(columns)).max(1),
            lines,
            columns,
        }
    }

    /// Lines that can be run, as places among all.
    fn keys(&self) -> impl Iterator<Item = usize> {
        let is_key = |at: &usize| matches!(self.lines[*at], HelpLine::Key { .. });
        (0..self.lines.len()).filter(is_key)
    }

    /// The one so many further.
    pub fn step(&self, at: usize, by: isize) -> usize {
        let last = self.keys().count().saturating_sub(1);
        at.saturating_add_signed(by).min(last)
    }

    /// What line `at` of those is about.
    pub fn chosen(&self, at: usize) -> Option<Action> {
        match self.lines[self.keys().nth(at)?] {
            HelpLine::Key { action, .. } => Some(action),
            _ => None,
        }
    }

    /// Draws the page that line `at` is on.
    pub fn draw(&self, at: usize, theme: &Theme, area: Rect, buf: &mut Buffer) {
        let marks = marks(theme);
        let at = self.keys().nth(at);
        let page = self.rows * self.columns;
        let first = at.unwrap_or(0) / page * page;
        let cell = |at_line: usize| -> PanelLine {
            let mut line = match self.lines.get(at_line) {
                None => Vec::new(),
                Some(HelpLine::Title(title)) => vec![((*title).to_owned(), theme.bold(Role::Text))],
                Some(HelpLine::Mark(mark)) => marks[*mark].clone(),
                Some(HelpLine::Key {
                    keys,
                    text,
                    is_offered,
                    ..
                }) => {
                    let (key, words) = match is_offered {
                        true => (theme.bold(Role::Accent), theme.fg(Role::Text)),
                        false => (theme.fg(Role::Dim), theme.fg(Role::Dim)),
                    };
                    let cursor = if at == Some(at_line) { '▸' } else { ' ' };
                    let keys = &keys[usize::from(theme.is_ascii)];
                    vec![
                        (format!("{cursor}{keys:>KEYS$} "), key),
                        ((*text).to_owned(), words),
                    ]
                }
            };
            let used: usize = line.iter().map(|(text, _)| pen::width(text)).sum();
            line.push((" ".repeat(WIDTH.saturating_sub(used)), theme.fg(Role::Text)));
            line
        };
        let row = |row: usize| {
            (0..self.columns)
                .flat_map(|column| cell(first + column * self.rows + row))
                .collect()
        };
        let pages = self.lines.len().div_ceil(page);
        Panel {
            theme,
            title: match pages {
                0 | 1 => "keys".to_owned(),
                n => format!("keys: page {} of {n}", first / page + 1),
            },
            foot: "type to look for it; enter does it; esc closes",
            role: Role::Accent,
            lines: (0..self.rows).map(row).collect(),
        }
        .draw(area, buf);
    }
}

/// Draws all that is wrong, the worst first.
pub fn troubles(troubles: &[Trouble], theme: &Theme, area: Rect, buf: &mut Buffer) {
    let width = usize::from(area.width).saturating_sub(6);
    let mut lines: Vec<PanelLine> = Vec::new();
    for trouble in troubles {
        let (mark, role) = match trouble.weight {
            Weight::Wrong | Weight::Failed => ('✗', Role::Bad),
            Weight::Note => ('·', Role::Text),
        };
        for (i, line) in pen::wrap(&trouble.text, width).into_iter().enumerate() {
            let mark = if i == 0 { mark } else { ' ' };
            lines.push(vec![
                (format!("{mark} "), theme.bold(role)),
                (line, theme.fg(role)),
            ]);
        }
        let pieces = trouble.lines.iter().flat_map(|line| fitted(line, width));
        lines.extend(pieces.map(|piece| vec![(piece, theme.fg(Role::Text))]));
    }
    Panel {
        theme,
        title: "errors, losses, races".to_owned(),
        foot: "any key closes",
        role: Role::Bad,
        lines,
    }
    .draw(area, buf);
}

/// Lines of the legend.
const MARKS: usize = 5 + Group::ALL.len().div_ceil(2);

/// What the marks on the timeline mean.
fn marks(theme: &Theme) -> [PanelLine; MARKS] {
    let (dim, text) = (theme.fg(Role::Dim), theme.fg(Role::Text));
    let words = |text: &str| (text.to_owned(), dim);
    let levels: String = [2, 5, 8].iter().map(|&e| theme.block(e)).collect();
    let level = |role: Role| (format!("{levels} "), theme.fg(role));
    let causes = |pair: usize| {
        let groups = Group::ALL.iter().skip(2 * pair).take(2);
        let cause = |(at, group): (usize, &Group)| {
            let (mark, style) = theme.cause_mark(*group as u8);
            let mark = (format!("{mark} "), style);
            // The first of the two is set apart, however long it is.
            let apart = if at == 0 { " " } else { "" };
            [mark, words(&format!("{:<16}{apart}", group.label()))]
        };
        groups.enumerate().flat_map(cause).collect()
    };
    let first = [
        vec![
            (" H2D 16 MiB 54.9 ".to_owned(), theme.bg(Role::H2D)),
            words(" a copy, its GB/s"),
        ],
        vec![
            words(" "),
            level(Role::Kernel(0)),
            words("share of a cell"),
            words(&format!("   {} longer step", theme.glyph('▴'))),
        ],
        vec![
            (" ‹queued 84 µs› ".to_owned(), text),
            words("gap; launched already"),
        ],
        vec![
            words(" GPU "),
            level(Role::Good),
            words("kernels "),
            level(Role::H2D),
            words("copies alone"),
        ],
        vec![words(" GPU's line above: why it is idle")],
    ];
    let mut marks = first.into_iter().chain((0..).map(causes));
    std::array::from_fn(|_| marks.next().unwrap_or_default())
}

/// A line of a message in so many columns. Diagnostics point at columns: they are cut. Prose and their help are wrapped.
fn fitted(line: &str, width: usize) -> Vec<String> {
    let is_help = line.trim_start().starts_with("= ");
    if !is_help && (line.starts_with(' ') || line.contains(" | ")) {
        vec![pen::cut(line, width)]
    } else {
        pen::wrap(line, width)
    }
}

/// Draws why the last start failed, above the last good run; `foot` says which keys do something about it.
pub fn error(error: &ErrorPanel, foot: &'static str, theme: &Theme, area: Rect, buf: &mut Buffer) {
    let width = usize::from(area.width).saturating_sub(4);
    let mut lines: Vec<PanelLine> = error
        .text
        .lines()
        .flat_map(|line| fitted(line, width))
        .map(|line| {
            let trimmed = line.trim_start();
            let style = if trimmed.starts_with("error") {
                theme.bold(Role::Bad)
            } else if trimmed.starts_with("warning") {
                theme.bold(Role::Warning)
            } else if trimmed.starts_with("help") {
                theme.fg(Role::Good)
            } else {
                theme.fg(Role::Text)
            };
            vec![(line, style)]
        })
        .collect();
    // Between the edges, the last line says how many errors have no room.
    let room = usize::from(area.height).saturating_sub(3);
    if lines.len() > room + 1 {
        let begins = |it: &PanelLine| it[0].0.starts_with("error");
        let more = lines.drain(room..).filter(begins).count();
        let more = match more {
            0 => "…".to_owned(),
            _ => {
                let more = counted(more as u64, "error", "errors");
                format!("… {more} more: `cuptop check FILE` shows all")
            }
        };
        lines.push(vec![(more, theme.fg(Role::Dim))]);
    }
    Panel {
        theme,
        title: error.title.to_owned(),
        foot,
        role: Role::Bad,
        lines,
    }
    .draw(area, buf);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_of_errors_says_how_many_have_no_room() {
        let text = ["error: a key is misspelled\n --> a.toml\n |"; 4].join("\n");
        let error = ErrorPanel {
            title: "it did not run",
            text,
        };
        let shown = |height| {
            let area = Rect::new(0, 0, 80, height);
            let mut buf = Buffer::empty(area);
            super::error(&error, "esc closes", &Theme::default(), area, &mut buf);
            let cells = buf.content().iter();
            cells.map(ratatui::buffer::Cell::symbol).collect::<String>()
        };
        // Of twelve lines seven have room, and the next error begins with the tenth.
        assert!(shown(10).contains("… 1 error more: `cuptop check FILE` shows all"));
        assert!(!shown(14).contains("more"));
    }
}
