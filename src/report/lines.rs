//! What a report says of the source lines that the GPU waited for.

use serde::Serialize;

use super::Report;
use super::page::{Page, Tone};
use super::table::Column;
use activity::text::{plural, printable};
use activity::units::{count, duration, percent};
use activity::{Ns, Span};
use analysis::CallIndex;
use analysis::lines::{self, DeviceLines, Line, workers_in_words};
use analysis::steps::Steps;
use trace::Trace;

/// The lines that one device waited for: an estimate made of stack samples, or functions that a profiler recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinesReport {
    /// The device's id.
    pub device: u32,
    /// The device by its index in the timeline.
    #[serde(skip)]
    pub device_index: usize,
    /// Whether the program's own profiler recorded every Python function: no estimate, and lines are where functions begin.
    pub exact: bool,
    /// Whether it is of the steady steps alone.
    pub in_steps: bool,
    /// Its idle time between operations while stacks were sampled.
    pub idle_ns: Ns,
    /// Of that, time in gaps into which no sample fell.
    pub unseen_ns: Ns,
    /// Samples that fell into its idle time.
    pub samples: u64,
    /// Looks a second that were aimed at.
    pub hz: u32,
    /// Steps in all.
    pub steps: u64,
    /// The lines, most samples first.
    pub lines: Vec<LineRow>,
}

/// One of the lines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LineRow {
    /// In short: "train.py:19".
    pub place: String,
    /// The source file; absent where no frame is of the program's own files.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
    /// The function that it is in.
    pub function: String,
    /// What it called.
    pub call: Option<String>,
    /// Samples of it.
    pub samples: u64,
    /// Its part of the samples, from 0 to 1.
    pub share: f64,
    /// The 95 % interval of that part.
    pub interval: [f64; 2],
    /// That part of the idle time.
    pub idle_ns: Ns,
    /// Steps in whose idle time it was seen.
    pub steps: u64,
    /// The longest gap in which it was seen.
    #[serde(skip)]
    pub longest: Span,
}

/// A process that loads data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkerReport {
    /// The operating system's id.
    pub process: u32,
    /// Samples of it while a device was idle.
    pub samples: u64,
    /// Those in which it waited for something to do.
    pub waiting: u64,
}

/// How the stacks of a process were sampled.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SamplingReport {
    /// The operating system's id.
    pub process: u32,
    /// Looks a second that were aimed at in the end.
    pub hz: u32,
    /// Looks that came to something.
    pub looks: u64,
    /// Looks that did not, because the program changed meanwhile what was being read.
    pub torn: u64,
    /// Looks that were lost in writing or reading.
    pub lost: u64,
    /// What looking took, in ns of one core, outside the process.
    pub cost_ns: u64,
}

/// The lines that each device waited for.
#[must_use]
pub fn list(trace: &Trace, calls: &CallIndex, steps: &[Steps]) -> Vec<LinesReport> {
    let found = lines::find(trace, calls, steps, None);
    found.into_iter().map(|it| report(trace, it)).collect()
}

fn report(trace: &Trace, it: DeviceLines) -> LinesReport {
    LinesReport {
        device: trace.devices()[it.device].info.id,
        device_index: it.device,
        exact: it.is_exact,
        in_steps: it.is_of_steps,
        idle_ns: it.idle_ns,
        unseen_ns: it.unseen_ns,
        samples: it.samples,
        hz: it.hz,
        steps: it.steps,
        lines: it.lines.into_iter().map(row).collect(),
    }
}

fn row(line: Line) -> LineRow {
    let round = |share: f64| (share * 10_000.0).round() / 10_000.0;
    LineRow {
        place: line.place(),
        line: (line.line > 0).then_some(line.line),
        file: (!line.file.is_empty()).then_some(line.file),
        function: line.function,
        call: (!line.call.is_empty()).then_some(line.call),
        samples: line.samples,
        share: round(line.share),
        interval: [round(line.low), round(line.high)],
        idle_ns: line.idle_ns,
        steps: line.steps,
        longest: line.longest,
    }
}

/// The processes that load data.
#[must_use]
pub fn workers(trace: &Trace) -> Vec<WorkerReport> {
    let found = lines::workers(trace).into_iter();
    found
        .map(|it| WorkerReport {
            process: trace.processes()[it.process].info.pid,
            samples: it.samples,
            waiting: it.waiting,
        })
        .collect()
}

