//! Where records of real GPUs come from: the scenario runner, traced programs, and what is seen of them from outside.

pub mod attach;
mod clock;
pub mod counters;
mod ending;
mod hardware;
pub mod job;
mod looking;
pub mod machine;
mod nvml;
mod private;
pub mod python;
mod rights;
pub mod runner;

pub use private::cache_folder;
