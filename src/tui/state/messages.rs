//! What was said: notices, the output of the program, the last error, a word on the last action.

use std::time::Duration;

use super::journal::{Journal, LineKind};
use crate::activity::feed::Failure;
use crate::trace::printable;

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPanel {
    /// In a few words.
    pub title: &'static str,
    /// The whole of it, line by line.
    pub text: String,
}

impl ErrorPanel {
    /// What failed and what would help.
    #[must_use]
    pub fn new(title: &'static str, failure: &Failure) -> Self {
        let lines = |text: &str| {
            let line = |line: &str| printable(&line.replace('\t', "    "));
            text.lines().map(line).collect::<Vec<_>>().join("\n")
        };
        let mut text = lines(&failure.message);
        if !failure.help.is_empty() {
            text.push_str("\n\n");
            text.push_str(&lines(&failure.help));
        }
        ErrorPanel { title, text }
    }
}

/// What was said.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    /// Notices.
    pub log: Journal,
    /// What the watched program printed.
    pub output: Journal,
    /// What went wrong last; lies above the last good run.
    pub error: Option<ErrorPanel>,
    /// A word on the last action, until the next one.
    pub flash: Option<String>,
}

impl Messages {
    /// Another run begins: the notices stay.
    pub(super) fn begin(&mut self) {
        self.error = None;
        self.flash = None;
        self.output = Journal::default();
    }

    pub(in crate::tui) fn printed(&mut self, at: Duration, is_error: bool, line: &str) {
        let kind = if is_error {
            LineKind::Error
        } else {
            LineKind::Plain
        };
        self.output.push(at, kind, line);
    }

    pub(in crate::tui) fn noticed(&mut self, at: Duration, is_warning: bool, text: &str) {
        let kind = if is_warning {
            LineKind::Warning
        } else {
            LineKind::Plain
        };
        self.log.push(at, kind, text);
        if is_warning {
            self.flash = Some(printable(text));
        }
    }
}
