//! What could be better in what is on screen, with the places that show it.

use std::iter::once;
use std::ops::Range;

use ratatui::layout::Rect;

use super::list::{Cell, List};
use super::{Note, Place, Request, View};
use crate::tui::action::Action;
use crate::tui::draw::layout::Layout;
use crate::tui::draw::pen;
use crate::tui::state::State;
use crate::tui::state::answers::Answer;
use crate::tui::state::rows::RowKind;
use crate::tui::theme::Role;
use activity::text::printable;
use activity::{Span, units};
use analysis::findings::{Evidence, Finding, Severity};
use analysis::verdict::nothing_ran;
use trace::{LaneKind, Trace, describe};

/// Places that a finding shows in the list.
const SHOWN: usize = 3;

/// A line of the list.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Line {
    /// What bounds the whole or a device: index into the verdicts shown.
    Verdict(usize),
    /// Why a device was idle since the run began: index into what is known of that.
    SoFar(usize),
    /// The finding: index into what was found. Both are as many lines as they need, of which this is one.
    Title(usize, usize),
    Advice(usize, usize),
    /// A place of a finding.
    Place(usize, Evidence),
    /// How many more there are.
    More(usize),
}

impl Line {
    fn finding(self) -> Option<usize> {
        match self {
            Line::Verdict(_) | Line::SoFar(_) => None,
            Line::Title(i, _) | Line::Advice(i, _) | Line::Place(i, _) | Line::More(i) => Some(i),
        }
    }
}

/// The view.
#[derive(Debug, Default)]
pub(super) struct Findings {
    count: usize,
    lines: Vec<Line>,
    list: List,
}

impl View for Findings {
    fn prepare(&mut self, state: &State, area: Rect, is_on_screen: bool) {
        let answer = state.answers.of(&state.run, state.camera.scope);
        self.list.empty = match answer {
            Some(answer) if answer.verdicts.is_empty() && !state.run.is_running() => {
                nothing_ran(&state.run.trace)
            }
            Some(answer) if answer.verdicts.is_empty() => "waiting for the first operations …",
            Some(_) if self.list.filter.is_on() => "no finding has this",
            Some(_) => "nothing was found that could be better",
            None if state.answers.is_open() || state.run.is_running() => "computing …",
            None => "nothing was looked at",
        };
        self.count = answer.map_or(0, |answer| answer.findings.len());
        if is_on_screen {
            self.fill(state, area, answer.unwrap_or(&Answer::default()));
        }
    }

    fn shows_answers(&self) -> bool {
        true
    }

    fn list(&self) -> Option<&List> {
        Some(&self.list)
    }

    fn list_mut(&mut self) -> Option<&mut List> {
        Some(&mut self.list)
    }

    /// The place under the cursor, or the first one of its finding.
    fn choose(&mut self, state: &State) -> Option<Request> {
        let evidence = match *self.lines.get(self.list.cursor)? {
            Line::Place(_, evidence) => evidence,
            line => {
                let found = state.answers.of(&state.run, state.camera.scope)?;
                let finding = found.findings.get(line.finding().unwrap_or(0))?;
                *finding.evidence.first()?
            }
        };
        Some(Request::Place(Place {
            row: row_of(&state.run.trace, &evidence),
            record: record(&state.run.trace, &evidence),
            span: evidence.span,
        }))
    }

