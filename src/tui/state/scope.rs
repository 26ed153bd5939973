//! What of a run is looked at, as a value.

use activity::Span;

/// What is on the timeline: the whole run or one pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    #[default]
    Whole,
    /// A pass: index into [`Passes::list`](figures::passes::Passes::list).
    Pass(usize),
}

/// What of a run is on screen: as much as those need who answer questions about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnScreen {
    pub scope: Scope,
    /// The stretch of it.
    pub window: Span,
    /// Whether the picture is held still.
    pub is_held: bool,
}
