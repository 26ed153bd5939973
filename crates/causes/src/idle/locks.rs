//! Calls that wait for another thread's call: the driver has locks of its own, and some calls hold one for long.
//!
//! No record names a lock. It is likely that one was held where a launch, which is short as a rule, begins while
//! another thread is in a call. If both return together, the two took the same lock. The other must be one that
//! ordinarily takes long (it allocates, loads, makes ready). Two calls that are short as a rule also return together in
//! a process that had no core. A call that is there to wait for the device lets others in; a free that waits does not.

use super::Causes;
use crate::graph::{CallId, CallKind, Graph, NONE};
use activity::Ns;

/// A launch that takes no longer has not waited.
const WAIT_MIN: Ns = 20_000;

/// One that waited took so many times as long as launches do, or more …
const TIMES: Ns = 4;

/// … and returned so soon after the other call, beside the time that launches take.
const SOON: Ns = 5_000;

/// Calls that ended so shortly before are looked at.
const BACK: usize = 32;

impl Causes<'_> {
    /// The call of another thread that a launch or an asynchronous copy seems to have waited for.
    pub(super) fn holder(&self, call: CallId) -> Option<CallId> {
        let calls = &self.graph.calls;
        let span = calls.span(call);
        let usual = self.ready.limits.usual(calls.kind[call as usize])?;
        let is_held = span.len() >= WAIT_MIN && span.len() >= TIMES * usual;
        if !is_held || !is_plain(self.graph, call) {
            return None;
        }
        let lane = |call: CallId| calls.at(call).0;
        let process = self.trace.lanes()[lane(call)].key().process;
        let list = calls.ended(process, span.end);
        let near = list.iter().rev().take(BACK).copied();
        near.take_while(|&other| calls.end[other as usize] >= span.end - usual - SOON)
            .find(|&other| {
                lane(other) != lane(call)
                    && calls.start[other as usize] <= span.start
                    && may_hold(calls.kind[other as usize])
            })
    }
}

/// Whether calls of this kind take long by themselves.
fn may_hold(kind: CallKind) -> bool {
    matches!(
        kind,
        CallKind::Memory | CallKind::Load | CallKind::GraphSetup | CallKind::Other
    )
}

/// Whether a call only hands something over: launches, and copies that nothing stages.
pub(super) fn is_plain(graph: &Graph, call: CallId) -> bool {
    let i = call as usize;
    let first = graph.calls.first_op[i];
    match graph.calls.kind[i] {
        CallKind::Launch => graph.calls.waited[i] == NONE,
        CallKind::Copy => {
            graph.calls.waited[i] == NONE && first != NONE && !graph.ops.is_staged(first)
        }
        _ => false,
    }
}
