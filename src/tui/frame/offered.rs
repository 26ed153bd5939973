//! Which keys would do something now: only those are offered.

use crate::tui::action::Action;
use crate::tui::state::rows::{Row, RowKind};
use crate::tui::state::{Run, Scope, State, Status};
use crate::tui::view::Views;
use trace::SourceKind;

/// Whether an action does something as things are.
pub fn is_offered(action: Action, state: &State, views: &Views) -> bool {
    why_not(action, state, views).is_none()
}

/// Why an action can do nothing as things are.
pub fn why_not(action: Action, state: &State, views: &Views) -> Option<&'static str> {
    let run = &state.run;
    let (is_running, is_watched) = (run.status == Status::Running, is_watched(run));
    let unless = |is_fine: bool, why: &'static str| (!is_fine).then_some(why);
    // Before a run there is the picker alone.
    if run.is_none() {
        let is_for_runs = matches!(
            action,
            Action::Show(_)
                | Action::ShowNth(_)
                | Action::NextView
                | Action::PreviousView
                | Action::Copy
                | Action::Rerun
                | Action::Predict
        );
        return unless(
            !is_for_runs,
            "nothing has run yet: enter runs the line under the cursor",
        );
    }
    match action {
        Action::NextVariant | Action::PreviousVariant => unless(
            state.variants_beside().len() > 1,
            "there is no other variant",
        ),
        Action::NextPoint | Action::PreviousPoint => unless(
            state.points().len() > 1,
            "there is no sweep: no other value",
        ),
        Action::NextPass | Action::PreviousPass => match state.camera.scope {
            Scope::Whole => Some("the whole run is on screen; a shows one repeat of it"),
            Scope::Pass(_) => unless(
                run.passes.list.len() > run.passes.variants.len(),
                "each variant ran once",
            ),
        },
        Action::WholeRun => unless(
            !run.passes.list.is_empty(),
            "all there is belongs to one run",
        ),
        Action::Follow | Action::Pause | Action::Stop => {
            unless(is_running, "nothing runs: the timeline is complete")
        }
        // What is opened is what it is.
        Action::Rerun => unless(
            run.replay.is_some() || run.plan.is_some() || is_watched,
            "a trace cannot run again; open it anew to read it again",
        ),
        Action::Edit => unless(
            run.plan.is_some(),
            "there is no scenario to edit: this is a trace",
        ),
        Action::Record | Action::Keep | Action::KeepWindow if !is_watched => {
            Some("only what `cuptop trace` or `attach` watches can be recorded or kept")
        }
        Action::Record | Action::Keep | Action::KeepWindow => {
            unless(is_running, "the program has ended: nothing is left to keep")
        }
        Action::Counters => unless(
            !run.trace.hardware().is_empty(),
            "no hardware counters in this trace",
        ),
        Action::Troubles => unless(!state.troubles.is_empty(), "nothing is wrong"),
        Action::Predict => {
            let answer = state.answers.get(run, state.camera.scope);
            let mut found = answer.into_iter().flat_map(|answer| &answer.findings);
            let is_here = views.is_home() || views.wants_answers();
            let is_there = is_here && found.any(|finding| finding.predicted.is_some());
            let is_open = views.is_home() && state.ghost.version().1;
            unless(is_there || is_open, "no finding here has a prediction")
        }
        Action::Return => unless(state.trail.has(true), "no jump to go back from"),
        Action::Forward => unless(state.trail.has(false), "this is the latest place"),
        Action::ShowLanes => unless(state.lanes.is_any(), "all rows are shown"),
        Action::HideLane | Action::PinLane | Action::FoldLanes => unless(
            state.selection.row.is_some(),
            "select a row first: j, k or a click",
        ),
        Action::NextGap | Action::PreviousGap | Action::LongestGap => unless(
            has_gaps(state),
            "this row has no gaps; select that of a GPU or a stream",
        ),
        Action::OtherEnd => unless(
            state.link().is_some(),
            "select a CUDA call or its operation first: n, p or a click",
        ),
        Action::Here | Action::KeepName | Action::HideName | Action::NextOfName => unless(
            state.selected_name().is_some(),
            "select an operation first: n, p or a click",
        ),
        Action::Find => unless(
            views.can_find(state),
            "there is nothing to look through here",
        ),
        Action::ShowNth(place) => unless(
            views.nth(place, state).is_some(),
            "the bar has no view of this number",
        ),
        Action::Sort => unless(
            views.is_swept(state) || views.on_screen(state).offers(action),
            "these lines have one order",
        ),
        Action::Choose => unless(
            views.on_screen(state).offers(action),
            "there is no place to go to",
        ),
        _ => None,
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
