//! What lies above the screen: the help and the error of the last start.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use crate::tui::action::Context;
use crate::tui::draw::panel::{Panel, PanelLine};
use crate::tui::draw::pen;
use crate::tui::keys::{self, HelpLine};
use crate::tui::state::ErrorPanel;
use crate::tui::theme::{Role, Theme};

/// Draws the help, made from the table of keys, in one column or two.
pub fn help(here: Context, theme: &Theme, area: Rect, buf: &mut Buffer) {
    let first = keys::help(&[here], theme.is_ascii);
    let second = keys::help(&[Context::Any], theme.is_ascii);
    let is_wide = area.width >= 72;
    let mut lines: Vec<PanelLine> = Vec::new();
    if is_wide {
        let count = first.len().max(second.len());
        for i in 0..count {
            let mut line = help_line(theme, first.get(i));
            line.extend(help_line(theme, second.get(i)));
            lines.push(line);
        }
    } else {
        lines.extend(first.iter().map(|l| help_line(theme, Some(l))));
        lines.extend(second.iter().map(|l| help_line(theme, Some(l))));
    }
    lines.push(Vec::new());
    lines.extend(legend(theme, here));
    let panel = Panel {
        theme,
        title: "keys".to_owned(),
        foot: "any key closes",
        role: Role::Accent,
        lines,
        is_on_top: false,
    };
    (&panel).render(area, buf);
}

fn help_line(theme: &Theme, line: Option<&HelpLine>) -> PanelLine {
    let (keys, text) = line.map_or(("", ""), |l| (l.keys.as_str(), l.text));
    vec![
        (format!("{keys:>10} "), theme.bold(Role::Accent)),
        (format!("{text:<31}"), theme.fg(Role::Text)),
    ]
}

/// What the marks on the timeline mean.
fn legend(theme: &Theme, context: Context) -> Vec<PanelLine> {
    if context != Context::Timeline {
        return Vec::new();
    }
    let (left, right) = theme.edges();
    let (open, close) = theme.gap_marks();
    let dim = theme.fg(Role::Dim);
    let entry = |role: Role, text: &str| {
        vec![
            (left.to_string(), theme.fg(role)),
            (text.to_owned(), theme.on(role)),
            (format!("{right} "), theme.fg(role)),
        ]
    };
    let mut first = vec![("  ".to_owned(), dim)];
    first.extend(entry(Role::H2D, "H2D 16 MiB 54.9"));
    first.push(("a copy, its size and GB/s   ".to_owned(), dim));
    first.extend(entry(Role::Kernel(0), "kernel"));
    let levels: String = [2, 5, 8].iter().map(|&e| theme.block(e)).collect();
    let second = vec![
        (format!("  {levels} "), theme.fg(Role::Kernel(0))),
        (
            "many operations in a column: the height is the time they ran".to_owned(),
            dim,
        ),
    ];
    let third = vec![
        (
            format!("  {open}queued 84 µs{close} "),
            theme.fg(Role::Text),
        ),
        (
            "a gap; launched already, or idle: not launched yet".to_owned(),
            dim,
        ),
    ];
    vec![first, second, third]
}

/// Draws why the last start failed, above the last good run.
pub fn error(error: &ErrorPanel, theme: &Theme, area: Rect, buf: &mut Buffer) {
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
        foot: "esc closes · e edits · r tries again",
        role: Role::Bad,
        lines,
        is_on_top: true,
    };
    (&panel).render(area, buf);
}
