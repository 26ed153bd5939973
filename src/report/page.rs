//! Lines of text of a width, coloured where that is wanted.

use std::path::Path;

use super::table::{Column, Table, cell};
use activity::text::{printable, wrap};
use clap::ValueEnum;

/// Parts of a report that can be asked for by name, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Section {
    /// Figures of a run's variants.
    Variants,
    /// What a scenario expects.
    Expectations,
    /// What each GPU did, and why it was idle.
    Gpus,
    /// Counters and sensors.
    Hardware,
    /// A job's ranks.
    Ranks,
    /// Source lines that GPUs waited for.
    Lines,
    /// Steps of the program.
    Steps,
    /// Kernels by name.
    Kernels,
    /// What could be better.
    Findings,
    /// CUDA calls by name.
    Calls,
}

impl Section {
    /// Its bit in [`Parts::Only`].
    pub fn bit(self) -> u16 {
        1 << self as u16
    }

    /// As the command line names it.
    pub(super) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |it| it.get_name().to_owned())
    }
}

/// How much of a report is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parts {
    /// One screen: the verdict, the table that matters, the first findings.
    Summary,
    #[default]
    All,
    /// These sections, a bit each.
    Only(u16),
}

/// How to write a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Columns of the terminal or the page.
    pub width: usize,
    /// Whether to use ANSI colours.
    pub color: bool,
    /// Rows of each table.
    pub rows: usize,
    /// Which sections.
    pub parts: Parts,
    /// Whether as Markdown.
    pub markdown: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            width: 100,
            color: false,
            rows: 10,
            parts: Parts::All,
            markdown: false,
        }
    }
}

/// What is written, and how.
pub(super) struct Page {
    pub(super) out: String,
    pub(super) width: usize,
    pub(super) rows: usize,
    pub(super) is_brief: bool,
    markdown: bool,
    color: bool,
}

/// Rows of a table, findings and lines of a list where the report has one screen.
const BRIEF_ROWS: usize = 5;

/// What a piece of text means.
#[derive(Clone, Copy)]
pub(super) enum Tone {
    Plain,
    Title,
    Good,
    Warn,
    Bad,
    Dim,
}

impl Page {
    pub(super) fn new(options: &Options) -> Self {
        let is_brief = options.parts == Parts::Summary;
        let most = if is_brief { BRIEF_ROWS } else { usize::MAX };
        Page {
            out: String::new(),
            width: options.width.max(40),
            rows: options.rows.min(most),
            is_brief,
            markdown: options.markdown,
            color: options.color && !options.markdown,
        }
    }

    /// So many where the report has one screen, else all.
    pub(super) fn most(&self, brief: usize) -> usize {
        if self.is_brief { brief } else { usize::MAX }
    }

    /// A text in as many lines as it takes, set in.
    pub(super) fn wrapped(&mut self, text: &str) {
        self.painted(Tone::Plain, text);
    }

    /// The same in one tone.
    pub(super) fn painted(&mut self, tone: Tone, text: &str) {
        if self.markdown {
            let bold = if matches!(tone, Tone::Title | Tone::Bad) {
                "**"
            } else {
                ""
            };
            return self.line(&format!("- {bold}{}{bold}", cell(text)));
        }
        for line in wrap(text, self.width - 2) {
            let painted = self.paint(tone, &line);
            self.line(&format!("  {painted}"));
        }
    }

    /// The first line of all.
    pub(super) fn lead(&mut self, tone: Tone, text: &str) {
        match self.markdown {
            true => self.line(&format!("**{}**\n", cell(text))),
            false => self.line(&self.paint(tone, text)),
        }
    }

    /// The last line of all.
    pub(super) fn closing(&mut self, text: &str) {
        self.out.push('\n');
        self.painted(Tone::Dim, text);
    }

    /// The kind and the path of a source. A path is not broken: it is there to be copied.
    pub(super) fn source(&mut self, kind: &str, path: Option<&Path>) {
        let path = path.map_or_else(String::new, |it| {
            format!(" · {}", printable(&it.display().to_string()))
        });
        match self.markdown {
            true => self.wrapped(&format!("{kind}{path}")),
            false => self.line(&format!("  {kind}{path}")),
        }
    }

    /// A text behind a mark, and what stands under it.
    pub(super) fn item(&mut self, (tone, mark): (Tone, &str), texts: &[&str]) {
        let room = self.width - 2 - mark.chars().count() - 1;
        for (at, text) in texts.iter().enumerate().filter(|it| !it.1.is_empty()) {
            if self.markdown {
                let lead = if at == 0 {
                    format!("- {} ", cell(mark))
                } else {
                    "  ".to_owned()
                };
                self.line(&format!("{lead}{}", cell(text)));
                continue;
            }
            for (line, words) in wrap(text, room).iter().enumerate() {
                let lead = match (at, line) {
                    (0, 0) => self.paint(tone, mark),
                    _ => " ".repeat(mark.chars().count()),
                };
                self.line(&format!("  {lead} {words}"));
            }
        }
    }

    /// The whole page. As Markdown it fits a comment of GitHub, which takes 65,536 characters.
    pub(super) fn finish(mut self) -> String {
        const POSTED_MAX: usize = 60_000;
        if self.markdown && self.out.len() > POSTED_MAX {
            let mut lines = self.out.as_bytes()[..POSTED_MAX].iter();
            self.out
                .truncate(lines.rposition(|it| *it == b'\n').map_or(0, |at| at + 1));
            self.out += "\n… the rest would be too long for a comment.\n";
        }
        self.out
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn paint(&self, tone: Tone, text: &str) -> String {
        if !self.color {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Title => "1",
            Tone::Good => "32",
            Tone::Warn => "33",
            Tone::Bad => "31;1",
            Tone::Dim => "2",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    pub(super) fn title(&mut self, text: &str) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
        match self.markdown {
            true => self.line(&format!("### {}\n", cell(text))),
            false => self.line(&self.paint(Tone::Title, text)),
        }
    }

    pub(super) fn table(&mut self, table: &Table) {
        if self.markdown {
            if !self.out.ends_with("\n\n") {
                self.out.push('\n');
            }
            self.out += &table.markdown();
            return self.out.push('\n');
        }
        for (i, line) in table.lines(self.width).iter().enumerate() {
            if i == 0 {
                let dim = self.paint(Tone::Dim, line);
                self.line(&dim);
            } else {
                self.line(line);
            }
        }
    }

    /// A table of these rows, each of as many cells as there are headings.
    pub(super) fn cells<const N: usize>(
        &mut self,
        header: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) {
        let mut table = Table::new(header);
        rows.into_iter().for_each(|row| table.row(row));
        self.table(&table);
    }

    /// The first of these rows, and how many more there are.
    pub(super) fn rows<R>(
        &mut self,
        columns: &[Column<R>],
        rows: impl ExactSizeIterator<Item = R>,
    ) {
        let left = rows.len().saturating_sub(self.rows);
        self.table(&Table::from_rows(columns, rows.take(self.rows)));
        if left > 0 {
            self.wrapped(&format!("… and {left} more"));
        }
    }
}
