//! What a finding promised, beside what came of it where it is gone.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::report::Report;
use activity::Ns;
use activity::units::{duration, range};
use findings::{Finding, Rule, Severity};

/// So much more or less than was promised is lost in what two runs differ by.
const NOISE: f64 = 0.02;

/// Other findings that change by this part of a step say that more than one thing was changed.
const CHANGED: f64 = 0.1;

/// A finding of A that B lacks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    pub rule: Rule,
    /// What a step (or the run) of A was to take without it, at least and at most; absent where more was changed than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_ns: Option<[Ns; 2]>,
    /// What one takes in B.
    pub measured_ns: Ns,
    /// Whether that lies in what was predicted; null where more was changed.
    pub held: Option<bool>,
    /// What else went, came, or changed by a tenth of a step.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub others: BTreeSet<&'static str>,
    /// The same in a sentence.
    pub text: String,
}

/// A finding's rule, how much of a step or of a run it was to cost, and whether that is worth a change.
type Cost = (Rule, f64, bool);

fn costs(report: &Report, whole: f64) -> Vec<Cost> {
    let all = report
        .findings
        .iter()
        .filter(|it| !it.is_no_matter_of_time());
    let cost = |it: &Finding| {
        let is_worth = it.severity == Severity::Warning || it.estimated.is_some();
        (it.rule, it.promise(whole as Ns)[2] * whole, is_worth)
    };
    all.map(cost).collect()
}

impl Tried {
    /// Of a step or a run that took so long in A and in B.
    pub(super) fn of(a: &Report, b: &Report, [was, is]: [f64; 2]) -> Option<Tried> {
        let (before, after) = (costs(a, was), costs(b, is));
        let of = |side: &[Cost], rule| side.iter().find(|it| it.0 == rule).copied();
        let is_gone = |it: &&Cost| it.2 && of(&after, it.0).is_none_or(|it| !it.2);
        let rule = before.iter().find(is_gone)?.0;
        let differs = |it: &&Cost| {
            let [a, b] = [&before, &after].map(|side| of(side, it.0).map_or(0.0, |it| it.1));
            it.0 != rule && (a - b).abs() > CHANGED * was
        };
        let others = before
            .iter()
            .chain(&after)
            .filter(differs)
            .map(|it| it.0.name());
        let others: BTreeSet<&str> = others.collect();
        let finding = a.findings.iter().find(|it| it.rule == rule)?;
        let [least, likely, most] = finding.promise(was as Ns);
        let saved = 1.0 - is / was;
        let held = (least - NOISE..=most + NOISE).contains(&saved);
        let [left, expected, right] = [most, likely, least].map(|it| (was * (1.0 - it)) as Ns);
        let between = range((left, right));
        let told = match (&finding.predicted, finding.estimated) {
            (Some(_), _) => format!("{} predicted ({between})", duration(expected)),
            (None, Some(_)) => format!("{between} estimated"),
            (None, None) => format!("{} at the least", duration(left)),
        };
        let answer = match held {
            true => "as promised",
            false if saved > most => "more than promised",
            false => "less than promised",
        };
        let (name, took) = (rule.name(), duration(is as Ns));
        let text = match others.is_empty() {
            true => format!("the finding {name} is gone in B: {told}, {took} measured, {answer}"),
            false => {
                let others: Vec<&str> = others.iter().copied().collect();
                let others = others.join(", ");
                format!(
                    "the finding {name} is gone in B, but {others} changed, too: what each saved cannot be told apart"
                )
            }
        };
        Some(Tried {
            rule,
            predicted_ns: others.is_empty().then_some([left, right]),
            measured_ns: is as Ns,
            held: others.is_empty().then_some(held),
            others,
            text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::compare::ComparedRun;
    use findings::OfSteps;
    use trace::testing::Scene;

    /// A report with these findings and no others.
    fn report(findings: Vec<Finding>) -> Report {
        let mut scene = Scene::new();
        let run = ComparedRun::of(&scene.kernel("k", 1, 0, 1_000).trace());
        Report {
            findings,
            ..run.report
        }
    }

    /// A finding of steps of 1 ms, 100 ms in all, that could save so much of them.
    fn bound(rule: Rule, saves: Ns) -> Finding {
        Finding {
            rule,
            severity: Severity::Warning,
            bound_ns: saves,
            step: Some(OfSteps {
                one: 1_000_000,
                all: 100_000_000,
                count: 100,
                of: 100,
                ..OfSteps::default()
            }),
            ..Finding::default()
        }
    }

    #[test]
    fn a_cure_holds_what_it_promised_or_does_not() {
        // At most a fifth of each step.
        let before = report(vec![bound(Rule::PageableCopy, 20_000_000)]);
        let after = report(Vec::new());
        let of = |is| Tried::of(&before, &after, [1_000_000.0, is]).expect("it is gone");
        let told = |is: f64| of(is).text.rsplit(", ").next().map(str::to_owned);
        assert_eq!(of(850_000.0).predicted_ns, Some([800_000, 1_000_000]));
        // 2 % more or less is noise.
        for (is, answer) in [
            (850_000.0, "as promised"),
            (785_000.0, "as promised"),
            (775_000.0, "more than promised"),
            (1_015_000.0, "as promised"),
            (1_025_000.0, "less than promised"),
        ] {
            assert_eq!(told(is).as_deref(), Some(answer), "{is}");
            assert_eq!(of(is).held, Some(answer == "as promised"));
        }
        // A range is estimated: between a fifth and two fifths.
        let range = Finding {
            estimated: Some([20_000_000, 40_000_000]),
            ..bound(Rule::IdleTensorCores, 50_000_000)
        };
        let tried = Tried::of(&report(vec![range]), &after, [1_000_000.0, 900_000.0]);
        let tried = tried.expect("it is gone");
        assert_eq!(
            (tried.predicted_ns, tried.held),
            (Some([600_000, 800_000]), Some(false))
        );
    }

    #[test]
    fn what_else_changed_by_a_tenth_of_a_step_leaves_nothing_to_check() {
        let pinned = bound(Rule::PageableCopy, 20_000_000);
        let with = |it: Finding| vec![pinned.clone(), it];
        // Odd steps of 30 % are still there in both: of a step that is 0.3, and not 30 of them.
        let odd = |saves| bound(Rule::OddSteps, saves);
        let (a, b) = (report(with(odd(30_000_000))), report(vec![odd(31_000_000)]));
        let tried = Tried::of(&a, &b, [1_000_000.0, 900_000.0]).expect("one is gone");
        assert_eq!((tried.others.len(), tried.held), (0, Some(true)));
        // They are 15 % less.
        let b = report(vec![odd(15_000_000)]);
        let tried = Tried::of(&a, &b, [1_000_000.0, 900_000.0]).expect("one is gone");
        assert_eq!(
            tried.others.iter().copied().collect::<Vec<_>>(),
            ["odd-steps"]
        );
        assert_eq!((tried.predicted_ns, tried.held), (None, None));
        // Nothing is gone.
        assert!(Tried::of(&a, &a, [1_000_000.0; 2]).is_none());
    }
}
