//! `docs/PHRASES.md`: every sentence that answers, in one page, taken from the sources that hold them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What is told, and the files that tell it: a folder stands for all of its files but tests.
const CHAPTERS: &[(&str, &[&str])] = &[
    ("Headlines", &["crates/analysis/src/verdict/words.rs"]),
    (
        "Causes of a gap",
        &[
            "crates/analysis/src/causes/kinds.rs",
            "crates/analysis/src/causes/words.rs",
        ],
    ),
    (
        "Findings and their cures",
        &["crates/analysis/src/findings"],
    ),
    (
        "Refused edits, and what predictions rest on",
        &["crates/analysis/src/edits"],
    ),
    (
        "Comparisons",
        &["src/report/compare/answer.rs", "src/report/compare/answer"],
    ),
    (
        "Ranks",
        &["crates/analysis/src/ranks/words.rs", "src/report/ranks.rs"],
    ),
];

/// The page's words that make it anew.
const BLESS: &str = "PHRASES_UPDATE";

fn files(path: &Path, into: &mut Vec<PathBuf>) {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    if name == "tests" || !path.exists() {
        return;
    }
    if path.is_file() {
        into.push(path.to_owned());
        return;
    }
    let entries = path.read_dir().expect("a folder").flatten();
    let mut inside: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    inside.sort();
    for path in inside {
        files(&path, into);
    }
}

/// The string literals of a source, without its comments, attributes and tests, in order.
fn literals(source: &str) -> Vec<String> {
    let (code, _) = source
        .split_once("#[cfg(test)]\nmod tests {")
        .unwrap_or((source, ""));
    let mut found = Vec::new();
    for line in code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
    {
        found.push(line);
    }
    let code = found.join("\n");
    let mut all = Vec::new();
    let mut rest = code.as_str();
    while let Some(from) = rest.find('"') {
        let is_char = rest[..from].ends_with('\'') && rest[from + 1..].starts_with('\'');
        rest = &rest[from + 1..];
        if is_char {
            continue;
        }
        let mut end = 0;
        while let Some(at) = rest[end..].find(['"', '\\']) {
            end += at;
            if rest[end..].starts_with('"') {
                break;
            }
            end += 2;
        }
        let text = rest[..end].replace("\\\"", "\"");
        // A backslash at a line's end joins it with the next one.
        let parts: Vec<&str> = text.split("\\\n").map(str::trim_start).collect();
        all.push(parts.concat());
        rest = &rest[(end + 1).min(rest.len())..];
    }
    all
}

/// Whether somebody reads it as words: no name of a rule, a key or a path.
fn is_phrase(text: &str) -> bool {
    let words = text.split_whitespace().filter(|word| {
        word.chars().filter(|c| c.is_alphabetic()).count() >= 2 && !word.starts_with('{')
    });
    words.count() >= 2
}

fn page() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut page = "# Phrases\n\nEvery sentence with which cuptop answers, from the sources that hold them: `{…}` stands for a name or a figure. \
                    `PHRASES_UPDATE=1 cargo test --test program phrases` writes this page.\n"
        .to_owned();
    for (title, paths) in CHAPTERS {
        let _ = write!(page, "\n## {title}\n");
        let mut sources = Vec::new();
        for path in *paths {
            files(&root.join(path), &mut sources);
        }
        for source in sources {
            let text = std::fs::read_to_string(&source).expect("a source");
            let phrases: Vec<String> = literals(&text)
                .into_iter()
                .filter(|it| is_phrase(it))
                .collect();
            if phrases.is_empty() {
                continue;
            }
            let name = source.file_stem().unwrap_or_default().to_string_lossy();
            let _ = write!(page, "\n**{name}**\n\n");
            for phrase in phrases {
                let _ = writeln!(page, "- {}", phrase.trim().replace('`', "'"));
            }
        }
    }
    page
}

/// The words of each sentence of a phrase.
fn longest(phrase: &str) -> usize {
    let sentences = phrase
        .split_inclusive([':', ';', '·', '?'])
        .flat_map(|it| it.split(". "));
    let words = |it: &str| {
        it.split_whitespace()
            .filter(|word| word.chars().any(char::is_alphanumeric))
            .count()
    };
    sentences.map(words).max().unwrap_or(0)
}

#[test]
fn the_page_of_phrases_is_what_the_sources_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/PHRASES.md");
    let page = page();
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(&path, &page).expect("written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/PHRASES.md differs: {BLESS}=1 writes it anew"
    );
}

#[test]
fn no_sentence_has_more_than_twenty_words() {
    let long: Vec<String> = page()
        .lines()
        .filter_map(|line| line.strip_prefix("- "))
        .filter(|phrase| longest(phrase) > 20)
        .map(str::to_owned)
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn literals_are_found_and_comments_and_tests_are_not() {
    let source = "// \"not this\"\nlet a = \"this \\\"one\\\"\";\nlet c = '\"';\nlet b = \"two \\\n    lines\";\n#[cfg(test)]\nmod tests {\n\"no\"";
    assert_eq!(literals(source), ["this \"one\"", "two lines"]);
    assert!(is_phrase("the GPU is idle for {}") && !is_phrase("sync-in-loop"));
}
