//! What a report says of a job of several ranks.

mod table;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::Serialize;

use super::Report;
use super::page::{Page, Tone};
use super::table::Table;
use activity::text::{counted, plural, printable};
use activity::units::{bytes, count, duration, percent, rate, share};
use activity::{Ns, Span};
use advice::Facts;
use causes::stacks::LineShare;
use causes::{Cause, IdleCause};
use jobs::{JobAnalysis, Lateness, Pattern, Reason, Stretch};
pub use table::{Means, columns};
use trace::{LaneId, Trace};

/// How much of a rank's idle time has one cause, whoever is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IdleShare {
    pub cause: Cause,
    /// "fact", "likely" or "unknown".
    pub certainty: &'static str,
    pub total_ns: Ns,
}

impl IdleShare {
    /// The causes of some idle time, those that have most of it first.
    fn list<'a>(idle: impl IntoIterator<Item = &'a IdleCause>) -> Vec<IdleShare> {
        IdleShare::sum(idle.into_iter().map(|it| IdleShare {
            cause: it.cause,
            certainty: it.certainty,
            total_ns: it.total_ns,
        }))
    }

    /// Those of several ranks, added up.
    pub fn of_all(ranks: &[&RankReport]) -> Vec<IdleShare> {
        IdleShare::sum(ranks.iter().flat_map(|rank| &rank.idle).copied())
    }

    fn sum(parts: impl Iterator<Item = IdleShare>) -> Vec<IdleShare> {
        let of = |it: &IdleShare| (it.cause, it.certainty);
        let mut sums: Vec<IdleShare> = Vec::new();
        for part in parts {
            match sums.iter_mut().find(|it| of(it) == of(&part)) {
                Some(sum) => sum.total_ns += part.total_ns,
                None => sums.push(part),
            }
        }
        sums.sort_by_key(|it| (Reverse(it.total_ns), it.cause, it.certainty));
        sums
    }

    /// "CPU work", "likely CPU work".
    pub fn words(&self) -> String {
        match self.certainty {
            "likely" => format!("likely {}", self.cause.label()),
            _ => self.cause.label().to_owned(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankReport {
    /// Its number; null where no launcher said it.
    pub rank: Option<u32>,
    pub name: String,
    /// The machine's name; empty where unknown.
    pub host: String,
    /// The operating system's id of its process.
    pub process: u32,
    /// Its device's id.
    pub device: u32,
    /// What is to be added to its times to have those of the clock of all, at the middle of its collectives, ns.
    pub offset_ns: Ns,
    /// How that changes: 1 ppm is 1 us in each second.
    pub drift_ppm: f64,
    /// Median distance of its collectives' ends from those of the others, after that; null where it is not aligned.
    pub residual_ns: Option<Ns>,
    /// Time that its device had anything to do, waiting included (as in `devices`).
    pub busy_ns: Ns,
    /// Time that its device had nothing to do, from its first to its last operation (as in `devices`).
    pub idle_ns: Ns,
    /// That by its causes, most first.
    pub idle: Vec<IdleShare>,
    /// Time that transfers of collectives took.
    pub transfer_ns: Ns,
    /// Time that it waited inside collectives for others.
    pub wait_ns: Ns,
    /// Of that, the time in which nothing else ran on its device.
    pub exposed_wait_ns: Ns,
    /// That as a part of the time from the first to the last operation of its device.
    pub wait_share: f64,
    /// Collectives of which another rank's part is known, and that go both ways.
    pub collectives: u64,
    /// Collectives that are not judged.
    pub not_judged: u64,
    /// Those at which it clearly arrived last.
    pub last_arrivals: u64,
    /// By how much later than the last but one, added up.
    pub late_ns: Ns,
    /// The most of that at one collective: one delay is added up again at each that follows.
    #[serde(skip)]
    pub latest_ns: Ns,
    /// First to last operation of its device, in the timeline's own time.
    #[serde(skip)]
    pub span: Span,
    /// Its process and its device by their indices in the timeline.
    #[serde(skip)]
    pub process_index: usize,
    #[serde(skip)]
    pub device_index: usize,
    /// The collective at which it was latest, else the one in which it waited longest.
    #[serde(skip)]
    pub place: Option<(LaneId, usize)>,
}

impl RankReport {
    /// Its name, with its host.
    pub fn called(&self) -> String {
        match self.host.as_str() {
            "" => self.name.clone(),
            host => format!("{} {host}", self.name),
        }
    }
}

impl JobReport {
    /// How the clocks were aligned: "the ranks' clocks are aligned to ± 14 us (95 % within 32 us) over 96 collectives".
    pub fn clocks_line(&self) -> String {
        match (self.residual_ns, self.residual_p95_ns) {
            (Some(median), Some(p95)) => format!(
                "the ranks' clocks are aligned to ± {} (95 % within {}) over {}",
                duration(median),
                duration(p95),
                plural(self.collectives as u64, "collective")
            ),
            _ => "the ranks' clocks are not aligned: fewer than 3 collectives end on all ranks at once".to_owned(),
        }
    }
}

/// That ranks of the job are not here, where that is so: "6 of the job's 8 ranks are not here: …".
pub fn absent(job: &JobReport) -> Option<String> {
    let world = job.world.filter(|_| job.absent > 0)?;
    Some(format!(
        "{} of the job's {} not recorded: waiting for them may count as transfer",
        count(u64::from(job.absent)),
        counted(u64::from(world), "rank is", "ranks are"),
    ))
}

/// What is not judged, where there is any: "560 collective kernels are not judged …".
pub fn unjudged(ranks: &[RankReport]) -> Option<String> {
    let all: u64 = ranks.iter().map(|rank| rank.not_judged).sum();
    (all > 0).then(|| {
        format!(
            "{} not split into waiting and transfer (sends, or no partner recorded): their whole time counts as work",
            counted(all, "collective kernel is", "collective kernels are")
        )
    })
}

/// What ranks do together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobReport {
    /// How the clocks were aligned: "collectives", or "wall clock" where no collective tells.
    pub clocks: &'static str,
    /// Which times the report speaks of: "aligned", the clock of all; "recorded", each process's own.
    pub times: &'static str,
    /// Median distance of a collective's ends from each other after that, ns.
    pub residual_ns: Option<Ns>,
    /// The distance that 95 % do not exceed, ns.
    pub residual_p95_ns: Option<Ns>,
    /// Collectives that were matched.
    pub collectives: usize,
    /// Of them, those of which some ranks' parts are not recorded.
    pub incomplete: u64,
    /// Ranks of the job, as its launcher says; null where it does not.
    pub world: Option<u32>,
    /// Of them, those of which nothing is here: where they take part in a collective, they may have been last.
    pub absent: u32,
    /// Who the others wait for, most costly first.
    pub late: Vec<LateReport>,
    /// How fast messages went, by operation and size, those that took most time first.
    pub rates: Vec<RateReport>,
}

/// A rank that others wait for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LateReport {
    pub rank: Option<u32>,
    pub name: String,
    /// "steady", "by turns" or "unknown".
    pub pattern: &'static str,
    /// What a step is in the following: "step", or "collective" (from one to the next) where no steps are known.
    pub unit: &'static str,
    /// On how many of how many steps, when by turns.
    pub late_steps: Option<[usize; 2]>,
    /// Those of them at which a collective shows it; absent unless by turns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub late_at: Vec<LateStepReport>,
    /// Why, in words; null where nothing shows, or no other rank runs the same kernels.
    pub reason: Option<String>,
    /// Where its program was seen meanwhile, where its GPU is idle and enough stack samples tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<LineShare>,
    /// What the steady steps together would be shorter by without it (predicted), ns. Null where no other rank runs the same kernels.
    pub saving_ns: Option<Ns>,
    /// What a step takes on average, ns.
    pub step_ns: Option<Ns>,
    /// What a step would take without it (predicted), ns. Null for the same reason.
    pub step_without_ns: Option<Ns>,
    /// Whether their power cap held the GPUs down: that much is saved at most.
    pub is_capped: bool,
    /// The whole in a sentence.
    pub text: String,
}

/// A step on which a rank is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LateStepReport {
    /// Which of its steady steps, from 1.
    pub step: usize,
    /// When it came to that collective, by its own clock; it may lie in the next step.
    pub start_ns: Ns,
    /// By how much later than the last but one, ns.
    pub by_ns: Ns,
}

