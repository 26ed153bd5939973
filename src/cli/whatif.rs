//! `cuptop whatif`: predicts a run's time with something changed.

use super::args::WhatIf as Args;
use super::exit::Ending;
use super::redaction::Redaction;
use super::report::load_redacted;
use super::{print, profile};
use crate::report::whatif::WhatIfReport;
use crate::report::{self, KnownGpus};
use advice::{Facts, JudgedPart};
use replay::whatif::{Prediction, WhatIf};
use scenario::diagnostics::{Diagnostic, Diagnostics};
use scenario::edit::{EditSet, FORMS};
use scenario::expr::ExprError;

/// Prints predictions; without edits, those of the findings' cures, alone and together, then the saving of each edit that fits.
pub(super) fn whatif(args: &Args) -> Result<u8, Ending> {
    let mut sets = Vec::new();
    for text in &args.edit {
        let set: EditSet = text.parse().map_err(|error| wrong(text, error))?;
        sets.push(set);
    }
    let redaction = Redaction::new(args.anonymous);
    let (trace, code) = load_redacted(&args.traces, redaction)?;
    let gpus = match &args.profile {
        Some(asked) => KnownGpus::from_iter([(&profile::named(asked)?).into()]),
        None => profile::kept(),
    };
    let facts = report::facts(&trace, None, gpus);
    let whatif = facts
        .whatif(args.variant.as_deref())
        .map_err(Ending::input)?;
    let predictions = if sets.is_empty() {
        all(&facts, &whatif, args.variant.as_deref())
    } else {
        sets.iter().map(|set| whatif.predict(set)).collect()
    };
    let answer = WhatIfReport::new(&whatif, predictions);
    if args.json {
        print(&(answer.json().map_err(Ending::input)? + "\n"))?;
    } else {
        print(&answer.text(&super::text_options()))?;
    }
    Ok(code)
}

/// The cures of the findings and what they come to together, then every other edit that takes no name and finds something to change.
/// Of each the one that saves most first.
fn all(facts: &Facts<'_>, whatif: &WhatIf<'_>, variant: Option<&str>) -> Vec<Prediction> {
    let mut of_findings: Vec<EditSet> = Vec::new();
    let mut together: Option<EditSet> = None;
    for cure in cures(facts, variant) {
        let joined = together.map_or_else(|| cure.clone(), |it| it.join(&cure));
        of_findings.push(cure);
        of_findings.push(joined.clone());
        together = Some(joined);
    }
    // `fuse:once` is not among them: that kernels share their data is for a finding to know.
    let others = FORMS
        .iter()
        .filter_map(|(word, _)| word.parse::<EditSet>().ok());
    let mut told: Vec<String> = Vec::new();
    let mut predict = |sets: Vec<EditSet>| -> Vec<Prediction> {
        let mut predictions = Vec::new();
        for set in sets {
            if told.contains(&set.to_string()) {
                continue;
            }
            told.push(set.to_string());
            predictions.push(whatif.predict(&set));
        }
        predictions.retain(|p| p.outcome.is_ok() || whatif.refusal().is_some());
        predictions.sort_by_key(|p| std::cmp::Reverse(p.outcome.as_ref().map_or(0, |o| o.saving)));
        predictions
    };
    let mut first = predict(of_findings);
    first.extend(predict(others.collect()));
    first
}

/// The edits of the findings, in their order.
fn cures(facts: &Facts<'_>, variant: Option<&str>) -> Vec<EditSet> {
    facts.prepare();
    let mut judged = facts.judgement(JudgedPart::Whole).unwrap_or_default();
    let asked = facts.variants().iter().position(|of| {
        variant.is_none_or(|wanted| of.variant.name == wanted || of.label() == wanted)
    });
    if let Some(asked) = asked {
        judged = judged.variants.swap_remove(asked);
    }
    let found = judged.findings.into_iter();
    found.filter_map(|it| it.edit).collect()
}

/// The expression with a mark under what is wrong.
fn wrong(text: &str, error: ExprError) -> Ending {
    let diagnostic = Diagnostic::error(error.loc.range(), error.message);
    let mut wrong = Diagnostics::new("--edit", text.into());
    wrong.push(diagnostic.maybe_help(error.help));
    Ending::diagnostics(wrong.render(super::stderr_has_color()))
}
