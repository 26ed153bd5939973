//! A second timeline that the one on screen is compared with.

use std::sync::Arc;

use crate::report::compare::ComparedRow;
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
    pub pairs: Vec<ComparedRow>,
}
