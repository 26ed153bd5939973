//! Text on its way to a reader: what is fit to be shown, how it is cut, wrapped and counted.
//!
//! Strings of traces, scenarios, programs and the system are hostile until [`printable`] has seen them. The trace store
//! does that as texts come in, so what comes out of it is fit for every view and export. Paths and messages never enter
//! the store: They pass here on their way to the terminal.

use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub use crate::entry::fingerprint;
pub use crate::units::count;

/// Columns that a name takes in a sentence at most: tuned libraries name a kernel's whole configuration, in 400 characters.
pub const NAME_MAX: usize = 48;

/// Whether a character can steer a terminal, reorder a line or hide in it: C0 and C1 controls, line and paragraph
/// separators, bidirectional marks and marks of annotations. So is what nobody sees by itself (Unicode's
/// `Default_Ignorable_Code_Point`: joiners, fillers, tags) or is no character for ever (which XML refuses).
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || c as u32 & 0xfffe == 0xfffe
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}'
            | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{fdd0}'..='\u{fdef}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// The text with its unprintable characters written out: "\n", "\u{1b}".
pub fn printable(text: &str) -> String {
    escaped(text, is_unprintable)
}

/// The same for a text of several lines, whose line ends stay.
pub fn printable_lines(text: &str) -> String {
    escaped(text, |c| c != '\n' && is_unprintable(c))
}

