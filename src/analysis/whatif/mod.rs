//! What-if: what a step or a run would take with something changed, by replay of a [program](super::program).
//!
//! A [`WhatIf`] has measured what is asked about: the repeats of a scenario's variant, the steady steps of a
//! program, or the whole timeline where it has neither. It says how well the unchanged replay explains them
//! ([`WhatIf::replay_error`]), and [`WhatIf::predict`] what they would be with edits. `docs/WHATIF.md` explains
//! both. `bounds` has what stands beside predictions.

mod bounds;

pub use bounds::{Faster, Ideal};

use crate::activity::units::duration;
use crate::activity::{Ns, Span};
use crate::analysis::edits::{self, Scene};
use crate::analysis::graph::Graph;
use crate::analysis::passes::Passes;
use crate::analysis::program::{Known, NONE, Program, Times};
use crate::analysis::{stats, steps};
use crate::scenario::edit::EditSet;
use crate::scenario::plan::Plan;
use crate::trace::Trace;

/// The largest error of the unchanged replay with which anything is predicted.
pub const ERROR_MAX: f64 = 0.05;

/// Why nothing is predicted of a timeline with holes: a replay would take what is not there for work of the host.
fn unrecorded(trace: &Trace) -> Option<String> {
    let of_device = |device: usize| -> Ns {
        let span = trace.devices()[device].usage.span().unwrap_or_default();
        let stretches = trace.unrecorded(device, span);
        stretches.iter().map(|stretch| stretch.len()).sum()
    };
    let sum: Ns = (0..trace.devices().len()).map(of_device).sum();
    (sum > 0).then(|| {
        format!(
            "{} between its operations were not recorded, and what ran then cannot be replayed",
            duration(sum)
        )
    })
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The repeats of a scenario's variant, by its label: first operation's start to the last one's end.
    Repeats(String),
    /// The steady steps of a program, and what showed them.
    Steps(String),
    /// First operation's start to the last one's end.
    Run,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The edits as they were written.
    pub edit: String,
    /// What it comes to, or why nothing is predicted.
    pub outcome: Result<Outcome, String>,
}

/// What edits come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Median time in ns.
    pub predicted: Ns,
    /// The interval that the spread between steps and the replay's error leave open.
    pub low: Ns,
    /// See `low`.
    pub high: Ns,
    /// What is saved; negative when it takes longer.
    pub saving: Ns,
    /// Calls and operations changed.
    pub count: usize,
    /// What is taken for granted.
    pub notes: Vec<String>,
}

/// A stretch that is replayed, with the steps in it.
#[derive(Debug)]
struct Part {
    program: Program,
    /// Operations (indices into the program) with which steps begin, and the one that ends the last of
    /// them, [`NONE`] for the end of the stretch. Empty: the whole is one step.
    marks: Vec<u32>,
    /// Their starts.
    steps: Vec<Ns>,
}

/// What is asked about, measured and ready to be replayed.
#[derive(Debug)]
pub struct WhatIf<'a> {
    trace: &'a Trace,
    graph: &'a Graph,
    scope: Scope,
    parts: Vec<Part>,
    samples: Vec<Ns>,
    replayed: Ns,
}

impl<'a> WhatIf<'a> {
    /// Measures, and replays unchanged.
    ///
    /// # Errors
    /// When there is nothing to measure, or several variants and none of this name.
    pub fn new(
        trace: &'a Trace,
        graph: &'a Graph,
        variant: Option<&str>,
        known: &Known,
    ) -> Result<Self, String> {
        let passes = Passes::of_trace(trace, None);
        if let Some(refusal) = unrecorded(trace) {
            return Err(refusal);
        }
        let (scope, parts) = if passes.list.is_empty() {
            if let Some(variant) = variant {
                return Err(format!(
                    "there is no variant `{variant}`: this is no run of a scenario"
                ));
            }
            of_steps(trace, graph, known)
        } else {
            let variant = chosen(&passes, variant)?;
            of_passes(trace, graph, &passes, variant, known)
        };
        Self::of(trace, graph, scope, parts)
    }

    /// The same for a variant of a scenario's run, by its place among those that ran.
    ///
    /// # Errors
    /// When it did not run.
    pub fn of_variant(
        trace: &'a Trace,
        graph: &'a Graph,
        plan: Option<&Plan>,
        variant: usize,
        known: &Known,
    ) -> Result<Self, String> {
        let passes = Passes::of_trace(trace, plan);
        if variant >= passes.variants.len() {
            return Err("this variant did not run".to_owned());
        }
        let (scope, parts) = of_passes(trace, graph, &passes, variant, known);
        Self::of(trace, graph, scope, parts)
    }

    fn of(
        trace: &'a Trace,
        graph: &'a Graph,
        scope: Scope,
        parts: Vec<Part>,
    ) -> Result<Self, String> {
        let mut whatif = WhatIf {
            trace,
            graph,
            scope,
            parts,
            samples: Vec::new(),
            replayed: 0,
        };
        let (mut exact, mut typical) = (Vec::new(), Vec::new());
        for part in &whatif.parts {
            part.measure(&part.program, &part.program.replay(), &mut exact);
            part.measure(&part.program, &part.program.replay_typical(), &mut typical);
        }
        whatif.samples = exact;
        whatif.replayed = middle(&typical);
        if middle(&whatif.samples) <= 0 {
            return Err("there is no operation of a GPU to predict anything of".to_owned());
        }
        Ok(whatif)
    }

