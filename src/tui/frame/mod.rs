//! What stands around the view on screen, and what lies above it.

mod attach;
pub mod footer;
mod job;
mod offered;
pub mod overlay;
pub mod tabs;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};

use super::action::{Action, Context};
use super::draw::details::Details;
use super::draw::layout::{Layout, SMALLEST};
use super::draw::verdict::VerdictLine;
use super::draw::{alert, header, pen, pulse};
use super::state::{NOT_ATTACHED, State};
use super::theme::{Role, Theme};
use super::view::{FINDINGS, List, Views};
use footer::Footer;
pub(super) use offered::{is_offered, why_not};
use overlay::{HelpText, Overlay};
use tabs::Tabs;

/// Everything around the view on screen, ready to be drawn.
#[derive(Debug, Default)]
pub struct Frame {
    layout: Layout,
    /// The help, while it is open.
    pub help: HelpText,
    verdict: VerdictLine,
    tabs: Tabs,
    /// What lies above the view.
    overlay: Overlay,
    details: Details,
    footer: Footer,
}

impl Frame {
    pub fn prepare(&mut self, state: &State, views: &Views, here: Context, overlay: Overlay) {
        self.layout = Layout::of(state);
        self.verdict = VerdictLine::new(state);
        self.tabs = Tabs::new(state, views);
        self.overlay = overlay;
        let hints = (overlay == Overlay::None).then_some(here);
        self.footer = Footer::new(state, views, hints);
        if let Overlay::Help { .. } = overlay {
            self.help = HelpText::new(state, views, above(state.size));
        }
        if !state.model.run.is_none() {
            let list = views.list(state);
            self.details.prepare(state, list.and_then(List::details));
        }
    }

    /// Draws it, the view on screen, and what lies above it.
    pub fn draw(
        &self,
        state: &State,
        views: &Views,
        overlay: Overlay,
        theme: &Theme,
        buf: &mut Buffer,
    ) {
        let area = *buf.area();
        if area.width < SMALLEST.width || area.height < SMALLEST.height {
            let text = format!("cuptop needs {}x{}", SMALLEST.width, SMALLEST.height);
            pen::text(buf, area, 0, &text, theme.fg(Role::Text));
            return;
        }
        let layout = &self.layout;
        header::draw(state, theme, layout.header, buf);
        alert::draw(&state.model.troubles, theme, layout.alert, buf);
        self.verdict.draw(theme, layout.verdict, buf);
        pulse::draw(state, theme, layout.pulse, buf);
        let rule = theme.fg(Role::Rule);
        pen::fill(buf, layout.details_rule, '─', rule);
        if state.is_bare {
            pen::fill(buf, layout.rule, '─', rule);
        } else {
            self.tabs.draw(theme, layout.rule, buf);
        }
        views.draw(state, theme, layout.middle(), buf);
        if !state.model.run.is_none() {
            self.details.draw(theme, layout.details, buf);
        }
        if !state.is_bare {
            self.footer.draw(theme, layout.footer, buf);
        }
        let above = above(area.as_size());
        if let Some(error) = &state.messages.error
            && views.shows_error(state)
        {
            // Before a run the error is that of a scenario, or of a process.
            let is_scenario = state.model.run.is_none() || state.model.run.plan.is_some();
            let foot = match (is_scenario, is_offered(Action::Rerun, state, views)) {
                _ if error.title == NOT_ATTACHED => "esc goes back to the list",
                (true, _) => "esc closes · e edits · r tries again",
                (false, true) => "esc closes · r tries again",
                (false, false) => "esc closes",
            };
            overlay::error(error, foot, theme, above, buf);
        }
        match overlay {
            Overlay::None => {}
            Overlay::Help { at } => self.help.draw(at, theme, above, buf),
            Overlay::Troubles => overlay::troubles(&state.model.troubles, theme, above, buf),
            Overlay::Attach(target) => {
                if let Some((gpu, process)) = state.model.target(target) {
                    attach::draw(gpu, process, theme, above, buf);
                }
            }
            Overlay::Job { pid, at } => job::draw(state, (pid, at), theme, above, buf),
        }
    }
}

impl Frame {
    /// What a click on a tab or a variant asks for; nothing for any other action.
    pub fn clicked(&self, action: Action) -> Option<Action> {
        let Action::Click { x, y } = action else {
            return None;
        };
        let line = self.layout.rule;
        if self.overlay != Overlay::None {
            return None;
        }
        if y == self.layout.footer.y {
            return self.footer.hint_at(self.layout.footer.width, x);
        }
        // What it says is laid out among the findings.
        if self.layout.verdict.contains(Position::new(x, y)) {
            return Some(Action::Show(FINDINGS));
        }
        if line.is_empty() || y != line.y {
            return None;
        }
        self.tabs.view_at(line.width, x).map(Action::Show)
    }

    /// What is selected, to be copied: an operation's whole name, a gap or a line of a list in full.
    pub fn copied(&self, views: &Views, state: &State) -> Option<String> {
        if state.model.run.is_none() {
            return None;
        }
        match views.list(state).and_then(|it| it.in_full.clone()) {
            Some(text) => Some(text).filter(|text| !text.is_empty()),
            None => self.details.copied(),
        }
    }
}

/// What overlays lie on: all but the header and the footer.
fn above(size: Size) -> Rect {
    Rect::new(0, 1, size.width, size.height.saturating_sub(2))
}
