//! What a report says of a program's steps.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::Report;
use super::page::Page;
use super::ranks::RankReport;
use activity::text::{plural, printable};
use activity::units::{count, duration};
use activity::{Ns, Span};
use causes::{Causes, IdleCause};
use figures::steps::Steps;
use trace::Trace;

/// The steps of one process. All but `found` speak of the steady ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepsReport {
    /// The operating system's id of the process.
    pub process: u32,
    /// The process by its index in the timeline.
    #[serde(skip)]
    pub process_index: usize,
    /// Steady steps: without warm-up, and seen to their end.
    pub count: usize,
    /// Median time of a step.
    pub median_ns: Ns,
    /// The time that 95 % of the steps do not exceed.
    pub p95_ns: Ns,
    /// Median distance from the median, times 1.4826.
    pub deviation_ns: Ns,
    /// What showed them ("ProfilerStep ranges").
    pub from: String,
    /// Whether they speak for the program. Others may be parts of its own steps, such as layers that are all alike.
    #[serde(skip)]
    pub are_telling: bool,
    /// All steps, warm-up included.
    pub found: usize,
    /// From the process's first operation to the first steady step.
    pub start_up_ns: Ns,
    /// From the last steady step to the end of the process's last operation.
    pub tail_ns: Ns,
    pub slow: usize,
    /// Idle time of the steady steps by cause.
    pub idle: Vec<IdleCause>,
    /// The slowest steps and what they have more of, slowest first.
    pub slowest: Vec<SlowStep>,
}

/// A step that took longer than the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlowStep {
    /// Which, counted from 0 over all steps.
    pub step: usize,
    /// When it began, in the timeline's own time.
    pub start_ns: Ns,
    pub time_ns: Ns,
    /// What it has more of than the others.
    pub more: String,
}

impl StepsReport {
    /// From what was found.
    pub fn new(trace: &Trace, causes: &Causes<'_>, steps: &Steps) -> Self {
        let spans: Vec<Span> = steps.steady.clone().map(|i| steps.spans[i]).collect();
        let slowest = steps.slow.iter().map(|slow| SlowStep {
            step: slow.step,
            start_ns: steps.spans[slow.step].start,
            time_ns: steps.spans[slow.step].len(),
            more: slow.text(),
        });
        StepsReport {
            process: trace.processes()[steps.process].info.pid,
            process_index: steps.process,
            count: steps.steady.len(),
            median_ns: steps.median_ns,
            p95_ns: steps.p95_ns,
            deviation_ns: steps.deviation_ns,
            from: steps.origin_text(),
            are_telling: steps.are_telling(),
            found: steps.spans.len(),
            start_up_ns: steps.start_up.len(),
            tail_ns: steps.tail.len(),
            slow: steps.slow_count,
            idle: causes.idle_of_process(steps.process, &spans),
            slowest: slowest.collect(),
        }
    }
}

/// So many slow steps stand in a text.
const SLOWEST_SHOWN: usize = 3;

/// So many causes of idle time stand in a text.
const CAUSES_SHOWN: usize = 6;

/// The greatest causes, most first. Rows that differ only in the wait before them are one here; a fact and what times
/// alone show are two.
pub fn because(idle: &[IdleCause]) -> String {
    let all: Ns = idle.iter().map(|i| i.total_ns).sum();
    let mut causes: Vec<(String, Option<&str>, Ns)> = Vec::new();
    let mut cause_of = FxHashMap::default();
    for row in idle {
        let sure = if row.certainty == "likely" {
            "likely "
        } else {
            ""
        };
        let cause = format!("{sure}{}", row.cause.label());
        let culprit = row.culprit.as_deref();
        let at = *cause_of
            .entry((cause.clone(), culprit))
            .or_insert(causes.len());
        match causes.get_mut(at) {
            Some(known) => known.2 += row.total_ns,
            None => causes.push((cause, culprit, row.total_ns)),
        }
    }
    causes.retain(|cause| cause.2 * 20 >= all);
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.2));
    let words = causes
        .into_iter()
        .take(CAUSES_SHOWN)
        .map(|(cause, culprit, time)| {
            let time = duration(time);
            culprit.map_or_else(
                || format!("{cause} {time}"),
                |culprit| format!("{cause} {time} ({culprit})"),
            )
        });
    printable(&words.collect::<Vec<_>>().join(", "))
}

