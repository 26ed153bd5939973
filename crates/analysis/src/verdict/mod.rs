//! What bounds a device, in one line: the first thing to know about a timeline.
//!
//! The time of a device falls into classes that sum to it (`split`). They are what ran while anything ran, and else why
//! nothing did (the pieces of [`super::causes`]). The chain of dependencies that ends with the last operation lies on
//! the CPU in part (`path`). That part says whether faster kernels would make a GPU faster that is mostly busy.
//! `docs/WHY.md` has the rule and its thresholds.
//!
//! With steps that speak for the program the verdict speaks of the steady ones, as findings do; without, of everything
//! looked at.

mod path;
mod split;
#[cfg(test)]
mod tests;
mod words;

use serde::Serialize;

pub use super::causes::Bound;
use super::causes::Causes;
use super::figures::{self, DeviceFigures, share};
use super::findings::thresholds;
use super::lines::LineShare;
use super::parallel;
use super::ranks::JobAnalysis;
use super::steps::{self, Steps};
use super::watching::{self, WatchingCost};
use activity::{Ns, Span, units};
use split::Split;
use trace::Trace;
pub use words::nothing_ran;
pub(super) use words::{NAME_MAX, of_host};

/// What bounds a device, or all of them together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The device's id; `None` for all devices together.
    pub device: Option<u32>,
    /// What it is.
    pub bound_by: Bound,
    /// Its part of `span_ns`.
    pub share: f64,
    /// Nothing shorter is possible without less work. It is the busiest engine's sum, or the longest chain of
    /// operations that wait for each other's events, whichever is longer. Never above `span_ns`.
    pub ideal_ns: Ns,
    /// First operation to the last one of what was looked at; time that the profiler took, or whose
    /// records are missing, counts in no share.
    pub span_ns: Ns,
    /// Steady steps that were looked at; `None` where there are no steps.
    pub steps: Option<usize>,
    /// The source line at which the launching thread was seen for most of that time; absent where too few samples tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<LineShare>,
    /// All in one line.
    pub text: String,
}

/// A GPU that the host keeps idle for this part of the time is bound by the host, however busy it is for the rest:
/// XProf calls a step that waits for its input for 20 % of it input-bound. A GPU-bound training step on a V100 idles
/// for 1.6 %, a launch-bound one on an A100 for 76 %.
pub const STALL_SHARE: f64 = 0.20;

/// So is one that idles for this part only, where [`PATH_SHARE`] of the chain that ends with the last operation lies on
/// the CPU: Faster kernels would change nothing.
pub const STALL_ON_PATH: f64 = 0.10;

/// See [`STALL_ON_PATH`].
pub const PATH_SHARE: f64 = 0.5;

/// What takes less than this part of the time bounds nothing.
pub const BOUND_MIN: f64 = 0.25;

/// The verdict on each of `devices`, whose figures are those of `window`, and the one on all.
/// With `steps` those devices that have some which speak for the program ([`Steps::are_telling`]) are judged by their
/// steady ones.
#[must_use]
pub fn find(
    trace: &Trace,
    causes: &Causes<'_>,
    window: Option<Span>,
    devices: &[DeviceFigures],
    steps: &[Steps],
) -> Vec<Verdict> {
    let cost = watching::measure(trace, causes, devices, window);
    of_job(trace, causes, (window, devices), steps, None, cost.as_ref())
}

/// The same where it is known which ranks of a job wait for whom, and what watching may have cost. What a device waits
/// in collectives it does not compute.
#[must_use]
pub fn of_job(
    trace: &Trace,
    causes: &Causes<'_>,
    (window, devices): (Option<Span>, &[DeviceFigures]),
    steps: &[Steps],
    ranks: Option<&JobAnalysis>,
    watching: Option<&WatchingCost>,
) -> Vec<Verdict> {
    let steady = steps::by_device(trace, steps);
    let records = causes.graph().ops.len();
    let of_device = |device: &DeviceFigures| {
        let steady = steady.get(&device.index);
        let in_steps = steady.and_then(|steps| {
            let window = steps.steady_span();
            let f = figures::of_device(trace, device.index, Some(window))?;
            Some((f, window, steps.steady.len()))
        });
        let (f, window, count) = match &in_steps {
            Some((f, window, count)) => (f, Some(*window), Some(*count)),
            None => (device, window, None),
        };
        let split = Split::of(trace, causes, f, window, ranks);
        let verdict = judge(trace, Some(f.device), &split, count, ranks);
        // What all of them took is said on the clock of all.
        let process = trace.streams_of(f.index).next();
        let span = ranks.zip(process).map_or(split.span, |(ranks, (_, lane))| {
            ranks.on_all(lane.key().process, split.span)
        });
        (verdict, Split { span, ..split })
    };
    let mut judged: Vec<(Verdict, Split)> = parallel::map(records, devices, of_device);
    let mut whole = match judged.as_slice() {
        [] => Verdict {
            device: None,
            bound_by: Bound::Nothing,
            share: 0.0,
            ideal_ns: 0,
            span_ns: 0,
            steps: None,
            line: None,
            text: nothing_ran(trace).to_owned(),
        },
        [(one, _)] => Verdict {
            device: None,
            ..one.clone()
        },
        several => together(trace, several, ranks),
    };
    if let Some(watched) = watching.and_then(watched) {
        whole.text.push_str(&watched);
        if let [(one, _)] = judged.as_mut_slice() {
            one.text.push_str(&watched);
        }
    }
    let mut verdicts = vec![whole];
    verdicts.extend(judged.into_iter().map(|(verdict, _)| verdict));
    verdicts
}

