//! Predictions: what edits come to, and between what and what.

use super::{WhatIf, whole};
use crate::edits::{self, Applied, Bound, Scene};
use activity::Ns;
use activity::stats::median_time;
use activity::units::duration;
use scenario::edit::EditSet;

/// Ends of what is not known that differ by no more than this share make no difference.
const UNKNOWN_SHARE: f64 = 0.01;

/// Where the greatest end is more than so many times the least one, the middle says nothing that the ends do not.
const OPEN: Ns = 2;

/// The median of fewer steps than these is one of them by chance.
const SAMPLES_MIN: usize = 6;

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
    /// Whether that is no more likely than much else of the interval, so that only the interval is shown. Its ends
    /// differ by more than a factor of two, as no record tells more or few steps were measured.
    pub is_open: bool,
    /// The interval that the spread between steps and the replay's error leave open.
    pub low: Ns,
    /// See `low`.
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
    #[must_use]
    pub fn predict(&self, set: &EditSet) -> Prediction {
        Prediction {
            edit: set.to_string(),
            outcome: self.likely(set).and_then(|of| self.within_bounds(set, of)),
        }
    }

    /// The same as it most likely comes out, whatever is not known: a replay each where [`WhatIf::predict`] takes up to
    /// three. The interval is that of the steps alone.
    ///
    /// # Errors
    /// Why nothing is predicted.
    pub fn likely(&self, set: &EditSet) -> Result<Outcome, String> {
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        let made = self.made(set, Bound::Likely)?;
        let predicted = median_time(&made.samples).unwrap_or(0);
        let (low, high) = self.interval(&made.samples);
        Ok(Outcome {
            predicted,
            is_open: self.is_open((low, high), false),
            low,
            high,
            saving: self.measured() - predicted,
            whole_saving: self.scaled(self.whole - whole(&self.scope, &made.samples, &made.wholes)),
            count: made.applied.count,
            notes: made.applied.notes,
            unknowns: made.applied.unknowns,
        })
    }

    /// Puts both ends of what is not known into the interval.
    fn within_bounds(&self, set: &EditSet, mut of: Outcome) -> Result<Outcome, String> {
        if of.unknowns.is_empty() {
            return Ok(of);
        }
        let mut ends = [of.predicted; 2];
        for (end, bound) in ends.iter_mut().zip([Bound::Least, Bound::Most]) {
            let samples = self.made(set, bound)?.samples;
            let (low, high) = self.interval(&samples);
            (of.low, of.high) = (of.low.min(low), of.high.max(high));
            *end = median_time(&samples).unwrap_or(0);
        }
        let [least, most] = ends;
        of.is_open = self.is_open((of.low, of.high), true);
        let measured = self.measured();
        if least < measured && most as f64 > (1.0 + UNKNOWN_SHARE) * measured as f64 {
            return Err(format!(
                "it would take {} to {} where {} were measured, so whether it saves or costs time is not known: {}",
                duration(least),
                duration(most),
                duration(measured),
                of.unknowns.join("; ")
            ));
        }
        // What makes no difference here need not be told.
        if (most - least) as f64 <= UNKNOWN_SHARE * of.predicted as f64 {
            of.unknowns.clear();
        }
        Ok(of)
    }

    fn is_open(&self, (low, high): (Ns, Ns), is_unknown: bool) -> bool {
        high > OPEN * low && (is_unknown || self.samples.len() < SAMPLES_MIN)
    }

    fn made(&self, set: &EditSet, bound: Bound) -> Result<EditResult, String> {
        let mut made = EditResult::default();
        for part in &self.parts {
            let mut program = part.program.clone();
            let scene = Scene {
                trace: self.trace,
                graph: self.graph,
                steps: &part.steps,
                bound,
            };
            let applied = edits::apply(set, &mut program, scene)?;
            made.applied.count += applied.count;
            for note in applied.notes {
                edits::add(&mut made.applied.notes, note);
            }
            for unknown in applied.unknowns {
                edits::add(&mut made.applied.unknowns, unknown);
            }
            let times = program.replay();
            part.measure(&program, &times, &mut made.samples);
            made.wholes.push(part.whole(&program, &times));
        }
        Ok(made)
    }

    /// Where a step of another run may lie: what the replay cannot explain it cannot promise.
    fn interval(&self, samples: &[Ns]) -> (Ns, Ns) {
        let middle = median_time(samples).unwrap_or(0);
        let error = (middle as f64 * self.replay_error()).round() as Ns;
        let (low, high) = spread(samples);
        (low.min(middle - error).max(0), high.max(middle + error))
    }
}

/// What edits made of all parts.
#[derive(Default)]
struct EditResult {
    samples: Vec<Ns>,
    wholes: Vec<Ns>,
    applied: Applied,
}

/// The least and the greatest, without the twentieth of the samples that is least and the one that is greatest.
fn spread(samples: &[Ns]) -> (Ns, Ns) {
    let mut samples = samples.to_vec();
    samples.sort_unstable();
    let without = samples.len() / 20;
    let inner = &samples[without..samples.len() - without];
    match inner {
        [] => (0, 0),
        [.., high] => (inner[0], *high),
    }
}

#[cfg(test)]
mod tests;
