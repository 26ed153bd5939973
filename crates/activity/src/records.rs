//! What happens on a timeline.

use crate::{Correlation, NameId, ShapeId, Span, codes};

/// Where a GPU operation ran. Context and stream ids are only unique within their process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The device, by its ordinal in the process.
    pub device: u32,
    /// The CUDA context. 0 where the source does not say.
    pub context: u32,
    /// The CUDA stream.
    pub stream: u32,
}

/// One thing that happened, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Activity {
    /// When it ran. Instants (an event record, an allocation) are empty spans.
    pub span: Span,
    /// The host call that caused it, or for a host call its own id. 0 means none.
    pub correlation: Correlation,
    /// What it was.
    pub what: What,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// A kernel ran on the GPU.
    Kernel(Kernel),
    /// Memory was copied.
    Copy(Copy),
    /// Device memory was filled with a value.
    Memset(Memset),
    /// A whole CUDA graph ran on the GPU, recorded as one.
    Graph(Graph),
    /// A host thread was inside a CUDA API function.
    Call(HostCall),
    /// A host thread waited, or a stream was told to wait.
    Sync(Sync),
    /// The profiler or the driver spent time on itself (module loading, buffer flushing).
    Overhead(Overhead),
    /// Memory was allocated or freed.
    Memory(MemoryOp),
    /// An event was recorded on a stream.
    Event(EventRecord),
    /// A named phase on the host: a variant, a repeat, an NVTX range.
    Range(Range),
}

/// A kernel execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// Where it ran.
    pub place: Place,
    /// Its name and launch configuration.
    pub shape: ShapeId,
    /// The CUDA graph that it was a node of; 0 when launched by itself.
    pub graph: u32,
    /// The node, with the graph's number in its upper half; 0 when none.
    pub node: u64,
}

/// A copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Copy {
    /// Where it ran. For P2P, the device whose stream it was queued on.
    pub place: Place,
    /// Which way.
    pub direction: Direction,
    /// What it read.
    pub from: MemoryKind,
    /// What it wrote.
    pub to: MemoryKind,
    /// Whether the call that issued it was an asynchronous one.
    pub is_async: bool,
    /// Bytes moved.
    pub bytes: u64,
    /// The other device of a P2P copy, else the same as `place.device`.
    pub peer: u32,
    /// The CUDA graph that it was a node of; 0 when none.
    pub graph: u32,
    /// The node, as [`node_number`] has it; 0 where unknown.
    pub node: u32,
}

/// One more than the number of a node within its graph, by CUPTI's id of the node; 0 for none.
pub fn node_number(id: u64) -> u32 {
    (id as u32).saturating_add(u32::from(id != 0))
}

impl Copy {
    /// Whether one side is pageable memory of the host.
    pub fn is_pageable(&self) -> bool {
        [self.from, self.to].contains(&MemoryKind::Pageable)
    }

    /// A copy is tiny when its fixed cost outweighs its bytes. Measured on an H200 over PCIe 5.0 x16: a 4-byte copy takes
    /// 1.4 us on the device, in which 55 GB/s would move 79 kB. Pinning speeds up none: up to 64 KiB of pageable memory the
    /// driver takes along at once. At 1 MiB pinned is 2.8 times as fast (40 against 14 GB/s), at 1 GiB 5.5 times (55 against
    /// 10).
    pub const TINY_BYTES: u64 = 64 << 10;

    /// Whether the driver stages it: it is of pageable memory, and more than goes with the command.
    pub fn is_staged(&self) -> bool {
        let crosses = matches!(self.direction, Direction::H2D | Direction::D2H);
        crosses && self.is_pageable() && self.bytes > Self::TINY_BYTES
    }
}

/// A memset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Memset {
    /// Where it ran.
    pub place: Place,
    /// Bytes written.
    pub bytes: u64,
    /// The CUDA graph that it was a node of; 0 when none.
    pub graph: u32,
    /// The node, as [`node_number`] has it; 0 where unknown.
    pub node: u32,
}

/// One launch of a CUDA graph, where the source records graphs as a whole and not their nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Graph {
    /// Where it was launched. Its nodes may have run elsewhere too.
    pub place: Place,
    /// The graph.
    pub graph: u32,
}

/// Time inside a CUDA API function on a host thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostCall {
    /// The operating system's id of the thread.
    pub thread: u32,
    /// The function's name, without a version suffix.
    pub name: NameId,
    /// What it returned; 0 is success.
    pub code: i32,
}

/// A synchronization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sync {
    /// What it waited for.
    pub kind: SyncKind,
    /// The context it belongs to.
    pub context: u32,
    /// The stream, where one is meant.
    pub stream: Option<u32>,
    /// The event, where one is meant.
    pub event: Option<u32>,
}

