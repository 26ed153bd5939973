//! The prediction that stands under the timeline, once a finding's was asked for.

use std::sync::Arc;

use super::analyst::{Analyst, Question};
use super::{Row, RowKind, Run, Scope};
use activity::units::{duration, percent};
use activity::{Ns, Span};
use advice::facts::LastFacts;
use advice::verdict::{Answered, Verdict};
use figures::steps;
use findings::{Finding, Predicted, Rule};
use replay::whatif::WhatIf;
use scenario::edit::EditSet;
use trace::{LaneKind, Trace, describe};

/// Which prediction: of what is in scope, the so many-th that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PredictionId {
    scope: Scope,
    number: u32,
}

/// What was asked for.
#[derive(Clone, Debug)]
struct EditKey {
    run: u64,
    about: PredictionId,
    cure: Cure,
    words: String,
}

/// How it is told what a cure brings.
#[derive(Clone, Debug)]
enum Cure {
    /// By a replay with this edit.
    Edit(EditSet),
    /// By a bound: what would be left, and what saved.
    Bound([Span; 2]),
}

/// A predicted timeline: asked for, awaited, shown.
#[derive(Debug, Default)]
pub struct Prediction {
    question: Question<PredictionId, Result<Trace, String>>,
    wanted: Option<EditKey>,
    number: u32,
}

/// What is predicted.
fn words(predicted: &Predicted, edit: &EditSet) -> String {
    format!(
        "predicted with {edit} (i closes): saves {} of {} (replay error {})",
        predicted.told(),
        duration(predicted.measured_ns),
        percent(predicted.replay_error)
    )
}

/// Why nothing of a finding is drawn in one step: that has nothing of the start-up, and is no mean of uneven steps.
pub fn why_not_in_step(finding: &Finding) -> Option<&'static str> {
    match finding.step {
        _ if finding.is_of_start_up => {
            Some("no prediction: the start-up is not in the step in view")
        }
        Some(of) if of.is_mean => Some("no prediction: steps are uneven, the saving is their mean"),
        _ => None,
    }
}

/// Why nothing can be drawn of a finding in what is in view.
pub fn why_not_drawn(finding: &Finding, in_step: bool) -> Option<&'static str> {
    match why_not_in_step(finding).filter(|_| in_step) {
        None if finding.predicted.is_some() || finding.has_bound() => None,
        None if finding.is_moved() => Some("no prediction: a warm-up saves the program no time"),
        None if finding.rule == Rule::OddSteps => {
            Some("no prediction: the saving is a mean over longer steps")
        }
        None if finding.is_no_matter_of_time() => {
            Some("no prediction: what this finding tells of costs no time")
        }
        None if finding.estimated.is_some() => Some(ESTIMATED),
        None => Some("no prediction: what this saves is not known"),
        reason => reason,
    }
}

/// Of what has an estimate, which no replay can draw.
const ESTIMATED: &str = "estimated by the card's rates, not replayed";

/// The same of the finding `at` a place in the list: which it is, and what is estimated of it.
pub fn says_why_not(at: usize, finding: &Finding, in_step: bool) -> Option<String> {
    let why = why_not_drawn(finding, in_step)?;
    let estimate = finding.between().filter(|_| why == ESTIMATED);
    let of = match finding.step {
        Some(_) => " a step",
        None => "",
    };
    let amount = estimate.map_or_else(String::new, |time| format!(": {time}{of}"));
    Some(format!("finding {}: {why}{amount}", at + 1))
}

/// Whether something can be shown of a finding in what is in view.
pub fn is_shown(finding: &Finding, in_step: bool) -> bool {
    why_not_drawn(finding, in_step).is_none()
}

/// The finding that a headline speaks of: the one whose cure it ends with, else the first.
pub fn told(headline: &Verdict, found: &[Finding]) -> Option<usize> {
    let gain = headline.gain.as_deref().unwrap_or_default();
    let is_it = |it: &Finding| match headline.scope.of {
        Answered::OddSteps => it.rule == Rule::OddSteps,
        _ => !it.cure.is_empty() && gain.contains(it.cure_alone()),
    };
    let first = (!found.is_empty()).then_some(0);
    found.iter().position(is_it).or(first)
}

