//! cuptop: a terminal timeline for CUDA.
//!
//! The folders follow the way of the data; each may use what stands to its left, never the reverse:
//!
//! ```text
//! activity ─► scenario ─► source ─► trace ─► analysis ─► report · export · tui ─► cli
//! ```
//!
//! `docs/ARCHITECTURE.md` has the whole picture.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the documentation is for those who work on the program"
)]
#![allow(
    unreachable_pub,
    reason = "nothing but `main` and the doors for tests leaves this library: `pub` reaches as far as its module does"
)]
#![allow(
    missing_docs,
    reason = "a name that says it all needs no sentence that says it again"
)]

mod activity;
mod analysis;
mod cli;
mod export;
mod occupancy;
mod report;
mod scenario;
mod source;
mod text;
mod trace;
mod tui;

#[doc(hidden)]
pub mod testing;

pub use cli::main;
