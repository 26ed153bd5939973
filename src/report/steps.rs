//! What a report says of a program's steps.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Report;
use super::page::Page;
use super::ranks::{RankReport, tells};
use activity::Ns;
use activity::text::{plural, printable};
use activity::units::{self, count, duration};
use advice::verdict::OddSteps;
use causes::{Causes, Group, IdleCause, sum_by};
use figures::breakdown::Breakdown;
use figures::serving::Serving;
use figures::steps::{self, Slow, StepKind, Steps, main_device};
use trace::Trace;

/// The steady steps of one process and one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StepsReport {
    /// The operating system's id of the process.
    pub process: u32,
    /// The process by its index in the timeline.
    #[serde(skip)]
    pub process_index: usize,
    /// What tells this kind from the others ("decode"); null where there is no other.
    pub kind: Option<String>,
    /// Steady steps: without warm-up, and seen to their end.
    pub count: usize,
    /// Median time of those that are not odd.
    pub median_ns: Ns,
    /// The time that 95 % of the steps do not exceed.
    pub p95_ns: Ns,
    /// Median distance from the median, times 1.4826.
    pub deviation_ns: Ns,
    /// The shortest and the longest.
    pub range_ns: (Ns, Ns),
    #[serde(rename = "uneven")]
    /// Whether too many take over one and a half times the median to be odd: no step is like the others.
    pub is_uneven: bool,
    /// What showed them ("ProfilerStep ranges").
    pub from: String,
    /// All steps of all kinds, warm-up included.
    pub found: usize,
    /// From the process's first operation to the first steady step.
    pub start_up_ns: Ns,
    /// From the last steady step to the end of the process's last operation.
    pub tail_ns: Ns,
    pub slow: usize,
    /// Idle time of the steps that are not odd, by cause.
    pub idle: Vec<IdleCause>,
    /// The slowest steps and what they have more of, slowest first.
    pub slowest: Vec<SlowStep>,
    /// The step of median length.
    pub typical: TypicalStep,
    /// Those that take over one and a half times the median, at most one in five.
    pub odd: Vec<OddStep>,
    /// What they have in common, and what that takes; absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub odd_cost: Option<OddSteps>,
}

/// The step of median length of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TypicalStep {
    /// Which, counted from 1 over all steps.
    pub step: usize,
    /// When it began, in the timeline's own time.
    pub start_ns: Ns,
    pub time_ns: Ns,
    /// Anything ran, a kernel ran, a copy ran: on the process's device with most operations.
    pub busy_ns: Ns,
    pub compute_ns: Ns,
    pub copy_ns: Ns,
    /// Nothing ran there, by group of causes.
    pub idle_by: BTreeMap<String, Ns>,
}

/// A step that took far longer than its kind does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OddStep {
    /// Which, counted from 1 over all steps.
    pub step: usize,
    /// When it began, in the timeline's own time.
    pub start_ns: Ns,
    pub time_ns: Ns,
    /// How much longer than the median.
    pub more_ns: Ns,
}

/// A step that took longer than the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlowStep {
    /// Which, counted from 1 over all steps.
    pub step: usize,
    /// When it began, in the timeline's own time.
    pub start_ns: Ns,
    pub time_ns: Ns,
    /// What it has more of than the others.
    pub more: String,
}

impl StepsReport {
    /// Of each kind of a process's steps.
    pub fn list(trace: &Trace, causes: &Causes<'_>, steps: &Steps) -> Vec<Self> {
        let kinds = steps.kinds.iter();
        kinds
            .map(|kind| Self::of_kind(trace, causes, steps, kind))
            .collect()
    }

    fn of_kind(trace: &Trace, causes: &Causes<'_>, steps: &Steps, kind: &StepKind) -> Self {
        let slow_step = |slow: &Slow| SlowStep {
            step: slow.step + 1,
            start_ns: steps.spans[slow.step].start,
            time_ns: steps.spans[slow.step].len(),
            more: slow.text(),
        };
        let odd_step = |&step: &usize| OddStep {
            step: step + 1,
            start_ns: steps.spans[step].start,
            time_ns: steps.spans[step].len(),
            more_ns: steps.spans[step].len() - kind.median_ns,
        };
        let regular = steps.stretches(kind.regular());
        StepsReport {
            process: trace.processes()[steps.process].info.pid,
            process_index: steps.process,
            kind: Some(kind.name.clone()).filter(|it| !it.is_empty()),
            count: kind.steps.len(),
            median_ns: kind.median_ns,
            p95_ns: kind.p95_ns,
            deviation_ns: kind.deviation_ns,
            range_ns: kind.range,
            is_uneven: kind.is_uneven,
            from: steps.origin_text(),
            found: steps.spans.len(),
            start_up_ns: steps.start_up.len(),
            tail_ns: steps.tail.len(),
            slow: kind.slow_count,
            idle: causes.idle_of_process(steps.process, &regular),
            slowest: kind.slow.iter().map(slow_step).collect(),
            typical: TypicalStep::of(trace, causes, steps, kind.typical),
            odd: kind.odd.iter().map(odd_step).collect(),
            odd_cost: OddSteps::of(trace, causes, steps, kind),
        }
    }

