//! A counter or a sensor of a GPU as a row: the mean of the windows in each column.

use super::cell::fit;
use crate::tui::draw::lane::{LaneRow, Plot};
use crate::tui::state::State;
use crate::tui::theme::Role;
use crate::tui::time_scale::TimeScale;
use activity::{Metric, SLOWED, Span};
use figures::hardware;
use trace::GpuReadings;

pub(super) fn make(
    state: &State,
    device: usize,
    metric: Metric,
    scale: TimeScale,
    room: usize,
) -> LaneRow {
    let Some(gpu) = state.model.run.trace.readings(device) else {
        return LaneRow::default();
    };
    if let Some(why) = gpu.lack(metric).filter(|_| !gpu.has(metric)) {
        return LaneRow {
            role: Role::Dim,
            side: why.to_owned(),
            ..LaneRow::default()
        };
    }
    // Where no operation was recorded, the figures are of all that is on screen.
    let window = match state.operations() {
        Some(_) => state.figures_span(),
        None => state.focus.camera.viewport.window,
    };
    let level = gpu.level(metric, window);
    let known = gpu.most(metric);
    // Where nobody knows how high it could go, its own maximum fills the row.
    let full = known.or(level.map(|it| it.max)).unwrap_or(0.0);
    let full = full.max(f64::MIN_POSITIVE);
    let cells = (0..scale.columns)
        .map(|x| {
            let cell = scale.cell(x);
            let cell = Span::new(cell.start, cell.end.max(cell.start + 1));
            let share = gpu.level(metric, cell)?.mean / full;
            let is_slowed = is_marked(metric) && gpu.slowed(SLOWED, cell).0 > 0;
            Some((share, if is_slowed { Role::Warning } else { Role::Host }))
        })
        .collect();
    LaneRow {
        role: Role::Host,
        figure: level.map_or_else(String::new, |level| hardware::show(metric, level.mean)),
        side: level.map_or_else(String::new, |level| {
            words(gpu, metric, level.max, window, room)
        }),
        plot: Plot::Levels(cells),
        ..LaneRow::default()
    }
}

/// Where clocks were held down is marked where clocks are shown, and where power is.
fn is_marked(metric: Metric) -> bool {
    matches!(metric, Metric::Clock | Metric::Power)
}

/// For how much of a window clocks were held down, else how high the counter went and could go.
fn words(gpu: &GpuReadings, metric: Metric, most: f64, window: Span, room: usize) -> String {
    let (slowed, looked) = gpu.slowed(SLOWED, window);
    if is_marked(metric) && slowed > 0 {
        let share = activity::units::percent(slowed as f64 / looked as f64);
        return fit(room, [format!("held down {share}"), share]);
    }
    let most = hardware::show(metric, most);
    let known = gpu.most(metric).filter(|known| *known != 1.0);
    let of = known.map(|known| format!("mean of at most {}", hardware::show(metric, known)));
    let at_most = [format!("mean, at most {most}"), format!("max {most}"), most];
    fit(room, of.into_iter().chain(at_most))
}
