//! What could be better in what is on screen, with the places that show it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::list::{Cell, List};
use super::{Note, Place, Request, View};
use crate::activity::feed::Stop;
use crate::activity::{Span, units};
use crate::analysis::causes::Causes;
use crate::analysis::findings::{self, Evidence, Finding, Severity};
use crate::analysis::graph::Graph;
use crate::analysis::verdict::{self, Verdict};
use crate::analysis::{CallIndex, figures, steps};
use crate::trace::{LaneKind, Trace, describe, printable};
use crate::tui::analyst::{Question, Weight};
use crate::tui::app::rows::RowKind;
use crate::tui::app::{Scope, State};
use crate::tui::theme::{Role, Theme};

/// Records up to which findings are looked for without being asked where there is no thread for it:
/// the index of host calls takes some 50 ns a record, so this is a blink.
const UNASKED: usize = 1_000_000;

/// Places that a finding shows in the list.
const SHOWN: usize = 3;

/// What is known of what is on screen.
#[derive(Debug, Default)]
struct Answer {
    /// What bounds the whole, then each device.
    verdicts: Vec<Verdict>,
    /// What could be better, by what it could save.
    findings: Vec<Finding>,
}

impl Answer {
    /// The verdicts that are shown: of one device the whole says the same.
    fn verdicts(&self) -> &[Verdict] {
        match self.verdicts.as_slice() {
            [whole, _] => std::slice::from_ref(whole),
            all => all,
        }
    }
}

/// A line of the list.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Line {
    /// What bounds the whole or a device: index into the verdicts shown.
    Verdict(usize),
    /// The finding: index into what was found.
    Title(usize),
    /// Its advice.
    Advice(usize),
    /// A place of a finding.
    Place(usize, Evidence),
}

impl Line {
    fn finding(self) -> Option<usize> {
        match self {
            Line::Verdict(_) => None,
            Line::Title(i) | Line::Advice(i) | Line::Place(i, _) => Some(i),
        }
    }
}

/// The view.
#[derive(Debug)]
pub(super) struct Findings {
    question: Question<Scope, Answer>,
    count: usize,
    lines: Vec<Line>,
    list: List,
    in_full: String,
}

impl Default for Findings {
    fn default() -> Self {
        Findings {
            question: Question::new("findings", Weight::Heavy),
            count: 0,
            lines: Vec::new(),
            list: List::default(),
            in_full: String::new(),
        }
    }
}

impl View for Findings {
    fn prepare(&mut self, state: &State, area: Rect, is_on_screen: bool) {
        let run = &state.run;
        let is_wanted = is_on_screen || state.analyst.has_threads() || run.records() <= UNASKED;
        if !run.is_running() && is_wanted {
            let window = match state.camera.scope {
                Scope::Whole => None,
                Scope::Pass(i) => run.passes.list.get(i).map(|p| p.span),
            };
            let peaks = run.peaks.copies;
            self.question.ask(
                &state.analyst,
                run,
                state.camera.scope,
                move |trace, stop| find(trace, window, peaks, stop),
            );
        }
        let found = self.question.about(run, state.camera.scope);
        self.list.empty = match (run.is_running(), found) {
            (true, _) => "findings are looked for when the run has ended",
            (false, Some(_)) => "nothing ran on a GPU",
            (false, None) if self.question.is_open() => "computing …",
            (false, None) => "nothing was looked at",
        };
        self.count = found.map_or(0, |answer| answer.findings.len());
        if is_on_screen {
            self.fill(state, area);
        }
    }

    fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        self.list.draw(theme, area, buf);
    }

    fn list(&mut self) -> Option<&mut List> {
        Some(&mut self.list)
    }

    /// The place under the cursor, or the first one of its finding.
    fn choose(&mut self, state: &State) -> Option<Request> {
        let evidence = match *self.lines.get(self.list.cursor)? {
            Line::Place(_, evidence) => evidence,
            line => {
                let found = self.question.about(&state.run, state.camera.scope)?;
                let finding = found.findings.get(line.finding().unwrap_or(0))?;
                *finding.evidence.first()?
            }
        };
        Some(Request::Place(Place {
            row: row_of(&state.run.trace, &evidence),
            record: evidence.row,
            span: evidence.span,
        }))
    }

    fn in_full(&self) -> Option<&str> {
        Some(&self.in_full)
    }

    fn note(&self) -> Option<Note> {
        let text = match self.count {
            0 => return None,
            1 => "⚠ 1 finding".to_owned(),
            n => format!("⚠ {n} findings"),
        };
        Some(Note {
            text,
            role: Role::Warning,
        })
    }
}