/// JSON with its unprintable characters as `\\uXXXX`, which is the same to whoever parses it.
pub fn plain_json(json: String) -> String {
    let is_hidden = |c: char| c != '\n' && is_unprintable(c);
    if !json.contains(is_hidden) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn escaped(text: &str, is_meant: impl Fn(char) -> bool) -> String {
    /// Marks on one character; Unicode's Stream-Safe Text Format has no more, and so has every language.
    const MARKS: usize = 30;
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut marks = 0;
    for c in text.chars() {
        marks = match c.width() {
            Some(0) => marks + 1,
            _ => 0,
        };
        if marks > MARKS || is_meant(c) {
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// At most `columns` of a text, with an ellipsis where its end was cut off.
pub fn cut(text: &str, columns: usize) -> String {
    match columns.checked_sub(1) {
        _ if text.width() <= columns => text.to_owned(),
        Some(room) => format!("{}…", head(text.chars(), room)),
        None => String::new(),
    }
}

/// At most `columns` of a text, with an ellipsis where its middle was cut out: for names that tell
/// themselves apart at both ends.
pub fn cut_middle(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let Some(room) = columns.checked_sub(1) else {
        return String::new();
    };
    let tail: String = head(text.chars().rev(), room / 3).chars().rev().collect();
    format!("{}…{tail}", head(text.chars(), room - room / 3))
}

/// A name in at most `columns`: its template arguments go before its middle does, as they tell least.
pub fn cut_name(name: &str, columns: usize) -> String {
    let bare = name.split_once('<').map_or(name, |it| it.0);
    match name.width() > columns && !bare.is_empty() {
        true => cut_middle(bare, columns),
        false => cut_middle(name, columns),
    }
}

/// A name in pieces of at most `columns`, broken between its words where that goes: "matmul_", "tiled".
pub fn pieces(text: &str, columns: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for c in text.chars() {
        let last = pieces.len() - 1;
        if !pieces[last].is_empty() && pieces[last].width() + c.width().unwrap_or(0) > columns {
            let joint = (pieces[last].char_indices().rev()).find(|&(at, before)| {
                is_joint(before, pieces[last][at..].chars().nth(1).unwrap_or(c))
            });
            let at = joint.map_or(pieces[last].len(), |(at, before)| at + before.len_utf8());
            let rest = pieces[last].split_off(at);
            pieces.push(rest);
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
}

/// The same, where no word of it is broken.
pub fn words(text: &str, columns: usize) -> Option<Vec<String>> {
    let pieces = pieces(text, columns);
    let ends = |two: &[String]| Some((two[0].chars().next_back()?, two[1].chars().next()?));
    let mut ends = pieces.windows(2).map(ends);
    ends.all(|it| it.is_some_and(|(before, after)| is_joint(before, after)))
        .then_some(pieces)
}

/// Whether a word of a name ends between two characters.
fn is_joint(before: char, after: char) -> bool {
    let is_place = before == ':' && after.is_ascii_digit();
    !before.is_alphanumeric() && !is_place || before.is_lowercase() && after.is_uppercase()
}

/// As many characters as fit.
fn head(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= columns
        })
        .collect()
}

/// Breaks a text into lines of at most `columns`, at spaces where it can. Line ends of the text stay.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for mut word in paragraph.split(' ') {
            if !line.is_empty() && line.width() + 1 + word.width() > columns {
                lines.push(std::mem::take(&mut line));
            }
            while word.width() > columns {
                let mut fitting = head(word.chars(), columns).len();
                if fitting == 0 {
                    // A character wider than the line, so that there is an end to it.
                    fitting = word.chars().next().map_or(0, char::len_utf8);
                }
                lines.push(word[..fitting].to_owned());
                word = &word[fitting..];
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

/// "a", "a and b", "a, b and c"; empty for none.
pub fn listed(parts: &[impl AsRef<str>]) -> String {
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    match parts.split_last() {
        Some((last, before @ [_, ..])) => format!("{} and {last}", before.join(", ")),
        _ => parts.concat(),
    }
}

/// "1 kernel", "8 kernels", "4,096 copies".
pub fn plural(n: u64, noun: &str) -> String {
    match noun.strip_suffix('y') {
        Some(stem) => counted(n, noun, &format!("{stem}ies")),
        None => counted(n, noun, &format!("{noun}s")),
    }
}

/// The same for words whose plural does not follow the rule: "2 waits of the host".
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_or_hides_is_written_out() {
        let hostile = [
            ('\u{1b}', "\\u{1b}"),
            ('\u{7}', "\\u{7}"),
            ('\u{7f}', "\\u{7f}"),
            ('\u{9b}', "\\u{9b}"),
            ('\u{200b}', "\\u{200b}"),
            ('\u{200f}', "\\u{200f}"),
            ('\u{2028}', "\\u{2028}"),
            ('\u{202e}', "\\u{202e}"),
            ('\u{2060}', "\\u{2060}"),
            ('\u{2064}', "\\u{2064}"),
            ('\u{2069}', "\\u{2069}"),
            ('\u{feff}', "\\u{feff}"),
            ('\u{61c}', "\\u{61c}"),
            ('\u{34f}', "\\u{34f}"),
            ('\u{3164}', "\\u{3164}"),
            ('\u{fe0f}', "\\u{fe0f}"),
            ('\u{1bca0}', "\\u{1bca0}"),
            ('\u{e0100}', "\\u{e0100}"),
            ('\u{fdd0}', "\\u{fdd0}"),
            ('\u{ffff}', "\\u{ffff}"),
            ('\u{1fffe}', "\\u{1fffe}"),
            ('\n', "\\n"),
        ];
        for (c, shown) in hostile {
            assert_eq!(printable(&format!("a{c}b")), format!("a{shown}b"));
        }
        for harmless in ["größe", "漢字", "µs → …", "a b"] {
            assert_eq!(printable(harmless), harmless);
        }
        assert_eq!(printable_lines("a\nb\u{1b}"), "a\nb\\u{1b}");
        // Within a string of JSON the value stays; a line end is between its parts.
        let json = "{\n\"größe\": \"a\u{9b}\u{202e}b\u{e0041} سلام שלום\"}".to_owned();
        let shown = plain_json(json);
        assert_eq!(
            shown,
            "{\n\"größe\": \"a\\u009b\\u202eb\\udb40\\udc41 سلام שלום\"}"
        );
        let marks = |n| "\u{301}".repeat(n);
        assert_eq!(printable(&marks(30)), marks(30));
        assert_eq!(printable(&marks(32)), marks(30) + r"\u{301}\u{301}");
    }

    #[test]
    fn texts_are_cut_by_columns() {
        assert_eq!(cut("matmul_tiled", 6), "matmu…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(cut_name("index_put<char*>", 16), "index_put<char*>");
        assert_eq!(cut_name("index_put<char*>", 9), "index_put");
        assert_eq!(cut_name("<lambda>", 7), cut_middle("<lambda>", 7));
        assert_eq!(cut_middle("abcdefgh", 8), "abcdefgh");
        assert_eq!(cut_middle("abcdefghi", 7), "abcd…hi");
        assert_eq!(cut_middle("漢字漢字漢字", 7).width(), 7);
        assert_eq!(pieces("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(pieces("漢字漢", 5), ["漢字", "漢"]);
        assert_eq!(pieces("ab", 0), ["a", "b"]);
        assert_eq!(pieces("matmul_tiled", 8), ["matmul_", "tiled"]);
        assert_eq!(
            words("StreamSync", 7),
            Some(vec!["Stream".to_owned(), "Sync".to_owned()])
        );
        assert_eq!(words("StreamSync", 5), None);
        assert_eq!(cut_middle("abc", 0), "");
        assert_eq!(cut_middle("abc", 1), "…");
    }

    #[test]
    fn texts_are_wrapped_at_spaces_where_that_goes() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap("a\n\nb", 4), ["a", "", "b"]);
        assert_eq!(wrap("漢字", 1), ["漢", "字", ""]);
        assert!(wrap("", 10).is_empty());
    }

    #[test]
    fn numbers_go_with_their_nouns() {
        assert_eq!(plural(1, "kernel"), "1 kernel");
        assert_eq!(plural(0, "kernel"), "0 kernels");
        assert_eq!(plural(4_096, "copy"), "4,096 copies");
        assert_eq!(
            counted(2, "wait of the host", "waits of the host"),
            "2 waits of the host"
        );
    }

    #[test]
    fn the_fingerprint_is_fnv1a() {
        // Test vectors of the FNV reference code.
        assert_eq!(fingerprint(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fingerprint(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
