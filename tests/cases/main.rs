//! Each row of the table of cases changes an answer to the inputs that it names.
//!
//! `cargo test --test cases` takes each row out for those inputs, and requires another class, headline, finding or step.
//! `cargo test --test cases -- --list` says which rows change an answer to each input, and `-- FILE…` does so of other
//! traces. Rows that decide nothing in an input are not tried there.
//!
//! A row is taken out for the whole process, so that this is a program of its own.

#![expect(clippy::print_stdout, reason = "it says which rows matter")]

mod input;
mod page;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use cases::testing::{decided, take_out};
use cases::{ROWS, Row};
use input::Input;

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let files: Vec<&String> = asked.iter().filter(|it| Path::new(it).exists()).collect();
    if asked.iter().any(|it| it == "--list") {
        for (name, input) in input::all() {
            if asked.len() == 1 || asked.contains(&name) {
                say(&name, &input);
            }
        }
        return ExitCode::SUCCESS;
    }
    if !files.is_empty() {
        for file in files {
            say(file, &Input::of_file(Path::new(file)));
        }
        return ExitCode::SUCCESS;
    }
    let mut wrong = check(&input::all());
    wrong.extend(page::check());
    wrong.extend(input::differs_from_script());
    wrong.extend(builds_that_take_rows_out());
    for wrong in &wrong {
        println!("{wrong}");
    }
    println!("{} rows of cases, {} wrong", ROWS.len(), wrong.len());
    ExitCode::from(u8::from(!wrong.is_empty()))
}

/// Says which rows change an answer to an input.
fn say(name: &str, input: &Input) {
    println!("{name}: {}", matters(input, |_| true).join(" "));
}

/// The rows among those wanted that change an answer to an input.
fn matters(input: &Input, is_wanted: impl Fn(&Row) -> bool) -> Vec<&'static str> {
    decided();
    let answers = input.answers();
    let rows = decided().into_iter().filter(|&row| is_wanted(&ROWS[row]));
    let mut found = Vec::new();
    for row in rows {
        take_out(Some(row));
        if input.answers() != answers {
            found.push(ROWS[row].name);
        }
        take_out(None);
    }
    found
}

/// What is wrong with the rows.
fn check(inputs: &BTreeMap<String, Input>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, input) in inputs {
        let named = ROWS
            .iter()
            .filter(|row| row.inputs.contains(&name.as_str()));
        let named: Vec<&str> = named.map(|row| row.name).collect();
        if named.is_empty() {
            // Those of the repository are there for other tests.
            continue;
        }
        let found = matters(input, |row| named.contains(&row.name));
        let missing = named.iter().filter(|row| !found.contains(*row));
        wrong.extend(missing.map(|row| format!("{row} changes no answer to {name}")));
    }
    for row in ROWS {
        let unknown = row.inputs.iter().filter(|it| !inputs.contains_key(**it));
        wrong.extend(unknown.map(|it| format!("{}: there is no input {it}", row.name)));
        if row.inputs.is_empty() {
            wrong.push(format!("nothing asks for {}", row.name));
        }
    }
    wrong
}

/// Manifests whose own dependencies, and not those of tests alone, let rows be taken out: users would get such a build.
fn builds_that_take_rows_out() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = root.join("crates").read_dir().expect("the crates");
    let folders = crates.map(|it| it.expect("readable").path());
    let mut wrong = Vec::new();
    for folder in folders.chain([root.to_owned()]) {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let (own, _) = manifest
            .split_once("[dev-dependencies]")
            .unwrap_or((&manifest, ""));
        let mut lines = own.lines();
        if lines.any(|it| it.contains("cuptop-cases\"") && it.contains("testing")) {
            wrong.push(format!("{} lets rows be taken out", folder.display()));
        }
    }
    wrong
}
