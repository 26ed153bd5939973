//! A wait for the GPU between one launch and the next, over and over.

use rustc_hash::FxHashMap;

use super::no_overlap::Engines;
use super::words::seen_at;
use super::{DeviceFigures, Finding, Occurrence, Scope, Severity};
use crate::causes::Cause;
use crate::first_use;
use crate::graph::{CallId, CallKind, NONE};
use crate::stacks::StackCounts;
use crate::thresholds;
use activity::units::{duration, percent};
use activity::{Copy, Direction, Ns, Span, What};

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    // What is idle around waits is a part of what is idle.
    if f.idle_share() < thresholds::WORTH_SHARE {
        return None;
    }
    let calls = &scope.causes.graph().calls;
    // What a call was made in.
    let operator = |call| Some(first_use::operator(scope.trace, scope.causes.graph(), call)?.1);
    let mut by_wait: FxHashMap<CallId, Ns> = FxHashMap::default();
    let mut spans: Vec<Span> = Vec::new();
    let (mut seen, mut has_needed) = (StackCounts::default(), false);
    // What the CPU works on behind a sync may be managed memory.
    let is_managed = scope.planned.is_none() && scope.is_managed(f);
    for (gap, pieces) in scope.gaps(f) {
        for piece in &*pieces {
            if let Some(wait) = scope.causes.wait_of(piece) {
                if operator(wait).is_some_and(first_use::is_search) {
                    continue;
                }
                // What the CPU works on for long may be what it waited for.
                let may_read = is_managed && piece.cause == Cause::Host;
                if may_read || piece.is_long_work(&gap) || is_needed(scope, wait) {
                    has_needed = true;
                    continue;
                }
                if is_staged_back(scope, wait) {
                    continue;
                }
                *by_wait.entry(calls.with_copy(wait)).or_default() += piece.span.len();
                spans.push(calls.span(wait));
                scope.causes.add_samples(gap.next, piece.span, &mut seen);
            }
        }
    }
    let sum = by_wait.values().sum::<Ns>();
    let of_values = by_wait.iter().filter(|it| fetches_value(scope, *it.0));
    let of_values = 2 * of_values.map(|it| *it.1).sum::<Ns>() >= sum;
    let idle = sum.min(Span::union_len(spans));
    let mut at: Vec<(CallId, Ns)> = by_wait.into_iter().collect();
    at.sort_by_key(|&(wait, part)| (std::cmp::Reverse(part), wait));
    let share = f.part(idle);
    let least = match share >= thresholds::LARGE_SHARE {
        true => thresholds::FEW_WAITS_MIN,
        false => thresholds::LOOP_MIN,
    };
    if (at.len() as u64) < least || share < thresholds::WORTH_SHARE {
        return None;
    }
    // Only what `.item()` brings is mostly printed. Other values say what comes next, and so may managed memory.
    let is_item = |call: CallId| operator(call) == Some("aten::_local_scalar_dense");
    let printed = at.iter().filter(|it| is_item(it.0));
    let is_printed = 2 * printed.map(|it| it.1).sum::<Ns>() >= sum;
    let decides = is_managed || scope.planned.is_none() && of_values && !is_printed;
    // Waits keep engines from working beside each other, too, which is no idle time. Without all of them the host is
    // done sooner by what they last. Where some have to stay, nothing runs ahead of those.
    let window = scope.window_on(f.index).unwrap_or(f.span);
    let processes = scope.processes(f).into_iter();
    let waited = processes
        .flat_map(|process| calls.ended(process, Ns::MAX))
        .filter(|call| calls.waited[**call as usize] != NONE)
        .map(|&call| calls.span(call))
        .filter(|span| span.overlaps(window));
    // Which kernels of two streams need each other only a scenario says. On one stream each waits for the one before.
    let lanes = scope.trace.streams_of(f.index).map(|it| it.0);
    let hideable = match scope.planned {
        Some(_) => Engines::new(scope, f).packable(),
        None if lanes.filter(|&id| !scope.rows(id).is_empty()).count() > 1 => {
            Engines::new(scope, f).hideable()
        }
        None => 0,
    };
    let bound = match has_needed || decides {
        true => idle,
        false => Span::union_len(waited.collect()).clamp(idle, idle + hideable),
    };
    let row = |it: &(CallId, Ns)| Occurrence::Row(calls.at(it.0));
    let at: Vec<Occurrence> = at.iter().map(row).collect();
    let found = scope.found(f.span_ns, bound, &at);
    let apart = match found.bound_ns - idle {
        more if 20 * more >= idle => {
            format!(", and keep engines from overlapping for {}", duration(more))
        }
        _ => String::new(),
    };
    Some(Finding {
        title: format!(
            "{} between launches keep the GPU idle for {} ({}){}{}",
            activity::text::counted(at.len() as u64, "CPU sync", "CPU syncs"),
            duration(idle),
            percent(f.part(idle)),
            apart,
            seen_at(seen.telling(scope.trace).as_ref()),
        ),
        advice: format!(
            "{} Where a result decides what is launched next, its sync has to stay.",
            match of_values {
                true =>
                    "Keep the values on the GPU, or copy many back at once, not one by one as `.item()` does.",
                false =>
                    "Launch ahead and sync once at the end. Where a stream needs another's result, use an event (cudaStreamWaitEvent).",
            }
        ),
        severity: match share >= thresholds::WARNING_SHARE && !decides {
            true => found.severity,
            false => Severity::Info,
        },
        refused: (has_needed || decides)
            .then(|| "the CPU may use what it waits for, so some syncs have to stay".to_owned()),
        ..found
    })
}

/// Whether it is a copy back to pageable memory, which waits to stage it: `pageable-copy` tells of those.
fn is_staged_back(scope: &Scope, wait: CallId) -> bool {
    let calls = &scope.causes.graph().calls;
    let is_copy = calls.kind[wait as usize] == CallKind::Copy && fetched(scope, wait).is_some();
    is_copy && scope.causes.is_staged(calls.waited[wait as usize])
}

/// Whether what was waited for brings a value or a few to the CPU.
fn fetches_value(scope: &Scope, wait: CallId) -> bool {
    fetched(scope, wait).is_some_and(|bytes| bytes <= Copy::TINY_BYTES)
}

/// Bytes that what was waited for brings to the CPU.
fn fetched(scope: &Scope, wait: CallId) -> Option<u64> {
    let graph = scope.causes.graph();
    let waited = graph.calls.waited[wait as usize];
    let (lane, row) = (waited != NONE).then(|| graph.ops.place(waited))?;
    match scope.trace.what(lane, row) {
        What::Copy(copy) if copy.direction == Direction::D2H => Some(copy.bytes),
        _ => None,
    }
}

/// Bytes a nanosecond at which one core reads memory at best.
const READ_RATE: f64 = 20.0;

/// Whether the CPU works on what it waits for: a large copy to its memory. After it the CPU is at work for as long as it
/// takes to read that. It cannot go on without.
fn is_needed(scope: &Scope, wait: CallId) -> bool {
    let Some(bytes) = fetched(scope, wait) else {
        return false;
    };
    let calls = &scope.causes.graph().calls;
    let read = (bytes as f64 / READ_RATE) as Ns;
    let mut after = std::iter::successors(Some(wait), |call| calls.next(*call)).skip(1);
    let next = after.find(|&call| !calls.kind[call as usize].is_wait());
    let next = next.map_or(Ns::MAX, |next| calls.start[next as usize]);
    bytes > Copy::TINY_BYTES && next.saturating_sub(calls.end[wait as usize]) >= read
}
