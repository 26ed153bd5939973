//! What keeps a GPU idle for long and no rule has a cure for: it is said, so that nobody looks for one.

mod way;

use std::cmp::Reverse;
use std::ops::RangeInclusive;

use rustc_hash::FxHashSet;

use super::cold_start;
use super::words::seen_at;
use super::{Copied, Finding, Occurrence, Rule, Says, Scope, Severity};
use crate::thresholds;
use ::program::{Framework, operators_cure};
use activity::units::{self, bytes, duration, percent, share};
use activity::{Copy, Direction, Ns, Span, What};
use causes::graph::{CallId, OpId};
use causes::stacks::{LineShare, NEARLY, StackCounts};
use causes::{Bound, Gap, Group, Piece, Pieces, Shares, around, is_mpi, sum_by};
use figures::{DeviceFigures, busy};
use trace::{Measure, describe};
use way::{Way, draws, starts_late, way};

/// What a CPU was in that no record names.
pub const UNTRACED: &str = "untraced CPU work";

/// And one that samples saw in no function for most of it.
pub const SPREAD: &str = "CPU work in many functions";

/// Whether a rule tells of a group's idle time.
fn tells(rule: Rule, group: Group) -> bool {
    use Rule::*;
    match group {
        Group::Host | Group::SetUp => matches!(
            rule,
            HostBound
                | Asleep
                | ColdStart
                | AllocInLoop
                | SyncInLoop
                | Offloading
                | RoundTrips
                | HostExchange
        ),
        Group::Launch => matches!(
            rule,
            LaunchBound
                | BesideGraphs
                | TinyCopies
                | AllocInLoop
                | ColdStart
                | OptimizerLaunches
                | SyncInLoop
                | HostExchange
                | Turns
        ),
        Group::Sync => matches!(
            rule,
            SyncInLoop | HostExchange | TinyCopies | PageableCopy | NoOverlap | Turns
        ),
        Group::Unknown => rule == BesideGraphs,
        Group::Queue | Group::Process | Group::Profiler => false,
    }
}

/// What ends a headline of steps that start at a pace.
pub const PACED: &str = "a display, a camera or a timer likely paces it";

/// Steps start so many times a second, idle for the most part. Nothing of the program is known to take that long, and what
/// is faster waits for longer.
pub fn paced(scope: &Scope, rate: Ns, found: &mut Vec<Finding>) {
    let is_idle = |f: &DeviceFigures| f.idle_share() >= thresholds::COMPUTE_SHARE;
    let Some(f) = scope.devices.first() else {
        return;
    };
    // Who waits for a timer does so once a step, and not between launches.
    let is_known = |it: &Finding| match it.rule {
        Rule::LaunchBound | Rule::Queries => 2 * it.bound_ns > f.idle_ns,
        rule => matches!(rule, Rule::HostBound | Rule::Asleep),
    };
    if found.iter().any(is_known) || !scope.devices.iter().all(is_idle) {
        return;
    }
    found.retain(|it| it.is_no_matter_of_time() && it.rule != Rule::NoCure);
    found.push(Finding {
        rule: Rule::NoCure,
        severity: Severity::Info,
        title: format!("{rate} steps a second, whatever runs in them: a camera, a display or a timer most likely paces them"),
        advice: "At that pace nothing is to be gained: faster code would only wait for longer.".to_owned(),
        next: PACED,
        ..scope.found(f.span_ns, f.idle_ns, &[Occurrence::Gap(f.index, f.span)])
    });
}

/// What keeps the GPU idle, in a title. Calls of the system that sleep are no work.
fn label(scope: &Scope, f: &DeviceFigures, (group, time): (Group, Ns)) -> &'static str {
    let asleep = scope.idle_that(f, |_, piece| {
        let name = scope.causes.host_name(piece.culprit);
        name.is_some_and(|id| causes::asleep::is_sleep(scope.trace.names().full(id)))
    });
    match group {
        Group::Unknown if draws(scope) => "drawing, which leaves no record, likely",
        Group::Unknown if starts_late(scope, f, time) => {
            "a late start of work that was launched in time"
        }
        Group::Unknown => "an unknown cause",
        Group::Host if 2 * asleep >= time => "a sleep of the CPU",
        known => known.label(),
    }
}

