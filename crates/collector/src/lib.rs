//! Collects CUPTI activity records on background threads and writes them to a recording.
//!
//! ```text
//!  program's threads ─launch─► CUPTI ◄─ flush every 20 ms ─ cuptop-flush
//!                                │ completed buffers
//!                                ▼
//!              bounded queue ─► cuptop-decode ─► recording (a file) ─► whoever follows it
//! ```
//!
//! Nothing of this runs in the program's own threads but taking an empty buffer from a queue. There are two users.
//! One is a program that holds a [`Collector`] itself (cuptop's runner). The other is any CUDA program into which the
//! CUDA driver loads this crate, built as a shared library with the feature `inject`.
//!
//! The recording itself is the crate [`recording`]: no CUDA, no threads.

mod buffers;
mod collector;
mod command;
mod compiled;
pub mod control;
mod cubin;
mod decode;
mod fork;
mod gate;
pub mod hand;
mod host;
#[cfg(feature = "inject")]
pub mod inject;
#[cfg(feature = "inject")]
pub mod late;
pub mod link;
mod marks;
mod nodes;
pub mod options;
mod process;
mod python;
mod ranges;
mod setup;
mod stalls;
mod steady;
mod switch;
mod threads;

pub use collector::Collector;
pub use options::{ApiCalls, Caller, Ending, Graphs, Lines, Options};
pub use python::pythons;
pub use setup::StartError;