    /// "752 steady steps of 56.1 ms (± 1.2 ms)", "38 uneven steps of 56 to 201 ms, 93.2 ms on average".
    fn words(&self) -> String {
        let name = self
            .kind
            .as_ref()
            .map(|it| format!("{it} "))
            .unwrap_or_default();
        if self.is_uneven {
            let steps = plural(self.count as u64, &format!("uneven {name}step"));
            let (range, median) = (units::range(self.range_ns), duration(self.median_ns));
            return format!("{steps} of {range}, {median} at the median");
        }
        format!(
            "{} of {} (± {}), 95 % within {}",
            plural(self.count as u64, &format!("steady {name}step")),
            duration(self.median_ns),
            duration(self.deviation_ns),
            duration(self.p95_ns),
        )
    }
}

/// What a GPU did in all steady steps of the first program that has some on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SteadyFigures {
    /// The device's id.
    pub device: u32,
    /// How many.
    pub steps: usize,
    /// Of all of them, without what was not recorded.
    pub time_ns: Ns,
    pub busy_ns: Ns,
    pub compute_ns: Ns,
    pub copy_ns: Ns,
    pub idle_ns: Ns,
}

impl SteadyFigures {
    /// Of each device that has some, by its id.
    pub fn list(trace: &Trace, steps: &[Steps]) -> Vec<Self> {
        let of_device = |(device, steps): (usize, &Steps)| {
            let mut sum = Breakdown::default();
            for span in steps.stretches(steps.steady.clone()) {
                let part = Breakdown::of_device(trace, device, span);
                sum.whole += part.whole;
                sum.busy += part.busy;
                sum.compute += part.compute;
                sum.copy += part.copy;
            }
            SteadyFigures {
                device: trace.devices()[device].info.id,
                steps: steps.steady.len(),
                time_ns: sum.whole,
                busy_ns: sum.busy,
                compute_ns: sum.compute,
                copy_ns: sum.copy,
                idle_ns: sum.idle(),
            }
        };
        let all = steps::by_device(trace, steps).into_iter();
        let mut all: Vec<Self> = all.map(of_device).collect();
        all.sort_by_key(|it| it.device);
        all
    }
}

impl Report {
    /// The main kind of steps: of several processes that of the one whose steps take longest.
    pub fn main_steps(&self) -> Option<&StepsReport> {
        let of_one = |a: &StepsReport, b: &StepsReport| a.process_index == b.process_index;
        let firsts = self
            .steps
            .chunk_by(of_one)
            .filter_map(<[StepsReport]>::first);
        firsts.max_by_key(|it| it.median_ns * it.count as Ns)
    }
}

