//! What each action does to the state.

use super::rows::RowKind;
use super::selection::Item;
use super::{App, Effect, Scope, Status, Wanted};
use crate::activity::Span;
use crate::tui::action::{Action, View};
use crate::tui::draw::layout::Layout;
use crate::tui::keys::Context;

/// One step of zooming.
pub(super) const ZOOM: f64 = 0.7;
/// One step of panning, as a share of the window.
const PAN: f64 = 0.15;

impl App {
    /// Where keys are pressed now.
    #[must_use]
    pub fn context(&self) -> Context {
        match self.view {
            _ if self.is_picking() => Context::Picker,
            View::Timeline => Context::Timeline,
            _ => Context::List,
        }
    }

    /// Does what a key or the mouse asks for. What the shell must do comes back.
    pub fn act(&mut self, action: Action) -> Option<Effect> {
        self.flash = None;
        if self.is_help_open && !matches!(action, Action::Quit | Action::Save) {
            self.is_help_open = false;
            return None;
        }
        match action {
            Action::Quit => return Some(Effect::Quit),
            Action::Save => return Some(Effect::Save),
            Action::Edit => return Some(Effect::Edit),
            Action::Rerun if !self.is_picking() => return Some(Effect::Start(Wanted::Same)),
            Action::Stop if self.is_running() => return Some(Effect::Stop),
            Action::Rerun | Action::Stop => {}
            Action::Choose => return self.choose(),
            Action::Back => self.back(),
            Action::Help => self.is_help_open = true,
            Action::Show(_) | Action::NextView | Action::PreviousView if self.is_picking() => {}
            Action::Show(view) => self.show_view(view),
            Action::NextView => self.step_view(true),
            Action::PreviousView => self.step_view(false),
            Action::Follow => self.toggle_follow(),
            Action::Pause => self.toggle_pause(),
            Action::Up => self.step(-1),
            Action::Down => self.step(1),
            Action::PageUp => self.step(-10),
            Action::PageDown => self.step(10),
            Action::Sort => self.sort = self.sort.wrapping_add(1),
            Action::NextVariant => self.step_variant(1),
            Action::PreviousVariant => self.step_variant(-1),
            Action::NextPass => self.step_pass(1),
            Action::PreviousPass => self.step_pass(-1),
            Action::WholeRun => match self.scope {
                Scope::Pass(_) => self.show_whole(),
                Scope::Whole => self.step_variant(0),
            },
            Action::Click { x, y } => return self.click(x, y),
            Action::Drag { columns } => self.drag(columns),
            Action::Wheel { x, is_in, .. } => self.wheel(x, is_in),
            _ => self.move_window(action),
        }
        None
    }

    /// The actions that move the window or the selection on the timeline.
    fn move_window(&mut self, action: Action) {
        let fixed = match self.selection.item.span() {
            Some(span) if span.overlaps(self.viewport.window) => {
                let seen = span.intersect(self.viewport.window);
                seen.start + seen.len() / 2
            }
            _ => self.viewport.window.start + self.viewport.window.len() / 2,
        };
        match action {
            Action::ZoomIn => self.viewport.zoom(fixed, ZOOM),
            Action::ZoomOut => self.viewport.zoom(fixed, 1.0 / ZOOM),
            Action::PanLeft => self.viewport.pan(-PAN),
            Action::PanRight => self.viewport.pan(PAN),
            Action::PanStart => self.viewport.pan(-1e6),
            Action::PanEnd => self.viewport.pan(1e6),
            Action::Fit => {
                // What shows all already goes on to the operations alone.
                let was = self.viewport.window;
                self.fit();
                if self.viewport.window == was {
                    self.viewport.show(self.operations_window());
                }
            }
            Action::ZoomToSelection => {
                if let Some(span) = self.selection.item.span() {
                    let room = span.len() / 4;
                    self.viewport
                        .show(Span::new(span.start - room, span.end + room));
                }
            }
            Action::NextOperation => self.step_item(true, false),
            Action::PreviousOperation => self.step_item(false, false),
            Action::NextGap => self.step_item(true, true),
            Action::PreviousGap => self.step_item(false, true),
            _ => {}
        }
        self.is_following = false;
    }

