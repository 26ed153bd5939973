//! What limits kernels, by their launch and by counters: a last wave, waiting, memory.

use ::program::Framework;

use rustc_hash::FxHashMap;

use super::configs;
use super::words::seen_at;
use super::{Finding, Occurrence, Rule, Says, Scope, Severity, declared};
use crate::thresholds;
use activity::occupancy::Limit;
use activity::text::{NAME_MAX, counted, cut_middle};
use activity::units::{self, duration, percent};
use activity::{Ns, Span};
use causes::graph::NONE;
use causes::stacks::{LineShare, StackCounts};
use causes::sum_by;
use figures::DeviceFigures;
use figures::busy::{KernelTime, mostly};
use figures::class::{Class, NO_PEAK};
use figures::communication::{has_any, is_communication};
use figures::configs::Config;
use figures::own_work::part_in;
use figures::remarks::{self, is_for_few_warps};
use figures::rows::{self, NORMS, is_elementwise};
use figures::stalls::{self, KernelStalls};
use trace::LaneId;

/// The device's configurations, where counters tell of them.
fn sampled<'s>(scope: &'s Scope, f: &DeviceFigures) -> Option<Vec<&'s Config>> {
    configs::is_sampled(scope, f).then(|| configs::of_device(scope, f).iter().collect())
}

pub(super) fn time(of: &[&Config]) -> Ns {
    of.iter().map(|it| it.row.total_ns).sum()
}

pub(super) fn full<'a>(scope: &'a Scope, it: &Config) -> &'a str {
    scope.trace.names().full(it.shape.name)
}

pub(super) fn name(scope: &Scope, it: &Config) -> String {
    cut_middle(scope.trace.names().short(it.shape.name), NAME_MAX)
}

/// A launch near no peak that is most of the time. `under-filled-gpu` tells of too few blocks, `below-roof` of declared
/// bytes.
pub(super) fn latency(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let all = sampled(scope, f)?;
    let most = *all.first()?;
    let part = f.part(most.row.total_ns);
    let sms = f64::from(scope.trace.devices()[f.index].info.multiprocessors);
    let blocks = sms - most.row.fill.idle_sms.map_or(0.0, f64::from);
    let ran = declared::kernels(scope, f);
    let is_told = blocks < cases::UNDER_FILLED_BLOCKS.value() * sms
        || ran.iter().any(|it| it.entry == full(scope, most));
    if most.row.class != Class::Latency || is_told || part < thresholds::LATENCY_SHARE {
        return None;
    }
    // All of attention has one cure.
    let is_attention = has_any(full(scope, most), ATTENTION);
    let mut its = all;
    its.retain(|it| match is_attention {
        true => has_any(full(scope, it), ATTENTION) && it.row.class == Class::Latency,
        false => it.id == most.id,
    });
    let roof = |it: &Config| {
        let seen = &it.row.counted;
        it.at_roof([seen.dram, seen.tensor, seen.issue])
    };
    let (taken, roof) = (time(&its), its.iter().map(|it| roof(it)).sum::<Ns>());
    let why = match most.row.limit.as_str() {
        NO_PEAK => String::new(),
        why => format!(": {why}"),
    };
    // Of one that is busy for half of the time and lacks nothing that is known nobody knows what to change.
    if why.is_empty() && 2 * roof >= taken {
        return None;
    }
    let line = line_of(scope, f, &its);
    let adds = adding(scope, most, line.as_ref());
    // A library chooses its grids.
    let info = &scope.trace.devices()[f.index].info;
    let own = Some(most).filter(|it| !is_of_library(full(scope, it)) && why.is_empty());
    let room = own.and_then(|it| remarks::of_grid(&it.row, info));
    let whose = if is_attention {
        "attention, mostly "
    } else {
        ""
    };
    Some(Finding {
        title: format!(
            "{whose}{} takes {} ({}), limited by neither memory nor compute{why}{}{}{}",
            name(scope, most),
            duration(taken),
            percent(f.part(taken)),
            room.iter().map(|it| format!("; {it}")).collect::<String>(),
            adds.iter()
                .map(|at| format!("; it adds atomically at {at}"))
                .collect::<String>(),
            seen_at(line.as_ref()),
        ),
        advice: format!(
            "At its roofline limit it would take {} at best (try the edit `scale` in cuptop whatif). {}",
            duration(roof),
            match adds {
                _ if is_attention => MASKED,
                Some(_) => ATOMIC,
                None if room.is_some() => MORE_BLOCKS,
                None => above_roof(scope, most),
            }
        ),
        cure: if room.is_some() { "more blocks" } else { "" },
        says: room.map(|room| {
            let of_it = configs::kernel_time(scope, f).of_it(taken);
            Says::of_kernels(f, format!("{of_it} in {}, {room}", name(scope, most)))
        }),
        change: match is_attention {
            true => scope.change("causal", line.as_ref()),
            false => Vec::new(),
        },
        ..scope.found(f.span_ns, taken - roof, &configs::places(scope, f, &its))
    })
}

