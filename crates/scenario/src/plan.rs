//! A validated scenario, loops unrolled and expressions evaluated: what the runner executes and the
//! simulator models.
//!
//! A plan holds no nonsense. Every id below indexes the table it names, and every byte range lies in its buffer. Every
//! awaited event was recorded before, and counts are bounded ([`MAX_OPS`]). It knows nothing of TOML, CUDA or the
//! screen. Each operation keeps its [`Site`], the place in the file it came from, so that a failure on the GPU can name
//! the scenario's line.

mod ops;

use std::sync::Arc;

use super::edit::EditSet;
use super::view::View;
use activity::{Direction, Ns};

pub use super::site::{Site, SiteId};
pub use ops::{CopyPiece, Pieces, Side, Touch, copy_call, copy_waits, half_interval};

/// Operations that a variant may have after unrolling, and that all of them may run in all their passes. Each takes some
/// [`BYTES_A_RUN`] of memory until the end.
pub const MAX_OPS: usize = 2_000_000;

/// Memory for an operation that has run: 886 MB for 2,000,000 copies on the simulator, measured on 27 November 2026.
pub const BYTES_A_RUN: u64 = 450;

/// The scenario's name for a device's legacy default stream.
pub const DEFAULT_STREAM: &str = "default";

/// Index into [`VariantPlan::streams`].
pub type StreamId = usize;
/// Index into [`VariantPlan::events`].
pub type EventId = usize;
/// Index into [`VariantPlan::buffers`].
pub type BufferId = usize;
/// Index into [`VariantPlan::launches`].
pub type LaunchId = usize;
/// Index into [`VariantPlan::graphs`].
pub type GraphId = usize;

/// A scenario, ready to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario's name ("Pipelined copies").
    pub name: String,
    /// What it does, in a sentence or two.
    pub about: String,
    /// What to look for on the timeline.
    pub look_for: String,
    /// The swept parameter and its values, when there is a `[sweep]`.
    pub sweep: Option<Sweep>,
    /// Each variant, at each value of the sweep, in the order to run them.
    pub variants: Vec<VariantPlan>,
    /// Operations that run in all of their passes.
    pub runs: usize,
    /// Places in the file.
    pub sites: Vec<Site>,
    /// What must hold, from `[expect]`.
    pub expectations: Vec<super::expect::Expectation>,
    /// Mistakes whose cure an edit predicts, from `[[pair]]`.
    pub pairs: Vec<Pair>,
}

/// A mistake and its cure: what-if on the mistake's trace predicts what the cure takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The variant to predict from.
    pub mistake: String,
    /// The variant that is predicted.
    pub cure: String,
    /// What to change of the mistake.
    pub edit: EditSet,
    /// At which value of the sweep, when there is one; `None` means at every value.
    pub at: Option<i64>,
    /// Where the file states it.
    pub site: SiteId,
}

/// A parameter that takes several values in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The parameter's name.
    pub param: String,
    /// Its values, in order.
    pub values: Vec<i64>,
    /// What they count, where the file says so.
    pub unit: super::value::Unit,
    /// Whether a chart over it wants a logarithmic axis.
    pub is_log: bool,
}

/// One variant at one value of the sweep.
#[derive(Clone, Debug, Default)]
pub struct VariantPlan {
    /// The variant's name ("streamed"), without the sweep's value.
    pub name: String,
    /// What it does differently, in a sentence; may be empty.
    pub about: String,
    /// The part of a pass to show first; `None` for all of it.
    pub view: Option<View>,
    /// The variant that its speed-up is against. `None` where it is compared with nothing: others are compared with it,
    /// or the command line left out its baseline.
    pub baseline: Option<String>,
    /// The sweep's value that this plan was made for.
    pub point: Option<i64>,
    /// Passes that are run and not measured.
    pub warmup: u32,
    /// Measured passes, at least 1; with [`Self::until`] the most there may be.
    pub repeat: u32,
    /// No more are needed once half of the interval of the median is below this share of it.
    pub until: Option<f64>,
    /// Whether the measured pass must start cold: a context of its own, created and its modules loaded
    /// inside the measured pass. Then `warmup` is 0.
    pub cold: bool,
    /// Devices needed, by ordinal from 0.
    pub devices: u32,
    /// Streams, created before the first pass.
    pub streams: Vec<StreamSpec>,
    /// Events, created before the first pass (timing disabled).
    pub events: Vec<String>,
    pub buffers: Vec<BufferSpec>,
    /// Kernels, each compiled once.
    pub kernels: Vec<KernelSpec>,
    /// Distinct launch configurations.
    pub launches: Vec<LaunchSpec>,
    /// Names of phases, which [`OpKind::RangeBegin`] opens.
    pub phases: Vec<String>,
    /// Graphs, built by an [`OpKind::Capture`].
    pub graphs: Vec<GraphSpec>,
    /// What one pass does, in program order of its one host thread. After the last one the runner
    /// waits for all devices; that wait belongs to the pass's wall time.
    pub ops: Vec<Op>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamSpec {
    /// The scenario's name for it ("s3"). [`DEFAULT_STREAM`] is the device's own.
    pub name: String,
    /// The device's ordinal.
    pub device: u32,
    /// CUDA's priority; lower numbers go first.
    pub priority: i32,
}

impl StreamSpec {
    /// Whether it is the device's legacy default stream.
    pub fn is_default(&self) -> bool {
        self.name == DEFAULT_STREAM
    }
}

/// Which host memory stands behind a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HostMemory {
    /// None: the buffer lives on the device alone.
    #[default]
    None,
    /// Page-locked.
    Pinned,
    /// Ordinary.
    Pageable,
    /// One managed allocation serves both sides.
    Managed,
}

