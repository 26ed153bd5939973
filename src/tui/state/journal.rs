//! Lines that came one after another: notices, or what a program printed.

use std::collections::VecDeque;
use std::time::Duration;

/// Lines that are kept; older ones are counted and let go.
const KEPT: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Something to know, or the program's stdout.
    Plain,
    /// Something that limits what is shown.
    Warning,
    /// An error, or the program's stderr.
    Error,
}

/// A line, fit to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When, since the run began.
    pub at: Duration,
    pub kind: LineKind,
    /// Whether the watched program printed it.
    pub is_printed: bool,
    /// The text, without control characters.
    pub text: String,
}

/// The latest lines.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// Those that are kept, oldest first.
    pub lines: VecDeque<LogLine>,
    /// Older ones that were let go.
    pub dropped: u64,
}

impl Journal {
    pub fn push(&mut self, at: Duration, kind: LineKind, text: &str) {
        self.add(at, kind, text, false);
    }

    /// The same, where the watched program may have printed it: of these the oldest is let go first.
    pub fn add(&mut self, at: Duration, kind: LineKind, text: &str, is_printed: bool) {
        if self.lines.len() == KEPT {
            let oldest = self.lines.iter().position(|line| line.is_printed);
            self.lines.remove(oldest.unwrap_or(0));
            self.dropped += 1;
        }
        let text = activity::text::printable(&text.replace('\t', "    "));
        self.lines.push_back(LogLine {
            at,
            kind,
            is_printed,
            text,
        });
    }

    /// What the watched program printed, the latest first.
    pub fn printed(&self) -> impl Iterator<Item = &LogLine> {
        self.lines.iter().rev().filter(|line| line.is_printed)
    }

    /// Lines of this kind among those kept.
    pub fn count(&self, kind: LineKind) -> usize {
        self.lines.iter().filter(|l| l.kind == kind).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_lines_are_counted_and_nothing_is_obeyed() {
        let mut journal = Journal::default();
        journal.push(Duration::ZERO, LineKind::Plain, "a notice\u{1b}[2J");
        for i in 0..KEPT + 2 {
            journal.add(
                Duration::ZERO,
                LineKind::Plain,
                &format!("{i}\u{1b}[2J"),
                true,
            );
        }
        assert_eq!((journal.lines.len(), journal.dropped), (KEPT, 3));
        assert!(journal.lines[0].text.starts_with("a notice"));
        assert!(journal.lines[1].text.starts_with('3'));
        assert!(!journal.lines[0].text.contains('\u{1b}'));
    }
}
