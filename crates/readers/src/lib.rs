//! Readers of traces: they find a file's format, and send its records as batches.
//!
//! ```text
//! file ─► Kineto or Chrome JSON ─┐
//!         Nsight Systems SQLite ─┼─► gather (order, bounds) ─► feed
//!         recording ─────────────┘
//! ```
//!
//! [`file::open`] is the one way in.

pub mod file;
mod gather;
mod kineto;
mod nsys;
mod pipe;
