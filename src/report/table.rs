//! What tables tell of their rows, and their layout as text: the first column gives way, numbers stand right.
//!
//! A [`Column`] is made once: the report lays it out here, the screen does so for the rows that are seen.

use unicode_width::UnicodeWidthStr;

use activity::Ns;
use activity::text::{cut_middle, printable};

/// Columns of the screen that a name may have at the cost of figures.
const NAME: u16 = 40;

/// Spaces before the first column and between columns.
const INDENT: usize = 2;

/// What a table tells of each row: its name or a figure.
#[derive(Clone, Debug)]
pub struct Column<R> {
    /// What stands above it. That of the first is for the screen: a text has a title that says what its names are.
    pub heading: &'static str,
    /// Behind that on the screen, where there is no other line to say it.
    pub unit: &'static str,
    /// Its cell in a row.
    pub text: fn(&R) -> String,
    /// What rows are ordered by, greatest first.
    pub key: fn(&R) -> Ns,
    /// Its columns on the screen; 0 where it is for texts alone.
    pub width: u16,
    /// Whether it takes all that others leave on the screen, `width` at least.
    pub is_rest: bool,
    /// What a narrow screen leaves out first: the greatest; 0 always stays.
    pub spare: u8,
    /// Whether it stands back on the screen.
    pub is_dim: bool,
}

impl<R> Column<R> {
    /// A column of so many columns of the screen.
    pub fn new(heading: &'static str, width: u16, text: fn(&R) -> String) -> Self {
        Column {
            heading,
            unit: "",
            text,
            key: |_| 0,
            width,
            is_rest: false,
            spare: 0,
            is_dim: false,
        }
    }

    /// A column that takes all that others leave.
    pub fn rest(heading: &'static str, least: u16, text: fn(&R) -> String) -> Self {
        Column {
            is_rest: true,
            ..Column::new(heading, least, text)
        }
    }

    /// The same, by which rows can be ordered.
    pub fn sorted(self, key: fn(&R) -> Ns) -> Self {
        Column { key, ..self }
    }

    /// The same, of a unit.
    pub fn unit(self, unit: &'static str) -> Self {
        Column { unit, ..self }
    }

    /// The same, standing back.
    pub fn dim(self) -> Self {
        let is_dim = true;
        Column { is_dim, ..self }
    }

    /// Makes columns as wide as these rows ask for, and drops those that are empty in all of them.
    pub fn fit<'a>(columns: &mut Vec<Self>, rows: impl Iterator<Item = &'a R> + Clone)
    where
        R: 'a,
    {
        columns.retain_mut(|it| {
            let widths = rows.clone().map(|row| (it.text)(row).width() as u16);
            let widest = widths.max().unwrap_or(0);
            if it.is_rest {
                // Names go before figures that can be spared.
                it.width = it.width.max(widest.min(NAME));
            } else {
                let heading = format!("{} {}", it.heading, it.unit);
                it.width = widest.max(heading.trim_end().width() as u16);
            }
            widest > 0
        });
    }

    /// The same, left out where the screen is narrow.
    pub fn spare(self, spare: u8) -> Self {
        Column { spare, ..self }
    }
}

/// A table in the making. The first column stands left and is cut where the width asks for it; the
/// others stand right and are never cut.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    header: Vec<String>,
    rows: Vec<TableRow>,
}

#[derive(Clone, Debug)]
enum TableRow {
    Cells(Vec<String>),
    /// A line of its own, over all columns.
    Heading(String),
}

/// So many columns of a name are told at least where shortest and longest times would leave fewer.
const NAME_LEAST: usize = 20;

