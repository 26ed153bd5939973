//! What is no TOML: each mistake once, where it was made, with its cure.
//!
//! The parser goes on behind an error, and reports what follows from it as well.

use std::ops::Range;

use super::super::diagnostics::{Diagnostic, Diagnostics, Related, Severity, quoted};

/// What the parser says of a key or a table that is there twice.
const TWICE: &str = "duplicate key";

/// What helps against what else it says.
const CURES: [(&str, &str); 9] = [
    (
        "invalid unquoted key",
        "a key is a word, and its value stands behind `=`",
    ),
    (
        "key with no value",
        "a key is one word: put a `_` in place of the blank",
    ),
    ("extra `=`", "one `=` is enough"),
    ("invalid boolean", "write true or false in small letters"),
    ("invalid fraction", "put a digit behind the point"),
    ("unexpected leading zero", "leave out the 0 in front"),
    ("missing escaped value", "write two of `\\\\` for one"),
    ("missing comma", "put a `,` here"),
    (
        "missing opening quote",
        "put a text into quotes, and a list into `[` and `]`",
    ),
];

/// Reports the first of each line that the parser finds wrong, of a table that is there twice without its keys. Behind a bracket or a
/// quote that is not closed nothing is told, as it is read as part of it.
pub(super) fn report(text: &str, errors: &[toml::de::Error], diagnostics: &mut Diagnostics) {
    let open = unclosed(text, None);
    let until = (open.as_ref()).map_or(usize::MAX, |it| line_of(text, it.span.start).start);
    let mut spans: Vec<_> = errors
        .iter()
        .map(|it| (it.span().unwrap_or_default(), it.message().trim()))
        .collect();
    spans.sort_by_key(|it| it.0.start);
    let mut told = 0;
    for (mut span, mut message) in spans {
        let line = line_of(text, span.start);
        // Numbers side by side in a list are read as one text.
        let words = text.get(span.clone()).unwrap_or_default();
        let before = &text[line.start..span.start];
        let is_listed = before.rfind('[') > before.rfind(']') || !before.contains('=');
        let are_numbers =
            words.contains(' ') && words.split(' ').all(|it| it.parse::<f64>().is_ok());
        if message.starts_with("string values") && is_listed && are_numbers {
            message = "missing comma between array elements";
            span.start += words.find(' ').unwrap_or(0);
        }
        if message.starts_with("missing comma") {
            span = behind_last(text, span.start);
        }
        if (told..until).contains(&span.start) && diagnostics.is_full(Severity::Error) {
            told = line.end;
            diagnostics.push(Diagnostic::error(span, message));
        } else if (told..until).contains(&span.start) {
            let line = line_of(text, span.start);
            let is_table = message == TWICE && text[line.clone()].trim_start().starts_with('[');
            let is_cascade = || message == TWICE && header_missing(text, &span).is_some();
            let next = (text[line.end..].find("\n[")).filter(|_| is_table || is_cascade());
            told = line.end + next.unwrap_or(0) + 1;
            // Of a list it is the one in single brackets that is wrong.
            let again = text.get(span.clone()).unwrap_or_default();
            if is_table
                && ["variant", "pair"].contains(&again)
                && let Some(at) = text.find(&format!("\n[{again}]"))
            {
                span = at + 2..at + 2 + again.len();
            }
            let line = line_of(text, span.start);
            diagnostics.push(one(text, span, line, message));
        }
    }
    open.into_iter().for_each(|it| diagnostics.push(it));
}

/// Behind what stands last before a byte, a comment apart.
fn behind_last(text: &str, at: usize) -> Range<usize> {
    let end = text[..at].trim_end().len();
    let line = line_of(text, end).start;
    let code = text[line..end].split(" #").next().unwrap_or_default();
    let end = line + code.trim_end().len();
    end..end
}

/// The line that a byte is in.
fn line_of(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |it| it + 1);
    start..text[at..].find('\n').map_or(text.len(), |it| at + it)
}

