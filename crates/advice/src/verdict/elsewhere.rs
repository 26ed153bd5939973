//! What takes many times as long as all that a headline is of: that is told first.

use super::words::{NO_KERNEL, TOO_LITTLE};
use super::{AnswerScope, Answered, Bound, Verdict, instead, outside};
use activity::units::{duration, share};
use activity::{Ns, Span};
use causes::Causes;
use findings::{Finding, Rule, Severity};
use trace::{Trace, describe};

/// A GPU that is busy for more of the time is worth a look, be it short. Before that comes only what its copies ask for.
const IDLE: f64 = 0.5;

/// Of a program that is at something else for so many times as long nobody asks first what its kernels do.
const ALL: Ns = 50;

/// Nor of one that is for so long, and a tenth of it at most at work on the GPU.
const AGES: Ns = 60_000_000_000;

/// Steps of which so many times the time ran are next to nothing of it.
const STEPS: Ns = 50;

/// Before few operations of an idle GPU a start leads from so many times their time on.
const FEW_TIMES: f64 = 2.0;

/// A start of less is not what anybody waits for.
const LEAST: Ns = 100_000_000;

/// What the CPU is at behind the steps is told with this.
const AFTER_STEPS: &str = " after the steps, CPU-bound: ";

/// Puts it there: what a program does outside CUDA, or its cold start, which is among `findings`. What was said of what the GPU
/// did stands behind it.
pub fn lead(
    verdicts: &mut [Verdict],
    (trace, causes): (&Trace, &Causes<'_>),
    findings: &[&Finding],
) {
    // That results are missing comes before all that takes time.
    let has_failed = findings.iter().any(|it| it.rule == Rule::FailedCalls);
    let may_lead =
        |it: &&mut Verdict| is_told(it) && !(has_failed && instead::fails(trace, causes));
    let Some(whole) = verdicts.first_mut().filter(may_lead) else {
        return;
    };
    // All that ran, also before the steps: those alone are a part of it.
    let ran = trace.operations_extent().map_or(0, |it| it.len());
    let is_lost = whole.text.starts_with(instead::NO_VERDICT);
    // What left no records ran for as long as its launches say.
    let lost = if is_lost { launched(trace, causes) } else { 0 };
    let ran = ran.max(whole.span_ns).max(lost);
    let told = outside::told(trace, causes).into_iter();
    let outside = told.map(|(time, text)| (time, text.clone(), text, None));
    let outside = outside.filter(|_| !is_lost);
    // What a loader does before all is known by its name.
    let computes = matches!(whole.bound_by, Bound::Compute | Bound::Memory);
    let loads = || describe::loads(trace, whole.scope.start_ns).is_some();
    // What a cure of something else saves says nothing of the CPU's work.
    let cures = findings
        .iter()
        .filter(|it| it.rule != Rule::ColdStart && it.severity >= Severity::Warning);
    let cured = cures.map(|it| it.weight()).max().unwrap_or(0);
    let is_cured = whole.gain.is_some() && 2 * cured > whole.cost_ns;
    let is_uncured = whole.bound_by == Bound::Host && !is_cured;
    let outside = outside.filter(|it| {
        let is_next = match computes {
            true => loads() && it.1.contains(outside::BEFORE),
            false => whole.idle >= IDLE || is_uncured,
        };
        is_next || it.0 > ALL * ran || it.0 >= AGES
    });
    let cold = findings.iter().filter(|it| it.rule == Rule::ColdStart);
    // Of few operations little is known, and a start of any length may be all there is to say.
    let are_few = !cases::LAUNCH_OPS_MIN.is_reached_by(causes.graph().ops.len())
        && !whole.text.starts_with(TOO_LITTLE);
    let is_held_up = matches!(whole.bound_by, Bound::Launch | Bound::Sync);
    let copies = whole.bound_by == Bound::Copy && whole.steps.is_none();
    let is_told = computes || copies || is_uncured || is_held_up;
    let is_told = is_told || are_few || is_lost || whole.idle >= IDLE;
    // What some steps wait for is next to nothing of it.
    let is_host = whole.bound_by == Bound::Host;
    let is_whole = whole.steps.is_none() && !whole.text.starts_with(TOO_LITTLE);
    let is_all = |it: &Finding| (is_host || is_whole) && it.bound_ns > ALL * ran;
    let cold = cold.filter(|it| is_told || !it.next.is_empty() || is_all(it));
    let cold = cold.map(|it| (it.bound_ns, it.title.clone(), String::new(), Some(it.next)));
    // A start-up is told before its steps only where these are next to nothing of what ran.
    let is_little = whole.steps.is_none() || STEPS * whole.span_ns <= ran;
    // A program that starts and ends for long does next to nothing between.
    let ends = outside::given_back(trace).map_or(0, |it| it.0);
    let is_long = |it: &(Ns, String, String, Option<&str>)| {
        let of = match it.3 {
            Some(_) if is_little && !is_lost => whole.span_ns,
            _ => ran,
        };
        let time = if it.3.is_some() { it.0 + ends } else { it.0 };
        let times = time as f64 / of.max(1) as f64;
        let is_much = it.3.is_some()
            && !is_lost
            && (is_uncured && times > 1.0 || are_few && whole.idle >= IDLE && times > FEW_TIMES);
        let is_much = cases::LONGER_START.holds(is_much);
        let is_felt = it.0 >= LEAST || are_few && it.3.is_some();
        is_felt && (cases::ELSEWHERE_TIMES.is_reached_by(times) || is_much)
    };
    let long = outside
        .chain(cold)
        .filter(is_long)
        .chain(tail(whole, trace));
    let most = long.max_by_key(|it| it.0);
    let Some(((time, mut text, said, next), all)) = most.zip(outside::recorded(trace)) else {
        return;
    };
    let was = std::mem::take(&mut whole.text);
    if next.is_none() && !text.contains(AFTER_STEPS) {
        text = format!("CPU-bound: {text}; the GPU's work spans {}", duration(ran));
    }
    let gain = whole.gain.take();
    whole.beside.retain(|it| *it != said);
    whole.beside.splice(0..0, [was].into_iter().chain(gain));
    next.unwrap_or_default().clone_into(&mut whole.next);
    (whole.text, whole.bound_by) = (text, Bound::Host);
    (whole.cost_ns, whole.span_ns) = (time, all.len().max(time));
    (whole.cost_a_step_ns, whole.steps, whole.line) = (None, None, None);
    whole.share = share(time, whole.span_ns);
    whole.scope = AnswerScope {
        of: Answered::Run,
        start_ns: all.start,
        end_ns: all.end,
        ..AnswerScope::default()
    };
    whole.is_mostly_beside = true;
}

/// What a program waits for the CPU for behind steps that are next to nothing of it: how long, and how it was told.
fn tail<'n>(whole: &Verdict, trace: &Trace) -> Option<(Ns, String, String, Option<&'n str>)> {
    let end = trace.operations_extent()?.end;
    let (steps, behind) = (
        whole.scope.end_ns - whole.scope.start_ns,
        end - whole.scope.end_ns,
    );
    let times = behind as f64 / steps.max(1) as f64;
    let told = whole.beside.iter().find(|it| it.contains(AFTER_STEPS))?;
    let is_long = whole.steps.is_some() && cases::ELSEWHERE_TIMES.is_reached_by(times);
    is_long.then(|| (behind, told.clone(), told.clone(), None))
}

/// From the first launch to the end of the last.
fn launched(trace: &Trace, causes: &Causes<'_>) -> Ns {
    let calls = &causes.graph().calls;
    let launched = causes::launched(trace, causes.graph()).into_iter();
    let hull = launched.map(|it| calls.span(it)).reduce(Span::hull);
    hull.map_or(0, |it| it.len())
}

/// Whether a headline tells what kernels wait for or do, or that nobody knows it.
fn is_told(verdict: &Verdict) -> bool {
    let is_lost = verdict.text.starts_with(instead::NO_VERDICT);
    is_lost || !verdict.frames[0].is_empty() && !verdict.text.starts_with(NO_KERNEL)
}
