//! What each action does that is not a view's own.

use super::{App, Effect, NextRun, Run, Scope};
use crate::tui::action::{Action, Context};
use crate::tui::frame::overlay::Overlay;
use crate::tui::frame::why_not;
use crate::tui::state::prediction::{self, is_shown};
use crate::tui::state::prompt::Asks;
use crate::tui::state::{Item, RowKind, Selection};
use crate::tui::view::{FINDINGS, LINES, OPERATIONS, Place, Request, SWEEP};
use activity::Span;
use causes::evidence::Evidence;

/// Lines of jobs that are scrolled over at most.
const JOB_LINES: usize = 200;

/// What is said of a key that needs what is not read yet.
const EARLY: &str = "still being read: press that again once it is";

impl App {
    /// Where keys are pressed now.
    pub fn context(&self) -> Context {
        if self.state.prompt.is_some() {
            return Context::Prompt;
        }
        match self.views.on_screen(&self.state).context() {
            Context::Timeline if self.is_search_shown() => Context::Found,
            context => context,
        }
    }

    /// Does it; where it leads is the caller's matter.
    pub(super) fn perform(&mut self, action: Action) -> Option<Effect> {
        self.state.messages.flash = None;
        match self.overlay {
            _ if action == Action::Quit => {}
            _ if matches!(&self.state.prompt, Some(it) if it.asks == Asks::Picture) => {
                return self.name_picture(action);
            }
            Overlay::None => {
                if self.type_in(action) {
                    return None;
                }
            }
            Overlay::Troubles | Overlay::Attach(_) | Overlay::Job { .. }
                if action == Action::Save => {}
            _ => return self.act_on_overlay(action),
        }
        // The shell starts anew what was opened, and edits what could not be started.
        let is_the_shells = matches!(action, Action::Edit | Action::Rerun) && !self.is_picking();
        if !is_the_shells && let Some(why) = why_not(action, &self.state, &self.views) {
            let is_early = self.state.model.run.is_being_read();
            self.state.say(if is_early { EARLY } else { why });
            return None;
        }
        match action {
            Action::Quit => Some(Effect::Quit),
            Action::Save => Some(Effect::Name),
            Action::Edit => Some(Effect::Edit(self.views.source(&self.state))),
            Action::Record => Some(Effect::Record),
            Action::Keep => Some(Effect::Keep),
            Action::Rerun => Some(Effect::Start(NextRun::Same)),
            Action::Stop => Some(Effect::Stop),
            Action::Copy => self.copy(),
            Action::Back => self.back(),
            _ if self.open(action) || self.change(action) => None,
            _ => {
                let window = self.state.focus.camera.viewport.window;
                let request = self.views.act(action, &mut self.state);
                if action == Action::ZoomToSelection
                    && self.state.focus.camera.viewport.window == window
                {
                    self.open_selected();
                }
                request.and_then(|request| self.grant(request))
            }
        }
    }

    /// Shows what cannot be seen closer in its view: a gap among the findings, a Python line among lines, all else by its name.
    fn open_selected(&mut self) {
        let (selected, state) = (self.state.focus.selection, &self.state);
        let is_range = matches!(selected.row, Some(RowKind::Range(..)));
        let view = match selected.item {
            Item::None => return,
            Item::Gap(_) => FINDINGS,
            Item::Record { .. } if is_range && self.views.has_content(LINES, state) => LINES,
            Item::Record { .. } => OPERATIONS,
        };
        self.views.show(view, state);
    }

