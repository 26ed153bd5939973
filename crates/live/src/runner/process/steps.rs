//! The launch loop.
//!
//! A pass is a flat walk over the plan's operations. Everything that can be done before is done before:
//! streams, events, buffers, modules and argument blocks exist, and driver functions are plain pointers.
//! So what the loop adds to a driver call is a match, a table look-up and a compare. That is a few
//! nanoseconds beside the 2 to 4 us that a launch costs.

#![expect(unsafe_code, reason = "calls the driver: this is the launch loop")]

use cudarc::driver::sys::{CUdeviceptr, CUstream};

use activity::Direction;
use recording::file::wall_time;
use scenario::plan::{CopyPiece, HostWork, LaunchId, MemRef, Op, OpKind, StreamId, SyncTarget};

use super::super::driver::{Code, INVALID_VALUE, NOT_SUPPORTED, SUCCESS};
use super::engine::{Engine, Failed, Phase};
use super::host;

impl<'a> Engine<'a> {
    /// The loop.
    pub(super) fn run(&mut self, ops: &'a [Op]) -> Result<(), Failed> {
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
    fn enter(&mut self, device: u32) {
        if self.device != device {
            // SAFETY: the context is alive. A failure shows in the call that follows.
            unsafe { (self.driver.ctx_set_current)(self.contexts.get(device)) };
            self.device = device;
        }
    }

    /// Makes the context of a stream's device current and returns the stream.
    #[inline]
    pub(super) fn enter_stream(&mut self, stream: StreamId) -> CUstream {
        self.enter(self.device_of(stream));
        self.streams[stream]
    }

    // SAFETY, for every driver call of the next three functions. Streams, events, graphs and functions were
    // made by `new` (or by an earlier Capture) in contexts that outlive this. A validated plan indexes
    // only those it lists. Buffers are as large as the plan says, and its ranges lie inside them.
    // Argument blocks do not move while this lives. What a kernel does with its arguments is the
    // scenario author's business, and why this runs in a process of its own.

    /// Issues one operation. `Err` only comes from inside a captured graph.
    #[inline]
    fn step(&mut self, op: &Op) -> Result<Code, Failed> {
        let driver = self.driver;
        Ok(match op.kind {
            OpKind::Launch { launch, stream } => self.launch(launch, stream),
            OpKind::Copy(copy) => {
                let stream = self.enter_stream(copy.stream);
                let stream = copy.is_async.then_some(stream);
                let mut codes = (op.kind.pieces()).map(|it| self.copy(copy.direction, stream, it));
                codes.find(|code| *code != SUCCESS).unwrap_or(SUCCESS)
            }
            OpKind::Memset {
                to,
                bytes,
                value,
                stream,
            } => {
                let stream = self.enter_stream(stream);
                let to = self.buffers.device(to);
                // SAFETY: see above.
                unsafe { (driver.memset_d8_async)(to, value, bytes as usize, stream) }
            }
            OpKind::Record { event, stream } => {
                let stream = self.enter_stream(stream);
                // SAFETY: see above.
                unsafe { (driver.event_record)(self.events[event], stream) }
            }
            OpKind::Wait { event, stream } => {
                let stream = self.enter_stream(stream);
                // SAFETY: see above.
                unsafe { (driver.stream_wait_event)(stream, self.events[event], 0) }
            }
            OpKind::Sync(target) => self.sync(target),
            OpKind::GraphLaunch { graph, stream } => {
                let stream = self.enter_stream(stream);
                // SAFETY: see above; a graph that was not captured is a null handle, which is an
                // error code.
                unsafe { (driver.graph_launch)(self.graphs[graph], stream) }
            }
            OpKind::Alloc { buffer, stream } => self.alloc(buffer, stream),
            OpKind::Free { buffer, stream } => self.free(buffer, stream),
            OpKind::Capture { graph, stream } => return self.capture(graph, stream),
            OpKind::Host(work) => self.work(work),
            OpKind::RangeBegin(phase) => {
                self.open.push((phase, wall_time()));
                SUCCESS
            }
            OpKind::RangeEnd => {
                if let Some((phase, start)) = self.open.pop() {
                    let end = wall_time();
                    self.phases.push(Phase { phase, start, end });
                }
                SUCCESS
            }
        })
    }

    #[inline]
    fn launch(&mut self, launch: LaunchId, stream: StreamId) -> Code {
        let stream = self.enter_stream(stream);
        match self.launches.get(launch, self.device) {
            // SAFETY: see above.
            Some(k) => unsafe {
                (self.driver.launch_kernel)(
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
            None => NOT_SUPPORTED,
        }
    }

    #[inline]
    fn sync(&mut self, target: SyncTarget) -> Code {
        match target {
            SyncTarget::Stream(stream) => {
                let stream = self.enter_stream(stream);
                // SAFETY: see above.
                unsafe { (self.driver.stream_synchronize)(stream) }
            }
            // SAFETY: see above.
            SyncTarget::Event(event) => unsafe {
                (self.driver.event_synchronize)(self.events[event])
            },
            SyncTarget::Device(device) => {
                self.enter(device);
                // SAFETY: see above.
                unsafe { (self.driver.ctx_synchronize)() }
            }
        }
    }

    /// One call that copies; asynchronous when it is given a stream.
    #[inline]
    fn copy(&mut self, direction: Direction, stream: Option<CUstream>, piece: CopyPiece) -> Code {
        let (driver, buffers) = (&self.driver, &self.buffers);
        let CopyPiece { from, to, bytes } = piece;
        let bytes = bytes as usize;
        let (read, write) = (buffers.host(from).cast(), buffers.host(to).cast());
        let context = |at: MemRef| {
            let device = self.variant.buffers[at.buffer].device;
            self.contexts.get(device.unwrap_or(0))
        };
        let (of_to, of_from) = (context(to), context(from));
        let (to, from) = (buffers.device(to), buffers.device(from));
        // SAFETY: both sides have `bytes` bytes, as the plan's ranges lie in their buffers, and live
        // until all devices were waited for.
        unsafe {
            match (direction, stream) {
                (Direction::H2D, Some(stream)) => {
                    (driver.memcpy_htod_async)(to, read, bytes, stream)
                }
                (Direction::H2D, None) => (driver.memcpy_htod)(to, read, bytes),
                (Direction::D2H, Some(stream)) => {
                    (driver.memcpy_dtoh_async)(write, from, bytes, stream)
                }
                (Direction::D2H, None) => (driver.memcpy_dtoh)(write, from, bytes),
                (Direction::D2D, Some(stream)) => {
                    (driver.memcpy_dtod_async)(to, from, bytes, stream)
                }
                (Direction::D2D, None) => (driver.memcpy_dtod)(to, from, bytes),
                (Direction::P2P, Some(stream)) => {
                    (driver.memcpy_peer_async)(to, of_to, from, of_from, bytes, stream)
                }
                (Direction::P2P, None) => (driver.memcpy_peer)(to, of_to, from, of_from, bytes),
                (Direction::Other, _) => NOT_SUPPORTED,
            }
        }
    }

    fn alloc(&mut self, buffer: usize, stream: Option<StreamId>) -> Code {
        let code = match stream {
            None => {
                self.enter(self.variant.buffers[buffer].device.unwrap_or(0));
                self.buffers.allocate(buffer)
            }
            Some(stream) => {
                let stream = self.enter_stream(stream);
                let bytes = self.variant.buffers[buffer].bytes as usize;
                // SAFETY: the stream is alive; writes one address.
                unsafe {
                    (self.driver.mem_alloc_async)(self.buffers.address_mut(buffer), bytes, stream)
                }
            }
        };
        let address: CUdeviceptr = *self.buffers.address_mut(buffer);
        self.launches.moved(buffer, address);
        code
    }

    fn free(&mut self, buffer: usize, stream: Option<StreamId>) -> Code {
        let stream = stream.map(|stream| self.enter_stream(stream));
        let address = std::mem::take(self.buffers.address_mut(buffer));
        // SAFETY: the address came from an allocation (0 is allowed). A scenario that frees while a
        // kernel still uses the memory makes a GPU error, not a host one.
        unsafe {
            match stream {
                None => (self.driver.mem_free)(address),
                Some(stream) => (self.driver.mem_free_async)(address, stream),
            }
        }
    }

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
