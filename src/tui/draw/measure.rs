//! What was measured between two marks, in words.

use crate::tui::state::State;
use crate::tui::state::marks::{DeviceTimes, MeasuredStretch};
use activity::text::plural;
use activity::{Ns, units};
use causes::Group;
use trace::{Trace, describe};

/// "1.24 ms measured", and the facts.
pub fn words(state: &State) -> Option<(String, Vec<String>)> {
    let span = state.focus.marks.span()?;
    let zero = state.zero();
    let name = format!("measured {}", units::duration(span.len()));
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
    facts.push(format!(
        "{name} busy {} ({})",
        units::duration(of.parts.busy),
        units::percent(of.parts.share(of.parts.busy))
    ));
    facts.push(format!(
        "compute {}, copies {}",
        units::duration(of.parts.compute),
        units::duration(of.parts.copy)
    ));
    if of.parts.not_recorded > 0 {
        let time = units::duration(of.parts.not_recorded);
        facts.push(format!("not recorded {time}"));
    }
    if of.parts.idle() > 0 {
        facts.push(format!(
            "idle {}{}",
            units::duration(of.parts.idle()),
            causes(of)
        ));
    }
    let moved: Vec<String> = of
        .bytes
        .iter()
        .map(|(direction, bytes)| {
            let bytes = units::bytes(bytes.round() as u64);
            format!("{} {bytes}", direction.label())
        })
        .collect();
    if !moved.is_empty() {
        facts.push(format!("moved {}", moved.join(", ")));
    }
}

/// ": CPU code 1.2 ms, launching 80 us", what there is no cause of among it.
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
    let parts: Vec<String> = parts
        .into_iter()
        .map(|(ns, words)| format!("{} {words}", units::duration(ns)))
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(": {}", parts.join(", "))
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
    let parts: Vec<String> = counted
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| plural(count, word))
        .collect();
    let mut facts = Vec::new();
    if !parts.is_empty() {
        facts.push(format!("{} began", parts.join(", ")));
    }
    facts.push(plural(found.launches, "launch call"));
    if !found.is_whole {
        facts.push("not all was counted".to_owned());
    }
    facts
}
