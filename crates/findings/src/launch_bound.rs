//! The GPU is idle because launches do not come fast enough.
//!
//! Short kernels alone say nothing: a GPU whose queue is full is busy however short they are. What
//! counts is idle time whose cause is that the next operation had not been launched, or just had.

use super::one_by_one::Loop;
use super::{DeviceFigures, Finding, Occurrence, Says, Scope, configs};
use ::program::{At, Framework};
use activity::text::{NAME_MAX, cut_middle};
use activity::units::{bytes, duration, percent};
use activity::{Direction, Ns};
use causes::graph::CallId;
use causes::late::Late;
use causes::stacks::{LineShare, StackCounts};
use causes::{Bound, Gap, LAUNCH_GAP_MAX, around, sum_by};
use figures::communication::has_any;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let is_few = !cases::LAUNCH_OPS_MIN.is_reached_by(f.kernels as usize);
    if is_few || !cases::LAUNCH_IDLE_SHARE.is_reached_by(f.idle_share()) {
        return None;
    }
    let late = late(scope, f);
    let (idle, count) = (late.idle, late.gaps.len() as u64);
    let is_cold = scope.window.is_none() && late.cold > idle;
    let is_long = cases::LAUNCH_IDLE_SHARE.is_reached_by(f.part(idle));
    if cases::ONE_COLD_PASS.holds(is_cold) || !is_long {
        return None;
    }
    let longest = late.longest().into_iter();
    let longest: Vec<_> = longest.map(|it| Occurrence::Gap(f.index, it)).collect();
    // Some longer work between launches goes with them; much of it is the program's own.
    let more = if 4 * late.host <= idle { late.host } else { 0 };
    let beside = super::graph_launch::beside(scope, f);
    let line = late.seen.telling(scope.trace);
    // What XLA compiles it makes a graph of; what is launched beside was not compiled.
    let is_jax = scope.framework() == Framework::Jax;
    let is_jitted = is_jax && 2 * late.of_graphs <= idle;
    let of_loop = super::one_by_one::check(scope, f);
    let known = (scope.sources(line.as_ref())).known(scope.trace, &late.seen, At::Launch);
    let (fused, refused) = match (late.are_read(), is_jitted) {
        _ if of_loop.as_ref().is_some_and(Loop::is_most) => {
            (0, Some("one call for all tensors needs no graph"))
        }
        (true, _) => (0, Some("how much is launched together then is not known")),
        (_, true) => (short(scope, f), Some("jax.jit also fuses kernels")),
        _ if known.is_some() => (0, Some("what is called once needs no graph")),
        _ => (0, None),
    };
    let is_alone = beside.is_none() && refused.is_none();
    let (mut advice, mut cure, mut change, how) = cure_of(&late, beside, scope.framework());
    if let Some(it) = known.filter(|_| change == "graph") {
        advice = format!("It {}. {} {advice}", it.does, it.advice);
        (cure, change) = (it.cure, it.change);
    }
    let held = late.held.filter(|_| change == "graph");
    // Sizes of an exchange that come back to the CPU say what is launched next.
    let exchanges =
        held.is_some() && scope.has_name(|it| has_any(it, "alltoall all_to_all All2All"));
    let held = held.filter(|_| exchanges || is_cut(late.reads, scope, f));
    let held = held.map(|(wait, gap)| uncaptured(scope, f, wait, &gap));
    if let Some(what) = &held {
        change = "parts";
        advice += &format!(" No capture can hold {what} within the step: take that out first.");
    }
    let configs = configs::of_device(scope, f);
    let grown = figures::growth::from_step_to_step(scope.trace, configs, scope.steps);
    let grown = grown.filter(|_| cure.is_empty());
    // Larger batches have fewer kernels, and a graph has the same.
    let is_alone = is_alone && grown.is_none();
    let batched = if is_alone { batched(scope, f) } else { 0 };
    let cure = match &grown {
        Some(grown) => {
            change = "static-cache";
            advice += &format!(" {grown}. A graph needs one size: allocate the cache whole first.");
            "a static cache and a CUDA graph"
        }
        None if cure.is_empty() && 20 * batched > idle => "using a CUDA graph or larger batches",
        None => cure,
    };
    let bound = known.map_or(idle + more + fused, |it| it.part_of(idle + more));
    let found = scope.found(f.span_ns, bound, &longest);
    let (bound, told) = whose(&late, line.as_ref(), how);
    // A condition stands where the cure does. What generates tokens calls a compiled model between its read-backs.
    let first =
        held.filter(|_| !exchanges && grown.is_none() && scope.framework() == Framework::PyTorch);
    let first = first.map(|what| scope.changes(&format!("{what}: out of the step first"), None));
    let mut change = scope.change(change, line.as_ref());
    change.extend(first.unwrap_or_default());
    // Launching less leaves no long work of the CPU out.
    let gaps = late.gaps.iter().copied();
    let beside_ns = scope.beside(f, gaps, idle + more, LAUNCH_GAP_MAX);
    let found = Finding {
        severity: found
            .severity
            .keep_where(f.kernels >= cases::GRAPH_MIN.value() as u64 * late.waits),
        count,
        title: title(
            (scope, f),
            [idle - late.work, more + late.work, fused],
            line.is_none(),
        ),
        gain: exchanges.then(|| "capture the parts between its syncs in CUDA graphs".to_owned()),
        refused: refused.map(str::to_owned),
        says: (!how.is_empty() || known.is_some()).then(|| Says {
            bound,
            part: f.part(idle),
            why: match (known, &line) {
                (Some(it), Some(line)) if how.is_empty() => it.at(line),
                _ => format!("{} {told}", percent(f.part(idle))),
            },
        }),
        cure,
        is_all: fused > 0 && 20 * found.bound_ns >= 19 * f.span_ns,
        advice,
        beside_ns: beside_ns + batched,
        change,
        ..found
    };
    Some(match of_loop {
        Some(it) => it.add_to(found, idle + more),
        None => found,
    })
}

