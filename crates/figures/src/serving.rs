//! What a server of a language model does: tokens a second, and what each token waits for.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::steps::{Batch, Origin, Phase, Steps, list_ops};
use activity::units::share;
use activity::{Ns, Span, stats};
use causes::{Causes, IdleCause};
use trace::Trace;

/// How many tokens: the fewest and the most, which are the same where it is known.
pub type Tokens = (u64, u64);

/// What a server did in its steady steps. Their phases are kinds of steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Serving {
    /// The operating system's id of the process.
    pub process: u32,
    /// "fact" where names say the phases, "likely" where operations show them.
    pub certainty: &'static str,
    /// From the first steady step to the end of the last.
    pub time_ns: Ns,
    /// Tokens that were made in it, where something says how many: the fewest and the most.
    pub tokens: Option<Tokens>,
    pub tokens_per_s: Option<(f64, f64)>,
    /// Decode steps.
    pub decode: Option<Decoded>,
    /// The same by the CUDA graph that they replay; 0 where nobody knows which.
    pub graphs: BTreeMap<u32, Decoded>,
    /// Decode steps without a CUDA graph.
    pub outside_graphs: usize,
    /// Why the GPU was idle in decode steps outside replays, summed over all steps.
    pub between: Vec<IdleCause>,
    /// The part of the time of steps that work on prompts.
    pub prefill_share: f64,
    /// How long requests that were being decoded waited because prompts were worked on, and the longest such wait.
    pub prefill_delay_ns: Ns,
    pub prefill_delay_max_ns: Ns,
    /// For how long nothing ran before a prompt came, beside usual pauses.
    pub asleep_ns: Ns,
    /// The numbers in names of steps: least and greatest.
    pub fields: BTreeMap<String, Tokens>,
    /// What no record says.
    pub not_seen: [&'static str; 4],
    /// Phases in order, steps of one phase behind each other as one.
    pub runs: Vec<PhaseRun>,
}

/// Decode steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decoded {
    pub steps: usize,
    pub p50_ns: Ns,
    pub p99_ns: Ns,
    /// From the first operation of a replay to the end of its last at the median; 0 without graphs.
    pub replay_p50_ns: Ns,
    /// The rest of a step at the median.
    pub between_p50_ns: Ns,
    /// Tokens of a step at the median.
    pub batch: Option<Tokens>,
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
    span: Span,
    /// The CUDA graph that it replays; 0 where nobody knows which.
    graph: Option<u32>,
    /// From the graph's first operation to the end of its last; empty without one.
    replay: Span,
}

impl Serving {
    /// Of the steps of a process; `None` where it serves no model.
    pub fn of(trace: &Trace, causes: &Causes<'_>, steps: &Steps) -> Option<Serving> {
        let served = served(trace, steps);
        let time = steps.steady_span().len();
        let is_decode = |it: &&Served| it.batch.phase == Phase::Decode;
        let (decodes, others): (Vec<&Served>, Vec<_>) = served.iter().partition(is_decode);
        let decode = Decoded::of(&decodes);
        let delays = delays(&served, decode.as_ref().map_or(0, |it| it.p50_ns));
        let mut graphs = BTreeMap::<Option<u32>, Vec<&Served>>::new();
        let (mut around, mut fields) = (Vec::new(), BTreeMap::<String, Tokens>::new());
        for &it in &decodes {
            graphs.entry(it.graph).or_default().push(it);
            around.push(Span::new(it.span.start, it.replay.start));
            around.push(Span::new(it.replay.end.min(it.span.end), it.span.end));
        }
        around.retain(|it| !it.is_empty());
        for (name, value) in served.iter().flat_map(|it| &it.batch.fields) {
            let of = fields.entry(name.clone()).or_insert((*value, *value));
            *of = (of.0.min(*value), of.1.max(*value));
        }
        let outside_graphs = graphs.remove(&None).map_or(0, |it| it.len());
        let graphs = graphs.into_iter();
        let pauses = served
            .windows(2)
            .map(|it| Span::new(it[0].span.end, it[1].span.start));
        let is_empty = |it: &Span| list_ops(trace, steps.process, Some(*it)).is_empty();
        let asleep = pauses.filter(is_empty).map(|it| it.len());
        (!served.is_empty()).then(|| Serving {
            process: trace.processes()[steps.process].info.pid,
            certainty: match steps.from {
                Origin::Tokens => "likely",
                _ => "fact",
            },
            time_ns: time,
            tokens: steps.tokens().map(|it| it.0),
            tokens_per_s: steps.tokens().map(|it| it.1),
            decode,
            graphs: graphs
                .filter_map(|(graph, of)| Some((graph?, Decoded::of(&of)?)))
                .collect(),
            outside_graphs,
            between: causes.idle_of_process(steps.process, &around),
            prefill_share: share(others.iter().map(|it| it.span.len()).sum(), time),
            prefill_delay_ns: delays.iter().sum(),
            prefill_delay_max_ns: delays.into_iter().max().unwrap_or_default(),
            asleep_ns: asleep.sum(),
            fields,
            not_seen: [
                "time to first token",
                "queue",
                "prefix caches",
                "preemptions",
            ],
            runs: PhaseRun::list(&served),
        })
    }
}

