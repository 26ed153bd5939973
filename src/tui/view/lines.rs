//! The source lines that the GPUs waited for.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::list::{Cell, Filter, List};
use super::table::TableLayout;
use super::{Place, Request, View};
use crate::report::lines::columns;
use crate::report::table::Column;
use crate::tui::draw::prelude::*;
use crate::tui::state::analyst::Question;
use crate::tui::state::{RowKind, SourceLine, State, has_lines};
use activity::feed::Stop;
use activity::text::{plural, printable};
use activity::units::{count, duration, percent};
use advice::Facts;
use figures::lines::{self, DeviceLines, Line};
use figures::nodes;
use figures::tables::NameRow;
use findings::at_lines;
use trace::{Trace, describe};

/// What was found.
#[derive(Clone, Debug, Default)]
struct LineAnswer {
    devices: Vec<DeviceLines>,
    /// Of DataLoader workers, where there are any.
    workers: Option<String>,
    /// What the GPUs did by the line that launched it.
    launched: Vec<NameRow>,
    /// What stands at lines whose files are here.
    texts: FxHashMap<(String, u32), String>,
}

impl LineAnswer {
    /// A line of a device, or a function below one.
    fn line(&self, device: usize, at: usize) -> Option<&Line> {
        self.devices.get(device)?.with_functions().nth(at)
    }

