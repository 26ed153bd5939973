//! What a run is made of before its steps and behind them: a start-up, and work of its own.

use std::collections::BTreeMap;

use super::odd::culprit;
use super::{BOUND_MIN, Verdict, find, words};
use activity::text::{NAME_MAX, cut_name};
use activity::units::{duration, percent, share};
use activity::{Ns, Span, What};
use causes::{Cause, Causes, Group, IdleCause, first_use, sum_by};
use figures::DeviceFigures;
use figures::breakdown::Breakdown;
use figures::lost::Lost;
use figures::steps::{self, Steps};
use figures::{conversions, outliers};
use trace::Trace;

/// A start-up that takes less than so many steps is not worth a word.
const START_UP_STEPS: Ns = 3;
/// Nor is one of less than this, and of less than this part of the run.
const START_UP_NS: Ns = 1_000_000;
const START_UP_SHARE: f64 = 0.01;

/// Puts what lies before the steps and behind them beside a verdict. What is most of the run is told first.
pub(super) fn around(of: (&Trace, &Causes<'_>), steps: &Steps, verdict: &mut Verdict) {
    let (start, tail, beside) = (steps.start_up, steps.tail, &mut verdict.beside);
    let all = start.hull(tail).len();
    let is_worth = start.len() >= START_UP_NS || share(start.len(), all) >= START_UP_SHARE;
    if is_worth && start.len() >= START_UP_STEPS * steps.main().median_ns {
        let is_mostly_start = 2 * start.len() > all;
        verdict.is_mostly_beside |= is_mostly_start;
        beside.push(begun(of, steps));
        beside.rotate_right(usize::from(is_mostly_start));
    }
    if has_tail(steps) {
        let own = own(of.0, tail);
        beside.extend(worked(of, steps.process, (tail, "after the steps"), &own));
    }
}

/// Whether what lies behind the steps is a part of its own. It may be the last step, whose end nobody saw.
pub fn has_tail(steps: &Steps) -> bool {
    let (tail, all) = (steps.tail, steps.start_up.hull(steps.tail).len());
    let is_step = steps.spans.len() > steps.steady.end && tail.len() < 2 * steps.main().median_ns;
    !is_step && share(tail.len(), all) >= BOUND_MIN
}

/// A start-up, or what computes before the steps for most of it.
fn begun((trace, causes): (&Trace, &Causes<'_>), steps: &Steps) -> String {
    // Kernels that wait for pages compute little.
    let computing = |part| {
        let device = steps::main_device(trace, steps.process);
        let of =
            |it| Breakdown::of_device(trace, it, part).compute - faulting(trace, causes, it, part);
        device.map_or(0, of)
    };
    // Steps that warm up are no work of its own, but a first one that holds more. Nor are many that keep the GPU busy a start-up.
    let start_up = steps.start_up;
    let part = match steps.steady.start {
        0 | 1 => start_up,
        START_UP_TOLD.. if computing(start_up) > start_up.len() / 10 * 9 => start_up,
        _ => Span::new(start_up.start, steps.spans[0].start),
    };
    let is_own = 2 * part.len() > start_up.len() && 2 * computing(part) > part.len();
    let worked = || {
        let which = (part, "before the steps");
        worked((trace, causes), steps.process, which, &own(trace, part))
    };
    let told = is_own.then(worked).flatten();
    told.unwrap_or_else(|| begins((trace, causes), steps))
}

/// What kernels take in a stretch to which pages of managed memory come while they run.
fn faulting(trace: &Trace, causes: &Causes<'_>, device: usize, part: Span) -> Ns {
    let graph = causes.graph();
    let ops = graph.ops.of_device(device);
    let before = |time: Ns| ops.partition_point(|&op| graph.ops.start[op as usize] < time);
    // In order of their starts.
    let (mut pages, mut kernels) = (Vec::new(), Vec::new());
    for &op in &ops[before(part.start)..before(part.end)] {
        match graph.what(trace, op) {
            What::Kernel(_) => kernels.push(graph.ops.span(op)),
            it if it.is_migration() => pages.push(graph.ops.start[op as usize]),
            _ => {}
        }
    }
    let before = |time: Ns| pages.partition_point(|it| *it < time);
    let waits = |it: &Span| before(it.start.saturating_add(1)) < before(it.end);
    kernels.into_iter().filter(waits).map(Span::len).sum()
}

/// What stands out of the kernels of one device: a launch that takes far longer than the others, and what only converts.
pub(super) fn of_kernels(
    trace: &Trace,
    causes: &Causes<'_>,
    devices: &[DeviceFigures],
) -> [Option<String>; 2] {
    let graph = causes.graph();
    match devices {
        [one] => [outliers::told, conversions::told].map(|it| it(trace, graph, one.index)),
        _ => [None, None],
    }
}

/// The steps of a part, where they hold most of it.
fn own(trace: &Trace, part: Span) -> Vec<Steps> {
    let mut own = steps::find(trace, Some(part));
    own.retain(|it| it.steady_span().len() / 3 >= part.len() / 4);
    own
}

/// What a program does before or behind its steps, where that is work of its own: it may have steps, too.
pub(super) fn worked(
    (trace, causes): (&Trace, &Causes<'_>),
    process: usize,
    (part, which): (Span, &str),
    own: &[Steps],
) -> Option<String> {
    let is_its = |f: &DeviceFigures| {
        let mut streams = trace.streams_of(f.index);
        streams.any(|it| it.1.key().process == process)
    };
    let mut devices = figures::count(trace, None, Some(part));
    devices.retain(is_its);
    let rest = find(trace, causes, (Some(part), &devices), (own, None), None).swap_remove(0);
    // What ran of it may have no records.
    let lost = |part| Lost::of(trace, causes.graph(), part).is_some();
    let is_lost = || lost(None) || lost(Some(part));
    let is_told = !rest.text.starts_with(words::TOO_LITTLE) && !devices.is_empty() && !is_lost();
    is_told.then(|| format!("{} {which}, {}", duration(part.len()), rest.text))
}

/// So many steps of a start-up are told, as the first of those that are told of has a number above it.
const START_UP_TOLD: usize = 10;

/// "start-up 8.54 s, most of it compiling kernels": what takes most of it, busy or idle.
fn begins((trace, causes): (&Trace, &Causes<'_>), steps: &Steps) -> String {
    let (start, mut by) = (steps.start_up, BTreeMap::<String, Ns>::new());
    let mut idle = 0;
    if let Some(device) = steps::main_device(trace, steps.process) {
        let busy = Breakdown::of_device(trace, device, start);
        let waits = faulting(trace, causes, device, start);
        by.insert("in kernels that wait for pages".to_owned(), waits);
        by.insert("in memsets".to_owned(), busy.memset());
        by.insert("in copies".to_owned(), busy.copy - busy.overlap);
        for row in causes.idle_within(&[device], &[start]) {
            *by.entry(doing(trace, &row)).or_default() += row.total_ns;
            idle += row.total_ns;
        }
    }
    let of = match steps.steady.start {
        many if steps.begins_slowly() => format!(" with {many} slower steps"),
        many @ START_UP_TOLD.. => format!(" with {many} warm-up steps"),
        _ => String::new(),
    };
    let text = format!("start-up {}{of}", duration(start.len()));
    if let Some(gaps) = one_gap((trace, causes), steps) {
        return format!("{text}{gaps}");
    }
    let part = |time: Ns| share(time, start.len());
    // Launches that are captured, and the CPU's work between them, run nothing: together they are what it is for.
    let graphs = causes.graph().making_graphs(start).min(idle);
    if 2 * graphs >= start.len() {
        by = BTreeMap::from([("making CUDA graphs".to_owned(), graphs)]);
    }
    match by.into_iter().max_by_key(|it| it.1) {
        Some((what, time)) if part(time) >= BOUND_MIN => {
            // A second figure beside that of the cold start, which counts a busy GPU's time, too, would be a riddle.
            let how_much = match part(time) {
                0.9.. => "nearly all".to_owned(),
                0.5.. => "most".to_owned(),
                part => percent(part),
            };
            format!("{text}, {how_much} of it {what}")
        }
        _ => text,
    }
}

/// ": in each the GPU waits once for 48.7 ms before attention": where the longest gaps of slower steps take most of it, before one kernel.
/// A plan may be made for each size: that is said where each of them has a new one, and later steps have none.
fn one_gap((trace, causes): (&Trace, &Causes<'_>), steps: &Steps) -> Option<String> {
    let slower = steps.spans.get(..steps.steady.start)?;
    let device = steps::main_device(trace, steps.process)?;
    let (usage, graph) = (&trace.devices()[device].usage, causes.graph());
    let before = |step: &Span| {
        let gap = usage.longest_gap(*step, Trace::GAP_MIN)?;
        let next = *graph.ops.around(device, gap.end).1.first()?;
        Some((first_use::kernel(trace, graph, next)?, gap.intersect(*step)))
    };
    let gaps: Vec<_> = slower.iter().filter_map(before).collect();
    let by = sum_by(gaps.iter().map(|it| (it.0, it.1.len())));
    let (name, time) = by.into_iter().next()?;
    let alike = gaps.iter().filter(|it| it.0 == name).map(|it| it.1);
    let alike: Vec<Span> = alike.collect();
    if !steps.begins_slowly()
        || 4 * alike.len() < 3 * slower.len()
        || 2 * time < steps.start_up.len()
    {
        return None;
    }
    let name = cut_name(trace.names().short(name), NAME_MAX);
    let each = duration(time / alike.len() as Ns);
    let idle = causes.idle_within(&[device], &alike);
    let own = idle.iter().filter(|it| it.group == Group::Host);
    let is_own = 2 * own.map(|it| it.total_ns).sum::<Ns>() > time;
    let at = if is_own { " on the CPU" } else { "" };
    Some(match steps.bring_sizes(trace, graph, device) {
        true => format!(
            ": each has a new size, which costs {each}{at} before {name}; known sizes cost none: pad to a few"
        ),
        false => format!(": in each the GPU waits once for {each} before {name}"),
    })
}

/// What the CPU is at while the GPU is idle: "compiling kernels", "in untraced CPU work".
fn doing(trace: &Trace, row: &IdleCause) -> String {
    let name = row.culprit.as_deref().unwrap_or_default();
    let is_seen = row.seen.tell(trace) && row.seen.are_of_building(trace);
    match row.cause {
        Cause::Load => row.words(),
        Cause::Host if first_use::is_compiler(name) || is_seen => "compiling kernels".to_owned(),
        _ => format!("in {}", culprit(row, false)),
    }
}