/// What may bring a kernel nearer to its roof that fills the GPU.
fn above_roof(scope: &Scope, it: &Config) -> &'static str {
    match by_block(it).filter(|_| it.row.limit.starts_with("occupancy")) {
        _ if is_of_library(full(scope, it)) => OF_LIBRARY,
        Some(limit) => more_warps(limit),
        None if it.shape.static_shared + it.shape.dynamic_shared > 0 => BANKS,
        None => {
            "Let neighbouring threads read neighbouring addresses, and more warps or loads be under way."
        }
    }
}

/// Kernels of one's own at the speed of memory that take most of the time. Elementwise ones in rows are to be fused.
pub(super) fn memory(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let mut all = sampled(scope, f)?;
    let is_told = |it: &str| is_elementwise(it) || is_of_library(it) || it.contains("multi_tensor");
    all.retain(|it| it.row.class == Class::Memory && !is_told(full(scope, it)));
    let (took, most) = (time(&all), *all.first()?);
    // A lesson's kernels are what it teaches.
    let is_lesson = scope.planned.is_some() || scope.trace.source.simulated;
    if is_lesson || f.part(took) < thresholds::COMPUTE_SHARE {
        return None;
    }
    let part = configs::kernel_time(scope, f);
    Some(Finding {
        severity: Severity::Info,
        title: format!(
            "kernels at the speed of memory take {}, {} {}",
            part.words(took),
            mostly(most.row.total_ns, took),
            name(scope, most),
        ),
        advice: "They take as long as their bytes do. Keep values in half precision where it is precise enough, or read them fewer times (larger tiles).".to_owned(),
        ..scope.found(f.span_ns, took / 2, &configs::places(scope, f, &all))
    })
}

/// Where a kernel's source adds atomically, where that can be read here.
fn adding(scope: &Scope, it: &Config, seen: Option<&LineShare>) -> Option<String> {
    let own = scope.trace.names().full(it.shape.name);
    let own = own.split(['(', '<']).next()?.rsplit([' ', ':']).next()?;
    scope
        .sources(seen)
        .within(own, &["atomic_add", "atomicAdd", "atomic.add"])
}

/// What libraries call kernels that do all of attention.
const ATTENTION: &str = "sdpa fmha flash_fwd flash_bwd";
const MASKED: &str = "Where a mask only hides what comes later, say is_causal=True in place of attn_mask: half of the scores are left out then.";
const BANKS: &str = "Let neighbouring threads read neighbouring addresses. In shared memory they may meet in one bank, which --stalls tells: rows of a tile one longer help then.";
const MORE_BLOCKS: &str = "Its grid leaves most places for warps empty: cut the work finer, so that more blocks or threads share it.";
const ATOMIC: &str = "Atomic additions to few addresses wait for one another: add up within a block first (tl.sum, shared memory), and then once a block.";
const OF_LIBRARY: &str =
    "It is a library's: other sizes, layouts or options choose another kernel.";

