//! What is wrong with a scenario file, where, and what to do about it.
//!
//! Findings are collected, not thrown: one pass over a file reports all of them. Each looks like the compiler's own:
//! the line, the meant part underlined, and help below.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use activity::text::{counted, is_unprintable, listed, printable};
use serde::Serialize;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// How bad it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    #[default]
    Note,
    /// The scenario runs, but probably does not do what was meant.
    Warning,
    /// The scenario cannot run.
    Error,
}

/// Another place that belongs to a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Related {
    /// Bytes in the file.
    pub span: Range<usize>,
    /// What is there.
    pub label: String,
}

/// One thing that is wrong, or worth knowing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in one sentence without a full stop. Free of control characters.
    pub message: String,
    /// A few words for the underlined text; empty for none.
    pub label: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Bytes in the file. Empty where the command line is meant (`--set`).
    pub span: Range<usize>,
    /// Line, from 1; 0 where the command line is meant.
    pub line: u32,
    /// Column in characters, from 1; 0 where the command line is meant.
    pub column: u32,
    /// Other places that belong to it.
    pub related: Vec<Related>,
    /// Whether it is a race: what the scenario computes is not to be trusted.
    pub is_race: bool,
}

impl Diagnostic {
    /// A diagnostic about the bytes `span`; [`Diagnostics`] fills in line and column.
    pub fn new(severity: Severity, span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            severity,
            message: message.into(),
            span,
            ..Self::default()
        }
    }

    pub fn error(span: Range<usize>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, span, message)
    }

    pub fn warning(span: Range<usize>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, span, message)
    }

    /// Says what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// As [`Self::help`], when there is any.
    pub fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }

    /// Names the underlined text.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Points at another place, if it is one.
    pub fn related(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        if span != self.span {
            let label = label.into();
            self.related.push(Related { span, label });
        }
        self
    }
}

/// What stands at further places of a mistake, and how many of them are shown.
const ELSEWHERE: &str = "and here";
const PLACES_MAX: usize = 5;

/// Errors, warnings and notes kept of one file; what comes after them is counted.
const MAX_ITEMS: usize = 50;

/// The diagnostics of one file.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    /// The file's name as shown.
    name: String,
    text: Arc<str>,
    /// The same text as it is shown, of the same length in bytes.
    shown: Arc<str>,
    /// All there are.
    pub items: Vec<Diagnostic>,
    /// Notes, warnings and errors that were left out because there were so many.
    left_out: [usize; 3],
}

impl Diagnostics {
    /// None yet, for a file of this name and text.
    pub fn new(name: &str, text: Arc<str>) -> Self {
        Self {
            name: printable(name),
            shown: harmless(&text),
            text,
            items: Vec::new(),
            left_out: [0; 3],
        }
    }

    /// Adds one, unless the same place already has one as bad. The iterations of a loop, the variants and the values of
    /// a sweep all read the same text.
    pub fn push(&mut self, mut item: Diagnostic) {
        item.message = printable(&item.message);
        item.label = printable(&item.label);
        item.help = item.help.as_deref().map(printable);
        item.span = self.inside(item.span);
        for related in &mut item.related {
            related.label = printable(&related.label);
            related.span = self.inside(related.span.clone());
        }
        let is_elsewhere = |it: &Related| it.label == ELSEWHERE && it.span == item.span;
        let is_known = self.items.iter().any(|known| {
            known.related.iter().any(is_elsewhere)
                || known.span == item.span
                    && known.severity >= item.severity
                    && (known.message == item.message
                        || (!item.span.is_empty() && known.severity == Severity::Error))
        });
        if is_known {
            return;
        }
        // The same mistake elsewhere is one mistake, as long as its places are on one screen.
        let is_like = |known: &&mut Diagnostic| {
            (&known.message, &known.help, known.severity)
                == (&item.message, &item.help, Severity::Error)
        };
        if let Some(known) = self.items.iter_mut().find(is_like)
            && !item.span.is_empty()
        {
            let places = known.related.iter().filter(|it| it.label == ELSEWHERE);
            if places.count() < PLACES_MAX {
                known.related.push(Related {
                    span: item.span,
                    label: ELSEWHERE.to_owned(),
                });
            }
            return;
        }
        if self.is_full(item.severity) {
            self.left_out[item.severity as usize] += 1;
            return;
        }
        if item.line == 0 && !(item.span.is_empty() && item.span.start == 0) {
            (item.line, item.column) = line_and_column(&self.text, item.span.start);
        }
        self.items.push(item);
    }

    /// What the author wrote there.
    pub(super) fn written(&self, span: Range<usize>) -> &str {
        &self.text[self.inside(span)]
    }

