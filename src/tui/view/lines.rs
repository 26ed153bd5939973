//! The source lines that the GPUs waited for.

use std::sync::Arc;

use ratatui::layout::Rect;

use super::list::{Cell, Filter, List};
use super::{Place, Request, View};
use crate::tui::draw::pen;
use crate::tui::state::State;
use crate::tui::state::analyst::{Question, Weight};
use crate::tui::state::rows::RowKind;
use crate::tui::theme::Role;
use activity::RangeKind;
use activity::feed::Stop;
use activity::text::{plural, printable};
use activity::units::{count, duration, percent};
use analysis::Facts;
use analysis::lines::{self, DeviceLines, workers_in_words};

use trace::{LaneKind, Trace, describe};

/// What was found.
#[derive(Clone, Debug, Default)]
struct Found {
    devices: Vec<DeviceLines>,
    /// Of DataLoader workers; empty where there are none.
    workers: String,
}

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Row {
    /// What the lines of a device rest on: index into what was found.
    Device(usize),
    /// A line of a device.
    Line(usize, usize),
    Workers,
}

/// The view.
#[derive(Debug)]
pub(super) struct LinesView {
    question: Question<(), Found>,
    rows: Vec<Row>,
    list: List,
}

impl Default for LinesView {
    fn default() -> Self {
        LinesView {
            question: Question::new("lines", Weight::Heavy),
            rows: Vec::new(),
            list: List::default(),
        }
    }
}

fn find(facts: &Facts<'_>, stop: &Stop) -> Found {
    let (trace, calls) = (facts.trace, facts.calls());
    if stop.is_stopped() {
        return Found::default();
    }
    let devices = lines::of(trace, calls, facts.steps(), None);
    let workers = lines::workers(trace);
    let (samples, waiting) = workers.iter().fold((0, 0), |(samples, waiting), it| {
        (samples + it.samples, waiting + it.waiting)
    });
    Found {
        devices,
        workers: match workers.len() {
            0 => String::new(),
            number => workers_in_words(number, samples, waiting),
        },
    }
}

/// Whether the timeline has what tells of lines.
fn has_lines(trace: &Trace) -> bool {
    let is_function = |kind: LaneKind| {
        matches!(
            kind,
            LaneKind::Range {
                kind: RangeKind::Function,
                ..
            }
        )
    };
    trace.processes().iter().any(|it| !it.sampled.is_empty())
        || trace.lanes().iter().any(|it| is_function(it.key().kind))
}

impl View for LinesView {
    fn has_content(&self, state: &State) -> bool {
        has_lines(&state.run.trace)
    }

    fn prepare(&mut self, state: &State, area: Rect, is_on_screen: bool) {
        if !is_on_screen {
            return;
        }
        let trace = &state.run.trace;
        if has_lines(trace) {
            let run = (!state.run.is_running()).then_some(state.run.number);
            let last = Arc::clone(&state.answers.facts);
            let find = move |trace: &Trace, stop: &Stop| match run {
                Some(number) => find(&last.of(number, trace), stop),
                None => find(&Facts::new(trace), stop),
            };
            self.question.ask(&state.analyst, &state.run, (), find);
        }
        self.list.empty = match has_lines(trace) {
            true if self.question.is_open() => "computing …",
            true if self.list.filter.is_on() => "no line has this",
            true => "no GPU waited while anybody looked at the program's stacks",
            false => "no Python stacks were sampled (trace --python) or recorded by a profiler",
        };
        let nothing = Found::default();
        let found = self.question.last(&state.run).unwrap_or(&nothing);
        self.rows = rows(found, &mut self.list.filter);
        let columns = Columns::of(found, area.width);
        self.list.heading = match self.rows.is_empty() {
            true => Vec::new(),
            false => heading(columns),
        };
        let rows = &self.rows;
        self.list.fill(area, rows.len(), |i| {
            cells(trace, found, rows[i], columns, area.width)
        });
        let in_full = match self.rows.get(self.list.cursor) {
            Some(&row) => in_full(trace, found, row),
            None => String::new(),
        };
        self.list.in_full = Some(in_full);
    }

