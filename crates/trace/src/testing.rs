//! Small timelines for tests, written down operation by operation.

use std::collections::BTreeMap;

use crate::Trace;
use activity::{
    Activity, Batch, Copy, Def, DeviceInfo, Direction, EventRecord, HostCall, Kernel, LaunchShape,
    MemoryAction, MemoryKind, MemoryOp, Memset, NameId, Ns, Overhead, Place, Range, RangeKind,
    Span, Sync, SyncKind, What,
};

mod programs;

thread_local! {
    static MADE: std::cell::RefCell<BTreeMap<&'static str, usize>> = const { std::cell::RefCell::new(BTreeMap::new()) };
}

/// Counts what is made of all of a timeline.
pub fn made(what: &'static str) {
    MADE.with_borrow_mut(|made| *made.entry(what).or_default() += 1);
}

/// How often this thread has made "graph", "calls", "causes", "steps", "ranks" or "figures".
pub fn count_made(what: &str) -> usize {
    MADE.with_borrow(|made| made.get(what).copied().unwrap_or_default())
}

pub use programs::{kernels, launched, waits};

/// What a test wants of a text, which it shows where that does not hold.
pub trait Sentence {
    fn must_begin(&self, with: &str);
    fn must_end(&self, with: &str);
    fn must_have(&self, part: &str);
    fn must_lack(&self, part: &str);
}

impl Sentence for str {
    #[track_caller]
    fn must_begin(&self, with: &str) {
        assert!(self.starts_with(with), "{self}");
    }

    #[track_caller]
    fn must_end(&self, with: &str) {
        assert!(self.ends_with(with), "{self}");
    }

    #[track_caller]
    fn must_have(&self, part: &str) {
        assert!(self.contains(part), "{self}");
    }

    #[track_caller]
    fn must_lack(&self, part: &str) {
        assert!(!self.contains(part), "{self}");
    }
}

/// A timeline in the making. Times are ns; everything is on device 0, context 1, host thread 1.
#[derive(Default)]
pub struct Scene {
    batch: Batch,
    names: Vec<String>,
    shapes: Vec<LaunchShape>,
    /// The last call's correlation id.
    correlation: u32,
    /// That of what comes next.
    cause: u32,
    /// The thread of calls, from 0 on.
    thread: u32,
}

impl Scene {
    pub fn new() -> Self {
        Scene::default()
    }

    pub fn name(&mut self, text: &str) -> NameId {
        if let Some(id) = self.names.iter().position(|n| n == text) {
            return id as NameId;
        }
        let id = self.names.len() as NameId;
        self.names.push(text.to_owned());
        self.batch.defs.push(Def::Name {
            id,
            text: text.to_owned(),
        });
        id
    }

    pub fn device(&mut self, info: DeviceInfo) -> &mut Self {
        self.batch.defs.push(Def::Device(info));
        self
    }

    pub fn push(&mut self, start: Ns, end: Ns, correlation: u32, what: What) -> &mut Self {
        self.batch.items.push(Activity {
            span: Span::new(start, end),
            correlation,
            what,
        });
        self
    }

    /// Calls that come next are of this thread, from 0 on.
    pub fn on_thread(&mut self, thread: u32) -> &mut Self {
        self.thread = thread;
        self
    }

    /// A host call; what is queued next with [`Scene::kernel`], [`Scene::copy`] or [`Scene::memset`]
    /// was caused by it.
    pub fn call(&mut self, name: &str, start: Ns, end: Ns) -> &mut Self {
        let name = self.name(name);
        self.correlation += 1;
        self.cause = self.correlation;
        let what = What::Call(HostCall {
            thread: self.thread + 1,
            name,
            code: 0,
        });
        self.push(start, end, self.cause, what)
    }

    pub fn shaped(
        &mut self,
        shape: LaunchShape,
        name: &str,
        stream: u32,
        start: Ns,
        end: Ns,
    ) -> &mut Self {
        let shape = LaunchShape {
            name: self.name(name),
            ..shape
        };
        let id = self.shapes.iter().position(|s| *s == shape);
        let id = id.unwrap_or_else(|| {
            self.shapes.push(shape);
            let id = self.shapes.len() - 1;
            self.batch.defs.push(Def::Shape {
                id: id as u32,
                shape,
            });
            id
        });
        let what = What::Kernel(Kernel {
            place: place(stream),
            shape: id as u32,
            graph: 0,
            node: 0,
        });
        self.push(start, end, self.cause, what)
    }

