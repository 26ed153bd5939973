//! What is no TOML: each mistake once, where it was made, with its cure.
//!
//! The parser goes on behind an error, and reports what follows from it as well.

use std::ops::Range;

use super::super::diagnostics::{Diagnostic, Diagnostics, quoted};

/// What helps against what the parser says.
const CURES: [(&str, &str); 7] = [
    ("extra `=`", "one `=` is enough"),
    ("invalid boolean", "write true or false in small letters"),
    ("invalid fraction", "put a digit behind the point"),
    ("unexpected leading zero", "leave out the 0 in front"),
    ("missing escaped value", "write two of `\\\\` for one"),
    ("missing comma", "put a `,` before this"),
    (
        "missing opening quote",
        "put a text into quotes, and a list into `[` and `]`",
    ),
];

/// Reports the first of each line that the parser finds wrong, of a table that is there twice without its keys. Behind a bracket or a
/// quote that is not closed nothing is told, as it is read as part of it.
pub(super) fn report(text: &str, errors: &[toml::de::Error], diagnostics: &mut Diagnostics) {
    let open = unclosed(text);
    let until = open.as_ref().map_or(text.len(), |it| it.span.start);
    let at = |error: &&toml::de::Error| error.span().map_or(0, |span| span.start);
    let mut errors: Vec<_> = errors.iter().filter(|it| at(it) <= until).collect();
    errors.sort_by_key(at);
    let (mut told, mut twice) = (open.as_ref().map(|_| line_of(text, until).start), None);
    open.into_iter().for_each(|it| diagnostics.push(it));
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let line = line_of(text, span.start);
        let section = text[..line.start].rfind("\n[");
        let is_twice = error.message().trim() == "duplicate key";
        if told.replace(line.start) == Some(line.start) || (is_twice && twice == Some(section)) {
            continue;
        }
        let is_header = text[line.clone()].trim_start().starts_with('[');
        twice = (is_twice && is_header).then(|| text[..line.end].rfind("\n["));
        let found = match is_twice {
            true => duplicate(text, span, line),
            false => syntax(text, span, line, error.message().trim()),
        };
        diagnostics.push(found);
    }
}

/// The line that a byte is in.
fn line_of(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |it| it + 1);
    start..text[at..].find('\n').map_or(text.len(), |it| at + it)
}

/// A bracket or a quote that is not closed, or closes nothing.
fn unclosed(text: &str) -> Option<Diagnostic> {
    let mut open: Vec<(usize, char)> = Vec::new();
    let not_closed = |(at, bracket): (usize, char)| {
        Diagnostic::error(at..at + 1, format!("this `{bracket}` is not closed"))
    };
    let mut at = 0;
    while let Some(it) = text[at..].chars().next() {
        let mut length = it.len_utf8();
        match (it, open.last().copied()) {
            ('#', _) => length = line_of(text, at).end - at,
            ('"' | '\'', _) => match quoted_len(&text[at..], it) {
                Some(to) => length = to,
                None => {
                    let message = format!("this text is not closed: a {it} is missing at its end");
                    return Some(Diagnostic::error(at..line_of(text, at).end, message));
                }
            },
            ('[' | '{', _) => open.push((at, it)),
            (']', Some((_, '['))) | ('}', Some((_, '{'))) => _ = open.pop(),
            (']' | '}', Some(last)) => {
                let other = if it == ']' { '}' } else { ']' };
                let label = format!("a `{other}` is missing before this");
                return Some(not_closed(last).related(at..at + 1, label));
            }
            (']' | '}', None) => {
                let message = format!("nothing is open that this `{it}` closes");
                return Some(Diagnostic::error(at..at + 1, message));
            }
            ('\n', Some(last)) if is_section(&text[at + 1..], last.1) => {
                let next = line_of(text, at + 1);
                return Some(not_closed(last).related(next, "and this begins something new"));
            }
            _ => {}
        }
        at += length.max(1);
    }
    open.last().copied().map(not_closed)
}