/// What a gap ends with: " before globalMM".
fn ends_with(scope: &Scope, f: &DeviceFigures, gap: Span) -> String {
    let next = scope.causes.graph().ops.around(f.index, gap.end).1.first();
    let told = next.map(|&op| around::op_in_sentence(scope.causes, op));
    told.map_or_else(String::new, |it| format!(" before {it}"))
}

/// Where idle time lies.
#[derive(Default)]
struct Placed {
    /// For a title.
    told: String,
    /// What follows the CPU's work; empty where that differs.
    ends_with: String,
    /// The bytes of the next batch, where gaps wait for it, and for how long they do.
    batch: Option<(u64, Ns)>,
    is_once: bool,
    /// Whether that gap lies before nearly all of the GPU's work, or behind it.
    is_at_edge: bool,
}

impl Placed {
    /// Without a gap that holds nearly all of it the rest may look otherwise. `at` has the gaps, the longest first.
    fn of(
        scope: &Scope,
        f: &DeviceFigures,
        at: &[(Ns, Span)],
        (group, time): (Group, Ns),
    ) -> Option<Placed> {
        let &(longest, gap) = at.first()?;
        let is_host = group == Group::Host;
        let batch = batch_of(scope, f, at, time).filter(|_| is_host);
        let before = batch.map(|it| format!(" before {} come to the GPU", bytes(it.0)));
        if !cases::ONE_GAP.is_reached_by(share(longest, time)) {
            if let Some(before) = before {
                let told = format!(", most of it{before}");
                return Some(Placed {
                    told,
                    batch,
                    ..Placed::default()
                });
            }
            let mostly = is_host.then(|| mostly_before(scope, f, at, time)).flatten();
            return Some(
                mostly.map_or_else(Placed::default, |(ends_with, is_once)| Placed {
                    told: format!(", mostly{ends_with}"),
                    ends_with,
                    is_once,
                    is_at_edge: is_once && is_at_edge(scope, f, gap),
                    ..Placed::default()
                }),
            );
        }
        let before = before.unwrap_or_else(|| ends_with(scope, f, gap));
        let rest = busy::beside_gap(f, gap, scope.gaps(f).map(|it| it.0.span));
        Some(Placed {
            told: format!(", nearly all in one gap{before} ({rest})"),
            ends_with: if is_host { before } else { String::new() },
            batch,
            is_once: true,
            is_at_edge: is_at_edge(scope, f, gap),
        })
    }
}

/// Whether a gap lies before nearly all of the GPU's work, as set-up does, or behind it, as a check of results does.
fn is_at_edge(scope: &Scope, f: &DeviceFigures, gap: Span) -> bool {
    let usage = &scope.trace.devices()[f.index].usage;
    let parts = [(f.span.start, gap.start), (gap.end, f.span.end)];
    let mut parts = parts
        .into_iter()
        .map(|(start, end)| Span::new(start, end.max(start)));
    parts.any(|it| {
        !cases::LARGE_SHARE.is_reached_by(share(usage.time(Measure::Busy, it), f.busy_ns))
    })
}

/// So many of the longest gaps tell what others end with.
const LOOKED_AT: usize = 1_000;

/// What gaps end with that hold two thirds of some idle time; of one such gap before a copy also how much comes. And whether no other copy
/// brings as much.
fn mostly_before(
    scope: &Scope,
    f: &DeviceFigures,
    at: &[(Ns, Span)],
    time: Ns,
) -> Option<(String, bool)> {
    let some = at.iter().take(LOOKED_AT);
    let by = sum_by(some.map(|it| (ends_with(scope, f, it.1), it.0)));
    let (before, _) = by.into_iter().next().filter(|it| 3 * it.1 >= 2 * time)?;
    let &(longest, gap) = at.first()?;
    let graph = scope.causes.graph();
    let next = graph.first_from(scope.trace, f.index, gap.end);
    Some(match next {
        Some(What::Copy(it)) if it.bytes >= thresholds::LARGE_BYTES && 3 * longest >= 2 * time => {
            let same = |of: &&Copied| (of.2.direction, of.2.bytes) == (it.direction, it.bytes);
            let is_once = scope.copies(f).iter().filter(same).count() == 1;
            (format!("{before} of {}", bytes(it.bytes)), is_once)
        }
        _ => (before, false),
    })
}