    /// Opens the prediction of the finding under the cursor.
    fn act(&mut self, action: Action, state: &mut State) {
        if action != Action::Predict {
            return;
        }
        let Some(at) = self.lines.get(self.list.cursor).and_then(|l| l.finding()) else {
            state.messages.flash = Some("this line is no finding".to_owned());
            return;
        };
        let answer = state.answers.of(&state.run, state.camera.scope);
        let Some(finding) = answer.and_then(|answer| answer.findings.get(at)) else {
            return;
        };
        let opened = state.ghost.open(&state.run, state.camera.scope, finding);
        if let Err(reason) = opened {
            state.messages.flash = Some(reason);
        }
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
    fn fill(&mut self, state: &State, area: Rect, answer: &Answer) {
        self.lines.clear();
        let has_line = Layout::of(state).verdict.height > 0;
        if !self.list.filter.is_on() {
            let verdicts = listed(answer, has_line);
            self.lines.extend(verdicts.map(Line::Verdict));
            let so_far = state.answers.so_far(&state.run);
            self.lines.extend((0..so_far.len()).map(Line::SoFar));
        }
        let mut shown = 0;
        for (i, finding) in answer.findings.iter().enumerate() {
            let places = || finding.evidence.iter().take(SHOWN).map(|e| place(state, e));
            if self.list.filter.is_on()
                && !self.list.filter.lets(once(words(finding)).chain(places()))
            {
                continue;
            }
            shown += 1;
            let titles = pen::wrap(&title(finding), room(area)).len();
            let advice_lines = pen::wrap(&finding.advice, room(area)).len();
            self.lines
                .extend((0..titles).map(|part| Line::Title(i, part)));
            self.lines
                .extend((0..advice_lines).map(|part| Line::Advice(i, part)));
            let places = finding.evidence.iter().take(SHOWN);
            self.lines.extend(places.map(|e| Line::Place(i, *e)));
            if finding.count > finding.evidence.len().min(SHOWN) as u64 {
                self.lines.push(Line::More(i));
            }
        }
        self.list.filter.count(shown, answer.findings.len());
        let lines = &self.lines;
        self.list.fill(area, lines.len(), |i| {
            cells(state, answer, lines[i], room(area))
        });
        let line = self.lines.get(self.list.cursor);
        let in_full = line.map_or_else(String::new, |line| match *line {
            Line::Verdict(i) => answer.verdicts[i].line(),
            Line::SoFar(i) => state.answers.so_far(&state.run)[i].clone(),
            Line::Title(i, _) | Line::Advice(i, _) | Line::Place(i, _) | Line::More(i) => {
                words(&answer.findings[i])
            }
        });
        self.list.in_full = Some(in_full);
    }
}

/// The verdicts in the list: those of several devices, and where it has no line of its own that of the whole.
fn listed(answer: &Answer, has_line: bool) -> Range<usize> {
    let first = usize::from(has_line);
    match answer.verdicts.len() {
        // Of one device the whole says the same.
        count @ ..=2 => first.min(count)..count.min(1),
        count => first..count,
    }
}

/// Columns that a list leaves for a title behind its mark.
fn room(area: Rect) -> usize {
    usize::from(area.width).saturating_sub(6).max(20)
}

/// What was found and what it costs, in one sentence.
fn title(finding: &Finding) -> String {
    printable(&format!("{}{}", finding.headline(), finding.worth()))
}

fn cells(state: &State, answer: &Answer, line: Line, room: usize) -> Vec<Cell> {
    let dim = Role::Dim;
    let found = &answer.findings;
    match line {
        Line::Verdict(i) => vec![Cell::rest(answer.verdicts[i].line(), Role::Text).bold()],
        Line::SoFar(i) => {
            let line = &state.answers.so_far(&state.run)[i];
            vec![Cell::rest(line, Role::Text)]
        }
        Line::Title(i, part) => {
            let finding = &found[i];
            let (mark, role) = match finding.severity {
                Severity::Warning => ("⚠", Role::Warning),
                Severity::Info => ("·", Role::Accent),
            };
            vec![
                Cell::left(if part == 0 { mark } else { "" }, 1, role).bold(),
                Cell::rest(piece(&title(finding), room, part), Role::Text).bold(),
            ]
        }
        Line::Advice(i, part) => vec![
            Cell::left("", 1, dim),
            Cell::rest(piece(&found[i].advice, room, part), Role::Text),
        ],
        Line::More(i) => {
            let shown = found[i].evidence.len().min(SHOWN) as u64;
            let more = units::count(found[i].count.saturating_sub(shown));
            vec![
                Cell::left("", 3, dim),
                Cell::rest(format!("and {more} more"), dim),
            ]
        }
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

/// One of the lines that a text takes.
fn piece(text: &str, room: usize, part: usize) -> String {
    pen::wrap(text, room)
        .into_iter()
        .nth(part)
        .unwrap_or_default()
}

/// A finding in full.
fn words(finding: &Finding) -> String {
    let places = match finding.count {
        1 => "1 place".to_owned(),
        n => format!("{} places", units::count(n)),
    };
    let told = format!(
        "{}{} ({places}; {}). {} {}",
        finding.headline(),
        finding.worth(),
        finding.rule,
        finding.advice,
        finding.refusal(),
    );
    printable(told.trim_end())
}

/// Where a place is: the row's name, and what runs there.
fn place(state: &State, evidence: &Evidence) -> String {
    let Some(lane) = evidence.lane else {
        return "the device is idle".to_owned();
    };
    let trace = &state.run.trace;
    let row = state.rows.iter().find(|row| row.kind.lane() == Some(lane));
    let lane_name = row.map_or("", |row| row.label.as_str());
    let name = record(trace, evidence).map_or_else(String::new, |row| {
        describe::activity(trace, &trace.activity(lane, row).what)
    });
    let words = [lane_name, name.as_str()];
    words
        .into_iter()
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join(" · ")
}

/// The record of a place as the timeline is now: while it grows, rows come between.
fn record(trace: &Trace, evidence: &Evidence) -> Option<usize> {
    let lane = trace.lanes().get(evidence.lane?)?;
    let row = evidence.row?;
    if lane.holds(row) && lane.span(row) == evidence.span {
        return Some(row);
    }
    let at = evidence.span.start;
    let mut same = lane.starting(Span::new(at, at.saturating_add(1)));
    same.find(|&row| lane.span(row) == evidence.span)
}

/// The row that shows a place.
fn row_of(trace: &Trace, evidence: &Evidence) -> Option<RowKind> {
    let Some(lane) = evidence.lane else {
        let device = trace
            .devices()
            .iter()
            .position(|d| Some(d.info.id) == evidence.device)?;
        return Some(RowKind::Gpu(device));
    };
    match trace.lanes().get(lane)?.key().kind {
        LaneKind::Stream { .. } => Some(RowKind::Stream(lane)),
        LaneKind::Thread { .. } => Some(RowKind::Thread(lane)),
        LaneKind::Range { .. } => Some(RowKind::Range(lane, 0)),
        LaneKind::Overhead => Some(RowKind::Overhead(lane)),
        LaneKind::Sync | LaneKind::Event | LaneKind::Memory { .. } => None,
    }
}
