//! What-if: what a step or a run would take with something changed, by replay of a [program](crate::program).
//!
//! A [`WhatIf`] has measured what is asked about. That is the repeats of a scenario's variant, the steady steps of a
//! program, or the whole timeline where it has neither. It says how well the unchanged replay explains them
//! ([`WhatIf::replay_error`]), and [`WhatIf::predict`] what they would be with edits. `docs/WHATIF.md` explains both.
//! `bounds` has what stands beside predictions, `parts` what is replayed, `timeline` the timeline that it comes to.

mod bounds;
mod parts;
mod predict;
mod timeline;

pub use bounds::{Faster, Ideal};
use parts::Part;
pub use predict::{Outcome, Prediction};

use std::cell::RefCell;

use crate::edits::{Bound, Scene as EditScene};
use crate::program::{GpuRates, Times};
use activity::stats::median_time;
use activity::units::duration;
use activity::{Ns, Span};
use causes::graph::Graph;
use figures::breakdown::Breakdown;
pub use figures::passes::Passes;
use figures::steps::Steps;
use trace::Trace;

/// The largest error of the unchanged replay with which anything is predicted.
pub const ERROR_MAX: f64 = 0.05;

/// Why nothing is predicted of a timeline with holes: a replay would take what is not there for work of the host.
fn unrecorded(trace: &Trace) -> Option<String> {
    let of_device = |device: usize| -> Ns {
        let span = trace.devices()[device].usage.span().unwrap_or_default();
        Breakdown::of_device(trace, device, span).not_recorded
    };
    let sum: Ns = (0..trace.devices().len()).map(of_device).sum();
    (sum > 0).then(|| {
        let sum = duration(sum);
        format!("recording was off for {sum} between operations, which cannot be replayed")
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

/// What a replay rests on: what was recorded, and what is known of the GPU beside it.
#[derive(Clone, Copy, Debug)]
pub struct Basis<'a> {
    pub trace: &'a Trace,
    pub graph: &'a Graph,
    pub known: &'a GpuRates,
}

/// What is asked about, measured and ready to be replayed.
pub struct WhatIf<'a> {
    trace: &'a Trace,
    graph: &'a Graph,
    /// What was measured.
    pub scope: Scope,
    parts: Vec<Part<'a>>,
    /// The times measured.
    pub samples: Vec<Ns>,
    /// The median time of the replay with nothing changed, every delay replaced by the median of its kind.
    pub replayed: Ns,
    whole: Ns,
    /// How many times as many steps there are as were replayed, whose times are taken to be like theirs: 1 where all were.
    pub times: f64,
    /// The memory of the last prediction, for the next one.
    scratch: RefCell<Times>,
}

impl<'a> WhatIf<'a> {
    /// Measures, and replays unchanged. A program's `steps` are asked for where it is no run of a scenario.
    ///
    /// # Errors
    /// When there is nothing to measure, or several variants and none of this name.
    pub fn new<'s>(
        basis: Basis<'a>,
        passes: &Passes,
        steps: impl FnOnce() -> Option<&'s Steps>,
        variant: Option<&str>,
    ) -> Result<Self, String> {
        if let Some(refusal) = unrecorded(basis.trace) {
            return Err(refusal);
        }
        match variant {
            Some(variant) if passes.list.is_empty() => Err(format!(
                "no variant `{variant}`: only runs of scenarios have variants"
            )),
            None if passes.list.is_empty() => Self::of_steps(basis, steps(), None),
            variant => Self::of_repeats(basis, passes, parts::chosen(passes, variant)?),
        }
    }

    /// The same of what is no run of a scenario. It takes its steady steps, where there are some, else what begins
    /// within `window`, or everything.
    ///
    /// # Errors
    /// When no operation of a GPU is there.
    pub fn of_steps(
        basis: Basis<'a>,
        steps: Option<&Steps>,
        window: Option<Span>,
    ) -> Result<Self, String> {
        let (scope, parts) = parts::of_steps(basis, steps, window);
        Self::of(basis, scope, parts)
    }

    /// The same for a variant of a scenario's run, by its place among those that ran.
    ///
    /// # Errors
    /// When the variant did not run.
    pub fn of_repeats(basis: Basis<'a>, passes: &Passes, variant: usize) -> Result<Self, String> {
        if variant >= passes.variants.len() {
            return Err("this variant did not run".to_owned());
        }
        let (scope, parts) = parts::of_passes(basis, passes, variant);
        Self::of(basis, scope, parts)
    }

    fn of(basis: Basis<'a>, scope: Scope, parts: Vec<Part<'a>>) -> Result<Self, String> {
        let mut whatif = WhatIf {
            trace: basis.trace,
            graph: basis.graph,
            scope,
            parts,
            samples: Vec::new(),
            replayed: 0,
            whole: 0,
            times: 1.0,
            scratch: RefCell::default(),
        };
        let (mut exact, mut typical, mut wholes) = (Vec::new(), Vec::new(), Vec::new());
        let mut times = Times::default();
        for part in &whatif.parts {
            times.record(&part.program);
            part.measure(&part.program, &times, &mut exact);
            wholes.push(part.whole(&part.program, &times));
            times = part.program.replay_typical_in(times);
            part.measure(&part.program, &times, &mut typical);
        }
        whatif.scratch = times.into();
        whatif.whole = whole(&whatif.scope, &exact, &wholes);
        whatif.samples = exact;
        whatif.replayed = median_time(&typical).unwrap_or(0);
        if whatif.measured() <= 0 {
            return Err("no GPU operation was recorded".to_owned());
        }
        Ok(whatif)
    }

    /// What edits of a part need to know.
    fn scene<'s>(&'s self, part: &'s Part<'_>, bound: Bound) -> EditScene<'s> {
        EditScene {
            trace: self.trace,
            graph: self.graph,
            steps: &part.steps,
            bound,
        }
    }

    /// The median time measured.
    pub fn measured(&self) -> Ns {
        median_time(&self.samples).unwrap_or(0)
    }

    /// The time that findings speak of: one repeat, all steady steps, or the run.
    pub fn whole(&self) -> Ns {
        self.scaled(self.whole)
    }

    fn scaled(&self, time: Ns) -> Ns {
        (time as f64 * self.times).round() as Ns
    }

    /// How far the replay with nothing changed is off, as a share.
    pub fn replay_error(&self) -> f64 {
        let measured = self.measured();
        (self.replayed - measured).abs() as f64 / measured as f64
    }

    /// Why nothing is predicted, when the replay does not explain what was measured.
    pub fn refusal(&self) -> Option<String> {
        let error = self.replay_error();
        (error > ERROR_MAX).then(|| {
            let [error, most] = [error, ERROR_MAX].map(|it| 100.0 * it);
            format!("the replay of the unchanged run is off by {error:.1} %, more than {most:.0} %")
        })
    }
}

/// The time that findings speak of: one repeat, or all of what is one stretch.
fn whole(scope: &Scope, samples: &[Ns], wholes: &[Ns]) -> Ns {
    match scope {
        Scope::Repeats(_) => median_time(samples).unwrap_or(0),
        Scope::Steps(_) | Scope::Run => wholes.iter().sum(),
    }
}
