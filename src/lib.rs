//! cuptop: a terminal timeline for CUDA. What a user meets: command line, screen, reports and exports.
//!
//! ```text
//! crates: activity ─► scenario ─► sim · live ─► trace ─► analysis      here: ─► report · export · tui ─► cli
//! ```
//!
//! `docs/ARCHITECTURE.md` has the whole picture. The library is there for the program and its tests; nothing in it is an interface.

#![allow(unreachable_pub, reason = "`pub` reaches as far as its module does")]

mod board;
pub mod bundled;
pub mod cli;
pub mod export;
pub mod inject;
mod replay;
pub mod report;
pub mod tui;

pub use cli::main;
