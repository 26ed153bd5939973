//! Collective communication that nothing runs beside.

use rustc_hash::FxHashSet;

use super::{DeviceFigures, Finding, Occurrence, Says, Scope, Severity};
use crate::thresholds;
use ::program::Framework;
use activity::text::{NAME_MAX, cut_middle};
use activity::units::{duration, percent};
use activity::{Ns, What};
use causes::graph::NONE;
use causes::{Bound, first_use};
use figures::busy::mostly;
use figures::collectives::{self, Collectives};
use figures::communication::has_any;

/// What is done with gradients and with sharded weights.
const OF_TRAINING: [&str; 2] = ["overlapping communication", "prefetching communication"];

const HIDING: &str = "hiding communication";

/// Words of what is sent: of its kernels' names, of the program's, and of ranges around it. Then what hides it, and what that is called in
/// a headline.
const ADVICE: [(&[&str], &str, &str); 5] = [
    (
        &["dispatch", "combine", "expert", "moe"],
        "Expert parallelism takes few SMs on purpose: split the batch in two, so that dispatch and combine of one half run while the other computes.",
        HIDING,
    ),
    (
        &["alltoall", "all_to_all", "a2a"],
        "Split the batch in two, so that the exchange of one half runs while the other computes.",
        HIDING,
    ),
    (
        &["sendrecv"],
        "A pipeline stage waits for its neighbour: more and smaller micro-batches, or an interleaved schedule, make the bubble shorter.",
        "a shorter pipeline bubble",
    ),
    (
        &["allgather", "all_gather"],
        "Each all-gather waits for the layer before it: prefetch, so that the next layer's runs while this one computes.",
        OF_TRAINING[1],
    ),
    (
        &[""],
        "Overlap: send finished parts (buckets) while the rest is computed. Or send less, or less often.",
        OF_TRAINING[0],
    ),
];

/// The row of what stages of a model send each other, and what is said where none is seen.
const STAGES: usize = 2;
const NEIGHBOURS: (&str, &str) = (
    "An exchange with neighbours: compute the border first and send it on a stream of its own, beside the inner work.",
    "overlapping exchange and inner work",
);

/// The first so many rows of `ADVICE` hold without a backward pass, too.
const EXCHANGES: usize = 3;

/// Of a pass without backward and optimizer, as tensor-parallel inference makes.
const INFERENCE: (&str, &str) = (
    "Without a backward pass each needs the product before it: cut products in parts, merge collectives, or use NVLink.",
    "cheaper collectives",
);

/// So long takes a bucket of 25 MB, PyTorch's default, over NVLink at 230 GB/s. Shorter ones are smaller already.
const BUCKET: Ns = 190_000;

/// Said first where it holds: on one stream nothing of `ADVICE` helps.
const SAME_STREAM: &str = "They run on the compute stream, one after the other with the kernels: give them a stream of their own.";

/// Of what runs beside other kernels for nine tenths.
const HIDDEN: &str =
    "Nearly all of it is hidden already: only less communication makes the rest shorter.";

