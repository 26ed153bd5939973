//! Races as diagnostics: both steps, and the order that would cure it.

use super::super::diagnostics::{Diagnostic, Diagnostics, Severity, quoted};
use super::super::file::File;
use super::super::plan::{DEFAULT_STREAM, Plan, Site, VariantPlan};
use super::{Hazard, Who, find};

/// Work for all variants and values of the sweep together; about a second.
const BUDGET: u64 = 60_000_000;

/// Adds the races of every variant: warnings, or notes where the variant says `race = true`.
pub(in super::super) fn report(file: &File, plan: &Plan, diagnostics: &mut Diagnostics) {
    let mut budget = BUDGET;
    for variant in &plan.variants {
        let mut declared = file.variants.iter();
        let Some(decl) = declared.find(|decl| decl.name.text == variant.name) else {
            continue;
        };
        let findings = find(variant, &mut budget);
        for hazard in &findings.hazards {
            let mut diagnostic = describe(hazard, variant, &plan.sites);
            diagnostic.is_race = true;
            if decl.shows_race {
                diagnostic.severity = Severity::Note;
            }
            diagnostics.push(diagnostic);
        }
        let name = quoted(&variant.name);
        if !findings.is_complete {
            let message = format!("{name} is too large to look for all races in it");
            let range = decl.name.loc.range();
            diagnostics.push(Diagnostic::new(Severity::Note, range, message));
        } else if decl.shows_race && findings.hazards.is_empty() {
            let message = format!("{name} says race = true, but everything in it is ordered");
            diagnostics.push(Diagnostic::warning(decl.name.loc.range(), message));
        }
    }
}

fn describe(hazard: &Hazard, variant: &VariantPlan, sites: &[Site]) -> Diagnostic {
    let (first, second) = (&hazard.first, &hazard.second);
    let buffer = quoted(&variant.buffers[hazard.buffer].name);
    let stream = |who: Who| match who {
        Who::Host => "",
        Who::Stream(stream) => variant.streams[stream].name.as_str(),
    };
    let [earlier, later] = [first, second].map(|it| {
        let who = match it.who {
            Who::Host => "the host".to_owned(),
            it => format!("stream {}", quoted(stream(it))),
        };
        (
            who,
            if it.writes { "writes it" } else { "reads it" },
            &sites[it.site as usize],
        )
    });
    let (
        _,
        _,
        Site {
            line: after,
            column: after_column,
            ..
        },
    ) = earlier;
    let (_, _, Site { line, column, .. }) = later;
    let message = format!(
        "race on {buffer}: {} {} ({line}:{column}) while {} still {} ({after}:{after_column}); nothing orders the two",
        later.0, later.1, earlier.0, earlier.1
    );
    let (from, to) = (stream(first.who), stream(second.who));
    let mut help = if to.is_empty() {
        format!(
            "let the host wait before line {line}: {{ sync = \"stream\", stream = \"{from}\" }}"
        )
    } else {
        format!(
            "after line {after} {{ record = \"done\", stream = \"{from}\" }}, and before line {line} {{ wait = \"done\", \
                 stream = \"{to}\" }}"
        )
    };
    if [from, to].contains(&DEFAULT_STREAM) {
        help.push_str("; the default stream does not wait for other streams, nor they for it (they are non-blocking)");
    }
    let here = |(who, does, _): &(String, &str, _)| format!("{who} {does} here");
    let diagnostic = Diagnostic::warning(later.2.span.clone(), message);
    let diagnostic = diagnostic.label(here(&later)).help(help);
    if first.site == second.site {
        return diagnostic;
    }
    diagnostic.related(earlier.2.span.clone(), here(&earlier))
}
