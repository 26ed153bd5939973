//! What bounds a device, in one line: the first thing to know about a timeline.
//!
//! The time of a device falls into classes that sum to it (`split`). They are what ran while anything ran, and else why
//! nothing did (the pieces of [`causes`]). `docs/ANSWERS.md` has the rule.
//!
//! With steps the verdict speaks of the main kind of them, without the odd ones; else of everything looked at. Odd steps that lose
//! more take its place (`odd`), and what the run is made of beside stands behind it.

mod awaited;
mod elsewhere;
mod gain;
mod instead;
mod odd;
mod on_cpu;
mod outside;
mod parts;
mod path;
mod retold;
mod scope;
mod split;
#[cfg(test)]
mod tests;
mod words;

use serde::Serialize;

use activity::text::counted;
use activity::units::{duration, share};
use activity::{Ns, Span};
pub use causes::Bound;
use causes::Causes;
use causes::stacks::LineShare;
pub use elsewhere::lead;
use figures::DeviceFigures;
use figures::lost;
use figures::steps::{self, BehindWarmUp, StepKind, Steps};
pub use gain::{is_beside, promise};
pub use instead::fail;
use jobs::JobAnalysis;
pub use odd::OddSteps;
pub use parts::has_tail;
use scope::StepScope;
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
    /// The least that it could take: the busiest engine's sum, or the longest chain of operations that wait for each other's events.
    /// It is never above what the findings' cures are predicted to reach, or `span_ns`.
    pub ideal_ns: Ns,
    /// First operation to the last one of what was looked at; time that was not recorded counts in no share.
    pub span_ns: Ns,
    /// Steady steps that were looked at; `None` where there are no steps.
    pub steps: Option<usize>,
    /// What it is of.
    pub scope: AnswerScope,
    /// What it costs: `share` of `span_ns`, and of a step.
    pub cost_ns: Ns,
    /// See `cost_ns`; absent where there are no steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_a_step_ns: Option<Ns>,
    /// The source line at which the launching thread was seen for most of that time; absent where too few samples tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<LineShare>,
    /// The headline: the class, how much, and where.
    pub text: String,
    /// The middle of the headline of an idle and of a busy GPU: ": GPU idle 76 % of each 37.2 ms step".
    #[serde(skip)]
    pub frames: [String; 2],
    /// The part of the time for which its GPUs were idle.
    #[serde(skip)]
    pub idle: f64,
    /// What recording made too large of it, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distorted: Option<String>,
    /// What it would be without a late rank: bound, share, text. It stands in its place where a cure of it brings more.
    #[serde(skip)]
    pub but_for_late: Option<(Bound, f64, String)>,
    /// What the best cure brings: that of the first finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<String>,
    /// What to do where nobody knows what that brings; else empty.
    #[serde(skip)]
    pub next: String,
    /// The odd steps of the kind that it is of, where they cost much.
    #[serde(skip)]
    pub odd: Option<OddSteps>,
    /// Whether what is told first beside it takes most of the run, or of its steps: that is told on the smallest screen, too.
    #[serde(skip)]
    pub is_mostly_beside: bool,
    /// What the run is made of beside that: odd steps, other kinds of steps, the start-up. A sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
}

/// What an answer is of: its shares and its times are of the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AnswerScope {
    pub of: Answered,
    /// What tells these steps from other kinds ("decode"); absent where there is one kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Median time of one of these steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_ns: Option<Ns>,
    /// From the first operation of it to the last, in the timeline's own time.
    pub start_ns: Ns,
    /// See `start_ns`.
    pub end_ns: Ns,
}

/// What of a timeline an answer is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Answered {
    /// The steady steps of the kind that takes most time, without the odd ones.
    #[serde(rename = "steady steps")]
    Steps,
    /// The odd ones among them.
    #[serde(rename = "odd steps")]
    OddSteps,
    /// A pass of a scenario, or the last part of a program that runs.
    #[serde(rename = "a part of the timeline")]
    Window,
    /// The one step that a profiler marked, from where it begins.
    #[serde(rename = "the marked step")]
    Marked,
    #[default]
    #[serde(rename = "the whole timeline")]
    Run,
}

/// A GPU that the host keeps idle for this part of the time is bound by the host, however busy it is for the rest:
/// XProf calls a step that waits for its input for 20 % of it input-bound. A GPU-bound training step on a V100 idles
/// for 1.6 %, a launch-bound one on an A100 for 76 %.
pub const STALL_SHARE: f64 = 0.20;

