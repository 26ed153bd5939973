//! `pin` and `merge-copies`: what copies take.

use rustc_hash::FxHashMap;

use super::{AROUND_MAX, Bound, Editing};
use crate::program::{Class, Dep, INLINE, NONE};
use activity::stats::lower_median;
use activity::units::duration;
use activity::{Copy, MemoryKind, Ns, What};
use causes::graph::{CallKind, Engine};

/// Copies whose sizes differ by no more than this factor are of one size.
const ALIKE: u64 = 2;

/// A call that only hands on a command takes so long on a usual CPU.
const CALL: Ns = 5_000;

/// Copies of pageable memory run at the rate of pinned ones, and asynchronous calls return at once.
pub(super) fn pin(on: &mut Editing<'_, '_>, given: Option<f64>) -> Result<(), String> {
    // The largest of those of which nobody knows what they would take.
    let mut unknown: Option<u64> = None;
    let mut rates = Pinned::default();
    // Asked once, of the program as it was: calls that are changed below are none of those that wait for nothing.
    let mut own = None;
    for op in 0..on.program.ops.len() as u32 {
        let Some(copy) = pageable(on, op).filter(|_| on.has_op(op)) else {
            continue;
        };
        let engine = on.program.ops[op as usize].engine;
        let time = match given {
            Some(rate) => moved(copy.bytes, rate, on.program.known.copy_fixed(engine)),
            None => match rates.time(on, engine, copy.bytes) {
                Some(time) => time,
                None => {
                    unknown = unknown.max(Some(copy.bytes));
                    continue;
                }
            },
        };
        let class = Class::Launch {
            to: engine,
            is_staged: false,
        };
        let latency = on.program.delays.typical(class, &on.program.known);
        let of = &mut on.program.ops[op as usize];
        // What was as fast as that is not slowed down.
        let gained = (of.time - time).max(0);
        of.time -= gained;
        (of.launch, of.is_staged) = (latency, false);
        // What lay before it was the staging.
        for dep in on.program.lists.get_mut(of.deps) {
            let typical = on.program.delays.typical(dep.class, &on.program.known);
            dep.delay = dep.delay.min(typical);
        }
        let call = of.call;
        on.applied.count += 1;
        if call != NONE {
            let is_async = on.call_name(call).contains("Async");
            let own = *own.get_or_insert_with(|| copy_call(on));
            let wake = Class::Wake(CallKind::Copy);
            let delay = on.program.known.wake.unwrap_or(0);
            let of = &mut on.program.calls[call as usize];
            // Where the other calls were cold, it ends as much earlier as its copy.
            let earlier = (of.own - gained).max(CALL);
            of.own = of.own.min(own.unwrap_or(Ns::MAX)).min(earlier);
            let wait = Dep::on_end(op, delay, wake);
            of.waits = on.program.lists.list((!is_async).then_some(wait));
        }
    }
    // Small ones go with the command, pinned or not.
    match unknown.filter(|&bytes| bytes > INLINE) {
        None => Ok(()),
        Some(bytes) => Err(format!(
            "the speed of pinned copies is unknown: this GPU is not calibrated, and the trace has none of about {}; \
             give a speed: `pin:12GB/s` (PCIe 3.0 x16), `pin:25GB/s` (4.0), `pin:55GB/s` (5.0)",
            activity::units::bytes(bytes)
        )),
    }
}

/// Rates of pinned copies: a profile's, or those of the trace's own.
#[derive(Default)]
struct Pinned {
    /// The trace's own, once they were asked for: engine, bytes, GB/s.
    own: Option<Vec<(Engine, u64, f64)>>,
    /// By engine and size, what such a copy would take.
    known: FxHashMap<(Engine, u64), Option<Ns>>,
}

impl Pinned {
    /// What a copy of pinned memory of this size would take; `None` where nobody knows.
    fn time(&mut self, on: &mut Editing<'_, '_>, engine: Engine, bytes: u64) -> Option<Ns> {
        if let Some(&time) = self.known.get(&(engine, bytes)) {
            return time;
        }
        let time = self.found(on, engine, bytes);
        self.known.insert((engine, bytes), time);
        time
    }