/// Kernels of which few warps are on an SM, because of what each block takes, or of a grid of few small blocks. Libraries' products of matrices and Triton's run so by
/// design; of others no launch says whether they wait, so it is a remark.
pub(super) fn few_warps(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let info = &scope.trace.devices()[f.index].info;
    let warps = |it: &Config| (it.resident() * f64::from(info.max_warps_per_sm)).round() as u32;
    // Of what takes most of the time two for each scheduler are few, too. Where nearly all of it is one kernel, or blocks of a warp
    // or two take all places for blocks, half of the warps are.
    let takes = |it: &Config, part: f64| f.part(it.row.total_ns) >= part;
    let is_main = |it: &Config| takes(it, thresholds::COMPUTE_SHARE);
    let is_long = |it: &Config| is_main(it) && it.usual >= MUCH_TO_DO;
    let few = |it: &Config| match by_block(it) {
        Some(Limit::Blocks) => info.max_warps_per_sm / 2 + 1,
        Some(Limit::Registers) if takes(it, thresholds::NEARLY_ALL) => {
            info.max_warps_per_sm / 2 + 1
        }
        _ => thresholds::FEW_WARPS + u32::from(is_main(it)),
    };
    let mut all: Vec<&Config> = configs::of_device(scope, f).iter().collect();
    all.retain(|it| {
        let is_full = it.row.fill.idle_sms == Some(0);
        is_full
            && it.row.class == Class::Unknown
            && few_by(scope, it, is_long(it)).is_some()
            && warps(it) < few(it)
            && !is_by_design(scope, full(scope, it))
            && waits_inside(scope, it) != Some(false)
    });
    let most = *all.first()?;
    let (by, advice) = few_by(scope, most, is_long(most))?;
    if !cases::LARGE_SHARE.is_reached_by(f.part(time(&all))) {
        return None;
    }
    // With all the warps that fit it could be faster by so much, and by no more.
    let idle = |it: &&Config| (1.0 - it.resident()) * it.row.total_ns as f64;
    let idle = all.iter().map(idle).sum::<f64>() as Ns;
    // Nobody saw whether the few of a small grid wait, nor whether there is more to do.
    let is_known = by != ITS_GRID || waits_inside(scope, most).is_some();
    let idle = if is_known { idle } else { 0 };
    let said = waits(scope, most).and_then(|it| it.sentence());
    let said = said.map_or(UNKNOWN.to_owned(), |it| format!("It {it}"));
    let by = match by == Limit::Registers.words() {
        true => format!("{} registers a thread", most.shape.registers),
        false => by.to_owned(),
    };
    let (held, name) = (warps(most), name(scope, most));
    let held = format!("{held} of {}", info.max_warps_per_sm);
    let leads = takes(most, thresholds::NEARLY_ALL) && most.row.fill.waves > Some(1.0);
    let why = format!("all in {name}: {held} warps fit an SM, limited by {by}");
    Some(Finding {
        severity: Severity::Info,
        says: leads.then(|| Says::of_kernels(f, why)),
        title: format!(
            "few warps on an SM, limited by {by}: {held} in {name}, which takes {} ({})",
            duration(most.row.total_ns),
            percent(f.part(most.row.total_ns)),
        ),
        advice: format!("{advice} {said}."),
        ..scope.found(f.span_ns, idle, &configs::places(scope, f, &all))
    })
}

/// What is said where that is not known.
const UNKNOWN: &str = "Only --counters or --stalls say whether it waits";

/// What its warps were seen waiting for.
fn waits(scope: &Scope, it: &Config) -> Option<KernelStalls> {
    stalls::of_kernel(scope.trace, it.shape.name, it.row.count, it.row.total_ns)
}

/// Whether its warps were seen waiting for memory; nothing where that was not sampled.
fn waits_inside(scope: &Scope, it: &Config) -> Option<bool> {
    let mix = waits(scope, it)?.mix;
    Some(mix.share(mix.memory + mix.sm) >= thresholds::FEW_WARPS_WAIT)
}

