//! What a finding promised, beside what came of it where it is gone.

use serde::Serialize;

use crate::report::Report;
use activity::Ns;
use activity::units::{duration, range};
use advice::findings::{Finding, Rule, Severity};

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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Rule>,
    /// The same in a sentence.
    pub text: String,
}

impl Tried {
    /// Of a step or a run that took so long in A and in B.
    pub(super) fn of(a: &Report, b: &Report, [was, is]: [f64; 2]) -> Option<Tried> {
        // By rule, how much of a step it was to cost.
        let costs = |report: &Report, whole: f64| -> Vec<(Rule, f64, bool)> {
            let all = report
                .findings
                .iter()
                .filter(|it| !it.is_no_matter_of_time());
            let cost = |it: &Finding| it.promise(whole as Ns)[2] * whole;
            all.map(|it| {
                (
                    it.rule,
                    cost(it),
                    it.severity == Severity::Warning || it.estimated.is_some(),
                )
            })
            .collect()
        };
        let (before, after) = (costs(a, was), costs(b, is));
        let of = |side: &[(Rule, f64, bool)], rule| side.iter().find(|it| it.0 == rule).copied();
        let is_gone = |it: &&(Rule, f64, bool)| it.2 && of(&after, it.0).is_none_or(|it| !it.2);
        let gone = before.iter().find(is_gone)?.0;
        let differs = |rule: Rule| {
            let [a, b] = [&before, &after].map(|it| of(it, rule).map_or(0.0, |it| it.1));
            rule != gone && (a - b).abs() > CHANGED * was
        };
        let mut others: Vec<Rule> = before
            .iter()
            .chain(&after)
            .map(|it| it.0)
            .filter(|it| differs(*it))
            .collect();
        others.sort_unstable();
        others.dedup();
        let finding = a.findings.iter().find(|it| it.rule == gone)?;
        let [least, likely, most] = finding.promise(was as Ns);
        let saved = 1.0 - is / was;
        let held = (least - NOISE..=most + NOISE).contains(&saved);
        let [left, expected, right] = [most, likely, least].map(|it| (was * (1.0 - it)) as Ns);
        let name = gone.name();
        let took = duration(is as Ns);
        let text = match others.as_slice() {
            [_, ..] => {
                let others: Vec<&str> = others.iter().map(|it| it.name()).collect();
                format!(
                    "{name} is gone, and other things changed ({}): its prediction cannot be checked",
                    others.join(", ")
                )
            }
            [] => {
                let told = match finding.predicted {
                    Some(_) => format!(
                        "{} was predicted ({})",
                        duration(expected),
                        range((left, right))
                    ),
                    None if finding.estimated.is_some() => {
                        format!("{} was estimated", range((left, right)))
                    }
                    None => format!("{} at the least was said", duration(left)),
                };
                let answer = if held {
                    "as promised"
                } else if saved > most {
                    "more than promised"
                } else {
                    "less than promised"
                };
                format!("{name} is gone: {told}, {took} measured: {answer}")
            }
        };
        let is_alone = others.is_empty();
        Some(Tried {
            rule: gone,
            predicted_ns: is_alone.then_some([left, right]),
            measured_ns: is as Ns,
            held: is_alone.then_some(held),
            others,
            text,
        })
    }
}