    /// What stands at a line, behind two blanks; empty where nobody knows.
    fn text(&self, line: &Line) -> String {
        let at = line.file.clone().zip(line.line);
        let text = at.and_then(|at| self.texts.get(&at));
        text.map_or_else(String::new, |it| format!("  {it}"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum SourceRow {
    /// What the lines of a device rest on: index into what was found.
    Device(usize),
    /// See [`LineAnswer::line`].
    Line(usize, usize),
    Workers,
    Launches,
    /// Index into what was launched.
    Launched(usize),
}

#[derive(Debug, Default)]
pub(super) struct LinesView {
    question: Question<(), LineAnswer>,
    rows: Vec<SourceRow>,
}

fn find(facts: &Facts<'_>, stop: &Stop) -> LineAnswer {
    let (trace, calls) = (facts.trace, facts.calls());
    if stop.is_stopped() {
        return LineAnswer::default();
    }
    let devices = facts.lines();
    let all = devices.iter().flat_map(DeviceLines::with_functions);
    let all = all.filter_map(|it| Some((it.file.as_deref()?, it.line?)));
    LineAnswer {
        texts: at_lines(trace, all),
        workers: lines::workers_in_words(&lines::workers(trace)),
        launched: nodes::by_launch(trace, calls),
        devices,
    }
}

impl View for LinesView {
    fn has_content(&self, state: &State) -> bool {
        has_lines(&state.model.run.trace)
    }

    fn prepare(&mut self, list: &mut List, state: &State, area: Rect) {
        let trace = &state.model.run.trace;
        if has_lines(trace) {
            let run = (!state.model.run.is_running()).then_some(state.model.run.number);
            let last = Arc::clone(&state.model.answers.facts);
            let find = move |trace: &Trace, stop: &Stop| match run {
                Some(number) => find(&last.facts(number, trace), stop),
                None => find(&Facts::new(trace), stop),
            };
            self.question
                .ask(&state.model.analyst, &state.model.run, (), find);
        }
        let empty = match has_lines(trace) {
            true => "no GPU waited while anybody looked at the program's stacks",
            false => "no Python stacks were sampled (trace --python) or recorded by a profiler",
        };
        list.say(self.question.is_open(), "no line has this", empty);
        let nothing = LineAnswer::default();
        let found = self.question.last(&state.model.run).unwrap_or(&nothing);
        self.rows = rows(found, &mut list.filter);
        let told = found.devices.iter();
        let told = told.flat_map(|it| it.with_functions().map(move |line| (it, line)));
        let mut columns = columns();
        Column::fit(&mut columns, told.collect::<Vec<_>>().iter());
        let layout = TableLayout::new(columns, area.width);
        list.heading = match self.rows.is_empty() {
            true => Vec::new(),
            false => layout.heading("share"),
        };
        let rows = &self.rows;
        list.fill(area, rows.len(), |i| match rows[i] {
            SourceRow::Line(device, at) if let Some(line) = found.line(device, at) => {
                let device = &found.devices[device];
                let mut cells = layout.cells(&(device, line), |_| None);
                cells[0] = Cell::left(
                    fitted(&line.name(), &found.text(line), layout.room()),
                    layout.room() as u16,
                    Role::Text,
                );
                cells
            }
            row => {
                let is_basis = match row {
                    // That the lines are no cause is no small print.
                    SourceRow::Device(at) => !found.devices[at].is_others,
                    row => row == SourceRow::Launches,
                };
                let role = if is_basis { Role::Dim } else { Role::Text };
                vec![Cell::rest(in_full(trace, found, row), role)]
            }
        });
        let in_full = match self.rows.get(list.cursor) {
            Some(&row) => in_full(trace, found, row),
            None => String::new(),
        };
        list.in_full = Some(in_full);
    }

    fn source(&self, at: usize, state: &State) -> Option<SourceLine> {
        let SourceRow::Line(device, line) = *self.rows.get(at)? else {
            return None;
        };
        let line = self.question.last(&state.model.run)?.line(device, line)?;
        Some(SourceLine {
            file: line.file.clone()?,
            line: line.line?,
        })
    }

    /// The longest gap in which the line under the cursor was seen.
    fn choose(&mut self, at: usize, state: &State) -> Option<Request> {
        let found = self.question.last(&state.model.run)?;
        let (device, line) = match *self.rows.get(at)? {
            SourceRow::Line(device, line) => (device, line),
            // The first of its lines that is shown.
            SourceRow::Device(_) => match *self.rows.get(at + 1)? {
                SourceRow::Line(device, line) => (device, line),
                _ => return None,
            },
            _ => return None,
        };
        let row = RowKind::Gpu(found.devices.get(device)?.index);
        let span = found.line(device, line)?.longest;
        Some(Request::Place(Place::new(Some(row), None, span)))
    }
}

fn rows(found: &LineAnswer, filter: &mut Filter) -> Vec<SourceRow> {
    let mut rows = Vec::new();
    let (mut shown, mut all) = (0, 0);
    for (at, device) in found.devices.iter().enumerate() {
        let lines = device.with_functions().enumerate();
        let kept = lines.filter(|(_, line)| {
            let texts = [Some(&line.name()), line.file.as_ref()].map(|it| it.cloned());
            filter.lets(texts.into_iter().flatten())
        });
        let kept: Vec<SourceRow> = kept.map(|(line, _)| SourceRow::Line(at, line)).collect();
        shown += kept.len();
        all += device.with_functions().count();
        if !(kept.is_empty() && filter.is_on()) {
            rows.push(SourceRow::Device(at));
            rows.extend(kept);
        }
    }
    let launched = found.launched.iter().enumerate();
    let launched = launched.filter(|(_, it)| filter.lets([&it.name]));
    let launched: Vec<SourceRow> = launched.map(|it| SourceRow::Launched(it.0)).collect();
    filter.count(shown + launched.len(), all + found.launched.len());
    if !launched.is_empty() {
        rows.push(SourceRow::Launches);
        rows.extend(launched);
    }
    if !rows.is_empty() && found.workers.as_ref().is_some_and(|it| filter.lets([it])) {
        rows.push(SourceRow::Workers);
    }
    rows
}

/// A line's name in so many columns with what stands there: files without their folders, which tell least, then cut.
fn fitted(name: &str, text: &str, room: usize) -> String {
    if pen::width(name) <= room {
        return pen::cut(&format!("{name}{text}"), room);
    }
    let words = name.split(' ').map(|word| match word.rsplit_once('/') {
        Some((_, file)) if !file.is_empty() => format!("…/{file}"),
        _ => word.to_owned(),
    });
    pen::cut_middle(&words.collect::<Vec<_>>().join(" "), room)
}

/// A line of the table in words.
fn in_full(trace: &Trace, found: &LineAnswer, row: SourceRow) -> String {
    match row {
        SourceRow::Device(at) => {
            let device = &found.devices[at];
            let name = describe::device_id(trace, device.index);
            format!("{name}: {}", device.basis())
        }
        SourceRow::Workers => found.workers.clone().unwrap_or_default(),
        SourceRow::Launches => "GPU time by the line that launched it".to_owned(),
        SourceRow::Launched(at) => {
            let it = &found.launched[at];
            let (share, time) = (percent(it.share), duration(it.total_ns));
            let times = plural(it.count, "operation");
            format!("{share:>6} {time:>9}  {} · {times}", it.name)
        }
        SourceRow::Line(at, line) => {
            let device = &found.devices[at];
            let Some(line) = found.line(at, line) else {
                return String::new();
            };
            let file = printable(line.file.as_deref().unwrap_or_default());
            let samples = match device.is_exact {
                true => String::new(),
                false => format!(
                    "in {} of {}; ",
                    count(line.samples),
                    plural(device.samples, "sample")
                ),
            };
            format!(
                "{}{}; {file}; {samples}its longest gap lasts {} (enter shows it)",
                line.name().trim_start(),
                found.text(line),
                duration(line.longest.len())
            )
        }
    }
}