    fn list(&self) -> Option<&List> {
        Some(&self.list)
    }

    fn list_mut(&mut self) -> Option<&mut List> {
        Some(&mut self.list)
    }

    /// The longest gap in which the line under the cursor was seen.
    fn choose(&mut self, state: &State) -> Option<Request> {
        let found = self.question.last(&state.run)?;
        let (device, line) = match *self.rows.get(self.list.cursor)? {
            Row::Line(device, line) => (device, line),
            // The first of its lines that is shown.
            Row::Device(_) => match *self.rows.get(self.list.cursor + 1)? {
                Row::Line(device, line) => (device, line),
                _ => return None,
            },
            Row::Workers => return None,
        };
        let device = found.devices.get(device)?;
        Some(Request::Place(Place {
            row: Some(RowKind::Gpu(device.device)),
            record: None,
            span: device.lines.get(line)?.longest,
        }))
    }
}

fn rows(found: &Found, filter: &mut Filter) -> Vec<Row> {
    let mut rows = Vec::new();
    let (mut shown, mut all) = (0, 0);
    for (at, device) in found.devices.iter().enumerate() {
        let lines = device.lines.iter().enumerate();
        let kept = lines.filter(|(_, line)| filter.lets([&name(line), &line.file]));
        let kept: Vec<Row> = kept.map(|(line, _)| Row::Line(at, line)).collect();
        shown += kept.len();
        all += device.lines.len();
        if !(kept.is_empty() && filter.is_on()) {
            rows.push(Row::Device(at));
            rows.extend(kept);
        }
    }
    filter.count(shown, all);
    if !rows.is_empty() && !found.workers.is_empty() && filter.lets([&found.workers]) {
        rows.push(Row::Workers);
    }
    rows
}

/// Columns of the screen from which samples stand besides what they tell.
const WIDE: u16 = 100;

/// How wide the columns are; those with nothing in them, 0: what a profiler recorded has neither an interval nor samples.
#[derive(Clone, Copy, Debug, Default)]
struct Columns {
    interval: u16,
    samples: u16,
    steps: u16,
}

impl Columns {
    fn of(found: &Found, width: u16) -> Self {
        let mut columns = Columns::default();
        let wider = |column: &mut u16, title: &str, text: &str| {
            if !text.is_empty() {
                *column = (*column)
                    .max(title.len() as u16)
                    .max(pen::width(text) as u16);
            }
        };
        for device in &found.devices {
            for line in &device.lines {
                let [interval, samples, steps] = rests_on(device, line);
                wider(&mut columns.interval, "95 %", &interval);
                if width >= WIDE {
                    wider(&mut columns.samples, "samples", &samples);
                }
                wider(&mut columns.steps, "steps", &steps);
            }
        }
        if found.devices.iter().all(|device| device.is_exact) {
            columns.interval = 0;
        }
        columns
    }

    /// Of the screen before the name of a line.
    fn width(self) -> usize {
        let shown = [6, 9, self.interval, self.samples, self.steps].into_iter();
        let shown = shown.filter(|columns| *columns > 0);
        2 + shown.map(|columns| usize::from(columns) + 2).sum::<usize>()
    }

    /// Those that are shown of share, interval, time, samples and steps.
    fn shown(self, [share, interval, idle, samples, steps]: [&str; 5], role: Role) -> Vec<Cell> {
        let cells = [
            (share, 6, role),
            (interval, self.interval, Role::Dim),
            (idle, 9, role),
            (samples, self.samples, Role::Dim),
            (steps, self.steps, Role::Dim),
        ];
        let cells = cells.into_iter().filter(|(_, columns, _)| *columns > 0);
        cells
            .map(|(text, columns, role)| Cell::right(text, columns, role))
            .collect()
    }
}

