//! A run as one HTML file: its report, a picture of the opened window, and its timeline to move about in.
//!
//! It opens from a disk and asks for nothing. Its own policy (`Content-Security-Policy`) lets one script and its styles run, which it
//! names by their hashes. Without scripts, report and picture stay. Names of traces stand in it as text, escaped, or compressed within
//! the timeline's data.
//!
//! The data is gzip in base64. It begins with the length of a head (4 bytes, little endian) and the head (JSON: [`Head`]). The marks of
//! each row follow, three numbers in LEB128 each. These are the begin, in ns since the mark before; the length in ns; and which of
//! `Head::looks` it has.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::screen::escaped;
use activity::Span;
use activity::text::printable;

/// What moves and draws the timeline.
const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

/// What a mark looks like and is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Look {
    /// Its name in a bar.
    pub short: String,
    /// Its whole name; empty where that is the same.
    pub whole: String,
    /// Colours on dark and on light ground, as 0xRRGGBB.
    pub colors: [u32; 2],
}

/// A bar of a row.
#[derive(Clone, Copy, Debug)]
pub struct PageMark {
    pub span: Span,
    /// Index into [`Timeline::looks`].
    pub look: u32,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PageRowKind {
    /// A heading of the rows below.
    Title,
    /// A GPU: busy where no mark says why it is idle.
    Gpu,
    /// Operations of a stream.
    Stream,
    /// Calls and ranges of a thread.
    Host,
}

/// A row of the timeline.
#[derive(Clone, Debug)]
pub struct PageRow {
    pub kind: PageRowKind,
    pub label: String,
    /// From its first operation to its last, of a GPU.
    pub used: Option<Span>,
    /// By begin.
    pub marks: Vec<PageMark>,
}

/// A step in the strip above the timeline.
#[derive(Clone, Copy, Debug)]
pub struct PageStep {
    pub span: Span,
    /// Longer than others of its kind.
    pub is_odd: bool,
}

/// A timeline to move about in.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    pub extent: Span,
    /// What is shown first.
    pub opened: Span,
    pub steps: Vec<PageStep>,
    pub looks: Vec<Look>,
    pub rows: Vec<PageRow>,
    /// Calls and ranges that are too short to be in it.
    pub left_out: usize,
    /// What its times are rounded down to, ns.
    pub unit: i64,
}

/// All that a page shows.
#[derive(Debug)]
pub struct TracePage<'a> {
    pub title: &'a str,
    /// The report, as Markdown.
    pub report: &'a str,
    /// The screen with the opened window.
    pub picture: &'a str,
    pub timeline: &'a Timeline,
}

/// What stands before the marks. Times are ns since the timeline's begin, those of marks in `unit`.
#[derive(Serialize)]
struct Head<'a> {
    length: i64,
    opened: [i64; 2],
    /// Begin, length, and whether it is odd.
    steps: Vec<(i64, i64, bool)>,
    looks: &'a [Look],
    rows: Vec<HeadRow<'a>>,
    left_out: usize,
    unit: i64,
}

#[derive(Serialize)]
struct HeadRow<'a> {
    kind: PageRowKind,
    label: &'a str,
    marks: usize,
    used: Option<[i64; 2]>,
}

impl TracePage<'_> {
    /// Writes it.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (title, report) = (escaped(&printable(self.title)), self.report_html());
        // What runs and what bounds it stands above the timeline, all else below it.
        let second = report
            .match_indices("<h3>")
            .nth(1)
            .map_or(report.len(), |(at, _)| at);
        let (summary, report) = report.split_at(second);
        let hashes = [SCRIPT, STYLE, between(self.picture, "<style>", "</style>")].map(hash);
        let [script, style, of_picture] = hashes;
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '{script}'; style-src '{style}' '{of_picture}'; \
             base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\n<style>{STYLE}</style></head><body><main>\n\
             <header>{summary}</header>\n<section id=\"timeline\" hidden><input id=\"find\" type=\"search\" placeholder=\"find a name\" \
             aria-label=\"find a name\"><output id=\"said\"></output>\n<canvas id=\"plot\" tabindex=\"0\" role=\"img\" \
             aria-label=\"The timeline. Its figures stand in the tables below.\"></canvas>\n<p id=\"keys\"></p></section>\n\
             <figure id=\"picture\">{picture}</figure>\n<article>{report}</article></main>\n\
             <script type=\"application/octet-stream\" id=\"data\">",
            picture = self.picture
        )?;
        out.write_all(STANDARD.encode(self.timeline.data()?).as_bytes())?;
        writeln!(out, "</script>\n<script>{SCRIPT}</script></body></html>")
    }

    /// The report's headings, lists and tables. Nothing in it is taken for markup, and nothing leads anywhere.
    fn report_html(&self) -> String {
        let events =
            Parser::new_ext(self.report, Options::ENABLE_TABLES).filter_map(|event| match event {
                Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
                // What keeps a comment from calling people and pages by name does nothing here, and nothing hidden stands in a page.
                Event::Text(text) if &*text == "\u{200b}" => None,
                Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::HtmlBlock)
                | Event::End(TagEnd::Link | TagEnd::Image | TagEnd::HtmlBlock) => None,
                event => Some(event),
            });
        let mut text = String::new();
        html::push_html(&mut text, events);
        // The policy lets no attribute set a style. Texts have no such quotes.
        text.replace("style=\"text-align: right\"", "class=\"figure\"")
    }
}

impl Timeline {
    fn data(&self) -> io::Result<Vec<u8>> {
        let from = |span: Span| [span.start - self.extent.start, span.len()];
        let head = Head {
            length: self.extent.len(),
            opened: from(self.opened),
            steps: self
                .steps
                .iter()
                .map(|it| (it.span.start - self.extent.start, it.span.len(), it.is_odd))
                .collect(),
            looks: &self.looks,
            rows: self
                .rows
                .iter()
                .map(|row| HeadRow {
                    kind: row.kind,
                    label: &row.label,
                    marks: row.marks.len(),
                    used: row.used.map(from),
                })
                .collect(),
            left_out: self.left_out,
            unit: self.unit.max(1),
        };
        let unit = head.unit;
        let head = serde_json::to_vec(&head)?;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(
            &u32::try_from(head.len())
                .map_err(io::Error::other)?
                .to_le_bytes(),
        )?;
        gzip.write_all(&head)?;
        let mut bytes = Vec::new();
        for row in &self.rows {
            // Numbers of one kind behind each other are packed smaller.
            let mut before = 0;
            for mark in &row.marks {
                let start = (mark.span.start - self.extent.start) / unit;
                leb128(&mut bytes, start.abs_diff(before));
                before = start;
            }
            for mark in &row.marks {
                leb128(&mut bytes, (mark.span.len() / unit).unsigned_abs());
            }
            for mark in &row.marks {
                leb128(&mut bytes, u64::from(mark.look));
            }
            gzip.write_all(&bytes)?;
            bytes.clear();
        }
        gzip.finish()
    }
}

/// <https://en.wikipedia.org/wiki/LEB128>, unsigned.
fn leb128(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// As a policy names the text of a script or a style: <https://www.w3.org/TR/CSP3/#grammardef-hash-source>.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let rest = text.split_once(from).map_or("", |(_, rest)| rest);
    rest.split_once(to).map_or("", |(inner, _)| inner)
}

#[cfg(test)]
mod tests;
