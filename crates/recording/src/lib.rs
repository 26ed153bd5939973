//! Recordings: the files in which the collector, or a simulator's [`Saver`], puts what happened.
//!
//! ```text
//! collector (in the traced process) ─► file ─► Follower ─► batches
//! any source ─► Saver ─► file
//! ```
//!
//! [`mod@file`] is the format with its writer and its reader, which the collector uses inside other people's programs. With the feature
//! `follow` comes what cuptop does with recordings: it follows one live in the same way in which it opens one later.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the documentation is for those who work on the program"
)]
#![allow(
    missing_docs,
    reason = "a name that says it all needs no sentence that says it again"
)]

pub mod file;
#[cfg(feature = "follow")]
mod follow;

#[cfg(feature = "follow")]
pub use follow::*;
