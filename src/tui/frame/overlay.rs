//! What lies above the screen: the help and the error of the last start.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use crate::tui::action::{Action, Context};
use crate::tui::draw::panel::{Panel, PanelLine};
use crate::tui::draw::pen;
use crate::tui::keys::{self, HelpLine};
use crate::tui::state::troubles::{Trouble, Weight};
use crate::tui::state::{ErrorPanel, Target};
use crate::tui::theme::{Role, Theme};
use analysis::causes::Group;

/// What lies above the screen because a key asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlay {
    #[default]
    None,
    /// The help, from this line on.
    Help { first: usize },
    /// All that is wrong.
    Troubles,
    /// What attaching to a process means.
    Attach(Target),
}

/// The help, made from the table of keys, in one column or two.
#[derive(Clone, Debug, Default)]
pub struct HelpText {
    here: Context,
    /// Keys and words, side by side where there is room; by glyphs of the terminal and in ASCII.
    lines: [Vec<[Option<HelpLine>; 2]>; 2],
    /// Columns of the words of either side.
    words: [usize; 2],
}

/// Columns of the keys of a line.
const KEYS: usize = 11;

impl HelpText {
    /// Prepares it for an area.
    #[must_use]
    pub fn new(here: Context, area: Rect, is_offered: impl Fn(Action) -> bool) -> Self {
        let mut words = [0, 0];
        let lines = [false, true].map(|is_ascii| {
            let of = |contexts: &[Context]| keys::help(contexts, is_ascii, &is_offered);
            let (first, second) = (of(keys::own(here)), of(&[Context::Any]));
            let longest = |lines: &[HelpLine]| {
                lines.iter().map(|l| pen::width(l.text)).max().unwrap_or(0) + 2
            };
            words = [longest(&first), longest(&second)];
            let needed = 2 * KEYS + words[0] + words[1] + 4;
            if needed <= usize::from(area.width) {
                let count = first.len().max(second.len());
                let side = |lines: &[HelpLine], i: usize| lines.get(i).cloned();
                return (0..count)
                    .map(|i| [side(&first, i), side(&second, i)])
                    .collect();
            }
            let all = first.into_iter().chain(second);
            all.map(|line| [Some(line), None]).collect()
        });
        HelpText { here, lines, words }
    }

    fn count(&self) -> usize {
        self.lines[0].len() + 1 + legend(&Theme::default(), self.here).len()
    }

    /// Lines that there is no room for.
    #[must_use]
    pub fn rest(&self, area: Rect) -> usize {
        let visible = usize::from(area.height.saturating_sub(2));
        self.count().saturating_sub(visible)
    }

    /// Draws it from line `first` on.
    pub fn draw(&self, first: usize, theme: &Theme, area: Rect, buf: &mut Buffer) {
        let keys = &self.lines[usize::from(theme.is_ascii)];
        let mut lines: Vec<PanelLine> = keys
            .iter()
            .map(|sides| {
                let both = sides.iter().zip(self.words);
                both.flat_map(|(line, words)| help_line(theme, line.as_ref(), words))
                    .collect()
            })
            .collect();
        lines.push(Vec::new());
        lines.extend(legend(theme, self.here));
        let rest = self.rest(area);
        let panel = Panel {
            theme,
            title: "keys".to_owned(),
            foot: if rest > 0 {
                "j k scrolls, any other key closes"
            } else {
                "any key closes"
            },
            role: Role::Accent,
            lines: lines.split_off(first.min(rest)),
            is_on_top: false,
        };
        (&panel).render(area, buf);
    }
}

fn help_line(theme: &Theme, line: Option<&HelpLine>, words: usize) -> PanelLine {
    let Some(line) = line else {
        return vec![(" ".repeat(KEYS + words), theme.fg(Role::Text))];
    };
    let (keys, text) = (&line.keys, line.text);
    vec![
        (format!("{keys:>10} "), theme.bold(Role::Accent)),
        (format!("{text:<words$}"), theme.fg(Role::Text)),
    ]
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
            let mark = if i == 0 { theme.glyph(mark) } else { ' ' };
            lines.push(vec![
                (format!("{mark} "), theme.bold(role)),
                (line, theme.fg(role)),
            ]);
        }
    }
    let panel = Panel {
        theme,
        title: "what is wrong".to_owned(),
        foot: "any key closes",
        role: Role::Bad,
        lines,
        is_on_top: true,
    };
    (&panel).render(area, buf);
}

/// What the marks on the timeline mean.
fn legend(theme: &Theme, context: Context) -> Vec<PanelLine> {
    if !keys::own(context).contains(&Context::Timeline) {
        return Vec::new();
    }
    let (open, close) = theme.gap_marks();
    let (dim, text) = (theme.fg(Role::Dim), theme.fg(Role::Text));
    let on = |role: Role, text: &str| (text.to_owned(), theme.on(role));
    let words = |text: &str| (text.to_owned(), dim);
    let levels: String = [2, 5, 8].iter().map(|&e| theme.block(e)).collect();
    let mut lines = vec![
        vec![
            words("  "),
            on(Role::H2D, " H2D 16 MiB 54.9 "),
            words(" a copy, its size and GB/s  "),
            on(Role::Kernel(0), " kernel "),
        ],
        vec![
            (format!("  {levels} "), theme.fg(Role::Kernel(0))),
            words("many operations in a column: the height is the time they ran"),
        ],
        vec![
            (format!("  {open}queued 84 µs{close} "), text),
            words("a gap; launched already, or idle: not launched yet"),
        ],
        vec![
            ("  GPU ".to_owned(), text),
            (format!("{levels} "), theme.fg(Role::Good)),
            words("kernels, "),
            (format!("{levels} "), theme.fg(Role::H2D)),
            words("copies alone; behind them why it is idle:"),
        ],
    ];
    for pair in Group::ALL.chunks(4) {
        let mut line = vec![words("    ")];
        for group in pair {
            let role = Role::Cause(*group as u8);
            line.push((format!("{} ", theme.cause(*group as u8)), theme.fg(role)));
            line.push(words(&format!("{:<19}", group.label())));
        }
        lines.push(line);
    }
    lines
}

/// Draws why the last start failed, above the last good run; `foot` says which keys do something about it.
pub fn error(error: &ErrorPanel, foot: &'static str, theme: &Theme, area: Rect, buf: &mut Buffer) {
    let width = usize::from(area.width).saturating_sub(4);
    let lines: Vec<PanelLine> = error
        .text
        .lines()
        .flat_map(|line| {
            // Diagnostics point at columns: they are cut, never wrapped. Prose is wrapped.
            if line.starts_with(' ') || line.contains(" | ") {
                vec![pen::cut(line, width)]
            } else {
                pen::wrap(line, width)
            }
        })
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
    let panel = Panel {
        theme,
        title: error.title.to_owned(),
        foot,
        role: Role::Bad,
        lines,
        is_on_top: true,
    };
    (&panel).render(area, buf);
}
