//! A counter or a sensor of a GPU as a row: the mean of the windows in each column.

use super::cell::fit;
use crate::tui::draw::lane::{LaneRow, Plot};
use crate::tui::state::State;
use crate::tui::theme::Role;
use crate::tui::time_scale::TimeScale;
use activity::{Metric, SLOWED, Span};
use figures::hardware;
use trace::GpuReadings;

/// Of the most that is possible, what says nothing.
const LITTLE: f64 = 0.01;

/// Whether heights change by so little of their row that they are constant: a line of text, and no wall.
pub(super) fn is_flat(heights: impl Iterator<Item = f64> + Clone) -> bool {
    let range = heights.clone().fold(0.0, f64::max) - heights.fold(1.0, f64::min);
    range < 0.02
}

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
        return LaneRow::new(Role::Dim, Plot::Words(why.to_owned()), "");
    }
    let window = window(state);
    let level = gpu.level(metric, window);
    let shown = level.filter(|_| gpu.resolves(metric, window));
    let known = gpu.most(metric);
    // Where nobody knows how high it could go, its own maximum fills the row.
    let full = known.or(level.map(|it| it.max)).unwrap_or(0.0);
    let full = full.max(f64::MIN_POSITIVE);
    let cells: Vec<Option<(f64, Role)>> = (0..scale.columns)
        .map(|x| {
            let cell = scale.cell(x);
            let cell = Span::new(cell.start, cell.end.max(cell.start + 1));
            let share = gpu.level(metric, cell)?.mean / full;
            let is_slowed = is_marked(metric) && gpu.slowed(SLOWED, cell).0 > 0;
            Some((share, if is_slowed { Role::Warning } else { Role::Host }))
        })
        .collect();
    let is_flat = is_flat(cells.iter().flatten().map(|it| it.0));
    let Some(level) = shown else {
        let words = "too short to sample".to_owned();
        return LaneRow::new(Role::Host, Plot::Words(words), "");
    };
    let figure = hardware::show(metric, level.mean);
    if is_flat {
        let words = format!("{figure} all along");
        return LaneRow::new(Role::Host, Plot::Words(words), "");
    }
    let side = words(gpu, metric, level.max, window, room);
    LaneRow {
        figure,
        ..LaneRow::new(Role::Host, Plot::Levels(cells), side)
    }
}

/// What figures are of: where no operation was recorded all that is on screen.
fn window(state: &State) -> Span {
    match state.operations() {
        Some(_) => state.figures_span(),
        None => state.focus.camera.viewport.window,
    }
}

/// Whether what is in view is too short for the samples of a metric that is there, or they are next to nothing.
pub(super) fn is_blank(state: &State, device: usize, metric: Metric) -> bool {
    let (gpu, window) = (state.model.run.trace.readings(device), window(state));
    let is_little = |gpu: &GpuReadings| {
        let level = gpu.level(metric, window).zip(gpu.most(metric));
        level.is_some_and(|(level, most)| level.max < LITTLE * most)
    };
    gpu.is_some_and(|it| it.has(metric) && (!it.resolves(metric, window) || is_little(it)))
}

/// Where clocks were held down is marked where clocks are shown, and where power is.
fn is_marked(metric: Metric) -> bool {
    matches!(metric, Metric::Clock | Metric::Power)
}

/// For how much of a window clocks were held down, else how high the counter went.
fn words(gpu: &GpuReadings, metric: Metric, most: f64, window: Span, room: usize) -> String {
    let (slowed, looked) = gpu.slowed(SLOWED, window);
    if is_marked(metric) && slowed > 0 {
        let share = activity::units::percent(slowed as f64 / looked as f64);
        return fit(room, [format!("held down {share}"), share]);
    }
    let most = hardware::show(metric, most);
    fit(
        room,
        [format!("mean, max {most}"), format!("max {most}"), most],
    )
}
