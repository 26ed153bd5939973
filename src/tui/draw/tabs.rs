//! The views with their keys, on the rule under the header.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use super::pen;
use crate::tui::action::View;
use crate::tui::app::App;
use crate::tui::theme::{Role, Theme};

/// The views that have something to show, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Tabs<'a> {
    theme: &'a Theme,
    /// Key, title, whether it is on screen.
    tabs: Vec<(usize, &'static str, bool)>,
}

impl<'a> Tabs<'a> {
    /// Prepares them.
    #[must_use]
    pub fn new(app: &App, theme: &'a Theme) -> Self {
        let shown = View::ALL
            .into_iter()
            .enumerate()
            .filter(|(_, view)| !app.is_picking() && (app.has(*view) || app.view == *view));
        Tabs {
            theme,
            tabs: shown
                .map(|(i, view)| (i + 1, view.title(), app.view == view))
                .collect(),
        }
    }
}

impl Widget for &Tabs<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        if area.is_empty() {
            return;
        }
        let theme = self.theme;
        pen::fill(buf, area, theme.glyph('─'), theme.fg(Role::Rule));
        let mut x = 1;
        for (key, title, is_current) in &self.tabs {
            let text = format!(" {key} {title} ");
            if usize::from(x) + text.len() > usize::from(area.width) {
                return;
            }
            let style = if *is_current {
                theme.bold(Role::Accent)
            } else {
                theme.fg(Role::Dim)
            };
            x = pen::text(buf, area, x, &text, style) + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out_whole() {
        let theme = Theme::default();
        let tabs = Tabs {
            theme: &theme,
            tabs: vec![(1, "timeline", true), (2, "operations", false)],
        };
        for (width, expected) in [
            (30, "─ 1 timeline ─ 2 operations ──"),
            (20, "─ 1 timeline ───────"),
            (4, "────"),
            (0, ""),
        ] {
            let area = Rect::new(0, 0, width, 1);
            let mut buf = Buffer::empty(area);
            (&tabs).render(area, &mut buf);
            let text: String = buf.content().iter().map(|c| c.symbol()).collect();
            assert_eq!(text, expected);
        }
    }
}
