//! `async`: copies that the host waits for return at once.

use super::Editing;
use crate::graph::CallKind;
use crate::program::{Class, Dep};
use activity::{MemoryKind, What};

/// Copies of pinned memory do not block their caller; the next wait of the thread covers them.
pub(super) fn asynchronous(on: &mut Editing<'_, '_>) {
    let mut staged = 0;
    for c in 0..on.program.calls.len() as u32 {
        let call = &on.program.calls[c as usize];
        if call.kind != CallKind::Copy || call.is_gone || !on.has_call(c) {
            continue;
        }
        let Some(op) = call.waits.first().map(|wait| wait.op) else {
            continue;
        };
        let is_pageable = match on.what(op) {
            What::Copy(copy) => [copy.from, copy.to].contains(&MemoryKind::Pageable),
            _ => false,
        };
        // Pinned by another edit, a copy no longer starts as one that is staged.
        let is_staged = matches!(
            on.program.ops[op as usize].launch.1,
            Class::Launch {
                is_staged: true,
                ..
            }
        );
        if is_pageable && is_staged {
            staged += 1;
            continue;
        }
        on.program.calls[c as usize].waits.clear();
        on.applied.count += 1;
        if let Some(next) = on.next_wait(c) {
            let class = Class::Wake(on.program.calls[next as usize].kind);
            let delay = on.program.delays.typical(class, &on.program.known);
            on.program.calls[next as usize].waits.push(Dep {
                op,
                is_start: false,
                delay,
                class,
            });
        }
    }
    if staged > 0 {
        on.applied.note(format!(
            "{staged} copies of pageable memory stay as they are: they cannot be asynchronous unless they are pinned (`pin+async`)"
        ));
    }
    on.applied
        .note("nothing reads what these copies bring before the thread's next wait");
}
