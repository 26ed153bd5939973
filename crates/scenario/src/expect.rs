//! `[expect]`: what must hold of a run's figures.

pub use super::figures::{Figure, Kind};
use super::site::SiteId;

/// One line of `[expect]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The left side as written ("streamed.speedup_over.sequential").
    pub what: String,
    /// The variant it speaks of.
    pub variant: String,
    /// At which value of the sweep, when there is one; `None` means at every value.
    pub point: Option<i64>,
    /// Which figure.
    pub figure: Figure,
    /// How the measured figure must compare with `value`.
    pub compare: Compare,
    /// The bound, in the figure's own unit (a share, GB/s, ns, bytes, a count).
    pub value: f64,
    /// The right side as written (">= 2.0").
    pub expected: String,
    /// Where the file states it.
    pub site: SiteId,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    AtLeast,
    AtMost,
    /// More than.
    Above,
    /// Less than.
    Below,
}

impl Compare {
    /// Whether `measured` satisfies it.
    pub fn holds(self, measured: f64, bound: f64) -> bool {
        match self {
            Compare::AtLeast => measured >= bound,
            Compare::AtMost => measured <= bound,
            Compare::Above => measured > bound,
            Compare::Below => measured < bound,
        }
    }
}
