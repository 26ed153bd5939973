//! `reuse`: memory of the device, and what is pinned of the host, is taken once and kept.

use super::Editing;
use activity::Ns;
use activity::stats::lower_median;
use causes::graph::CallKind;

/// An allocation or a free is that of a library that starts where it takes so long, and so many times what others do.
const SET_UP_MIN: Ns = 10_000_000;
const OUTLIER: Ns = 10;

/// Calls that take or give back memory between the first operation and the last go, with their waits.
pub(super) fn reuse(on: &mut Editing<'_, '_>) {
    let issued = |on: &Editing<'_, '_>, op: usize| on.program.issued(op as u32);
    let all = 0..on.program.ops.len();
    let Some(last) = all.map(|op| issued(on, op)).max() else {
        return;
    };
    let mut removed = Vec::new();
    let calls = on.program.calls.iter().zip(0..);
    let mut times: Vec<Ns> = calls
        .filter(|(_, c)| on.program.kind(*c) == CallKind::Memory)
        .map(|(call, _)| call.own)
        .collect();
    let usual = lower_median(&mut times).unwrap_or(0);
    for c in 0..on.program.calls.len() as u32 {
        let call = &on.program.calls[c as usize];
        // A library that starts takes its time whoever reuses what.
        let is_start = call.own >= SET_UP_MIN && call.own >= OUTLIER * usual;
        if on.program.kind(c) == CallKind::Memory
            && !is_start
            && !call.is_gone
            && on.program.call_span(c).start < last
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
