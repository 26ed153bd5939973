//! The views of the middle of the screen: components with their own state, registered in one table.
//!
//! A view is a file here and a line of [`VIEWS`]. It makes what it shows in [`View::prepare`], which runs before a
//! frame and only works when something has changed. What takes long it asks an
//! [`Analyst`](crate::tui::state::analyst::Analyst). [`View::draw`] puts that into cells. Views that are lists fill the
//! `List` that they are given, which is drawn and searched and answers keys and mouse for all of them.

mod compare;
mod findings;
mod journal;
mod lines;
mod list;
mod operations;
mod picker;
mod ranks;
mod roofline;
mod running;
mod sweep;
mod table;
mod timeline;

use std::fmt::Debug;

use crate::tui::draw::prelude::*;

use super::action::{Action, Context};
use super::draw::layout::Layout;
use super::state::row::RowKind;
use super::state::selection::Item;
use super::state::{Choice, NextRun, SourceLine, State, Target, ViewNeeds};
use super::theme::{Role, Theme};
use activity::{Ns, Span};
use list::Chosen;
pub use list::{Filter, List};
use picker::Picker;
pub use running::age;
use trace::{Measure, Trace};

/// What stands in the middle of the screen.
pub trait View: Debug {
    /// Which keys are for it.
    fn context(&self) -> Context {
        Context::List
    }

    /// Whether it has something to show; the others are passed over by Tab.
    fn has_content(&self, _state: &State) -> bool {
        true
    }

    /// Whether it is a list: it can be searched, and keys and mouse move its cursor.
    fn has_list(&self) -> bool {
        self.context() == Context::List
    }

    /// It comes on screen.
    fn open(&mut self, list: &mut List, _state: &State) {
        list.cursor = 0;
    }

    /// Makes what it shows, within `area` of the screen. Called before every frame that it is on.
    fn prepare(&mut self, list: &mut List, state: &State, area: Rect);

    /// Draws what was made.
    fn draw(&self, list: &List, theme: &Theme, area: Rect, buf: &mut Buffer) {
        list.draw(theme, area, buf);
    }

    /// Line `at`, which the cursor is on, was taken.
    fn choose(&mut self, _at: usize, _state: &State) -> Option<Request> {
        None
    }

    /// Whether it does something with an action that not every list knows.
    fn offers(&self, action: Action) -> bool {
        action != Action::Sort || !self.orders().is_empty()
    }

    /// The columns that its list can be ordered by, in turn.
    fn orders(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether it shows the answers of what is in scope.
    fn shows_answers(&self) -> bool {
        false
    }

    /// Whether it shows which rank is late.
    fn shows_ranks(&self) -> bool {
        false
    }

    /// The source line that line `at` is of, where that is another one than that of its place on the timeline.
    fn source(&self, _at: usize, _state: &State) -> Option<SourceLine> {
        None
    }

    /// Any other action, with the cursor on line `at`.
    fn act(&mut self, _at: usize, _action: Action, _state: &mut State) -> Option<Request> {
        None
    }

    /// A few words at the foot of the other views.
    fn note(&self, _state: &State) -> Option<Note> {
        None
    }
}

/// A few words, with how they stand out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub text: String,
    pub role: Role,
}

impl Note {
    pub fn new(text: impl Into<String>, role: Role) -> Note {
        let text = text.into();
        Note { text, role }
    }
}

/// What a view asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    Start(NextRun),
    /// Show what attaching to a process means.
    Ask(Target),
    /// Show a pass on the timeline.
    Pass(usize),
    /// Show a place on the timeline.
    Place(Place),
    /// Show a place with what belongs to it, which lasts so long.
    PlaceIn(Place, Span),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The row of the screen.
    pub row: Option<RowKind>,
    /// The record, as its number in the lane; `None` for a gap.
    pub record: Option<usize>,
    pub span: Span,
}

impl Place {
    pub fn new(row: Option<RowKind>, record: Option<usize>, span: Span) -> Place {
        Place { row, record, span }
    }

    /// It as what is selected. Of a stretch in which its row works, nothing is.
    pub fn item(&self, trace: &Trace) -> Item {
        match self.record {
            Some(row) => Item::Record {
                row,
                span: self.span,
            },
            None if self.is_stretch(trace) => Item::None,
            None => Item::Gap(self.span),
        }
    }

    /// How long its row works in it: in a gap for next to nothing, in an odd step for a part of it.
    pub fn busy(&self, trace: &Trace) -> Ns {
        self.row.map_or(0, |row| match (row.lane(), row.device()) {
            (Some(lane), _) => trace.lanes()[lane].busy(self.span),
            (None, Some(it)) => trace.devices()[it].usage.time(Measure::Busy, self.span),
            (None, None) => 0,
        })
    }

    /// Whether it is no gap: its row works in it.
    pub fn is_stretch(&self, trace: &Trace) -> bool {
        self.record.is_none() && 100 * self.busy(trace) >= self.span.len()
    }
}

