//! cuptop: a terminal timeline for CUDA. What a user meets: command line, screen, reports and exports.
//!
//! ```text
//! crates: activity ─► scenario ─► sim · live ─► trace ─► analysis      here: ─► report · export · tui ─► cli
//! ```
//!
//! `docs/ARCHITECTURE.md` has the whole picture. The library is there for the program and its tests; nothing in it is an interface.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the documentation is for those who work on the program"
)]
#![allow(unreachable_pub, reason = "`pub` reaches as far as its module does")]
#![allow(
    missing_docs,
    reason = "a name that says it all needs no sentence that says it again"
)]

pub mod bundled;
pub mod cli;
pub mod export;
pub mod inject;
mod replay;
pub mod report;
pub mod tui;

pub use cli::main;
