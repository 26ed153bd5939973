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
        "# Thresholds\n\nThe numbers by which answers are decided. `crates/cases/src/table.rs` has the exceptions too, and says which inputs ask for \
            each.\n",
    );
    let limits: Vec<&Row> = ROWS.iter().filter(|it| it.unit != "Exception").collect();
    for rows in limits.chunk_by(|a, b| a.rule == b.rule) {
        let _ = writeln!(page, "\n## {}\n", rows[0].rule);
        for row in rows {
            let (name, number, says) = (row.name, number(row), first_sentence(row));
            let _ = writeln!(page, "- `{name}` ({number}): {says}");
        }
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

/// A row's number, as people write it.
fn number(row: &Row) -> String {
    let plain = row.number.replace('_', "");
    let value: f64 = plain.parse().unwrap_or_default();
    match row.unit {
        "Ns" => activity::units::duration(value as i64),
        "Share" if value <= 1.0 => format!("{} %", (value * 100.0).round()),
        "Share" | "Times" => format!("{plain}×"),
        _ => plain,
    }
}
