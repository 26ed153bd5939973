//! What a variant needs around its launch loop (`steps`): streams, events, buffers, launches, graphs,
//! made before the first pass and given back after the last.

#![expect(unsafe_code, reason = "calls the driver")]

use std::ffi::c_uint;

use cudarc::driver::sys::{
    CUcontext, CUevent, CUevent_flags, CUgraph, CUgraphExec, CUstream, CUstream_flags,
    CUstreamCaptureMode,
};

use activity::{Ns, RangeKind, Span};
use scenario::plan::{Op, OpKind, StreamId, VariantPlan};

use super::super::driver::{Code, Driver, SUCCESS};
use super::super::fault::Fault;
use super::context::Contexts;
use super::kernels::{Images, Launches};
use super::memory::Buffers;

/// Does not wait for the legacy default stream.
const NON_BLOCKING: c_uint = CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
const DISABLE_TIMING: c_uint = CUevent_flags::CU_EVENT_DISABLE_TIMING as c_uint;
/// This thread may call anything while it captures.
const CAPTURE_RELAXED: c_uint = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED as c_uint;

/// A name for the recording that CUDA does not know.
pub(crate) enum Mark<'a> {
    /// Of a stretch of this thread's time, with its number.
    Range(RangeKind, &'a str, u32, Span),
    /// Of a stream. Both handles are alive.
    Stream(CUcontext, CUstream, &'a str),
}

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
pub(super) struct Engine<'a> {
    pub(super) driver: Driver,
    pub(super) variant: &'a VariantPlan,
    pub(super) contexts: &'a Contexts,
    pub(super) streams: Vec<CUstream>,
    pub(super) events: Vec<CUevent>,
    pub(super) graphs: Vec<CUgraphExec>,
    pub(super) buffers: Buffers<'a>,
    pub(super) launches: Launches,
    pub(super) open: Vec<(usize, Ns)>,
    /// The phases of the current pass.
    pub(super) phases: Vec<Phase>,
    pub(super) device: u32,
}

impl<'a> Engine<'a> {
    /// Makes what a variant needs before its first pass.
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
            if !spec.is_default() {
                // SAFETY: a context is current; writes one handle.
                let code =
                    unsafe { (driver.stream_create)(&mut stream, NON_BLOCKING, spec.priority) };
                driver.must(&format!("making stream `{}`", spec.name), code)?;
            }
            engine.streams.push(stream);
        }
        for (id, name) in variant.events.iter().enumerate() {
            contexts.enter(engine.device_of_event(id))?;
            let mut event: CUevent = std::ptr::null_mut();
            // SAFETY: a context is current; writes one handle.
            let code = unsafe { (driver.event_create)(&mut event, DISABLE_TIMING) };
            driver.must(&format!("making event `{name}`"), code)?;
            engine.events.push(event);
        }
        contexts.enter(0)?;
        Ok(engine)
    }

    /// Tells the recording what the scenario calls its streams.
    pub(super) fn name_streams(&self, mark: &dyn Fn(Mark<'_>)) {
        for (spec, &stream) in self.variant.streams.iter().zip(&self.streams) {
            mark(Mark::Stream(
                self.contexts.get(spec.device),
                stream,
                &spec.name,
            ));
        }
    }

    /// The device whose streams record an event: an event belongs to one context.
    fn device_of_event(&self, id: usize) -> u32 {
        self.variant
            .listed()
            .find_map(|op| match op.kind {
                OpKind::Record { event, stream } if event == id => Some(self.device_of(stream)),
                _ => None,
            })
            .unwrap_or(0)
    }

    pub(super) fn device_of(&self, stream: StreamId) -> u32 {
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

    /// Records a graph's operations instead of running them, and instantiates the graph.
    pub(super) fn capture(&mut self, graph: usize, stream: StreamId) -> Result<Code, Failed> {
        let driver = self.driver;
        let stream = self.enter_stream(stream);
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
        // SAFETY: the graph was made just now and is not needed after it was instantiated. The
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
}

impl Drop for Engine<'_> {
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

/// Why a pass failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PassFailed {
    /// An operation of it.
    Op(Failed),
    /// The wait at its end.
    End(Code),
}
