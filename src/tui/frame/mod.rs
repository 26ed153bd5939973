//! What stands around the view on screen, and what lies above it.

pub mod footer;
pub mod overlay;
pub mod tabs;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::action::Context;
use super::draw::details::Details;
use super::draw::header::Header;
use super::draw::layout::{Layout, SMALLEST};
use super::draw::pen;
use super::draw::verdict::VerdictLine;
use super::state::State;
use super::theme::{Role, Theme};
use super::view::Views;
use footer::Footer;
use tabs::Tabs;

/// Everything around the view on screen, ready to be drawn.
#[derive(Debug, Default)]
pub struct Frame {
    layout: Layout,
    header: Header,
    verdict: VerdictLine,
    tabs: Tabs,
    details: Details,
    footer: Footer,
}

impl Frame {
    pub fn prepare(&mut self, state: &State, views: &Views, is_help_open: bool) {
        self.layout = Layout::new(state.size);
        self.header = Header::new(state);
        self.verdict = VerdictLine::new(state);
        self.tabs = Tabs::new(state, views);
        self.footer = Footer::new(state, views, is_help_open);
        if !state.run.is_none() {
            let in_full = views.on_screen(state).in_full();
            self.details.prepare(state, in_full);
        }
    }

    /// Draws it, the view on screen, and what lies above it.
    pub fn draw(
        &self,
        state: &State,
        views: &Views,
        is_help_open: bool,
        theme: &Theme,
        buf: &mut Buffer,
    ) {
        let area = *buf.area();
        if area.width < SMALLEST.width || area.height < SMALLEST.height {
            pen::text(buf, area, 0, "cuptop: too small", theme.fg(Role::Text));
            return;
        }
        let layout = &self.layout;
        self.header.draw(theme, layout.header, buf);
        self.verdict.draw(theme, layout.verdict, buf);
        self.tabs.draw(theme, layout.rule, buf);
        rule(theme, layout.details_rule, buf);
        let view = views.on_screen(state);
        view.draw(theme, layout.middle(), buf);
        if !state.run.is_none() {
            self.details.draw(theme, layout.details, buf);
        }
        self.footer.draw(theme, layout.footer, buf);
        let above = Rect::new(
            0,
            layout.header.bottom(),
            area.width,
            area.height.saturating_sub(2),
        );
        if let Some(error) = &state.messages.error
            && view.context() != Context::List
        {
            overlay::error(error, theme, above, buf);
        }
        if is_help_open {
            overlay::help(view.context(), theme, above, buf);
        }
    }
}

fn rule(theme: &Theme, area: Rect, buf: &mut Buffer) {
    if area.height > 0 {
        pen::fill(buf, area, theme.glyph('─'), theme.fg(Role::Rule));
    }
}
