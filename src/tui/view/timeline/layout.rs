//! Which rows stand on which lines of the screen.

use ratatui::layout::Rect;

use super::cell::RowContent;
use super::rows;
use super::summary_panel::SummaryPanel;
use crate::tui::draw::lane;
use crate::tui::draw::layout::{Heights, Layout};
use crate::tui::state::{Row, RowKind, State};
use crate::tui::time_scale::TimeScale;

/// Lines that a row has at most.
const MOST: u16 = 4;
/// Lines that third and fourth lines of rows leave to the variants and findings below.
const BELOW: usize = 10;

/// Lines of the view from which one of them says what the colours of GPUs mean.
const LEAST: u16 = 8;

/// A row on the screen.
#[derive(Clone, Debug)]
pub(super) struct ScreenRow {
    /// Index into the state's rows.
    pub(super) row: usize,
    pub(super) area: Rect,
    pub(super) shown: RowContent,
    /// Whether it is predicted.
    pub(super) is_predicted: bool,
}

/// The lines from the top: rows from `first` on. Where there is room, rows have several lines;
/// what the colours of GPUs mean stands under the first.
pub(super) fn lines(
    state: &State,
    layout: &Layout,
    scale: TimeScale,
    first: usize,
) -> Vec<ScreenRow> {
    let area = layout.rows;
    let mut shared = rows::Shared::default();
    let rows = state.rows.list.iter().enumerate();
    // Rows without anything in them would take the place of others.
    let shown: Vec<(usize, &Row)> = rows
        .skip(first)
        .filter(|(_, row)| !shared.is_blank(state, row))
        .take(usize::from(area.height) + 1)
        .collect();
    let is_gpu = |row: &Row| matches!(row.kind, RowKind::Gpu(_));
    let mut legend = Vec::new();
    if shown.iter().any(|(_, row)| is_gpu(row)) && first == 0 && area.height >= LEAST {
        legend = rows::legend(state, usize::from(area.width.saturating_sub(layout.gutter)));
    }
    let heights = match first {
        0 => heights(state, layout, &shown, usize::from(!legend.is_empty())),
        _ => Heights::default(),
    };
    let mut lines = Vec::new();
    let mut y = area.y;
    let mut add = |row: usize, height: u16, shown: RowContent, is_predicted: bool| {
        let height = height.min(area.bottom() - y);
        if height > 0 {
            lines.push(ScreenRow {
                row,
                area: Rect::new(area.x, y, area.width, height),
                shown,
                is_predicted,
            });
        }
        y += height;
        y < area.bottom()
    };
    for (i, row) in shown {
        let content = rows::make(state, layout, scale, &mut shared, row);
        let is_predicted = row.kind.is_predicted();
        let lines = if content.is_flat() {
            1
        } else {
            heights.lines(row.kind)
        };
        let mut has_room = add(i, lines, content, is_predicted);
        if is_gpu(row) && !legend.is_empty() {
            let legend = RowContent::Legend(std::mem::take(&mut legend));
            has_room = add(i, 1, legend, false);
        }
        if !has_room {
            break;
        }
    }
    lane::even(lines.iter_mut().filter_map(|line| match &mut line.shown {
        RowContent::Lane(row) => Some((row, line.area.height)),
        _ => None,
    }));
    lines
}

/// How many lines the rows have, with those of the legend beside them.
fn heights(state: &State, layout: &Layout, rows: &[(usize, &Row)], legend: usize) -> Heights {
    let spare = usize::from(layout.rows.height).saturating_sub(rows.len());
    // The variants go before more lines of a row, where there is room for them at all.
    let reserved = SummaryPanel::reserved(state) + layout.below;
    let spare = spare.checked_sub(reserved).unwrap_or(spare);
    // Findings that stand beside the rows need nothing below them.
    let below = if layout.panel.is_empty() {
        BELOW - layout.below
    } else {
        0
    };
    let kinds = rows.iter().map(|(_, row)| row.kind);
    Heights::new(kinds, MOST, spare.saturating_sub(legend), below)
}