    /// Does what is asked of what lies on top; most keys close it.
    fn act_on_overlay(&mut self, action: Action) -> Option<Effect> {
        match (self.overlay, action) {
            (Overlay::Help { at }, Action::Choose) => return self.run_line(at),
            _ if self.scroll(action) => {}
            (Overlay::Help { .. }, _) => {
                self.type_in(action);
            }
            (Overlay::Attach(target), Action::Choose)
                if let Some((_, process)) = self.state.model.target(target)
                    && process.right().is_ok() =>
            {
                self.overlay = Overlay::None;
                self.state
                    .say(format!("attaching to process {} …", target.pid));
                return Some(Effect::Start(NextRun::Process(target.pid)));
            }
            (Overlay::Job { .. }, Action::Rerun) => {
                self.state.say("NCCL is asked, where that is safe …");
                return Some(Effect::Ask);
            }
            (Overlay::Job { pid: Some(pid), .. }, Action::Choose) => {
                self.overlay = Overlay::None;
                return Some(Effect::Start(NextRun::Enter(pid)));
            }
            _ => self.overlay = Overlay::None,
        }
        None
    }

    /// Opens a view, a line to type in or what lies on top. Returns whether the action was for that.
    fn open(&mut self, action: Action) -> bool {
        let state = &self.state;
        match action {
            Action::FilterLanes => self.ask_for(Asks::Lanes),
            Action::Find => self.ask_for(Asks::Search),
            Action::Help => {
                self.overlay = Overlay::Help { at: 0 };
                self.ask_for(Asks::Help);
            }
            Action::Troubles => self.overlay = Overlay::Troubles,
            Action::Job => self.overlay = Overlay::Job { pid: None, at: 0 },
            Action::Show(view) => self.views.show(view, state),
            Action::ShowNth(place) => {
                if let Some(view) = self.views.nth(place, state) {
                    self.views.show(view, state);
                }
            }
            Action::Sort if self.views.is_swept(state) => self.views.show(SWEEP, state),
            Action::View(by) => self.views.step(by, state),
            Action::Return => self.step_back(true),
            Action::Forward => self.step_back(false),
            Action::Predict => self.predict(),
            _ => return false,
        }
        true
    }

    /// Changes what is looked at, whichever view shows it. Returns whether the action was for that.
    fn change(&mut self, action: Action) -> bool {
        let state = &mut self.state;
        match action {
            Action::FindThis => state.search_selected(),
            Action::Follow => state.toggle_follow(),
            Action::Pause => state.toggle_pause(),
            Action::Counters => state.step_counters(),
            Action::Variant(by) => state.step_among(&state.variants_beside(), by),
            Action::Point(by) => state.step_among(&state.points(), by),
            Action::Step(by) if !state.model.run.passes.list.is_empty() => state.step_pass(by),
            Action::Step(_) | Action::ToStep(_) => {
                match action {
                    Action::ToStep(at) => state.show_step(at),
                    Action::Step(by) => state.show_next_step(by),
                    _ => {}
                }
                self.views.show_home(&self.state);
            }
            Action::WholeRun => match state.scope() {
                Scope::Pass(_) => state.show(Scope::Whole),
                Scope::Whole => {
                    let variant = state.focus.camera.variant_to_open(&state.model.run);
                    state.show_variant(variant.unwrap_or_default());
                }
            },
            _ => return false,
        }
        true
    }

    fn copy(&mut self) -> Option<Effect> {
        let text = self.frame.copied(&self.views, &self.state);
        if text.is_none() {
            self.state
                .say("nothing to copy: select an operation, a gap or a line first");
        }
        text.map(Effect::Copy)
    }

    /// Does what a line of the help is about, where that is done.
    fn run_line(&mut self, at: usize) -> Option<Effect> {
        let chosen = self.frame.help.chosen(at);
        (self.overlay, self.state.prompt) = (Overlay::None, None);
        self.act(chosen?)
    }

    /// Moves what lies on top by lines. Returns whether the action was for that.
    fn scroll(&mut self, action: Action) -> bool {
        let page = isize::from(self.state.size.height as i16 / 2);
        let by = match action {
            Action::Up | Action::Wheel { is_in: true, .. } => -1,
            Action::Down | Action::Wheel { is_in: false, .. } => 1,
            Action::PageUp => -page,
            Action::PageDown => page,
            _ => return false,
        };
        match &mut self.overlay {
            Overlay::Help { at } => *at = self.frame.help.step(*at, by),
            Overlay::Job { at, .. } => *at = at.saturating_add_signed(by).min(JOB_LINES),
            _ => return false,
        }
        true
    }

