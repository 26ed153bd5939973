//! Recordings: the files in which the collector, or a simulator's [`Saver`], puts what happened.
//!
//! ```text
//! collector (in the traced process) ─► file ─► Follower ─► batches
//! any source ─► Saver ─► file
//! ```
//!
//! [`mod@file`] is the format with its writer and its reader, which the collector uses inside other people's programs. With the feature
//! `follow` comes what cuptop does with recordings: it follows one live in the same way in which it opens one later.

pub mod file;
#[cfg(feature = "follow")]
mod follow;

#[cfg(feature = "follow")]
pub use follow::*;