const ITS_GRID: &str = "its grid";
/// Blocks that take so long have enough to do for more of them.
const MUCH_TO_DO: Ns = 100_000_000;

/// What leaves few warps on an SM, and what brings more. That a grid is small is told of kernels that were seen waiting, and of one that
/// takes most of the time.
fn few_by(scope: &Scope, it: &Config, is_long: bool) -> Option<(&'static str, &'static str)> {
    let is_small = it.row.fill.waves.is_some_and(|it| it <= 1.0);
    // Room for more blocks on an SM is of no use where there are none; more threads of a block are.
    match by_block(it).filter(|it| !is_small || *it == Limit::Shared) {
        Some(limit) => Some((limit.words(), more_warps(limit))),
        None => (is_small && waits_inside(scope, it).unwrap_or(is_long)).then_some((
            ITS_GRID,
            "More warps hide latency: more blocks, or more threads a block.",
        )),
    }
}

/// What of a block keeps more of them from an SM, where that is no limit of every kernel.
fn by_block(it: &Config) -> Option<Limit> {
    let limit = it.row.fill.occupancy_limit;
    limit.filter(|it| *it != Limit::Warps)
}

fn more_warps(limit: Limit) -> &'static str {
    match limit {
        Limit::Shared => {
            "More warps hide latency: less shared memory a block, or more threads over the same shared memory."
        }
        Limit::Blocks => {
            "More warps hide latency: an SM holds few blocks, so launch blocks of 128 threads or more."
        }
        _ => {
            "More warps hide latency: fewer registers a thread (__launch_bounds__), or smaller blocks."
        }
    }
}

/// Whether nobody who writes the program wrote it.
fn is_of_library(name: &str) -> bool {
    is_for_few_warps(name) && !name.to_ascii_lowercase().contains("triton")
}

/// Whether a kernel is made for few warps: those of cuBLAS, cuDNN, CUTLASS, flash-attention and Triton, and communication. Triton's are
/// called as their functions in Python.
fn is_by_design(scope: &Scope, name: &str) -> bool {
    is_for_few_warps(name)
        || !name.contains(['(', '<'])
            && matches!(scope.framework(), Framework::PyTorch | Framework::Jax)
}

/// Grids of blocks that end at once: of far more threads than the program has numbers, or near no peak by counters.
pub(super) fn oversized(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let copied = scope.copies(f).iter().map(|it| it.2.bytes).sum::<u64>();
    let numbers = copied as f64 / size_of::<f32>() as f64;
    let mut all: Vec<&Config> = configs::of_device(scope, f).iter().collect();
    all.retain(|it| it.has_tiny_blocks() || it.exceeds(numbers));
    let saved = |it: &&Config| it.row.total_ns - it.in_fewer_blocks(numbers);
    let (most, saved) = (*all.first()?, all.iter().map(saved).sum());
    if !cases::LARGE_SHARE.is_reached_by(f.part(saved)) {
        return None;
    }
    let numbers = units::count(numbers as u64);
    let (why, advice, instead_of): (_, _, &[Rule]) = match most.has_tiny_blocks() {
        true => ("near no peak".to_owned(), DO_MORE, &[Rule::LatencyBound]),
        false => (
            format!("the program copied {numbers} numbers at most"),
            AS_DATA,
            &[],
        ),
    };
    let time = most.row.total_ns;
    Some(Finding {
        instead_of,
        title: format!(
            "{} threads in blocks of {} that end at once: {} ({}); {why}",
            units::count(most.threads() as u64),
            name(scope, most),
            duration(time),
            percent(f.part(time)),
        ),
        advice: advice.to_owned(),
        ..scope.found(f.span_ns, saved, &configs::places(scope, f, &all))
    })
}

const DO_MORE: &str = "Let each block do more: a loop over many elements, larger blocks (in Triton more rows a program, fewer num_warps).";
const AS_DATA: &str = "Launch as many blocks as the data needs: divide its size by the threads of a block, rounded up.";

