//! The bundled scenarios, a line each: what is on screen before a run.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::list::{Cell, List};
use super::{Request, View};
use crate::trace::printable;
use crate::tui::action::Context;
use crate::tui::state::{Choice, State, Wanted};
use crate::tui::theme::{Role, Theme};

#[derive(Debug, Default)]
pub(super) struct Picker {
    choices: Vec<Choice>,
    list: List,
}

impl Picker {
    /// A picker of these scenarios.
    #[must_use]
    pub(super) fn new(choices: Vec<Choice>) -> Self {
        let heading = "scenarios: enter runs one, then look at its variants with v";
        let mut list = List::new("no scenario is bundled");
        list.heading = vec![Cell::rest(heading, Role::Dim)];
        Picker { choices, list }
    }
}

impl View for Picker {
    fn context(&self) -> Context {
        Context::Picker
    }

    fn prepare(&mut self, _state: &State, area: Rect, _is_on_screen: bool) {
        let longest = self.choices.iter().map(|c| c.name.len()).max();
        let name = longest.unwrap_or(0) as u16;
        self.list.fill(area, self.choices.len(), |i| {
            let choice = &self.choices[i];
            vec![
                Cell::left(&choice.name, name, Role::Accent),
                Cell::rest(printable(&choice.about), Role::Text),
            ]
        });
    }

    fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        self.list.draw(theme, area, buf);
    }

    fn list(&mut self) -> Option<&mut List> {
        Some(&mut self.list)
    }

    fn choose(&mut self, _state: &State) -> Option<Request> {
        let choice = self.choices.get(self.list.cursor)?;
        Some(Request::Start(Wanted::Scenario(choice.name.clone())))
    }
}
