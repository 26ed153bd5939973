//! What a row of the timeline is made of.

use crate::tui::draw::lane::{LaneRow, Plot};
use crate::tui::theme::Role;

/// Plot, figure and words of a row.
#[derive(Default)]
pub(super) struct Content {
    pub(super) role: Role,
    /// In the gutter.
    pub(super) figure: String,
    /// In the side column.
    pub(super) side: String,
    pub(super) plot: Plot,
}

/// What stands on one row.
#[derive(Clone, Debug)]
pub(super) enum RowContent {
    Title(String),
    /// A folded group, and whether it is selected.
    Folded(String, bool),
    Lane(LaneRow),
    /// What the colours of the rows of GPUs mean.
    Legend(Vec<(Role, String)>),
}
