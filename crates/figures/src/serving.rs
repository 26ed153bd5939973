//! What a server of a language model does: tokens a second, and what each token waits for.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::steps::{Batch, Phase, Steps, Work, work};
use activity::units::share;
use activity::{Ns, Span, stats};
use causes::{Causes, IdleCause};
use trace::Trace;

/// How many tokens: the fewest and the most, which are the same where it is known.
pub type Tokens = (u64, u64);

/// Before a prompt the GPU rests for so many times the usual pause: then nobody asked for anything.
const ASLEEP_TIMES: Ns = 10;

/// What a server did in its steady steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Serving {
    /// The operating system's id of the process.
    pub process: u32,
    /// What showed the phases.
    pub from: String,
    /// "fact" where names say the phases, "likely" where operations show them.
    pub certainty: &'static str,
    /// From the first steady step to the end of the last.
    pub time_ns: Ns,
    /// Tokens that were made, where something says how many.
    pub tokens: Option<Tokens>,
    pub tokens_per_s: Option<(f64, f64)>,
    pub phases: Vec<ServedSteps>,
    /// Decode steps by the CUDA graph that they replay, and the time of the replays.
    pub graphs: Vec<ServedSteps>,
    /// Decode steps without a CUDA graph.
    pub outside_graphs: usize,
    /// From a replay's first operation to the end of its last at the median; null without graphs.
    pub replay_p50_ns: Option<Ns>,
    /// The rest of a decode step.
    pub between_p50_ns: Option<Ns>,
    /// Why the GPU was idle in that rest, summed over all steps.
    pub between: Vec<IdleCause>,
    /// How long requests that were being decoded waited because prompts were worked on, and the longest such wait.
    pub prefill_delay_ns: Ns,
    pub prefill_delay_max_ns: Ns,
    /// For how long nothing ran before a prompt came, beside usual pauses.
    pub asleep_ns: Ns,
    /// What no record says.
    pub not_seen: [&'static str; 4],
    /// Phases in order, steps of one phase behind each other as one.
    pub runs: Vec<PhaseRun>,
}

/// Steps of one phase, or replays of one graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServedSteps {
    pub phase: Phase,
    /// The graph's id; 0 where none is meant, or nobody knows it.
    pub graph: u32,
    pub steps: usize,
    pub p50_ns: Ns,
    pub p99_ns: Ns,
    pub total_ns: Ns,
    /// Of the time of all steps.
    pub share: f64,
    /// Tokens of a step at the median.
    pub batch: Option<Tokens>,
    /// The other numbers in names, at the median.
    pub fields: BTreeMap<String, u64>,
}

/// Steps of one phase behind each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PhaseRun {
    pub phase: Phase,
    pub start_ns: Ns,
    pub end_ns: Ns,
    pub steps: usize,
}

/// A step of a server.
struct Served<'s> {
    batch: &'s Batch,
    /// Up to where nobody asked for anything.
    span: Span,
    asleep: Ns,
    work: Work,
}

impl Served<'_> {
    /// From a graph's first operation to the end of its last; empty without one.
    fn replay(&self) -> Span {
        let none = Span::new(self.span.start, self.span.start);
        self.work.replay.unwrap_or(none)
    }
}

impl Serving {
    /// Of the steps of a process; `None` where it serves no model.
    pub fn of(trace: &Trace, causes: &Causes<'_>, steps: &Steps) -> Option<Serving> {
        let served = served(trace, steps);
        let own = |phase| served.iter().filter(move |it| it.batch.phase == phase);
        let time = steps.steady_span().len();
        let phases = Phase::ALL.map(|phase| ServedSteps::of(own(phase), |it| it.span, time));
        let phases: Vec<ServedSteps> = phases.into_iter().flatten().collect();
        let decodes = || own(Phase::Decode);
        let tokens = served.iter().filter_map(|it| it.batch.tokens);
        let tokens = tokens.reduce(|a, b| (a.0 + b.0, a.1 + b.1));
        let rate = |count: u64| count as f64 * 1e9 / time.max(1) as f64;
        let usual = quantile(decodes().map(|it| it.span.len()), 0.5).unwrap_or_default();
        let (prefill_delay_ns, prefill_delay_max_ns) = delays(&served, usual);
        let mut graphs = BTreeMap::<u32, Vec<&Served>>::new();
        let (replays, others): (Vec<&Served>, _) =
            decodes().partition(|it| it.work.replay.is_some());
        for &it in &replays {
            graphs.entry(it.work.graph).or_default().push(it);
        }
        let graphs = graphs.into_iter().filter_map(|(graph, of)| {
            let of = ServedSteps::of(of.into_iter(), |it| it.replay(), time)?;
            Some(ServedSteps { graph, ..of })
        });
        let rest = |it: &Served| it.span.len() - it.replay().len();
        let around = |it: &Served| {
            let (span, replay) = (it.span, it.replay());
            [
                (span.start, replay.start),
                (replay.end.min(span.end), span.end),
            ]
        };
        let around = decodes().flat_map(around).filter(|it| it.0 < it.1);
        let around: Vec<Span> = around.map(|it| Span::new(it.0, it.1)).collect();
        (!phases.is_empty()).then(|| Serving {
            process: trace.processes()[steps.process].info.pid,
            from: steps.origin_text(),
            certainty: steps.certainty(),
            time_ns: time,
            tokens,
            tokens_per_s: tokens.map(|it| (rate(it.0), rate(it.1))),
            phases,
            graphs: graphs.collect(),
            outside_graphs: others.len(),
            replay_p50_ns: quantile(replays.iter().map(|it| it.replay().len()), 0.5),
            between_p50_ns: quantile(decodes().map(rest), 0.5),
            between: causes.idle_of_process(steps.process, &around),
            prefill_delay_ns,
            prefill_delay_max_ns,
            asleep_ns: served.iter().map(|it| it.asleep).sum(),
            not_seen: [
                "time to first token",
                "waiting requests",
                "prefix caches",
                "preemptions",
            ],
            runs: runs(&served),
        })
    }
}

