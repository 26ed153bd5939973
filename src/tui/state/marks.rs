//! Two marks on the time axis, and what happened between them.

mod measured;

use std::sync::Arc;

use super::analyst::{Analyst, Question};
use super::idle::Basis;
use super::{Run, Selection};
use activity::Span;
use advice::facts::LastFacts;
pub use measured::{DeviceTimes, MeasuredStretch};

/// The marks, and what was measured between them.
#[derive(Debug, Default)]
pub struct Marks {
    /// What was marked: a moment, or an operation or a gap as a whole.
    first: Option<Span>,
    second: Option<Span>,
    /// What was selected when the second one was set: as long as it is, the details show what was measured.
    beside: Selection,
    question: Question<Span, MeasuredStretch>,
    /// Goes up with every change of what is drawn.
    pub version: u64,
}

impl Marks {
    /// Sets a mark: the first one, or the second one, which measures. A third one begins anew.
    pub fn set(&mut self, at: Span, selection: Selection) {
        self.version += 1;
        if self.first.is_some() && self.second.is_none() {
            self.second = Some(at);
            self.beside = selection;
        } else {
            (self.first, self.second) = (Some(at), None);
        }
    }

    /// Measures a stretch.
    pub fn measure(&mut self, span: Span, selection: Selection) {
        self.version += 1;
        self.first = Some(Span::at(span.start));
        self.second = Some(Span::at(span.end));
        self.beside = selection;
    }

    /// Takes them away. Returns whether there were any.
    pub fn clear(&mut self) -> bool {
        self.version += 1;
        self.second = None;
        self.first.take().is_some()
    }

    /// From the start of the earlier one to the end of the later one.
    pub fn span(&self) -> Option<Span> {
        let (first, second) = (self.first?, self.second?);
        Some(first.hull(second))
    }

    /// The mark that waits for its second.
    pub fn single(&self) -> Option<Span> {
        self.first.filter(|_| self.second.is_none())
    }

    /// Whether the details are about what was measured.
    pub fn is_in_details(&self, selection: Selection) -> bool {
        self.span().is_some() && self.beside == selection
    }

    /// Takes an answer that has come, and asks what is not known.
    pub fn prepare(&mut self, analyst: &Analyst, run: &Run, facts: &Arc<LastFacts>) {
        match self.span() {
            Some(span) if !span.is_empty() => {
                let basis = Basis::of(run, facts, span);
                let work = move |trace: &trace::Trace, stop: &_| {
                    MeasuredStretch::of(&basis, trace, span, stop)
                };
                self.question.light().ask(analyst, run, span, work);
            }
            _ => {}
        }
    }

    /// What was measured, as far as it is known.
    pub fn measured(&self, run: &Run) -> Option<&MeasuredStretch> {
        self.question.answer_to(run, self.span()?)
    }
}
