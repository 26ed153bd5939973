//! Races as diagnostics: both steps, and the order that would cure it.

use super::super::diagnostics::{Diagnostic, Diagnostics, Severity, quoted};
use super::super::file::File;
use super::super::plan::{DEFAULT_STREAM, Op, OpKind, Plan, Site, VariantPlan};
use super::{Hazard, find};

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
            let mut diagnostic = describe(hazard, variant, &plan.sites, diagnostics);
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

fn describe(
    hazard: &Hazard,
    variant: &VariantPlan,
    sites: &[Site],
    file: &Diagnostics,
) -> Diagnostic {
    let [first, second] = [&hazard.first, &hazard.second].map(|it| {
        let stream = it.stream.map_or("", |it| &variant.streams[it].name);
        let who = match it.stream {
            None => "the host".to_owned(),
            Some(_) => format!("stream {}", quoted(stream)),
        };
        let does = if it.writes { "writes it" } else { "reads it" };
        (stream, who, does, &sites[it.site as usize])
    });
    let ((from, earlier, did, at), (to, later, does, place)) = (&first, &second);
    let (line, after) = (place.line, at.line);
    let message = format!(
        "race on {}: {later} {does} ({line}:{}) while {earlier} still {did} ({after}:{}); nothing orders the two",
        quoted(&variant.buffers[hazard.buffer].name),
        place.column,
        at.column,
    );
    let mut help = match to.is_empty() {
        true => format!(
            "let the host wait before line {line}: {{ sync = \"stream\", stream = \"{from}\" }}"
        ),
        false => {
            // What is recorded there already is named as the author did.
            let record = recorded_between(hazard, variant);
            let record = record.map(|op| file.written(sites[op.site as usize].span.clone()));
            let known = record.and_then(|it| it.split_once("record")?.1.split(['"', '\'']).nth(1));
            let event = known.unwrap_or("done");
            let wait = format!("before line {line} {{ wait = \"{event}\", stream = \"{to}\" }}");
            let record =
                format!("after line {after} {{ record = \"{event}\", stream = \"{from}\" }}, and ");
            known.map_or(record, |_| String::new()) + &wait
        }
    };
    if [from, to].contains(&&DEFAULT_STREAM) {
        help.push_str("; the default stream does not wait for other streams, nor they for it (they are non-blocking)");
    }
    let diagnostic = Diagnostic::warning(place.span.clone(), message);
    let diagnostic = diagnostic.label(format!("{later} {does} here")).help(help);
    if hazard.first.site == hazard.second.site {
        return diagnostic;
    }
    diagnostic.related(at.span.clone(), format!("{earlier} {did} here"))
}

/// What the earlier stream records between the two.
fn recorded_between<'v>(hazard: &Hazard, variant: &'v VariantPlan) -> Option<&'v Op> {
    let ops = &variant.ops;
    let to = ops.iter().position(|op| op.site == hazard.second.site)?;
    let is_first = |op: &Op| op.site == hazard.first.site;
    let from = ops[..to].iter().rposition(is_first)?;
    let by_first = |kind: OpKind| {
        matches!(kind, OpKind::Record { .. }) && kind.stream() == hazard.first.stream
    };
    ops[from..to].iter().find(|op| by_first(op.kind))
}
