//! The line at the foot of the screen while it is typed.

use super::{App, Effect};
use crate::tui::action::Action;
use crate::tui::frame::overlay::Overlay;
use crate::tui::state::prompt::{Asks, Prompt};

impl App {
    pub(super) fn ask_for(&mut self, asks: Asks) {
        self.state.prompt = Some(Prompt::new(asks, String::new()));
    }

    /// Takes what is typed. Returns whether it was for the line.
    pub(super) fn type_in(&mut self, action: Action) -> bool {
        let Some(prompt) = &mut self.state.prompt else {
            return false;
        };
        let asks = prompt.asks;
        // Nobody who came for a look is kept in.
        let is_enough =
            prompt.text.is_empty() && matches!(action, Action::Type('?' | 'q') | Action::Erase);
        if asks == Asks::Help && (is_enough || action == Action::Back) {
            self.overlay = Overlay::None;
            self.state.prompt = None;
            return true;
        }
        match action {
            Action::Type(c) => prompt.push(c),
            Action::Erase if prompt.text.pop().is_none() => {
                self.state.prompt = None;
                return true;
            }
            Action::Erase => {}
            // What was typed stays; where nothing was, what stood before.
            Action::Choose => {
                self.state.prompt = None;
                self.state.focus.search.wants_first =
                    asks == Asks::Search && self.is_search_shown();
                return true;
            }
            Action::Back => {
                self.state.prompt = None;
                self.search_for(asks, "");
                return true;
            }
            _ => return false,
        }
        let text = prompt.text.clone();
        self.search_for(asks, &text);
        true
    }

    /// Takes what is typed of a picture's name, and saves it when that is taken.
    pub(super) fn name_picture(&mut self, action: Action) -> Option<Effect> {
        let prompt = self.state.prompt.clone();
        self.type_in(action);
        let name = prompt.filter(|it| action == Action::Choose && !it.text.is_empty())?;
        Some(Effect::Save(name.text))
    }

    /// Ends the search of the view on screen. Returns whether there was one.
    pub(super) fn end_search(&mut self) -> bool {
        let was_on = match self.views.filter(&self.state) {
            Some(filter) => filter.is_on(),
            None => self.is_search_shown(),
        };
        if was_on {
            self.search_for(Asks::Search, "");
        }
        was_on
    }

    /// Whether the search of the timeline is on and on screen.
    pub(super) fn is_search_shown(&self) -> bool {
        self.views.is_home() && self.state.focus.search.is_on() && !self.is_picking()
    }

    fn search_for(&mut self, asks: Asks, text: &str) {
        match self.views.filter(&self.state) {
            _ if asks == Asks::Picture => {}
            _ if asks == Asks::Help => self.overlay = Overlay::Help { at: 0 },
            _ if asks == Asks::Lanes => self.state.filter_lanes(text),
            Some(filter) => filter.set(text),
            None => self.state.focus.search.set(text),
        }
    }

    /// Goes to the first hit once it is known.
    pub(super) fn go_to_first(&mut self) {
        let search = &self.state.focus.search;
        let is_known = search.found(&self.state.model.run).is_some();
        if search.wants_first && (is_known || !search.is_on()) {
            self.state.focus.search.wants_first = false;
            let before = self.state.spot(self.views.current);
            self.state.step_hit(true);
            if self.state.spot(self.views.current) != before {
                self.state.focus.trail.leave(before);
            }
        }
    }
}