/// One that computes for longer is, where it is kept idle for this part.
pub const STALL_BELOW: f64 = 0.33;

/// Communication that nothing runs beside bounds from this part on, though kernels take longer.
pub const EXPOSED_MIN: f64 = 0.30;

/// What takes less than this part of the time bounds nothing.
pub const BOUND_MIN: f64 = 0.25;

/// The verdict on each of `devices`, whose figures are those of `window`, and the one on all. With `steps` those
/// devices that have some are judged by their steady ones. `ranks`
/// tells who waits for whom in a job: what a device waits in collectives it does not compute.
pub fn find(
    trace: &Trace,
    causes: &Causes<'_>,
    (window, devices): (Option<Span>, &[DeviceFigures]),
    (steps, behind): (&[Steps], Option<&BehindWarmUp>),
    ranks: Option<&JobAnalysis>,
) -> Vec<Verdict> {
    let steady = steps::by_device(trace, steps);
    let records = causes.graph().ops.len();
    let looked = (trace, causes, window, ranks);
    let of_device = |device: &DeviceFigures| on(looked, device, steady.get(&device.index).copied());
    let judged = parallel::map(records, devices, of_device);
    let mut whole = match judged.as_slice() {
        [] => {
            let (most, beside) = on_cpu::told(trace);
            let most = most.map_or_else(String::new, |it| format!("; {it}"));
            Verdict {
                text: nothing_ran(trace).to_owned() + &most,
                beside,
                ..Verdict::default()
            }
        }
        [(one, ..)] => Verdict {
            device: None,
            ..one.clone()
        },
        several => jointly(looked, several),
    };
    let is_stalled = whole.bound_by.is_stall();
    // What keeps all of them idle for longer is told, and not who is late.
    let late = ranks.and_then(|it| words::straggler(it, whole.span_ns));
    let late = late.filter(|of| !is_stalled || of.0 >= whole.share);
    let is_late = late.is_some();
    let waits = ranks.and_then(|it| awaited::waits(it, devices));
    whole.beside.extend(waits.filter(|_| !is_late));
    if let Some((share, text)) = late {
        let text_of = std::mem::take(&mut whole.text);
        whole.but_for_late = Some((whole.bound_by, whole.share, text_of));
        (whole.bound_by, whole.share) = (Bound::Peer, share);
        (whole.line, whole.text, whole.frames) = (None, text, Default::default());
    }
    if let Some(main) = steps::main(steps).filter(|_| whole.scope.of == Answered::Steps) {
        let idle = judged.iter().map(|(.., split)| split.idle()).max();
        let is_whole = window.is_none();
        beside(
            &mut whole,
            (trace, causes),
            main,
            (idle.unwrap_or(0), is_whole, is_late),
        );
    }
    if window.is_none() && whole.scope.of != Answered::Marked {
        let is_run = whole.scope.of == Answered::Run;
        let loaded = || scope::loaded(trace, whole.span_ns, whole.scope.start_ns);
        if let Some(behind) = behind.filter(|_| is_run && steps.is_empty() && ranks.is_none()) {
            let which = format!("behind {}", behind.which);
            let of = (behind.span, which.as_str());
            let told = parts::worked((trace, causes), behind.process, of, &[]);
            whole.beside.extend(told);
        }
        let told = outside::told(trace, causes);
        let is_before = told.iter().any(|it| it.1.contains(outside::BEFORE));
        let loaded = (is_run && !is_before).then(loaded).flatten();
        let told = told.into_iter().map(|it| it.1);
        let little = is_run.then(|| little(devices)).flatten();
        // Which kernel takes long at times is told before what is beside all of them.
        let [long, types] = parts::of_kernels(trace, causes, devices);
        whole.beside.splice(0..0, long);
        whole.beside.extend(types);
        whole
            .beside
            .extend(little.into_iter().chain(loaded).chain(told));
        whole.beside.extend(lost::cut_off(trace, causes.graph()));
    }
    let mut verdicts = vec![whole];
    verdicts.extend(judged.into_iter().map(|(verdict, ..)| verdict));
    instead::put(&mut verdicts, (trace, causes, window), devices);
    verdicts
}

/// A GPU that works for less than so much of the time has next to no work, whatever it waits for.
const LITTLE_WORK: Ns = 1_000;
const NEXT_TO_NONE: &str = "next to no work for a GPU";

