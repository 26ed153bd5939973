//! Which keys would do something now: only those are offered.

use crate::tui::action::Action;
use crate::tui::state::rows::{Row, RowKind};
use crate::tui::state::{Run, Scope, State, Status};
use crate::tui::view::Views;
use trace::SourceKind;

/// Whether an action does something as things are.
#[must_use]
pub fn is_offered(action: Action, state: &State, views: &Views) -> bool {
    let run = &state.run;
    let is_scenario = run.plan.is_some();
    // Before a run there is the picker alone.
    if run.is_none()
        && matches!(
            action,
            Action::Show(_) | Action::NextView | Action::PreviousView | Action::Copy
        )
    {
        return false;
    }
    match action {
        Action::NextVariant | Action::PreviousVariant => state.variants_beside().len() > 1,
        Action::NextPoint | Action::PreviousPoint => state.points().len() > 1,
        Action::NextPass | Action::PreviousPass => match state.camera.scope {
            Scope::Whole => false,
            Scope::Pass(_) => run.passes.list.len() > run.passes.variants.len(),
        },
        Action::WholeRun => !run.passes.list.is_empty(),
        Action::Follow | Action::Pause | Action::Stop => run.status == Status::Running,
        // What is opened is what it is.
        Action::Rerun => run.replay.is_some() || is_scenario || is_watched(run),
        Action::Edit => is_scenario,
        Action::Record | Action::Keep | Action::KeepWindow => is_watched(run) && run.is_running(),
        Action::Counters => !run.trace.hardware().is_empty(),
        Action::Troubles => !state.troubles.is_empty(),
        Action::Predict => {
            let answer = state.answers.get(run, state.camera.scope);
            let mut found = answer.into_iter().flat_map(|answer| &answer.findings);
            let is_here = views.is_home() || views.wants_answers();
            is_here && found.any(|finding| finding.predicted.is_some())
        }
        Action::Return => state.trail.has(true),
        Action::Forward => state.trail.has(false),
        Action::ShowLanes => state.lanes.is_any(),
        Action::HideLane | Action::PinLane | Action::FoldLanes => state.selection.row.is_some(),
        Action::NextGap | Action::PreviousGap | Action::LongestGap => has_gaps(state),
        Action::OtherEnd => state.link().is_some(),
        Action::Find => views.can_find(state),
        Action::Show(view) => views.has_content(view, state),
        Action::Sort | Action::Choose => views.on_screen(state).offers(action),
        _ => true,
    }
}

/// Whether there is a row whose gaps could be stepped through: that of a GPU, else the selected one.
fn has_gaps(state: &State) -> bool {
    let is_gpu = |row: &Row| matches!(row.kind, RowKind::Gpu(_));
    let selected = state.selection.row;
    let of = |kind: RowKind| kind.lane().is_some() || kind.device().is_some();
    selected.map_or_else(|| state.rows.iter().any(is_gpu), of)
}

/// Whether a program of the user's is watched.
fn is_watched(run: &Run) -> bool {
    matches!(
        run.trace.source.kind,
        SourceKind::Traced | SourceKind::Attached
    )
}
