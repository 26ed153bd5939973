//! The gaps of a lane that are marked: with their time where there is room for it, and when selected.

use super::ink::Ink;
use crate::tui::time_scale::TimeScale;
use activity::{Span, units};
use trace::{LaneId, LaneKind, Trace};

/// Columns below which no gap can say anything: "‹9 ns›".
const LEAST: usize = 6;

/// Columns with nothing in them between two operations.
#[derive(Clone, Debug, PartialEq)]
pub struct GapMark {
    /// First column.
    pub from: u16,
    /// Column after the last.
    pub to: u16,
    /// What stands in it; empty when there is no room.
    pub label: String,
    pub is_selected: bool,
}

/// Marks the free ones of `cells` that are part of a gap within `scope`.
pub(super) fn marks(
    trace: &Trace,
    id: LaneId,
    scale: TimeScale,
    scope: Span,
    selected: Option<Span>,
    cells: &[Ink],
) -> Vec<GapMark> {
    let lane = &trace.lanes()[id];
    let mut gaps = Vec::new();
    let mut from = 0;
    for free in cells.chunk_by(|a, b| (*a == Ink::Nothing) == (*b == Ink::Nothing)) {
        let columns = from as u16..(from + free.len()) as u16;
        from += free.len();
        if free[0] != Ink::Nothing {
            continue;
        }
        let run = Span::new(scale.edge(columns.start), scale.edge(columns.end));
        let is_selected = selected.is_some_and(|gap| gap.overlaps(run));
        if free.len() < LEAST && !is_selected {
            continue;
        }
        let inside = |gap: &Span| {
            gap.len() >= Trace::GAP_MIN && gap.start >= scope.start && gap.end <= scope.end
        };
        let Some(gap) = lane.gap_at(run.start + run.len() / 2).filter(inside) else {
            continue;
        };
        gaps.push(GapMark {
            from: columns.start,
            to: columns.end,
            label: label(trace, id, gap, free.len().saturating_sub(2)),
            is_selected,
        });
    }
    gaps
}

/// "idle 84 µs", or "queued 84 µs" when the operation behind the gap was launched before it began.
fn label(trace: &Trace, id: LaneId, gap: Span, room: usize) -> String {
    let duration = units::duration(gap.len());
    if room < duration.chars().count() {
        return String::new();
    }
    let word = word(trace, id, gap);
    let long = format!("{word} {duration}");
    if long.chars().count() <= room {
        long
    } else {
        duration
    }
}

/// Whether the stream waited for the host, or work that was already launched waited on the stream.
pub fn word(trace: &Trace, id: LaneId, gap: Span) -> &'static str {
    let lane = &trace.lanes()[id];
    let LaneKind::Stream { device, .. } = lane.key().kind else {
        return "idle";
    };
    if trace.is_unrecorded(device, gap) {
        return "not recorded";
    }
    let launch = lane
        .next(gap.end)
        .map(|row| lane.correlation(row))
        .and_then(|correlation| trace.call(lane.key().process, correlation))
        .map(|(call, row)| trace.lanes()[call].span(row));
    match launch {
        Some(call) if call.end <= gap.start => "queued",
        _ => "idle",
    }
}
