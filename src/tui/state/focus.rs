//! What is looked at: which part of the run, what is selected, marked, looked for and predicted in it.

use super::camera::Camera;
use super::longest::LongestGaps;
use super::marks::Marks;
use super::model::Model;
use super::prediction::Prediction;
use super::search::Search;
use super::trail::Trail;
use super::why::Why;
use super::{RowKind, Run, Selection};
use activity::{Ns, Span};
use trace::Trace;

/// What is looked at.
#[derive(Debug, Default)]
pub struct Focus {
    /// Which part of the run is on screen.
    pub camera: Camera,
    pub selection: Selection,
    /// Which of the longest gaps was gone to.
    pub(super) longest: Option<LongestGaps>,
    /// What is looked for on the timeline.
    pub search: Search,
    /// Two marks on the axis, and what was measured.
    pub marks: Marks,
    /// The prediction under the timeline.
    pub prediction: Prediction,
    /// Why what is selected is idle.
    pub why: Why,
    /// The places that jumps led away from.
    pub trail: Trail,
}

/// Window and selection in the times of the process that is selected, else of the first one.
pub(super) struct OwnTimes {
    process: usize,
    window: Span,
    cursor: Ns,
    item: Option<Span>,
}

impl Focus {
    /// Another run is looked at, as one that is new.
    pub(super) fn begin(&mut self) {
        self.camera = Camera {
            chosen: self.camera.chosen.take(),
            ..Camera::following()
        };
        self.selection = Selection::default();
        self.forget_places();
    }

    /// Where jumps led away from, and what was measured, may be anywhere now.
    fn forget_places(&mut self) {
        self.marks.clear();
        self.trail = Trail::default();
    }

    /// Takes what was found out about what is looked for, measured and predicted, and asks anew when it has changed.
    pub(super) fn ask(&mut self, model: &Model) {
        let (analyst, run, facts) = (&model.analyst, &model.run, &model.answers.facts);
        self.prediction
            .prepare(analyst, run, self.camera.scope, facts);
        self.search.prepare(analyst, run);
        self.marks.prepare(analyst, run, facts);
        self.why.prepare(model, self.selection);
    }

    /// Window and selection as they are, before clocks are set.
    pub(super) fn own_times(&self, trace: &Trace) -> OwnTimes {
        let selected = self.selection.row.and_then(RowKind::lane);
        let process = selected.and_then(|lane| Some(trace.lanes().get(lane)?.key().process));
        let process = process.unwrap_or(0);
        let own = |span: Span| trace.as_recorded(process, span);
        OwnTimes {
            process,
            window: own(self.camera.viewport.window),
            cursor: own(Span::at(self.selection.cursor)).start,
            item: self.selection.item.span().map(own),
        }
    }

    /// Clocks were set: window and selection stay on the same records.
    pub(super) fn retime(&mut self, own: &OwnTimes, run: &Run) {
        let clock = run.trace.clock(own.process);
        let item = own.item.map(|span| clock.span(span));
        self.selection.retime(clock.apply(own.cursor), item);
        if !self.camera.is_following {
            let window = clock.span(own.window);
            let is_as_opened = self.camera.opened == Some(self.camera.viewport.window);
            self.camera.viewport.window = window;
            let extent = run.trace.extent();
            self.camera.is_following = !extent.is_some_and(|it| it.overlaps(window));
            self.camera.bound(run);
            self.camera.opened = is_as_opened.then_some(self.camera.viewport.window);
        }
        self.forget_places();
    }
}
