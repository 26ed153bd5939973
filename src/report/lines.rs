//! What a report says of the source lines that the GPU waited for.

use serde::Serialize;

use super::Report;
use super::page::{Page, Tone};
use super::table::Column;
use activity::text::plural;
use activity::units::{count, duration, percent};
use figures::lines::{DeviceLines, Line, workers_in_words};
use trace::Trace;

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
pub type OfDevice<'a> = (&'a DeviceLines, &'a Line);

/// What a table tells of a line.
#[rustfmt::skip]
pub fn columns<'a>() -> Vec<Column<OfDevice<'a>>> {
    let column = Column::<OfDevice<'a>>::new;
    vec![
        Column::rest("line", 44, |(_, it)| it.name()),
        column("share", 6, |(_, it)| percent(it.share)),
        column("95 %", 11, |(of, it)| sampled(of, || interval(it.interval))).dim(),
        column("idle", 9, |(_, it)| duration(it.idle_ns)),
        column("samples", 7, |(of, it)| sampled(of, || count(it.samples))).dim().spare(1),
        column("steps", 9, |(of, it)| of_steps(of, it)).dim(),
    ]
}

fn interval([low, high]: [f64; 2]) -> String {
    let low = percent(low);
    format!("{}–{}", low.trim_end_matches(" %"), percent(high))
}

/// What only samples tell.
fn sampled(of: &DeviceLines, text: impl Fn() -> String) -> String {
    if of.is_exact { String::new() } else { text() }
}

fn of_steps(of: &DeviceLines, line: &Line) -> String {
    match of.steps {
        0 => String::new(),
        // Nobody counts them for a function below a line.
        _ if line.line.is_none() => String::new(),
        all => format!("{} of {}", count(line.steps), count(all)),
    }
}

/// A section on lines, where there are any.
pub(super) fn section(page: &mut Page, report: &Report) {
    for device in &report.lines {
        page.title(&format!("Where GPU {} waited", device.device));
        page.painted(Tone::Dim, &device.basis());
        if device.samples == 0 && !device.is_exact {
            page.wrapped("no sample fell into it");
            continue;
        }
        page.rows(&columns(), device.lines.iter().map(|line| (device, line)));
        for line in device.lines.iter().filter(|it| !it.below.is_empty()) {
            page.painted(Tone::Dim, &format!("functions below {}", line.name()));
            page.rows(&columns(), line.below.iter().map(|it| (device, it)));
        }
    }
    if let Some(workers) = workers_in_words(&report.workers) {
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
