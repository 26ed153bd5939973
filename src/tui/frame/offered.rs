//! Which keys would do something now: only those are offered.

use crate::tui::action::Action;
use crate::tui::state::prediction::{is_shown, told, why_not_drawn};
use crate::tui::state::{LineKind, RowKind, Run, Scope, State, Status, has_lines};
use crate::tui::view::Views;
use activity::feed::Outcome;
use trace::SourceKind;

/// Whether an action does something as things are.
pub fn is_offered(action: Action, state: &State, views: &Views) -> bool {
    why_not(action, state, views).is_none()
}

/// Why an action can do nothing as things are.
pub fn why_not(action: Action, state: &State, views: &Views) -> Option<&'static str> {
    use Action as A;
    let run = &state.model.run;
    let (is_running, is_watched) = (run.status == Status::Running, is_watched(run));
    let is_selected = state.focus.selection.row.is_some();
    // Before a run there is the picker alone.
    if run.is_none() {
        if action == A::Mark && state.model.board.is_empty() {
            return Some("no trace lies in this folder: there is nothing to compare");
        }
        return matches!(
            action,
            A::Show(_) | A::ShowNth(_) | A::View(_) | A::Copy | A::Rerun | A::Predict
        )
        .then_some("nothing has run yet: enter runs the line under the cursor");
    }
    Some(match action {
        A::Variant(_) if state.variants_beside().len() < 2 => "there is no other variant",
        A::Point(_) if state.points().len() < 2 => "there is no sweep: no other value",
        A::ToStep(_) | A::Step(_) | A::WholeRun => return why_no_step(action, state),
        A::Follow | A::Pause | A::Stop if !is_running => "nothing runs: the timeline is complete",
        // What is opened is what it is.
        A::Rerun if run.replay.is_none() && run.plan.is_none() && !is_watched => {
            "a trace cannot run again; open it anew to read it again"
        }
        A::Edit if run.plan.is_none() && !has_source(state, views) => {
            "no source line is known of this: L selects a gap, n an operation"
        }
        A::ZoomToSelection if !is_selected => "nothing is selected: L, n, j or a click selects",
        A::Record | A::Keep if !is_watched => {
            "only what `cuptop trace` or `attach` watches can be recorded or kept"
        }
        A::Record | A::Keep if !is_running => "the program has ended: nothing is left to keep",
        A::Counters if run.trace.hardware().is_empty() => "no hardware counters in this trace",
        A::Troubles if state.model.troubles.is_empty() => match run.status {
            Status::Ended(Outcome::Failed(_)) => "the run failed: the log says why",
            _ if state.messages.log.count(LineKind::Warning) > 0 => {
                "no error, loss or race is known; the log has a warning (tab)"
            }
            _ => "no error, loss or race is known; 3 has what costs time",
        },
        A::Predict if !has_prediction(state, views) => {
            return Some(why_no_prediction(state, views));
        }
        A::Return if !state.focus.trail.has(true) => "no jump to go back from",
        A::Forward if !state.focus.trail.has(false) => "this is the latest place",
        A::ShowLanes if !state.rows.lanes.is_any() => "all rows are shown",
        A::FoldLanes if !is_selected => "select a row first: j, k or a click",
        A::Gap(_) | A::LongestGap if !has_gaps(state) => {
            "this row has no gaps; select that of a GPU or a stream"
        }
        A::OtherEnd if state.link().is_none() => {
            "select a CUDA call or its operation first: n, p or a click"
        }
        A::FindThis if state.selected_name().is_none() => {
            "select an operation first: n, p or a click"
        }
        A::Find if !views.can_find(state) => "there is nothing to look through here",
        A::ShowNth(place) if views.nth(place, state).is_none() => {
            "the bar has no view of this number"
        }
        A::Sort if !(views.is_swept(state) || views.on_screen(state).offers(action)) => {
            "these lines have one order"
        }
        A::Choose if !views.on_screen(state).offers(action) => "there is no place to go to",
        _ => return None,
    })
}

/// The same, of what goes to a step or shows all repeats.
fn why_no_step(action: Action, state: &State) -> Option<&'static str> {
    use Action as A;
    let (passes, steps) = (&state.model.run.passes, state.steps());
    let is_whole = state.focus.camera.scope == Scope::Whole;
    Some(match action {
        A::ToStep(at) => match steps.is_none_or(|it| at >= it.all.len()) {
            true => "there is no step of this number",
            false => return None,
        },
        A::WholeRun if passes.list.is_empty() => "a scenario has repeats; 0 shows the whole run",
        A::Step(_) if passes.list.is_empty() => match steps {
            Some(_) => return None,
            None if state.answer().is_none() => "its steps are still being looked for",
            None => "no steps were found in it; + and - zoom, h and l move",
        },
        A::Step(_) if is_whole => "all repeats are on screen; a shows one of them",
        A::Step(_) if passes.list.len() <= passes.variants.len() => "each variant ran once",
        _ => return None,
    })
}

/// Whether a source line may be known of what the cursor is on.
fn has_source(state: &State, views: &Views) -> bool {
    match views.is_home() {
        true => state.selected_source().is_some(),
        false => has_lines(&state.model.run.trace),
    }
}

/// Whether a finding that is shown here has a prediction or a bound, or one is open.
fn has_prediction(state: &State, views: &Views) -> bool {
    let answer = state.answer();
    let mut found = answer.into_iter().flat_map(|answer| &answer.findings);
    let is_here = views.is_home() || views.wants_answers();
    let is_open = views.is_home() && state.focus.prediction.version().1;
    let in_step = views.is_home() && state.step_in_view().is_some();
    is_open || (is_here && found.any(|it| is_shown(it, in_step)))
}

/// Why there is none: for the finding that the headline speaks of.
fn why_no_prediction(state: &State, views: &Views) -> &'static str {
    let in_step = views.is_home() && state.step_in_view().is_some();
    let answer = state.answer();
    let told = answer.and_then(|it| {
        let at = told(it.verdicts.first()?, &it.findings)?;
        why_not_drawn(it.findings.get(at)?, in_step)
    });
    match answer {
        None => "what could be saved is still being worked out",
        Some(_) => told.unwrap_or("no prediction: nothing was found that could be better"),
    }
}

/// Whether there is a row whose gaps could be stepped through: that of a GPU, else the selected one.
fn has_gaps(state: &State) -> bool {
    let selected = state.focus.selection.row;
    let of = |kind: RowKind| kind.lane().is_some() || kind.device().is_some();
    selected.map_or_else(|| state.rows.gpus().next().is_some(), of)
}

/// Whether a program of the user's is watched.
fn is_watched(run: &Run) -> bool {
    matches!(
        run.trace.source.kind,
        SourceKind::Traced | SourceKind::Attached
    )
}
