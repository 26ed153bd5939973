//! The ranks of a job as every view needs them: how well their clocks are aligned, and where each waits for another
//! inside a collective. Answered beside the screen, from collectives alone; for the view of ranks with who is late and why.
//! A job is matched once for a refresh of a run that goes on, and once when it has ended.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::analyst::{Analyst, Question};
use super::{Run, Status};
use crate::report::ranks::{self as report, JobReport, RankReport};
use crate::report::steps::because;
use activity::units::duration;
use activity::{Ns, Span};
use advice::Facts;
use advice::facts::LastFacts;
use jobs::{Alignment, JobAnalysis, Wait};
use trace::{Clock, Clocks, LaneId, Trace};

/// While a program runs, answers are at least this far apart.
const PACE: Duration = Duration::from_secs(2);

/// Clocks are aligned again when the run has lasted half as long again, or when one would move by more than this, ns.
const FAR: Ns = 1_000_000;

/// Records up to which it is looked at where there is no thread for it: a blink.
const UNASKED: usize = 1_000_000;

/// Where the kernels of a lane wait for late ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waits {
    /// In order of time.
    waits: Vec<Wait>,
    /// The time of all before each, and of all.
    before: Vec<Ns>,
}

impl Waits {
    /// Those of one lane, in any order.
    pub fn of(mut waits: Vec<Wait>) -> Waits {
        waits.sort_unstable_by_key(|wait| (wait.span, wait.row));
        // Collectives of one lane follow each other; where a source says otherwise no time counts twice.
        let mut end = Ns::MIN;
        waits.retain_mut(|wait| {
            let start = wait.span.start.max(end);
            wait.span = Span::new(start, wait.span.end.max(start));
            end = wait.span.end;
            !wait.span.is_empty()
        });
        let mut sum = 0;
        let mut before = vec![0];
        before.extend(waits.iter().map(|wait| {
            sum += wait.span.len();
            sum
        }));
        Waits { waits, before }
    }

    /// The time of a window in which the lane waited.
    pub fn time_within(&self, window: Span) -> Ns {
        let from = self.waits.partition_point(|it| it.span.end <= window.start);
        let to = self.waits.partition_point(|it| it.span.start < window.end);
        if from >= to {
            return 0;
        }
        let first = (window.start - self.waits[from].span.start).max(0);
        let last = (self.waits[to - 1].span.end - window.end).max(0);
        self.before[to] - self.before[from] - first - last
    }

    /// The wait at the begin of a row of the lane.
    fn of_row(&self, row: usize, span: Span) -> Option<&Wait> {
        let from = self.waits.partition_point(|it| it.span.start < span.start);
        let here = self.waits[from..].iter();
        let mut here = here.take_while(|it| it.span.start < span.end);
        here.find(|it| it.row == row)
    }
}

/// Whether a timeline is of several ranks or of several machines, by what its processes say.
fn is_of_several(trace: &Trace) -> bool {
    let infos = || trace.processes().iter().map(|it| &it.info);
    let first = infos().find_map(|it| it.rank);
    let host = infos().map(|it| &it.host).find(|it| !it.is_empty());
    let is_other_rank = first.is_some() && infos().any(|it| it.rank.is_some() && it.rank != first);
    let is_other_host = |it: &String| !it.is_empty() && Some(it) != host;
    is_other_rank || infos().any(|it| is_other_host(&it.host))
}

/// What is known of a job.
#[derive(Clone, Debug, Default)]
struct JobFacts {
    /// How well the clocks are aligned, in a few words, and in fewer.
    clocks: [String; 2],
    /// What ranks are called.
    names: Vec<String>,
    lanes: FxHashMap<LaneId, Waits>,
}

impl JobFacts {
    /// Of a timeline that is not on the clock of all yet.
    fn before(job: &Alignment) -> JobFacts {
        JobFacts {
            clocks: [job.clocks.words(), job.clocks.short()],
            ..JobFacts::default()
        }
    }

    fn of(job: &Alignment) -> JobFacts {
        let mut lanes: FxHashMap<LaneId, Vec<Wait>> = FxHashMap::default();
        for wait in job.split.waits.iter().flatten() {
            lanes.entry(wait.lane).or_default().push(*wait);
        }
        JobFacts {
            names: job.ranks.iter().map(|rank| rank.name.clone()).collect(),
            lanes: lanes
                .into_iter()
                .map(|(lane, waits)| (lane, Waits::of(waits)))
                .collect(),
            ..JobFacts::before(job)
        }
    }
}