impl Prediction {
    /// Asks for the prediction of a finding; of one that has none for its bound, in the step or the stretch that is looked at.
    ///
    /// # Errors
    /// Why there is neither, in a sentence without its full stop.
    pub fn open(
        &mut self,
        run: &Run,
        scope: Scope,
        finding: &Finding,
        within: Span,
    ) -> Result<(), String> {
        if scope == Scope::Whole && !run.passes.list.is_empty() {
            return Err("show one variant first (v): a prediction is for one variant".to_owned());
        }
        let none = "no edit can simulate this cure".to_owned();
        let why = || finding.refused.clone().unwrap_or(none);
        let (words, cure) = match (&finding.edit, &finding.predicted) {
            (Some(edit), Some(predicted)) => (words(predicted, edit), Cure::Edit(edit.clone())),
            _ if finding.has_bound() => {
                // Of several steps in view each saves that.
                let several = finding.step.filter(|of| within.len() > 2 * of.one);
                let times = several.map_or(1, |of| of.of.max(1));
                let all = finding.bound() * times as Ns;
                let until = (within.end - all).max(within.start);
                let parts = [(within.start, until), (until, within.end)];
                let most = match times {
                    1 => duration(all),
                    many => format!(
                        "{} a step, {} in {many} steps",
                        duration(finding.bound()),
                        duration(all)
                    ),
                };
                let cure = finding.cure_alone();
                let words = format!("{cure} (i closes): saves at most {most}");
                (
                    words,
                    Cure::Bound(parts.map(|(start, end)| Span::new(start, end))),
                )
            }
            _ => return Err(format!("no prediction: {}", why())),
        };
        self.number += 1;
        self.wanted = Some(EditKey {
            run: run.number,
            about: PredictionId {
                scope,
                number: self.number,
            },
            words,
            cure,
        });
        Ok(())
    }

    /// Says which finding it is of.
    pub fn number(&mut self, finding: usize) {
        let wanted = self.wanted.iter_mut();
        wanted.for_each(|it| it.words.insert_str(0, &format!("finding {finding}: ")));
    }

    /// Takes it away. Returns whether there was one.
    pub fn close(&mut self) -> bool {
        self.wanted.take().is_some()
    }

    /// What changes when its rows do.
    pub fn version(&self) -> (u32, bool) {
        let shown = self.wanted.as_ref().map(|w| w.about.number);
        (
            shown.unwrap_or(0),
            shown.is_some() && !self.question.is_open(),
        )
    }

    /// Takes the answer that has come, and asks for what is wanted.
    pub fn prepare(&mut self, analyst: &Analyst, run: &Run, scope: Scope, last: &Arc<LastFacts>) {
        let Some(wanted) = &self.wanted else { return };
        if wanted.run != run.number {
            self.wanted = None;
            return;
        }
        if wanted.about.scope != scope {
            return;
        }
        let Cure::Edit(edit) = wanted.cure.clone() else {
            return;
        };
        let number = run.number;
        let pass = run.pass(scope).copied();
        let (passes, last) = (run.passes.clone(), Arc::clone(last));
        let gpus = run.gpus.clone();
        self.question
            .at_once(1_000)
            .ask(analyst, run, wanted.about, move |trace, _| {
                let mut facts = last.facts(number, trace);
                facts.known = gpus.rates(trace);
                let whatif = match pass {
                    Some(pass) => WhatIf::of_repeats(facts.basis(), &passes, pass.variant),
                    None => WhatIf::of_steps(facts.basis(), steps::main(facts.steps()), None),
                }?;
                whatif.timeline(&edit, pass.map(|pass| pass.span))
            });
    }

    fn shown(&self, run: &Run, scope: Scope) -> Option<(&EditKey, Option<&Result<Trace, String>>)> {
        let wanted = self.wanted.as_ref()?;
        if (wanted.run, wanted.about.scope) != (run.number, scope) {
            return None;
        }
        Some((wanted, self.question.answer_to(run, wanted.about)))
    }

    /// What a cure leaves at the least, and what it saves at most, where that is what is shown.
    pub fn bound(&self, run: &Run, scope: Scope) -> Option<[Span; 2]> {
        match self.shown(run, scope)?.0.cure {
            Cure::Bound(parts) => Some(parts),
            Cure::Edit(_) => None,
        }
    }

    /// The predicted timeline of what is on screen.
    pub fn trace(&self, run: &Run, scope: Scope) -> Option<&Trace> {
        self.shown(run, scope)?.1?.as_ref().ok()
    }

