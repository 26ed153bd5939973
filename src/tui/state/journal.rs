//! Lines that came one after another: notices, or what a program printed.

use chrono::NaiveTime;
use std::collections::VecDeque;

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

/// Where a line comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineFrom {
    /// It was noticed.
    Cuptop,
    /// It was said of what was started, and goes with that.
    Start,
    /// The watched program printed it.
    Program,
}

/// A line, fit to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The time of day.
    pub at: NaiveTime,
    pub kind: LineKind,
    pub from: LineFrom,
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
    /// Tells the time of day; without it all is said at midnight.
    pub clock: Option<fn() -> NaiveTime>,
}

impl Journal {
    pub fn push(&mut self, kind: LineKind, text: &str) {
        self.add(LineFrom::Cuptop, kind, text);
    }

    /// The same of any line. Of what the program printed the oldest is let go first.
    pub fn add(&mut self, from: LineFrom, kind: LineKind, text: &str) {
        if self.lines.len() == KEPT {
            let is_printed = |line: &LogLine| line.from == LineFrom::Program;
            let oldest = self.lines.iter().position(is_printed);
            self.lines.remove(oldest.unwrap_or(0));
            self.dropped += 1;
        }
        let text = activity::text::printable(&text.replace('\t', "    "));
        self.lines.push_back(LogLine {
            at: self.clock.map_or(NaiveTime::MIN, |clock| clock()),
            kind,
            from,
            text,
        });
    }

    /// What the watched program printed, the latest first.
    pub fn printed(&self) -> impl Iterator<Item = &LogLine> {
        let lines = self.lines.iter().rev();
        lines.filter(|line| line.from == LineFrom::Program)
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
        journal.push(LineKind::Plain, "a notice\u{1b}[2J");
        for i in 0..KEPT + 2 {
            let text = format!("{i}\u{1b}[2J");
            journal.add(LineFrom::Program, LineKind::Plain, &text);
        }
        assert_eq!((journal.lines.len(), journal.dropped), (KEPT, 3));
        assert!(journal.lines[0].text.starts_with("a notice"));
        assert!(journal.lines[1].text.starts_with('3'));
        assert!(!journal.lines[0].text.contains('\u{1b}'));
    }
}