/// That all kernels of a run took next to no time.
fn little(devices: &[DeviceFigures]) -> Option<String> {
    let busy: Ns = devices.iter().map(|f| f.busy_ns).sum();
    let whole = devices.iter().map(|f| f.span_ns).max().unwrap_or(0);
    let kernels: u64 = devices.iter().map(|f| f.kernels).sum();
    let is_told = kernels > 1 && LITTLE_WORK.saturating_mul(busy) < whole;
    let (kernels, busy) = (counted(kernels, "kernel", "kernels"), duration(busy));
    is_told.then(|| format!("{NEXT_TO_NONE}: {kernels}, {busy} in all"))
}

/// What is looked at: a stretch of a timeline, or all of it, and the ranks of a job.
type Looked<'a> = (
    &'a Trace,
    &'a Causes<'a>,
    Option<Span>,
    Option<&'a JobAnalysis>,
);

/// The verdict on a device, by its steps where it has some.
fn on(
    (trace, causes, window, ranks): Looked<'_>,
    device: &DeviceFigures,
    steady: Option<&Steps>,
) -> (Verdict, Option<StepScope>, Split) {
    let in_steps = steady.and_then(|it| Split::of_steps(trace, causes, device.index, it, ranks));
    let step = steady.filter(|_| in_steps.is_some()).map(StepScope::of);
    let is_whole = step.is_none() && window.is_none() && ranks.is_none();
    let begins = || steps::begins(trace, device.index);
    let marked = is_whole.then(begins).flatten();
    let split = in_steps.unwrap_or_else(|| {
        let f = device.clone().since(marked);
        Split::of(trace, causes, &f, window, ranks)
    });
    let of = match (window, marked) {
        (Some(_), _) => Answered::Window,
        (None, Some(_)) => Answered::Marked,
        (None, None) => Answered::Run,
    };
    let verdict = judge(trace, Some(device.device), &split, step.as_ref(), (of, 1));
    // What all of them took is said on the clock of all.
    let process = trace.streams_of(device.index).next();
    let span = ranks.zip(process).map_or(split.span, |(ranks, (_, lane))| {
        ranks.on_all(lane.key().process, split.span)
    });
    (verdict, step, Split { span, ..split })
}

/// Says of the whole what recording made of it, where the CPU's part is what counts, or is told beside it.
pub fn distort(verdicts: &mut [Verdict], by: impl FnOnce() -> Option<String>) {
    let is_stall = |it: &&mut Verdict| it.bound_by.is_stall() || it.idle >= STALL_SHARE;
    if let Some(whole) = verdicts.first_mut().filter(is_stall) {
        whole.distorted = by();
    }
}

/// Odd steps and other kinds are told from this part of the steady steps' time on.
const TOLD_SHARE: f64 = 0.05;

