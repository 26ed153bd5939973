//! What makes the picture untrue or unwanted, until it is mended: said in every view.

use super::answers::Answers;
use super::messages::Messages;
use super::{Run, Scope};
use crate::report::{Checked, recording};
use activity::feed::SourceStatus;
use activity::text::printable;
use activity::units;
use findings::Rule;

/// How bad it is; the worst stands first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// What is shown is not what it seems.
    Wrong,
    /// The run is not what it should be.
    Failed,
    /// Worth knowing of whatever is shown.
    Note,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub weight: Weight,
    /// In a sentence without a full stop.
    pub text: String,
    /// Where it is in a scenario, and what cures it, laid out.
    pub lines: Vec<String>,
}

impl Trouble {
    fn new(weight: Weight, text: impl Into<String>) -> Self {
        let (text, lines) = (text.into(), Vec::new());
        Trouble {
            weight,
            text,
            lines,
        }
    }
}

/// All there is, the worst first.
pub fn find(run: &Run, messages: &Messages, answers: &Answers, scope: Scope) -> Vec<Trouble> {
    let mut troubles = Vec::new();
    if run.is_none() {
        return troubles;
    }
    if let Some(broken) = &messages.broken {
        troubles.push(Trouble::new(Weight::Wrong, broken.clone()));
    }
    troubles.extend(races(run, messages, answers, scope));
    troubles.extend(run.standing.iter().map(standing));
    troubles.extend(run.checked.iter().filter(|c| !c.ok).map(unmet));
    let health = run.trace.health();
    if health.losses() > 0 {
        let lost = units::count(health.losses());
        let text = format!(
            "{lost} records are lost: figures and gaps may be wrong where they are missing"
        );
        troubles.push(Trouble::new(Weight::Note, text));
    }
    let found = answers.get(run, scope).into_iter();
    let mut found = found.flat_map(|it| &it.findings);
    let lost = found.find(|finding| finding.rule == Rule::LostRecords);
    let has_lost = lost.is_some();
    troubles.extend(lost.map(|it| Trouble {
        lines: vec![printable(&it.advice)],
        ..Trouble::new(Weight::Note, printable(&it.title))
    }));
    let missing = answers.get(run, scope).map_or(0, |it| it.missing);
    if missing > 0 && !has_lost {
        let idle = units::duration(missing);
        let text = format!(
            "some launches left no record: for {idle} the GPU looks idle and may have worked"
        );
        troubles.push(Trouble::new(Weight::Note, text));
    }
    let gaps = recording::find(&run.trace).into_iter();
    troubles.extend(gaps.map(|it| Trouble::new(Weight::Note, it.line())));
    let has_ended_badly = |p: &trace::Process| p.info.ended_well == Some(false);
    if run.trace.processes().iter().any(has_ended_badly) {
        let text = "INCOMPLETE: a process did not end well, what it did last may be missing";
        troubles.push(Trouble::new(Weight::Note, text));
    }
    if run.trace.source.simulated {
        let text = "SIMULATED: no GPU was involved, all times are those of a model";
        troubles.push(Trouble::new(Weight::Note, text));
    }
    troubles.sort_by_key(|t| t.weight);
    troubles
}

/// What the findings of the variant on screen say of races, else what was said when it was started.
fn races(run: &Run, messages: &Messages, answers: &Answers, scope: Scope) -> Vec<Trouble> {
    let found = answers.get(run, scope).into_iter();
    let found = found.flat_map(|it| &it.findings);
    let mut of_variant = found.filter(|finding| finding.rule == Rule::Race);
    let said = messages.races.iter();
    if let Some(finding) = of_variant.next() {
        let lines = said.flat_map(|race| &race[1..]);
        return vec![Trouble {
            lines: lines.chain(&messages.shown_races).cloned().collect(),
            ..Trouble::new(Weight::Wrong, printable(&finding.title))
        }];
    }
    let trouble = |race: &Vec<String>| Trouble {
        lines: race[1..].to_vec(),
        ..Trouble::new(Weight::Wrong, race[0].clone())
    };
    said.map(trouble).collect()
}

/// What the source waits for. It may have come out of a recording.
fn standing(it: &SourceStatus) -> Trouble {
    let weight = match it.is_alarming {
        true => Weight::Failed,
        false => Weight::Note,
    };
    let first = it.text.lines().next().unwrap_or_default();
    Trouble::new(weight, printable(first))
}

fn unmet(checked: &Checked) -> Trouble {
    let (what, expected) = (&checked.what, &checked.expected);
    let text = match &checked.why {
        Some(why) => format!("expected {what} {expected}: {why}"),
        None => format!(
            "expected {what} {expected}: it is {}{}",
            checked.shown, checked.at
        ),
    };
    let weight = match checked.not_judged {
        true => Weight::Note,
        false => Weight::Failed,
    };
    Trouble::new(weight, printable(&text))
}