impl TypicalStep {
    fn of(trace: &Trace, causes: &Causes<'_>, steps: &Steps, step: usize) -> Self {
        let span = steps.spans[step];
        let device = main_device(trace, steps.process).unwrap_or_default();
        let parts = Breakdown::of_device(trace, device, span);
        let by = Group::ALL
            .into_iter()
            .zip(causes.shares_within(device, span));
        TypicalStep {
            step: step + 1,
            start_ns: span.start,
            time_ns: span.len(),
            busy_ns: parts.busy,
            compute_ns: parts.compute,
            copy_ns: parts.copy,
            idle_by: by
                .filter(|it| it.1 > 0)
                .map(|(group, ns)| (group.id(), ns))
                .collect(),
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
    let part = |row: &'_ IdleCause| {
        let sure = if row.certainty == "likely" {
            "likely "
        } else {
            ""
        };
        (
            (format!("{sure}{}", row.words()), row.culprit.clone()),
            row.total_ns,
        )
    };
    let mut causes = sum_by(idle.iter().map(part));
    causes.retain(|cause| cause.1 * 20 >= all);
    let words = causes
        .into_iter()
        .take(CAUSES_SHOWN)
        .map(|((cause, culprit), time)| {
            let culprit = culprit.map_or_else(String::new, |it| format!(" ({it})"));
            format!("{cause} {}{culprit}", duration(time))
        });
    printable(&words.collect::<Vec<_>>().join(", "))
}

/// "1,240 tokens/s", "617 or 1,240 tokens/s".
pub fn tokens_per_s((low, high): (f64, f64)) -> String {
    let (low, high) = (low.round() as u64, high.round() as u64);
    let least = match high - low {
        0 => String::new(),
        more if 2 * more > low => format!("{} or ", count(low)),
        _ => format!("{} to ", count(low)),
    };
    format!("{least}{} tokens/s", count(high))
}

/// What a server did, a sentence each.
fn serving(of: &Serving) -> Vec<String> {
    let rate = of.tokens_per_s.map(tokens_per_s);
    let rate = rate.unwrap_or("tokens/s not seen".to_owned());
    let mut lines = vec![format!("serving, {}: {rate}", of.certainty)];
    if let Some(decode) = of.decode.as_ref().filter(|it| it.replay_p50_ns > 0) {
        let [replay, rest] = [decode.replay_p50_ns, decode.between_p50_ns].map(duration);
        let why = because(&of.between);
        lines.push(format!(
            "decode step: graph {replay}, around it {rest}; idle there: {why}"
        ));
    }
    let [all, longest] = [of.prefill_delay_ns, of.prefill_delay_max_ns].map(duration);
    let delay = format!("decoding waited {all} for prefill, at most {longest} at a time");
    lines.extend(Some(delay).filter(|_| of.prefill_delay_ns > 0));
    let asleep = format!(
        "idle {} before prompts: nobody asked",
        duration(of.asleep_ns)
    );
    lines.extend(Some(asleep).filter(|_| of.asleep_ns > 0));
    lines
}

/// A section on steps, where there are any.
pub(super) fn section(page: &mut Page, report: &Report) {
    let all = &report.steps;

    for steps in all {
        let is_its = |rank: &&RankReport| rank.process_index == steps.process_index;
        if !tells(report, |rank| is_its(&rank)) {
            continue;
        }
        let whose = match report.ranks.iter().find(is_its) {
            _ if all.len() == 1 => None,
            Some(rank) => Some(printable(&rank.called())),
            None => Some(format!("process {}", steps.process)),
        };
        let mut lines = vec![format!("{} · by {}", steps.words(), printable(&steps.from))];
        lines.extend(steps.odd_cost.as_ref().map(OddSteps::sentence));
        let is_served = |it: &&Serving| it.process == steps.process;
        let served = report.serving.iter().find(is_served);
        let is_first = all.iter().find(|it| it.process == steps.process) == Some(steps);
        let served = served.filter(|_| is_first).map(serving).unwrap_or_default();
        if page.is_brief {
            let of = whose.map(|it| format!("{it}: ")).unwrap_or_default();
            let rate = served.first().map(|it| format!(" · {it}"));
            page.wrapped(&format!("{of}{}{}", lines[0], rate.unwrap_or_default()));
            continue;
        }
        lines.extend(served);
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
                .map(|s| format!("step {} {} ({})", s.step, duration(s.time_ns), s.more))
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
            group: Group::Queue,
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

    /// Twenty steps of 10 ms, but the twelfth takes 40: the screen's strip counts from 1.
    #[test]
    fn steps_are_numbered_as_the_screen_numbers_them() {
        let mut scene = Scene::new();
        let mut at = 1_000_000;
        for step in 1..=20 {
            for (i, name) in (0..).zip(["forward", "loss", "backward"]) {
                let start = at + i * 1_000_000;
                scene.call("cudaLaunchKernel", start - 20_000, start - 10_000);
                scene.kernel(name, 7, start, start + 900_000);
            }
            at += if step == 12 { 40_000_000 } else { 10_000_000 };
        }
        let report = Report::new(&scene.trace(), None, KnownGpus::default());
        let steps = &report.steps[0];
        let odd: Vec<usize> = steps.odd.iter().map(|it| it.step).collect();
        let slow: Vec<usize> = steps.slowest.iter().map(|it| it.step).collect();
        assert_eq!((odd, slow), (vec![12], vec![12]));
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
            found: 10,
            ..StepsReport::default()
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