/// What bounds, and where.
fn whose(late: &Late, line: Option<&LineShare>, how: &str) -> (Bound, String) {
    let at = line.map_or("CPU work".to_owned(), LineShare::culprit);
    match 2 * late.work > late.idle && !late.are_read() {
        true => (Bound::Host, format!("in {at} and in launching")),
        false => (Bound::Launch, format!("launching {how}")),
    }
}

/// What the launching thread is seen at while the GPU waits for launches.
pub(super) fn seen(scope: &Scope, f: &DeviceFigures) -> StackCounts {
    late(scope, f).seen
}

/// Its idle time before launches that came late.
fn late(scope: &Scope, f: &DeviceFigures) -> Late {
    let mut copies = scope.copies(f).iter();
    let is_any_back = copies.any(|it| it.2.direction == Direction::D2H);
    let is_read = |gap: &Gap| is_any_back && scope.comes_before(f, gap).is_some();
    Late::of(scope.trace, scope.causes, scope.gaps(f), is_read)
}

/// Whether steps hold values that are read back: one a step may be at its end, but not in the one step that is marked.
fn is_cut(reads: usize, scope: &Scope, f: &DeviceFigures) -> bool {
    match scope.steps {
        0 => lead(scope, f) > 0,
        steps => 2 * reads > 3 * steps,
    }
}

/// What a graph cannot hold, named by the operator that reads it back, else by its size.
fn uncaptured(scope: &Scope, f: &DeviceFigures, wait: CallId, gap: &Gap) -> String {
    let named = around::by_name(scope.causes, [(wait, 1)].into_iter(), around::outermost);
    match (named.into_iter().next(), scope.comes_before(f, gap)) {
        (None, Some(copy)) => format!("the copy of {} to the CPU", bytes(copy.bytes)),
        (by, _) => format!("what {} reads back", by.unwrap_or_default().0),
    }
}

/// How long the GPU is idle, what of that is short, and what goes with it: no bound may exceed what its sentence names.
fn title(
    (scope, f): (&Scope, &DeviceFigures),
    [idle, more, fused]: [Ns; 3],
    names_kernel: bool,
) -> String {
    let [short, all] = [idle, idle + more].map(duration);
    let (part, lead) = (percent(f.part(idle + more)), leading(scope, f));
    let before = match names_kernel {
        true => before(scope, f),
        false => String::new(),
    };
    let fused = match fused {
        0 => String::new(),
        fused => format!("; kernels shorter than a launch take {}", duration(fused)),
    };
    match short == all {
        true => format!(
            "{lead} idle for {all} ({part}) in gaps under 1 ms between operations{before}{fused}"
        ),
        false => format!(
            "{lead} idle for {all} ({part}) between operations: {short} in launching, {} in other CPU work{before}{fused}",
            duration(more)
        ),
    }
}

