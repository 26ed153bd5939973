//! What bounds a device, in one line: the first thing to know about a timeline.
//!
//! The time of a device falls into classes that sum to it (`split`). They are what ran while anything ran, and else why
//! nothing did (the pieces of [`causes`]). The chain of dependencies that ends with the last operation lies on
//! the CPU in part (`path`). That part says whether faster kernels would make a GPU faster that is mostly busy.
//! `docs/ANSWERS.md` has the rule.
//!
//! With steps that speak for the program the verdict speaks of the steady ones, as findings do; without, of everything
//! looked at.

mod path;
mod retold;
mod split;
#[cfg(test)]
mod tests;
mod words;

use serde::Serialize;

use crate::findings::Finding;
use crate::findings::failed::Failed;
use activity::units::share;
use activity::{Ns, Span};
pub use causes::Bound;
use causes::Causes;
use causes::stacks::LineShare;
use figures::DeviceFigures;
use figures::steps::{self, Steps};
use jobs::JobAnalysis;
use split::Split;
use trace::{Trace, parallel};
use words::Told;
pub use words::{HEADLINE_MAX, nothing_ran};

/// What bounds a device, or all of them together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
    /// First operation to the last one of what was looked at; time that was not recorded counts in no share.
    pub span_ns: Ns,
    /// Steady steps that were looked at; `None` where there are no steps.
    pub steps: Option<usize>,
    /// The source line at which the launching thread was seen for most of that time; absent where too few samples tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<LineShare>,
    /// The headline: the class, how much, and where.
    pub text: String,
    /// The middle of the headline of an idle and of a busy GPU: ": GPU idle 76 % of each 37.2 ms step".
    #[serde(skip)]
    pub frames: [String; 2],
    /// What recording made too large of it, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distorted: Option<String>,
    /// What the best cure brings: that of the first finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<String>,
}

/// A GPU that the host keeps idle for this part of the time is bound by the host, however busy it is for the rest:
/// XProf calls a step that waits for its input for 20 % of it input-bound. A GPU-bound training step on a V100 idles
/// for 1.6 %, a launch-bound one on an A100 for 76 %.
pub const STALL_SHARE: f64 = 0.20;

/// One that computes for longer is, where it is kept idle for this part.
pub const STALL_BELOW: f64 = 0.33;

/// So is one that idles for this part only, where [`PATH_SHARE`] of the chain that ends with the last operation lies on
/// the CPU: Faster kernels would change nothing.
pub const STALL_ON_PATH: f64 = STALL_SHARE;

/// See [`STALL_ON_PATH`].
pub const PATH_SHARE: f64 = 0.5;

/// What takes less than this part of the time bounds nothing.
pub const BOUND_MIN: f64 = 0.25;

/// The verdict on each of `devices`, whose figures are those of `window`, and the one on all. With `steps` those
/// devices that have some which speak for the program ([`Steps::are_telling`]) are judged by their steady ones. `ranks`
/// tells who waits for whom in a job: what a device waits in collectives it does not compute.
pub fn find(
    trace: &Trace,
    causes: &Causes<'_>,
    (window, devices): (Option<Span>, &[DeviceFigures]),
    steps: &[Steps],
    ranks: Option<&JobAnalysis>,
) -> Vec<Verdict> {
    let steady = steps::by_device(trace, steps);
    let records = causes.graph().ops.len();
    let of_device = |device: &DeviceFigures| {
        let steady = steady.get(&device.index);
        let in_steps = steady.and_then(|steps| {
            let window = steps.steady_span();
            let f = figures::of_device(trace, device.index, Some(window))?;
            let f = f.with_idle(0, causes.pause_behind(device.index, window));
            Some((f, window, (steps.median_ns, steps.steady.len())))
        });
        let marked = (in_steps.is_none() && window.is_none() && ranks.is_none())
            .then(|| device.clone().since(steps::begins(trace, device.index)));
        let (f, window, step) = match &in_steps {
            Some((f, window, step)) => (f, Some(*window), Some(*step)),
            None => (marked.as_ref().unwrap_or(device), window, None),
        };
        let split = Split::of(trace, causes, f, window, ranks);
        let verdict = judge(trace, Some(f.device), &split, step, 1);
        // What all of them took is said on the clock of all.
        let process = trace.streams_of(f.index).next();
        let span = ranks.zip(process).map_or(split.span, |(ranks, (_, lane))| {
            ranks.on_all(lane.key().process, split.span)
        });
        (verdict, step, Split { span, ..split })
    };
    let judged = parallel::map(records, devices, of_device);
    let whole = match judged.as_slice() {
        [] => Verdict {
            text: nothing_ran(trace).to_owned(),
            ..Verdict::default()
        },
        [(one, ..)] => Verdict {
            device: None,
            ..one.clone()
        },
        several => {
            let step = several.iter().filter_map(|it| it.1).max();
            let sum = several.iter().map(|(.., split)| split.clone());
            let sum = sum.reduce(Split::add).unwrap_or_default();
            judge(trace, None, &sum, step, several.len())
        }
    };
    let is_stalled = matches!(whole.bound_by, Bound::Host | Bound::Launch | Bound::Sync);
    // What keeps all of them idle for longer is told, and not who is late.
    let late = ranks.and_then(|it| words::straggler(it, whole.span_ns));
    let whole = match late.filter(|of| !is_stalled || of.0 >= whole.share) {
        Some((share, text)) => Verdict {
            bound_by: Bound::Peer,
            share,
            line: None,
            text,
            frames: Default::default(),
            ..whole
        },
        None => whole,
    };
    let mut verdicts = vec![whole];
    verdicts.extend(judged.into_iter().map(|(verdict, ..)| verdict));
    let graph = causes.graph();
    let failed = window.is_none().then(|| Failed::of(trace, graph)).flatten();
    let failed = failed.filter(Failed::is_all);
    let instead = failed.map(|failed| format!("no kernel ran: {}", failed.text()));
    let instead = instead.or_else(|| graph.capture(window).map(words::of_capture));
    if let Some(text) = instead {
        for verdict in &mut verdicts {
            verdict.bound_by = Bound::Nothing;
            (verdict.share, verdict.line) = (0.0, None);
            verdict.frames = Default::default();
            verdict.text.clone_from(&text);
        }
    }
    verdicts
}

