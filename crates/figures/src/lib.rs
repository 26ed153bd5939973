//! What a timeline says in numbers: questions about a [`trace::Trace`] with exact answers.
//!
//! The root holds the figures of a device over the whole timeline or one pass (the definitions of the report's JSON).
//! [`tables`] counts by name. [`shapes`] has the launches of each kernel ([`fill`]: how they fill a GPU; [`counted`]: what
//! they do with it; [`class`]: what limits them). [`growth`] has how their grids grow, and [`remarks`] what stands out of
//! them. [`lost`] has what is on no record, and [`failed`] what returned an error. [`launches`] has what lies between a CUDA
//! call and its operation, and [`memory`] the device memory in use. [`passes`] cuts a scenario's run into variants and
//! passes. The figures of a variant ([`variants`]) are those of one table ([`variants::measure`]). [`breakdown`] is for
//! windows that are no pass, and [`steps`] finds the iterations of a program ([`serving`]: those of a server of a language
//! model). [`off_cpu`] has what the CPU did in a gap. [`hardware`] has what counters said meanwhile, [`stalls`] what kernels
//! waited for, and [`lines`] at which line the program was. [`nodes`] has who asked for what in a CUDA graph, and
//! [`exchanges`] what MPI sends through the host. [`start_work`] has what is done but once, and [`uploads`] what is copied
//! before the work. [`trips`] has what goes down and up again, [`large_copies`] and [`host_copies`] when copies were asked for. [`turns`] has
//! threads that take turns, [`driver`] the driver's own start, and [`gil`] threads that wait for Python's lock. [`own_work`] has
//! what kernels do by their names, and [`attention`] what goes through memory of it. [`tensor_cores`] has what a card can do, and
//! [`watching`] what recording may have cost.

pub mod attention;
pub mod breakdown;
pub mod busy;
pub mod class;
pub mod collectives;
pub mod communication;
pub mod configs;
pub mod conversions;
pub mod counted;
mod device;
pub mod double;
pub mod driver;
pub mod exchanges;
pub mod failed;
pub mod fill;
pub mod gil;
pub mod growth;
pub mod hardware;
pub mod host_copies;
pub mod large_copies;
pub mod launches;
pub mod lines;
pub mod lost;
pub mod memory;
pub mod nodes;
pub mod off_cpu;
pub mod outliers;
pub mod own_work;
pub mod passes;
pub mod recomputed;
pub mod remarks;
pub mod rows;
pub mod rows_of_tensors;
pub mod serving;
pub mod shapes;
pub mod stalls;
pub mod start_work;
pub mod steps;
pub mod stream_order;
pub mod tables;
pub mod tensor_cores;
pub mod trips;
pub mod tuning;
pub mod turns;
pub mod uploads;
pub mod variants;
pub mod watching;

pub use device::*;
pub use variants::VariantFigures;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

#[cfg(test)]
mod tests;
