//! `pin` and `merge-copies`: what copies take.

use super::{AROUND_MAX, Editing};
use crate::activity::{Copy, MemoryKind, Ns, What};
use crate::analysis::graph::{CallKind, Engine};
use crate::analysis::program::{Class, Dep, NONE};

/// Copies whose sizes differ by no more than this factor are of one size.
const ALIKE: u64 = 2;

/// Copies of pageable memory run at the rate of pinned ones, and asynchronous calls return at once.
pub(super) fn pin(on: &mut Editing<'_, '_>, given: Option<f64>) -> Result<(), String> {
    for op in 0..on.program.ops.len() as u32 {
        let Some(copy) = pageable(on, op).filter(|_| on.has_op(op)) else {
            continue;
        };
        let engine = on.program.ops[op as usize].engine;
        let time = match given {
            Some(rate) => moved(copy.bytes, rate, on.program.known.copy_fixed(engine)),
            None => pinned(on, engine, copy.bytes)?,
        };
        let class = Class::Launch {
            to: engine,
            is_staged: false,
        };
        let latency = on.program.delays.typical(class, &on.program.known);
        let of = &mut on.program.ops[op as usize];
        // What was as fast as that is not slowed down.
        of.time = of.time.min(time);
        of.launch = (latency, class);
        // What lay before it was the staging.
        for dep in &mut of.deps {
            let typical = on.program.delays.typical(dep.class, &on.program.known);
            dep.delay = dep.delay.min(typical);
        }
        let call = of.call;
        on.applied.count += 1;
        if call != NONE {
            let is_async = on.call_name(call).contains("Async");
            let own = copy_call(on);
            let wake = Class::Wake(CallKind::Copy);
            let delay = on.program.known.wake.unwrap_or(0);
            let of = &mut on.program.calls[call as usize];
            of.own = of.own.min(own.unwrap_or(of.own));
            of.waits.clear();
            if !is_async {
                of.waits.push(Dep {
                    op,
                    is_start: false,
                    delay,
                    class: wake,
                });
            }
        }
    }
    Ok(())
}

/// What a copy of pinned memory of this size would take.
fn pinned(on: &mut Editing<'_, '_>, engine: Engine, bytes: u64) -> Result<Ns, String> {
    let known = &on.program.known;
    if let Some(rate) = known.pinned(engine) {
        let time = moved(bytes, rate, known.copy_fixed(engine));
        let note = format!("pinned copies at {rate:.1} GB/s: {}", known.source);
        on.applied.note(note);
        return Ok(time);
    }
    let best = on
        .scene
        .graph
        .ops
        .start
        .iter()
        .enumerate()
        .filter_map(|(id, _)| {
            let op = id as u32;
            let What::Copy(copy) = super::what(on.scene, op) else {
                return None;
            };
            let is_alike = copy.bytes >= bytes / ALIKE && copy.bytes <= bytes.saturating_mul(ALIKE);
            let is_pinned = [copy.from, copy.to].contains(&MemoryKind::Pinned);
            let time = on.scene.graph.ops.span(op).len();
            (is_alike && is_pinned && on.scene.graph.ops.engine[id] == engine && time > 0)
                .then(|| copy.bytes as f64 / time as f64)
        });
    let Some(rate) = best.max_by(f64::total_cmp) else {
        return Err(format!(
            "no rate of pinned copies is known: neither a profile of this GPU nor a pinned copy of this size in the trace \
             ({}); say it: `pin:55GB/s`",
            crate::activity::units::bytes(bytes)
        ));
    };
    on.applied.note(format!(
        "pinned copies at {rate:.1} GB/s: the best of the trace's own of that size"
    ));
    Ok((bytes as f64 / rate).round() as Ns)
}

fn moved(bytes: u64, gb_per_s: f64, fixed: Ns) -> Ns {
    fixed + (bytes as f64 / gb_per_s).round() as Ns
}

fn pageable(on: &Editing<'_, '_>, op: u32) -> Option<Copy> {
    if on.program.ops[op as usize].is_gone {
        return None;
    }
    match on.what(op) {
        What::Copy(copy) if [copy.from, copy.to].contains(&MemoryKind::Pageable) => Some(copy),
        _ => None,
    }
}

/// What an asynchronous copy's call takes: the median of those that wait for nothing, else what is known.
fn copy_call(on: &Editing<'_, '_>) -> Option<Ns> {
    let mut own: Vec<Ns> = Vec::new();
    for call in &on.program.calls {
        let first = on.scene.graph.calls.first_op[call.id as usize];
        let is_plain = first != NONE && !on.scene.graph.ops.is_staged(first);
        if call.kind == CallKind::Copy && is_plain && call.waits.is_empty() {
            own.push(call.span.len());
        }
    }
    own.sort_unstable();
    own.get(own.len().saturating_sub(1) / 2)
        .copied()
        .or(on.program.known.copy_call)
}

/// Neighbouring copies of one direction become one: the fixed cost once, the bytes at the rate of large ones.
pub(super) fn merge(on: &mut Editing<'_, '_>) {
    for list in on.streams() {
        let mut run: Vec<u32> = Vec::new();
        for &op in &list {
            let follows = run.last().is_some_and(|&before| {
                let (a, b) = (
                    &on.program.ops[before as usize],
                    &on.program.ops[op as usize],
                );
                a.engine == b.engine
                    && !on.is_step_between(on.issued(before), on.issued(op))
                    && !works_between(on, a.call, b.call)
            });
            let is_mine = matches!(on.what(op), What::Copy(_)) && on.has_op(op);
            if !(follows && is_mine) {
                one_of(on, &run);
                run.clear();
            }
            if is_mine {
                run.push(op);
            }
        }
        one_of(on, &run);
    }
}

/// So many calls back the call of the copy before is looked for.
const BACK: usize = 16;

/// Whether a thread does more between two calls than to get around its loop: work of its own, for which the first copy
/// may be there, or which makes what the second one copies.
fn works_between(on: &Editing<'_, '_>, from: u32, to: u32) -> bool {
    let mut at = to;
    for _ in 0..BACK {
        if at == NONE || at == from {
            break;
        }
        let call = &on.program.calls[at as usize];
        if call.think.max(call.handed.1) > AROUND_MAX {
            return true;
        }
        at = call.previous;
    }
    false
}

fn one_of(on: &mut Editing<'_, '_>, run: &[u32]) {
    let [first, rest @ ..] = run else { return };
    if rest.is_empty() {
        return;
    }
    let time = |op: &u32| on.program.ops[*op as usize].time;
    let bytes: u64 = run
        .iter()
        .map(|&op| match on.what(op) {
            What::Copy(copy) => copy.bytes,
            _ => 0,
        })
        .sum();
    let engine = on.program.ops[*first as usize].engine;
    let least = run.iter().map(time).min().unwrap_or(0);
    let together = match on.program.known.pinned(engine) {
        Some(rate) => moved(bytes, rate, on.program.known.copy_fixed(engine)),
        // What each takes beyond the shortest, which is nearly all fixed cost, is what its bytes take.
        None => least + run.iter().map(|op| time(op) - least).sum::<Ns>(),
    };
    let whole: Ns = run.iter().map(time).sum();
    on.program.ops[*first as usize].time = together.clamp(least, whole);
    for &op in rest {
        on.program.ops[op as usize].is_gone = true;
    }
    on.join_calls(run, false);
    on.applied
        .note("the copies' memory is taken to lie together");
}
