//! A line that is being typed at the foot of the screen.

/// What the line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// What to look for: on the timeline it is lit, in lists it leaves the lines that have it.
    Search,
    /// Which lanes to show, by name.
    Lanes,
    /// Which lines of the help.
    Help,
    /// What to call a picture of the screen.
    Picture,
}

/// The line so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    pub asks: Asks,
    pub text: String,
}

/// The most that can be typed, in characters: longer than any name that is typed by hand.
const LONGEST: usize = 200;

impl Prompt {
    pub fn new(asks: Asks, text: String) -> Self {
        Prompt { asks, text }
    }

    /// What stands before the text.
    pub fn sign(&self) -> &'static str {
        match self.asks {
            Asks::Search => "/",
            Asks::Lanes => "&",
            Asks::Help => "?",
            Asks::Picture => "save as ",
        }
    }

    pub fn push(&mut self, c: char) {
        if !activity::text::is_unprintable(c) && self.text.chars().count() < LONGEST {
            self.text.push(c);
        }
    }
}
