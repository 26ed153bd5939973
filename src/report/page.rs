//! Lines of text of a width, coloured where that is wanted.

use super::table::{Column, Table};
use activity::text::wrap;

/// How to write a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Columns of the terminal or the page.
    pub width: usize,
    /// Whether to use ANSI colours.
    pub color: bool,
    /// Rows of each table.
    pub rows: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            width: 100,
            color: false,
            rows: 10,
        }
    }
}

/// What is written, and how.
pub(super) struct Page {
    pub(super) out: String,
    pub(super) width: usize,
    pub(super) rows: usize,
    color: bool,
}

/// What a piece of text means.
#[derive(Clone, Copy)]
pub(super) enum Tone {
    Title,
    Good,
    Warn,
    Bad,
    Dim,
}

impl Page {
    pub(super) fn new(options: &Options) -> Self {
        Page {
            out: String::new(),
            width: options.width.max(40),
            rows: options.rows,
            color: options.color,
        }
    }

    /// A text in as many lines as it takes, set in.
    pub(super) fn wrapped(&mut self, text: &str) {
        for line in wrap(text, self.width - 2) {
            self.line(&format!("  {line}"));
        }
    }

    /// The same in one tone.
    pub(super) fn painted(&mut self, tone: Tone, text: &str) {
        for line in wrap(text, self.width - 2) {
            let painted = self.paint(tone, &line);
            self.line(&format!("  {painted}"));
        }
    }

    pub(super) fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    pub(super) fn paint(&self, tone: Tone, text: &str) -> String {
        if !self.color {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Title => "1",
            Tone::Good => "32",
            Tone::Warn => "33",
            Tone::Bad => "31;1",
            Tone::Dim => "2",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    pub(super) fn title(&mut self, text: &str) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        let painted = self.paint(Tone::Title, text);
        self.line(&painted);
    }

    pub(super) fn table(&mut self, table: &Table) {
        for (i, line) in table.lines(self.width).iter().enumerate() {
            if i == 0 {
                let dim = self.paint(Tone::Dim, line);
                self.line(&dim);
            } else {
                self.line(line);
            }
        }
    }

    /// The first of these rows, and how many more there are.
    pub(super) fn rows<R>(
        &mut self,
        columns: &[Column<R>],
        rows: impl ExactSizeIterator<Item = R>,
    ) {
        let left = rows.len().saturating_sub(self.rows);
        self.table(&Table::with(columns, rows.take(self.rows)));
        if left > 0 {
            self.line(&format!("  … and {left} more"));
        }
    }
}
