//! What could be better in what is on screen, with the places that show it.

use std::ops::Range;

use super::list::{Cell, List};
use super::ranks::idle_before;
use super::{Place, Request, View};
use crate::tui::action::Action;
use crate::tui::draw::layout::Layout;
use crate::tui::draw::prelude::*;
use crate::tui::state::answers::Answer;
use crate::tui::state::selection::row_now;
use crate::tui::state::{RowKind, State};
use activity::text::{plural, printable};
use activity::{Ns, units};
use advice::verdict::{Bound, nothing_ran};
use causes::evidence::Evidence;
use findings::{Change, Finding, Predicted, Rule, Severity};
use trace::{LaneKind, Trace, describe};

/// Places that a finding shows in the list.
const SHOWN: usize = 3;

/// What a line of the list is of.
#[derive(Clone, Debug, PartialEq)]
enum FindingLine {
    /// What bounds the whole or a device.
    Said(String),
    /// The finding: index into what was found. It is as many lines as it needs.
    Finding(usize),
    /// A place of a finding.
    Place(usize, Evidence),
}

impl FindingLine {
    fn finding(&self) -> Option<usize> {
        match self {
            FindingLine::Said(_) => None,
            FindingLine::Finding(i) | FindingLine::Place(i, _) => Some(*i),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Findings {
    lines: Vec<FindingLine>,
}

impl View for Findings {
    fn prepare(&mut self, list: &mut List, state: &State, area: Rect) {
        let answer = state.answer();
        list.empty = match answer {
            Some(answer) if answer.verdicts.is_empty() && !state.model.run.is_running() => {
                nothing_ran(&state.model.run.trace)
            }
            Some(answer) if answer.verdicts.is_empty() => "waiting for the first operations …",
            Some(_) if list.filter.is_on() => "no finding has this",
            // The headline says that no work ran.
            Some(answer) if answer.verdicts[0].bound_by == Bound::Nothing => {
                "too little ran on the GPU to say what could be better"
            }
            Some(_) => "nothing was found that could be better",
            None if state.model.answers.is_open() || state.model.run.is_running() => "computing …",
            None => "nothing was looked at",
        };
        self.fill(list, state, area, answer.unwrap_or(&Answer::default()));
    }

    fn shows_answers(&self) -> bool {
        true
    }

    /// The place under the cursor, or the first one of its finding.
    fn choose(&mut self, at: usize, state: &State) -> Option<Request> {
        let evidence = match self.lines.get(at)? {
            FindingLine::Place(_, evidence) => *evidence,
            line => {
                let found = state.answer()?;
                let finding = found.findings.get(line.finding().unwrap_or(0))?;
                *places(state, finding).first()?
            }
        };
        Some(Request::Place(place_of(&state.model.run.trace, &evidence)))
    }

    /// Opens the prediction of the finding under the cursor.
    fn act(&mut self, at: usize, action: Action, state: &mut State) -> Option<Request> {
        match self.lines.get(at).and_then(FindingLine::finding) {
            _ if action != Action::Predict => {}
            Some(at) => state.predict(|_| Some(at)),
            None => state.say("this line is no finding"),
        }
        None
    }
}

impl Findings {
    /// Adds the lines of a finding and of its places.
    fn add(
        &mut self,
        at: usize,
        finding: &Finding,
        places: Vec<(Evidence, String)>,
        area: Rect,
        zero: Ns,
        cells: &mut Vec<Vec<Cell>>,
    ) {
        cells.extend(texts(finding, room(area)));
        self.lines.resize(cells.len(), FindingLine::Finding(at));
        let more = finding.count.saturating_sub(places.len() as u64);
        for (evidence, place) in places {
            let start = units::duration(evidence.span.start - zero);
            let length = units::duration(evidence.span.len());
            cells.push(vec![
                Cell::left("", 3, Role::Dim),
                Cell::left(format!("at {start} for {length}"), 24, Role::Dim),
                Cell::rest(place, Role::Dim),
            ]);
            self.lines.push(FindingLine::Place(at, evidence));
        }
        if more > 0 {
            let more = format!("and {} more", units::count(more));
            cells.push(vec![
                Cell::left("", 3, Role::Dim),
                Cell::rest(more, Role::Dim),
            ]);
            self.lines.push(FindingLine::Finding(at));
        }
    }

    fn fill(&mut self, list: &mut List, state: &State, area: Rect, answer: &Answer) {
        self.lines.clear();
        let mut cells = Vec::new();
        if !list.filter.is_on() {
            let has_line = Layout::of(state).verdict.height > 0;
            for verdict in &answer.verdicts[listed(answer, has_line)] {
                for part in pen::wrap(&verdict.line(), usize::from(area.width).saturating_sub(3)) {
                    cells.push(vec![Cell::rest(part, Role::Text).bold()]);
                    self.lines.push(FindingLine::Said(verdict.line()));
                }
            }
        }
        let mut shown = 0;
        for (i, finding) in answer.findings.iter().enumerate() {
            let places = places(state, finding).into_iter();
            let places: Vec<_> = places.map(|it| (it, place(state, &it))).collect();
            let told = places.iter().map(|it| &it.1);
            if list.filter.lets(told.chain([&words(finding)])) {
                shown += 1;
                self.add(i, finding, places, area, state.first(), &mut cells);
            }
        }
        list.filter.count(shown, answer.findings.len());
        list.fill(area, cells.len(), |i| std::mem::take(&mut cells[i]));
        let line = self.lines.get(list.cursor);
        let in_full = line.map_or_else(String::new, |line| match line {
            FindingLine::Said(text) => text.clone(),
            FindingLine::Finding(i) | FindingLine::Place(i, _) => words(&answer.findings[*i]),
        });
        list.in_full = Some(in_full);
        let finding = line
            .and_then(FindingLine::finding)
            .map(|i| &answer.findings[i]);
        list.rest = finding.map(rest);
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

/// What stands before a finding: a warning or a remark.
pub(super) fn mark(finding: &Finding) -> (&'static str, Role) {
    match finding.severity {
        Severity::Warning => ("⚠", Role::Warning),
        Severity::Info => ("·", Role::Accent),
    }
}

/// The lines of a finding: what was found and what it costs, and what to do.
fn texts(finding: &Finding, room: usize) -> Vec<Vec<Cell>> {
    let (mut mark, role) = mark(finding);
    let title = printable(&format!("{}{}", finding.headline(), finding.worth()));
    let title = pen::wrap(&title, room).into_iter().map(|part| {
        let mark = Cell::left(std::mem::take(&mut mark), 1, role).bold();
        vec![mark, Cell::rest(part, Role::Text).bold()]
    });
    let change = finding.change.iter().map(Change::to_string);
    let advice = std::iter::once(finding.advice.clone()).chain(change);
    let advice: Vec<String> = advice.flat_map(|it| pen::wrap(&it, room)).collect();
    let advice = advice.into_iter();
    let advice =
        advice.map(|part| vec![Cell::left("", 1, Role::Dim), Cell::rest(part, Role::Text)]);
    title.chain(advice).collect()
}

/// A finding in full.
fn words(finding: &Finding) -> String {
    let (title, worth) = (finding.headline(), finding.worth());
    let change: Vec<String> = finding.change.iter().map(|it| format!(" {it}.")).collect();
    let (advice, change) = (&finding.advice, change.concat());
    let told = format!("{title}{worth}. {advice}{change} {}", rest(finding));
    printable(&told)
}

/// What its lines in the list do not say.
fn rest(finding: &Finding) -> String {
    let places = plural(finding.count, "place");
    let predicted = finding.predicted.as_ref();
    let certainty = predicted.map_or_else(|| finding.refusal(), Predicted::certainty);
    // What nobody knows a cure of may have one that is likely.
    let rule = match finding.rule {
        Rule::NoCure => String::new(),
        rule => format!("{}: ", rule.name()),
    };
    let told = format!("{rule}{places}. {certainty}");
    printable(told.trim_end())
}

/// The places of a finding that are shown. A rank is late at a collective; it is shown where its GPU was idle before that.
fn places(state: &State, finding: &Finding) -> Vec<Evidence> {
    let trace = &state.model.run.trace;
    let idle = |of: &Evidence| {
        let device = device_of(trace, of).filter(|_| finding.rule == Rule::LateRank)?;
        let mut here = trace.streams_of(device).filter_map(|(id, lane)| {
            let row = lane.next(of.span.end)?;
            (lane.span(row).start == of.span.end).then_some((id, row))
        });
        let span = idle_before(trace, device, here.next()?)?;
        Some(Evidence { span, ..*of })
    };
    let idle = finding.evidence.iter().filter_map(idle).take(SHOWN);
    let idle: Vec<Evidence> = idle.collect();
    match idle.is_empty() {
        true => finding.evidence.iter().take(SHOWN).copied().collect(),
        false => idle,
    }
}

/// Where a place is: the row's name, and what runs there.
fn place(state: &State, evidence: &Evidence) -> String {
    let trace = &state.model.run.trace;
    let Some(lane) = evidence.lane else {
        let place = place_of(trace, evidence);
        let busy = units::share(place.busy(trace), evidence.span.len());
        return match place.is_stretch(trace) {
            true => format!("GPU busy {} of it", units::percent(busy)),
            false => format!("GPU idle{}", ended_by(trace, evidence)),
        };
    };
    let mut rows = state.rows.list.iter();
    let row = rows.find(|row| row.kind.lane() == Some(lane));
    let lane_name = row.map_or("", |row| row.label.as_str());
    let name = record(trace, evidence).map_or_else(String::new, |row| {
        describe::activity(trace, &trace.activity(lane, row).what)
    });
    let words = [lane_name, name.as_str()].into_iter();
    words
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join(" · ")
}

/// It as a place of the timeline.
fn place_of(trace: &Trace, evidence: &Evidence) -> Place {
    let (row, record) = (row_of(trace, evidence), record(trace, evidence));
    Place::new(row, record, evidence.span)
}

/// The device of a place: index into [`Trace::devices`].
fn device_of(trace: &Trace, evidence: &Evidence) -> Option<usize> {
    let is_it = |device: &trace::Device| Some(device.info.id) == evidence.device;
    trace.devices().iter().position(is_it)
}

/// " until gemm": what ended an idle time.
fn ended_by(trace: &Trace, evidence: &Evidence) -> String {
    let device = device_of(trace, evidence);
    let streams = device.into_iter().flat_map(|it| trace.streams_of(it));
    let mut next = streams.filter_map(|(id, lane)| {
        let row = lane.next(evidence.span.end)?;
        (lane.span(row).start == evidence.span.end).then(|| trace.activity(id, row).what)
    });
    next.next().map_or_else(String::new, |what| {
        format!(" until {}", describe::activity(trace, &what))
    })
}

/// The record of a place as the timeline is now: while it grows, rows come between.
fn record(trace: &Trace, evidence: &Evidence) -> Option<usize> {
    row_now(
        trace.lanes().get(evidence.lane?)?,
        evidence.row?,
        evidence.span,
    )
}

/// The row that shows a place.
fn row_of(trace: &Trace, evidence: &Evidence) -> Option<RowKind> {
    let Some(lane) = evidence.lane else {
        let mut devices = trace.devices().iter();
        let device = devices.position(|d| Some(d.info.id) == evidence.device)?;
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
