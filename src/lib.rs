//! cuptop: a terminal timeline for CUDA.
//!
//! The folders follow the way of the data; each may use what stands to its left, never the reverse:
//!
//! ```text
//! activity ─► scenario ─► source ─► trace ─► analysis ─► report · export · tui ─► cli
//! ```
//!
//! `docs/ARCHITECTURE.md` has the whole picture.

pub mod activity;
pub mod analysis;
pub mod cli;
pub mod export;
pub mod occupancy;
pub mod report;
pub mod scenario;
pub mod source;
pub mod text;
pub mod trace;
pub mod tui;