/// The gaps with idle time of a group that no rule explains, the longest such time first.
fn gaps_of(
    scope: &Scope,
    f: &DeviceFigures,
    cold: Option<&FxHashSet<CallId>>,
    group: Group,
) -> Vec<(Ns, Span)> {
    let here = |gap: Gap, pieces: Pieces| untold(scope, cold, gap, pieces)[group as usize];
    let gaps = scope.gaps(f);
    let gaps = gaps.map(|(gap, pieces)| (here(gap, pieces), gap.span));
    let mut at: Vec<(Ns, Span)> = gaps.filter(|it| it.0 > 0).collect();
    at.sort_unstable_by_key(|it| Reverse(*it));
    at
}

/// The greatest group of a device that no finding tells of, where that is much.
pub(super) fn check(scope: &Scope, f: &DeviceFigures, found: &[Finding]) -> Option<Finding> {
    if !cases::NO_CURE_SHARE.is_reached_by(f.idle_share()) {
        return None;
    }
    let is_cold = found.iter().any(|it| it.rule == Rule::ColdStart);
    let cold = is_cold.then(|| cold_start::pinning(scope));
    let (group, time) = largest(scope, f, found, cold)?;
    if let Some(pauses) = pauses(scope, f, time).filter(|_| group == Group::Host) {
        return Some(pauses);
    }
    let at = gaps_of(scope, f, cold, group);
    let placed = Placed::of(scope, f, &at, (group, time))?;
    let is_known = group == Group::Unknown && !scope.causes.ends_early();
    let waits = is_known.then(|| waits_in(scope, f, &at)).flatten();
    let is_managed = group == Group::Host && scope.is_managed_at(f, at.iter().copied());
    let at: Vec<Occurrence> = at.iter().map(|it| Occurrence::Gap(f.index, it.1)).collect();
    let what = label(scope, f, (group, time));
    let seen = (what == Group::Host.label()).then(|| seen_in(scope, f));
    let (seen, part, is_spread, writes) = seen.unwrap_or_default();
    let has_cure = is_managed || matches!(group, Group::SetUp | Group::Launch);
    let brings = !placed.is_once && placed.ends_with.contains("H2D");
    let found_at = scope.found(f.span_ns, time, &at);
    let named = most_named(scope, f, &placed, (group, time));
    let is_blocked = seen.as_ref().map(|it| it.is_blocked);
    let way = match is_blocked {
        Some(true) => Way::Blocked,
        Some(false) => Way::Native,
        None if writes && placed.batch.is_none() => Way::Output,
        None if is_spread && placed.batch.is_none() && waits.is_none() => Way::InManyFunctions,
        None if waits.is_some() => Way::WhileItWaits,
        None if brings => Way::LikelyBatch,
        None if placed.batch.is_some() => Way::LateBatch,
        None => way(
            scope,
            f,
            (group, time),
            (!is_cold, is_managed, placed.is_at_edge),
        ),
    };
    let rule = match placed.batch {
        Some(_) => Rule::NextBatch,
        None if way == Way::Managed => Rule::ManagedMemory,
        None => Rule::NoCure,
    };
    // Kernels wait for pages, too, and nobody knows how long.
    let (cure, change, pages) = match rule {
        Rule::NextBatch => ("preparing batches ahead", "workers", 0),
        Rule::ManagedMemory if !placed.is_once => {
            ("prefetching pages", "prefetch", f.recorded_ns() - time)
        }
        _ if way == Way::Input => ("", "workers", 0),
        _ if way == Way::Buffers => ("", "buffers", 0),
        _ => ("", "", 0),
    };
    Some(Finding {
        rule,
        severity: found_at.severity.keep_where(!cure.is_empty()),
        cure,
        is_all: pages > 0,
        beside_ns: pages,
        title: format!(
            "{} keeps the GPU idle for {} ({}{}){}{named}{}",
            what,
            duration(time),
            percent(f.part(time)),
            a_step(scope, time),
            placed.told,
            match (placed.batch, &seen) {
                (None, None) if !has_cure && !brings =>
                    ": what a cure saves is not known".to_owned(),
                (_, line) => seen_for(line.as_ref(), part),
            },
        ),
        next: way.next(),
        advice: way.advice().to_owned() + waits.as_deref().map_or("", operators_cure),
        says: says(f, time, &placed, waits, pages > 0),
        change: scope.change(change, None),
        is_of_pauses: placed.batch.is_some(),
        ends_with: placed.ends_with,
        ..found_at
    })
}