    /// What was measured.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The times measured.
    #[must_use]
    pub fn samples(&self) -> &[Ns] {
        &self.samples
    }

    /// The median time measured.
    #[must_use]
    pub fn measured(&self) -> Ns {
        middle(&self.samples)
    }

    /// The median time of the replay with nothing changed, every delay replaced by the median of its kind.
    #[must_use]
    pub fn replayed(&self) -> Ns {
        self.replayed
    }

    /// How far that is off, as a share.
    #[must_use]
    pub fn replay_error(&self) -> f64 {
        let measured = self.measured();
        (self.replayed - measured).abs() as f64 / measured as f64
    }

    /// Why nothing is predicted, when the replay does not explain what was measured.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let error = self.replay_error();
        (error > ERROR_MAX).then(|| {
            format!(
                "the unchanged replay is {:.1} % off, more than {:.0} %: the recording does not explain its own times",
                100.0 * error,
                100.0 * ERROR_MAX
            )
        })
    }

    /// What it would be with edits.
    #[must_use]
    pub fn predict(&self, set: &EditSet) -> Prediction {
        let outcome = match self.refusal() {
            Some(refusal) => Err(refusal),
            None => self.outcome(set),
        };
        Prediction {
            edit: set.to_string(),
            outcome,
        }
    }

    fn outcome(&self, set: &EditSet) -> Result<Outcome, String> {
        let mut samples = Vec::new();
        let (mut count, mut notes) = (0, Vec::new());
        for part in &self.parts {
            let mut program = part.program.clone();
            let scene = Scene {
                trace: self.trace,
                graph: self.graph,
                steps: &part.steps,
            };
            let applied = edits::apply(set, &mut program, scene)?;
            count += applied.count;
            for note in applied.notes {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
            part.measure(&program, &program.replay(), &mut samples);
        }
        let predicted = middle(&samples);
        let (low, high) = spread(&samples);
        // What the replay cannot explain of the recording it cannot promise of the prediction.
        let error = (predicted as f64 * self.replay_error()).round() as Ns;
        Ok(Outcome {
            predicted,
            low: low.min(predicted - error).max(0),
            high: high.max(predicted + error),
            saving: self.measured() - predicted,
            count,
            notes,
        })
    }
}

impl Part {
    fn measure(&self, program: &Program, times: &Times, samples: &mut Vec<Ns>) {
        if self.marks.is_empty() {
            samples.push(program.makespan(times));
            return;
        }
        let at = |mark: u32| match mark {
            NONE => times.op_end.iter().copied().max().unwrap_or(0),
            op => times.op_start[op as usize],
        };
        samples.extend(self.marks.windows(2).map(|pair| at(pair[1]) - at(pair[0])));
    }
}

fn middle(samples: &[Ns]) -> Ns {
    let samples: Vec<f64> = samples.iter().map(|&s| s as f64).collect();
    stats::median(&samples).map_or(0, |median| median.round() as Ns)
}

/// The interval of the median; of too few samples for one, the least and the greatest.
fn spread(samples: &[Ns]) -> (Ns, Ns) {
    let floats: Vec<f64> = samples.iter().map(|&s| s as f64).collect();
    match stats::median_interval(&floats) {
        Some((low, high)) => (low.round() as Ns, high.round() as Ns),
        None => (
            samples.iter().copied().min().unwrap_or(0),
            samples.iter().copied().max().unwrap_or(0),
        ),
    }
}

/// The variant that is asked about.
fn chosen(passes: &Passes, wanted: Option<&str>) -> Result<usize, String> {
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
                format!("there is not one variant `{wanted}`")
            });
            Err(format!("{which}; say --variant: {}", labels.join(", ")))
        }
    }
}

fn of_passes(
    trace: &Trace,
    graph: &Graph,
    passes: &Passes,
    variant: usize,
    known: &Known,
) -> (Scope, Vec<Part>) {
    let measured: Vec<usize> = passes.measured(variant).collect();
    let of = if measured.is_empty() {
        passes.of(variant).collect()
    } else {
        measured
    };
    let parts = of.into_iter().map(|pass| {
        let program = Program::new(trace, graph, Some(passes.list[pass].span), known);
        Part {
            program,
            marks: Vec::new(),
            steps: Vec::new(),
        }
    });
    let label = passes.variants[variant].label();
    (Scope::Repeats(label), parts.collect())
}

fn of_steps(trace: &Trace, graph: &Graph, known: &Known) -> (Scope, Vec<Part>) {
    let program = Program::new(trace, graph, None, known);
    let found = steps::of(trace, None);
    let found = found
        .into_iter()
        .max_by_key(|steps| steps.steady_span().len());
    let Some(steps) = found else {
        let whole = Part {
            program,
            marks: Vec::new(),
            steps: Vec::new(),
        };
        return (Scope::Run, vec![whole]);
    };
    let of_process = |op: &u32| {
        let lane = program.ops[*op as usize].stream as usize;
        trace.lanes()[lane].key().process == steps.process
    };
    let at = |time: Ns| {
        let from = program.ops.partition_point(|op| op.span.start < time) as u32;
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
        program
            .calls
            .get(call as usize)
            .map_or(span.start, |call| call.span.start)
    };
    let starts = steps.spans.iter().map(issued).collect();
    let scope = Scope::Steps(steps.from.text());
    let part = Part {
        program,
        marks,
        steps: starts,
    };
    (scope, vec![part])
}