/// Puts what the run is made of beside its main steps, in which a GPU was idle for so long, behind a verdict. Odd steps that lose
/// more take its place, but that of a late rank. Of a part of a run the start is no start-up.
fn beside(
    verdict: &mut Verdict,
    (trace, causes): (&Trace, &Causes<'_>),
    steps: &Steps,
    (idle, is_whole, is_late): (Ns, bool, bool),
) {
    let all: Ns = steps.steady().iter().map(|it| it.len()).sum();
    // What its own steps are idle for is told behind what takes longer.
    let own = std::mem::take(&mut verdict.beside);
    for (at, kind) in steps.kinds.iter().enumerate() {
        if at > 0 && share(kind.total_ns, all) >= TOLD_SHARE {
            verdict.is_mostly_beside |= 2 * kind.total_ns > all;
            let leads = OddSteps::of_kind(trace, causes, steps, kind).filter(|_| !is_late);
            match leads {
                Some(odd) => lead_by_kind(verdict, odd, steps.main()),
                None => (verdict.beside).push(scope::other_kind(kind, share(kind.total_ns, all))),
            }
        }
        let odd = OddSteps::of(trace, causes, steps, kind);
        let Some(odd) = odd.filter(|it| it.share >= TOLD_SHARE) else {
            continue;
        };
        // What comes once in steps that a start-up is ten times as long as is a part of starting.
        let starts = is_whole && steps.start_up.len() > 10 * all;
        let is_much = cases::ODD_COST.is_reached_by(odd.share) && !starts || odd.recur();
        // Why one rank makes steps odd is said of it.
        let is_mended = !odd.is_recording() && !odd.is_seam();
        let is_first = at == 0 && odd.total_ns > idle && is_much && !is_late && is_mended;
        if at == 0 {
            verdict.odd = Some(odd.clone());
        }
        if !is_first {
            verdict.beside.push(odd.sentence());
            continue;
        }
        let class = verdict.text.split(':').next().unwrap_or_default();
        // What happened once or twice is no saving of the next run, and what kernels do has to be done.
        let is_saved = odd.is_habit() && odd.bound_by != Bound::Compute;
        let saves = is_saved.then(|| format!("{} · ", odd.gain()));
        let cure = odd.cure().map(|it| format!("{it} · "));
        verdict.gain = Some(format!(
            "{}the others are {class} ({})",
            cure.or(saves).unwrap_or_default(),
            duration(kind.median_ns)
        ));
        lead_by(verdict, &odd);
    }
    verdict.beside.extend(own);
    if is_whole {
        parts::around((trace, causes), steps, verdict);
    }
}

/// Lets odd steps take a headline.
fn lead_by(verdict: &mut Verdict, odd: &OddSteps) {
    verdict.text = odd.sentence();
    verdict.scope.of = Answered::OddSteps;
    (verdict.bound_by, verdict.share, verdict.line) = (odd.bound_by, odd.share, None);
    verdict.span_ns = odd.of_ns();
    (verdict.cost_ns, verdict.cost_a_step_ns) = (odd.total_ns, Some(odd.more_ns));
}

/// Lets steps of another kind take the headline of the main one, which is told behind them.
fn lead_by_kind(verdict: &mut Verdict, odd: OddSteps, main: &StepKind) {
    let (own, median) = (std::mem::take(&mut verdict.text), duration(main.median_ns));
    verdict.gain = Some(match odd.chunks() {
        Some(chunks) => format!("{chunks}, as {} steps ({median}) wait", main.name),
        None => format!("the other steps take {median}"),
    });
    lead_by(verdict, &odd);
    verdict.beside.push(own);
    verdict.odd = Some(odd);
}

/// The verdict on several devices together. That ranks wait for each other is no end: what those did is that were waited for.
fn jointly(
    (trace, causes, window, ranks): Looked<'_>,
    several: &[(Verdict, Option<StepScope>, Split)],
) -> Verdict {
    let steps = several.iter().filter_map(|it| it.1.as_ref());
    let step = steps.max_by_key(|it| it.median);
    let sum = several.iter().map(|(.., split)| split.clone());
    let sum = sum.reduce(Split::add).unwrap_or_default();
    let (of, count) = (several[0].0.scope.of, several.len());
    let whole = judge(trace, None, &sum, step, (of, count));
    let is_peer = whole.bound_by == Bound::Peer && sum.waits_for_ranks();
    let ranks = ranks.filter(|it| is_peer && words::straggler(it, whole.span_ns).is_none());
    let launched = several.iter().filter_map(|(_, step, split)| {
        let steps = step.as_ref().map_or(1, |it| it.steps.max(1));
        split.launched().checked_div(steps as u64)
    });
    let told = (&sum, step, launched.max().unwrap_or(0));
    let of = |it: &JobAnalysis| words::rooted(&it.roots(causes, window), told, it.ranks.len());
    let Some((bound_by, text)) = ranks.and_then(of) else {
        return whole;
    };
    Verdict {
        bound_by,
        text,
        line: None,
        frames: Default::default(),
        ..whole
    }
}

fn judge(
    trace: &Trace,
    device: Option<u32>,
    split: &Split,
    step: Option<&StepScope>,
    (of, devices): (Answered, usize),
) -> Verdict {
    let bound = bound(split);
    let is_idle = bound.is_stall();
    let time = match bound {
        Bound::Peer if split.waits_for_ranks() => split.waiting,
        _ if is_idle && split.is_cold() => split.cold(),
        Bound::Compute if split.is_shared() => split.turns,
        // What the headline says runs, and not what waits for it.
        Bound::Compute if 2 * split.graphs < split.computing => {
            split.memsets().unwrap_or(split.computing)
        }
        Bound::Copy if split.copies_run() => split.copying,
        bound => split.time_of(bound),
    };
    let part = share(time, split.whole());
    let line = split.seen.get(&bound).and_then(|it| match bound {
        Bound::Host => it.at_work(trace),
        _ => it.telling(trace),
    });
    let told = Told {
        trace,
        split,
        bound,
        part,
        line: line.as_ref(),
        step,
        of,
        devices,
    };
    let text = told.say();
    let of_step = |time: Ns| step.map(|it| (share(time, split.whole()) * it.median as f64) as Ns);
    let own = told.idle_beside().into_iter().next();
    let is_idle = share(split.idle(), split.whole()) >= BOUND_MIN;
    let own = own.filter(|_| bound == Bound::Peer && is_idle);
    Verdict {
        device,
        bound_by: bound,
        share: part,
        ideal_ns: split.ideal,
        span_ns: split.sum / devices as Ns,
        steps: step.map(|it| it.steps),
        scope: AnswerScope {
            of: step.map_or(of, |_| Answered::Steps),
            kind: step.and_then(|it| it.kind.clone()),
            step_ns: step.map(|it| it.median),
            start_ns: split.span.start,
            end_ns: split.span.end,
        },
        cost_ns: time / devices as Ns,
        cost_a_step_ns: of_step(time),
        text,
        but_for_late: own.map(|(bound, time, text)| (bound, share(time, split.whole()), text)),
        distorted: None,
        idle: share(split.idle(), split.whole()),
        frames: told.frames(),
        beside: told.beside(),
        line,
        gain: None,
        next: match bound == Bound::Compute && split.is_shared() {
            true => "measure on a GPU of your own".to_owned(),
            false => String::new(),
        },
        odd: None,
        is_mostly_beside: false,
    }
}

/// What takes most, where it takes much.
fn bound(split: &Split) -> Bound {
    if split.is_single() {
        return Bound::Nothing;
    }
    let whole = split.counted();
    let of = |bound| split.time_of(bound);
    // A warm program loads nothing: what is left of the CPU's work is what another class has to exceed.
    let warm = |bound| match bound {
        Bound::Host if !split.is_cold() => of(bound) - split.loading(),
        bound => of(bound),
    };
    let most = |bounds: &[Bound]| {
        let most = bounds.iter().copied().max_by_key(|&b| warm(b));
        most.unwrap_or(Bound::Nothing)
    };
    let stalls = [Bound::Sync, Bound::Launch, Bound::Host];
    let stall: Ns = stalls.iter().map(|&b| of(b)).sum();
    // Syncs can go, whatever the kernels take.
    let is_less = stall < of(Bound::Compute) && most(&stalls) != Bound::Sync;
    let least = if is_less { STALL_BELOW } else { STALL_SHARE };
    let is_stalled = share(stall, whole) >= least;
    // A GPU that waits for a late rank is kept waiting too, though a kernel runs meanwhile.
    let waiting = split.waiting;
    if share(waiting, whole) >= STALL_SHARE && waiting >= stall.max(of(Bound::Unknown)) {
        return Bound::Peer;
    }
    let others = [Bound::Unknown, Bound::Peer, Bound::Copy, Bound::Compute];
    let other = match most(&others) {
        // Kernels have to run: what nothing hides of communication comes first.
        Bound::Compute if share(split.collective, whole) >= EXPOSED_MIN => Bound::Peer,
        other => other,
    };
    // A GPU that computes for most of the time and is kept waiting for the rest is kept waiting. One that copies or
    // sets memory all the while is not.
    let is_other = of(most(&others[..3])).max(split.memsets().unwrap_or(0)) > stall;
    // Idle time that nothing explains may be any of it. What has a cure is told before next to as much that has none.
    let unknown = of(Bound::Unknown);
    let is_idle = is_stalled || unknown + stall > of(Bound::Compute);
    // Late starts have a name, and lead where they take more than any other class of idle time.
    let rival = match 2 * split.late > unknown {
        true => stalls.map(of).into_iter().max().unwrap_or(0),
        false => stall,
    };
    if is_idle && unknown > rival && share(unknown, whole) >= BOUND_MIN {
        return match unknown - unknown / 10 > rival {
            true => Bound::Unknown,
            false => most(&stalls),
        };
    }
    // Copies that run for less than first calls take are not what a first run waits for.
    let is_colder = split.is_cold() && split.copying < split.cold();
    let is_colder = cases::COLDER.holds(is_colder && most(&others[..3]) == Bound::Copy);
    if is_stalled && (!is_other || is_colder) {
        return most(&stalls);
    }
    if share(of(other), whole) >= BOUND_MIN {
        other
    } else {
        Bound::Nothing
    }
}
