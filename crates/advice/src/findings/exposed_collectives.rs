//! Collective communication that nothing runs beside.

use rustc_hash::FxHashSet;

use super::{DeviceFigures, Finding, Occurrence, Scope};
use crate::thresholds;
use activity::text::{NAME_MAX, cut_middle};
use activity::units::{duration, percent};
use activity::{Ns, What};
use causes::first_use;
use causes::graph::NONE;
use figures::collectives::Collectives;

/// Words of what is sent: of its kernels' names, of the program's, and of ranges around it. Then what hides it, and what that is called in
/// a headline.
const ADVICE: [(&[&str], &str, &str); 4] = [
    (
        &["alltoall", "all_to_all", "dispatch", "combine", "a2a"],
        "Expert parallelism takes few SMs on purpose: split the batch in two, so that dispatch and combine of one half run while the other computes.",
        "overlapping communication",
    ),
    (
        &["sendrecv"],
        "A pipeline stage waits for its neighbour: more and smaller micro-batches, or an interleaved schedule, make the bubble shorter.",
        "a shorter pipeline bubble",
    ),
    (
        &["allgather", "all_gather"],
        "Each all-gather waits for the layer before it: prefetch, so that the next layer's runs while this one computes.",
        "prefetching communication",
    ),
    (
        &[],
        "Overlap: send finished parts (buckets) while the rest is computed. Or send less, or less often.",
        "overlapping communication",
    ),
];

/// Said first where it holds: on one stream nothing of `ADVICE` helps.
const SAME_STREAM: &str = "They run on the compute stream, one after the other with the kernels: give them a stream of their own.";

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
    let most = scope.trace.names().short(collectives.most?);
    let length = |&(lane, row): &(usize, usize)| scope.trace.lanes()[lane].span(row).len();
    let mut rows = collectives.rows;
    rows.sort_by_cached_key(|at| (std::cmp::Reverse(length(at)), *at));
    // One that takes most of it waits for a late rank, which no overlap hides.
    let lengths: Vec<Ns> = rows.iter().map(length).collect();
    let one = match (scope.ranks, &lengths[..]) {
        (None, &[first, second, .., _]) if 2 * first >= collectives.took => first - second,
        _ => 0,
    };
    let of_one = match one {
        0 => String::new(),
        _ => format!(", one of them {}", duration(lengths[0])),
    };
    // What runs beside them already hides nothing more.
    let beside = (f.busy_ns - collectives.took).max(0);
    if !cases::WORTH_SHARE.is_reached_by(f.part(beside)) {
        return None;
    }
    let bound = (alone - one).clamp(0, beside);
    let (advice, hides) = advice(scope, rows.first().copied()?);
    let (first, cure) = match is_on_compute_stream(scope, f, &rows) {
        true => (SAME_STREAM, "a stream of its own for communication"),
        false => ("", hides),
    };
    let last = if scope.ranks.is_none() { UNKNOWN } else { "" };
    let at: Vec<Occurrence> = rows.into_iter().map(Occurrence::Row).collect();
    Some(Finding {
        title: format!(
            "{} of communication between GPUs take {} ({}){of_one}; {} ({}) of it is not overlapped, mostly {}",
            activity::text::counted(at.len() as u64, "kernel", "kernels"),
            duration(collectives.took),
            percent(all),
            duration(alone),
            percent(share),
            cut_middle(most, NAME_MAX),
        ),
        advice: [first, advice, last].join(" ").trim().to_owned(),
        change: scope.change("communicate", None),
        cure,
        ..scope.found(f.span_ns, bound, &at)
    })
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
fn advice(scope: &Scope, (lane, row): (usize, usize)) -> (&'static str, &'static str) {
    let activity = scope.trace.activity(lane, row);
    let What::Kernel(kernel) = activity.what else {
        return ("", "");
    };
    let shape = scope.trace.shape(kernel.shape);
    let operation = scope
        .trace
        .collective(&shape)
        .map(|it| it.operation.clone());
    let graph = scope.causes.graph();
    let call = Some(graph.call_at((lane, row))).filter(|call| *call != NONE);
    let around = call.and_then(|call| first_use::operator(scope.trace, graph, call));
    // Exchanges between experts are sends and receives, too: what is around the launch says so.
    let said = [
        operation.as_deref(),
        around.map(|it| it.1),
        Some(scope.trace.names().full(shape.name)),
    ];
    let said = said
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase();
    let found = ADVICE
        .iter()
        .find(|it| it.0.is_empty() || it.0.iter().any(|word| said.contains(word)));
    found.map_or(("", ""), |it| (it.1, it.2))
}
