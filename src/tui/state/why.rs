//! Why the selected gap is there: one answer, for the details and for what stands in the gap itself.

use super::analyst::Question;
use super::idle::Basis;
use super::model::Model;
use super::{Item, RowKind, Selection, prediction};
use activity::Span;
use activity::feed::Stop;
use activity::text::printable;
use advice::Facts;
use causes::Explanation;
use findings::Finding;
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

    /// Which finding tells of a gap, where that is not the one that the headline ends with.
    pub fn told_by(&self, gap: Span) -> Option<(usize, &Finding)> {
        let (why, answer) = (self.why()?, self.answer()?);
        let (headline, found) = (answer.verdicts.first()?, &answer.findings);
        // It lists the longest ones only; others have its cause.
        let is_shown = |it: &Finding| it.evidence.iter().any(|it| it.span.overlaps(gap));
        let is_alike = |it: &Finding| it.title.starts_with(why.label());
        let first = found.get(prediction::told(headline, found)?)?;
        let of_gap = |it: &Finding| is_shown(it) || is_alike(it);
        let others = || found.iter().position(|it| !it.is_of_start_up && of_gap(it));
        let at = (!of_gap(first)).then(others).flatten()?;
        Some((at, &found[at]))
    }

    /// That finding, and what to do: with the call to change one sentence says why.
    pub fn cure_of(&self, gap: Span) -> Option<[String; 2]> {
        let (at, found) = self.told_by(gap)?;
        let why = found.advice.split_inclusive(". ").next()?;
        let change = found.change.first();
        let told = change.map(|it| format!("{} → {it}", why.trim_end()));
        let told = told.as_ref().unwrap_or(&found.advice);
        Some([format!("see finding {}", at + 1), printable(told)])
    }
}