/// Puts what the first finding's cure brings behind the headline of all.
pub fn promise(verdicts: &mut [Verdict], first: Option<&Finding>) {
    let gain = first.and_then(Finding::gain);
    // Of one device the whole says the same.
    let same = if verdicts.len() == 2 { 2 } else { 1 };
    for verdict in verdicts.iter_mut().take(same) {
        verdict.gain.clone_from(&gain);
        if let Some(says) = first.and_then(|it| it.says.as_ref()) {
            verdict.retell(says);
        }
    }
}

/// Says of the whole what recording made of it, where the CPU's part is what counts.
pub fn distort(verdicts: &mut [Verdict], by: impl FnOnce() -> Option<String>) {
    let is_stall =
        |it: &&mut Verdict| matches!(it.bound_by, Bound::Host | Bound::Launch | Bound::Sync);
    if let Some(whole) = verdicts.first_mut().filter(is_stall) {
        whole.distorted = by();
    }
}

fn judge(
    trace: &Trace,
    device: Option<u32>,
    split: &Split,
    step: Option<(Ns, usize)>,
    devices: usize,
) -> Verdict {
    let bound = bound(split);
    let is_idle = matches!(bound, Bound::Host | Bound::Launch | Bound::Sync);
    let time = match bound {
        Bound::Peer if split.waits_for_ranks() => split.waiting,
        _ if is_idle && split.is_cold() => split.cold(),
        bound => split.time_of(bound),
    };
    let part = share(time, split.whole());
    let line = split.seen.get(&bound).and_then(|it| it.telling(trace));
    let told = Told {
        trace,
        split,
        bound,
        part,
        line: line.as_ref(),
        step,
        devices,
    };
    Verdict {
        device,
        bound_by: bound,
        share: part,
        ideal_ns: split.ideal,
        span_ns: split.span.len(),
        steps: step.map(|(_, count)| count),
        text: told.say(),
        distorted: None,
        frames: told.frames(),
        line,
        gain: None,
    }
}

/// What takes most, where it takes much.
fn bound(split: &Split) -> Bound {
    if split.is_single() {
        return Bound::Nothing;
    }
    let whole = split.counted();
    let of = |bound| split.time_of(bound);
    let most = |bounds: &[Bound]| {
        let most = bounds.iter().copied().max_by_key(|&b| of(b));
        most.unwrap_or(Bound::Nothing)
    };
    let stalls = [Bound::Sync, Bound::Launch, Bound::Host];
    let stall: Ns = stalls.iter().map(|&b| of(b)).sum();
    // Syncs can go, whatever the kernels take.
    let is_less = stall < of(Bound::Compute) && most(&stalls) != Bound::Sync;
    let least = match is_less {
        _ if split.path_share() >= PATH_SHARE => STALL_ON_PATH,
        true => STALL_BELOW,
        false => STALL_SHARE,
    };
    let is_stalled = share(stall, whole) >= least;
    // A GPU that waits for a late rank is kept waiting too, though a kernel runs meanwhile.
    let waiting = split.waiting;
    if share(waiting, whole) >= STALL_SHARE && waiting >= stall.max(of(Bound::Unknown)) {
        return Bound::Peer;
    }
    let others = [Bound::Unknown, Bound::Peer, Bound::Copy, Bound::Compute];
    let other = most(&others);
    // A GPU that computes for most of the time and is kept waiting for the rest is kept waiting. One that copies all
    // the while is not.
    let is_other = of(most(&others[..3])) > stall;
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
