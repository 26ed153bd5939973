//! Every promise of the docs names the test that holds it, and that test is there.

use std::collections::BTreeSet;
use std::path::Path;

/// Every test of a folder as `FILE::FUNCTION`. A test that is ignored holds nothing.
fn tests(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            tests(&path, into);
        } else if path.extension().is_some_and(|it| it == "rs") {
            // `ptrace/src/tests.rs` is "ptrace", `attach/ends.rs` is "ends".
            let mut parts = path.iter().rev().map(|it| it.to_string_lossy());
            let own = |it: &str| !["tests", "mod", "src"].contains(&it.trim_end_matches(".rs"));
            let stem = parts.find(|it| own(it)).expect("a name");
            let stem = stem.trim_end_matches(".rs");
            let text = std::fs::read_to_string(&path).expect("a text");
            let mut marked = false;
            for line in text.lines().map(str::trim) {
                if let Some(rest) = line.strip_prefix("fn ") {
                    let name = rest.split('(').next().unwrap_or_default();
                    if marked {
                        into.insert(format!("{stem}::{name}"));
                    }
                    marked = false;
                } else if line == "#[test]" {
                    marked = true;
                } else if line.starts_with("#[ignore") {
                    marked = false;
                }
            }
            let has_table = text.contains("fn main()");
            // A test with a main function of its own has a table of names and functions.
            for line in text.lines().filter(|_| has_table) {
                if let Some(rest) = line.trim().strip_prefix("(\"") {
                    let name = rest.split('"').next().unwrap_or_default();
                    into.insert(format!("{stem}::{name}"));
                }
            }
        }
    }
}

/// The tests that a text names.
fn named(text: &str) -> Vec<&str> {
    let code = text.split('`').skip(1).step_by(2);
    code.filter(|it| it.contains("::")).collect()
}

#[test]
fn every_promise_names_a_test_and_the_test_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut there = BTreeSet::new();
    for folder in ["tests", "crates", "src"] {
        tests(&root.join(folder), &mut there);
    }
    let read = |name: &str| std::fs::read_to_string(root.join("docs").join(name)).expect("a text");
    let (reliability, security) = (read("RELIABILITY.md"), read("SECURITY.md"));
    let rows = reliability.lines().filter(|it| it.starts_with('|'));
    let rows: Vec<&str> = rows
        .filter(|it| !it.starts_with("|---") && !it.ends_with("| test |"))
        .collect();
    // What is trusted is no promise, and nobody can test a request.
    let sections = security.split("\n## ").skip(1);
    let sections =
        sections.filter(|it| !it.starts_with("What is trusted") && !it.starts_with("Telling us"));
    let promises: Vec<&str> = rows.iter().copied().chain(sections).collect();
    assert!(rows.len() >= 30 && promises.len() >= 36, "{promises:#?}");
    let mut wrong = Vec::new();
    for promise in &promises {
        let head: String = promise.chars().take(60).collect();
        if named(promise).is_empty() {
            wrong.push(format!("names no test: {head}"));
        }
    }
    for name in named(&reliability).into_iter().chain(named(&security)) {
        if !there.contains(name) {
            wrong.push(format!("is no test: {name}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
