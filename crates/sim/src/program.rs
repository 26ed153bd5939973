//! What the model executes: the [`Step`]s of a host thread.
//!
//! Nothing here knows scenarios. `super::lower` makes steps from a plan; a captured trace could be
//! turned into the same steps and replayed under other conditions. Costs and durations are already
//! numbers (see `super::cost`); the model decides when things run.

use std::sync::Arc;

use activity::{Def, EventRecord, MemoryOp, NameId, Ns, Overhead, Place, Range, Sync, What};

/// A stream of the program, by the number it was opened with ([`Step::Open`] comes before its first use;
/// numbers count up from 0).
pub type StreamKey = u32;
/// An event of the program. Events need no opening; one that was never recorded holds nobody up.
pub type EventKey = u32;

/// The host thread's id in the activities.
pub(crate) const THREAD: u32 = 1;

/// One step of the host thread.
#[derive(Clone, Debug)]
pub enum Step {
    /// Hands a definition to the timeline. Takes no time.
    Define(Def),
    /// Makes a stream known. Takes no time; a call that stands for it is a step of its own.
    Open(StreamKey, StreamConfig),
    /// A call that only takes the thread's time.
    Call {
        /// The function.
        call: NameId,
        /// Its duration.
        cost: Ns,
        /// What the driver did in that time, when it deserves a record of its own.
        overhead: Option<Overhead>,
    },
    /// A call that queues something on a stream.
    Submit {
        /// The function.
        call: NameId,
        /// Its duration when it need not wait.
        cost: Ns,
        stream: StreamKey,
        /// What is queued.
        item: Item,
        /// When the call returns.
        returns: Returns,
        /// Time that the driver takes on top, inside the call, because something is used for the first time.
        first_use: Option<(Overhead, Ns)>,
    },
    /// Queues something on a stream that no call stands for. Takes no time.
    Queue(StreamKey, Item),
    /// A call that waits.
    Sync {
        /// The function.
        call: NameId,
        /// For what.
        target: Target,
        /// The record that stands for it.
        record: Sync,
    },
    /// A call that allocates or frees.
    Memory {
        /// The function.
        call: NameId,
        /// Its duration.
        cost: Ns,
        /// The record that stands for it.
        op: MemoryOp,
        /// A device that must have finished all its work first.
        waits_for: Option<u32>,
    },
    /// The thread computes, outside any call.
    Work(Ns),
    /// A phase begins.
    Begin(Range),
    /// The innermost phase ends.
    End,
}

/// When a call that queues something returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// When it has queued it.
    AtOnce,
    /// When the host has worked for this long beside the item. Before it begins, all that was queued on the stream
    /// is done (CUDA driver API, "API synchronization behavior": pageable memory to the device).
    Staged(Ns),
    /// When the item is done, and the host has then worked for this long.
    After(Ns),
}

/// What a host thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Everything queued on a stream so far.
    Stream(StreamKey),
    /// The latest recording of an event so far.
    Event(EventKey),
    /// Everything queued on a device so far.
    Device(u32),
}

/// How a stream behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamConfig {
    /// Device, context and stream as activities name them.
    pub place: Place,
    /// Lower numbers go first when kernels wait for room.
    pub priority: i32,
}

/// Something in a stream's queue.
#[derive(Clone, Debug)]
pub enum Item {
    /// An operation.
    Run(Operation),
    /// Records an event.
    Record(EventKey, EventRecord),
    /// Waits for an event, as recorded when this was queued.
    Wait(EventKey, Sync),
    Graph(Arc<Graph>, Upload),
    /// Something that takes the device's time between the operations around it.
    Pause(Ns),
}

/// An operation of the GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Operation {
    /// The record that it leaves: a kernel, a copy or a memset.
    pub what: What,
    /// What it needs.
    pub engine: Engine,
    /// How long it takes with all that it needs, at least 1 ns.
    pub ns: Ns,
}

/// What a device's counters see of an operation, as shares of the device's own peaks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Multiprocessors with a block.
    pub sm: f64,
    /// Cycles that issue an instruction: those of its declared arithmetic.
    pub issue: f64,
    /// Memory bandwidth. What fits into the L2 cache is there, and takes none.
    pub dram: f64,
}

/// Which part of the device an operation occupies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Engine {
    /// The multiprocessors.
    Compute {
        /// The share of them that it can fill, in (0, 1]. With less it runs longer.
        share: f64,
        /// The share of the memory bandwidth that it takes at full speed, in [0, 1].
        memory: f64,
        /// What counters see of it at full speed.
        load: Load,
    },
    /// The engine that copies from the host.
    H2D,
    /// The engine that copies to the host.
    D2H,
    /// Copies within the device, at the expense of memory bandwidth.
    D2D,
    /// Copies to or from another device.
    Peer,
}

/// How a launch hands a graph's nodes to the device: in portions, while it goes on with the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Upload {
    /// Host time of the launch before the first node.
    pub fixed_ns: Ns,
    /// Host time for each node.
    pub node_ns: Ns,
}

/// Operations with the order among them.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The nodes. A node comes after those it depends on.
    pub nodes: Vec<Node>,
}

/// A node of a graph.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it does; `None` for a node that takes no time (an allocation from a pool).
    pub op: Option<Operation>,
    /// Nodes that must be done first.
    pub after: Vec<u32>,
    /// Nodes that the launch has prepared when it hands this one to the device: a portion of them.
    pub portion_end: u32,
}