/// Who is late and why, as the view of ranks shows it.
#[derive(Clone, Debug)]
pub struct LateRanks {
    /// In order of number.
    pub ranks: Vec<RankReport>,
    pub job: JobReport,
    /// By rank: for how long its device was idle, and why, in a line.
    pub idle: Vec<String>,
}

impl LateRanks {
    fn of(facts: &Facts<'_>, ranks: &JobAnalysis) -> LateRanks {
        let idle = ranks.ranks.iter().map(|rank| {
            let all = facts.idle_of(rank.device);
            let time: Ns = all.iter().map(|cause| cause.total_ns).sum();
            match time {
                0 => format!("the GPU of {} was never idle", rank.name),
                _ => format!(
                    "the GPU of {} was idle for {}: {}",
                    rank.name,
                    duration(time),
                    because(all)
                ),
            }
        });
        let idle = idle.collect();
        let (ranks, job) = report::report(facts, ranks, None);
        LateRanks { ranks, job, idle }
    }
}

#[derive(Clone, Debug, Default)]
pub(in crate::tui) struct JobAnswer {
    known: Option<JobFacts>,
    /// Where it was asked for.
    judged: Option<LateRanks>,
    /// What the clocks of processes are to be set to: before that nothing else is told.
    clocks: Option<Vec<Clock>>,
}

impl JobAnswer {
    /// Where clocks are to be set first, when one of them is to move by more than `least`, nothing else.
    fn of(facts: &Facts<'_>, is_judged: bool, least: Option<Ns>) -> JobAnswer {
        if is_judged && least.is_none() {
            // Beside the graph, collectives are matched.
            facts.prepare();
        }
        if let Some((job, clocks)) = least.and_then(|least| facts.clocks_to_set(least)) {
            return JobAnswer {
                clocks: Some(clocks),
                known: Some(JobFacts::before(&job)),
                ..JobAnswer::default()
            };
        }
        let aligned = facts.aligned();
        let judge = || {
            aligned?;
            facts.prepare();
            if facts.stop.is_stopped() {
                return None;
            }
            Some(LateRanks::of(facts, facts.ranks()?))
        };
        JobAnswer {
            known: aligned.map(|job| JobFacts::of(job)),
            judged: is_judged.then(judge).flatten(),
            ..JobAnswer::default()
        }
    }
}

/// Who is late is told as soon as somebody wants to know.
fn pace(_: &Run, last: bool, is_judged: bool) -> Duration {
    match is_judged && !last {
        true => Duration::ZERO,
        false => PACE,
    }
}

/// The question, and its last answer.
#[derive(Debug, Default)]
pub struct Job {
    /// By whether it is told who is late.
    pub(in crate::tui) question: Question<bool, JobAnswer>,
    /// When the clocks of a run that goes on were set last: what else was found out about it is found out anew then.
    set: Option<Duration>,
    /// The run that has ended of which who is late was wanted: it is told from then on.
    judged: Option<u64>,
}

impl Job {
    /// Takes the answer that has come, and asks when it is time to: for who is late, where that `is_judged`.
    pub fn prepare(
        &mut self,
        analyst: &Analyst,
        run: &Run,
        last: &Arc<LastFacts>,
        is_judged: bool,
    ) {
        self.question.first().paced(pace).poll();
        let is_asked = is_judged || analyst.has_threads() || run.records() <= UNASKED;
        if run.is_none() || !Alignment::may_be(&run.trace) || !is_asked || run.progress.is_some() {
            return;
        }
        let is_live = run.is_running();
        if is_judged && !is_live {
            self.judged = Some(run.number);
        }
        let is_judged = is_judged || (!is_live && self.judged == Some(run.number));
        let is_early = (self.set).is_some_and(|at| at <= run.elapsed && run.elapsed < at + at / 2);
        let least = if is_live && is_early { FAR } else { 0 };
        let (number, is_settled, last) = (run.number, run.is_settled, Arc::clone(last));
        self.question
            .ask(analyst, run, is_judged, move |trace, stop| {
                // The records that a run has while it goes on will never be asked about again.
                let mut facts = match is_live {
                    true => Facts::new(trace),
                    false => last.facts(number, trace),
                };
                let least = (is_live || !is_settled).then_some(least);
                facts.stop = stop.clone();
                JobAnswer::of(&facts, is_judged, least)
            });
    }