/// Grids whose last wave leaves room for many blocks, near no peak. Without counters nobody knows whether anything waits for that wave.
pub(super) fn tail(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let mut all = sampled(scope, f)?;
    // Kernels beside each other fill each other's last waves.
    if configs::kernel_time(scope, f).is_beside() {
        return None;
    }
    let tail = |it: &Config| it.row.fill.tail_share.unwrap_or(0.0);
    all.retain(|it| {
        let is_long = it.row.total_ns >= cases::UNDER_FILLED_MIN.value() * it.row.count as Ns;
        // At its roof a kernel gains nothing by fuller waves.
        it.row.class == Class::Latency
            && tail(it) >= thresholds::TAIL_SHARE
            && is_long
            && !is_communication(full(scope, it))
    });
    let lost = all.iter().map(|it| tail(it) * it.row.total_ns as f64);
    let lost = lost.sum::<f64>() as Ns;
    if !cases::LARGE_SHARE.is_reached_by(f.part(lost)) {
        return None;
    }
    let most = all.first()?;
    let found = scope.found(f.span_ns, lost, &configs::places(scope, f, &all));
    Some(Finding {
        title: format!(
            "the last wave is partly empty in {} ({} in all), {} {} ({:.2} waves)",
            counted(found.count, "kernel", "kernels"),
            duration(time(&all)),
            mostly(most.row.total_ns, time(&all)),
            name(scope, most),
            most.row.fill.waves.unwrap_or(0.0)
        ),
        advice: "Choose sizes whose blocks fill whole waves, or launch one wave of blocks that loop (a persistent kernel).".to_owned(),
        ..found
    })
}

/// From this part of kernel time on a headline names them.
const MAIN: f64 = 0.4;
/// From this part on, where no one kernel takes more.
const NAMED: f64 = 0.2;

/// Kernels that read or write at places which a tensor says.
const INDEXED: &str = "index_elementwise index_kernel index_put gather scatter";
/// A kernel that has next to nothing to do takes about so long.
const LEAST: Ns = 2_500;

const FUSE: &str = "Fuse those that read what the previous one wrote: memory is then read once.";
/// What to do of an optimizer's, and the change.
const OF_OPTIMIZER: [&str; 2] = [
    "Let the optimizer update all parameters at once, and fuse others that read what the previous one wrote.",
    "try torch.optim: fused=True or foreach=True",
];

