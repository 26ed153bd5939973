//! `async`: copies that the host waits for return at once.

use super::{AROUND_MAX, Editing};
use crate::program::{Class, Dep, List};
use activity::What;
use causes::graph::{CallKind, Engine};

/// Copies of pinned memory do not block their caller; the next wait of the thread covers them.
pub(super) fn asynchronous(on: &mut Editing<'_, '_>) {
    let mut staged = 0;
    for c in 0..on.program.calls.len() as u32 {
        let call = &on.program.calls[c as usize];
        if on.program.kind(c) != CallKind::Copy || call.is_gone || !on.has_call(c) {
            continue;
        }
        let waited = on.program.waits(c).first().map(|wait| wait.op);
        let Some(op) = waited.or_else(|| uploaded(on, c)) else {
            continue;
        };
        let is_pageable = matches!(on.what(op), What::Copy(copy) if copy.is_pageable());
        // Pinned by another edit, a copy no longer starts as one that is staged.
        if is_pageable && on.program.ops[op as usize].is_staged {
            staged += 1;
            continue;
        }
        if waited.is_none() {
            // A sync right behind an upload makes a blocking copy of it, as frameworks write one.
            let Some(sync) = sync_behind(on, c) else {
                continue;
            };
            on.remove_call(sync);
        } else {
            on.program.calls[c as usize].waits = List::default();
            on.applied.count += 1;
        }
        if let Some(next) = on.next_wait(c) {
            let class = Class::Wake(on.program.kind(next));
            let delay = on.program.delays.typical(class, &on.program.known);
            let waits = &mut on.program.calls[next as usize].waits;
            on.program.lists.push(waits, Dep::on_end(op, delay, class));
        }
    }
    if staged > 0 {
        on.applied.note(format!(
            "{staged} copies of pageable memory stay blocking: only pinned memory is copied asynchronously (try `pin+async`)"
        ));
    }
    on.applied
        .note("assumes that copied data is first read after the thread's next sync");
}

/// The upload that a call launched.
fn uploaded(on: &Editing<'_, '_>, call: u32) -> Option<u32> {
    let first = on.scene.graph.calls.first_op[on.program.call_id(call) as usize];
    let op = on.program.op_of(first)?;
    (on.program.ops[op as usize].engine == Engine::H2D).then_some(op)
}

/// The next call of its thread, where that is a wait for the stream and follows at once.
fn sync_behind(on: &Editing<'_, '_>, call: u32) -> Option<u32> {
    let lane = on.program.lane(call);
    let is_next = |&c: &u32| on.program.lane(c) == lane;
    let next = (call + 1..on.program.calls.len() as u32).find(is_next)?;
    let of = &on.program.calls[next as usize];
    let is_sync =
        on.program.kind(next) == CallKind::WaitStream && !of.is_gone && of.think <= AROUND_MAX;
    is_sync.then_some(next)
}
