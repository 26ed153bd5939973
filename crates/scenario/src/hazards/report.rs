//! Races as diagnostics: both steps, and the order that would cure it.

use super::super::diagnostics::{Diagnostic, Diagnostics, Severity, quoted};
use super::super::file::File;
use super::super::plan::{DEFAULT_STREAM, Op, OpKind, Plan, Site, SiteId, VariantPlan};
use super::super::steps::{Place, place};
use super::{Hazard, MAX_HAZARDS, find};

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
        for (at, hazard) in findings.hazards.iter().enumerate() {
            let written = |site: SiteId| {
                let at = plan.sites[site as usize].span.start;
                place(&decl.steps, at, diagnostics)
            };
            let cure = cure((at, hazard), variant, &plan.sites, written, diagnostics);
            let mut diagnostic = describe(hazard, variant, &plan.sites, cure);
            diagnostic.is_race = true;
            if decl.shows_race {
                diagnostic.severity = Severity::Note;
            }
            diagnostics.push(diagnostic);
        }
        let name = quoted(&variant.name);
        let has_more = findings.hazards.len() >= MAX_HAZARDS;
        if !findings.is_complete || has_more {
            let message = match has_more {
                true => format!("{name} may have more races than these {MAX_HAZARDS}"),
                false => format!("{name} is too large to look for all races in it"),
            };
            let range = decl.name.loc.range();
            diagnostics.push(Diagnostic::new(Severity::Note, range, message));
        } else if decl.shows_race && findings.hazards.is_empty() {
            let message = format!("{name} says race = true, but everything in it is ordered");
            diagnostics.push(Diagnostic::warning(decl.name.loc.range(), message));
        }
    }
}

fn describe(hazard: &Hazard, variant: &VariantPlan, sites: &[Site], cure: String) -> Diagnostic {
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
    let mut help = cure;
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

/// The steps that order the two, to be copied as they are; in words alone where they would not do in every iteration.
fn cure<'t>(
    (at, hazard): (usize, &Hazard),
    variant: &VariantPlan,
    sites: &[Site],
    place: impl Fn(SiteId) -> Place<'t>,
    file: &Diagnostics,
) -> String {
    let sites_of = [hazard.first.site, hazard.second.site];
    let [first, second] = sites_of.map(&place);
    let [after, line] = sites_of.map(|it| sites[it as usize].line);
    let at_first = sites_of.map(|site| variant.ops.iter().position(|op| op.site == site));
    let is_carried = at_first[1] <= at_first[0];
    // A name with braces means the same at both only in one iteration.
    let is_same = |name: &str, at: &Place| {
        !name.contains('{') || !is_carried && at.loops.is_some() && at.loops == second.loops
    };
    if hazard.second.stream.is_none() {
        let stream = first.stream.filter(|it| is_same(it, &first));
        let wait = stream.map_or("sync = \"device\"".to_owned(), |it| {
            format!("sync = \"stream\", stream = \"{it}\"")
        });
        return format!("let the host wait before line {line}: {{ {wait} }}");
    }
    let words =
        format!("let the step of line {line} wait for an event recorded behind line {after}");
    let (Some(from), Some(to)) = (first.stream, second.stream) else {
        return words;
    };
    // What is recorded there already is named as the author did.
    let known = recorded_between(hazard, variant).and_then(|op| {
        let text = file.written(sites[op.site as usize].span.clone());
        let event = text.split_once("record")?.1.split(['"', '\'']).nth(1)?;
        let place = place(op.site);
        let is_always = place.loops.is_some() && place.loops == first.loops;
        (is_always && is_same(event, &place)).then_some(event)
    });
    if let Some(event) = known {
        return format!("before line {line} {{ wait = \"{event}\", stream = \"{to}\" }}");
    }
    let braces = from.find('{').zip(from.rfind('}')).filter(|_| !is_carried);
    let braces = braces.map_or("", |(open, close)| &from[open..=close]);
    let is_taken = at > 0 || variant.events.iter().any(|it| it.starts_with("done"));
    let event = match is_taken {
        true => format!("done_{after}{braces}"),
        false => format!("done{braces}"),
    };
    let wait = format!("{{ wait = \"{event}\", stream = \"{to}\" }}");
    let loops = first.loops.as_deref().unwrap_or_default();
    // Each iteration waits for the one before: that is for all of them on one stream, or in a chain.
    let is_chain = !from.contains('{') || from == to;
    let wait = match is_carried {
        false if is_same(from, &first) => wait,
        true if is_chain
            && !loops.is_empty()
            && (second.loops.as_ref()).is_some_and(|it| it.starts_with(loops)) =>
        {
            let behind: Vec<&str> = loops.iter().map(|(_, it)| it.as_str()).collect();
            format!("{{ if = \"{}\", do = [{wait}] }}", behind.join(" || "))
        }
        _ => return words,
    };
    format!(
        "after line {after} {{ record = \"{event}\", stream = \"{from}\" }}, and before line {line} {wait}"
    )
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