/// A section on steps, where there are any.
pub(super) fn section(page: &mut Page, report: &Report) {
    let all = &report.steps;
    let told = super::ranks::told(report);
    for steps in all {
        let is_its = |rank: &&RankReport| rank.process_index == steps.process_index;
        if told.as_ref().is_some_and(|told| !told.iter().any(is_its)) {
            continue;
        }
        let whose = match report.ranks.iter().find(is_its) {
            _ if all.len() == 1 => None,
            Some(rank) => Some(printable(&rank.called())),
            None => Some(format!("process {}", steps.process)),
        };
        let kind = match steps.are_telling {
            true => "steady step",
            false => "repeat",
        };
        let mut lines = vec![format!(
            "{} of {} (± {}), 95 % within {} · by {}{}",
            plural(steps.count as u64, kind),
            duration(steps.median_ns),
            duration(steps.deviation_ns),
            duration(steps.p95_ns),
            printable(&steps.from),
            if steps.are_telling {
                ""
            } else {
                ": parts of a step, too few or too uneven to speak for the program"
            },
        )];
        if page.is_brief {
            let of = whose.map(|it| format!("{it}: ")).unwrap_or_default();
            page.wrapped(&format!("{of}{}", lines[0]));
            continue;
        }
        page.title(&whose.map_or_else(|| "Steps".to_owned(), |it| format!("Steps of {it}")));
        if steps.start_up_ns + steps.tail_ns > 0 {
            lines.push(format!(
                "start-up {} · tail {}",
                duration(steps.start_up_ns),
                duration(steps.tail_ns)
            ));
        }
        if steps.slow > 0 {
            let shown = steps.slowest.iter().take(SLOWEST_SHOWN);
            let told: Vec<String> = shown
                .map(|s| format!("#{} {} ({})", s.step, duration(s.time_ns), s.more))
                .collect();
            let number = count(steps.slow as u64);
            lines.push(format!("{number} slow: {}", told.join(" · ")));
        }
        if !steps.idle.is_empty() {
            lines.push(format!("idle because: {}", because(&steps.idle)));
        }
        for line in lines {
            page.wrapped(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{KnownGpus, text};
    use causes::Cause;
    use trace::testing::Scene;

    #[test]
    fn a_cause_stands_there_once_and_what_is_only_likely_apart() {
        let row = |cause, certainty, root: Option<&str>, total_ns| IdleCause {
            cause,
            culprit: Some("copy".to_owned()),
            root: root.map(str::to_owned),
            certainty,
            count: 1,
            total_ns,
            line: None,
            seen: Default::default(),
        };
        let rows = [
            row(Cause::Staging, "fact", Some("wait"), 16_000),
            row(Cause::Load, "likely", None, 14_000),
            row(Cause::Staging, "fact", None, 12_000),
            row(Cause::Load, "fact", None, 10_000),
            // Less than a twentieth.
            row(Cause::Launching, "fact", None, 2_000),
        ];
        let words = "staging of a pageable copy 28.0 µs (copy), likely loading GPU code 14.0 µs (copy), loading GPU code 10.0 µs (copy)";
        assert_eq!(because(&rows), words);
    }

    #[test]
    fn steps_of_several_processes_say_whose_they_are_in_every_length() {
        let of = |process: u32, median_ns| StepsReport {
            process,
            process_index: process as usize,
            count: 9,
            median_ns,
            p95_ns: median_ns,
            deviation_ns: 1_000,
            from: "ProfilerStep ranges".to_owned(),
            are_telling: true,
            found: 10,
            start_up_ns: 0,
            tail_ns: 0,
            slow: 0,
            idle: Vec::new(),
            slowest: Vec::new(),
        };
        let trace = Scene::new().kernel("k", 1, 0, 1_000).trace();
        let mut report = Report::new(&trace, None, KnownGpus::default());
        let brief = text::Options {
            parts: text::Parts::Summary,
            ..Default::default()
        };
        let said = |report: &Report, options| text::render(report, options);
        let whole = Default::default();
        report.steps = vec![of(11, 1_000_000)];
        let words = said(&report, &brief);
        assert!(words.contains("  9 steady steps of 1.00 ms"), "{words}");
        assert!(said(&report, &whole).contains("\nSteps\n"));
        report.steps.push(of(12, 2_000_000));
        let words = said(&report, &brief);
        assert!(
            words.contains("process 11: 9 steady steps of 1.00 ms"),
            "{words}"
        );
        assert!(
            words.contains("process 12: 9 steady steps of 2.00 ms"),
            "{words}"
        );
        let words = said(&report, &whole);
        assert!(
            words.contains("Steps of process 11") && !words.contains("process 11:"),
            "{words}"
        );
    }
}