    /// Opens what is predicted of the finding under the cursor. On the timeline it closes that, or opens it for the finding
    /// that the headline speaks of. Without one it is the first that has any. That of a gap that is selected goes before.
    fn predict(&mut self) {
        let state = &mut self.state;
        if self.views.is_home() {
            if state.focus.prediction.close() {
                return;
            }
            let in_step = state.step_in_view().is_some();
            let selected = state.focus.selection.item.span();
            let told = selected.and_then(|it| state.told_by(it));
            if let Some((at, finding)) = told {
                match prediction::says_why_not(at, finding, in_step) {
                    Some(why) => state.say(why),
                    None => state.predict(|_| Some(at)),
                }
                return;
            }
            let verdict = state.answer().and_then(|it| it.verdicts.first()).cloned();
            state.predict(|found| {
                let mut shown = (0..found.len()).filter(|at| is_shown(&found[*at], in_step));
                let has = |of: &Evidence| Some(of.span) == selected;
                let mut its = shown
                    .clone()
                    .filter(|at| found[*at].evidence.iter().any(has));
                let told = verdict.and_then(|it| prediction::told(&it, found));
                let told = told.filter(|at| shown.clone().any(|it| it == *at));
                its.next().or(told).or_else(|| shown.next())
            });
            return;
        }
        let before = state.focus.prediction.version().0;
        self.views.act(Action::Predict, state);
        if state.focus.prediction.version().0 != before {
            self.views.show_home(&self.state);
        }
    }

    fn back(&mut self) -> Option<Effect> {
        if self.views.shows_error(&self.state) {
            self.state.messages.error = None;
            return None;
        }
        if self.end_search() {
            return None;
        }
        if self.views.is_home() {
            if self.state.focus.marks.clear() || self.state.focus.prediction.close() {
                return None;
            }
            if self.state.focus.selection.row.is_none() && self.views.has_choices() {
                // Nothing is left to close but the run that was chosen.
                let number = self.state.model.run.number;
                self.state.replace(Run {
                    number,
                    ..Run::default()
                });
                return Some(Effect::Leave);
            }
            self.state.focus.selection = Selection::default();
        } else {
            self.views.go_up(&self.state);
        }
        None
    }

    /// Does what a view asks for.
    fn grant(&mut self, request: Request) -> Option<Effect> {
        match request {
            Request::Start(wanted) => return Some(Effect::Start(wanted)),
            Request::Ask(target) => self.overlay = Overlay::Attach(target),
            Request::Pass(pass) => {
                self.state.show(Scope::Pass(pass));
                self.views.show_home(&self.state);
            }
            Request::Place(place) => self.go_to(&place),
            Request::PlaceIn(place, shown) => {
                self.go_to(&place);
                let room = shown.len() / 4;
                let window = Span::new(shown.start - room, shown.end + room);
                self.state.focus.camera.viewport.show(window);
            }
        }
        None
    }

    /// Shows a place on the timeline.
    pub(crate) fn go_to(&mut self, place: &Place) {
        self.views.show_home(&self.state);
        let state = &mut self.state;
        state.focus.camera.is_following = false;
        let scope = state.scope_span();
        if !scope.is_some_and(|scope| scope.overlaps(place.span)) {
            state.show(Scope::Whole);
            state.say("not in the pass that was shown: the whole run");
        }
        if let Some(kind) = place.row {
            state.reveal_row(kind);
        }
        let trace = &state.model.run.trace;
        let (item, is_stretch) = (place.item(trace), place.is_stretch(trace));
        state.focus.selection = Selection {
            row: place.row,
            item,
            cursor: place.span.start,
        };
        if is_stretch {
            // All of it, and what happened in it.
            state.focus.marks.measure(place.span, state.focus.selection);
            return state.focus.camera.viewport.show(place.span);
        }
        // In the middle, with as much around it on either side.
        let room = place.span.len().max(1);
        let (start, end) = (place.span.start - room, place.span.end + room);
        state.focus.camera.viewport.show(Span::new(start, end));
    }
}
