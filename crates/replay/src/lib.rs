//! What a step or a run would take with something changed.
//!
//! A [`program`] is a stretch of the dependency graph that may be changed and replayed. [`edits`] change it, and
//! [`whatif`] measures, replays and predicts.

pub mod edits;
pub mod engines;
pub mod program;
pub mod whatif;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
