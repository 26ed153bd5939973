//! Readers of traces: they find a file's format, and send its records as batches.
//!
//! ```text
//! file ─► Kineto or Chrome JSON ─┐
//!         Nsight Systems SQLite ─┼─► gather (order, bounds) ─► feed
//!         recording ─────────────┘
//! ```
//!
//! [`file::open`] is the one way in.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the documentation is for those who work on the program"
)]
#![allow(
    missing_docs,
    reason = "a name that says it all needs no sentence that says it again"
)]

pub mod file;
mod gather;
mod kineto;
mod nsys;
mod stream;
