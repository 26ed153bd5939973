//! `scale:NAME=x` and `drop:NAME`: operations, calls and ranges of the host by name.

use rustc_hash::FxHashMap;

use super::Editing;
use super::within::{self, Ranges};
use crate::program::NONE;
use activity::{NameId, Ns, Span, What};
use trace::LaneId;

/// Operations of this name take `factor` of their time; in ranges of this name, so does what the thread
/// does between calls.
pub(super) fn scale(on: &mut Editing<'_, '_>, name: &str, factor: f64) {
    let scaled_ops = named(on, name);
    for page in pages(on, &scaled_ops) {
        let op = &mut on.program.ops[page as usize];
        op.time = scaled(op.time, factor);
        let deps = op.deps;
        for dep in on.program.lists.get_mut(deps) {
            dep.delay = scaled(dep.delay, factor);
        }
    }
    for op in scaled_ops {
        let op = &mut on.program.ops[op as usize];
        op.time = scaled(op.time, factor);
        on.applied.count += 1;
    }
    let ranges = within::ranges(on.scene.trace, name);
    for call in 0..on.program.calls.len() as u32 {
        let inside = think_in(on, call, &ranges);
        if inside > 0 && on.has_call(call) {
            let call = &mut on.program.calls[call as usize];
            call.think += scaled(inside, factor) - inside;
            on.applied.count += 1;
        }
    }
}

/// Operations and calls of this name are left out; of ranges of this name, everything in them is.
pub(super) fn drop(on: &mut Editing<'_, '_>, name: &str) {
    let dropped = named(on, name);
    for page in pages(on, &dropped) {
        on.program.ops[page as usize].is_gone = true;
    }
    for op in dropped {
        on.program.ops[op as usize].is_gone = true;
        on.applied.count += 1;
        remove_idle_call(on, op);
    }
    let ranges = within::ranges(on.scene.trace, name);
    let mut works = false;
    for call in 0..on.program.calls.len() as u32 {
        if on.program.calls[call as usize].is_gone || !on.has_call(call) {
            continue;
        }
        let inside = think_in(on, call, &ranges);
        on.program.calls[call as usize].think -= inside;
        on.applied.count += usize::from(inside > 0);
        works |= inside > 0;
        if is_inside(on, call, &ranges) || on.call_name(call) == name {
            on.remove_call(call);
        }
    }
    for op in 0..on.program.ops.len() as u32 {
        let call = on.program.ops[op as usize].call;
        if call != NONE && is_inside(on, call, &ranges) && on.has_call(call) {
            on.program.ops[op as usize].is_gone = true;
        }
    }
    if works {
        on.applied.note(format!(
            "assumes that the CPU work in `{name}` is removed, not moved; `prefetch:{name}` predicts moving it one step ahead"
        ));
    }
}

/// What threads do between calls within the range that an edit is limited to goes; nothing where it is limited to none.
pub(super) fn without_work(on: &mut Editing<'_, '_>) {
    let Some(ranges) = &on.within.0 else {
        return;
    };
    for call in 0..on.program.calls.len() as u32 {
        let inside = think_in(on, call, ranges);
        on.program.calls[call as usize].think -= inside;
    }
}

fn scaled(time: Ns, factor: f64) -> Ns {
    (time as f64 * factor).round() as Ns
}

/// Operations whose name this is, or has it as a part.
fn named(on: &Editing<'_, '_>, name: &str) -> Vec<u32> {
    let mut fits: FxHashMap<NameId, bool> = FxHashMap::default();
    let names = on.scene.trace.names();
    let mut found = Vec::new();
    for op in 0..on.program.ops.len() as u32 {
        let is_named = match on.what(op) {
            What::Kernel(kernel) => {
                let id = on.scene.trace.shape(kernel.shape).name;
                *fits
                    .entry(id)
                    .or_insert_with(|| names.full(id).contains(name) || names.short(id) == name)
            }
            What::Copy(copy) => copy.direction.label().eq_ignore_ascii_case(name),
            What::Memset(_) => name.eq_ignore_ascii_case("memset"),
            _ => false,
        };
        if is_named && !on.program.ops[op as usize].is_gone && on.has_op(op) {
            found.push(op);
        }
    }
    found
}

/// Pages of managed memory that moved while one of these operations ran, in order of time: it asked for them.
fn pages(on: &Editing<'_, '_>, named: &[u32]) -> Vec<u32> {
    let span = |op: u32| on.program.op_span(op);
    let asked = |page: &u32| {
        let behind = named.partition_point(|&op| span(op).start <= span(*page).start);
        let before = named[..behind].last();
        before.is_some_and(|&op| op != *page && span(op).contains(span(*page).start))
    };
    let all = 0..on.program.ops.len() as u32;
    let moved = all.filter(|&op| on.what(op).is_migration());
    moved.filter(asked).collect()
}

/// The call of a dropped operation goes when nothing else came from it.
fn remove_idle_call(on: &mut Editing<'_, '_>, op: u32) {
    let call = on.program.ops[op as usize].call;
    if call == NONE || on.program.calls[call as usize].is_gone {
        return;
    }
    let ops = &on.program.ops;
    let near = op.saturating_sub(16)..(op + 16).min(ops.len() as u32);
    if near
        .into_iter()
        .all(|o| ops[o as usize].call != call || ops[o as usize].is_gone)
    {
        on.remove_call(call);
    }
}

pub(super) fn of_thread<'r>(on: &Editing<'_, '_>, call: u32, ranges: &'r Ranges) -> &'r [Span] {
    let lane = on.program.lane(call) as LaneId;
    within::of_thread(on.scene.trace, lane, ranges)
}

fn is_inside(on: &Editing<'_, '_>, call: u32, ranges: &Ranges) -> bool {
    let begins = on.program.call_span(call).start;
    within::is_in(of_thread(on, call, ranges), begins)
}

/// How much of what a thread did before a call lies in the ranges.
pub(super) fn think_in(on: &Editing<'_, '_>, call: u32, ranges: &Ranges) -> Ns {
    let all = on.program.calls[call as usize].think;
    let previous = on.program.previous(call);
    let list = of_thread(on, call, ranges);
    if previous == NONE || all == 0 || list.is_empty() {
        return 0;
    }
    let think = Span::new(
        on.program.call_span(previous).end,
        on.program.call_span(call).start,
    );
    let to = list.partition_point(|span| span.start < think.end);
    // Ranges of one name may lie within each other.
    let near = list[..to].iter().rev().take(64);
    let near = near.map(|span| span.intersect(think)).collect();
    let inside = Span::merged(near).into_iter().map(Span::len).sum::<Ns>();
    inside.min(all)
}