    fn found(&mut self, on: &mut Editing<'_, '_>, engine: Engine, bytes: u64) -> Option<Ns> {
        let known = &on.program.known;
        if let Some(rate) = known.pinned(engine) {
            let time = moved(bytes, rate, known.copy_fixed(engine));
            let source = &known.source;
            let note = format!("assumes {rate:.1} GB/s for pinned copies, as {source}");
            on.applied.note(note);
            return Some(time);
        }
        let own = self.own.get_or_insert_with(|| own(on));
        let is_alike = |of: &&(Engine, u64, f64)| {
            of.0 == engine && of.1 >= bytes / ALIKE && of.1 <= bytes.saturating_mul(ALIKE)
        };
        let rate = own
            .iter()
            .filter(is_alike)
            .map(|of| of.2)
            .max_by(f64::total_cmp)?;
        on.applied.note(format!(
            "assumes {rate:.1} GB/s for pinned copies, the best in this trace at that size"
        ));
        Some((bytes as f64 / rate).round() as Ns)
    }
}

/// The pinned copies of a trace.
fn own(on: &Editing<'_, '_>) -> Vec<(Engine, u64, f64)> {
    let ops = &on.scene.graph.ops;
    let rate = |op: u32| {
        let What::Copy(copy) = super::what(on.scene, op) else {
            return None;
        };
        let time = ops.span(op).len();
        let is_pinned = [copy.from, copy.to].contains(&MemoryKind::Pinned);
        let engine = ops.engine[op as usize];
        (is_pinned && time > 0).then(|| (engine, copy.bytes, copy.bytes as f64 / time as f64))
    };
    (0..ops.len() as u32).filter_map(rate).collect()
}

fn moved(bytes: u64, gb_per_s: f64, fixed: Ns) -> Ns {
    fixed + (bytes as f64 / gb_per_s).round() as Ns
}

fn pageable(on: &Editing<'_, '_>, op: u32) -> Option<Copy> {
    if on.program.ops[op as usize].is_gone {
        return None;
    }
    match on.what(op) {
        What::Copy(copy) if copy.is_pageable() => Some(copy),
        _ => None,
    }
}

/// What an asynchronous copy's call takes: the median of those that wait for nothing, else what is known, else what launches take.
pub(super) fn copy_call(on: &Editing<'_, '_>) -> Option<Ns> {
    let usual = |kind: CallKind| {
        let calls = on.program.calls.iter().zip(0..);
        let plain = calls.filter(|(call, id)| {
            let first = on.scene.graph.calls.first_op[on.program.call_id(*id) as usize];
            let is_plain = first != NONE && !on.scene.graph.ops.is_staged(first);
            on.program.kind(*id) == kind && is_plain && call.waits.is_empty()
        });
        lower_median(
            &mut plain
                .map(|it| on.program.call_span(it.1).len())
                .collect::<Vec<Ns>>(),
        )
    };
    usual(CallKind::Copy)
        .or(on.program.known.copy_call)
        .or_else(|| usual(CallKind::Launch))
}

/// At least one of so many pauses between neighbours is long, else a pause counts as time that the thread lost. What is
/// part of a loop comes again.
const RARE: usize = 100;

