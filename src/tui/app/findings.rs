//! Findings of what is on screen: looked for once the run has ended, kept until the scope changes.

use super::rows::RowKind;
use super::selection::{Item, Selection};
use super::{App, Scope};
use crate::activity::Span;
use crate::analysis::findings::{self, Evidence, Finding};
use crate::analysis::{CallIndex, figures};
use crate::trace::{LaneKind, Trace};
use crate::tui::action::View;

/// Records up to which findings are looked for without being asked: the index of host calls takes
/// some 50 ns a record, so this is a blink.
const UNASKED: usize = 1_000_000;

/// Places that a finding shows in the list.
const SHOWN: usize = 3;

/// What was found, and in what.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// What was found, by what it could save.
    pub list: Vec<Finding>,
    /// Of which state of which scope.
    of: Option<(u64, Scope)>,
}

/// A line of the list of findings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FindingLine {
    /// The finding: index into the list.
    Title(usize),
    /// Its advice.
    Advice(usize),
    /// A place of a finding.
    Place(usize, Evidence),
}

impl Findings {
    /// The list as lines.
    #[must_use]
    pub fn lines(&self) -> Vec<FindingLine> {
        let mut lines = Vec::new();
        for (i, finding) in self.list.iter().enumerate() {
            lines.push(FindingLine::Title(i));
            lines.push(FindingLine::Advice(i));
            let places = finding.evidence.iter().take(SHOWN);
            lines.extend(places.map(|e| FindingLine::Place(i, *e)));
        }
        lines
    }

    /// Whether something was looked at.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.of.is_some()
    }
}

impl App {
    /// Looks for findings when it is time to.
    pub(super) fn find(&mut self) {
        let state = (self.trace.revision(), self.scope);
        if self.is_running() || self.is_picking() || self.findings.of == Some(state) {
            return;
        }
        let records: usize = self.trace.lanes().iter().map(|l| l.len()).sum();
        if records > UNASKED && self.view != View::Findings {
            return;
        }
        let window = match self.scope {
            Scope::Whole => None,
            Scope::Pass(i) => self.passes.list.get(i).map(|p| p.span),
        };
        self.findings = Findings {
            list: found(&self.trace, window, self.peaks.copies),
            of: Some(state),
        };
    }

    /// Shows the place under the cursor on the timeline.
    pub(super) fn go_to_evidence(&mut self) {
        let evidence = match self.findings.lines().get(self.cursor) {
            Some(FindingLine::Place(_, evidence)) => Some(*evidence),
            Some(FindingLine::Title(i) | FindingLine::Advice(i)) => {
                self.findings.list[*i].evidence.first().copied()
            }
            None => None,
        };
        let Some(evidence) = evidence else {
            return;
        };
        self.view = View::Timeline;
        self.is_following = false;
        let is_inside = self
            .scope_span()
            .is_some_and(|scope| scope.overlaps(evidence.span));
        if !is_inside {
            self.show_whole();
        }
        self.selection = Selection {
            row: row_of(&self.trace, &evidence),
            item: match evidence.row {
                Some(row) => Item::Record {
                    row,
                    span: evidence.span,
                },
                None => Item::Gap(evidence.span),
            },
            cursor: evidence.span.start,
        };
        self.viewport.reveal(evidence.span);
        self.scroll();
    }
}

fn found(trace: &Trace, window: Option<Span>, peaks: figures::Peaks) -> Vec<Finding> {
    let calls = CallIndex::new(trace);
    let devices = figures::of(trace, &calls, window);
    let scope = findings::Scope::new(trace, &calls, window, &devices, peaks);
    findings::of(&scope)
}

/// The row that shows a place.
fn row_of(trace: &Trace, evidence: &Evidence) -> Option<RowKind> {
    let Some(lane) = evidence.lane else {
        let device = trace
            .devices()
            .iter()
            .position(|d| Some(d.info.id) == evidence.device)?;
        return Some(RowKind::Overlap(device));
    };
    match trace.lanes().get(lane)?.key().kind {
        LaneKind::Stream { .. } => Some(RowKind::Stream(lane)),
        LaneKind::Thread { .. } => Some(RowKind::Thread(lane)),
        LaneKind::Range { .. } => Some(RowKind::Range(lane, 0)),
        LaneKind::Overhead => Some(RowKind::Overhead(lane)),
        LaneKind::Sync | LaneKind::Event | LaneKind::Memory { .. } => None,
    }
}