const UNKNOWN: &str = "One late rank makes these kernels long on all others: record every rank to see who waits for whom.";

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let window = scope.window_on(f.index);
    let collectives = Collectives::of(scope.trace, f, window);
    // What a rank waits in them for a later one is another rule's, where the ranks are known.
    let waits = scope.ranks.map(|it| it.waits_on(f.index, window));
    let alone = collectives.alone - waits.into_iter().flatten().map(|it| it.1).sum::<Ns>();
    let [share, all] = [alone, collectives.took].map(|it| f.part(it));
    // One rank by itself does not show who waits: what takes much is told, though most of it is hidden.
    let is_much = scope.ranks.is_none() && all >= thresholds::COLLECTIVE_SHARE;
    let least = match is_much {
        true => cases::WORTH_SHARE.value(),
        false => thresholds::EXPOSED_SHARE,
    };
    if share < least {
        return None;
    }
    let (most, time) = collectives.most?;
    let mostly = mostly(time, collectives.took);
    let most = scope.trace.names().short(most);
    let length = |&(lane, row): &(usize, usize)| scope.trace.lanes()[lane].span(row).len();
    let mut rows = collectives.rows;
    rows.sort_by_cached_key(|at| (std::cmp::Reverse(length(at)), *at));
    // What waits for a late rank no overlap hides.
    let (long, waited) = match scope.ranks {
        Some(_) => (0, 0),
        None => collectives::waiting(scope.trace, &rows, is_inference(scope)),
    };
    let is_most = long > 0 && 2 * waited >= collectives.took;
    if cases::WAITS_FOR_A_RANK.holds(is_most) {
        return Some(waiting(scope, f, rows, (long, waited)));
    }
    // What runs beside them already hides nothing more.
    let beside = (f.busy_ns - collectives.took).max(0);
    if !cases::WORTH_SHARE.is_reached_by(f.part(beside)) {
        return only(scope, f, &rows, most);
    }
    let waits = likely_waited(long, waited);
    let (advice, hides) = advice(scope, rows.first().copied()?, 10 * alone < collectives.took);
    let (first, cure) = match is_on_compute_stream(scope, f, &rows) {
        true if hides != INFERENCE.1 => (SAME_STREAM, "a stream of its own for communication"),
        _ => ("", hides),
    };
    let last = scope.ranks.map_or(UNKNOWN, |_| "");
    let at: Vec<Occurrence> = rows.into_iter().map(Occurrence::Row).collect();
    Some(Finding {
        title: format!(
            "{} of communication between GPUs take {} ({}), {mostly} {}; {} ({}) of it is not overlapped{waits}",
            activity::text::counted(at.len() as u64, "kernel", "kernels"),
            duration(collectives.took),
            percent(all),
            cut_middle(most, NAME_MAX),
            duration(alone),
            percent(share),
        ),
        advice: [first, advice, last].join(" ").trim().to_owned(),
        change: match OF_TRAINING.contains(&hides) || scope.framework() != Framework::PyTorch {
            _ if hides.is_empty() || !has_wrapper(scope) => Vec::new(),
            true if collectives.took < BUCKET * at.len() as Ns => scope.change("gather", None),
            true => scope.change("communicate", None),
            false => Vec::new(),
        },
        cure,
        ..scope.found(f.span_ns, (alone - waited).clamp(0, beside), &at)
    })
}

/// What is said where one collective is all that ran. The protocol in the name of its kernel is none: NCCL calls all of them so.
fn only(scope: &Scope, f: &DeviceFigures, rows: &[(usize, usize)], name: &str) -> Option<Finding> {
    let (&[row], None, 1) = (rows, scope.ranks, f.kernels) else {
        return None;
    };
    Some(Finding {
        title: format!(
            "one collective is all that was recorded, {name}: it sends data, or waits for a rank that comes late"
        ),
        advice: "The traces of the other ranks show which one came last, and what it did before."
            .to_owned(),
        gain: Some("one operation: see the other ranks whether one came late".to_owned()),
        ..scope.found(f.span_ns, 0, &[Occurrence::Row(row)])
    })
}

fn likely_waited(long: usize, waited: Ns) -> String {
    let time = duration(waited);
    let words = || format!("; {long} most likely waited for another rank ({time})");
    (long > 0).then(words).unwrap_or_default()
}

/// What is said where so many that most likely wait for a rank take most of the time.
fn waiting(
    scope: &Scope,
    f: &DeviceFigures,
    rows: Vec<(usize, usize)>,
    (long, time): (usize, Ns),
) -> Finding {
    let (all, part) = (rows.len(), percent(f.part(time)));
    let who = format!("{long} of {all} collectives most likely waited for another rank");
    let at: Vec<Occurrence> = rows.into_iter().take(long).map(Occurrence::Row).collect();
    Finding {
        severity: Severity::Info,
        title: format!("{who}: {} ({part})", duration(time)),
        advice: UNKNOWN.to_owned(),
        gain: Some("record every rank to find the late one".to_owned()),
        says: Some(Says {
            bound: Bound::Peer,
            part: f.part(time),
            why: format!("{who} ({part})"),
        }),
        ..scope.found(f.span_ns, time, &at)
    }
}

