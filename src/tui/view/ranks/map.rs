//! Ranks over steps as a map: where each waits for others, and where it comes late.

use crate::tui::theme::Role;
use crate::tui::view::list::Cell;
use activity::units::duration;
use activity::{Ns, Span};
use jobs::{Heat, Spot};

/// Columns of a rank's name.
pub(super) const NAME: u16 = 18;
/// Columns of a step at most.
const WIDEST: usize = 4;

/// How the map is drawn: its columns, and what a full cell stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scale {
    columns: usize,
    full: Ns,
}

impl Scale {
    /// For lines of so many columns.
    pub(super) fn new(heat: &Heat, width: u16) -> Scale {
        let columns = usize::from(width.saturating_sub(NAME + 4));
        let rows = (0..heat.spots.len()).flat_map(|rank| heat.row(rank, columns));
        let full = rows.map(|spot| spot.waited.max(spot.late)).max();
        Scale {
            columns,
            full: full.unwrap_or(0),
        }
    }
}

/// What stands above the map.
pub(super) fn heading(heat: &Heat, scale: Scale) -> Vec<Cell> {
    let of = match heat.steps {
        Some(steps) => format!("{steps} steady steps"),
        None => "the time in slices".to_owned(),
    };
    let length: Ns = heat.stretches.iter().copied().map(Span::len).sum();
    let mean = length / (heat.stretches.len().max(1) as Ns);
    vec![
        Cell::left("rank", NAME, Role::Accent).bold(),
        Cell::left("waits", 5, Role::Wait),
        Cell::left("late", 4, Role::Warning),
        Cell::rest(
            format!("{of}; full: {} of {}", duration(scale.full), duration(mean)),
            Role::Dim,
        ),
    ]
}

/// A rank's line: of each cell the larger of both, so that what is late stands out among those that wait for it.
pub(super) fn cells(name: &str, heat: &Heat, rank: usize, scale: Scale) -> Vec<Cell> {
    let row = heat.row(rank, scale.columns);
    // Few steps are as wide as there is room for.
    let width = (scale.columns / row.len().max(1)).clamp(1, WIDEST);
    let level = |spot: Spot| {
        let (time, role) = match spot.late > spot.waited {
            true => (spot.late, Role::Warning),
            false => (spot.waited, Role::Wait),
        };
        // Anything but nothing is seen.
        let eighths = (8 * time + scale.full - 1).checked_div(scale.full);
        (eighths.unwrap_or(0).clamp(0, 8) as u8, role)
    };
    vec![
        Cell::left(name, NAME, Role::Text),
        Cell::levels(
            row.into_iter()
                .flat_map(|spot| std::iter::repeat_n(level(spot), width))
                .collect(),
        ),
    ]
}
