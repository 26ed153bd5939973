//! What stands on a row of the timeline.

use super::Shown;
use crate::activity::{Direction, Ns, Span, units};
use crate::trace::{LaneKind, Measure};
use crate::tui::draw::label;
use crate::tui::draw::lane::{LaneRow, Plot};
use crate::tui::draw::layout::Layout;
use crate::tui::draw::strip::{Strip, StripInput};
use crate::tui::state::State;
use crate::tui::state::rows::{Row, RowKind};
use crate::tui::state::selection::Item;
use crate::tui::theme::Role;
use crate::tui::time_scale::TimeScale;

/// Plot, figure and words of a row.
#[derive(Default)]
struct Content {
    role: Role,
    /// In the gutter.
    figure: String,
    /// In the side column.
    side: String,
    plot: Plot,
}

/// Makes a row.
pub(super) fn make(state: &State, layout: &Layout, scale: TimeScale, row: &Row) -> Shown {
    let is_wide = layout.side > 12;
    let content = match row.kind {
        RowKind::Title => return Shown::Title(row.label.clone()),
        RowKind::Bandwidth(device, direction) => {
            bandwidth(state, device, direction, scale, is_wide)
        }
        RowKind::Overlap(device) => overlap(state, device, scale, is_wide),
        RowKind::Memory(device) => memory(state, device, scale, is_wide),
        RowKind::Stream(_) | RowKind::Thread(_) | RowKind::Range(..) | RowKind::Overhead(_) => {
            lane(state, row.kind, scale, is_wide)
        }
    };
    Shown::Lane(LaneRow {
        label: row.label.clone(),
        figure: content.figure,
        side: content.side,
        role: content.role,
        plot: content.plot,
        is_selected: state.selection.row == Some(row.kind),
        gutter: layout.gutter,
        side_columns: layout.side,
    })
}

fn bandwidth(
    state: &State,
    device: usize,
    direction: Direction,
    scale: TimeScale,
    is_wide: bool,
) -> Content {
    let trace = &state.run.trace;
    let usage = &trace.devices()[device].usage;
    let measure = Measure::Direction(direction);
    let rate = |window: Span| {
        let busy = usage.time(measure, window);
        (busy > 0).then(|| trace.bytes_moved(device, direction, window) / busy as f64)
    };
    let in_cell: Vec<f64> = (0..scale.columns)
        .map(|x| {
            let cell = scale.cell(x);
            let moves = usage.time(measure, cell) > 0;
            if moves {
                trace.bytes_moved(device, direction, cell) / cell.len().max(1) as f64
            } else {
                0.0
            }
        })
        .collect();
    let known = state.run.peaks.copies.of(direction);
    let greatest = in_cell.iter().copied().fold(0.0, f64::max);
    let full = known.unwrap_or(greatest).max(f64::MIN_POSITIVE);
    let shares = in_cell.iter().map(|rate| rate / full).collect();
    let average = rate(state.camera.figures_span(&state.run));
    let role = label::direction_role(direction);
    let side = match (average, known) {
        (Some(average), Some(peak)) if is_wide => format!(
            "{} of {} GB/s",
            units::percent(average / peak),
            units::rate(peak)
        ),
        (Some(average), Some(peak)) => units::percent(average / peak),
        (Some(_), None) if is_wide => format!("GB/s, at most {}", units::rate(greatest)),
        (Some(_), None) => "GB/s".to_owned(),
        (None, _) => String::new(),
    };
    Content {
        role,
        figure: average.map_or_else(String::new, units::rate),
        side,
        plot: Plot::Meter { shares, role },
    }
}

fn overlap(state: &State, device: usize, scale: TimeScale, is_wide: bool) -> Content {
    let usage = &state.run.trace.devices()[device].usage;
    let shares = (0..scale.columns)
        .map(|x| {
            let cell = scale.cell(x);
            let both = usage.time(Measure::Overlap, cell);
            both as f64 / cell.len().max(1) as f64
        })
        .collect();
    let window = state.camera.figures_span(&state.run);
    let copy = usage.time(Measure::Copy, window);
    let side = if copy > 0 {
        let share = usage.time(Measure::Overlap, window) as f64 / copy as f64;
        let share = units::percent(share);
        if is_wide {
            format!("{share} of copies hidden")
        } else {
            share
        }
    } else {
        String::new()
    };
    let role = Role::Overlap;
    Content {
        role,
        side,
        plot: Plot::Meter { shares, role },
        ..Content::default()
    }
}

/// The most memory in use within each column, against the most within the scope.
fn memory(state: &State, device: usize, scale: TimeScale, is_wide: bool) -> Content {
    let role = Role::Memset;
    let scope = state.camera.scope_span(&state.run).unwrap_or_default();
    let memory = state.memory.get(device);
    let in_use = |window: Span| memory.and_then(|m| m.peak(window)).unwrap_or(0);
    let most = in_use(scope);
    let shares = (0..scale.columns)
        .map(|x| {
            let cell = scale.cell(x).intersect(scope);
            in_use(cell) as f64 / most.max(1) as f64
        })
        .collect();
    let side = if is_wide {
        format!("at most {}", units::bytes(most))
    } else {
        String::new()
    };
    Content {
        role,
        side,
        plot: Plot::Meter { shares, role },
        ..Content::default()
    }
}

fn lane(state: &State, kind: RowKind, scale: TimeScale, is_wide: bool) -> Content {
    let Some(id) = kind.lane() else {
        return Content::default();
    };
    let trace = &state.run.trace;
    // A range that was stepped to may stand on another of its lane's rows.
    let item = if state.selection.row.and_then(RowKind::lane) == Some(id) {
        state.selection.item
    } else {
        Item::None
    };
    let is_stream = matches!(kind, RowKind::Stream(_));
    let input = StripInput {
        scale,
        scope: state.camera.scope_span(&state.run).unwrap_or_default(),
        record: match item {
            Item::Record { row, .. } => Some(row),
            _ => None,
        },
        gap: match item {
            Item::Gap(gap) => Some(gap),
            _ => None,
        },
        has_gaps: is_stream,
    };
    let window = state.camera.figures_span(&state.run);
    let side = if is_stream && !window.is_empty() {
        let busy = trace.lanes()[id].busy(window);
        let off: Ns = match trace.lanes()[id].key().kind {
            LaneKind::Stream { device, .. } => trace
                .unrecorded(device, window)
                .iter()
                .map(|s| s.len())
                .sum(),
            _ => 0,
        };
        let share = units::percent(busy as f64 / (window.len() - off).max(1) as f64);
        if is_wide {
            format!("busy {share}")
        } else {
            share
        }
    } else {
        String::new()
    };
    let strip = match kind {
        RowKind::Range(_, depth) => Strip::nested(trace, id, depth, &input),
        _ => Strip::new(trace, id, &input),
    };
    Content {
        side,
        plot: Plot::Strip(strip),
        ..Content::default()
    }
}
