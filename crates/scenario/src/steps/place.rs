//! Where a step stands, in the author's words.

use super::super::diagnostics::Diagnostics;
use super::super::plan::DEFAULT_STREAM;
use super::read::Given;
use super::*;

/// A step's stream and the loops around it.
pub(crate) struct Place<'t> {
    /// `None` in a graph, whose stream is that of its launch.
    pub(crate) stream: Option<&'t str>,
    /// Of each loop from the outermost in, where it begins, and what holds behind its first iteration. `None` where a
    /// condition may leave the step out.
    pub(crate) loops: Option<Vec<(usize, String)>>,
}

/// Where the step at a byte of the file stands.
pub(crate) fn place<'t>(mut steps: &[Step], at: usize, file: &'t Diagnostics) -> Place<'t> {
    let mut place = Place {
        stream: Some(DEFAULT_STREAM),
        loops: Some(Vec::new()),
    };
    let is_there = |it: &Step| it.loc.range().contains(&at);
    while let Some(step) = steps.iter().find(|it| is_there(it)) {
        if let Some(stream) = step.stream() {
            let written = file.written(stream.loc.range());
            place.stream = Some(written.trim_matches(['"', '\'']));
        }
        let inner = step.given.iter().find_map(|(_, it)| match it {
            Given::Steps(inner) if inner.iter().any(is_there) => Some(inner),
            _ => None,
        });
        let Some(inner) = inner else { break };
        match (step.get(step.form.head.name), &mut place.loops) {
            _ if step.form.head.name == "range" => {}
            _ if step.form.head.name == "capture" => place.stream = None,
            (Some(Given::Loop(of)), Some(loops)) => {
                let sign = if of.step.is_some() { "!=" } else { ">" };
                let from = file.written(of.from.loc.range());
                let is_behind = format!("{} {sign} {from}", of.variable.text);
                loops.push((step.loc.start, is_behind));
            }
            _ => place.loops = None,
        }
        if place.stream.is_none() {
            break;
        }
        steps = inner;
    }
    place
}
