//! Predictions: what edits come to, and between what and what.

use super::bounds::Needs;
use super::{Scope, WhatIf, whole};
use crate::edits::{self, Applied, Bound};
use activity::Ns;
use activity::stats::{self, median_time};
use scenario::edit::EditSet;

/// Ends of what is not known that differ by no more than this share make no difference.
const UNKNOWN_SHARE: f64 = 0.01;

/// Of ten measured cures eight lie within these parts of their prediction. `docs/WHATIF.md` has the pairs and how they were counted.
/// The first is of the repeats of a scenario, whose CPU only issues; the second of other programs.
const APART: [f64; 2] = [0.05, 0.09];

/// Eight of ten of a normal distribution lie within so many deviations.
const EIGHT_OF_TEN: f64 = 1.28;

/// Of the way from the prediction to an end of what is not known so much is in the interval.
const TO_THE_END: f64 = 0.6;

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
    /// Median time in ns, as it most likely comes out.
    pub predicted: Ns,
    /// The interval in which eight of ten such cures lie.
    pub low: Ns,
    pub high: Ns,
    /// What is saved; negative when it takes longer.
    pub saving: Ns,
    /// The same of [`WhatIf::whole`].
    pub whole_saving: Ns,
    /// Calls and operations changed.
    pub count: usize,
    /// What is taken for granted.
    pub notes: Vec<String>,
    /// What no record tells, and the interval covers.
    pub unknowns: Vec<String>,
}

impl WhatIf<'_> {
    /// What it would be with edits.
    pub fn predict(&self, set: &EditSet) -> Prediction {
        Prediction {
            edit: set.to_string(),
            outcome: self
                .likely_of(set)
                .and_then(|(of, made)| self.within_bounds(set, of, &made)),
        }
    }

    /// The same as it most likely comes out, whatever is not known: a replay each where [`WhatIf::predict`] takes up to
    /// three. The interval is that of the steps alone.
    ///
    /// # Errors
    /// Why nothing is predicted.
    pub fn likely(&self, set: &EditSet) -> Result<Outcome, String> {
        self.likely_of(set).map(|(of, _)| of)
    }

    /// The same with what it is made of.
    fn likely_of(&self, set: &EditSet) -> Result<(Outcome, EditResult), String> {
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        let mut made = self.made(set, Bound::Likely)?;
        let predicted = made.median();
        let (low, high) = self.interval(&made, [predicted; 2], made.least);
        let applied = std::mem::take(&mut made.applied);
        let outcome = Outcome {
            predicted,
            low,
            high,
            saving: self.measured() - predicted,
            whole_saving: self.scaled(self.whole - whole(&self.scope, &made.samples, &made.wholes)),
            count: applied.count,
            notes: applied.notes,
            unknowns: applied.unknowns,
        };
        Ok((outcome, made))
    }

    /// Puts what is not known into the interval.
    fn within_bounds(
        &self,
        set: &EditSet,
        mut of: Outcome,
        likely: &EditResult,
    ) -> Result<Outcome, String> {
        if of.unknowns.is_empty() {
            return Ok(of);
        }
        // One after the other: each is a copy of the whole stretch.
        let [least, most] = [self.made(set, Bound::Least)?, self.made(set, Bound::Most)?];
        let ends = [least.median(), most.median()];
        (of.low, of.high) = self.interval(likely, ends, least.least);
        // What makes no difference here need not be told.
        if (ends[1] - ends[0]) as f64 <= UNKNOWN_SHARE * of.predicted as f64 {
            of.unknowns.clear();
        }
        Ok(of)
    }

    fn made(&self, set: &EditSet, bound: Bound) -> Result<EditResult, String> {
        let (mut made, mut needs) = (EditResult::default(), Needs::default());
        let mut times = self.scratch.take();
        for part in &self.parts {
            let mut program = part.program.clone();
            let scene = self.scene(part, bound);
            made.applied.add(edits::apply(set, &mut program, scene)?);
            times = program.replay_in(times);
            part.measure(&program, &times, &mut made.samples);
            made.wholes.push(part.whole(&program, &times));
            needs.add(self, part, &program);
        }
        self.scratch.replace(times);
        // What the mean step needs; where a few steps are long the median one needs less.
        let mean = self.samples.iter().sum::<Ns>() as f64 / self.samples.len().max(1) as f64;
        let usual = (self.measured() as f64 / mean).min(1.0);
        made.least = (needs.ideal(made.samples.len()).gpu as f64 * usual) as Ns;
        Ok(made)
    }

    /// Where the cure lies in eight of ten cases. Three things are not known, each by itself. A cure that runs is some way
    /// from its replay. The median of few steps lies somewhere around. And some things no record tells.
    fn interval(&self, made: &EditResult, ends: [Ns; 2], floor: Ns) -> (Ns, Ns) {
        let predicted = made.median();
        let is_of_scenario = matches!(self.scope, Scope::Repeats(_));
        let apart = APART[usize::from(!is_of_scenario)].max(self.replay_error());
        let median = EIGHT_OF_TEN * of_median(&self.samples).hypot(of_median(&made.samples));
        let part = |end: Ns| {
            let way = (end.max(1) as f64 / predicted.max(1) as f64).ln().abs();
            apart.hypot(median).hypot(TO_THE_END * way).exp()
        };
        let [least, most] = ends;
        let low = predicted as f64 / part(least.min(predicted));
        let high = predicted as f64 * part(most.max(predicted));
        ((low.round() as Ns).max(floor), high.round() as Ns)
    }
}

/// The standard error of a median, as a share of it.
fn of_median(samples: &[Ns]) -> f64 {
    let samples: Vec<f64> = samples.iter().map(|&time| time as f64).collect();
    let (Some(median), Some(distance)) =
        (stats::median(&samples), stats::median_deviation(&samples))
    else {
        return 0.0;
    };
    // Of a normal distribution a deviation is 1.4826 median distances, and a median 1.2533 times as uncertain as a mean.
    1.2533 * 1.4826 * distance / median.max(1.0) / (samples.len() as f64).sqrt()
}

/// What edits made of all parts.
#[derive(Default)]
struct EditResult {
    samples: Vec<Ns>,
    wholes: Vec<Ns>,
    /// What a step needs at the least.
    least: Ns,
    applied: Applied,
}

impl EditResult {
    /// The median step. Where few steps run beside each other they begin closer together than the device can go on.
    fn median(&self) -> Ns {
        median_time(&self.samples).unwrap_or(0).max(self.least)
    }
}

#[cfg(test)]
mod tests;