/// How fast messages of one kind went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateReport {
    pub operation: &'static str,
    /// Bytes of a message on a rank; null where the source does not say.
    pub bytes: Option<u64>,
    pub ranks: u32,
    pub count: u64,
    /// Median.
    pub transfer_ns: Ns,
    /// As nccl-tests reckon it; null where the size is unknown.
    pub bus_gbps: Option<f64>,
    /// What copies from one GPU to another reach on this kind of GPU by its calibrated profile. It is null where there
    /// is none, and for ranks of several hosts.
    pub link_gbps: Option<f64>,
}

/// Both forms of what is known of a job, whose GPUs copy to each other at no more than `link`, GB/s.
pub fn report(
    facts: &Facts<'_>,
    ranks: &JobAnalysis,
    link: Option<f64>,
) -> (Vec<RankReport>, JobReport) {
    let all = (0..ranks.ranks.len()).map(|i| RankReport::new(facts, ranks, i));
    (all.collect(), JobReport::new(facts.trace, ranks, link))
}

impl RankReport {
    fn new(facts: &Facts<'_>, ranks: &JobAnalysis, i: usize) -> RankReport {
        let (trace, rank) = (facts.trace, &ranks.ranks[i]);
        let (sums, line) = (&ranks.split.sums[i], ranks.line_of_recorded(trace, i));
        let recorded = trace.as_recorded(rank.process, rank.span);
        let middle = recorded.start.midpoint(recorded.end);
        let device = &trace.devices()[rank.device];
        let span = device.usage.span().unwrap_or_default();
        let busy_ns = device.usage.total(trace::Measure::Busy);
        let (place, latest_ns) = place(ranks, i);
        RankReport {
            rank: rank.number,
            name: rank.name.clone(),
            host: rank.host.clone(),
            process: trace.processes()[rank.process].info.pid,
            device: device.info.id,
            offset_ns: line.apply(middle).saturating_sub(middle),
            drift_ppm: (line.drift * 1e9).round() / 1e3,
            residual_ns: ranks.clocks.residuals[i].map(|residual| residual.median_ns as Ns),
            busy_ns,
            idle_ns: span.len() - busy_ns,
            idle: IdleShare::list(facts.idle_of(rank.device)),
            transfer_ns: sums.transfer_ns,
            wait_ns: sums.wait_ns,
            exposed_wait_ns: sums.exposed_ns,
            wait_share: share(sums.exposed_ns, span.len()),
            collectives: sums.judged,
            not_judged: sums.unjudged,
            last_arrivals: sums.last_arrivals,
            late_ns: sums.late_ns,
            latest_ns,
            span,
            process_index: rank.process,
            device_index: rank.device,
            place,
        }
    }
}