/// Whose they are, where they are an optimizer's, what to do, and that one's change.
fn fusing(scope: &Scope, ran: &[(super::At, Ns, usize)]) -> (String, [&'static str; 2]) {
    let own = match scope.framework() {
        Framework::PyTorch => {
            let at = ran.iter().map(|it| it.0);
            let is_its = |it: &str| it.to_lowercase().contains("optim");
            part_in(scope.trace, scope.causes.graph(), at, is_its)
        }
        _ => 0.0,
    };
    match own >= MAIN {
        true => (
            format!(", {} of that in the optimizer's step", percent(own)),
            OF_OPTIMIZER,
        ),
        false => (String::new(), [FUSE, ""]),
    }
}

/// Elementwise kernels in a row. With counters those of one size, each at the speed of memory.
pub(super) fn chain(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let is_sampled = configs::is_sampled(scope, f);
    let mut all: Vec<&Config> = configs::of_device(scope, f).iter().collect();
    all.retain(|it| {
        let dram = it.row.counted.dram.map_or(0.0, |it| it.value);
        let name = full(scope, it);
        let least = match name.starts_with("cupy_") {
            true => thresholds::CUPY_DRAM,
            false => thresholds::CHAIN_DRAM,
        };
        let may_be = it.row.class == Class::Memory || dram >= least || !is_sampled;
        // What takes as little as a kernel can reads and writes next to nothing: on an idle GPU that is a matter of launching.
        let least = LEAST.saturating_mul(it.row.count as Ns);
        let is_least = f.idle_ns > f.busy_ns && it.row.total_ns <= least;
        may_be && is_elementwise(name) && !has_any(name, INDEXED) && !is_least
    });
    let mut ran = configs::ran(scope, f, &all);
    ran.sort_unstable();
    let (saved, time, at) = rows::in_rows(scope.trace, &all, &ran, is_sampled);
    let at: Vec<Occurrence> = at.into_iter().map(Occurrence::from).collect();
    let is_many = cases::LOOP_MIN.is_reached_by(at.len()) || is_sampled;
    if !is_many || !configs::is_worth(scope, f, saved) {
        return None;
    }
    let how = match is_sampled && all.iter().all(|it| it.row.class == Class::Memory) {
        true => "are limited by memory",
        false => "each read and write memory anew",
    };
    let found = scope.found(f.span_ns, saved, &at);
    let places: Vec<_> = ran.iter().map(|it| it.0).collect();
    let line = launched_at(scope, &places).telling(scope.trace);
    let kinds = match all.iter().any(|it| has_any(full(scope, it), NORMS)) {
        true => "elementwise and batch norm",
        false => "elementwise",
    };
    let part = configs::kernel_time(scope, f);
    let (whose, [advice, change]) = fusing(scope, &ran);
    Some(Finding {
        title: format!(
            "{} {kinds} kernels in a row {how}: {}{whose}{}",
            at.len(),
            part.words(time),
            line.as_ref()
                .map_or_else(String::new, |it| format!("; launched at {}", it.place)),
        ),
        advice: configs::first(f).to_owned() + advice,
        change: match change {
            "" => scope.change("fuse", line.as_ref()),
            own => scope.changes(own, line.as_ref()),
        },
        says: is_main(scope, f, &part, time).then(|| {
            let of_it = part.of_it(time);
            Says::of_kernels(f, format!("{of_it} in {kinds} kernels in a row{whose}"))
        }),
        // Without counters nobody knows.
        severity: found.severity.keep_where(is_sampled),
        ..found
    })
}

/// Whether a headline names what takes so much: most, or as much as any one kernel.
fn is_main(scope: &Scope, f: &DeviceFigures, part: &KernelTime, time: Ns) -> bool {
    let names = configs::of_device(scope, f)
        .iter()
        .map(|it| (it.shape.name, it.row.total_ns));
    let most = sum_by(names).first().map_or(0, |it| it.1);
    part.share(time) >= MAIN || part.share(time) >= NAMED && time >= most
}

/// So many launches say which line makes them.
const LOOKED_AT: usize = 8192;

/// A look reads frames while their thread goes on: it tells what that does up to so long later.
const LOOK: Ns = 100_000;

/// The line that launches kernels of some configurations, where samples tell.
pub(super) fn line_of(scope: &Scope, f: &DeviceFigures, of: &[&Config]) -> Option<LineShare> {
    let ran = configs::ran(scope, f, of).into_iter();
    let places: Vec<_> = ran.map(|it| it.0).collect();
    launched_at(scope, &places).telling(scope.trace)
}

/// What the CPU was seen at in launching them.
pub(super) fn launched_at(scope: &Scope, places: &[super::At]) -> StackCounts {
    let (graph, mut seen) = (scope.causes.graph(), StackCounts::default());
    let some = places
        .iter()
        .step_by(places.len().div_ceil(LOOKED_AT).max(1));
    let launches = some.map(|it| (graph.call_at(*it), graph.op_at(it.0, it.1)));
    let mut launches: Vec<_> = launches.filter(|it| it.0 != NONE).collect();
    launches.sort_unstable();
    // Each sample counts once.
    let mut until: FxHashMap<LaneId, Ns> = FxHashMap::default();
    for (call, op) in launches {
        let (own, lane) = (graph.calls.span(call), graph.calls.at(call).0);
        let until = until.entry(lane).or_insert(Ns::MIN);
        let span = Span::new((own.start - LOOK).max(*until).min(own.end), own.end);
        *until = own.end;
        if let Some(op) = op {
            scope.causes.add_samples(op, span, &mut seen);
        }
    }
    seen
}
