//! What is known of a timeline, and what is said of it.
//!
//! [`Facts`] makes graph, causes, steps, ranks and figures, each of them once. [`verdict`] says what bounds a device. A
//! [`Judgement`] has verdicts, findings, and what cures save. Nothing here draws.

mod advice;
mod counted;
pub mod facts;
pub mod verdict;

pub use advice::{JudgedPart, Judgement};
pub use facts::Facts;

#[cfg(test)]
mod tests;
