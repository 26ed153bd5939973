//! `reuse`: memory is taken once and kept.

use super::Editing;
use crate::graph::CallKind;

/// Calls that take or give back memory between the first operation and the last go, with their waits.
pub(super) fn reuse(on: &mut Editing<'_, '_>) {
    let issued = |on: &Editing<'_, '_>, op: usize| on.issued(op as u32);
    let all = 0..on.program.ops.len();
    let Some(last) = all.map(|op| issued(on, op)).max() else {
        return;
    };
    let mut removed = Vec::new();
    for c in 0..on.program.calls.len() as u32 {
        let call = &on.program.calls[c as usize];
        if call.kind == CallKind::Memory
            && !call.is_gone
            && call.span.start < last
            && on.has_call(c)
        {
            removed.push((c, on.program.waits(c).iter().map(|wait| wait.op).collect()));
            on.remove_call(c);
        }
    }
    super::sync::keep_order(on, &removed);
    if !removed.is_empty() {
        on.applied
            .note("assumes that one allocation is large enough for every step");
    }
}