/// ", above all in aten::unflatten_dense_tensors (45.7 ms)": the CPU's work that holds a quarter of such idle time, where it has a name.
fn most_named(
    scope: &Scope,
    f: &DeviceFigures,
    placed: &Placed,
    (group, time): (Group, Ns),
) -> String {
    if placed.batch.is_some() || placed.is_once || group != Group::Host {
        return String::new();
    }
    let mut named = Vec::new();
    for (gap, pieces) in scope.gaps(f) {
        let own = |it: &&Piece| scope.causes.group(gap, it) == Group::Host;
        let name = |it: &Piece| Some((scope.causes.host_name(it.culprit)?, it.span.len()));
        named.extend(pieces.iter().filter(own).filter_map(name));
    }
    let mut mpi = named.clone();
    mpi.retain(|it| is_mpi(scope.trace.names().full(it.0)));
    let sum_of = |of: &[(_, Ns)]| of.iter().map(|it| it.1).sum::<Ns>();
    match sum_by(named).into_iter().next() {
        Some((most, held)) if 4 * held >= time => {
            let name = describe::host_name(scope.trace, most);
            format!(", above all in {name} ({})", duration(held))
        }
        Some(_) if cases::LARGE_SHARE.is_reached_by(share(sum_of(&mpi), time)) => {
            let of_it = duration(sum_of(&mpi));
            let most = sum_by(mpi).into_iter().next();
            let most = most.map(|it| describe::host_name(scope.trace, it.0));
            format!(
                ", {of_it} of it in MPI, mostly {}",
                most.unwrap_or_default()
            )
        }
        _ => String::new(),
    }
}

/// ", 5.23 ms a step", where steps are looked at.
fn a_step(scope: &Scope, time: Ns) -> String {
    match scope.steps {
        0 | 1 => String::new(),
        steps => format!(", {} a step", duration(time / steps as Ns)),
    }
}

/// What a headline says of it.
fn says(
    f: &DeviceFigures,
    time: Ns,
    placed: &Placed,
    waits: Option<String>,
    is_managed: bool,
) -> Option<Says> {
    let of_it = |time: Ns, what: &str| match percent(share(time, f.idle_ns)).as_str() {
        "100 %" => what.to_owned(),
        _ => format!("{} {what}", percent(f.part(time))),
    };
    let (bound, why) = match (placed.batch, waits) {
        (Some((it, waits)), _) => {
            let batch = format!("waiting for the next batch of {}", bytes(it));
            (Bound::Host, of_it(waits, &batch))
        }
        (None, Some(why)) => (Bound::Unknown, why),
        _ if is_managed => {
            let why = "in untraced CPU work with managed memory";
            (Bound::Host, of_it(time, why))
        }
        _ => return None,
    };
    let part = f.part(time);
    Some(Says { bound, part, why })
}

/// So many pauses are more than chance, and more are a habit.
const PAUSE_COUNT: RangeInclusive<usize> = 4..=20;

/// No operator that launches something takes as long.
const PAUSE_MIN: Ns = 1_000_000;

/// Few long pauses of about one length that hold most of some idle time, each in another short operator. None takes that long, so that
/// the thread most likely did not run.
fn pauses(scope: &Scope, f: &DeviceFigures, time: Ns) -> Option<Finding> {
    let causes = scope.causes;
    let short = |piece: &Piece| {
        let name = scope.trace.names().full(causes.host_name(piece.culprit)?);
        let is_short = name.starts_with("aten::") || name.starts_with("<built-in ");
        is_short.then_some((piece.span.len(), name))
    };
    let mut all = Vec::new();
    for (gap, pieces) in scope.gaps(f) {
        let is_own =
            |it: &&Piece| causes.group(gap, it) == Group::Host && !causes.is_first(gap.next, it);
        let host = pieces.iter().filter(is_own);
        let long = host.filter_map(short).filter(|it| it.0 >= PAUSE_MIN);
        all.extend(long.map(|(length, name)| (length, name, gap.span)));
    }
    all.sort_unstable_by_key(|it| Reverse(it.0));
    let (longest, shortest) = (all.first()?.0, all.last()?.0);
    let names: FxHashSet<&str> = all.iter().map(|it| it.1).collect();
    let sum: Ns = all.iter().map(|it| it.0).sum();
    let are_apart = PAUSE_COUNT.contains(&names.len()) && names.len() == all.len();
    if !are_apart || 2 * sum < time || 4 * shortest < 3 * longest {
        return None;
    }
    let how_long = units::range((shortest, longest));
    let number = all.len();
    let why = format!("{number} pauses of {how_long}, each in another short call");
    let (idle, part) = (duration(sum), f.part(sum));
    let share = percent(part);
    let at = all.iter().map(|it| Occurrence::Gap(f.index, it.2));
    Some(Finding {
        rule: Rule::NoCure,
        severity: Severity::Info,
        title: format!("{why}, keep the GPU idle for {idle} ({share}): the thread most likely did not run"),
        advice: "Look at what takes its core: more threads than cores, or a container's limit (nr_throttled in cpu.stat).".to_owned(),
        says: Some(Says { bound: Bound::Host, part, why }),
        is_of_pauses: true,
        ..scope.found(f.span_ns, sum, &at.collect::<Vec<_>>())
    })
}

