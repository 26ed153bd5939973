//! The stretches that are replayed: the repeats of a variant, the steps of a program, or a window.

use rustc_hash::FxHashSet;

use super::{Basis, Scope};
use crate::program::{NONE, Program, Times};
use activity::{Ns, Span};
use causes::graph::OpId;
use figures::passes::Passes;
use figures::steps::Steps;

/// A stretch that is replayed, with the steps in it.
pub(super) struct Part<'g> {
    pub(super) program: Program<'g>,
    /// Operations (indices into the program) with which steps begin, and the one that ends the last of
    /// them, [`NONE`] for the end of the stretch. Empty: the whole is one step.
    pub(super) marks: Vec<u32>,
    /// Whether each of these steps is one of those asked about.
    pub(super) is_asked: Vec<bool>,
    /// The starts of all.
    pub(super) steps: Vec<Ns>,
}

impl Part<'_> {
    /// From the first operation of the first step to the end of the last operation of any. Steps themselves are
    /// measured from start to start, which says nothing of work that an edit lets run ahead.
    pub(super) fn whole(&self, program: &Program<'_>, times: &Times) -> Ns {
        let (first, last) = match self.marks[..] {
            [first, .., NONE] if first != NONE => (first as usize, program.ops.len()),
            [first, .., last] if first < last => (first as usize, last as usize),
            _ => return program.makespan(times),
        };
        let ends = (first..last).filter(|&op| !program.ops[op].is_gone);
        let end = ends.map(|op| times.op_end[op]).max();
        end.map_or(0, |end| (end - times.op_start[first]).max(0))
    }

    pub(super) fn measure(&self, program: &Program<'_>, times: &Times, samples: &mut Vec<Ns>) {
        if self.marks.is_empty() {
            samples.push(program.makespan(times));
            return;
        }
        let at = |mark: u32| match mark {
            NONE => times.op_end.iter().copied().max().unwrap_or(0),
            op => times.op_start[op as usize],
        };
        let steps = self.marks.windows(2).zip(&self.is_asked);
        let asked = steps.filter(|(_, is_asked)| **is_asked);
        samples.extend(asked.map(|(pair, _)| at(pair[1]) - at(pair[0])));
    }
}

/// The variant that is asked about.
pub(super) fn chosen(passes: &Passes, wanted: Option<&str>) -> Result<usize, String> {
    let labels: Vec<String> = passes.variants.iter().map(|v| v.label()).collect();
    let fits = |i: &usize| {
        wanted.is_some_and(|wanted| labels[*i] == wanted || passes.variants[*i].name == wanted)
    };
    let chosen: Vec<usize> = match wanted {
        None if labels.len() == 1 => vec![0],
        _ => (0..labels.len()).filter(fits).collect(),
    };
    match chosen[..] {
        [variant] => Ok(variant),
        _ => {
            let which = wanted.map_or("this run has several variants".to_owned(), |wanted| {
                format!("`{wanted}` does not name exactly one variant")
            });
            let labels = labels.join(", ");
            Err(format!("{which}; choose with --variant: {labels}"))
        }
    }
}

pub(super) fn of_passes<'a>(
    basis: Basis<'a>,
    passes: &Passes,
    variant: usize,
) -> (Scope, Vec<Part<'a>>) {
    let mut of: Vec<usize> = passes.measured(variant).collect();
    if of.is_empty() {
        of.extend(passes.of_variant(variant));
    }
    let parts = of
        .into_iter()
        .map(|pass| whole(basis, Some(passes.list[pass].span)));
    let label = passes.variants[variant].label();
    (Scope::Repeats(label), parts.collect())
}

/// A stretch as one step.
fn whole<'a>(basis: Basis<'a>, window: Option<Span>) -> Part<'a> {
    Part {
        program: Program::new(basis.trace, basis.graph, window, basis.known),
        marks: Vec::new(),
        is_asked: Vec::new(),
        steps: Vec::new(),
    }
}

pub(super) fn of_steps<'a>(
    basis: Basis<'a>,
    steps: Option<&Steps>,
    window: Option<Span>,
) -> (Scope, Vec<Part<'a>>) {
    let mut part = whole(basis, window);
    let Some(steps) = steps else {
        return (Scope::Run, vec![part]);
    };
    let program = &part.program;
    let of_process = |op: &u32| {
        let lane = program.ops[*op as usize].stream as usize;
        basis.trace.lanes()[lane].key().process == steps.process
    };
    let at = |time: Ns| {
        let starts = &basis.graph.ops.start;
        let before = starts.partition_point(|&start| start < time) as OpId;
        let from = before.saturating_sub(program.op_id(0));
        (from..program.ops.len() as u32)
            .find(of_process)
            .unwrap_or(NONE)
    };
    let spans: &[Span] = steps.steady();
    let mut marks: Vec<u32> = spans.iter().map(|span| at(span.start)).collect();
    marks.extend(spans.last().map(|span| at(span.end)));
    let issued = |span: &Span| {
        let op = at(span.start);
        let call = program.ops.get(op as usize).map_or(NONE, |op| op.call);
        match call {
            NONE => span.start,
            call => program.call_span(call).start,
        }
    };
    let starts = steps.spans.iter().map(issued).collect();
    // A step that is odd, or of another kind, is replayed with the others, and measured with none.
    let asked: FxHashSet<usize> = steps.main().regular().collect();
    part.is_asked = steps.steady.clone().map(|it| asked.contains(&it)).collect();
    (part.marks, part.steps) = (marks, starts);
    (Scope::Steps(steps.origin_text()), vec![part])
}
