//! The words of the sources: a sentence of a comment is short, and a function's name says what it does. The glossary names what
//! the sources declare.

use std::path::{Path, PathBuf};

/// The sources that are held to it, as are those of all crates.
const HELD: &[&str] = &["build.rs", "src"];

/// What is not held to it: comments that clap prints as help, which are words of the screen.
const SPARED: &str = "src/cli/args";

/// Words of a sentence at most.
const MOST_WORDS: usize = 25;

/// The production sources of a folder, or of one file.
fn sources(path: &Path, into: &mut Vec<PathBuf>) {
    let stem = path.file_stem().expect("a name").to_string_lossy();
    if ["tests", "testing", "fixtures", "benches", "fuzz", "target"].contains(&&*stem) {
        return;
    }
    if path.is_dir() {
        for entry in std::fs::read_dir(path).expect("a folder").flatten() {
            sources(&entry.path(), into);
        }
    } else if path.extension().is_some_and(|it| it == "rs") {
        into.push(path.to_owned());
    }
}

/// The sentences of whole-line comments, each with the line on which its paragraph begins. A paragraph ends with the
/// comment, at an empty line of it, or where a list's next item begins. Examples, tables and headings are no sentences.
fn sentences(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut paragraph, mut first, mut is_example) = (String::new(), 0, false);
    for (i, line) in text.lines().chain([""]).enumerate() {
        let comment = line.trim_start().strip_prefix("//");
        let comment = comment.map(|it| it.trim_start_matches(['/', '!']).trim());
        let ends = |it: &str| it.is_empty() || it.starts_with(['|', '#']) || it.starts_with("```");
        let is_item = |it: &str| it.starts_with("- ") || it.starts_with("* ");
        if is_example || comment.is_none_or(|it| ends(it) || is_item(it)) {
            split(&std::mem::take(&mut paragraph), first, &mut found);
        }
        let Some(comment) = comment else {
            is_example = false;
            continue;
        };
        is_example ^= comment.starts_with("```");
        if is_example || ends(comment) {
            continue;
        }
        if paragraph.is_empty() {
            first = i + 1;
        }
        paragraph.push_str(comment);
        paragraph.push(' ');
    }
    found
}

/// Cuts a paragraph behind each sign that ends a sentence, if a capital letter or code follows. Code becomes one word.
fn split(paragraph: &str, line: usize, into: &mut Vec<(usize, String)>) {
    let code = paragraph.split('`').enumerate();
    let plain: String = code
        .map(|(i, it)| if i % 2 == 1 { "X" } else { it })
        .collect();
    let mut from = 0;
    for (at, _) in plain.match_indices(['.', '!', '?', ':', ';']) {
        let rest = &plain[at + 1..];
        let next = rest.trim_start();
        if rest.len() > next.len()
            && next.starts_with(|c: char| c.is_uppercase() || "*[(\"".contains(c))
        {
            into.push((line, plain[from..=at].trim().to_owned()));
            from = at + 1;
        }
    }
    if !plain[from..].trim().is_empty() {
        into.push((line, plain[from..].trim().to_owned()));
    }
}

/// How many words a sentence has: "read-ahead", "user's", "1.5" and "and/or" are one each.
fn words(sentence: &str) -> usize {
    let words = sentence.split(|c: char| c.is_whitespace() || "()[]\",;:…".contains(c));
    words
        .filter(|it| it.contains(char::is_alphanumeric))
        .count()
}

/// The functions that are called `of` and return something else than their type, or whose name begins with "look". Each
/// with its line.
fn misnamed(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut owner = "";
    for (i, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix("impl") {
            let of = rest.rsplit(" for ").next().unwrap_or_default().trim();
            let of = if of.starts_with('<') {
                of.split_once("> ").map_or("", |it| it.1)
            } else {
                of
            };
            owner = of.split(['<', ' ', '{']).next().unwrap_or_default();
        }
        let Some((_, signature)) = line.split_once("fn ") else {
            continue;
        };
        let is_comment = line.trim_start().starts_with("//");
        let name = signature.split(['(', '<']).next().unwrap_or_default();
        let looks = name == "look"
            || ["look_", "looks_", "looked"]
                .iter()
                .any(|it| name.starts_with(it));
        let is_of = || name == "of" && !makes(owner, text, i);
        if !is_comment && (looks || is_of()) {
            found.push((i + 1, line.trim().to_owned()));
        }
    }
    found
}

