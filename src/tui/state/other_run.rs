//! A second timeline that the one on screen is compared with.

use std::sync::Arc;

use crate::report::compare::Row;
use activity::Span;
use trace::Trace;

/// What the timeline on screen is compared with, and what that came to.
#[derive(Clone, Debug)]
pub struct OtherRun {
    /// The other timeline: the first of the two.
    pub trace: Arc<Trace>,
    /// What they are called, the other one first.
    pub names: [String; 2],
    /// The answer in a line: "B is 2.43× faster: overlap 0 → 81 %".
    pub headline: String,
    /// What is compared.
    pub pairs: Vec<Pair>,
}

/// The same thing in both.
#[derive(Clone, Debug)]
pub struct Pair {
    /// What: "makespan", "step", or a variant's name.
    pub of: String,
    /// The stretches of median time.
    pub spans: [Span; 2],
    /// Their figures in a few words.
    pub figures: [String; 2],
    /// "2.43× faster", "no difference shown".
    pub told: String,
    /// Median of the second over that of the first.
    pub ratio: f64,
    /// Whether a difference is told.
    pub differs: bool,
}

impl From<&Row> for Pair {
    fn from(row: &Row) -> Self {
        let told = row.told();
        Pair {
            of: row.of.clone(),
            spans: row.spans,
            figures: [row.in_words(0), row.in_words(1)],
            differs: told.is_some(),
            told: told.unwrap_or_else(|| "no difference shown".to_owned()),
            ratio: row.ratio,
        }
    }
}
