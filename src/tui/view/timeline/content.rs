//! What a row of the timeline is made of.

use crate::tui::draw::lane::Plot;
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