    /// Its rows: a title that says what it is, and a row a stream.
    pub fn rows(&self, run: &Run, scope: Scope) -> Vec<Row> {
        let Some((wanted, answer)) = self.shown(run, scope) else {
            return Vec::new();
        };
        if self.bound(run, scope).is_some() {
            let title = Row::new(RowKind::Title, wanted.words.as_str());
            return vec![title, Row::new(RowKind::Bound, "with it")];
        }
        let label = match answer {
            None => format!("{} …", wanted.words),
            Some(Err(reason)) => format!("no prediction: {reason}"),
            Some(Ok(_)) => wanted.words.clone(),
        };
        let mut rows = vec![Row::new(RowKind::Title, label)];
        let Some(Ok(trace)) = answer else {
            return rows;
        };
        let mut streams: Vec<_> = trace
            .streams()
            .filter_map(|(id, lane)| Some((lane.key().process, lane.extent()?.start, id)))
            .collect();
        streams.sort_unstable();
        rows.extend(streams.into_iter().map(|(_, _, id)| {
            let key = trace.lanes()[id].key();
            let mut label = describe::stream(trace, key);
            // As many GPUs have a stream of one number.
            if let (LaneKind::Stream { device, .. }, true) = (key.kind, trace.devices().len() > 1) {
                let number = label.strip_prefix("stream ").unwrap_or(&label);
                label = format!("{}: {number}", describe::device_id(trace, device));
            }
            Row::new(RowKind::Predicted(id), label)
        }));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::KnownGpus;
    use crate::tui::state::Status;
    use crate::tui::state::answers::Answers;
    use crate::tui::state::scope::OnScreen;
    use activity::feed::Outcome;
    use advice::Judgement;
    use findings::{OfSteps, Severity};
    use trace::testing::{Scene, count_made};

    #[test]
    fn what_the_start_up_takes_is_not_drawn_in_a_step() {
        let found = vec![Finding {
            severity: Severity::Warning,
            cure: "pinning less",
            bound_ns: 34,
            ..Finding::default()
        }];
        let shown = |judged: Judgement| {
            let all = judged.in_one();
            [false, true].map(|in_step| is_shown(&all[0], in_step))
        };
        let of_start_up = Judgement {
            start_up: Some(found.clone()),
            ..Judgement::default()
        };
        let of_steps = |is_mean| Judgement {
            findings: vec![Finding {
                step: Some(OfSteps {
                    is_mean,
                    one: 100,
                    all: 1000,
                    ..OfSteps::default()
                }),
                ..found[0].clone()
            }],
            ..Judgement::default()
        };
        assert_eq!(shown(of_start_up), [true, false]);
        assert_eq!(shown(of_steps(false)), [true, true]);
        assert_eq!(shown(of_steps(true)), [true, false], "one of uneven steps");
    }

    /// Twenty kernels of 20 us; the host waits for each, and launches the next 13 us later.
    fn waits() -> Run {
        let mut made = Scene::new();
        for i in 0..20 {
            let at = 40_000 * i;
            made.call("cudaLaunchKernel", at, at + 3_000);
            made.kernel("k", 7, at + 5_000, at + 25_000);
            made.call("cudaStreamSynchronize", at + 4_000, at + 27_000);
        }
        let status = Status::Ended(Outcome::Complete);
        Run::new(made.trace(), None, KnownGpus::default(), status)
    }

    #[test]
    fn the_predicted_timeline_has_the_operations_when_they_would_run() {
        let (run, analyst) = (waits(), Analyst::default());
        let facts = ["graph", "calls", "causes", "steps", "figures"];
        let before = facts.map(count_made);
        let mut answers = Answers::default();
        answers.prepare(&analyst, &run, OnScreen::default(), true);
        let found = &answers.get(&run, Scope::Whole).expect("an answer").findings;
        let finding = found.iter().find(|f| f.rule.name() == "sync-in-loop");
        let finding = finding.expect("waits are found");
        let mut prediction = Prediction::default();
        assert_eq!(
            prediction.open(&run, Scope::Whole, finding, Span::default()),
            Ok(())
        );
        prediction.prepare(&analyst, &run, Scope::Whole, &answers.facts);
        let made = facts.map(count_made).into_iter().zip(before);
        let made: Vec<usize> = made.map(|(made, before)| made - before).collect();
        assert_eq!(made, [1; 5], "{facts:?}: the answer's are the prediction's");
        let predicted = prediction.trace(&run, Scope::Whole).expect("a prediction");
        // Nothing is known of this GPU, so that a kernel follows another at once. They begin when the first did.
        let spans: Vec<Span> = (0..20).map(|row| predicted.lanes()[0].span(row)).collect();
        let by_hand: Vec<Span> = (0..20)
            .map(|i: Ns| Span::new(5_000 + 20_000 * i, 25_000 + 20_000 * i))
            .collect();
        assert_eq!(spans, by_hand);
        let rows = prediction.rows(&run, Scope::Whole);
        assert_eq!(rows.len(), 2);
        // What is left of the idle time is the headline's figure, whatever it rests on.
        let told = finding.predicted.as_ref().expect("predicted").told();
        let words = format!(
            "predicted with no-sync (i closes): saves {told} of 40.0 \u{b5}s (replay error "
        );
        assert!(rows[0].label.starts_with(&words), "{}", rows[0].label);
        let headline = finding.gain(0.0).expect("a warning with a cure");
        assert!(headline.ends_with(&told), "{headline}");
        assert!(prediction.close() && !prediction.close());
        assert!(prediction.rows(&run, Scope::Whole).is_empty());
    }

    #[test]
    fn what_a_headline_ends_with_is_drawn_first() {
        let of = |rule, cure| Finding {
            rule,
            cure,
            bound_ns: 10,
            severity: Severity::Warning,
            ..Finding::default()
        };
        let found = [
            of(Rule::IdleTensorCores, ""),
            of(Rule::LaunchBound, "using a CUDA graph or larger batches"),
            of(Rule::OddSteps, ""),
        ];
        let headline = |gain: Option<&str>, of| Verdict {
            gain: gain.map(str::to_owned),
            scope: advice::verdict::AnswerScope {
                of,
                ..Default::default()
            },
            ..Verdict::default()
        };
        let graph = Some("up to 8 ms from using a CUDA graph, more with larger batches");
        assert_eq!(told(&headline(graph, Answered::Steps), &found), Some(1));
        assert_eq!(told(&headline(None, Answered::Steps), &found), Some(0));
        assert_eq!(told(&headline(None, Answered::OddSteps), &found), Some(2));
        assert_eq!(told(&headline(graph, Answered::Steps), &[]), None);
        let why = |it: &Finding| why_not_drawn(it, false);
        assert_eq!(why(&found[1]), None);
        let unknown = "no prediction: what this saves is not known";
        assert_eq!(why(&found[0]), Some(unknown));
        // What has an estimate is known: 12 to 14 ms in each of two steps.
        let estimated = Finding {
            estimated: Some([24_000_000, 28_000_000]),
            bound_ns: 30_000_000,
            step: Some(OfSteps {
                one: 50_000_000,
                all: 100_000_000,
                of: 2,
                ..OfSteps::default()
            }),
            ..found[0].clone()
        };
        let said = says_why_not(0, &estimated, false);
        let known =
            "finding 1: estimated by the card's rates, not replayed: 12.0 to 14.0 ms a step";
        assert_eq!(said.as_deref(), Some(known));
        let near = says_why_not(1, &found[0], false);
        assert_eq!(near, Some(format!("finding 2: {unknown}")));
        let cold = of(Rule::ColdStart, "warming up");
        let moved = "no prediction: a warm-up saves the program no time";
        assert_eq!(why(&cold), Some(moved));
    }

    #[test]
    fn what_has_no_prediction_says_why() {
        let run = waits();
        let mut prediction = Prediction::default();
        let mut answers = Answers::default();
        answers.prepare(&Analyst::default(), &run, OnScreen::default(), true);
        let found = &answers.get(&run, Scope::Whole).expect("an answer").findings;
        let refused = Finding {
            refused: Some("nobody knows".to_owned()),
            predicted: None,
            ..found[0].clone()
        };
        let step = Span::new(0, 2 * refused.most());
        // Its bound is shown in its place: half of a step twice as long.
        assert_eq!(prediction.open(&run, Scope::Whole, &refused, step), Ok(()));
        let half = [
            Span::new(0, refused.most()),
            Span::new(refused.most(), step.end),
        ];
        assert_eq!(prediction.bound(&run, Scope::Whole), Some(half));
        assert!(prediction.close());
        // In a view of ten such steps, of which three are looked at, three save it. By hand: half of each of them.
        let of_steps = Finding {
            step: Some(OfSteps {
                one: step.len(),
                all: 3 * step.len(),
                of: 3,
                ..OfSteps::default()
            }),
            inside_ns: None,
            saving_ns: None,
            bound_ns: 3 * step.len() / 2,
            ..refused.clone()
        };
        let view = Span::new(0, 10 * step.len());
        assert_eq!(prediction.open(&run, Scope::Whole, &of_steps, view), Ok(()));
        let parts = prediction.bound(&run, Scope::Whole).expect("a bound");
        assert_eq!(parts[1].len(), 3 * step.len() / 2);
        assert!(prediction.close());
        let idle = Finding {
            bound_ns: 0,
            saving_ns: None,
            inside_ns: None,
            ..refused
        };
        let answer = prediction.open(&run, Scope::Whole, &idle, step);
        assert_eq!(answer, Err("no prediction: nobody knows".to_owned()));
        assert!(!prediction.close());
    }
}
