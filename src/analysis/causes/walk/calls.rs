//! What of a gap lies in host calls, and between them.

use super::Walk;
use crate::activity::{Ns, Span};
use crate::analysis::causes::host::Taker;
use crate::analysis::causes::limits::stages_first;
use crate::analysis::causes::{Cause, Certainty, Culprit};
use crate::analysis::graph::{CallId, CallKind, Engine, LATENCY_MAX, NONE, OpId};
use crate::trace::LaneKind;

impl Walk<'_, '_> {
    /// From a call to the operation that nothing else held back.
    pub(super) fn launched(&mut self, op: OpId, call: CallId) {
        let graph = self.of.graph;
        let (start, end) = (
            graph.calls.start[call as usize],
            graph.calls.end[call as usize],
        );
        let took = graph.ops.start[op as usize] - start;
        if took <= self.of.latency(graph.ops.engine[op as usize]) {
            return self.put(start, Cause::Latency, Culprit::Call(call), Certainty::Fact);
        }
        self.own_call(op, call, start, end);
    }

    /// The operation came later than launches do: in its own call, or after it.
    pub(super) fn own_call(&mut self, op: OpId, call: CallId, from: Ns, end: Ns) {
        let graph = self.of.graph;
        let limits = &self.of.limits;
        let begun = graph.ops.start[op as usize];
        let is_node = graph.ops.is_graph(op);
        // The launch spent most of the time in its call.
        let is_slow = end - graph.calls.start[call as usize] >= begun - end;
        let (cause, certainty) = match graph.calls.kind[call as usize] {
            CallKind::GraphLaunch => (Cause::GraphSetup, Certainty::Likely),
            _ if graph.calls.waited[call as usize] != NONE && !graph.ops.is_staged(op) => {
                (Cause::QueueFull, Certainty::Fact)
            }
            _ if stages_first(graph, op) => (Cause::Staging, Certainty::Fact),
            CallKind::Memory => (Cause::Memory, Certainty::Fact),
            _ => (Cause::SlowLaunch, Certainty::Fact),
        };
        // After the call the device takes no longer than from the call of a launch that was not held up.
        let is_soon = begun - end <= limits.latency(graph.ops.engine[op as usize]);
        let is_covered = cause == Cause::Staging || is_slow || (is_node && is_soon);
        let held = (cause == Cause::SlowLaunch && is_slow)
            .then(|| self.of.holder(call))
            .flatten();
        if let Some(holder) = held {
            if !is_soon {
                self.host(call, end.min(begun).max(from), None);
            }
            return self.locked(call, holder, from, cause);
        }
        if is_soon && is_covered {
            return self.host(call, from, Some((cause, Culprit::Call(call), certainty)));
        }
        let inside = is_slow || cause == Cause::Staging;
        let after = if inside { end.min(begun) } else { from };
        self.host(call, after.max(from), None);
        if inside {
            self.host(call, from, Some((cause, Culprit::Call(call), certainty)));
        }
    }

    /// A call that seems to have waited for another thread's, from `from` on.
    pub(super) fn locked(&mut self, call: CallId, holder: CallId, from: Ns, cause: Cause) {
        let released = self.of.graph.calls.end[holder as usize];
        let own = (cause, Culprit::Call(call), Certainty::Fact);
        self.host(call, released.max(from), Some(own));
        let held = (Cause::Lock, Culprit::Call(holder), Certainty::Likely);
        self.host(call, from, Some(held));
    }

    /// A call that the host was in before it launched what ends the gap.
    pub(super) fn called(&mut self, call: CallId) {
        let graph = self.of.graph;
        let i = call as usize;
        let span = graph.calls.span(call);
        let culprit = Culprit::Call(call);
        let has_waited = graph.calls.waited[i] != NONE;
        let first = graph.calls.first_op[i];
        let cause = match graph.calls.kind[i] {
            CallKind::WaitDevice => Cause::SyncDevice,
            CallKind::WaitStream => Cause::SyncStream,
            CallKind::WaitEvent => Cause::SyncEvent,
            CallKind::Copy if has_waited => match graph.ops.engine[first as usize] {
                Engine::H2D => Cause::BlockingH2D,
                Engine::D2H => Cause::BlockingD2H,
                _ => Cause::BlockingCopy,
            },
            CallKind::Copy if first != NONE && graph.ops.is_staged(first) => Cause::Staging,
            CallKind::Launch | CallKind::GraphLaunch if has_waited => Cause::QueueFull,
            CallKind::Launch if span.len() > LATENCY_MAX => Cause::SlowLaunch,
            CallKind::Launch | CallKind::GraphLaunch | CallKind::Copy => Cause::Launching,
            CallKind::Memory => Cause::Memory,
            CallKind::Load => Cause::Load,
            CallKind::GraphSetup => Cause::GraphSetup,
            CallKind::CaptureBegin | CallKind::CaptureEnd | CallKind::Other => Cause::Call,
        };
        let held = matches!(cause, Cause::SlowLaunch | Cause::Launching)
            .then(|| self.of.holder(call))
            .flatten();
        if let Some(holder) = held {
            self.locked(call, holder, span.start, cause);
        } else if cause.is_sync() {
            self.put(span.start, cause, culprit, Certainty::Fact);
        } else {
            self.host(call, span.start, Some((cause, culprit, Certainty::Fact)));
        }
        if graph.calls.root[i] == call {
            self.root(call);
        }
    }

    /// From `from` on the thread of `call` was at something, but where an overhead says that the driver or
    /// the profiler took the time. Nothing known is unknown.
    pub(super) fn host(
        &mut self,
        call: CallId,
        from: Ns,
        what: Option<(Cause, Culprit, Certainty)>,
    ) {
        let from = from.max(self.gap.start);
        if from >= self.time {
            return;
        }
        let sure = match what {
            Some((_, _, certainty)) => certainty,
            None => Certainty::Likely,
        };
        let (cause, culprit, certainty) =
            what.unwrap_or((Cause::Unknown, Culprit::Call(call), Certainty::Unknown));
        let (process, thread) = self.thread(call);
        let span = Span::new(from, self.time);
        let mut taken: Vec<_> = self.of.host.taken(process, thread, span).collect();
        taken.sort_by_key(|t| std::cmp::Reverse(t.span.end));
        for part in taken {
            self.put(part.span.end.min(self.time), cause, culprit, certainty);
            let by = match part.taker {
                Taker::Load => Cause::Load,
                Taker::Queue => Cause::QueueFull,
                Taker::Profiler => Cause::Profiler,
            };
            let (lane, row) = part.at;
            self.put(part.span.start.max(from), by, Culprit::Row(lane, row), sure);
        }
        self.put(from, cause, culprit, certainty);
    }

    fn thread(&self, call: CallId) -> (usize, u32) {
        let lane = self.of.graph.calls.at(call).0;
        let key = self.of.trace.lanes()[lane].key();
        match key.kind {
            LaneKind::Thread { thread } => (key.process, thread),
            _ => (key.process, 0),
        }
    }

    pub(super) fn ranges(&self, call: CallId, span: Span) -> Vec<(Span, Option<(usize, usize)>)> {
        let (process, thread) = self.thread(call);
        self.of.host.ranges(self.of.trace, process, thread, span)
    }
}