fn served<'s>(trace: &Trace, steps: &'s Steps) -> Vec<Served<'s>> {
    let known = steps.steady.clone();
    let known = known.filter_map(|step| Some((steps.batch(step)?, steps.spans[step])));
    let works = work(trace, steps.process, known.clone().map(|it| it.1));
    let of = |((batch, span), work)| Served {
        batch,
        span,
        work,
        asleep: 0,
    };
    let mut served: Vec<Served> = known.zip(works).map(of).collect();
    let pause = |it: &Served| it.span.end - it.work.end.min(it.span.end);
    let pauses: Vec<Ns> = served.iter().map(pause).collect();
    let usual = stats::median_time(&pauses).unwrap_or_default().max(1);
    for (at, pause) in pauses.into_iter().enumerate() {
        let next = served.get(at + 1);
        let is_prompt = next.is_some_and(|it| it.batch.phase != Phase::Decode);
        if is_prompt && pause > ASLEEP_TIMES * usual {
            served[at].asleep = pause;
            served[at].span.end -= pause;
        }
    }
    served
}

fn quantile(times: impl Iterator<Item = Ns>, share: f64) -> Option<Ns> {
    let times: Vec<f64> = times.map(|it| it as f64).collect();
    stats::quantile(&times, share).map(|it| it as Ns)
}

impl ServedSteps {
    fn of<'s>(
        steps: impl Iterator<Item = &'s Served<'s>>,
        span: fn(&Served) -> Span,
        time: Ns,
    ) -> Option<ServedSteps> {
        let steps: Vec<&Served> = steps.collect();
        let times = || steps.iter().map(|it| span(it).len());
        let mut batches: Vec<Tokens> = steps.iter().filter_map(|it| it.batch.tokens).collect();
        batches.sort_unstable();
        let mut fields = BTreeMap::<&String, Vec<Ns>>::new();
        for (name, value) in steps.iter().flat_map(|it| &it.batch.fields) {
            fields.entry(name).or_default().push(*value as Ns);
        }
        let fields = fields.into_iter().filter_map(|(name, values)| {
            Some((name.clone(), quantile(values.into_iter(), 0.5)? as u64))
        });
        Some(ServedSteps {
            phase: steps.first()?.batch.phase,
            graph: 0,
            steps: steps.len(),
            p50_ns: quantile(times(), 0.5)?,
            p99_ns: quantile(times(), 0.99)?,
            total_ns: times().sum(),
            share: share(times().sum(), time),
            batch: batches.get(batches.len() / 2).copied(),
            fields: fields.collect(),
        })
    }
}

/// What prompts add to the time between two tokens of others: in all, and at most.
fn delays(served: &[Served], usual: Ns) -> (Ns, Ns) {
    let (mut all, mut longest, mut now, mut has_others) = (0, 0, 0, false);
    for it in served {
        let is_mixed = it.batch.phase == Phase::Mixed;
        now += match it.batch.phase {
            Phase::Decode => 0,
            Phase::Prefill => it.span.len(),
            Phase::Mixed => (it.span.len() - usual).max(0),
        };
        if it.batch.phase != Phase::Prefill {
            if has_others || is_mixed {
                all += now;
                longest = longest.max(now);
            }
            (now, has_others) = (0, true);
        }
        has_others &= it.asleep == 0;
    }
    (all, longest)
}

fn runs(served: &[Served]) -> Vec<PhaseRun> {
    let is_one =
        |a: &Served, b: &Served| a.batch.phase == b.batch.phase && a.span.end == b.span.start;
    let runs = served.chunk_by(is_one).map(|run| PhaseRun {
        phase: run[0].batch.phase,
        start_ns: run[0].span.start,
        end_ns: run[run.len() - 1].span.end,
        steps: run.len(),
    });
    runs.collect()
}

#[cfg(test)]
mod tests;