/// Neighbouring copies of one direction become one: the fixed cost once, the bytes at the rate of large ones.
pub(super) fn merge(on: &mut Editing<'_, '_>) {
    let (mut pauses, mut long) = (0, 0);
    let mut runs: Vec<Vec<(u32, bool)>> = Vec::new();
    for list in on.streams() {
        // Copies of one run, each with whether the thread worked before it.
        let mut run: Vec<(u32, bool)> = Vec::new();
        for &op in &list {
            let is_mine = matches!(on.what(op), What::Copy(_)) && on.has_op(op);
            let before = run.last().map(|&(before, _)| before).filter(|&before| {
                let of = |op: u32| on.program.ops[op as usize].engine;
                of(before) == of(op)
                    && !on.is_step_between(on.program.issued(before), on.program.issued(op))
            });
            let calls = before.map(|before| {
                let of = |op: u32| on.program.ops[op as usize].call;
                (of(before), of(op))
            });
            if before.is_none() || !is_mine {
                runs.push(std::mem::take(&mut run));
            }
            if is_mine {
                let worked = calls.is_some_and(|(from, to)| works_between(on, from, to));
                pauses += usize::from(calls.is_some());
                long += usize::from(worked);
                run.push((op, worked));
            }
        }
        runs.push(run);
    }
    let is_rare = long > 0 && pauses >= RARE * long;
    let parts = !is_rare || on.scene.bound != Bound::Least;
    for run in runs {
        for part in run.chunk_by(|_, &(_, worked)| !(worked && parts)) {
            let ops: Vec<u32> = part.iter().map(|&(op, _)| op).collect();
            one_of(on, &ops);
        }
    }
    if is_rare && on.applied.count > 0 {
        on.applied.unknown(format!(
            "pauses over {} between copies ({long} of {pauses}) are assumed to be CPU work, and may be avoidable",
            duration(AROUND_MAX),
        ));
    }
}

/// So many calls back the call of the copy before is looked for.
const BACK: usize = 16;

/// Whether a thread does more between two calls than to get around its loop. Such work may need the first copy, or make
/// what the second one copies.
fn works_between(on: &Editing<'_, '_>, from: u32, to: u32) -> bool {
    let mut at = to;
    for _ in 0..BACK {
        if at == NONE || at == from {
            break;
        }
        let hand_over = on.program.hand_over.get(&at).copied().unwrap_or(0);
        if on.program.calls[at as usize].think.max(hand_over) > AROUND_MAX {
            return true;
        }
        at = on.program.previous(at);
    }
    false
}

fn one_of(on: &mut Editing<'_, '_>, run: &[u32]) {
    let [first, rest @ ..] = run else { return };
    if rest.is_empty() {
        return;
    }
    let time = |op: &u32| on.program.ops[*op as usize].time;
    let bytes_of = |op: &u32| match on.what(*op) {
        What::Copy(copy) => copy.bytes,
        _ => 0,
    };
    let bytes: u64 = run.iter().map(bytes_of).sum();
    let engine = on.program.ops[*first as usize].engine;
    let is_large = |op: &&u32| bytes_of(op) > Copy::TINY_BYTES;
    let large = run.iter().filter(is_large);
    let is_staged = large
        .clone()
        .any(|&op| on.program.ops[op as usize].is_staged);
    // A rate of pinned memory says nothing of pageable one, nor a large copy what every copy takes.
    let known = on.program.known.pinned(engine).filter(|_| !is_staged);
    let least = match large.count() < run.len() {
        true => run.iter().map(time).min().unwrap_or(0),
        false => 0,
    };
    let together = match known {
        Some(rate) => moved(bytes, rate, on.program.known.copy_fixed(engine)),
        // What each takes beyond the shortest, which is nearly all fixed cost, is what its bytes take. Copies of one size differ
        // by chance: the fastest tells.
        None => {
            let mut fastest: FxHashMap<u64, Ns> = FxHashMap::default();
            for op in run {
                let known = fastest.entry(bytes_of(op)).or_insert(Ns::MAX);
                *known = time(op).min(*known);
            }
            let is_most = on.scene.bound == Bound::Most;
            let of_bytes = |op| {
                if is_most {
                    time(op)
                } else {
                    fastest[&bytes_of(op)]
                }
            };
            least + run.iter().map(|op| of_bytes(op) - least).sum::<Ns>()
        }
    };
    let whole: Ns = run.iter().map(time).sum();
    on.program.ops[*first as usize].time = together.clamp(least, whole);
    for &op in rest {
        on.program.ops[op as usize].is_gone = true;
    }
    on.join_calls(run, false);
    if known.is_none() {
        on.applied
            .unknown("the time of large copies is not known: this GPU is not calibrated (`cuptop calibrate`)");
    }
    on.applied
        .note("assumes that the copied buffers are contiguous");
}
