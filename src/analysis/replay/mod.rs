//! What a run would have taken: its dependency graph with lengths, played again.
//!
//! A [`Program`] is a copy of the [graph](super::graph)'s columns that an edit may change: how long an
//! operation or a call takes, which stream it is on, which edges hold, what is left out. [`Program::run`]
//! goes through starts and ends once, in the order in which they were recorded, and gives each the latest of
//! what it depends on plus its own residual. Unchanged, that gives the recorded times back to the nanosecond.
//!
//! What depends on what is read from the recorded order: an operation follows everything on its stream, and
//! on its copy engine, that had ended when it began. Edits keep that order.
//!
//! `calibrate` makes a program of a graph, `error` plays it without its residuals.

mod calibrate;
mod error;
#[cfg(test)]
mod tests;

use super::graph::{CallId, EdgeKind, NONE, OpId};
use crate::activity::{Ns, Span};

/// What holds an operation's start, or a wait's return, and so what its residual is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Hold {
    /// Nothing: it stays where it was.
    Nothing,
    /// The launch of a kernel.
    LaunchKernel,
    /// The call of a copy.
    LaunchCopy,
    /// The call of a memset.
    LaunchMemset,
    /// The launch of a graph.
    LaunchGraph,
    /// An operation before it, on the same engine.
    Queued,
    /// An operation before it, on another engine.
    OtherEngine,
    /// Another stream's copy of the same direction.
    Engine,
    /// An event.
    Event,
    /// A node of its graph on another stream.
    GraphNode,
    /// Another stream's operation, as the times show.
    Inferred,
    /// For a return: the device.
    WaitDevice,
    /// For a return: a stream.
    WaitStream,
    /// For a return: an event.
    WaitEvent,
    /// For a return: its own copy.
    WaitCopy,
    /// For a return: anything else.
    WaitOther,
}

impl Hold {
    const COUNT: usize = Hold::WaitOther as usize + 1;
}

/// What a call's return waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Nothing.
    Nothing,
    /// Everything of a lane that it was given before.
    Lane(u32),
    /// Everything of a process that it was given before.
    Process(u32),
    /// One operation.
    Op(OpId),
}

/// The columns of the operations; rows are those of [`super::graph::Ops`].
#[derive(Clone, Debug, Default)]
pub struct OpColumns {
    /// How long it runs.
    pub work: Vec<Ns>,
    /// What nothing explains of its start.
    pub residual: Vec<Ns>,
    /// The stream: a lane of the timeline, or one from [`Program::new_lane`].
    pub lane: Vec<u32>,
    /// The engine that serves one at a time, or [`NONE`].
    pub engine: Vec<u32>,
    /// The call that launches it, or [`NONE`].
    pub call: Vec<CallId>,
    /// How long after its call's start it can begin.
    pub lag: Vec<Ns>,
    /// What held its start as recorded.
    pub hold: Vec<Hold>,
    /// When it began as recorded.
    pub recorded: Vec<Ns>,
    /// Edges from other streams: where each operation's begin in `edges`.
    first_edge: Vec<u32>,
    edges: Vec<(EdgeKind, OpId)>,
    process: Vec<u32>,
    /// How its launch holds it.
    launch: Vec<Hold>,
    /// Which side of the device it runs on: kernels and memsets are launched alike.
    side: Vec<u8>,
}

/// The columns of the calls; rows are those of [`super::graph::Calls`].
#[derive(Clone, Debug, Default)]
pub struct CallColumns {
    /// How long it takes by itself.
    pub work: Vec<Ns>,
    /// From what it follows to its start: the thread's own time.
    pub think: Vec<Ns>,
    /// What its return waits for.
    pub target: Vec<Target>,
    /// From the end of that to its return.
    pub tail: Vec<Ns>,
    /// What held its return as recorded.
    pub hold: Vec<Hold>,
    /// The call before it on its thread, or [`NONE`].
    pub previous: Vec<CallId>,
    /// The call of another thread that handed over to it, or [`NONE`].
    pub handed: Vec<CallId>,
    /// When it began as recorded.
    pub recorded: Vec<Ns>,
}

