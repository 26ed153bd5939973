//! The views with their keys, on the rule under the header.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::draw::pen;
use crate::tui::state::State;
use crate::tui::theme::{Role, Theme};
use crate::tui::view::{VIEWS, Views};

/// The views that have something to show, ready to be drawn.
#[derive(Clone, Debug, Default)]
pub struct Tabs {
    /// Key, title, whether it is on screen.
    tabs: Vec<(char, &'static str, bool)>,
}

impl Tabs {
    /// Prepares them.
    #[must_use]
    pub fn new(state: &State, views: &Views) -> Self {
        if state.run.is_none() {
            return Tabs::default();
        }
        let tabs = VIEWS.iter().enumerate().filter_map(|(i, entry)| {
            let is_current = views.current() == i;
            let is_shown = is_current || views.has_content(i, state);
            is_shown.then_some((entry.key, entry.title, is_current))
        });
        Tabs {
            tabs: tabs.collect(),
        }
    }

    /// Draws them.
    pub fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        if area.is_empty() {
            return;
        }
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
            tabs: vec![('1', "timeline", true), ('2', "operations", false)],
        };
        for (width, expected) in [
            (30, "─ 1 timeline ─ 2 operations ──"),
            (20, "─ 1 timeline ───────"),
            (4, "────"),
            (0, ""),
        ] {
            let area = Rect::new(0, 0, width, 1);
            let mut buf = Buffer::empty(area);
            tabs.draw(&theme, area, &mut buf);
            let text: String = buf.content().iter().map(|c| c.symbol()).collect();
            assert_eq!(text, expected);
        }
    }
}
