//! Events that differ from an earlier one in their values only.
//!
//! A profiler writes all events of a kind alike. A template keeps the text between the values of one. Of the next event
//! only the values are read; the text between them is compared.

use std::borrow::Cow;

use super::{Mark, Reader, ValueKind};
use crate::kineto::event::{Event, EventKey, Text};

/// Kinds of events that it keeps; a profiler has about a dozen.
const KINDS_MAX: usize = 24;

/// The kinds of events so far.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    kinds: Vec<Template>,
}

/// The common text of all events of a kind.
#[derive(Debug)]
struct Template {
    phase: String,
    category: String,
    /// Values, each with the text before it.
    values: Vec<(Box<[u8]>, ValueKind)>,
    /// The text behind the last one.
    end: Box<[u8]>,
}

impl Templates {
    /// Reads the event that a text begins with, and returns it with its length; `None` for one that is not of the common
    /// shape.
    pub(crate) fn event<'a>(&'a mut self, text: &'a [u8]) -> Option<(Event<'a>, usize)> {
        // The search comes before the reading: values read in vain would have to be dropped.
        let mut event = Event::default();
        let mut is_clean = true;
        let mut found = None;
        for (index, kind) in self.kinds.iter().enumerate() {
            if kind.begins(text) {
                if !is_clean {
                    event = Event::default();
                }
                if let Some(length) = kind.read(text, &mut event) {
                    found = Some((index, length));
                    break;
                }
                is_clean = false;
            }
        }
        if let Some((index, length)) = found {
            let kind = &self.kinds[index];
            event.phase = Text(Cow::Borrowed(&kind.phase));
            event.category = Text(Cow::Borrowed(&kind.category));
            return Some((event, length));
        }
        let mut event = Event::default();
        if self.kinds.len() == KINDS_MAX {
            let length = super::event(text, &mut event, |_| {})?;
            return Some((event, length));
        }
        let mut marks = Vec::new();
        let length = super::event(text, &mut event, |mark| marks.push(mark))?;
        self.kinds
            .push(Template::of(&text[..length], &event, marks));
        Some((event, length))
    }
}

impl Template {
    fn of(text: &[u8], event: &Event<'_>, marks: Vec<Mark>) -> Template {
        let mut values = Vec::new();
        let mut from = 0;
        for (range, part) in marks {
            // These two are the same for all events of a kind, and tell kinds apart.
            if !matches!(part, ValueKind::Own(EventKey::Phase | EventKey::Category)) {
                values.push((text[from..range.start].into(), part));
                from = range.end;
            }
        }
        Template {
            phase: event.phase.0.to_string(),
            category: event.category.0.to_string(),
            values,
            end: text[from..].into(),
        }
    }

    fn begins(&self, text: &[u8]) -> bool {
        let first = self.values.first().map_or(&self.end, |(before, _)| before);
        text.starts_with(first)
    }

    fn read<'a>(&self, text: &'a [u8], event: &mut Event<'a>) -> Option<usize> {
        let mut reader = Reader { text, at: 0 };
        for (before, part) in &self.values {
            reader.word(before)?;
            reader.part(*part, event)?;
        }
        reader.word(&self.end)?;
        Some(reader.at)
    }
}
