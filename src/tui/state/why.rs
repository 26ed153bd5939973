//! Why the selected gap is there: one answer, for the details and for what stands in the gap itself.

use super::analyst::Question;
use super::idle::Basis;
use super::model::Model;
use super::{Item, RowKind, Selection};
use activity::Span;
use activity::feed::Stop;
use advice::Facts;
use causes::Explanation;
use trace::{LaneId, Trace};

/// What is asked of the gap that was selected last, and the answer.
#[derive(Debug, Default)]
pub struct Why {
    pub(super) question: Question<(RowKind, Span), Explanation>,
}

impl Why {
    /// Asks why the selected gap is there, of all its device's streams or of its own alone.
    pub(super) fn prepare(&mut self, model: &Model, selected: Selection) {
        let (Some(kind), Item::Gap(gap)) = (selected.row, selected.item) else {
            return;
        };
        let run = &model.run;
        let basis = Basis::of(run, &model.answers.facts, gap);
        let lanes: Vec<LaneId> = match (kind, kind.device()) {
            (RowKind::Stream(id), _) => vec![id],
            (_, Some(device)) => run.trace.streams_of(device).map(|it| it.0).collect(),
            _ => return,
        };
        let why = move |trace: &Trace, _: &Stop| {
            // What still grows is looked at around the gap alone.
            let facts = basis.facts(trace);
            let known = facts.as_ref().map(Facts::causes);
            causes::explain(trace, known.as_ref(), &lanes, gap)
        };
        let about = (kind, gap);
        self.question.light().ask(&model.analyst, run, about, why);
    }

    /// Goes up with every answer.
    pub fn version(&self) -> u64 {
        self.question.version
    }
}

impl super::State {
    /// Why the selected gap is there; `None` while that is looked for.
    pub fn why(&self) -> Option<&Explanation> {
        let selected = self.focus.selection;
        let about = (selected.row?, selected.item.span()?);
        self.focus.why.question.answer_to(&self.model.run, about)
    }
}
