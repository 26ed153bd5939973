//! Which lines of a list are shown: those that have what is looked for.

use crate::tui::state::search::Needle;

/// What lines must have to be shown, and how many do.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    text: String,
    needle: Option<Needle>,
    shown: usize,
    all: usize,
}

impl Filter {
    /// Shows lines with something else; all of them when the text is empty.
    pub fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.needle = Needle::new(text);
    }

    /// Whether lines may be left out.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.needle.is_some()
    }

    /// What was typed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether any of the texts of a line has it.
    #[must_use]
    pub fn lets<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) -> bool {
        let Some(needle) = &self.needle else {
            return true;
        };
        texts.into_iter().any(|text| needle.is_in(text.as_ref()))
    }

    /// Notes how many lines it leaves of all.
    pub fn count(&mut self, shown: usize, all: usize) {
        (self.shown, self.all) = (shown, all);
    }

    /// "3 of 31", or why nothing can be found.
    #[must_use]
    pub fn words(&self) -> String {
        match self.needle.as_ref().and_then(Needle::error) {
            Some(why) => why.to_owned(),
            None => format!("{} of {}", self.shown, self.all),
        }
    }
}
