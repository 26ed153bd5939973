//! Pages of the documentation as text for a terminal or a pager: wrapped, tables in columns, no escape codes but
//! where colour is asked for.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::text::{width, wrap};

/// Spaces between the columns of a table.
const BETWEEN: usize = 2;
/// A column is not made narrower than this.
const NARROWEST: usize = 10;

/// A Markdown text in lines of `columns`; code stays as it is.
#[must_use]
pub(super) fn render(markdown: &str, columns: usize, color: bool) -> String {
    let mut page = Page {
        out: String::new(),
        columns: columns.max(40),
        color,
        text: String::new(),
        lists: Vec::new(),
        lead: String::new(),
        rows: Vec::new(),
    };
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        page.take(event);
    }
    page.out
}

struct Page {
    out: String,
    columns: usize,
    color: bool,
    /// What has been read of the paragraph, item, heading, cell or code.
    text: String,
    /// The next number of each list that is open; none for those without.
    lists: Vec<Option<u64>>,
    /// What stands before the next line of an item.
    lead: String,
    /// The rows of the table that is read.
    rows: Vec<Vec<String>>,
}

impl Page {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => self.text.push_str(&text),
            Event::Code(code) => {
                self.text.push('`');
                self.text.push_str(&code);
                self.text.push('`');
            }
            Event::SoftBreak => self.text.push(' '),
            Event::HardBreak => self.text.push('\n'),
            Event::Start(tag) => self.open(tag),
            Event::End(tag) => self.close(tag),
            _ => {}
        }
    }

    fn open(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::List(first) => {
                // The item's own words stand before the list in it.
                self.paragraph();
                if self.lists.is_empty() {
                    self.gap();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.lead = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "- ".to_owned(),
                };
            }
            Tag::Table(_) => self.rows.clear(),
            Tag::TableHead | Tag::TableRow => self.rows.push(Vec::new()),
            Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) => {
                self.paragraph();
            }
            _ => {}
        }
    }

    fn close(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph if self.lists.is_empty() => {
                self.gap();
                self.paragraph();
            }
            TagEnd::Paragraph | TagEnd::Item => self.paragraph(),
            TagEnd::List(_) => drop(self.lists.pop()),
            TagEnd::Heading(level) => {
                self.gap();
                let text = std::mem::take(&mut self.text);
                let text = match level {
                    pulldown_cmark::HeadingLevel::H1 => text.to_uppercase(),
                    _ => text,
                };
                let line = match self.color {
                    true => format!("\u{1b}[1m{text}\u{1b}[0m"),
                    false => text,
                };
                self.line(&line);
            }
            TagEnd::CodeBlock => {
                self.gap();
                let code = std::mem::take(&mut self.text);
                for line in code.lines() {
                    let line = match self.color && !line.is_empty() {
                        true => format!("    \u{1b}[36m{line}\u{1b}[0m"),
                        false => format!("    {line}"),
                    };
                    self.line(line.trim_end());
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text);
                if let Some(row) = self.rows.last_mut() {
                    row.push(cell);
                }
            }
            TagEnd::Table => self.table(),
            _ => {}
        }
    }

    /// What was read so far, wrapped, behind the lead of its item.
    fn paragraph(&mut self) {
        let text = std::mem::take(&mut self.text);
        if text.trim().is_empty() {
            return;
        }
        let lead = std::mem::take(&mut self.lead);
        let depth = 2 * self.lists.len();
        let hang = depth + width(&lead);
        for (i, line) in wrap(text.trim(), self.columns.saturating_sub(hang))
            .iter()
            .enumerate()
        {
            let (before, lead) = match i {
                0 => (depth, lead.as_str()),
                _ => (hang, ""),
            };
            self.line(&format!("{:before$}{lead}{line}", ""));
        }
    }

    /// The columns side by side; where they are too wide the widest is wrapped.
    fn table(&mut self) {
        self.gap();
        let rows = std::mem::take(&mut self.rows);
        let count = rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &Vec<String>, i: usize| row.get(i).cloned().unwrap_or_default();
        let mut widths: Vec<usize> = (0..count)
            .map(|i| rows.iter().map(|row| width(&cell(row, i))).max())
            .map(|widest| widest.unwrap_or(0))
            .collect();
        let between = BETWEEN * count;
        while widths.iter().sum::<usize>() + between > self.columns {
            match widths.iter_mut().max() {
                Some(widest) if *widest > NARROWEST => *widest -= 1,
                _ => break,
            }
        }
        for (i, row) in rows.iter().enumerate() {
            let cells: Vec<Vec<String>> =
                (0..count).map(|i| wrap(&cell(row, i), widths[i])).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for at in 0..height {
                let mut line = String::new();
                for (cell, room) in cells.iter().zip(&widths) {
                    let text = cell.get(at).map_or("", String::as_str);
                    line.push_str(&" ".repeat(BETWEEN));
                    line.push_str(text);
                    line.push_str(&" ".repeat(room.saturating_sub(width(text))));
                }
                self.line(line.trim_end());
            }
            if i == 0 {
                let ruled: usize = widths.iter().sum::<usize>() + BETWEEN * (count - 1);
                self.line(&format!("{:BETWEEN$}{}", "", "-".repeat(ruled)));
            }
        }
    }

    /// An empty line, but not at the beginning.
    fn gap(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_wrapped_and_its_tables_stand_in_columns() {
        let page = "# Title\nSome `code` and a paragraph that is longer than one line of forty.\n\n\
                    | key | what |\n|---|---|\n| `a` | one |\n| `bb` | a cell that is wider than what is left of the line |\n\n\
                    1. first\n2. second, which is long enough to be wrapped once\n   - within\n\n```toml\nx   = 1\n\n# y\n```\n";
        let expected = "TITLE\n\
            \nSome `code` and a paragraph that is\nlonger than one line of forty.\n\
            \n  key   what\
            \n  --------------------------------------\
            \n  `a`   one\
            \n  `bb`  a cell that is wider than what\
            \n        is left of the line\n\
            \n  1. first\
            \n  2. second, which is long enough to be\
            \n     wrapped once\
            \n    - within\n\
            \n    x   = 1\n\n    # y\n";
        assert_eq!(render(page, 40, false), expected);
        let colored = render("## A\n", 40, true);
        assert_eq!(colored, "\u{1b}[1mA\u{1b}[0m\n");
    }
}