impl JobReport {
    fn new(trace: &Trace, ranks: &JobAnalysis, link: Option<f64>) -> JobReport {
        let residual = ranks.clocks.residual;
        let mut hosts: Vec<&str> = ranks.ranks.iter().map(|rank| rank.host.as_str()).collect();
        hosts.dedup();
        let link = link.filter(|_| hosts.len() <= 1);
        let rates = ranks.split.rates.iter().map(|it| RateReport {
            operation: it.operation.label(),
            bytes: (it.bytes > 0).then_some(it.bytes),
            ranks: it.ranks,
            count: it.count,
            transfer_ns: it.transfer_ns,
            bus_gbps: (it.bytes > 0).then_some(it.bus_gbps),
            link_gbps: link,
        });
        let info = || trace.processes().iter().map(|process| &process.info);
        let there: BTreeSet<u32> = info().filter_map(|info| info.rank).collect();
        // Without a number nobody knows which one a process is.
        let world = info().filter_map(|info| info.world).max();
        let world = world.filter(|_| !there.is_empty());
        JobReport {
            clocks: match residual {
                Some(_) => "collectives",
                None => "wall clock",
            },
            times: match trace.is_on_one_clock() {
                true => "aligned",
                false => "recorded",
            },
            residual_ns: residual.map(|residual| residual.median_ns as Ns),
            residual_p95_ns: residual.map(|residual| residual.p95_ns as Ns),
            collectives: residual.map_or(0, |residual| residual.count),
            incomplete: ranks.split.incomplete,
            world,
            absent: world.map_or(0, |world| world.saturating_sub(there.len() as u32)),
            late: ranks.late.iter().map(|it| late_report(ranks, it)).collect(),
            rates: rates.collect(),
        }
    }
}

/// Where a rank is looked at first.
fn place(ranks: &JobAnalysis, rank: usize) -> (Option<(LaneId, usize)>, Ns) {
    let late = ranks.split.late.iter().chain(&ranks.split.late_one_way);
    let late = late.filter(|late| late.rank == rank);
    let latest = late.max_by_key(|late| late.by);
    let waits = ranks.split.waits[rank].iter();
    let longest = waits.max_by_key(|wait| wait.span.len());
    let at = latest.map(|late| (late.lane, late.row));
    let at = at.or_else(|| longest.map(|wait| (wait.lane, wait.row)));
    (at, latest.map_or(0, |late| late.by))
}

/// Whether the text tells of one of these ranks by itself: of many only of the first and of those that are late.
pub(super) fn tells(report: &Report, is_meant: impl Fn(&RankReport) -> bool) -> bool {
    let Some(job) = report
        .job
        .as_ref()
        .filter(|_| report.ranks.len() > RANKS_SHOWN)
    else {
        return true;
    };
    let late = job.late.iter().take(LATE_SHOWN);
    let late: Vec<&String> = late.map(|late| &late.name).collect();
    let mut all = report.ranks.iter().enumerate();
    all.any(|(i, rank)| (i == 0 || late.contains(&&rank.name)) && is_meant(rank))
}