/// Whether the function on a line returns the type that its `impl` is on, perhaps as an option or a result.
fn makes(owner: &str, text: &str, line: usize) -> bool {
    let signature: String = text.lines().skip(line).take(8).collect();
    let signature = signature.split('{').next().unwrap_or_default();
    let Some((_, returned)) = signature.rsplit_once("-> ") else {
        return false;
    };
    let mut returned = returned.trim();
    while let Some((wrapper, inner)) = returned.split_once('<')
        && (wrapper == "Option" || wrapper.ends_with("Result"))
    {
        returned = inner;
    }
    let name = returned
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next();
    name.is_some_and(|it| it == "Self" || (it == owner && !owner.is_empty()))
}

/// What is wrong with a source's words.
fn faults(text: &str) -> Vec<String> {
    let text = text
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let long = sentences(text)
        .into_iter()
        .map(|(line, it)| (line, words(&it), it));
    let long = long.filter(|(_, count, _)| *count > MOST_WORDS);
    let long = long.map(|(line, count, it)| format!("{line}: {count} words: {it}"));
    let misnamed = misnamed(text).into_iter();
    long.chain(misnamed.map(|(line, it)| format!("{line}: {it}")))
        .collect()
}

/// Whether a text declares this name. Behind `::` it may also be a variant or a field.
fn is_declared(name: &str, is_inside: bool, text: &str) -> bool {
    let keywords = [
        "struct ", "enum ", "trait ", "fn ", "type ", "mod ", "const ",
    ];
    text.match_indices(name).any(|(at, _)| {
        let line = text[..at]
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .trim_start();
        let after = text[at + name.len()..].chars().next().unwrap_or(' ');
        let is_member = is_inside && ["", "pub ", "pub(crate) "].contains(&line);
        let is_name = !after.is_alphanumeric() && after != '_';
        is_name && (is_member || keywords.iter().any(|it| line.ends_with(it)))
    })
}

/// The names in a row's column "code" of the glossary, each with whether it stands behind another one.
fn names_in_code(row: &str) -> Vec<(&str, bool)> {
    let cells: Vec<&str> = row.split('|').collect();
    let [_, _, _, code, _, _, _] = cells.as_slice() else {
        return Vec::new();
    };
    let paths = code.split('`').skip(1).step_by(2);
    paths
        .flat_map(|path| {
            let names = path.split(|c: char| !c.is_alphanumeric() && c != '_');
            let names = names.filter(|it| !it.is_empty()).enumerate();
            names.map(|(i, name)| (name, i > 0))
        })
        .collect()
}

#[test]
fn sources_speak_plainly() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = String::new();
    let crates = std::fs::read_dir(root.join("crates")).expect("a folder");
    let crates = crates.map(|it| it.expect("readable").path().join("src"));
    for held in HELD.iter().map(|it| root.join(it)).chain(crates) {
        let mut files = Vec::new();
        sources(&held, &mut files);
        assert!(!files.is_empty(), "{} has no sources", held.display());
        files.retain(|it| !it.starts_with(root.join(SPARED)));
        for file in files {
            let text = std::fs::read_to_string(&file).expect("a text");
            let name = file.strip_prefix(root).expect("a file of ours").display();
            wrong.extend(faults(&text).iter().map(|it| format!("{name}:{it}\n")));
        }
    }
    assert!(
        wrong.is_empty(),
        "at most {MOST_WORDS} words a sentence; verbs for functions:\n{wrong}"
    );
}

