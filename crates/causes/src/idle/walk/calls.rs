//! What of a gap lies in host calls, and between them.

use super::{Walk, certain};
use crate::graph::{CallId, CallKind, Engine, LATENCY_MAX, NONE, OpId};
use crate::idle::host::Taker;
use crate::idle::limits::stages_first;
use crate::idle::{Cause, Certainty, Culprit};
use activity::{Direction, Ns, Place, Span, What};
use trace::LaneKind;

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
        let limits = &self.of.ready.limits;
        let begun = graph.ops.start[op as usize];
        let is_node = graph.ops.is_graph(op);
        // The launch spent most of the time in its call.
        let length = end - graph.calls.start[call as usize];
        let is_slow = length >= begun - end;
        let (cause, certainty) = match graph.calls.kind[call as usize] {
            CallKind::GraphLaunch => (Cause::GraphSetup, Certainty::Likely),
            _ if graph.calls.waited[call as usize] != NONE && !graph.ops.is_staged(op) => {
                (Cause::QueueFull, Certainty::Fact)
            }
            // Nothing is staged of pinned memory: what a copy of it waits for no record says, but of a first one.
            _ if stages_first(graph, op)
                && self.of.is_pinned(op)
                && !self.of.is_slow_first(call) =>
            {
                (Cause::LateStart, Certainty::Unknown)
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
        let (named, certainty) = match self.of.ready.loading.contains(&call) {
            true => (Cause::Load, Certainty::Likely),
            false => (cause, certainty),
        };
        if let Some(holder) = held {
            if !is_soon {
                self.host(call, end.min(begun).max(from), None);
            }
            return self.locked(call, holder, from, cause);
        }
        if is_soon && is_covered {
            return self.host(call, from, Some((named, Culprit::Call(call), certainty)));
        }
        // A launch that takes so long held its operation up, whatever kept it so long. It may be the first use of a
        // kernel, or a driver that sends its work to the device late.
        let is_long = cause == Cause::SlowLaunch && length > LATENCY_MAX;
        let certainty = match is_slow {
            false if is_long => Certainty::Likely,
            _ => certainty,
        };
        let inside = is_slow || is_long || cause == Cause::Staging;
        let after = if inside { end.min(begun) } else { from };
        self.host(call, after.max(from), None);
        if inside {
            self.host(call, from, Some((named, Culprit::Call(call), certainty)));
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
            CallKind::Launch if self.of.ready.loading.contains(&call) => Cause::Load,
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
            let is_launch = graph.calls.kind[i] == CallKind::Launch;
            let certainty = certain(cause != Cause::Load || !is_launch);
            self.host(call, span.start, Some((cause, culprit, certainty)));
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
        let from = from.max(self.gap.span.start);
        if from >= self.time {
            return;
        }
        let sure = match what {
            Some((_, _, certainty)) => certainty,
            None => Certainty::Likely,
        };
        let unknown = || match self.process_before() {
            Some(op) => (Cause::Process, Culprit::Op(op), Certainty::Likely),
            // Of a graph other nodes may have run, whose records are missing.
            None if self.of.graph.calls.kind[call as usize] == CallKind::GraphLaunch => {
                (Cause::Unknown, Culprit::Call(call), Certainty::Unknown)
            }
            None => (Cause::LateStart, Culprit::Call(call), Certainty::Unknown),
        };
        let (cause, culprit, certainty) = what.unwrap_or_else(unknown);
        let (process, thread) = self.thread(call);
        let host = &self.of.ready.host;
        let own = self.of.graph.calls.span(call);
        if cause == Cause::SlowLaunch
            && own.len() > LATENCY_MAX
            && let Some(at) = host.held_by_profiler(process, own)
        {
            let culprit = Culprit::row(at);
            return self.put(from, Cause::Profiler, culprit, Certainty::Likely);
        }
        let span = Span::new(from, self.time);
        let mut taken: Vec<_> = self.of.ready.host.taken(process, thread, span).collect();
        taken.sort_by_key(|t| std::cmp::Reverse(t.span.end));
        for part in taken {
            self.put(part.span.end.min(self.time), cause, culprit, certainty);
            let by = match part.taker {
                Taker::Load => Cause::Load,
                Taker::Queue => Cause::QueueFull,
                Taker::Profiler => Cause::Profiler,
            };
            self.put(part.span.start.max(from), by, Culprit::row(part.at), sure);
        }
        self.put(from, cause, culprit, certainty);
    }

    /// What ran until the gap began.
    pub(super) fn before(&self) -> Option<OpId> {
        let (of, gap) = (self.of, self.gap);
        of.graph
            .ops
            .ended(of.device(gap.next)?, gap.span.start)
            .next()
    }

    /// The same where that was another process's: the GPU works for one at a time.
    fn process_before(&self) -> Option<OpId> {
        let of = self.of;
        self.before()
            .filter(|&op| of.process(op) != of.process(self.gap.next))
    }

    /// The call that a page followed which moved by itself. That is a prefetch that still went on. Else it is the last call before
    /// the CPU touched shared memory, so that a page of it was brought back. Only one thread of the process may call CUDA,
    /// and it must not have been in another call.
    pub(super) fn moved_by(&self, op: OpId) -> Option<CallId> {
        let (graph, trace) = (self.of.graph, self.of.trace);
        let (lane, row) = graph.ops.place(op);
        let process = trace.lanes()[lane].key().process;
        let direction = match trace.what(lane, row) {
            What::Copy(copy) if copy.place.stream >= Place::PREFETCHED => copy.direction,
            _ => return None,
        };
        if graph.ops.call[op as usize] != NONE {
            return None;
        }
        let start = graph.ops.start[op as usize];
        let is_of = |call: &CallId| trace.lanes()[graph.calls.at(*call).0].key().process == process;
        let to = graph.calls.start.partition_point(|&at| at <= start) as CallId;
        let last = (0..to).rev().find(is_of)?;
        let mut threads = trace.threads_in(process).filter(|it| !it.1.is_empty());
        let is_only = threads.next().is_some() && threads.next().is_none();
        let name = self.of.call_name(last);
        let is_prefetch = name.is_some_and(|name| trace.names().full(name).contains("MemPrefetch"));
        let is_behind = graph.calls.end[last as usize] <= start;
        let is_meant = is_prefetch || is_behind && direction == Direction::D2H;
        (is_only && is_meant).then_some(last)
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
        self.of
            .ready
            .host
            .ranges(self.of.trace, process, thread, span)
    }
}
