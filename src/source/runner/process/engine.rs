//! The launch loop, and what a variant needs around it.
//!
//! A pass is a flat walk over the plan's operations. Everything that can be done before is done before:
//! streams, events, buffers, modules and argument blocks exist, and driver functions are plain pointers.
//! So what the loop adds to a driver call is a match, a table look-up and a compare: a few nanoseconds
//! beside the 2 to 4 us that a launch costs.

use std::ffi::c_uint;

use cudarc::driver::sys::{CUdeviceptr, CUevent, CUgraph, CUgraphExec, CUstream};

use crate::activity::{Direction, Ns};
use crate::scenario::plan::{HostWork, MemRef, Op, OpKind, StreamId, SyncTarget, VariantPlan};

use super::super::driver::{Code, Driver, INVALID_VALUE, SUCCESS};
use super::super::fault::Fault;
use super::context::Contexts;
use super::kernels::{Images, Launches};
use super::memory::Buffers;
use super::session::Marks;
use super::{host, now};

/// `CU_STREAM_NON_BLOCKING`: does not wait for the legacy default stream.
const NON_BLOCKING: c_uint = 1;
/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: c_uint = 2;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`: this thread may call anything while it captures.
const CAPTURE_RELAXED: c_uint = 2;
/// The name of the legacy default stream in scenarios.
const DEFAULT_STREAM: &str = "default";
/// `CU_DEVICE_CPU`, as the target of a migration.
const CPU: i32 = -1;
/// Stands for a function that this driver does not have.
const MISSING: Code = 801;

/// An operation that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Failed {
    /// Which.
    pub(super) op: Op,
    /// What the driver said.
    pub(super) code: Code,
}

/// A phase that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Phase {
    /// Index into [`VariantPlan::phases`].
    pub(super) phase: usize,
    pub(super) start: Ns,
    pub(super) end: Ns,
}

/// Everything a variant needs to run its passes. What it made is given back when dropped.
#[derive(Debug)]
pub(super) struct Engine<'a> {
    driver: Driver,
    variant: &'a VariantPlan,
    contexts: &'a Contexts,
    streams: Vec<CUstream>,
    events: Vec<CUevent>,
    graphs: Vec<CUgraphExec>,
    pub(super) buffers: Buffers<'a>,
    launches: Launches,
    open: Vec<(usize, Ns)>,
    /// The phases of the current pass.
    pub(super) phases: Vec<Phase>,
    device: u32,
}

impl<'a> Engine<'a> {
    /// Makes what a variant needs before its first pass.
    #[expect(unsafe_code, reason = "calls the driver")]
    pub(super) fn new(
        driver: &Driver,
        contexts: &'a Contexts,
        variant: &'a VariantPlan,
        images: &Images,
    ) -> Result<Engine<'a>, Fault> {
        let buffers = Buffers::new(driver, contexts, &variant.buffers)?;
        let launches = Launches::new(driver, contexts, variant, images, &buffers)?;
        let mut engine = Engine {
            driver: *driver,
            variant,
            contexts,
            streams: Vec::with_capacity(variant.streams.len()),
            events: Vec::with_capacity(variant.events.len()),
            graphs: vec![std::ptr::null_mut(); variant.graphs.len()],
            buffers,
            launches,
            open: Vec::new(),
            phases: Vec::with_capacity(variant.phases.len() * 64),
            device: 0,
        };
        for spec in &variant.streams {
            contexts.enter(spec.device)?;
            let mut stream: CUstream = std::ptr::null_mut();
            if spec.name != DEFAULT_STREAM {
                // SAFETY: a context is current; writes one handle.
                let code =
                    unsafe { (driver.stream_create)(&mut stream, NON_BLOCKING, spec.priority) };
                driver
                    .check(code)
                    .map_err(|e| Fault::cuda(&format!("making stream `{}`", spec.name), &e))?;
            }
            engine.streams.push(stream);
        }
        for (id, name) in variant.events.iter().enumerate() {
            contexts.enter(engine.device_of_event(id))?;
            let mut event: CUevent = std::ptr::null_mut();
            // SAFETY: a context is current; writes one handle.
            let code = unsafe { (driver.event_create)(&mut event, DISABLE_TIMING) };
            driver
                .check(code)
                .map_err(|e| Fault::cuda(&format!("making event `{name}`"), &e))?;
            engine.events.push(event);
        }
        contexts.enter(0)?;
        Ok(engine)
    }

    /// Tells the recording what the scenario calls its streams.
    #[expect(unsafe_code, reason = "hands on CUDA's handles")]
    pub(super) fn name_streams(&self, marks: &dyn Marks) {
        for (spec, &stream) in self.variant.streams.iter().zip(&self.streams) {
            // SAFETY: context and stream are alive for as long as this engine.
            unsafe {
                marks.name_stream(
                    self.contexts.get(spec.device).cast(),
                    stream.cast(),
                    &spec.name,
                );
            }
        }
    }

    /// The device whose streams record an event: an event belongs to one context.
    fn device_of_event(&self, id: usize) -> u32 {
        let graphs = self.variant.graphs.iter().flat_map(|g| &g.ops);
        self.variant
            .ops
            .iter()
            .chain(graphs)
            .find_map(|op| match op.kind {
                OpKind::Record { event, stream } if event == id => Some(self.device_of(stream)),
                _ => None,
            })
            .unwrap_or(0)
    }

    fn device_of(&self, stream: StreamId) -> u32 {
        self.variant.streams[stream].device
    }

    /// Runs one pass and waits for all devices.
    pub(super) fn pass(&mut self) -> Result<(), PassFailed> {
        self.phases.clear();
        self.open.clear();
        let ops: &'a [Op] = &self.variant.ops;
        self.run(ops).map_err(PassFailed::Op)?;
        self.contexts
            .synchronize()
            .map_err(|error| PassFailed::End(error.code))?;
        self.device = 0;
        Ok(())
    }

    /// The loop.
    fn run(&mut self, ops: &'a [Op]) -> Result<(), Failed> {
        for op in ops {
            let code = self.step(op)?;
            if code != SUCCESS {
                return Err(Failed { op: *op, code });
            }
        }
        Ok(())
    }

    /// Makes the context of a device current, when it is not.
    #[inline]
    #[expect(unsafe_code, reason = "calls the driver")]
    fn enter(&mut self, device: u32) {
        if self.device != device {
            // SAFETY: the context is alive. A failure shows in the call that follows.
            unsafe { (self.driver.ctx_set_current)(self.contexts.get(device)) };
            self.device = device;
        }
    }

    /// Makes the context of a stream's device current and returns the stream.
    #[inline]
    fn on(&mut self, stream: StreamId) -> CUstream {
        self.enter(self.device_of(stream));
        self.streams[stream]
    }

    /// Issues one operation. `Err` only comes from inside a captured graph.
    #[inline]
    #[expect(unsafe_code, reason = "calls the driver: this is the launch loop")]
    fn step(&mut self, op: &Op) -> Result<Code, Failed> {
        let driver = self.driver;
        // SAFETY, for every driver call below: streams, events, graphs and functions were made by
        // `new` (or by an earlier Capture) in contexts that outlive this, and a validated plan indexes
        // only those it lists; buffers are as large as the plan says, and its ranges lie inside them;
        // argument blocks do not move while this lives. What a kernel does with its arguments is the
        // scenario author's business, and why this runs in a process of its own.
        Ok(match op.kind {
            OpKind::Launch { launch, stream } => {
                let stream = self.on(stream);
                match self.launches.get(launch, self.device) {
                    // SAFETY: see above.
                    Some(k) => unsafe {
                        (driver.launch_kernel)(
                            k.function,
                            k.grid[0],
                            k.grid[1],
                            k.grid[2],
                            k.block[0],
                            k.block[1],
                            k.block[2],
                            k.shared,
                            stream,
                            k.params,
                            std::ptr::null_mut(),
                        )
                    },
                    None => MISSING,
                }
            }
            OpKind::Copy {
                direction,
                from,
                to,
                bytes,
                chunk,
                stream,
                is_async,
            } => {
                let stream = self.on(stream);
                let way = Way {
                    direction,
                    stream: is_async.then_some(stream),
                    default: stream,
                };
                self.copy(way, from, to, bytes, chunk)
            }
            OpKind::Memset {
                to,
                bytes,
                value,
                stream,
            } => {
                let stream = self.on(stream);
                let to = self.buffers.device(to);
                // SAFETY: see above.
                unsafe { (driver.memset_d8_async)(to, value, bytes as usize, stream) }
            }
            OpKind::Record { event, stream } => {
                let stream = self.on(stream);
                // SAFETY: see above.
                unsafe { (driver.event_record)(self.events[event], stream) }
            }
            OpKind::Wait { event, stream } => {
                let stream = self.on(stream);
                // SAFETY: see above.
                unsafe { (driver.stream_wait_event)(stream, self.events[event], 0) }
            }
            OpKind::Sync(SyncTarget::Stream(stream)) => {
                let stream = self.on(stream);
                // SAFETY: see above.
                unsafe { (driver.stream_synchronize)(stream) }
            }
            OpKind::Sync(SyncTarget::Event(event)) => {
                // SAFETY: see above.
                unsafe { (driver.event_synchronize)(self.events[event]) }
            }
            OpKind::Sync(SyncTarget::Device(device)) => {
                self.enter(device);
                // SAFETY: see above.
                unsafe { (driver.ctx_synchronize)() }
            }
            OpKind::GraphLaunch { graph, stream } => {
                let stream = self.on(stream);
                // SAFETY: see above; a graph that was not captured is a null handle, which is an
                // error code.
                unsafe { (driver.graph_launch)(self.graphs[graph], stream) }
            }
            OpKind::Alloc { buffer, stream } => self.alloc(buffer, stream),
            OpKind::Free { buffer, stream } => self.free(buffer, stream),
            OpKind::Capture { graph, stream } => return self.capture(graph, stream),
            OpKind::Host(work) => self.work(work),
            OpKind::RangeBegin(phase) => {
                self.open.push((phase, now()));
                SUCCESS
            }
            OpKind::RangeEnd => {
                if let Some((phase, start)) = self.open.pop() {
                    let end = now();
                    self.phases.push(Phase { phase, start, end });
                }
                SUCCESS
            }
        })
    }

    /// Copies in pieces.
    #[inline]
    fn copy(&mut self, way: Way, from: MemRef, to: MemRef, bytes: u64, chunk: u64) -> Code {
        let piece = if chunk == 0 { bytes } else { chunk };
        let mut done = 0;
        while done < bytes {
            let part = piece.min(bytes - done);
            let code = self.copy_piece(way, moved(from, done), moved(to, done), part as usize);
            if code != SUCCESS {
                return code;
            }
            done += part;
        }
        SUCCESS
    }

    #[inline]
    #[expect(unsafe_code, reason = "calls the driver: this is the launch loop")]
    fn copy_piece(&mut self, way: Way, from: MemRef, to: MemRef, bytes: usize) -> Code {
        let (driver, buffers) = (&self.driver, &self.buffers);
        if buffers.is_migration(from, to) {
            let target = match way.direction {
                Direction::D2H => CPU,
                // Ordinals and CUdevice handles are the same numbers.
                _ => self.device as i32,
            };
            return match driver.mem_prefetch_async {
                // SAFETY: the managed allocation has these bytes.
                Some(prefetch) => unsafe {
                    prefetch(buffers.device(from), bytes, target, way.default)
                },
                None => MISSING,
            };
        }
        // SAFETY: both sides have `bytes` bytes, as the plan's ranges lie in their buffers, and live
        // until all devices were waited for.
        unsafe {
            match (way.direction, way.stream) {
                (Direction::H2D, Some(stream)) => (driver.memcpy_htod_async)(
                    buffers.device(to),
                    buffers.host(from).cast(),
                    bytes,
                    stream,
                ),
                (Direction::H2D, None) => {
                    (driver.memcpy_htod)(buffers.device(to), buffers.host(from).cast(), bytes)
                }
                (Direction::D2H, Some(stream)) => (driver.memcpy_dtoh_async)(
                    buffers.host(to).cast(),
                    buffers.device(from),
                    bytes,
                    stream,
                ),
                (Direction::D2H, None) => {
                    (driver.memcpy_dtoh)(buffers.host(to).cast(), buffers.device(from), bytes)
                }
                (Direction::D2D, Some(stream)) => (driver.memcpy_dtod_async)(
                    buffers.device(to),
                    buffers.device(from),
                    bytes,
                    stream,
                ),
                (Direction::D2D, None) => {
                    (driver.memcpy_dtod)(buffers.device(to), buffers.device(from), bytes)
                }
                (Direction::P2P, stream) => {
                    let context = |at: MemRef| {
                        let device = self.variant.buffers[at.buffer].device;
                        self.contexts.get(device.unwrap_or(0))
                    };
                    let (to_context, from_context) = (context(to), context(from));
                    let (to, from) = (buffers.device(to), buffers.device(from));
                    match stream {
                        Some(stream) => (driver.memcpy_peer_async)(
                            to,
                            to_context,
                            from,
                            from_context,
                            bytes,
                            stream,
                        ),
                        None => (driver.memcpy_peer)(to, to_context, from, from_context, bytes),
                    }
                }
                (Direction::Other, _) => MISSING,
            }
        }
    }

    #[expect(unsafe_code, reason = "calls the driver: this is the launch loop")]
    fn alloc(&mut self, buffer: usize, stream: Option<StreamId>) -> Code {
        let code = match stream {
            None => {
                self.enter(self.variant.buffers[buffer].device.unwrap_or(0));
                self.buffers.allocate(buffer)
            }
            Some(stream) => {
                let stream = self.on(stream);
                let bytes = self.variant.buffers[buffer].bytes as usize;
                match self.driver.mem_alloc_async {
                    // SAFETY: the stream is alive; writes one address.
                    Some(alloc) => unsafe {
                        alloc(self.buffers.address_mut(buffer), bytes, stream)
                    },
                    None => MISSING,
                }
            }
        };
        let address: CUdeviceptr = *self.buffers.address_mut(buffer);
        self.launches.moved(buffer, address);
        code
    }

    #[expect(unsafe_code, reason = "calls the driver: this is the launch loop")]
    fn free(&mut self, buffer: usize, stream: Option<StreamId>) -> Code {
        let stream = stream.map(|stream| self.on(stream));
        let address = std::mem::take(self.buffers.address_mut(buffer));
        // SAFETY: the address came from an allocation (0 is allowed); a scenario that frees while a
        // kernel still uses the memory makes a GPU error, not a host one.
        unsafe {
            match (stream, self.driver.mem_free_async) {
                (None, _) => (self.driver.mem_free)(address),
                (Some(stream), Some(free)) => free(address, stream),
                (Some(_), None) => MISSING,
            }
        }
    }

    /// Records a graph's operations instead of running them, and instantiates the graph.
    #[expect(unsafe_code, reason = "calls the driver")]
    fn capture(&mut self, graph: usize, stream: StreamId) -> Result<Code, Failed> {
        let driver = self.driver;
        let stream = self.on(stream);
        // SAFETY: the stream is alive.
        let code = unsafe { (driver.stream_begin_capture)(stream, CAPTURE_RELAXED) };
        if code != SUCCESS {
            return Ok(code);
        }
        let ops: &'a [Op] = &self.variant.graphs[graph].ops;
        let captured = self.run(ops);
        let mut made: CUgraph = std::ptr::null_mut();
        // SAFETY: the stream is alive and captures; writes one handle, null when capture failed.
        let end = unsafe { (driver.stream_end_capture)(stream, &mut made) };
        captured?;
        if end != SUCCESS {
            return Ok(end);
        }
        let mut executable: CUgraphExec = std::ptr::null_mut();
        // SAFETY: the graph was made just now and is not needed after it was instantiated; the
        // executable that it replaces is not running, or the driver keeps it until it is done.
        unsafe {
            let code = (driver.graph_instantiate)(&mut executable, made, 0);
            (driver.graph_destroy)(made);
            if code == SUCCESS {
                let old = std::mem::replace(&mut self.graphs[graph], executable);
                if !old.is_null() {
                    (driver.graph_exec_destroy)(old);
                }
            }
            Ok(code)
        }
    }

    #[expect(unsafe_code, reason = "views of host memory")]
    fn work(&mut self, work: HostWork) -> Code {
        // SAFETY, for the views below: the host thread is this one. A scenario that works on memory
        // while a copy is under way gets what such a program gets: old or new values, all valid f32.
        match work {
            HostWork::Busy(ns) => host::busy(ns),
            HostWork::Sum(at, bytes) => {
                // SAFETY: see above.
                host::sum(unsafe { self.buffers.floats(at, bytes) });
            }
            // SAFETY: see above.
            HostWork::Sin(at, bytes) => host::sin(unsafe { self.buffers.floats(at, bytes) }),
            HostWork::Matmul(a, b, c, _) if c == a || c == b => return INVALID_VALUE,
            HostWork::Matmul(a, b, c, n) => {
                let n = n as usize;
                let bytes = (n * n * size_of::<f32>()) as u64;
                let mut whole = |buffer| {
                    let at = MemRef { buffer, offset: 0 };
                    // SAFETY: see above; only the parts leave, so that three buffers can be seen at once.
                    let view = unsafe { self.buffers.floats(at, bytes) };
                    (view.as_mut_ptr(), view.len())
                };
                let (a, b, c) = (whole(a), whole(b), whole(c));
                // SAFETY: the parts of slices from `floats`; `c` is another buffer than `a` and `b`.
                unsafe {
                    let a = std::slice::from_raw_parts(a.0, a.1);
                    let b = std::slice::from_raw_parts(b.0, b.1);
                    let c = std::slice::from_raw_parts_mut(c.0, c.1);
                    host::matmul(a, b, c, n);
                }
            }
        }
        SUCCESS
    }
}

impl Drop for Engine<'_> {
    #[expect(unsafe_code, reason = "calls the driver")]
    fn drop(&mut self) {
        let driver = self.driver;
        // SAFETY: each handle was made by this engine and is given back once, before the buffers,
        // modules and contexts go. After an error of the device these calls fail, which changes nothing.
        unsafe {
            for &graph in self.graphs.iter().filter(|g| !g.is_null()) {
                (driver.graph_exec_destroy)(graph);
            }
            for &event in &self.events {
                (driver.event_destroy)(event);
            }
            for &stream in self.streams.iter().filter(|s| !s.is_null()) {
                (driver.stream_destroy)(stream);
            }
        }
    }
}

/// How a copy goes.
#[derive(Clone, Copy)]
struct Way {
    direction: Direction,
    /// The stream of an asynchronous copy.
    stream: Option<CUstream>,
    /// The stream either way, for migrations, which are always asynchronous.
    default: CUstream,
}

/// Why a pass failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PassFailed {
    /// An operation of it.
    Op(Failed),
    /// The wait at its end.
    End(Code),
}

fn moved(at: MemRef, by: u64) -> MemRef {
    MemRef {
        offset: at.offset + by,
        ..at
    }
}