/// A line of the table of views.
#[derive(Debug)]
pub struct ViewEntry {
    pub title: &'static str,
    /// What it shows, for the help.
    pub help: &'static str,
    new: fn() -> Box<dyn View>,
}

const fn entry(title: &'static str, help: &'static str, new: fn() -> Box<dyn View>) -> ViewEntry {
    ViewEntry { title, help, new }
}

/// Every view, in the order of its tab. The first is the one to come back to.
#[rustfmt::skip]
pub const VIEWS: &[ViewEntry] = &[
    entry("timeline", "timeline", || Box::<timeline::TimelineView>::default()),
    entry("operations", "operations by name", || Box::<operations::OperationsView>::default()),
    entry("findings", "what could be better", || Box::<findings::Findings>::default()),
    entry("compare", "variants, last run, sweep", || Box::<compare::Compare>::default()),
    entry("log", "notices, program's output", || Box::<journal::JournalView>::default()),
    entry("ranks", "ranks: who waits for whom", || Box::<ranks::RanksView>::default()),
    entry("lines", "source lines GPUs wait for", || Box::<lines::LinesView>::default()),
    entry("roofline", "kernels under their roofs", || Box::<roofline::Roofline>::default()),
    entry("sweep", "chart of a sweep", || Box::<sweep::SweepChart>::default()),
];

pub const OPERATIONS: usize = 1;
pub const FINDINGS: usize = 2;
pub const LINES: usize = 6;

/// The chart of a sweep is a part of the comparison of variants: the bar has no place of its own for it.
pub const SWEEP: usize = VIEWS.len() - 1;
const COMPARE: usize = 3;

/// The view of a title that begins so.
///
/// # Errors
/// What views there are.
pub fn view_named(text: &str) -> Result<usize, String> {
    let text = text.trim().to_lowercase();
    let is_it = |entry: &ViewEntry| !text.is_empty() && entry.title.starts_with(&text);
    let mut found = VIEWS.iter().enumerate().filter(|(_, entry)| is_it(entry));
    match (found.next(), found.next()) {
        (Some((view, _)), None) => Ok(view),
        _ => {
            let names: Vec<&str> = VIEWS.iter().map(|entry| entry.title).collect();
            Err(format!("expected one of {}", names.join(", ")))
        }
    }
}

/// All views, and which one is on screen.
#[derive(Debug)]
pub struct Views {
    /// One for each of [`VIEWS`], and the picker, each with its list.
    all: Vec<(Box<dyn View>, List)>,
    /// Which of [`VIEWS`] is on screen once there is a run.
    pub current: usize,
}

impl Views {
    /// All views; the picker shows `choices`.
    pub fn new(choices: Vec<Choice>) -> Self {
        let picker: Box<dyn View> = Box::new(Picker::new(choices));
        let views = VIEWS.iter().map(|entry| (entry.new)());
        let all = views.chain([picker]).map(|view| (view, List::default()));
        Views {
            all: all.collect(),
            current: 0,
        }
    }

    /// Whether there is a picker to go back to.
    pub fn has_choices(&self) -> bool {
        self.all[VIEWS.len()].0.has_list()
    }

    /// What is on screen: before a run the picker.
    fn at(&self, state: &State) -> usize {
        match state.model.run.is_none() {
            true => VIEWS.len(),
            false => self.current,
        }
    }

    pub fn on_screen(&self, state: &State) -> &dyn View {
        self.all[self.at(state)].0.as_ref()
    }

    /// Its list, when it is one.
    pub fn list(&self, state: &State) -> Option<&List> {
        let (view, list) = &self.all[self.at(state)];
        view.has_list().then_some(list)
    }

    pub fn draw(&self, state: &State, theme: &Theme, area: Rect, buf: &mut Buffer) {
        let (view, list) = &self.all[self.at(state)];
        view.draw(list, theme, area, buf);
    }

    /// Whether the view to come back to is on screen.
    pub fn is_home(&self) -> bool {
        self.current == 0
    }

    /// Whether the view on screen shows what was found out.
    pub fn wants_answers(&self) -> bool {
        self.all[self.current].0.shows_answers()
    }

    /// What the view on screen shows of what takes longer to find out.
    pub fn shown(&self) -> ViewNeeds {
        ViewNeeds {
            answers: self.wants_answers(),
            ranks: self.all[self.current].0.shows_ranks(),
            timeline: self.is_home(),
        }
    }

    /// Whether a view has something to show.
    pub fn has_content(&self, view: usize, state: &State) -> bool {
        self.all[view].0.has_content(state)
    }

    pub fn show(&mut self, view: usize, state: &State) {
        if let Some((shown, list)) = self.all[..VIEWS.len()].get_mut(view) {
            self.current = view;
            shown.open(list, state);
        }
    }

    /// Puts a view on screen as it was left.
    pub fn return_to(&mut self, view: usize) {
        if view < VIEWS.len() {
            self.current = view;
        }
    }

    /// Which of [`VIEWS`] the bar has, in its order.
    pub fn bar(&self, state: &State) -> impl Iterator<Item = usize> {
        let is_there = |view: &usize| self.at_bar() == *view || self.has_content(*view, state);
        (0..SWEEP).filter(is_there)
    }