impl Decoded {
    fn of(steps: &[&Served]) -> Option<Decoded> {
        let mut batches: Vec<Tokens> = steps.iter().filter_map(|it| it.batch.tokens).collect();
        batches.sort_unstable();
        let quantile = |length: fn(&Served) -> Ns, share: f64| {
            let times: Vec<f64> = steps.iter().map(|it| length(it) as f64).collect();
            stats::quantile(&times, share).map(|it| it as Ns)
        };
        Some(Decoded {
            steps: steps.len(),
            p50_ns: quantile(|it| it.span.len(), 0.5)?,
            p99_ns: quantile(|it| it.span.len(), 0.99)?,
            replay_p50_ns: quantile(|it| it.replay.len(), 0.5)?,
            between_p50_ns: quantile(|it| it.span.len() - it.replay.len(), 0.5)?,
            batch: batches.get(batches.len() / 2).copied(),
        })
    }
}

impl PhaseRun {
    fn list(served: &[Served]) -> Vec<PhaseRun> {
        let is_one =
            |a: &Served, b: &Served| (a.batch.phase, a.span.end) == (b.batch.phase, b.span.start);
        let runs = served.chunk_by(is_one).map(|run| PhaseRun {
            phase: run[0].batch.phase,
            start_ns: run[0].span.start,
            end_ns: run[run.len() - 1].span.end,
            steps: run.len(),
        });
        runs.collect()
    }
}

fn served<'s>(trace: &Trace, steps: &'s Steps) -> Vec<Served<'s>> {
    let of = |step: usize| {
        let (batch, span) = (steps.batch(step)?, steps.spans[step]);
        let ops = list_ops(trace, steps.process, Some(span));
        let mut nodes = ops.iter().filter(|it| it.graph.is_some());
        let replay = nodes.clone().map(|it| it.span).reduce(Span::hull);
        Some(Served {
            batch,
            span,
            graph: nodes.next_back().and_then(|it| it.graph),
            replay: replay.unwrap_or(Span::new(span.start, span.start)),
        })
    };
    steps.steady.clone().filter_map(of).collect()
}

/// What prompts add to the time between two tokens of others, to each such time. Nobody waits where nobody asked before.
fn delays(served: &[Served], usual: Ns) -> Vec<Ns> {
    let is_end = |it: &Served| it.batch.phase == Phase::Decode;
    let more = |it: &Served| match it.batch.phase {
        Phase::Decode => 0,
        Phase::Prefill => it.span.len(),
        Phase::Mixed => (it.span.len() - usual).max(0),
    };
    let between: Vec<&[Served]> = served.split_inclusive(is_end).collect();
    let touch = |it: &&[&[Served]]| it[0].last().map(|it| it.span.end) == Some(it[1][0].span.start);
    let pairs = between.windows(2).filter(touch);
    pairs.map(|it| it[1].iter().map(more).sum()).collect()
}

#[cfg(test)]
mod tests;