fn late_report(ranks: &JobAnalysis, late: &Lateness) -> LateReport {
    let rank = &ranks.ranks[late.rank];
    let (pattern, late_steps) = match late.pattern {
        Pattern::Steady => ("steady", None),
        Pattern::ByTurns { late, of } => ("by turns", Some([late, of])),
        Pattern::Unknown => ("unknown", None),
    };
    let steps = late.steps.iter().map(|it| LateStepReport {
        step: it.step + 1,
        start_ns: it.start,
        by_ns: it.by,
    });
    LateReport {
        rank: rank.number,
        name: rank.name.clone(),
        pattern,
        unit: match late.unit {
            Stretch::Step => "step",
            Stretch::Collective => "collective",
        },
        late_steps,
        late_at: steps.collect(),
        reason: ranks.reason(late),
        line: match &late.reason {
            Reason::Idle(cause) => cause.line.clone(),
            _ => None,
        },
        saving_ns: late.saving.map(|saving| saving.all_ns),
        step_ns: late.saving.map(|saving| saving.now_ns),
        step_without_ns: late.saving.map(|saving| saving.without_ns),
        is_capped: late.saving.is_some_and(|it| it.is_capped),
        text: printable(&ranks.sentence(late)),
    }
}

/// Ranks up to which each has a line.
const RANKS_SHOWN: usize = 16;
/// Of more, so many that stand out have one, and so many hosts.
const STAND_OUT: usize = 6;
const HOSTS_SHOWN: usize = 12;
const LATE_SHOWN: usize = 3;
const RATES_SHOWN: usize = 5;

/// The section on ranks.
pub(super) fn section(page: &mut Page, ranks: &[RankReport], job: &JobReport) {
    page.title("Ranks");
    let mut hosts: Vec<&str> = ranks.iter().map(|rank| rank.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let on = match hosts.as_slice() {
        [""] => String::new(),
        hosts => format!(" on {}", plural(hosts.len() as u64, "host")),
    };
    let clocks = job.clocks_line();
    page.wrapped(&format!(
        "{}{on} · {clocks}",
        plural(ranks.len() as u64, "rank")
    ));
    not_told(page, ranks, job);
    for late in job.late.iter().take(LATE_SHOWN) {
        page.painted(Tone::Warn, &late.text);
    }
    let mut rows: Vec<Means<'_>> = ranks.iter().map(Means::one).collect();
    if ranks.len() > RANKS_SHOWN {
        rows.sort_by_key(|it| Reverse(it.ranks[0].late_ns));
        rows.truncate(STAND_OUT);
        rows.extend(hosts.iter().take(HOSTS_SHOWN).map(|host| {
            let ranks: Vec<_> = ranks.iter().filter(|rank| rank.host == **host).collect();
            let name = if host.is_empty() { "all ranks" } else { host };
            let name = format!("{name}: mean of {}", plural(ranks.len() as u64, "rank"));
            Means { name, ranks }
        }));
    }
    page.table(&Table::from_rows(&columns(), rows));
    if ranks.len() > RANKS_SHOWN && hosts.len() > HOSTS_SHOWN {
        page.wrapped(&format!("and {} more hosts", hosts.len() - HOSTS_SHOWN));
    }
    rates(page, &job.rates);
}

/// What is not there, and what is not judged for that.
fn not_told(page: &mut Page, ranks: &[RankReport], job: &JobReport) {
    if ranks.iter().any(|rank| rank.rank.is_none()) {
        page.wrapped("no rank numbers in the environment: ordered by process id");
    }
    if job.incomplete > 0 {
        page.wrapped(&format!(
            "{} incomplete, as some rank is missing: their transfer time may include waiting for it",
            counted(job.incomplete, "collective is", "collectives are")
        ));
    }
    let lines = [absent(job), unjudged(ranks)];
    lines.iter().flatten().for_each(|line| page.wrapped(line));
}

/// How fast messages went.
fn rates(page: &mut Page, rates: &[RateReport]) {
    let rows = rates.iter().take(RATES_SHOWN).map(|it| {
        let size = it.bytes.map(|size| format!(" {}", bytes(size)));
        let of_link = it
            .bus_gbps
            .zip(it.link_gbps)
            .map(|(bus, link)| percent(bus / link));
        [
            format!("{}{}", it.operation, size.unwrap_or_default()),
            it.ranks.to_string(),
            count(it.count),
            duration(it.transfer_ns),
            it.bus_gbps.map_or_else(String::new, rate),
            of_link.unwrap_or_default(),
        ]
    });
    if !rates.is_empty() {
        let [bus, link] = ["bus GB/s", "of the link"];
        page.cells(
            ["collectives", "ranks", "count", "transfer", bus, link],
            rows,
        );
    }
}
