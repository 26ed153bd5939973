//! The page of the docs that is made from the table.

use std::fmt::Write as _;
use std::path::PathBuf;

use cases::{ROWS, Row};

/// Says whether `docs/CASES.md` is what the table says. With `INSTA_UPDATE=always` it is written anew.
pub(crate) fn check() -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/CASES.md");
    let page = page();
    if std::env::var_os("INSTA_UPDATE").is_some_and(|it| it == "always") {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let is_same = std::fs::read_to_string(&path).is_ok_and(|it| it == page);
    (!is_same).then(|| "docs/CASES.md differs from the table: .ci/bless writes it anew".to_owned())
}

fn page() -> String {
    let mut page = String::from(
        "# Cases\n\nThe thresholds and exceptions of answers. `crates/cases/src/table.rs` has more of each, and the inputs that ask for \
         it.\n",
    );
    for (i, row) in ROWS.iter().enumerate() {
        if i == 0 || ROWS[i - 1].rule != row.rule {
            let _ = write!(page, "\n## {}\n\n", row.rule);
        }
        let (name, number, says) = (row.name, number(row), first_sentence(row));
        let _ = writeln!(page, "- `{name}`{number}: {says}");
    }
    page
}

/// The first of a row's sentences.
fn first_sentence(row: &Row) -> String {
    let lines: Vec<&str> = row.recognises.iter().map(|it| it.trim()).collect();
    let text = lines.join(" ");
    let is_end = |&(at, _): &(usize, &str)| text[at + 2..].starts_with(char::is_uppercase);
    let end = text.match_indices(". ").find(is_end);
    text[..end.map_or(text.len(), |(at, _)| at + 1)].to_owned()
}

/// A row's number, as people write it; nothing for an exception.
fn number(row: &Row) -> String {
    let plain = row.number.replace('_', "");
    let value: f64 = plain.parse().unwrap_or_default();
    let number = match row.unit {
        "Exception" => return String::new(),
        "Ns" => activity::units::duration(value as i64),
        "Share" if value <= 1.0 => format!("{} %", (value * 100.0).round()),
        "Share" | "Times" => format!("{plain}×"),
        _ => plain,
    };
    format!(" ({number})")
}
