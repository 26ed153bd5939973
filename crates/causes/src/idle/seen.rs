//! What stack samples saw of the host while nothing ran.

use super::{Cause, Causes, Gap, Piece};
use crate::graph::{Engine, NONE, OpId};
use crate::stacks::StackCounts;
use activity::Span;
use trace::LaneKind;

impl Cause {
    /// Whether what the launching thread was at is what explains it.
    pub fn is_of_host(self) -> bool {
        !matches!(
            self,
            Cause::Event
                | Cause::Engine
                | Cause::Stream
                | Cause::HostFunction
                | Cause::Process
                | Cause::EngineChange
                | Cause::Queued
                | Cause::Profiler
                | Cause::Missing
        )
    }
}

impl Causes<'_> {
    /// Whether a gap lies behind all kernels of its device.
    pub fn is_behind_kernels(&self, gap: Gap) -> bool {
        let device = self.device(gap.next);
        let last = device.and_then(|it| self.graph.ops.of_engine(it, Engine::Compute).last());
        last.is_some_and(|it| self.graph.ops.end[*it as usize] <= gap.span.start)
    }

    /// Whether stacks of some process were sampled.
    pub fn is_sampled(&self) -> bool {
        self.ready.is_sampled
    }

    /// Adds what the thread that launched `next` was seen doing within `span`.
    pub fn add_samples(&self, next: OpId, span: Span, seen: &mut StackCounts) {
        if !self.ready.is_sampled {
            return;
        }
        let (process, thread) = self.launcher(next).unwrap_or_else(|| {
            // Nothing says who launched it: the main thread is where a program's lines are.
            let lane = &self.trace.lanes()[self.graph.ops.place(next).0];
            let process = lane.key().process;
            (process, self.trace.processes()[process].info.pid)
        });
        seen.add_samples(self.trace, process, thread, span);
    }

    /// Adds what it was seen doing in these pieces of one gap.
    pub fn add_work<'p>(
        &self,
        next: OpId,
        pieces: impl IntoIterator<Item = &'p Piece>,
        seen: &mut StackCounts,
    ) {
        if !self.ready.is_sampled {
            return;
        }
        let mut here = StackCounts::default();
        let pieces = pieces.into_iter();
        pieces.for_each(|it| self.add_samples(next, it.span, &mut here));
        seen.add_gap(&here);
    }

    /// Adds what that thread was seen doing in the call that launched an operation.
    pub fn add_launch(&self, op: OpId, seen: &mut StackCounts) {
        let call = self.graph.ops.call[op as usize];
        if call != NONE {
            self.add_samples(op, self.graph.calls.span(call), seen);
        }
    }

    /// The process and the thread that launched an operation.
    pub fn launcher(&self, op: OpId) -> Option<(usize, u32)> {
        let call = self.graph.ops.call[op as usize];
        let (lane, _) = (call != NONE).then(|| self.graph.calls.at(call))?;
        let key = self.trace.lanes()[lane].key();
        match key.kind {
            LaneKind::Thread { thread } => Some((key.process, thread)),
            _ => None,
        }
    }
}