/// A bracket or a quote that is not closed, or closes nothing, as if the byte `without` were not there.
fn unclosed(text: &str, without: Option<usize>) -> Option<Diagnostic> {
    let mut open: Vec<(usize, char)> = Vec::new();
    let not_closed = |(at, bracket): (usize, char)| {
        Diagnostic::error(at..at + 1, format!("this `{bracket}` is not closed"))
    };
    let closes_nothing = |at: usize, bracket: char| {
        let message = format!("nothing is open that this `{bracket}` closes");
        Some(Diagnostic::error(at..at + 1, message).help("take it out"))
    };
    let mut at = 0;
    while let Some(it) = text[at..].chars().next() {
        let mut length = it.len_utf8();
        match (it, open.last().copied()) {
            _ if without == Some(at) => {}
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
            (']' | '}', Some(_)) if without.is_none() && unclosed(text, Some(at)).is_none() => {
                return closes_nothing(at, it);
            }
            (']' | '}', Some(last)) => {
                let other = if it == ']' { '}' } else { ']' };
                let label = format!("a `{other}` is missing before this");
                return Some(not_closed(last).related(at..at + 1, label));
            }
            (']' | '}', None) => return closes_nothing(at, it),
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

/// Where a key or a table that is there twice is first.
fn first_of(text: &str, span: &Range<usize>) -> Option<Range<usize>> {
    let (key, before) = (&text[span.clone()], &text[..span.start]);
    let lead = &before[line_of(text, span.start).start..];
    let (from, first) = match lead {
        _ if lead.starts_with('[') => (0, format!("\n{lead}{key}")),
        _ if lead.contains('{') => (before.rfind('{')?, format!(" {key} =")),
        _ => (before.rfind("\n[").unwrap_or(0), format!("\n{key} =")),
    };
    let at = from + before[from..].find(&first)? + first.rfind(key)?;
    Some(at..at + key.len())
}

/// What helps where the keys of a second table stand in the one before, as its header is missing.
fn header_missing(text: &str, span: &Range<usize>) -> Option<String> {
    let table = &text[text[..span.start].rfind("\n[")? + 1..span.start];
    if table.starts_with("[[variant]]") && &text[span.clone()] == "name" {
        return Some("is `[[variant]]` missing before this?".to_owned());
    }
    let mut keys = ["file", "entry"].into_iter();
    let key = keys.find(|it| table.contains(&format!("\n{it} =")))?;
    let is_buffer = table.starts_with("[buffers.");
    is_buffer.then(|| format!("is `[kernels.NAME]` missing before `{key}`?"))
}

/// What the parser says in words and with a cure, where there is one.
fn one(text: &str, span: Range<usize>, line: Range<usize>, message: &str) -> Diagnostic {
    let whole = &text[line.clone()];
    let (before, behind) = whole.split_at(span.start - line.start);
    let (key, value) = whole.split_once('=').unwrap_or((before, behind));
    let (key, value) = (
        key.trim(),
        value.split(" #").next().unwrap_or_default().trim(),
    );
    let section = whole.trim_start_matches([' ', '[']);
    let section = section.split(']').next().unwrap_or_default();
    let cure = match message {
        TWICE if matches!(section, "variant" | "pair") => {
            format!("write [[{section}]], with two brackets, for each")
        }
        TWICE => header_missing(text, &span).unwrap_or_else(|| "take one out".to_owned()),
        it if it.starts_with("string values must be quoted") => match value {
            it if it.contains("//") => "a comment begins with `#`".to_owned(),
            it if it.ends_with(';') => "leave out the `;`".to_owned(),
            _ if before.contains('{') && before.trim_end().ends_with('=') => {
                let key = before.trim_end().trim_end_matches('=').trim_end();
                let key = key.rsplit([' ', '{']).next().unwrap_or_default();
                let value = behind.split([',', '}']).next().unwrap_or_default();
                format!("write {key} = \"{}\"", value.trim())
            }
            it if it.contains(" = ") => "each key has a line, or a `,` before it".to_owned(),
            it => format!(
                "write {key} = \"{}\"",
                it.trim_matches(['“', '”', '„', '‘', '’'])
            ),
        },
        it if it.starts_with("key with no value") && !whole.contains('=') => {
            format!("write {key} = {value}")
        }
        it => {
            let known = CURES.iter().find(|(says, _)| it.starts_with(says));
            known.map_or_else(String::new, |(_, cure)| (*cure).to_owned())
        }
    };
    let is_known = !cure.is_empty();
    let words = match (message, message.split_once(", expected")) {
        (TWICE, _) => format!("{} is there twice", quoted(&text[span.clone()])),
        (_, Some((words, _))) if is_known => words.to_owned(),
        _ => message.to_owned(),
    };
    let is_twice = message == TWICE && !cure.starts_with("write");
    let first = is_twice.then(|| first_of(text, &span)).flatten();
    let first = first.map(|span| Related {
        span,
        label: "the first one".to_owned(),
    });
    Diagnostic {
        line: u32::from(span.is_empty() && span.start == 0),
        column: 1,
        help: is_known.then_some(cure),
        related: first.into_iter().collect(),
        ..Diagnostic::error(span, words)
    }
}