    /// Whether further ones of a severity are only counted.
    pub(super) fn is_full(&self, severity: Severity) -> bool {
        let such = self.items.iter().filter(|it| it.severity == severity);
        such.count() >= MAX_ITEMS
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many there are of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.items.iter().filter(|i| i.severity == severity).count()
            + self.left_out[severity as usize]
    }

    /// Whether any is an error.
    pub fn has_errors(&self) -> bool {
        self.items.iter().any(|i| i.severity == Severity::Error)
    }

    /// Puts them in the file's order.
    pub(super) fn sort(&mut self) {
        self.items.sort_by_key(|item| (item.span.start, item.line));
    }

    /// Text for people, with ANSI colours or without. Ends with a newline unless it is empty.
    pub fn render(&self, color: bool) -> String {
        let texts = self.rendered(color);
        let mut out: String = texts.map(|(_, it)| it + "\n\n").collect();
        for line in self.more() {
            let _ = writeln!(out, "{line}\n");
        }
        out.pop();
        out
    }

    /// How many are not shown, a line for each severity.
    fn more(&self) -> impl Iterator<Item = String> {
        let [notes, warnings, errors] = self.left_out;
        let all = [(errors, "error"), (warnings, "warning"), (notes, "note")];
        let all = all.into_iter().filter(|it| it.0 > 0);
        all.map(|(more, what)| {
            format!(
                "{} not shown",
                counted(
                    more as u64,
                    &format!("more {what} is"),
                    &format!("more {what}s are")
                )
            )
        })
    }

    /// A line for each: "mine.toml:24:1: error: there is no buffer `x` (did you mean `y`?)".
    pub fn short(&self) -> String {
        let line = |it: &Diagnostic| {
            let severity = format!("{:?}", it.severity).to_lowercase();
            let help = it.help.as_ref().map(|it| format!(" ({it})"));
            let (name, line, column) = (&self.name, it.line, it.column);
            let help = help.unwrap_or_default();
            format!("{name}:{line}:{column}: {severity}: {}{help}\n", it.message)
        };
        let more = self.more().map(|it| format!("{}: {it}\n", self.name));
        self.items.iter().map(line).chain(more).collect()
    }

    /// Each of them with its text for people, without colours.
    pub fn each(&self) -> impl Iterator<Item = (&Diagnostic, String)> {
        self.rendered(false)
    }

    fn rendered(&self, color: bool) -> impl Iterator<Item = (&Diagnostic, String)> {
        let [plain, styled] = [Renderer::plain(), Renderer::styled()];
        let renderer = if color { styled } else { plain }.term_width(100);
        let render = move |item| (item, renderer.render(&[self.group(item)]));
        self.items.iter().map(render)
    }

    fn group<'a>(&'a self, item: &'a Diagnostic) -> Group<'a> {
        let level = match item.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let mut group = level
            .primary_title(item.message.as_str())
            .elements((item.line > 0).then(|| {
                let label = (!item.label.is_empty()).then_some(item.label.as_str());
                Snippet::source(&*self.shown)
                    .path(self.name.as_str())
                    .annotation(AnnotationKind::Primary.span(item.span.clone()).label(label))
                    .annotations(item.related.iter().map(|related| {
                        AnnotationKind::Context
                            .span(related.span.clone())
                            .label(related.label.as_str())
                    }))
            }));
        if let Some(help) = &item.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        group
    }

    /// A span that lies in the text, on character boundaries.
    fn inside(&self, span: Range<usize>) -> Range<usize> {
        let start = self.text.floor_char_boundary(span.start);
        start..self.text.ceil_char_boundary(span.end.max(start))
    }
}

/// A file's text without what a terminal obeys or hides beyond ASCII. Each character keeps its length in bytes, so that
/// every place stays where it is. The renderer writes out ASCII controls, and some of the others.
fn harmless(text: &Arc<str>) -> Arc<str> {
    let is_meant = |c: char| !c.is_ascii() && is_unprintable(c);
    if !text.contains(is_meant) {
        return Arc::clone(text);
    }
    let shown = text.chars().map(|c| match c.len_utf8() {
        _ if !is_meant(c) => c,
        2 => '\u{b7}',
        3 => char::REPLACEMENT_CHARACTER,
        _ => '\u{1fbc4}',
    });
    shown.collect::<String>().into()
}

/// Line and column (in characters), from 1, of a byte in a text.
pub fn line_and_column(text: &str, at: usize) -> (u32, u32) {
    let before = &text[..text.floor_char_boundary(at)];
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before[start..].chars().count() + 1;
    (
        u32::try_from(line).unwrap_or(u32::MAX),
        u32::try_from(column).unwrap_or(u32::MAX),
    )
}

