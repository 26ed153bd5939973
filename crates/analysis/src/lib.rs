//! Figures, and the reasons behind them: questions about a [`trace::Trace`] with exact answers.
//!
//! [`figures`] holds the figures of a device over the whole timeline or one pass (the definitions of the report's
//! JSON). [`tables`] counts by name. [`shapes`] has the launches of each kernel ([`fill`]: how they fill a GPU;
//! [`counted`]: what they do with it; [`class`]: what limits them). [`launches`] has what lies between a CUDA call and its operation, and [`memory`]
//! the device memory in use. A run of a scenario falls into variants and passes ([`passes`]); the figures of a variant
//! ([`variants`]) are those of one table ([`variants::measure`]); [`breakdown`] is for windows that are no pass.
//! [`graph`] holds what depended on what, and [`causes`] tells from it why a gap is there. [`off_cpu`] has what the CPU
//! did in it ([`nested`]: which of its ranges is innermost). [`hardware`] has what counters said meanwhile, and [`lines`] at
//! which line the program was. [`verdict`] says what bounds a device, and [`findings`] what could be better. [`whatif`] says what [`edits`] would save, by replay of
//! a [`program`], and [`advice`] puts these together; [`facts`] makes each of them once; [`ranks`] who waits for whom
//! in a job. Nothing here draws.

pub mod advice;
pub mod breakdown;
pub mod busy;
pub mod calls;
pub mod causes;
pub mod class;
pub mod collectives;
pub mod counted;
pub mod edits;
pub mod evidence;
pub mod facts;
pub mod figures;
pub mod fill;
pub mod findings;
pub(crate) mod first_use;
pub mod graph;
pub mod hardware;
pub mod launches;
pub mod lines;
pub mod memory;
pub(crate) mod nested;
pub mod off_cpu;
pub mod parallel;
pub mod passes;
pub mod program;
pub mod ranks;
pub mod shapes;
pub mod stacks;
pub mod steps;
pub mod tables;
pub mod thresholds;
pub mod variants;
pub mod verdict;
pub mod watching;
pub mod whatif;

pub use activity::occupancy;
pub use calls::CallIndex;
pub use facts::Facts;
pub use figures::DeviceFigures;
pub use variants::VariantFigures;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(any(test, feature = "testing"))]
use testing::made;

/// Counts what is made of a timeline, for tests.
#[cfg(not(any(test, feature = "testing")))]
#[inline]
fn made(_what: &'static str) {}

#[cfg(test)]
mod tests;
