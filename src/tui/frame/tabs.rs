//! The views with their keys, on the rule under the header.

use crate::tui::draw::prelude::*;
use crate::tui::state::State;
use crate::tui::view::{VIEWS, Views};

/// The views that have something to show, ready to be drawn.
#[derive(Clone, Debug, Default)]
pub struct Tabs {
    /// View, title, whether it is on screen.
    tabs: Vec<(usize, &'static str, bool)>,
}

impl Tabs {
    pub fn new(state: &State, views: &Views) -> Self {
        if state.model.run.is_none() {
            return Tabs::default();
        }
        let tabs = views.bar(state);
        let tabs = tabs.map(|view| (view, VIEWS[view].title, views.at_bar() == view));
        Tabs {
            tabs: tabs.collect(),
        }
    }

    /// Those that fit, each with its first column and its text.
    fn places(&self, width: u16) -> impl Iterator<Item = (u16, String, bool)> {
        let mut x = 1;
        let tabs = self.tabs.iter().zip(1..);
        let places = tabs.map(move |((_, title, is_current), number)| {
            let (at, text) = (x, format!(" {number}:{title} "));
            x += text.len() as u16 + 1;
            (at, text, *is_current)
        });
        places.take_while(move |(at, text, _)| usize::from(*at) + text.len() <= usize::from(width))
    }

    /// The view whose tab is at column `x` of a line of this width.
    pub fn view_at(&self, width: u16, x: u16) -> Option<usize> {
        let is_at =
            |(at, text, _): &(u16, String, bool)| (*at..at + text.len() as u16).contains(&x);
        let (view, ..) = self.tabs[self.places(width).position(|place| is_at(&place))?];
        Some(view)
    }

    pub fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        pen::fill(buf, area, '─', theme.fg(Role::Rule));
        for (x, text, is_current) in self.places(area.width) {
            let style = if is_current {
                theme.bold(Role::Accent)
            } else {
                theme.fg(Role::Dim)
            };
            pen::text(buf, area, x, &text, style);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tab_is_where_it_is_drawn() {
        let tabs = Tabs {
            tabs: vec![(0, "timeline", true), (2, "findings", false)],
        };
        // "─ 1:timeline ─ 2:findings ──"
        let found: Vec<_> = [0, 1, 12, 13, 14, 25, 26]
            .map(|x| tabs.view_at(28, x))
            .into();
        assert_eq!(
            found,
            [None, Some(0), Some(0), None, Some(2), Some(2), None]
        );
        assert_eq!(tabs.view_at(20, 16), None, "there is no room for it");
    }

    #[test]
    fn what_does_not_fit_is_left_out_whole() {
        let theme = Theme::default();
        let tabs = Tabs {
            tabs: vec![(0, "timeline", true), (1, "operations", false)],
        };
        for (width, expected) in [
            (30, "─ 1:timeline ─ 2:operations ──"),
            (20, "─ 1:timeline ───────"),
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
