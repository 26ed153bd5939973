//! Where a step stands, in the author's words.

use super::super::diagnostics::Diagnostics;
use super::super::plan::DEFAULT_STREAM;
use super::Step;
use super::read::Given;

/// A step's stream and the loops around it.
#[derive(PartialEq)]
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
    let mut is_captured = false;
    while let Some(step) = steps.iter().find(|it| it.loc.range().contains(&at)) {
        let stream = step.stream().map(|it| file.written(it.loc.range()));
        place.stream = stream.map_or(Some(DEFAULT_STREAM), |it| {
            Some(it.trim_matches(['"', '\'']))
        });
        let inner = step.given.iter().filter_map(|(_, it)| match it {
            Given::Steps(inner) => Some(inner),
            _ => None,
        });
        let is_around = |it: &&Vec<Step>| it.iter().any(|it| it.loc.range().contains(&at));
        let Some(inner) = inner.into_iter().find(is_around) else {
            break;
        };
        match step.get(step.form.head.name) {
            Some(Given::Loop(of)) => {
                let sign = if of.step.is_some() { "!=" } else { ">" };
                let from = file.written(of.from.loc.range());
                let is_behind = format!("{} {sign} {from}", of.variable.text);
                if let Some(loops) = &mut place.loops {
                    loops.push((step.loc.start, is_behind));
                }
            }
            _ if step.form.head.name == "range" => {}
            _ => place.loops = None,
        }
        is_captured |= step.form.head.name == "capture";
        steps = inner;
    }
    place.stream = place.stream.filter(|_| !is_captured);
    place
}