    /// The one at a place of the bar.
    pub fn nth(&self, place: usize, state: &State) -> Option<usize> {
        self.bar(state).nth(place)
    }

    /// Which of the bar's is on screen.
    pub fn at_bar(&self) -> usize {
        if self.current == SWEEP {
            COMPARE
        } else {
            self.current
        }
    }

    /// Whether the variants of a sweep are on screen, of which there is a chart.
    pub fn is_swept(&self, state: &State) -> bool {
        self.current == COMPARE && state.model.run.is_swept()
    }

    /// What the key that orders lists does here, where that is something else.
    pub fn order_word(&self, state: &State) -> Option<&'static str> {
        match self.current {
            SWEEP => Some("figure"),
            _ => self.is_swept(state).then_some("chart"),
        }
    }

    /// Puts on screen what this view is a part of, or the timeline.
    pub fn go_up(&mut self, state: &State) {
        self.show(if self.current == SWEEP { COMPARE } else { 0 }, state);
    }

    pub fn show_home(&mut self, state: &State) {
        self.show(0, state);
    }

    /// Puts the next (or previous) view that has something to show on screen.
    pub fn step(&mut self, by: isize, state: &State) {
        let bar: Vec<usize> = self.bar(state).collect();
        let at = bar.iter().position(|view| *view == self.at_bar());
        let next = (at.unwrap_or(0) as isize + by).rem_euclid(bar.len() as isize);
        self.show(bar[next as usize], state);
    }

    /// Makes what they show.
    pub fn prepare(&mut self, state: &State) {
        let area = Layout::of(state).middle();
        let at = self.at(state);
        let (view, list) = &mut self.all[at];
        view.prepare(list, state, area);
    }

    /// The filter of the list on screen, if it has one.
    pub fn filter(&mut self, state: &State) -> Option<&mut Filter> {
        let at = self.at(state);
        let (view, list) = &mut self.all[at];
        view.has_list().then_some(&mut list.filter)
    }

    /// Whether the view on screen can be searched.
    pub fn can_find(&self, state: &State) -> bool {
        let view = self.on_screen(state);
        view.context() == Context::Timeline || view.has_list()
    }

    /// Whether an error of the last start lies above the view on screen. Over lists it would hide the lines that a
    /// person goes through, and its first line stands in the header.
    pub fn shows_error(&self, state: &State) -> bool {
        let context = self.on_screen(state).context();
        state.messages.error.is_some() && matches!(context, Context::Timeline | Context::Picker)
    }

    /// Hands an action to the view on screen: to its list first.
    pub fn act(&mut self, action: Action, state: &mut State) -> Option<Request> {
        let at = self.at(state);
        let (view, list) = &mut self.all[at];
        if let Action::Click { x, y } = action
            && let Some(heading) = list.heading_at(x, y)
            && let Some(order) = view.orders().iter().position(|it| *it == heading)
        {
            list.order = order;
        }
        match view.has_list().then(|| list.act(action)) {
            Some(Chosen::Line) => return view.choose(list.cursor, state),
            Some(Chosen::Nothing) => {}
            Some(Chosen::NotMine) if action == Action::Sort && !view.orders().is_empty() => {
                list.order = (list.order + 1) % view.orders().len();
            }
            Some(Chosen::NotMine) | None => return view.act(list.cursor, action, state),
        }
        None
    }

    /// The source line under the cursor, of a program.
    pub fn source(&mut self, state: &State) -> Option<SourceLine> {
        if state.model.run.plan.is_some() || state.model.run.is_none() {
            return None;
        }
        let at = self.at(state);
        let (view, list) = &mut self.all[at];
        if !view.has_list() {
            return state.selected_source();
        }
        view.source(list.cursor, state)
            .or_else(|| match view.choose(list.cursor, state)? {
                Request::Place(place) | Request::PlaceIn(place, _) => {
                    state.source_of(place.row?, place.item(&state.model.run.trace))
                }
                _ => None,
            })
    }

    /// The notes of the views that are not on screen.
    pub fn notes(&self, state: &State) -> impl Iterator<Item = Note> {
        let others = self.all.iter().enumerate();
        others
            .filter(|(i, _)| *i != self.current)
            .filter_map(|(_, (view, _))| view.note(state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_view_has_a_title_of_its_own_and_the_chart_stands_behind_those_of_the_bar() {
        let titles: HashSet<&str> = VIEWS.iter().map(|entry| entry.title).collect();
        assert_eq!(titles.len(), VIEWS.len());
        assert_eq!(
            (VIEWS[SWEEP].title, VIEWS[COMPARE].title),
            ("sweep", "compare")
        );
        assert_eq!(VIEWS.len(), SWEEP + 1);
    }

    #[test]
    fn views_are_named_by_their_beginning() {
        assert_eq!((view_named("comp"), view_named("Findings")), (Ok(3), Ok(2)));
        // Lines and log.
        for wrong in ["", "l", "4", "compared"] {
            assert!(view_named(wrong).is_err_and(|text| text.contains("compare")));
        }
    }
}