/// What keeps the GPU idle for most of the time that no finding tells of, where it is worth a line.
fn largest(
    scope: &Scope,
    f: &DeviceFigures,
    found: &[Finding],
    cold: Option<&FxHashSet<CallId>>,
) -> Option<(Group, Ns)> {
    let mut sums = Shares::default();
    for (gap, pieces) in scope.gaps(f) {
        let here = untold(scope, cold, gap, pieces);
        sums.iter_mut().zip(here).for_each(|(it, here)| *it += here);
    }
    // The device's own pauses are no matter of the program, nor is what other processes and the profiler take.
    for of in [Group::Queue, Group::Process, Group::Profiler] {
        sums[of as usize] = 0;
    }
    // What tells of a small part of it, or lies before the work, does not tell of it.
    let is_told = |&(group, time): &(Group, Ns)| {
        let is_much = |it: &Finding| {
            !it.instead_of.is_empty() || 2 * it.inside_ns.unwrap_or(it.bound_ns) >= time
        };
        // A fifth of the bound of launches is the work between them.
        let goes = |it: &Finding| {
            group == Group::Host && it.rule == Rule::LaunchBound && 5 * time <= it.bound_ns
        };
        // So does what stands in for one that tells.
        let stands_in = |it: &Finding| it.instead_of.iter().any(|rule| tells(*rule, group));
        let is_told = |it: &Finding| tells(it.rule, group) && is_much(it);
        (found.iter()).any(|it| is_told(it) || stands_in(it) || goes(it))
    };
    // Where launches take most, other work of the CPU is a matter of its own.
    let mut most = Group::most(sums, 0).into_iter();
    let first = most.next()?;
    let (group, time) = match first.0 {
        Group::Launch if is_told(&first) => most.find(|it| it.0 == Group::Host)?,
        _ => first,
    };
    let is_told = is_told(&(group, time));
    let launches = f.kernels + f.h2d.count + f.d2h.count;
    let is_few = group == Group::Launch && !cases::LAUNCH_OPS_MIN.is_reached_by(launches as usize);
    // What the CPU works on can be looked up; that nothing is known is worth a line only where it is much.
    let is_long = cases::NO_CURE_SHARE.is_reached_by(f.part(time))
        || group == Group::Host && cases::LARGE_SHARE.is_reached_by(f.part(time));
    let is_worth = !is_told && !is_few && is_long && time >= thresholds::WORTH_NS;
    is_worth.then_some((group, time))
}

/// Where the CPU was seen, and for which part of the time where samples do not tell of all of it.
fn seen_for(line: Option<&LineShare>, part: f64) -> String {
    match line.filter(|_| part < NEARLY) {
        Some(_) => format!("{}, for {} of that time", seen_at(line), percent(part)),
        None => seen_at(line),
    }
}

/// The function that the CPU was seen in for most idle time, of a program without Python, and for which part of it. Beside it whether
/// many samples saw no function for most of that time, and whether most saw a library that writes files.
fn seen_in(scope: &Scope, f: &DeviceFigures) -> (Option<LineShare>, f64, bool, bool) {
    let mut seen = StackCounts::default();
    for (gap, pieces) in scope.gaps(f) {
        let host = |it: &&Piece| scope.causes.group(gap, it) == Group::Host;
        let host = pieces.iter().filter(host);
        scope.causes.add_work(gap.next, host, &mut seen);
    }
    let part = seen.seen_part();
    let most = seen.at_work(scope.trace);
    let is_spread = most.is_none() && part >= NEARLY && seen.tell(scope.trace);
    let writes = most.is_none() && seen.output(scope.trace).is_some();
    (most.filter(LineShare::is_native), part, is_spread, writes)
}