/// What a buffer holds before the first pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fill {
    #[default]
    Zero,
    /// Ones, as f32.
    One,
    /// 0, 1, 2 … as f32.
    Iota,
    /// Uniform f32 in [0, 1) from a fixed seed.
    Random,
}

/// One buffer (of an array of buffers): a device allocation, a host allocation, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BufferSpec {
    /// Its name with its index (`batch[3]`).
    pub name: String,
    /// Size in bytes of each side.
    pub bytes: u64,
    /// Which host memory it has.
    pub host: HostMemory,
    /// The device it lives on; `None` for host memory alone.
    pub device: Option<u32>,
    /// What it holds at first; the host side when there is one, and the device side too.
    pub fill: Fill,
    /// Whether the runner allocates the device side before the first pass. When not, [`OpKind::Alloc`] does.
    pub preallocated: bool,
}

/// A kernel: an entry point in a CUDA C++ source.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSpec {
    /// The scenario's name for it.
    pub name: String,
    /// The source's file name ("matmul.cu").
    pub file: String,
    /// The source's text.
    pub source: Arc<str>,
    /// The `extern "C"` entry point.
    pub entry: String,
    /// Where the scenario defines it.
    pub site: SiteId,
}

/// A launch: kernel, configuration, arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LaunchSpec {
    /// Index into [`VariantPlan::kernels`].
    pub kernel: usize,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block in bytes.
    pub shared: u32,
    /// Arguments in order.
    pub args: Vec<Arg>,
    /// Floating point operations it does, where the scenario says; feeds FLOP/s and the simulator.
    pub flops: Option<u64>,
    /// Bytes of device memory it must move, where the scenario says; feeds GB/s and the simulator.
    pub bytes: Option<u64>,
    /// How long it runs by its own nature (a spin kernel), where the scenario says; for the simulator.
    pub time: Option<Ns>,
}

/// A kernel argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arg {
    /// Pointer into a buffer's device side.
    Device(MemRef),
    /// 32 bits: those of an integer or of a float.
    U32(u32),
    /// 64-bit unsigned integer.
    U64(u64),
}

/// A place in a buffer. Which side is meant follows from the operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemRef {
    pub buffer: BufferId,
    /// Bytes from its start.
    pub offset: u64,
}

/// A graph: the operations that stream capture records into it.
#[derive(Clone, Debug, Default)]
pub struct GraphSpec {
    pub name: String,
    /// Stream operations only: no host work, no host synchronization, no allocation outside a pool.
    pub ops: Vec<Op>,
}

/// One operation and where it came from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Op {
    /// What to do.
    pub kind: OpKind,
    /// Where the scenario states it.
    pub site: SiteId,
}

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncTarget {
    /// All work of a stream.
    Stream(StreamId),
    Event(EventId),
    /// All work of a device.
    Device(u32),
}

/// Work of the host thread itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostWork {
    /// Computes for this long.
    Busy(Ns),
    /// Adds up the f32 values of a buffer's host side.
    Sum(MemRef, u64),
    /// Replaces each f32 of a buffer's host side by its sine; the second number is bytes.
    Sin(MemRef, u64),
    /// Multiplies two n x n f32 matrices: the third is the product.
    Matmul(BufferId, BufferId, BufferId, u32),
}

/// A copy of `bytes`, in pieces of `chunk` bytes unless that is 0, each piece a call of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopySpec {
    /// H2D, D2H, D2D or P2P; says which sides `from` and `to` mean.
    pub direction: Direction,
    /// Read from.
    pub from: MemRef,
    /// Written to.
    pub to: MemRef,
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes of a piece; 0 for one piece.
    pub chunk: u64,
    /// The stream. For a synchronous copy, the device's default stream.
    pub stream: StreamId,
    /// Whether the call is the asynchronous one.
    pub is_async: bool,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OpKind {
    /// Copies.
    Copy(CopySpec),
    /// Fills bytes of a buffer's device side.
    Memset {
        /// Where.
        to: MemRef,
        /// How many bytes.
        bytes: u64,
        /// The byte's value.
        value: u8,
        stream: StreamId,
    },
    /// Launches a kernel.
    Launch {
        /// Which, with its arguments.
        launch: LaunchId,
        stream: StreamId,
    },
    /// Records an event on a stream.
    Record { event: EventId, stream: StreamId },
    /// Makes a stream wait for an event.
    Wait { event: EventId, stream: StreamId },
    /// The host waits.
    Sync(SyncTarget),
    /// Allocates a buffer's device side; on a stream when stream-ordered from the device's pool.
    Alloc {
        buffer: BufferId,
        /// The stream, when stream-ordered.
        stream: Option<StreamId>,
    },
    Free {
        buffer: BufferId,
        /// The stream, when stream-ordered.
        stream: Option<StreamId>,
    },
    /// Captures a graph on a stream and instantiates it, replacing what it held.
    Capture {
        graph: GraphId,
        /// The stream that capture begins on.
        stream: StreamId,
    },
    /// Launches an instantiated graph.
    GraphLaunch { graph: GraphId, stream: StreamId },
    /// The host thread works.
    Host(HostWork),
    /// A named phase begins; the index is into [`VariantPlan::phases`].
    RangeBegin(usize),
    /// The innermost phase ends.
    RangeEnd,
}