impl Table {
    pub(super) fn new(header: impl IntoIterator<Item: Into<String>>) -> Self {
        Table {
            header: header.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// A table of these columns.
    pub(super) fn of<R>(columns: &[Column<R>]) -> Self {
        let mut header: Vec<String> = columns.iter().map(|it| it.heading.to_owned()).collect();
        header[0].clear();
        Table::new(header)
    }

    /// The same with rows.
    pub(super) fn from_rows<R>(columns: &[Column<R>], rows: impl IntoIterator<Item = R>) -> Self {
        let mut table = Table::of(columns);
        for row in rows {
            table.row(columns.iter().map(|it| (it.text)(&row)));
        }
        table
    }

    /// A line over all columns, for the rows below it.
    pub(super) fn heading(&mut self, text: String) {
        self.rows.push(TableRow::Heading(text));
    }

    /// A row of as many cells as there are columns.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(TableRow::Cells(cells.into_iter().collect()));
    }

    /// Rows of cells, without headings.
    fn cells(&self) -> impl Iterator<Item = &Vec<String>> {
        self.rows.iter().filter_map(|row| match row {
            TableRow::Cells(cells) => Some(cells),
            TableRow::Heading(_) => None,
        })
    }

    /// Columns that are not empty in every row, and the first.
    fn used(&self) -> Vec<usize> {
        let has_text =
            |row: &Vec<String>, at: usize| row.get(at).is_some_and(|cell| !cell.is_empty());
        let is_used = |at: &usize| *at == 0 || self.cells().any(|row| has_text(row, *at));
        (0..self.header.len()).filter(is_used).collect()
    }

    /// The same in Markdown.
    pub(super) fn markdown(&self) -> String {
        let columns = self.used();
        let line = |row: &Vec<String>| {
            let cells = columns
                .iter()
                .map(|&at| row.get(at).map_or("", |it| it.trim()));
            format!("| {} |\n", cells.map(cell).collect::<Vec<_>>().join(" | "))
        };
        let rule = format!("|---{}|\n", "|--:".repeat(columns.len() - 1));
        let below = self.rows.iter().map(|row| match row {
            TableRow::Cells(cells) => line(cells),
            TableRow::Heading(text) => line(&vec![text.clone()]),
        });
        line(&self.header) + &rule + &below.collect::<String>()
    }

    /// The lines, the header first; columns that are empty in every row are left out.
    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        let mut columns = self.used();
        let all = || std::iter::once(&self.header).chain(self.cells());
        let width_of = |column: usize| {
            let widths = all().filter_map(|row| Some(row.get(column)?.width()));
            widths.max().unwrap_or(0)
        };
        let room = |columns: &[usize]| {
            let right: usize = columns[1..].iter().map(|&c| width_of(c) + INDENT).sum();
            width.saturating_sub(right + INDENT).max(8)
        };
        // A name that stays whole tells more.
        for extreme in ["min", "max"] {
            if room(&columns) < NAME_LEAST.min(width_of(0)) {
                columns.retain(|&it| self.header[it] != extreme);
            }
        }
        let first = width_of(0).min(room(&columns));
        let line = |row: &Vec<String>| {
            let cell = |c: usize| row.get(c).map_or("", String::as_str);
            let mut line = " ".repeat(INDENT);
            let name = cut_middle(cell(0), first);
            line.push_str(&name);
            line.push_str(&" ".repeat(first.saturating_sub(name.width())));
            for &c in &columns[1..] {
                let gap = INDENT + width_of(c).saturating_sub(cell(c).width());
                line.push_str(&" ".repeat(gap));
                line.push_str(cell(c));
            }
            line.trim_end().to_owned()
        };
        let below = self.rows.iter().map(|row| match row {
            TableRow::Cells(cells) => line(cells),
            TableRow::Heading(text) => {
                let room = width.saturating_sub(INDENT);
                format!("{:INDENT$}{}", "", cut_middle(text, room))
            }
        });
        std::iter::once(line(&self.header)).chain(below).collect()
    }
}

/// Text in Markdown: whatever a name holds is read as it stands, and nobody is called or led anywhere.
pub(super) fn cell(text: &str) -> String {
    // Forges look for mentions, issues and addresses in what they have rendered: only a character between keeps them apart.
    const APART: &str = "&#8203;";
    let mut out = String::new();
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '@' | '#' => out.extend(["\\", c.encode_utf8(&mut [0; 4]), APART]),
            '\\' | '`' | '*' | '_' | '[' | ']' | '!' | '|' | '~' | '$' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.replace("://", &format!(":{APART}//"))
        .replace("www.", &format!("www{APART}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_takes_the_whole_line_and_no_column() {
        let mut table = Table::new(["", "n"]);
        table.heading("a_name_of_a_variant".to_owned());
        table.row(["  4 KiB", "12"].map(str::to_owned));
        assert_eq!(
            table.lines(30),
            ["            n", "  a_name_of_a_variant", "    4 KiB  12"]
        );
    }

    #[test]
    fn the_first_column_gives_way_and_numbers_stand_right() {
        let mut table = Table::new(["name", "n", "time", "unused"]);
        table.row(["a_kernel_with_a_long_name", "1", "20 ns", ""].map(str::to_owned));
        table.row(["b", "1000", "3 ns", ""].map(str::to_owned));
        assert_eq!(
            table.lines(32),
            [
                "  name                  n   time",
                "  a_kernel_wi…_name     1  20 ns",
                "  b                  1000   3 ns",
            ]
        );
        assert!(table.lines(80)[1].contains("a_kernel_with_a_long_name"));
        // Of a name that few columns are left for the table tells more than of its shortest and longest times.
        let mut times = Table::new(["name", "mean", "min", "max", "class"]);
        times.row(
            [
                "fused_ffn_kernel_fp16",
                "3.07 ms",
                "1.06 ms",
                "5.55 ms",
                "memory",
            ]
            .map(str::to_owned),
        );
        assert_eq!(
            times.lines(50)[1],
            "  fused_ffn_kernel_fp16  3.07 ms  5.55 ms  memory"
        );
        for width in 0..40 {
            table.lines(width);
        }
    }
}
