//! What keys do on the timeline: the window moves, the selection steps.

use crate::tui::action::Action;
use crate::tui::state::{Item, RowKind, Scope, State};
use activity::{Ns, Span};

/// One step of zooming.
pub(super) const ZOOM: f64 = 0.7;
/// One step of panning, as a share of the window.
const PAN: f64 = 0.15;
/// Rows of a page.
const PAGE: i32 = 10;

/// Does what a key asks for.
pub(super) fn act(action: Action, state: &mut State) {
    match action {
        Action::Up => step_row(state, -1),
        Action::Down => step_row(state, 1),
        Action::PageUp => step_row(state, -PAGE),
        Action::PageDown => step_row(state, PAGE),
        Action::Operation(by) => step_item(state, by > 0, false),
        Action::Gap(by) => step_item(state, by > 0, true),
        Action::LongestGap => state.select_longest_gap(),
        Action::ZoomToSelection
            if matches!(state.focus.selection.row, Some(RowKind::Folded(_))) =>
        {
            state.fold_lanes();
        }
        Action::Hit(by) => state.step_hit(by > 0),
        Action::FoldLanes => state.fold_lanes(),
        Action::ShowLanes => state.show_all_lanes(),
        Action::OtherEnd => state.go_to_other_end(),
        Action::Mark => set_mark(state),
        Action::Zoom(_)
        | Action::Pan(_)
        | Action::PanStart
        | Action::PanEnd
        | Action::Fit
        | Action::ZoomToSelection => move_window(action, state),
        _ => return,
    }
    state.focus.camera.is_following = false;
}

/// Marks what is selected, or the moment on its row.
fn set_mark(state: &mut State) {
    if state.focus.selection.row.is_none() {
        return state.say("select an operation or a gap first, or drag on the axis");
    }
    let moment = Span::at(state.focus.selection.cursor);
    let at = state.focus.selection.item.span().unwrap_or(moment);
    state.focus.marks.set(at, state.focus.selection);
    if state.focus.marks.single().is_some() {
        state.say("marked; m on another one measures from the one to the other");
    }
}

fn move_window(action: Action, state: &mut State) {
    let viewport = &mut state.focus.camera.viewport;
    let window = viewport.window;
    let selected = state.focus.selection.item.span();
    let fixed = match selected {
        Some(span) if span.overlaps(window) => {
            let seen = span.intersect(window);
            seen.start + seen.len() / 2
        }
        _ => window.start + window.len() / 2,
    };
    match action {
        Action::Zoom(by) => viewport.zoom(fixed, ZOOM.powi(by)),
        Action::Pan(by) => viewport.pan(f64::from(by) * PAN),
        Action::PanStart => viewport.pan(-1e6),
        Action::PanEnd => viewport.pan(1e6),
        Action::ZoomToSelection => match selected {
            Some(span) => {
                let room = span.len() / 4;
                viewport.show(Span::new(span.start - room, span.end + room));
            }
            None => viewport.zoom(state.focus.selection.cursor, ZOOM * ZOOM),
        },
        _ => {
            state.focus.camera.fit(&state.model.run);
            // What shows all already goes on to the operations alone.
            if state.focus.camera.viewport.window == window {
                let operations = state.focus.camera.operations_window(&state.model.run);
                state.focus.camera.viewport.show(operations);
            }
        }
    }
}

fn step_row(state: &mut State, by: i32) {
    let window = state.focus.camera.viewport.window;
    if state.focus.selection.row.is_none() {
        state.focus.selection.cursor = window.start + window.len() / 2;
    }
    state.step_row(by);
    if !is_in_scope(state) {
        // The nearest record is another pass's: this one's first is meant.
        select_first(state, Ns::MIN);
    }
}

/// Whether what is selected belongs to what is on the timeline: the pass, or the whole run.
fn is_in_scope(state: &State) -> bool {
    let Some(span) = state.focus.selection.item.span() else {
        return true;
    };
    let Some(scope) = state.scope_span() else {
        return false;
    };
    match state.focus.selection.item {
        // A gap that reaches out of a pass is the time between two of them.
        Item::Gap(_) => scope.start <= span.start && span.end <= scope.end,
        _ => scope.overlaps(span) || scope.contains(span.start),
    }
}

/// Selects the first record of the selected lane in the pass from some time on, if there is one.
fn select_first(state: &mut State, from: Ns) {
    let scope = state.scope_span();
    let lane = state.focus.selection.row.and_then(RowKind::lane);
    let (Some(scope), Some(lane)) = (scope, lane) else {
        return;
    };
    state.focus.selection.item = Item::None;
    let rows = &state.model.run.trace.lanes()[lane];
    if let Some(row) = rows.next(scope.start.max(from))
        && scope.contains(rows.span(row).start)
    {
        state.select_record(lane, row);
    }
}

/// Selects the row of the first device on the timeline: `g` steps through its gaps.
fn select_gpu(state: &mut State) {
    state.focus.selection.row = state.rows.gpus().next().map(RowKind::Gpu);
}

fn step_item(state: &mut State, is_forwards: bool, is_gap: bool) {
    if state.focus.selection.row.is_none() {
        state.focus.selection.cursor = state.focus.camera.viewport.window.start;
        if is_gap {
            select_gpu(state);
            if state.focus.selection.row.is_none() {
                return;
            }
        } else {
            state.step_row(0);
            select_first(state, state.focus.selection.cursor);
            return;
        }
    }
    let trace = &state.model.run.trace;
    let before = state.focus.selection;
    let side = if is_forwards { "after" } else { "before" };
    if is_gap {
        let found = state.focus.selection.step_gap(trace, is_forwards);
        // A gap that reaches out of a pass is the time between two of them.
        if !found || !is_in_scope(state) {
            state.focus.selection = before;
            let pass = match state.focus.camera.scope {
                Scope::Pass(_) => " of this pass",
                Scope::Whole => "",
            };
            state.say(format!("no gap {side} this one on this row{pass}"));
        }
    } else {
        state.focus.selection.step_record(trace, is_forwards);
        if !is_in_scope(state) {
            state.focus.selection = before;
            state.say(format!("no operation {side} this one in this pass"));
        }
    }
    if let Some(span) = state.focus.selection.item.span() {
        state.focus.camera.viewport.focus(span);
    }
}