/// Counted by hand.
#[test]
fn words_are_counted_as_people_count_them() {
    let sentence = |text: &str| {
        sentences(text)
            .into_iter()
            .map(|(line, it)| (line, words(&it)))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        sentence("/// Records are sent this often.\nconst A: u8 = 1;"),
        [(1, 5)]
    );
    // Nineteen words, over two lines.
    let row = "x\n    // A row costs 16 bytes of columns, or 24 in a chunk\n    // with times more than 4 s apart.\n";
    assert_eq!(sentence(row), [(2, 19)]);
    // Code is one word, whatever it holds; so are "user's", "read-ahead", "1.5".
    assert_eq!(
        sentence("//! `f(a, b). C` holds a user's read-ahead for 1.5 ms."),
        [(1, 8)]
    );
    // "e.g. for" ends nothing, as no capital follows; a colon does before one.
    assert_eq!(
        sentence("// It waits, e.g. for a lock: The lock is old. `X` knows."),
        [(1, 6), (1, 4), (1, 2)]
    );
    // Items are sentences of their own; examples, tables and headings are none.
    let list = "//! What orders:\n//! - one two three\n//!   four five;\n//! - six.\n//!\n//! # Errors\n//! None.\n//! ```text\n\
                //! a b c d\n//! ```\n//! | a | b |\n//! The end.\n";
    assert_eq!(sentence(list), [(1, 2), (2, 5), (4, 1), (7, 1), (12, 2)]);
}

#[test]
fn faults_are_found() {
    let twenty_six = format!("/// {}end.\n", "word ".repeat(25));
    assert_eq!(faults(&twenty_six).len(), 1);
    assert_eq!(faults(&twenty_six.replacen("word ", "", 1)), [""; 0]);
    let of = |returned: &str| {
        faults(&format!(
            "impl<'a> Kinds<'a> {{\n    fn of(x: u8) {returned}{{}}\n}}\n"
        ))
        .len()
    };
    let own = [
        "-> Self ",
        "-> Kinds<'a> ",
        "-> io::Result<Kinds> ",
        "-> Option<Self> ",
    ]
    .map(of);
    let others = ["", "-> Vec<Kinds> ", "-> KindsOfAll ", "-> Option<u32> "].map(of);
    assert_eq!((own, others), ([0; 4], [1; 4]));
    assert_eq!(
        faults("impl From<u8> for Kind {\n    fn of() -> Kind {}\n}").len(),
        0
    );
    assert_eq!(
        faults("fn of(x: u8) -> u8 {}\nfn look_at() {}\nfn looked() {}\nfn lookup() {}\n").len(),
        3
    );
}

/// Names of code, and of crates, that the glossary gives for its terms.
#[test]
fn the_glossary_names_what_the_sources_declare() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    sources(&root.join("crates"), &mut files);
    let texts = files
        .iter()
        .map(|it| std::fs::read_to_string(it).expect("a text"));
    let text = texts.collect::<String>();
    let glossary = std::fs::read_to_string(root.join("docs/GLOSSARY.md")).expect("the docs");
    let named: Vec<_> = glossary.lines().flat_map(names_in_code).collect();
    assert!(named.len() > 20, "{} names", named.len());
    let missing: Vec<_> = named
        .into_iter()
        .filter(|(name, _)| !root.join("crates").join(name).is_dir())
        .filter(|(name, is_inside)| !is_declared(name, *is_inside, &text))
        .collect();
    assert!(missing.is_empty(), "no source declares {missing:?}");
}

#[test]
fn declared_names_are_told_from_used_ones() {
    let text = "pub enum Cause {\n    Staging,\n}\nstruct Piece {\n    pub root: u8,\n}\nlet Gone = Causes::Other;\n";
    let declared = |name, is_inside| is_declared(name, is_inside, text);
    assert!(declared("Cause", false) && declared("Staging", true) && declared("root", true));
    assert!(!declared("Staging", false) && !declared("Gone", false) && !declared("Other", true));
    assert!(!declared("Caus", false));
    let row = "| a | b | `What::{Kernel, Copy}`, `CallKind` | d | e |";
    let named = [
        ("What", false),
        ("Kernel", true),
        ("Copy", true),
        ("CallKind", false),
    ];
    assert_eq!(names_in_code(row), named);
}
