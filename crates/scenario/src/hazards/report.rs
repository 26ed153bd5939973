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
        let decl = file
            .variants
            .iter()
            .find(|decl| decl.name.text == variant.name);
        let Some(decl) = decl else { continue };
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
            diagnostics.push(Diagnostic::new(
                Severity::Note,
                decl.name.loc.range(),
                message,
            ));
        } else if decl.shows_race && findings.hazards.is_empty() {
            let message = format!("{name} says race = true, but everything in it is ordered");
            diagnostics.push(Diagnostic::warning(decl.name.loc.range(), message));
        }
    }
}

fn describe(hazard: &Hazard, variant: &VariantPlan, sites: &[Site]) -> Diagnostic {
    let (first, second) = (&hazard.first, &hazard.second);
    let buffer = quoted(&variant.buffers[hazard.buffer].name);
    let name = |who: Who| match who {
        Who::Host => "the host".to_owned(),
        Who::Stream(stream) => format!("stream {}", quoted(&variant.streams[stream].name)),
    };
    let does = |writes: bool| if writes { "writes" } else { "reads" };
    let (at, before) = (&sites[second.site as usize], &sites[first.site as usize]);
    let place = |site: &Site| format!("{}:{}", site.line, site.column);
    let message = format!(
        "race on {buffer}: {} {} it ({}) while {} still {} it ({}); nothing orders the two",
        name(second.who),
        does(second.writes),
        place(at),
        name(first.who),
        does(first.writes),
        place(before),
    );
    let plain = |who: Who| match who {
        Who::Host => String::new(),
        Who::Stream(stream) => variant.streams[stream].name.clone(),
    };
    let mut help = match (first.who, second.who) {
        (Who::Stream(_), Who::Host) => format!(
            "let the host wait before line {}: {{ sync = \"stream\", stream = \"{}\" }}",
            at.line,
            plain(first.who)
        ),
        _ => format!(
            "after line {} {{ record = \"done\", stream = \"{}\" }}, and before line {} {{ wait = \"done\", stream = \"{}\" }}",
            before.line,
            plain(first.who),
            at.line,
            plain(second.who)
        ),
    };
    let is_default = |who: Who| plain(who) == DEFAULT_STREAM;
    if is_default(first.who) || is_default(second.who) {
        help.push_str("; the default stream does not wait for other streams, nor they for it (they are non-blocking)");
    }
    let diagnostic = Diagnostic::warning(at.span.clone(), message)
        .label(format!(
            "{} {} it here",
            name(second.who),
            does(second.writes)
        ))
        .help(help);
    if first.site == second.site {
        return diagnostic;
    }
    diagnostic.related(
        before.span.clone(),
        format!("{} {} it here", name(first.who), does(first.writes)),
    )
}