/// What of the time may be the recording of graphs' nodes, where that is worth a word: without cuptop it is not there.
fn watched(cost: &WatchingCost) -> Option<String> {
    let [least, most] = cost.nodes_ns.map(|it| share(it, cost.span_ns));
    (least >= thresholds::WATCHED_SHARE).then(|| {
        let [least, most] = [least, most.min(1.0)].map(units::percent);
        format!("; recording its graph nodes may be {least} to {most} of it (an estimate)")
    })
}

/// All devices: their classes added up, the hull of their spans.
fn together(trace: &Trace, several: &[(Verdict, Split)], ranks: Option<&JobAnalysis>) -> Verdict {
    let steps = several.iter().filter_map(|(v, _)| v.steps).max();
    let sum = several.iter().map(|(_, split)| split.clone());
    let sum = sum.reduce(Split::add).unwrap_or_default();
    let verdict = judge(trace, None, &sum, steps, ranks);
    Verdict {
        text: format!("{} GPUs: {}", several.len(), verdict.text),
        ..verdict
    }
}

fn judge(
    trace: &Trace,
    device: Option<u32>,
    split: &Split,
    steps: Option<usize>,
    ranks: Option<&JobAnalysis>,
) -> Verdict {
    let bound_by = bound(split);
    let time = match bound_by {
        Bound::Peer if ranks.is_some() && split.waits_for_ranks() => split.waiting,
        bound => split.time_of(bound),
    };
    let share = share(time, split.counted());
    let line = split.seen.get(&bound_by).and_then(|it| it.telling(trace));
    Verdict {
        device,
        bound_by,
        share,
        ideal_ns: split.ideal,
        span_ns: split.span.len(),
        steps,
        text: words::say(
            trace,
            split,
            bound_by,
            share,
            line.as_ref(),
            steps.is_some(),
            (ranks, device.is_none()),
        ),
        line,
    }
}

/// What takes most, where it takes much.
fn bound(split: &Split) -> Bound {
    let whole = split.counted();
    let of = |bound| split.time_of(bound);
    let most = |bounds: &[Bound]| {
        let most = bounds.iter().copied().max_by_key(|&b| of(b));
        most.unwrap_or(Bound::Nothing)
    };
    let stalls = [Bound::Sync, Bound::Launch, Bound::Host];
    let stall: Ns = stalls.iter().map(|&b| of(b)).sum();
    let is_stalled = share(stall, whole) >= STALL_SHARE
        || (share(stall, whole) >= STALL_ON_PATH && split.path_share() >= PATH_SHARE);
    // A GPU that waits for a late rank is kept waiting too, though a kernel runs meanwhile.
    let waiting = split.waiting;
    if share(waiting, whole) >= STALL_SHARE && waiting >= stall.max(of(Bound::Unknown)) {
        return Bound::Peer;
    }
    let others = [Bound::Unknown, Bound::Peer, Bound::Copy, Bound::Compute];
    let other = most(&others);
    // A GPU that computes for most of the time and is kept waiting for the rest is kept waiting. One that copies all
    // the while is not.
    let is_other = other != Bound::Compute && of(other) > stall;
    // Idle time that nothing explains may be any of it.
    let unknown = of(Bound::Unknown);
    if is_stalled && unknown > stall && share(unknown, whole) >= BOUND_MIN {
        return Bound::Unknown;
    }
    if is_stalled && !is_other {
        return most(&stalls);
    }
    if share(of(other), whole) >= BOUND_MIN {
        other
    } else {
        Bound::Nothing
    }
}