impl Findings {
    fn fill(&mut self, state: &State, area: Rect) {
        let nothing = Answer::default();
        let answer = self.question.about(&state.run, state.camera.scope);
        let answer = answer.unwrap_or(&nothing);
        self.lines.clear();
        self.lines
            .extend((0..answer.verdicts().len()).map(Line::Verdict));
        for (i, finding) in answer.findings.iter().enumerate() {
            self.lines.extend([Line::Title(i), Line::Advice(i)]);
            let places = finding.evidence.iter().take(SHOWN);
            self.lines.extend(places.map(|e| Line::Place(i, *e)));
        }
        let lines = &self.lines;
        self.list
            .fill(area, lines.len(), |i| cells(state, answer, lines[i]));
        let line = self.lines.get(self.list.cursor);
        self.in_full = line.map_or_else(String::new, |line| match *line {
            Line::Verdict(i) => answer.verdicts()[i].line(),
            Line::Title(i) | Line::Advice(i) | Line::Place(i, _) => words(&answer.findings[i]),
        });
    }
}

fn cells(state: &State, answer: &Answer, line: Line) -> Vec<Cell> {
    let dim = Role::Dim;
    let found = &answer.findings;
    match line {
        Line::Verdict(i) => vec![Cell::rest(answer.verdicts()[i].line(), Role::Text).bold()],
        Line::Title(i) => {
            let finding = &found[i];
            let role = match finding.severity {
                Severity::Warning => Role::Warning,
                Severity::Info => Role::Accent,
            };
            let saving = units::duration(finding.saving_ns);
            let text = format!("{} · at most {saving} to save", printable(&finding.title));
            vec![
                Cell::left("⚠", 1, role).bold(),
                Cell::rest(text, Role::Text).bold(),
            ]
        }
        Line::Advice(i) => vec![
            Cell::left("", 1, dim),
            Cell::rest(&found[i].advice, Role::Text),
        ],
        Line::Place(_, evidence) => {
            let zero = state.camera.zero(&state.run);
            let start = units::duration(evidence.span.start - zero);
            let length = units::duration(evidence.span.len());
            vec![
                Cell::left("", 3, dim),
                Cell::left(format!("at {start} for {length}"), 32, dim),
                Cell::rest(place(state, &evidence), dim),
            ]
        }
    }
}

/// A finding in full.
fn words(finding: &Finding) -> String {
    let places = match finding.count {
        1 => "1 place".to_owned(),
        n => format!("{} places", units::count(n)),
    };
    printable(&format!(
        "{} ({places}; {}). {}",
        finding.title, finding.rule, finding.advice
    ))
}

/// Where a place is: the row's name, and what runs there.
fn place(state: &State, evidence: &Evidence) -> String {
    let Some(lane) = evidence.lane else {
        return "the device is idle".to_owned();
    };
    let trace = &state.run.trace;
    let row = state.rows.iter().find(|row| row.kind.lane() == Some(lane));
    let lane_name = row.map_or("", |row| row.label.as_str());
    let name = evidence.row.map_or_else(String::new, |row| {
        describe::activity(trace, &trace.activity(lane, row).what)
    });
    let words = [lane_name, name.as_str()];
    words
        .into_iter()
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join(" · ")
}

fn find(trace: &Trace, window: Option<Span>, peaks: figures::Peaks, stop: &Stop) -> Answer {
    let calls = CallIndex::new(trace);
    if stop.is_stopped() {
        return Answer::default();
    }
    let devices = figures::of(trace, Some(&calls), window);
    if stop.is_stopped() {
        return Answer::default();
    }
    let graph = Graph::new(trace);
    if stop.is_stopped() {
        return Answer::default();
    }
    let causes = Causes::new(trace, &graph);
    // A pass is a step by itself.
    let steps = match window {
        None => steps::of(trace, None),
        Some(_) => Vec::new(),
    };
    let verdicts = verdict::of(trace, &causes, window, &devices, &steps);
    if stop.is_stopped() {
        return Answer::default();
    }
    let scope = findings::Scope::new(trace, &calls, &causes, window, &devices, peaks);
    Answer {
        verdicts,
        findings: findings::of_unless(&scope, &|| stop.is_stopped()),
    }
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
