//! What a screen shows first, where it was asked for something else than the usual.

use super::state::lanes::Wishes;
use crate::scenario::view::View as Part;

/// What a screen shows first: a view, a part of the time, something selected. Empty for the usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// Which of [`VIEWS`](super::view::VIEWS).
    pub view: Option<usize>,
    /// Which part of the pass or the run, counted from its first operation.
    pub zoom: Option<Part>,
    /// What is selected.
    pub select: Option<Select>,
    /// Which rows are hidden, folded and pinned.
    pub lanes: Wishes,
}

/// What is selected first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    /// The longest gap of the first device.
    LongestGap,
    /// The longest operation, call or range whose name has this in it, or else a row; one of exactly this name goes
    /// before others.
    Named(String),
}