/// How long a text in quotes is that begins here.
fn quoted_len(text: &str, quote: char) -> Option<usize> {
    let three = quote.to_string().repeat(3);
    if text.starts_with(&three) {
        return text[3..].find(&three).map(|it| it + 6);
    }
    let mut rest = text.char_indices().skip(1);
    while let Some((at, it)) = rest.next() {
        match it {
            '\n' => return None,
            '\\' if quote == '"' => _ = rest.next(),
            it if it == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Whether a line begins a table, or within a list a key, which no list has.
fn is_section(rest: &str, within: char) -> bool {
    let line = rest.lines().next().unwrap_or_default();
    let is_name = |it: char| it.is_alphanumeric() || "_-.\"".contains(it);
    let name = line.trim_start_matches('[');
    let behind = name.trim_start_matches(is_name);
    name.starts_with(char::is_alphabetic)
        && match name.len() == line.len() {
            true => within == '[' && behind.trim_start().starts_with('='),
            false => behind.starts_with(']'),
        }
}

/// A key or a table that is there twice, and where it was first.
fn duplicate(text: &str, span: Range<usize>, line: Range<usize>) -> Diagnostic {
    let head = |line: &str| {
        let head = line.trim_start().trim_start_matches('[');
        head.split([']', '=']).next().map(|it| it.trim().to_owned())
    };
    let is_table = |line: &str| line.trim_start().starts_with('[');
    let mine = &text[line.clone()];
    let message = format!("{} is there twice", quoted(&text[span.clone()]));
    let mut found = Diagnostic::error(span, message);
    let mut before = text[..line.start].split_inclusive('\n').rev();
    let mut end = line.start;
    while let Some(other) = before.next().filter(|it| is_table(mine) || !is_table(it)) {
        end -= other.len();
        if head(other) == head(mine) {
            found = found.related(end..end + other.trim_end().len(), "the first is here");
            break;
        }
    }
    match head(mine).as_deref().filter(|_| is_table(mine)) {
        Some(list @ ("variant" | "pair")) => {
            found.help(format!("write [[{list}]], with two brackets, for each"))
        }
        _ => found,
    }
}

/// What else the parser finds wrong.
fn syntax(text: &str, span: Range<usize>, line: Range<usize>, message: &str) -> Diagnostic {
    let whole = &text[line.clone()];
    let (before, behind) = whole.split_at(span.start.clamp(line.start, line.end) - line.start);
    let code = behind.split(" #").next().unwrap_or_default().trim_end();
    let cure = match message {
        it if it.starts_with("string values must be quoted") => {
            let (key, begin) = before.rsplit_once('=').unwrap_or(("", before));
            let key = key.trim_end().rsplit([' ', '{']).next().unwrap_or_default();
            let value = format!("{begin}{code}");
            let value = match before.contains('{') {
                true => value.split([',', '}']).next().unwrap_or_default().trim(),
                false => value.trim(),
            };
            match value {
                it if it.contains("//") => "a comment begins with `#`".to_owned(),
                it if it.ends_with(';') => "leave out the `;`".to_owned(),
                it if it.contains(" = ") => "each key has a line of its own".to_owned(),
                it => {
                    let plain = it.trim_matches(['“', '”', '„', '‘', '’']);
                    format!("put it into quotes: {key} = \"{plain}\"")
                }
            }
        }
        it if it.starts_with("invalid unquoted key") && behind.starts_with(':') => {
            "a value stands behind `=`".to_owned()
        }
        it if it.starts_with("key with no value") => match whole.contains('=') {
            true => "a key is one word: put a `_` in place of the blank".to_owned(),
            false => format!("write {} = {}", before.trim(), code.trim()),
        },
        it => match CURES.iter().find(|(says, _)| it.starts_with(says)) {
            Some((_, cure)) => (*cure).to_owned(),
            None => String::new(),
        },
    };
    let is_known = !cure.is_empty();
    let words = message.split(", expected").next().filter(|_| is_known);
    Diagnostic {
        line: u32::from(span.is_empty() && span.start == 0),
        column: 1,
        help: is_known.then_some(cure),
        ..Diagnostic::error(span, words.unwrap_or(message))
    }
}