    fn back(&mut self) {
        if self.error.take().is_some() {
            return;
        }
        if self.view != View::Timeline {
            self.show_view(View::Timeline);
        } else {
            self.selection = super::selection::Selection::default();
        }
    }

    fn show_view(&mut self, view: View) {
        self.view = view;
        self.cursor = match view {
            View::Log => self.log.lines().len().saturating_sub(1),
            View::Output => self.output.lines().len().saturating_sub(1),
            _ => 0,
        };
    }

    fn step_view(&mut self, is_forwards: bool) {
        let views: Vec<View> = View::ALL.into_iter().filter(|v| self.has(*v)).collect();
        let current = views.iter().position(|v| *v == self.view).unwrap_or(0);
        let by = if is_forwards { 1 } else { views.len() - 1 };
        self.show_view(views[(current + by) % views.len()]);
    }

    /// Whether a view has something to show; the others are passed over by Tab.
    #[must_use]
    pub fn has(&self, view: View) -> bool {
        match view {
            View::Sweep => self.plan.as_ref().is_some_and(|p| p.sweep.is_some()),
            View::Output => !self.output.lines().is_empty(),
            View::Compare => self.passes.variants.len() > 1 || !self.previous.is_empty(),
            _ => true,
        }
    }

    fn toggle_follow(&mut self) {
        self.is_following = !self.is_following;
        self.is_paused = false;
        if self.is_following {
            self.prepared = None;
            if matches!(self.status, Status::Ended(_)) {
                self.needs_choice = true;
            }
        }
    }

    fn toggle_pause(&mut self) {
        self.is_paused = !self.is_paused;
        self.paused_at = self.trace.health().received;
        self.prepared = None;
    }

    pub(super) fn step(&mut self, by: i32) {
        if self.is_picking() {
            let last = self.choices.len().saturating_sub(1);
            self.cursor = self.cursor.saturating_add_signed(by as isize).min(last);
            return;
        }
        if self.view != View::Timeline {
            let last = self.list_len().saturating_sub(1);
            self.cursor = self.cursor.saturating_add_signed(by as isize).min(last);
            return;
        }
        if self.selection.row.is_none() {
            self.selection.cursor = self.viewport.window.start + self.viewport.window.len() / 2;
        }
        self.selection.step_row(&self.trace, &self.rows, by);
        if !self.is_in_scope() {
            // The nearest record is another pass's: this one's first is meant.
            self.select_first();
        }
        self.is_following = false;
        self.scroll();
    }

    /// Whether what is selected belongs to what is on the timeline: the pass, or the whole run.
    fn is_in_scope(&self) -> bool {
        let scope = self.scope_span();
        self.selection.item.span().is_none_or(|span| {
            let inside = |scope: Span| scope.overlaps(span) || scope.contains(span.start);
            // A gap that reaches out of a pass is the time between two of them.
            match self.selection.item {
                Item::Gap(_) => scope.is_some_and(|s| s.start <= span.start && span.end <= s.end),
                _ => scope.is_some_and(inside),
            }
        })
    }

    /// Selects the first record of the selected lane in the pass, if there is one.
    fn select_first(&mut self) {
        let (Some(scope), Some(lane)) = (
            self.scope_span(),
            self.selection.row.and_then(RowKind::lane),
        ) else {
            return;
        };
        self.selection.item = Item::None;
        if let Some(row) = self.trace.lanes()[lane].next(scope.start) {
            let span = self.trace.lanes()[lane].span(row);
            if scope.contains(span.start) {
                self.selection.item = Item::Record { row, span };
                self.selection.cursor = span.start;
            }
        }
    }

