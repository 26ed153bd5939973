//! What a row of the timeline is made of.

use crate::tui::draw::lane::{LaneRow, Plot};
use crate::tui::draw::prelude::*;

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

impl RowContent {
    /// Whether words stand in its plot, which need one line.
    pub(super) fn is_flat(&self) -> bool {
        matches!(self, RowContent::Lane(it) if matches!(it.plot, Plot::Words(_)))
    }
}

/// The first that the side column has room for: half a figure, or one without its unit, would be another.
pub(super) fn fit(room: usize, forms: impl IntoIterator<Item = String>) -> String {
    let mut forms = forms.into_iter();
    let form = forms.find(|form| pen::width(form) <= room);
    form.unwrap_or_default()
}
