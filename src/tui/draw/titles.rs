//! Lines of words between the rows: titles of groups, and what the colours of GPUs mean.

use crate::tui::draw::prelude::*;

/// "■ kernels 29 %  ■ copies alone 6 %  idle: c CPU work 51 %", as many as there is room for. What
/// has the role of text has no mark.
pub fn legend(theme: &Theme, parts: &[(Role, String)], gutter: u16, line: Rect, buf: &mut Buffer) {
    let dim = theme.fg(Role::Dim);
    let (mut x, mut is_idle) = (gutter, false);
    for (role, words) in parts {
        let (mark, lead) = match *role {
            Role::Cause(cause) => (
                Some(theme.cause_mark(cause)),
                if is_idle { "" } else { "idle: " },
            ),
            Role::Text => (None, ""),
            // Without colours the row shows both parts alike.
            role => (theme.has_grounds().then(|| ('■', theme.fg(role))), ""),
        };
        let needed = pen::width(words) + lead.len() + 2;
        if usize::from(x) + needed > usize::from(line.width) {
            return;
        }
        is_idle |= matches!(role, Role::Cause(_));
        x = pen::text(buf, line, x, lead, dim);
        if let Some((mark, style)) = mark {
            pen::cell(buf, line, x, mark, style);
            x += 2;
        }
        x = pen::text(buf, line, x, words, dim) + 2;
    }
}

/// " streams ────"
pub fn title(theme: &Theme, title: &str, line: Rect, buf: &mut Buffer) {
    pen::fill(buf, line, '─', theme.fg(Role::Rule));
    let label = pen::cut(title, usize::from(line.width).saturating_sub(4));
    pen::text(buf, line, 0, &format!(" {label} "), theme.fg(Role::Dim));
}

/// " name ─ figures ────"
pub fn heading(theme: &Theme, name: &str, figures: &str, line: Rect, buf: &mut Buffer) {
    let (room, rule) = (usize::from(line.width), theme.fg(Role::Rule));
    let figures = pen::cut(figures, room.saturating_sub(12));
    let name = pen::cut(name, room.saturating_sub(pen::width(&figures) + 8));
    let mut x = pen::text(buf, line, 0, &format!(" {name} "), theme.bold(Role::Text));
    if !figures.is_empty() {
        pen::cell(buf, line, x, '─', rule);
        let text = format!(" {figures} ");
        x = pen::text(buf, line, x + 1, &text, theme.fg(Role::Dim));
    }
    (x..line.width).for_each(|x| pen::cell(buf, line, x, '─', rule));
}