    /// Lines of the list on screen.
    pub(super) fn list_len(&self) -> usize {
        match self.view {
            View::Log => self.log.lines().len(),
            View::Output => self.output.lines().len(),
            View::Compare => self.variant_figures().len(),
            View::Table => crate::tui::table::table(self).len(),
            View::Findings => self.findings.lines().len(),
            View::Timeline | View::Sweep => 0,
        }
    }

    fn step_item(&mut self, is_forwards: bool, is_gap: bool) {
        if self.selection.row.is_none() {
            self.selection.cursor = self.viewport.window.start;
            self.selection.step_row(&self.trace, &self.rows, 0);
            if !is_gap {
                self.select_first();
                self.scroll();
                return;
            }
        }
        let before = self.selection;
        if is_gap {
            let found = self.selection.step_gap(&self.trace, is_forwards);
            // A gap between two passes is none of this one's.
            let inside =
                self.selection.item.span().is_some_and(|span| {
                    self.scope_span().is_some_and(|scope| scope.overlaps(span))
                });
            if !found || !inside {
                let side = if is_forwards { "after" } else { "before" };
                self.flash = Some(format!("no gap {side} this one on this lane"));
            }
        } else {
            self.selection.step_record(&self.trace, is_forwards);
            if !self.is_in_scope() {
                self.selection = before;
                let side = if is_forwards { "after" } else { "before" };
                self.flash = Some(format!("no operation {side} this one in this pass"));
            }
        }
        if let Some(span) = self.selection.item.span() {
            self.viewport.reveal(span);
        }
        self.scroll();
    }

    fn step_variant(&mut self, by: isize) {
        let count = self.passes.variants.len();
        if count == 0 {
            self.flash = Some("there are no variants in this timeline".to_owned());
            return;
        }
        let current = self.variant().unwrap_or(count - 1) as isize;
        let next = (current + by).rem_euclid(count as isize) as usize;
        self.chosen = Some(self.passes.variants[next].label());
        if let Some(pass) = self.passes.representative(next) {
            self.show_pass(pass);
        }
    }

    fn step_pass(&mut self, by: isize) {
        let (Scope::Pass(current), Some(variant)) = (self.scope, self.variant()) else {
            return;
        };
        let passes: Vec<usize> = self.passes.of(variant).collect();
        let at = passes.iter().position(|&p| p == current).unwrap_or(0) as isize;
        if let Some(&pass) = passes.get((at + by).clamp(0, passes.len() as isize - 1) as usize) {
            self.show_pass(pass);
        }
    }

    /// Scrolls so that the selected row is on screen.
    pub(super) fn scroll(&mut self) {
        let Some(at) = self.selection.position(&self.rows) else {
            return;
        };
        let visible = Layout::new(self).row_count().max(1);
        if at < self.first_row {
            // Its title with it.
            self.first_row = at.saturating_sub(1);
        } else if at >= self.first_row + visible {
            self.first_row = at + 1 - visible;
        }
    }

    pub(super) fn choose(&mut self) -> Option<Effect> {
        if self.is_picking() {
            let choice = self.choices.get(self.cursor)?;
            return Some(Effect::Start(Wanted::Scenario(choice.name.clone())));
        }
        match self.view {
            View::Compare => {
                let variants = self.variant_figures();
                let variant = variants.get(self.cursor).map(|row| row.variant);
                if let Some(pass) = variant.and_then(|v| self.passes.representative(v)) {
                    self.show_pass(pass);
                    self.view = View::Timeline;
                }
            }
            View::Table => self.go_to_operation(),
            View::Findings => self.go_to_evidence(),
            _ => {}
        }
        None
    }

    /// Selects the longest operation of the table's line on the timeline.
    fn go_to_operation(&mut self) {
        let table = crate::tui::table::table(self);
        let Some(line) = table.get(self.cursor) else {
            return;
        };
        let (lane, row) = line.longest;
        self.view = View::Timeline;
        self.is_following = false;
        self.selection.row = Some(RowKind::Stream(lane));
        self.selection.select_record(&self.trace, lane, row);
        self.viewport.reveal(self.trace.lanes()[lane].span(row));
        self.scroll();
    }
}