/// A piece of the file for a message: short, in backticks.
pub(super) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        format!("`{text}`")
    } else {
        let head: String = text.chars().take(LONGEST - 1).collect();
        format!("`{head}…`")
    }
}

/// "did you mean `x`?", when one of the candidates is close.
pub fn did_you_mean<'a>(
    wrong: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    closest(wrong, candidates).map(|name| format!("did you mean {}?", quoted(name)))
}

/// What to write in the place of an unknown name: the one that is close, or all known ones behind `lead`.
pub(super) fn instead<'a>(
    wrong: &str,
    lead: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> String {
    did_you_mean(wrong, known.clone()).unwrap_or_else(|| format!("{lead} {}", list(known)))
}

/// The candidate that a misspelt name most likely meant.
pub(super) fn closest<'a>(
    wrong: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // strsim is quadratic in the lengths; no name that anyone meant is that long.
    if wrong.len() > 100 {
        return None;
    }
    let folded = wrong.to_lowercase();
    let length = wrong.chars().count();
    let allowed = (length / 3).max(usize::from(length > 1));
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= 100 && *candidate != wrong)
        .map(|candidate| {
            let other = candidate.to_lowercase();
            let distance = strsim::damerau_levenshtein(&folded, &other);
            let is_longer = other.len() != folded.len();
            let similarity = strsim::jaro_winkler(&folded, &other);
            ((distance, is_longer), similarity, candidate)
        })
        .filter(|(distance, similarity, _)| distance.0 <= allowed || *similarity > 0.9)
        .min_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)))
        .map(|(_, _, candidate)| candidate)
}

/// Names for a message: "`a`, `b` and `c`", the first few of many.
pub(super) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MOST: usize = 12;
    let names: Vec<&str> = names.into_iter().collect();
    // One more takes as much room as its number.
    let most = MOST + usize::from(names.len() == MOST + 1);
    let shown: Vec<String> = names.iter().take(most).map(|name| quoted(name)).collect();
    match names.len() {
        0 => "none".to_owned(),
        count if count > most => format!("{} and {} more", shown.join(", "), count - most),
        _ => listed(&shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_more_is_told_and_several_are_counted() {
        let told = |count| list(["x"; 14].into_iter().take(count));
        assert!(told(13).ends_with(" and `x`"), "{}", told(13));
        assert!(told(14).ends_with("`x` and 2 more"), "{}", told(14));
    }

    /// Warnings took the room of errors, and were counted as such.
    #[test]
    fn what_is_left_out_is_counted_by_its_severity() {
        let text = "x\n".repeat(99);
        let mut found = Diagnostics::new("x.toml", (&*text).into());
        for at in 0..60 {
            found.push(Diagnostic::warning(2 * at..2 * at + 1, format!("w{at}")));
        }
        found.push(Diagnostic::error(190..191, "the error"));
        let counts = [Severity::Error, Severity::Warning].map(|it| found.count(it));
        assert_eq!((counts, found.has_errors()), ([1, 60], true));
        let short = found.short();
        assert!(short.contains("error: the error\n"), "{short}");
        let last = "x.toml: 10 more warnings are not shown\n";
        assert!(short.ends_with(last), "{short}");
        assert!(
            found
                .render(false)
                .contains("\n10 more warnings are not shown\n")
        );
    }

    #[test]
    fn what_steers_a_terminal_is_not_shown_and_places_stay() {
        // C0, C1 (two bytes), a bidirectional mark (three), a tag (four).
        let text = "a = 1 # \u{1b}[2J \u{9b}31m \u{85} \u{202e} \u{2028} \u{e0041} é\nb = ?\n";
        let mut found = Diagnostics::new("x.toml", text.into());
        let at = text.find('\u{e0041}').expect("it is there") + 5;
        found.push(Diagnostic::error(at..at + 2, "of the first line").label("here"));
        let at = text.find('?').expect("it is there");
        found.push(Diagnostic::error(at..at + 1, "of the second"));
        let shown = found.render(false);
        let steers = |c: char| c != '\n' && is_unprintable(c);
        assert!(!shown.contains(steers), "{shown:?}");
        // The underlined letter is the one that was meant.
        let lines: Vec<&str> = shown.lines().collect();
        let line = lines.iter().position(|it| it.contains('é')).expect("shown");
        let column = |text: &str, sign| text.chars().position(|c| c == sign);
        assert_eq!(
            column(lines[line], 'é'),
            column(lines[line + 1], '^'),
            "{shown}"
        );
        assert_eq!(found.items[1].line, 2);
    }
}