/// Time that the driver or the profiler itself took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Overhead {
    /// What for, in words ("lazy function loading").
    pub name: NameId,
    /// The thread it was charged to; 0 where the source does not say.
    pub thread: u32,
}

impl Overhead {
    /// What the name of one begins with in which a process most likely made its context, though no call says so.
    pub const CONTEXT: &str = "likely making the context";
}

/// An allocation or a free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryOp {
    /// Taken or given back.
    pub action: MemoryAction,
    /// Of which memory.
    pub kind: MemoryKind,
    /// Where: the stream is only meaningful when `is_async`.
    pub place: Place,
    /// Size in bytes; 0 for a free whose size the source does not know.
    pub bytes: u64,
    /// The address, which joins a free with its allocation.
    pub address: u64,
    /// Whether it was ordered on a stream (from a pool).
    pub is_async: bool,
}

/// An event recorded on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventRecord {
    /// The stream it was recorded on.
    pub place: Place,
    /// The event.
    pub event: u32,
}

/// A named phase on a host thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// What kind of phase.
    pub kind: RangeKind,
    /// Its name: of the variant, of the phase, of the NVTX range.
    pub name: NameId,
    /// The thread it was opened on.
    pub thread: u32,
    /// Which one, counted from 0, where phases of one name repeat; or [`Range::OPEN`].
    pub index: u32,
}

impl Range {
    /// The `index` of a range of which only the beginning was recorded. It has no length.
    pub const OPEN: u32 = u32::MAX;
}

codes! {
    /// The direction of a copy.
    pub enum Direction {
        /// Host to device.
        H2D = 0,
        /// Device to host.
        D2H = 1,
        /// Within one device.
        D2D = 2,
        /// Between two devices.
        P2P = 3,
        /// Host to host, or unknown.
        Other = 4,
    }

    /// The kind of memory at one side of a copy, or of an allocation.
    #[derive(Default)]
    pub enum MemoryKind {
        /// The source does not say.
        #[default]
        Unknown = 0,
        /// Ordinary host memory, which the driver stages through a pinned buffer.
        Pageable = 1,
        /// Page-locked host memory.
        Pinned = 2,
        /// Device memory.
        Device = 3,
        /// A CUDA array.
        Array = 4,
        /// Managed (unified) memory.
        Managed = 5,
    }

    /// What a synchronization waited for.
    pub enum SyncKind {
        /// The host waited for an event.
        Event = 0,
        /// A stream was made to wait for an event of another stream.
        StreamWaitEvent = 1,
        /// The host waited for a stream.
        Stream = 2,
        /// The host waited for everything on a context.
        Context = 3,
    }

    /// Whether memory was taken or given back.
    pub enum MemoryAction {
        /// Allocated.
        Alloc = 0,
        /// Freed.
        Free = 1,
    }

    /// What kind of phase a [`Range`] is.
    pub enum RangeKind {
        /// All repeats of one variant of a scenario, warm-up included.
        Variant = 0,
        /// A warm-up pass of a variant: not measured.
        Warmup = 1,
        /// One measured repeat of a variant. The host's clock around it is its `wall_ns`.
        Repeat = 2,
        /// A phase that the scenario names.
        Phase = 3,
        /// An NVTX range, or another profiler's user annotation.
        Nvtx = 4,
        /// A Python function: an estimate made of stack samples.
        Python = 5,
        /// An operation of a framework on the host, as its profiler recorded it (Kineto's `cpu_op`).
        CpuOp = 6,
        /// A Python function, as the program's own profiler recorded it: exact.
        Function = 7,
    }
}

impl What {
    /// Whether it is an operation of the driver's own, which no call asked for: it moves managed memory.
    pub fn is_migration(&self) -> bool {
        self.place()
            .is_some_and(|place| matches!(place.stream, Place::NO_STREAM | Place::EVICTED))
    }

    /// Whether it is a page that the CPU touched, so that it came back.
    pub fn comes_back(&self) -> bool {
        matches!(self, What::Copy(copy) if copy.direction == Direction::D2H && copy.place.stream == Place::NO_STREAM)
    }

    /// Where it happened, for what happens on a device: operations, allocations, recorded events.
    pub fn place(&self) -> Option<Place> {
        let mut what = *self;
        what.place_mut().copied()
    }

    /// As [`What::place`], to be changed.
    pub fn place_mut(&mut self) -> Option<&mut Place> {
        match self {
            What::Kernel(k) => Some(&mut k.place),
            What::Copy(c) => Some(&mut c.place),
            What::Memset(m) => Some(&mut m.place),
            What::Graph(g) => Some(&mut g.place),
            What::Memory(m) => Some(&mut m.place),
            What::Event(e) => Some(&mut e.place),
            What::Call(_) | What::Sync(_) | What::Overhead(_) | What::Range(_) => None,
        }
    }