/// Whether the longest of them runs on a stream that has half of the kernels' time, too.
fn is_on_compute_stream(scope: &Scope, f: &DeviceFigures, rows: &[(usize, usize)]) -> bool {
    let all: FxHashSet<(usize, usize)> = rows.iter().copied().collect();
    let (mut here, mut computing) = (0 as Ns, 0 as Ns);
    for (at, activity) in scope.operations(f).filter(|it| !all.contains(&it.0)) {
        if matches!(activity.what, What::Kernel(_)) {
            let is_here = rows.first().is_some_and(|first| first.0 == at.0);
            computing += activity.span.len();
            here += if is_here { activity.span.len() } else { 0 };
        }
    }
    computing > 0 && 2 * here >= computing
}

/// What hides a collective, by what it is.
fn advice(
    scope: &Scope,
    (lane, row): (usize, usize),
    is_hidden: bool,
) -> (&'static str, &'static str) {
    let trace = scope.trace;
    let What::Kernel(kernel) = trace.what(lane, row) else {
        return ("", "");
    };
    let shape = trace.shape(kernel.shape);
    let operation = trace.collective(&shape).map(|it| it.operation.clone());
    let graph = scope.causes.graph();
    let call = Some(graph.call_at((lane, row))).filter(|call| *call != NONE);
    let around = call.and_then(|call| first_use::operator(trace, graph, call));
    // Exchanges between experts are sends and receives, too: what is around the launch says so.
    let kernel = Some(trace.names().full(shape.name));
    let said = [operation.as_deref(), around.map(|it| it.1), kernel];
    let said: Vec<&str> = said.into_iter().flatten().collect();
    let said = said.join(" ").to_lowercase();
    let is_it = |it: &(&[&str], _, _)| it.0.iter().any(|word| said.contains(word));
    match ADVICE.iter().position(is_it) {
        _ if is_hidden => (HIDDEN, ""),
        // A graph's launch has no operator around it.
        Some(STAGES) if scope.has_name(|it| has_any(it, "alltoall all_to_all")) => {
            (ADVICE[STAGES - 1].1, HIDING)
        }
        Some(STAGES) if !has_model(scope) => NEIGHBOURS,
        Some(at) if at < EXCHANGES || !is_inference(scope) => (ADVICE[at].1, ADVICE[at].2),
        _ => INFERENCE,
    }
}

/// Whether a program of PyTorch has what sends gradients and weights by itself: others call collectives in their own code.
fn has_wrapper(scope: &Scope) -> bool {
    let is_its = |name: &str| has_any(name, "DistributedDataParallel FSDP FullyShard fully_shard");
    scope.framework() != Framework::PyTorch
        || scope.has_name(is_its)
        || scope
            .trace
            .stacks()
            .files()
            .any(|it| has_any(it, "nn/parallel/distributed fsdp"))
}

/// Whether layers of a model are seen: a framework's, or products of matrices, which solvers take in double precision.
fn has_model(scope: &Scope) -> bool {
    let is_layer = |name: &str| {
        let name = name.to_ascii_lowercase();
        has_any(&name, "gemm nvjet") && !has_any(&name, "dgemm zgemm f64")
    };
    matches!(scope.framework(), Framework::PyTorch | Framework::Jax) || scope.has_name(is_layer)
}

/// Whether PyTorch ran neither backward nor an optimizer, nor what gathers sharded weights.
fn is_inference(scope: &Scope) -> bool {
    #[rustfmt::skip]
    let trains = |name: &str| has_any(name, "backward Backward autograd:: optimizer Optimizer FSDP FullySharded");
    scope.framework() == Framework::PyTorch && cases::INFERENCE.holds(!scope.has_name(trains))
}