    /// Whether a run that has ended is still to be looked at for what its clocks are to be set to.
    pub fn is_to_tell_clocks(&self, analyst: &Analyst, run: &Run) -> bool {
        let is_asked = analyst.has_threads() || run.records() <= UNASKED;
        let is_open = matches!(run.status, Status::Ended(_)) && !run.is_settled;
        is_open
            && is_asked
            && run.trace.source.clocks == Clocks::Unknown
            && !run.trace.is_on_one_clock()
            && Alignment::may_be(&run.trace)
            && !self.question.is_of(run)
    }

    /// Takes what the clocks of the run's processes are to be set to, once.
    pub fn take_clocks(&mut self, run: &Run) -> Option<Vec<Clock>> {
        self.question.last_mut(run)?.clocks.take()
    }

    /// The clocks of the run were set: it goes on with another number, and is looked at anew.
    pub fn clocks_set(&mut self, run: &Run) {
        self.question.carry(run.number);
        self.set = run.is_running().then_some(run.elapsed);
        let was_judged = self.judged.is_some_and(|it| it + 1 == run.number);
        self.judged = was_judged.then_some(run.number);
    }

    fn known(&self, run: &Run) -> Option<&JobFacts> {
        self.question.last(run)?.known.as_ref()
    }

    /// Who is late and why; `None` for what is no job, and until it is known.
    pub fn judged(&self, run: &Run) -> Option<&LateRanks> {
        self.question.last(run)?.judged.as_ref()
    }

    /// Whether a run is one of several ranks, by what its processes say or by their collectives.
    pub fn is_one(&self, run: &Run) -> bool {
        is_of_several(&run.trace) || self.clocks(run).is_some()
    }

    /// Whether an answer is awaited.
    pub fn is_open(&self) -> bool {
        self.question.is_open()
    }

    /// How well the clocks of the ranks are aligned, in a few words and in fewer: "clocks aligned to ± 14 us over 96 collectives",
    /// "clocks ± 14 us"; `None` for what is no job.
    pub fn clocks(&self, run: &Run) -> Option<[String; 2]> {
        let told = self.question.last(run);
        if let Some(known) = told.and_then(|told| told.known.as_ref()) {
            return Some(known.clocks.clone());
        }
        let words = match run.awaits_clocks {
            _ if !is_of_several(&run.trace) => return None,
            true => ["aligning clocks", "aligning"],
            false if told.is_some() => ["wall clock, no collective tells", "wall clock"],
            false => return None,
        };
        Some(words.map(str::to_owned))
    }

    /// Where a lane waits inside collectives.
    pub fn waits(&self, run: &Run, lane: LaneId) -> Option<&Waits> {
        self.known(run)?.lanes.get(&lane)
    }

    /// How long an operation waits for which rank.
    pub fn waited(&self, run: &Run, lane: LaneId, row: usize, span: Span) -> Option<(Ns, &str)> {
        let known = self.known(run)?;
        let wait = known.lanes.get(&lane)?.of_row(row, span)?;
        let name = known.names.get(wait.for_rank)?;
        Some((wait.span.len(), name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(start: Ns, end: Ns, row: usize) -> Wait {
        Wait {
            span: Span::new(start, end),
            for_rank: 1,
            lane: 0,
            row,
            exposed: end - start,
        }
    }

    #[test]
    fn the_time_of_a_window_is_that_of_its_parts() {
        let waits = Waits::of(vec![
            wait(50, 60, 1),
            wait(10, 30, 0),
            wait(60, 60, 2),
            wait(80, 100, 3),
        ]);
        for (from, to, expected) in [
            (0, 200, 50),
            (20, 55, 15),
            (12, 18, 6),
            (30, 50, 0),
            (60, 80, 0),
            (90, 300, 10),
            (100, 300, 0),
        ] {
            assert_eq!(
                waits.time_within(Span::new(from, to)),
                expected,
                "{from} to {to}"
            );
        }
        let found = waits.of_row(3, Span::new(80, 130)).map(|it| it.span);
        assert_eq!(found, Some(Span::new(80, 100)));
        assert!(waits.of_row(2, Span::new(60, 70)).is_none());
    }
}