/// What a marked step is idle before its first operation: idle time that lies between none.
fn lead(scope: &Scope, f: &DeviceFigures) -> Ns {
    let ops = &scope.causes.graph().ops;
    let first = ops.around(f.index, f.span.start).1.first();
    first.map_or(0, |&op| ops.start[op as usize] - f.span.start)
}

fn leading(scope: &Scope, f: &DeviceFigures) -> String {
    let time = lead(scope, f);
    let is_worth = cases::WORTH_SHARE.is_reached_by(f.part(time));
    let first = is_worth.then(|| format!(" has no work for the first {}, then", duration(time)));
    format!("the GPU{} is", first.unwrap_or_default())
}

/// What kernels take that are shorter than a launch.
pub(super) fn short(scope: &Scope, f: &DeviceFigures) -> Ns {
    let of = configs::of_device(scope, f).iter();
    let short = of.filter(|it| it.usual < LAUNCH);
    short.map(|it| it.row.total_ns).sum()
}

/// What larger batches save of kernels that are shorter than a launch, where that is worth a word: some stay.
pub(super) fn batched(scope: &Scope, f: &DeviceFigures) -> Ns {
    let short = short(scope, f);
    match cases::SHORT_OF_ALL.is_reached_by(f.part(short)) {
        true => short - short / BATCH,
        false => 0,
    }
}

/// So many at once are a larger batch.
const BATCH: Ns = 8;

/// Measured: a launch takes the CPU five microseconds.
const LAUNCH: Ns = 5_000;

/// The kernel that most launches are of, to be put behind a title where no line is known.
fn before(scope: &Scope, f: &DeviceFigures) -> String {
    let of = configs::of_device(scope, f).iter();
    let counted = of.map(|it| (it.shape.name, it.row.count as Ns));
    let most = sum_by(counted).into_iter().next();
    let most = most.filter(|it| 2 * it.1 > f.kernels as Ns);
    most.map_or_else(String::new, |(name, _)| {
        let name = cut_middle(scope.trace.names().short(name), NAME_MAX);
        format!(", most often before {name}")
    })
}

/// What to do, how that is called as a cure, the change of the source, and what is launched how.
type LaunchCure = (String, &'static str, &'static str, &'static str);

/// What to do by what is launched beside graphs, if that is so.
fn cure_of(late: &Late, beside: Option<String>, of: Framework) -> LaunchCure {
    let is_jax = of == Framework::Jax;
    let (jit, capture) = (
        "one jax.jit around the step",
        "capturing more in the CUDA graph",
    );
    match beside {
        _ if late.are_read() => ("Keep values on the GPU, or look at them in every tenth round, say: launches wait for each.".to_owned(), "reading values back less often", "keep-values", "only when a value was read back"),
        _ if 2 * late.of_graphs > late.idle => ("Most of it is before graph launches: capture more per graph, or launch the next graph earlier.".to_owned(), "larger CUDA graphs", "", "CUDA graphs"),
        Some(names) if is_jax => (format!("Launched one by one: {names}. Put all of the step into jax.jit."), jit, "graph", "op by op, outside jit"),
        Some(names) => {
            let whose = if names.contains("multi_tensor_apply") { " multi_tensor_apply is an optimizer's step." } else { "" };
            (format!("A CUDA graph is replayed already. Capture in it, too, what is launched one by one, mostly {names}.{whose}"), capture, "capture", "kernels one by one beside a CUDA graph")
        }
        None if of == Framework::TensorFlow => ("Launch less often: let XLA compile the step, take larger batches, or several steps in one call.".to_owned(), "compiling the step with XLA", "graph", ""),
        None => ("Launch less often: a CUDA graph, fused kernels, larger batches.".to_owned(), if is_jax { jit } else { "" }, "graph", ""),
    }
}