    /// The name that it refers to.
    pub fn name(mut self) -> Option<NameId> {
        self.name_mut().copied()
    }

    /// The same, to be changed.
    pub fn name_mut(&mut self) -> Option<&mut NameId> {
        match self {
            What::Call(c) => Some(&mut c.name),
            What::Overhead(o) => Some(&mut o.name),
            What::Range(r) => Some(&mut r.name),
            _ => None,
        }
    }

    /// The launch shape that it refers to.
    pub fn shape_mut(&mut self) -> Option<&mut ShapeId> {
        match self {
            What::Kernel(k) => Some(&mut k.shape),
            _ => None,
        }
    }

    /// The CUDA graph that it is, or was a node of; 0 when none.
    pub fn graph(&self) -> u32 {
        match self {
            What::Kernel(Kernel { graph, .. })
            | What::Copy(Copy { graph, .. })
            | What::Memset(Memset { graph, .. })
            | What::Graph(Graph { graph, .. }) => *graph,
            _ => 0,
        }
    }

    /// The node of a CUDA graph that it was, as CUPTI numbers them: the graph's number in the upper half. 0 when none.
    pub fn node(&self) -> u64 {
        match *self {
            What::Kernel(Kernel { node, .. }) => node,
            What::Copy(Copy { graph, node, .. }) | What::Memset(Memset { graph, node, .. }) => {
                let number = node.checked_sub(1);
                number.map_or(0, |number| u64::from(graph) << 32 | u64::from(number))
            }
            _ => 0,
        }
    }

    /// Whether this is an operation of the GPU: a kernel, a copy, a memset or a graph.
    pub fn is_operation(&self) -> bool {
        matches!(
            self,
            What::Kernel(_) | What::Copy(_) | What::Memset(_) | What::Graph(_)
        )
    }
}

impl Activity {
    /// An activity of these parts.
    #[inline]
    pub fn new(span: Span, correlation: Correlation, what: What) -> Activity {
        Activity {
            span,
            correlation,
            what,
        }
    }

    /// Where it ran, for operations of the GPU.
    pub fn place(&self) -> Option<Place> {
        self.what.place().filter(|_| self.is_operation())
    }

    /// Whether this is an operation of the GPU: a kernel, a copy, a memset or a graph.
    pub fn is_operation(&self) -> bool {
        self.what.is_operation()
    }
}

impl Place {
    /// The stream of what runs on none: the driver's own migrations of managed memory.
    pub const NO_STREAM: u32 = u32::MAX;

    /// That of pages which the program asked to be moved ahead.
    pub const PREFETCHED: u32 = u32::MAX - 1;

    /// That of pages which left the GPU to make room for others. Whatever is below it is a stream of the program.
    pub const EVICTED: u32 = u32::MAX - 2;

    /// A stream of a context of a device.
    #[inline]
    pub const fn new(device: u32, context: u32, stream: u32) -> Place {
        Place {
            device,
            context,
            stream,
        }
    }
}

impl Direction {
    /// The directions that have a figure of their own in reports.
    pub const NAMED: [Self; 4] = [Self::H2D, Self::D2H, Self::D2D, Self::P2P];

    /// All of them, by their numbers.
    pub const ALL: [Self; 5] = [Self::H2D, Self::D2H, Self::D2D, Self::P2P, Self::Other];

    /// CUDA's own short name.
    pub fn label(self) -> &'static str {
        ["H2D", "D2H", "D2D", "P2P", "copy"][self as usize]
    }
}

impl MemoryKind {
    /// The field's word for it.
    pub fn label(self) -> &'static str {
        let labels = [
            "unknown", "pageable", "pinned", "device", "array", "managed",
        ];
        labels[self as usize]
    }

    /// By the word for it: the one here, or that of CUPTI, Kineto or XLA ("DEVICE_STATIC").
    pub fn named(word: &str) -> MemoryKind {
        let word = word.trim().split([' ', '_']).next().unwrap_or_default();
        let mut all = (0..).map_while(MemoryKind::from_code);
        all.find(|it| it.label().eq_ignore_ascii_case(word))
            .unwrap_or_default()
    }
}

impl SyncKind {
    /// Kineto's name for it.
    pub fn kineto_name(self) -> &'static str {
        let names = [
            "Event Sync",
            "Stream Wait Event",
            "Stream Sync",
            "Context Sync",
        ];
        names[self as usize]
    }
}

impl RangeKind {
    /// What says in Chrome JSON that a range is of this kind. Without such a word it is an NVTX range.
    pub const WORDS: [(&'static str, RangeKind); 7] = [
        ("variant", Self::Variant),
        ("warmup", Self::Warmup),
        ("repeat", Self::Repeat),
        ("phase", Self::Phase),
        ("python", Self::Python),
        ("cpu_op", Self::CpuOp),
        ("python_function", Self::Function),
    ];
}