/// The waits of the CPU that hold most of some idle time, where they are many. They do not say why it did
/// not work before: on WSL queued work was seen to start milliseconds later, once the CPU waited.
fn waits_in(scope: &Scope, f: &DeviceFigures, at: &[(Ns, Span)]) -> Option<String> {
    let gaps = Span::merged(at.iter().map(|it| it.1).collect());
    let waits = around::waits_within(scope.causes, &scope.processes(f), &gaps);
    let sum: Ns = waits.iter().map(|it| it.1).sum();
    let name = around::by_name(scope.causes, waits.iter().copied(), around::innermost);
    let name = name.first().filter(|it| 2 * it.1 >= sum)?;
    let is_told = cases::LOOP_MIN.is_reached_by(waits.len()) && 2 * sum >= f.idle_ns;
    let part = percent(f.part(sum.min(f.idle_ns)));
    is_told.then(|| format!("{part} in {} syncs, in {}", waits.len(), name.0))
}

/// The bytes of the batches that nearly all of this idle time lies before: those of the longest gap. And how much of it does.
fn batch_of(scope: &Scope, f: &DeviceFigures, at: &[(Ns, Span)], time: Ns) -> Option<(u64, Ns)> {
    let batches = at.iter();
    let mut batches = batches.filter_map(|it| Some((it.0, batch_behind(scope, f, it.1)?)));
    let (longest, bytes) = batches.next()?;
    let held = longest + batches.map(|it| it.0).sum::<Ns>();
    cases::ONE_GAP
        .is_reached_by(share(held, time))
        .then_some((bytes, held))
}

/// So many operations in a row without a kernel bring a model.
const MODEL_COPIES: usize = 32;

/// The bytes of a large copy to the GPU that a gap ends with, where kernels ran before it: the next batch. Before all kernels it is data
/// to begin with, and behind a copy back what the CPU has worked on. Others than PyTorch bring as much more than once.
fn batch_behind(scope: &Scope, f: &DeviceFigures, gap: Span) -> Option<u64> {
    let (ahead, behind) = scope.causes.graph().ops.around(f.index, gap.end);
    let what = |op: &OpId| scope.causes.graph().what(scope.trace, *op);
    let before = || ahead.iter().rev().map(what);
    // A value that is read back now and then is nothing to work on.
    let is_back = |of: &What| matches!(of, What::Copy(it) if it.direction == Direction::D2H && it.bytes > Copy::TINY_BYTES);
    let last = before().find(|it| matches!(it, What::Kernel(_)) || is_back(it));
    match what(behind.first()?) {
        What::Copy(it) if it.direction == Direction::H2D && it.bytes >= thresholds::LARGE_BYTES => {
            let brings = |of| matches!(of, What::Copy(of) if (of.direction, of.bytes) == (it.direction, it.bytes));
            let is_again = scope.framework() == Framework::PyTorch || before().any(brings);
            let is_behind = matches!(last, Some(What::Kernel(_)));
            // Arrays of a model come one by one, and no kernel between.
            let mut some = behind.iter().take(MODEL_COPIES).map(what);
            let is_batch = some.any(|it| matches!(it, What::Kernel(_)));
            cases::NEXT_BATCH
                .holds(is_behind && is_again && is_batch)
                .then_some(it.bytes)
        }
        _ => None,
    }
}

/// Idle time of a gap, by group, that neither a page that comes back nor a cold start, with calls that pin, explains. What precedes such a page is
/// the CPU's access to it: no matter of its code alone.
fn untold(scope: &Scope, cold: Option<&FxHashSet<CallId>>, gap: Gap, pieces: Pieces) -> Shares {
    let mut shares = Shares::default();
    let is_page = scope.causes.comes_back(gap.next);
    let is_cold = |piece: &Piece, pinning| {
        scope.causes.is_first(gap.next, piece) || cold_start::is_in(piece, pinning)
    };
    let is_told = |piece: &&Piece| is_page || cold.is_some_and(|it| is_cold(piece, it));
    for piece in pieces.iter().filter(|piece| !is_told(piece)) {
        let group = match scope.causes.is_beside_graphs(gap, piece) {
            // A larger graph is its cure.
            true => Group::Launch,
            false => scope.causes.group(gap, piece),
        };
        shares[group as usize] += piece.span.len();
    }
    shares
}
