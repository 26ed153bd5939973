//! Replay: the times that a program would take if something of it were different.
//!
//! A [`Program`] is a stretch of the [dependency graph](causes::graph) as columns that may be changed. CUDA calls stand
//! in the order of their thread, with the time that the thread takes between them. Operations have what they depend on,
//! and syncs what they wait for. Every dependency has the delay that was seen between its fulfilment and what followed.
//! [`Program::replay`] works the times out anew, each node once, in order of the recorded starts: unchanged, it gives
//! back what was recorded to the nanosecond. [`crate::edits`] changes programs; `docs/WHATIF.md` has the assumptions.
//!
//! `build` makes a program, and `order` and `run` replay one, `joint` with what several ranks do together. `room` is that of the streams' queues, `delays` has what
//! follows what after how long. `gpu_rates` has what is known of the GPU beside the recording. Predictions copy whole
//! programs, so calls and operations are kept small, and what they depend on lies apart in `lists`.

mod build;
mod delays;
mod gpu_rates;
mod joint;
mod lists;
mod order;
mod room;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use build::INLINE;
pub use build::share;
pub use delays::{Class, Delays};
pub use gpu_rates::GpuRates;
pub use joint::Joint;
pub use lists::{List, Lists};
pub use run::Times;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use activity::{Ns, Span};
use causes::graph::{CallId, CallKind, EdgeKind, Engine, Graph, OpId};

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

impl Dep {
    /// On an operation's end.
    pub fn on_end(op: u32, delay: Ns, class: Class) -> Dep {
        Dep {
            op,
            is_start: false,
            delay,
            class,
        }
    }
}

/// A host call: what may be changed of it.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// What the thread does between the call before it and this one.
    pub think: Ns,
    /// How long it takes when it need not wait.
    pub own: Ns,
    /// What it waits for before it returns.
    pub waits: List,
    /// Whether it was edited away.
    pub is_gone: bool,
}

/// The same of a GPU operation.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Its stream: the lane of the timeline, or a higher number for one that an edit made.
    pub stream: u32,
    /// The device: index into [`trace::Trace::devices`].
    pub device: u32,
    /// What it needs.
    pub engine: Engine,
    /// How long it runs.
    pub time: Ns,
    /// Share of the device's SMs that it needs, 0 to 1.
    pub share: f32,
    /// The launch shape of a kernel, else [`NONE`].
    pub shape: u32,
    /// The call that it comes from, or [`NONE`], and how long after that began it starts on an idle device.
    pub call: u32,
    /// See `call`.
    pub launch: Ns,
    /// Whether the driver may stage it.
    pub is_staged: bool,
    /// What it depends on: seldom more than its stream and its engine.
    pub deps: List,
    /// Whether it was edited away: what depends on it then depends on what it depended on.
    pub is_gone: bool,
}

impl Op {
    /// Of which kind its launch is.
    pub fn launch_class(&self) -> Class {
        Class::Launch {
            to: self.engine,
            is_staged: self.is_staged,
        }
    }
}

/// A point of the replay by its number: begins of calls, then their returns, then operations.
type At = u32;

/// A point of the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Begin(u32),
    Op(u32),
    Return(u32),
}

/// A stretch of a recorded program. See the module.
#[derive(Clone, Debug)]
pub struct Program<'g> {
    /// What was recorded.
    graph: &'g Graph,
    /// Host calls by start.
    pub calls: Vec<Call>,
    /// Operations by start.
    pub ops: Vec<Op>,
    /// What they depend on and wait for.
    pub lists: Lists,
    /// By call that one of another thread handed over to, how long after that returned.
    pub hand_over: FxHashMap<u32, Ns>,
    /// By call, another call and how long after that began it begins at the earliest: of an edit.
    pub not_before: FxHashMap<u32, (u32, Ns)>,
    /// The first call's number in the graph.
    first_call: CallId,
    /// The first operation's.
    first_op: OpId,
    /// Delays seen in this stretch.
    pub delays: Delays,
    /// What is known of the GPU.
    pub known: GpuRates,
    /// How both directions of the link slow each other down. It is the rate of one while the other is in use over its
    /// rate alone, or 1 where that is not known.
    pub link_share: f64,
    /// Shapes of kernels of two streams that were seen to run at the same time, the lower number first.
    together: FxHashSet<(u32, u32)>,
    /// In which order times are worked out.
    order: Arc<Vec<At>>,
    /// All of it in the order of the recording.
    recorded: Arc<Vec<At>>,
    /// By call, the operation that must have begun so that there is room for what the call launches, or [`NONE`].
    room: Vec<u32>,
}

impl Program<'_> {
    /// When a call ran as recorded.
    pub fn call_span(&self, call: u32) -> Span {
        self.graph.calls.span(self.call_id(call))
    }

    /// When an operation did.
    pub fn op_span(&self, op: u32) -> Span {
        self.graph.ops.span(self.op_id(op))
    }

    /// When the host issued an operation; where nobody says, when it began.
    pub fn issued(&self, op: u32) -> Ns {
        match self.ops[op as usize].call {
            NONE => self.op_span(op).start,
            call => self.call_span(call).start,
        }
    }

    /// When the first operation began.
    pub fn begin(&self) -> Option<Ns> {
        (!self.ops.is_empty()).then(|| self.op_span(0).start)
    }

    /// The lane of a call's thread.
    pub fn lane(&self, call: u32) -> u32 {
        self.graph.calls.lane[self.call_id(call) as usize]
    }

    /// What a call does.
    pub fn kind(&self, call: u32) -> CallKind {
        self.graph.calls.kind[self.call_id(call) as usize]
    }

    /// The call before one on its thread: index into [`Program::calls`], or [`NONE`].
    pub fn previous(&self, call: u32) -> u32 {
        self.call_of(self.graph.calls.previous[self.call_id(call) as usize])
    }

    /// The call of another thread that handed over to one, or [`NONE`].
    pub fn handed(&self, call: u32) -> u32 {
        self.call_of(self.graph.calls.handed[self.call_id(call) as usize])
    }

    /// The call with this number in the graph, or [`NONE`].
    fn call_of(&self, id: CallId) -> u32 {
        let call = id.checked_sub(self.first_call);
        call.filter(|_| id != NONE).unwrap_or(NONE)
    }

    /// A call's number in the graph.
    pub fn call_id(&self, call: u32) -> CallId {
        self.first_call + call
    }

    /// An operation's number in the graph.
    pub fn op_id(&self, op: u32) -> OpId {
        self.first_op + op
    }

    /// The operation with this number in the graph.
    pub fn op_of(&self, id: OpId) -> Option<u32> {
        let op = id.checked_sub(self.first_op)?;
        ((op as usize) < self.ops.len()).then_some(op)
    }

    /// What a call waits for.
    pub fn waits(&self, call: u32) -> &[Dep] {
        self.lists.get(self.calls[call as usize].waits)
    }

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