/// A run that can be changed and played again.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Operations.
    pub ops: OpColumns,
    /// Calls.
    pub calls: CallColumns,
    /// Starts and ends in the order in which they were recorded: twice the node, plus one for an end; calls
    /// come before operations.
    order: Vec<u32>,
    /// By lane: whether operations follow each other that overlapped as recorded, on other streams.
    serial: Vec<bool>,
    engines: usize,
    processes: usize,
}

/// When everything happens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Starts of operations.
    pub op_start: Vec<Ns>,
    /// Ends of operations.
    pub op_end: Vec<Ns>,
    /// Starts of calls.
    pub call_start: Vec<Ns>,
    /// Returns of calls.
    pub call_end: Vec<Ns>,
}

impl Times {
    /// First operation's start to the last one's end; empty without operations.
    #[must_use]
    pub fn span(&self) -> Span {
        let first = self.op_start.iter().min();
        let last = self.op_end.iter().max();
        first
            .zip(last)
            .map_or_else(Span::default, |(&first, &last)| Span::new(first, last))
    }
}

impl Program {
    /// A stream of its own for [`Program::move_to`].
    pub fn new_lane(&mut self) -> u32 {
        self.serial.push(true);
        (self.serial.len() - 1) as u32
    }

    /// Gives an operation to another stream: it follows what began there before it, no longer what ran on its
    /// own. Edges by events stay.
    pub fn move_to(&mut self, op: OpId, lane: u32) {
        self.serial[lane as usize] = true;
        self.ops.lane[op as usize] = lane;
    }

    /// Leaves an operation out: it takes no time and no engine; what followed it follows what was before.
    pub fn drop_op(&mut self, op: OpId) {
        let i = op as usize;
        self.ops.work[i] = 0;
        self.ops.residual[i] = self.ops.residual[i].min(0);
        self.ops.engine[i] = NONE;
        self.ops.lag[i] = 0;
    }

    /// Leaves a call out: it takes no time and waits for nothing. What the thread did before it stays.
    pub fn drop_call(&mut self, call: CallId) {
        self.calls.work[call as usize] = 0;
        self.drop_wait(call);
    }

    /// Lets a call return without waiting for the GPU.
    pub fn drop_wait(&mut self, call: CallId) {
        self.calls.target[call as usize] = Target::Nothing;
    }

    /// Takes the edges of an operation from other streams away that `is_dropped` holds for.
    pub fn drop_edges(&mut self, op: OpId, is_dropped: impl Fn(EdgeKind, OpId) -> bool) {
        let i = op as usize;
        let range = self.ops.first_edge[i] as usize..self.ops.first_edge[i + 1] as usize;
        for edge in &mut self.ops.edges[range] {
            if is_dropped(edge.0, edge.1) {
                *edge = (EdgeKind::None, NONE);
            }
        }
    }

    /// The edges of an operation from other streams.
    pub fn edges(&self, op: OpId) -> impl Iterator<Item = (EdgeKind, OpId)> + '_ {
        let i = op as usize;
        let range = self.ops.first_edge[i] as usize..self.ops.first_edge[i + 1] as usize;
        self.ops.edges[range]
            .iter()
            .copied()
            .filter(|edge| edge.1 != NONE)
    }

    /// Plays it.
    #[must_use]
    pub fn run(&self) -> Times {
        let mut state = State::of(self);
        for &event in &self.order {
            let (node, is_end) = ((event / 2) as usize, event % 2 == 1);
            match (node.checked_sub(self.calls.work.len()), is_end) {
                (None, false) => {
                    let time = state.before_call(self, node);
                    let time =
                        time.map_or(self.calls.recorded[node], |t| t + self.calls.think[node]);
                    state.times.call_start[node] = time;
                }
                (None, true) => {
                    let begun = state.times.call_start[node];
                    let mut time = begun + self.calls.work[node];
                    if let Some(waited) = state.awaited(self, node) {
                        time = time.max(waited + self.calls.tail[node]);
                    }
                    state.times.call_end[node] = time;
                }
                (Some(op), false) => {
                    let time = match state.before_op(self, op) {
                        (Hold::Nothing, _) => self.ops.recorded[op],
                        (_, time) => time + self.ops.residual[op],
                    };
                    state.begun(self, op, time);
                }
                (Some(op), true) => {
                    let time = state.times.op_start[op] + self.ops.work[op];
                    state.ended(self, op, time);
                }
            }
        }
        state.times
    }
}