fn heading(columns: Columns) -> Vec<Cell> {
    let mut cells = columns.shown(["share", "95 %", "idle", "samples", "steps"], Role::Dim);
    cells[0] = Cell::right("share", 6, Role::Accent).bold();
    cells.push(Cell::rest("line", Role::Dim));
    cells
}

/// The interval of a line's share, its samples, and the steps in which it was seen.
fn rests_on(device: &DeviceLines, line: &lines::Line) -> [String; 3] {
    let (interval, samples) = match device.is_exact {
        true => ("exact".to_owned(), String::new()),
        false => {
            let low = percent(line.low);
            let low = low.trim_end_matches(" %");
            (format!("{low}–{}", percent(line.high)), count(line.samples))
        }
    };
    let steps = match device.steps {
        0 => String::new(),
        all => format!("{} of {}", count(line.steps), count(all)),
    };
    [interval, samples, steps]
}

fn cells(trace: &Trace, found: &Found, row: Row, columns: Columns, width: u16) -> Vec<Cell> {
    let (device, line) = match row {
        Row::Device(at) => return vec![Cell::rest(basis(trace, &found.devices[at]), Role::Dim)],
        Row::Workers => return vec![Cell::rest(&found.workers, Role::Text)],
        Row::Line(at, line) => (&found.devices[at], &found.devices[at].lines[line]),
    };
    let [interval, samples, steps] = rests_on(device, line);
    let (share, idle) = (percent(line.share), duration(line.idle_ns));
    let mut cells = columns.shown([&share, &interval, &idle, &samples, &steps], Role::Text);
    // The last column is left free.
    let room = usize::from(width).saturating_sub(columns.width() + 1);
    cells.push(Cell::rest(fitted(&name(line), room), Role::Text));
    cells
}

/// A line's name in so many columns: files without their folders, which tell least, then cut.
fn fitted(name: &str, room: usize) -> String {
    if pen::width(name) <= room {
        return name.to_owned();
    }
    let words = name.split(' ').map(|word| match word.rsplit_once('/') {
        Some((_, file)) if !file.is_empty() => format!("…/{file}"),
        _ => word.to_owned(),
    });
    pen::cut_middle(&words.collect::<Vec<_>>().join(" "), room)
}

/// What the lines of a device rest on.
fn basis(trace: &Trace, device: &DeviceLines) -> String {
    let name = describe::device_id(trace, device.device);
    let idle = duration(device.idle_ns);
    let within = lines::within(device.is_of_steps);
    match device.is_exact {
        true => format!(
            "{name}: Python functions in {} of {idle} of idle time{within}, as the program's profiler recorded them (at the lines where they begin)",
            duration(device.idle_ns - device.unseen_ns)
        ),
        false => format!(
            "{name}: estimated from {} of the launching thread, {} a second, in {idle} of idle time{within}",
            plural(device.samples, "sample"),
            device.hz
        ),
    }
}

fn name(line: &lines::Line) -> String {
    let mut name = line.place();
    for (mark, part) in [(" ", &line.function), (" > ", &line.call)] {
        if !part.is_empty() {
            name.push_str(mark);
            name.push_str(part);
        }
    }
    printable(&name)
}

fn in_full(trace: &Trace, found: &Found, row: Row) -> String {
    match row {
        Row::Device(at) => basis(trace, &found.devices[at]),
        Row::Workers => found.workers.clone(),
        Row::Line(at, line) => {
            let line = &found.devices[at].lines[line];
            let file = printable(&line.file);
            let samples = match found.devices[at].is_exact {
                true => String::new(),
                false => format!(
                    "in {} of {}; ",
                    count(line.samples),
                    plural(found.devices[at].samples, "sample")
                ),
            };
            format!(
                "{}; {file}; {samples}its longest gap lasts {} (enter shows it)",
                name(line),
                duration(line.longest.len())
            )
        }
    }
}