    pub fn kernel(&mut self, name: &str, stream: u32, start: Ns, end: Ns) -> &mut Self {
        let shape = LaunchShape {
            grid: [1024, 1, 1],
            block: [256, 1, 1],
            ..LaunchShape::default()
        };
        self.shaped(shape, name, stream, start, end)
    }

    pub fn copy_of(&mut self, copy: Copy, start: Ns, end: Ns) -> &mut Self {
        self.push(start, end, self.cause, What::Copy(copy))
    }

    /// An asynchronous copy of pinned memory.
    pub fn copy(
        &mut self,
        direction: Direction,
        stream: u32,
        bytes: u64,
        start: Ns,
        end: Ns,
    ) -> &mut Self {
        self.copy_of(pinned(direction, stream, bytes), start, end)
    }

    pub fn memset(&mut self, stream: u32, bytes: u64, start: Ns, end: Ns) -> &mut Self {
        let what = What::Memset(Memset {
            place: place(stream),
            bytes,
            graph: 0,
            node: 0,
        });
        self.push(start, end, self.cause, what)
    }

    pub fn sync(
        &mut self,
        kind: SyncKind,
        stream: Option<u32>,
        event: Option<u32>,
        start: Ns,
        end: Ns,
    ) -> &mut Self {
        let what = What::Sync(Sync {
            kind,
            context: 1,
            stream,
            event,
        });
        self.push(start, end, self.cause, what)
    }

    pub fn event(&mut self, stream: u32, event: u32, at: Ns) -> &mut Self {
        let what = What::Event(EventRecord {
            place: place(stream),
            event,
        });
        self.push(at, at, self.cause, what)
    }

    pub fn overhead(&mut self, name: &str, start: Ns, end: Ns) -> &mut Self {
        let name = self.name(name);
        self.push(start, end, 0, What::Overhead(Overhead { name, thread: 1 }))
    }

    pub fn memory(&mut self, action: MemoryAction, address: u64, bytes: u64, at: Ns) -> &mut Self {
        let what = What::Memory(MemoryOp {
            action,
            kind: MemoryKind::Device,
            place: place(0),
            bytes,
            address,
            is_async: false,
        });
        self.push(at, at, self.cause, what)
    }

    pub fn range(
        &mut self,
        kind: RangeKind,
        name: &str,
        index: u32,
        start: Ns,
        end: Ns,
    ) -> &mut Self {
        let name = self.name(name);
        let what = What::Range(Range {
            kind,
            name,
            thread: 1,
            index,
        });
        self.push(start, end, 0, what)
    }

    /// What comes next was caused by no call.
    pub fn without_call(&mut self) -> &mut Self {
        self.cause = 0;
        self
    }

    /// What was written down since the last time.
    pub fn take(&mut self) -> Batch {
        std::mem::take(&mut self.batch)
    }

    /// Adds what was written down before.
    pub fn put(&mut self, batch: Batch) -> &mut Self {
        self.batch = batch;
        self
    }

    pub fn trace(&mut self) -> Trace {
        let mut trace = Trace::default();
        trace.apply(self.take());
        trace
    }
}

pub fn place(stream: u32) -> Place {
    Place {
        device: 0,
        context: 1,
        stream,
    }
}

pub fn pinned(direction: Direction, stream: u32, bytes: u64) -> Copy {
    let (from, to) = match direction {
        Direction::H2D => (MemoryKind::Pinned, MemoryKind::Device),
        Direction::D2H => (MemoryKind::Device, MemoryKind::Pinned),
        _ => (MemoryKind::Device, MemoryKind::Device),
    };
    Copy {
        place: place(stream),
        direction,
        from,
        to,
        is_async: true,
        bytes,
        peer: 0,
        graph: 0,
        node: 0,
    }
}

/// An H200 as CUPTI describes it.
pub fn h200() -> DeviceInfo {
    DeviceInfo {
        name: "NVIDIA H200".to_owned(),
        capability: (9, 0),
        multiprocessors: 132,
        memory_bandwidth: 4_800_000_000_000,
        copy_engines: 3,
        max_warps_per_sm: 64,
        max_blocks_per_sm: 32,
        shared_per_sm: 233_472,
        registers_per_sm: 65_536,
        warp_size: 32,
        ..DeviceInfo::default()
    }
}