/// A pass under way. What has not happened yet is at [`Ns::MIN`].
struct State {
    times: Times,
    /// When the last operation that ended did, by lane, engine and process.
    lanes: Vec<Ns>,
    engines: Vec<Ns>,
    processes: Vec<Ns>,
    /// By lane, the last operation that ended.
    last: Vec<OpId>,
    /// By lane, when the last operation that began will have ended.
    queued: Vec<Ns>,
}

impl State {
    fn of(program: &Program) -> State {
        let (calls, ops) = (program.calls.work.len(), program.ops.work.len());
        let none = |n: usize| vec![Ns::MIN; n];
        State {
            times: Times {
                op_start: none(ops),
                op_end: none(ops),
                call_start: none(calls),
                call_end: none(calls),
            },
            lanes: none(program.serial.len()),
            engines: none(program.engines),
            processes: none(program.processes),
            last: vec![NONE; program.serial.len()],
            queued: none(program.serial.len()),
        }
    }

    /// The latest of what a call follows.
    fn before_call(&self, program: &Program, call: usize) -> Option<Ns> {
        let end = |c: CallId| match c {
            NONE => Ns::MIN,
            c => self.times.call_end[c as usize],
        };
        let latest = end(program.calls.previous[call]).max(end(program.calls.handed[call]));
        (latest != Ns::MIN).then_some(latest)
    }

    /// When what a call waits for has ended.
    fn awaited(&self, program: &Program, call: usize) -> Option<Ns> {
        let time = match program.calls.target[call] {
            Target::Nothing => Ns::MIN,
            Target::Lane(lane) => self.lanes[lane as usize],
            Target::Process(process) => self.processes[process as usize],
            Target::Op(op) => self.times.op_end[op as usize],
        };
        (time != Ns::MIN).then_some(time)
    }

    /// The latest of what an operation depends on, and what that is.
    fn before_op(&self, program: &Program, op: usize) -> (Hold, Ns) {
        let ops = &program.ops;
        let mut best = (Hold::Nothing, Ns::MIN);
        let mut offer = |hold: Hold, time: Ns| {
            if time > best.1 {
                best = (hold, time);
            }
        };
        let lane = ops.lane[op] as usize;
        let before = self.last[lane];
        if before != NONE {
            let hold = if ops.side[before as usize] == ops.side[op] {
                Hold::Queued
            } else {
                Hold::OtherEngine
            };
            offer(hold, self.lanes[lane]);
        }
        if program.serial[lane] {
            offer(Hold::Queued, self.queued[lane]);
        }
        if ops.call[op] != NONE {
            let call = self.times.call_start[ops.call[op] as usize];
            if call != Ns::MIN {
                offer(ops.launch[op], call + ops.lag[op]);
            }
        }
        if ops.engine[op] != NONE {
            offer(Hold::Engine, self.engines[ops.engine[op] as usize]);
        }
        for (kind, source) in program.edges(op as OpId) {
            let hold = match kind {
                EdgeKind::Event | EdgeKind::EventLikely => Hold::Event,
                EdgeKind::GraphNode => Hold::GraphNode,
                _ => Hold::Inferred,
            };
            offer(hold, self.times.op_end[source as usize]);
        }
        best
    }

    fn begun(&mut self, program: &Program, op: usize, time: Ns) {
        self.times.op_start[op] = time;
        let queued = &mut self.queued[program.ops.lane[op] as usize];
        *queued = (time + program.ops.work[op]).max(*queued);
    }

    fn ended(&mut self, program: &Program, op: usize, time: Ns) {
        let ops = &program.ops;
        self.times.op_end[op] = time;
        let lane = ops.lane[op] as usize;
        if time >= self.lanes[lane] {
            self.lanes[lane] = time;
            self.last[lane] = op as OpId;
        }
        if ops.engine[op] != NONE {
            let engine = &mut self.engines[ops.engine[op] as usize];
            *engine = time.max(*engine);
        }
        let process = &mut self.processes[ops.process[op] as usize];
        *process = time.max(*process);
    }
}
