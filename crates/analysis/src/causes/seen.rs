//! What stack samples saw of the host while nothing ran.

use super::super::graph::{NONE, OpId};
use super::super::lines::StackCounts;
use super::{Cause, Causes};
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
                | Cause::EngineChange
                | Cause::Queued
                | Cause::Profiler
                | Cause::Missing
        )
    }
}

impl Causes<'_> {
    /// Adds what the thread that launched `next` was seen doing within `span`.
    pub(crate) fn add_samples(&self, next: OpId, span: Span, seen: &mut StackCounts) {
        if !self.ready.is_sampled {
            return;
        }
        let lanes = self.trace.lanes();
        let process = lanes[self.graph.ops.place(next).0].key().process;
        let thread = match self.graph.ops.call[next as usize] {
            NONE => None,
            call => match lanes[self.graph.calls.at(call).0].key().kind {
                LaneKind::Thread { thread } => Some(thread),
                _ => None,
            },
        };
        // Nothing says who launched it: the main thread is where a program's lines are.
        let thread = thread.unwrap_or(self.trace.processes()[process].info.pid);
        seen.add_samples(self.trace, process, thread, span);
    }
}
