//! Replay: the times that a program would take if something of it were different.
//!
//! A [`Program`] is a stretch of the [dependency graph](super::graph) as columns that may be changed. CUDA calls stand
//! in the order of their thread, with the time that the thread takes between them. Operations have what they depend on,
//! and syncs what they wait for. Every dependency has the delay that was seen between its fulfilment and what followed.
//! [`Program::replay`] works the times out anew, each node once, in order of the recorded starts: unchanged, it gives
//! back what was recorded to the nanosecond. [`super::edits`] changes programs; `docs/WHATIF.md` has the assumptions.
//!
//! `build` makes a program, and `order` and `run` replay one. `room` is that of the streams' queues, `delays` has what
//! follows what after how long. `gpu_rates` has what is known of the GPU beside the recording.

mod build;
mod delays;
mod gpu_rates;
mod order;
mod room;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use build::INLINE;
pub use build::share;
pub use delays::{Class, Delays};
pub use gpu_rates::{Engines, GpuRates};
pub use run::Times;

use std::sync::Arc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::graph::{CallId, CallKind, EdgeKind, Engine, OpId};
use activity::{Ns, Span};

/// No call, no operation: as in the graph.
pub const NONE: u32 = u32::MAX;

/// A dependency, or a wait: what came before, and how long after that what follows may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dep {
    /// The operation: index into [`Program::ops`].
    pub op: u32,
    /// Whether its start counts instead of its end.
    pub is_start: bool,
    /// How long after it.
    pub delay: Ns,
    /// Of which kind it is.
    pub class: Class,
}

/// A host call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its number in the graph.
    pub id: CallId,
    /// The lane of its thread.
    pub lane: u32,
    /// As recorded.
    pub span: Span,
    /// What it does.
    pub kind: CallKind,
    /// The call before it on its thread: index into [`Program::calls`], or [`NONE`].
    pub previous: u32,
    /// What the thread does between that and this one.
    pub think: Ns,
    /// The call of another thread that handed over to this one, or [`NONE`], and how long after its return.
    pub handed: (u32, Ns),
    /// A call, or [`NONE`], and how long after that began this one begins at the earliest: of an edit.
    pub not_before: (u32, Ns),
    /// How long it takes when it need not wait.
    pub own: Ns,
    /// What it waits for before it returns.
    pub waits: Vec<Dep>,
    /// Whether it was edited away.
    pub is_gone: bool,
}

/// A GPU operation.
#[derive(Clone, Debug)]
pub struct Op {
    /// Its number in the graph.
    pub id: OpId,
    /// Its stream: the lane of the timeline, or a higher number for one that an edit made.
    pub stream: u32,
    /// The device: index into [`trace::Trace::devices`].
    pub device: u32,
    /// What it needs.
    pub engine: Engine,
    /// As recorded.
    pub span: Span,
    /// How long it runs.
    pub time: Ns,
    /// Share of the device's SMs that it needs, 0 to 1.
    pub share: f32,
    /// The launch shape of a kernel, else [`NONE`].
    pub shape: u32,
    /// The call that it comes from, or [`NONE`], and how long after that began it starts on an idle device.
    pub call: u32,
    /// See `call`.
    pub launch: (Ns, Class),
    /// What it depends on: seldom more than its stream and its engine.
    pub deps: SmallVec<[Dep; 2]>,
    /// Whether it was edited away: what depends on it then depends on what it depended on.
    pub is_gone: bool,
}

/// A point of the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Begin(u32),
    Op(u32),
    Return(u32),
}

/// A stretch of a recorded program. See the module.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Host calls by start.
    pub calls: Vec<Call>,
    /// Operations by start.
    pub ops: Vec<Op>,
    /// Delays seen in this stretch.
    pub delays: Delays,
    /// What is known of the GPU.
    pub known: GpuRates,
    /// How both directions of the link slow each other down. It is the rate of one while the other is in use over its
    /// rate alone, or 1 where that is not known.
    pub link_share: f64,
    /// Shapes of kernels of two streams that were seen to run at the same time, the lower number first.
    together: FxHashSet<(u32, u32)>,
    order: Vec<Node>,
    /// All of it in the order of the recording.
    recorded: Arc<[u32]>,
    /// By call, the operation that must have begun so that there is room for what the call launches, or [`NONE`].
    room: Vec<u32>,
}

impl Program {
    /// A delay between two operations, as this stretch of the program had it.
    pub fn delay(&self, kind: EdgeKind, from: Engine, to: Engine) -> (Ns, Class) {
        let class = Class::between(kind, from, to);
        (self.delays.typical(class, &self.known), class)
    }

    /// First operation's start to the last one's end.
    pub fn makespan(&self, times: &Times) -> Ns {
        let live = || (0..self.ops.len()).filter(|&i| !self.ops[i].is_gone);
        let from = live().map(|i| times.op_start[i]).min();
        let to = live().map(|i| times.op_end[i]).max();
        from.zip(to).map_or(0, |(from, to)| to - from)
    }
}