pub(super) fn sampling(trace: &Trace) -> Vec<SamplingReport> {
    let sampled = trace.processes().iter().filter(|it| !it.sampled.is_empty());
    sampled
        .map(|it| {
            let totals = it.sampled.totals();
            SamplingReport {
                process: it.info.pid,
                hz: totals.hz,
                looks: totals.looks,
                torn: totals.torn,
                lost: totals.lost,
                cost_ns: totals.cost_ns,
            }
        })
        .collect()
}

/// One of the lines, with those it stands among.
pub type OfDevice<'a> = (&'a LinesReport, &'a LineRow);

/// What a table tells of a line.
#[must_use]
#[rustfmt::skip]
pub fn columns<'a>() -> Vec<Column<OfDevice<'a>>> {
    let column = Column::<OfDevice<'a>>::new;
    vec![
        Column::rest("line", 44, |(_, it)| it.name()),
        column("share", 6, |(_, it)| percent(it.share)),
        column("95 %", 11, |(of, it)| of.sampled(|| interval(it.interval))).dim(),
        column("idle", 9, |(_, it)| duration(it.idle_ns)),
        column("samples", 7, |(of, it)| of.sampled(|| count(it.samples))).dim().spare(1),
        column("steps", 9, |(of, it)| of.of_steps(it)).dim(),
    ]
}

fn interval([low, high]: [f64; 2]) -> String {
    let low = percent(low);
    format!("{}–{}", low.trim_end_matches(" %"), percent(high))
}

impl LinesReport {
    /// What the lines rest on.
    #[must_use]
    pub fn basis(&self) -> String {
        let within = format!(
            "{} of idle time{}",
            duration(self.idle_ns),
            lines::within(self.in_steps)
        );
        match self.exact {
            true => format!(
                "Python functions in {} of {within}, as the program's profiler recorded them (at the lines where they begin)",
                duration(self.idle_ns - self.unseen_ns)
            ),
            false => format!(
                "estimated from {} of the launching thread, {} a second, in {within}",
                plural(self.samples, "stack sample"),
                self.hz
            ),
        }
    }

    /// What only samples tell.
    fn sampled(&self, text: impl Fn() -> String) -> String {
        if self.exact { String::new() } else { text() }
    }

    fn of_steps(&self, line: &LineRow) -> String {
        match self.steps {
            0 => String::new(),
            all => format!("{} of {}", count(line.steps), count(all)),
        }
    }
}

impl LineRow {
    /// The line, its function, and what it called.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = self.place.clone();
        let call = self.call.as_deref().unwrap_or_default();
        for (mark, part) in [(" ", self.function.as_str()), (" > ", call)] {
            if !part.is_empty() {
                name.push_str(mark);
                name.push_str(part);
            }
        }
        printable(&name)
    }
}

/// A section on lines, where there are any.
pub(super) fn section(page: &mut Page, report: &Report) {
    for device in &report.lines {
        page.title(&format!("Where GPU {} waited", device.device));
        page.painted(Tone::Dim, &device.basis());
        if device.samples == 0 && !device.exact {
            page.wrapped("no sample fell into it");
            continue;
        }
        page.rows(&columns(), device.lines.iter().map(|line| (device, line)));
    }
    if let Some(workers) = workers_line(&report.workers) {
        page.wrapped(&workers);
    }
    let looks: u64 = report.sampling.iter().map(|it| it.looks).sum();
    let torn: u64 = report.sampling.iter().map(|it| it.torn).sum();
    let lost: u64 = report.sampling.iter().map(|it| it.lost).sum();
    if torn + lost > 0 {
        page.wrapped(&format!(
            "of {} at Python stacks {} were torn and {} lost: they are left out",
            plural(looks + torn + lost, "look"),
            count(torn),
            count(lost)
        ));
    }
}

/// What processes that load data did, if there are any.
#[must_use]
pub fn workers_line(workers: &[WorkerReport]) -> Option<String> {
    let samples = workers.iter().map(|it| it.samples).sum();
    let waiting = workers.iter().map(|it| it.waiting).sum();
    (!workers.is_empty()).then(|| workers_in_words(workers.len(), samples, waiting))
}
