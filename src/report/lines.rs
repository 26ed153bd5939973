//! What a report says of the source lines that the GPU waited for.

use serde::Serialize;

use super::Report;
use super::page::{Page, Tone};
use super::table::Table;
use activity::Ns;
use activity::text::{plural, printable};
use activity::units::{count, duration, percent};
use analysis::CallIndex;
use analysis::lines::{self, DeviceLines, Line, workers_in_words};
use analysis::steps::Steps;
use trace::Trace;

/// The lines that one device waited for: an estimate made of stack samples, or functions that a profiler recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinesReport {
    /// The device's id.
    pub device: u32,
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

pub(super) fn of(trace: &Trace, calls: &CallIndex, steps: &[Steps]) -> Vec<LinesReport> {
    let found = lines::of(trace, calls, steps, None);
    found.into_iter().map(|it| report(trace, it)).collect()
}

fn report(trace: &Trace, it: DeviceLines) -> LinesReport {
    LinesReport {
        device: trace.devices()[it.device].info.id,
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
    }
}

pub(super) fn workers(trace: &Trace) -> Vec<WorkerReport> {
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

/// A section on lines, where there are any.
pub(super) fn section(page: &mut Page, report: &Report) {
    for device in &report.lines {
        page.title(&format!("Where GPU {} waited", device.device));
        if device.exact {
            exact(page, device);
            continue;
        }
        page.painted(
            Tone::Dim,
            &format!(
                "estimated from {} of the launching thread, looked at {} times a second, that lay in its {} of idle time{}; \
                 with 95 % intervals",
                plural(device.samples, "stack sample"),
                device.hz,
                duration(device.idle_ns),
                lines::within(device.in_steps)
            ),
        );
        if device.samples == 0 {
            page.wrapped("no sample fell into it");
            continue;
        }
        let mut table = Table::new(["", "share", "95 %", "idle", "samples", "steps"]);
        for line in device.lines.iter().take(page.rows) {
            let [low, high] = line.interval;
            table.row([
                name(line),
                percent(line.share),
                format!("{}–{}", percent(low), percent(high)),
                duration(line.idle_ns),
                count(line.samples),
                steps_of(device, line),
            ]);
        }
        page.table(&table);
        let left = device.lines.len().saturating_sub(page.rows);
        if left > 0 {
            page.line(&format!("  … and {left} more"));
        }
    }
    worker_lines(page, &report.workers);
    let looks: u64 = report.sampling.iter().map(|it| it.looks).sum();
    let torn: u64 = report.sampling.iter().map(|it| it.torn).sum();
    let lost: u64 = report.sampling.iter().map(|it| it.lost).sum();
    if torn + lost > 0 {
        page.line(&format!(
            "  of {} at Python stacks {} were torn and {} lost: they are left out",
            plural(looks + torn + lost, "look"),
            count(torn),
            count(lost)
        ));
    }
}

/// The table of a program whose profiler recorded its Python functions.
fn exact(page: &mut Page, device: &LinesReport) {
    page.painted(
        Tone::Dim,
        &format!(
            "Python functions that the launching thread was in, as the program's own profiler recorded them, in {} of its {} of \
             idle time{}; a function's line is the one that it begins at",
            duration(device.idle_ns - device.unseen_ns),
            duration(device.idle_ns),
            lines::within(device.in_steps)
        ),
    );
    let mut table = Table::new(["", "share", "idle", "steps"]);
    for line in device.lines.iter().take(page.rows) {
        table.row([
            name(line),
            percent(line.share),
            duration(line.idle_ns),
            steps_of(device, line),
        ]);
    }
    page.table(&table);
    let left = device.lines.len().saturating_sub(page.rows);
    if left > 0 {
        page.line(&format!("  … and {left} more"));
    }
}

fn name(line: &LineRow) -> String {
    let mut name = printable(&line.place);
    if !line.function.is_empty() {
        name = format!("{name} {}", printable(&line.function));
    }
    if let Some(call) = &line.call {
        name = format!("{name} > {}", printable(call));
    }
    name
}

fn steps_of(device: &LinesReport, line: &LineRow) -> String {
    match device.steps {
        0 => String::new(),
        all => format!("{} of {}", count(line.steps), count(all)),
    }
}

fn worker_lines(page: &mut Page, workers: &[WorkerReport]) {
    if workers.is_empty() {
        return;
    }
    let samples = workers.iter().map(|it| it.samples).sum();
    let waiting = workers.iter().map(|it| it.waiting).sum();
    page.wrapped(&workers_in_words(workers.len(), samples, waiting));
}
