//! Lines of words between the rows: titles of groups, and what the colours of GPUs mean.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::draw::pen;
use crate::tui::theme::{Role, Theme};
use analysis::causes::Group;

/// "■ host work 41 %  ■ launching 12 %", as many as there is room for.
pub(super) fn legend(
    theme: &Theme,
    groups: &[(Group, String)],
    gutter: u16,
    line: Rect,
    buf: &mut Buffer,
) {
    let dim = theme.fg(Role::Dim);
    let lead = if groups.is_empty() { "" } else { "idle:" };
    let mut x = pen::text(buf, line, gutter, lead, dim) + 1;
    for (group, words) in groups {
        let text = pen::plain(theme, words);
        if usize::from(x) + pen::width(&text) + 2 > usize::from(line.width) {
            return;
        }
        let cause = *group as u8;
        pen::cell(
            buf,
            line,
            x,
            theme.cause(cause),
            theme.fg(Role::Cause(cause)),
        );
        x = pen::text(buf, line, x + 2, &text, dim) + 2;
    }
}

/// " streams ────"
pub(super) fn title(theme: &Theme, title: &str, line: Rect, buf: &mut Buffer) {
    pen::fill(buf, line, theme.glyph('─'), theme.fg(Role::Rule));
    let label = pen::cut(title, usize::from(line.width).saturating_sub(4));
    let label = format!(" {} ", pen::plain(theme, &label));
    pen::text(buf, line, 0, &label, theme.fg(Role::Dim));
}
