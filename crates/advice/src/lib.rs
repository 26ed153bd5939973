//! What is known of a timeline, and what could be better.
//!
//! [`Facts`] makes graph, causes, steps, ranks and figures, each of them once. [`verdict`] says what bounds a device, and
//! [`findings`] what could be better. A [`Judgement`] has both, and what cures save. [`watching`] says what recording may
//! have cost. [`thresholds`] lie below the rules, each beside what it rests on. Nothing here draws.

mod advice;
pub mod facts;
pub mod findings;
pub mod thresholds;
pub mod verdict;
pub mod watching;

pub use advice::{JudgedPart, Judgement};
pub use facts::Facts;

#[cfg(test)]
mod testing;
