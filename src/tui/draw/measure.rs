//! What was measured between two marks, in words.

use crate::tui::state::State;
use crate::tui::state::marks::{DeviceTimes, MeasuredStretch};
use activity::Ns;
use activity::text::plural;
use activity::units::{bytes, duration, percent};
use causes::Group;
use trace::{Trace, describe};

/// "1.24 ms measured", and the facts.
pub fn words(state: &State) -> Option<(String, Vec<String>)> {
    let span = state.focus.marks.span()?;
    let zero = state.zero();
    let name = format!("measured {}", duration(span.len()));
    let mut facts = vec![super::label::times(span, zero)];
    if span.is_empty() {
        facts.push("both marks stand at one moment".to_owned());
        return Some((name, facts));
    }
    let Some(found) = state.focus.marks.measured(&state.model.run) else {
        facts.push("computing …".to_owned());
        return Some((name, facts));
    };
    let trace = &state.model.run.trace;
    for of in &found.devices {
        device(trace, of, &mut facts);
    }
    facts.extend(began(found));
    Some((name, facts))
}

fn device(trace: &Trace, of: &DeviceTimes, facts: &mut Vec<String>) {
    let name = match trace.devices().len() {
        1 => "GPU".to_owned(),
        _ => describe::device_id(trace, of.device),
    };
    let (parts, share) = (&of.parts, percent(of.parts.share(of.parts.busy)));
    let [busy, compute, copy] = [parts.busy, parts.compute, parts.copy].map(duration);
    facts.push(format!("{name} busy {busy} ({share})"));
    facts.push(format!("compute {compute}, copies {copy}"));
    if parts.not_recorded > 0 {
        facts.push(format!("not recorded {}", duration(parts.not_recorded)));
    }
    if parts.idle() > 0 {
        facts.push(format!("idle {}{}", duration(parts.idle()), causes(of)));
    }
    let moved = of
        .bytes
        .iter()
        .map(|(direction, moved)| format!("{} {}", direction.label(), bytes(moved.round() as u64)));
    let moved = moved.collect::<Vec<_>>().join(", ");
    if !moved.is_empty() {
        facts.push(format!("moved {moved}"));
    }
}

/// ": CPU work 1.2 ms, launching 80 us", what there is no cause of among it.
fn causes(of: &DeviceTimes) -> String {
    let mut parts: Vec<(Ns, &str)> = Vec::new();
    let between = of.parts.idle() - of.outside;
    match &of.causes {
        Some(causes) => {
            let groups = Group::most(*causes, 0).into_iter();
            parts.extend(groups.map(|(group, ns)| (ns, group.label())));
            let known: Ns = causes.iter().sum();
            if between > known {
                parts.push((between - known, "not looked into"));
            }
        }
        None if between > 0 => parts.push((between, "too many operations to look into")),
        None => {}
    }
    if of.outside > 0 {
        parts.push((of.outside, "before its first or after its last operation"));
    }
    let parts = parts.into_iter();
    let parts = parts.map(|(ns, words)| format!("{} {words}", duration(ns)));
    match parts.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => none,
        parts => format!(": {parts}"),
    }
}

/// What began in the stretch, counted.
fn began(found: &MeasuredStretch) -> Vec<String> {
    let counted = [
        (found.kernels, "kernel"),
        (found.copies, "copy"),
        (found.memsets, "memset"),
        (found.graphs, "graph"),
    ];
    let parts = counted.into_iter().filter(|(count, _)| *count > 0);
    let parts = parts.map(|(count, word)| plural(count, word));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let mut facts = Vec::new();
    if !parts.is_empty() {
        facts.push(format!("{parts} began"));
    }
    facts.push(plural(found.launches, "launch call"));
    if !found.is_whole {
        facts.push("not all was counted".to_owned());
    }
    facts
}
