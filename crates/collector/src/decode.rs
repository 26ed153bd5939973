//! Buffers of CUPTI records to entries of the recording.
//!
//! Buffers are walked by the sizes that the library gave, without a call into it. Every record is either written, or
//! counted as one of the things that can be wrong with it. Strings are read here, in the process that they belong to,
//! and interned by content. After a module is unloaded the same pointer may name another kernel.

use std::collections::HashMap;

use activity::{
    Activity, Copy, DeviceInfo, Direction, Graph, Health, Kernel, LaunchShape, MemoryAction,
    MemoryKind, MemoryOp, Memset, Overhead, Place, Span, StreamInfo, Sync, SyncKind, What,
    node_number,
};
use cupti_sys::records::{self, Text};
use cupti_sys::{Cupti, RecordSizes, kinds};

use crate::host::Host;
use crate::marks::Marks;
use crate::ranges::RangeWatch;
use crate::steady::{self, AFTER, SteadyClock};
use recording::file::{Entry, Writer};

/// A time this long before the start of the session, or `AFTER` now, is a broken clock.
const BEFORE: i64 = 600_000_000_000;

/// Turns records into entries.
#[derive(Debug)]
pub(crate) struct Decoder {
    pub(crate) sizes: RecordSizes,
    host: Host,
    pub(crate) marks: Marks,
    /// The device of each context.
    contexts: HashMap<u32, u32>,
    clock: SteadyClock,
    earliest: i64,
    pub(crate) health: Health,
    /// Kernels of CUDA graphs that came without times.
    pub(crate) timeless_nodes: u64,
}

/// What became of a record.
pub(crate) enum Decoded {
    /// Written, or kept until what it belongs to comes.
    Kept,
    /// Of a kind that is not known.
    Unknown,
}

impl Decoder {
    pub(crate) fn new(cupti: &Cupti, watch: Option<RangeWatch>) -> Decoder {
        let (now, boot) = steady::read();
        Decoder {
            sizes: RecordSizes::of(&cupti.api, cupti.version),
            host: Host::new(cupti.api),
            marks: Marks::watching(watch),
            contexts: HashMap::new(),
            clock: SteadyClock::new(now, boot),
            earliest: now - BEFORE,
            health: Health::default(),
            timeless_nodes: 0,
        }
    }

    /// Notices where somebody set the clock.
    pub(crate) fn check_clocks(&mut self, writer: &mut Writer) {
        let (realtime, boot) = steady::read();
        if let Some(text) = self.clock.check(realtime, boot) {
            writer.notice(true, &text);
        }
    }

    /// Decodes a buffer.
    pub(crate) fn buffer(&mut self, mut bytes: &[u8], writer: &mut Writer) {
        self.check_clocks(writer);
        while let Some(kind) = records::kind(bytes) {
            let Some(size) = self.sizes.get(kind) else {
                // Without its length the rest of the buffer cannot be read: an estimate of what is lost,
                // as most records are of about this length.
                self.health.unknown += 1;
                self.health.lost += (bytes.len() / 200) as u64;
                return;
            };
            let Some((record, rest)) = bytes.split_at_checked(size) else {
                self.health.received += 1;
                self.health.lost += 1;
                return;
            };
            bytes = rest;
            self.health.received += 1;
            match self.record(kind, record, writer) {
                Some(Decoded::Kept) => {}
                Some(Decoded::Unknown) => self.health.unknown += 1,
                None => self.health.lost += 1,
            }
        }
        if !bytes.is_empty() {
            self.health.lost += 1;
        }
    }

    /// `None` for a record that is shorter than its kind's oldest layout.
    fn record(&mut self, kind: u32, bytes: &[u8], writer: &mut Writer) -> Option<Decoded> {
        match kind {
            kinds::KERNEL | kinds::CONCURRENT_KERNEL => self.kernel(bytes, writer)?,
            kinds::MEMCPY => {
                let it = records::Memcpy::read(bytes)?;
                self.copy(&it, it.device, writer)?;
            }
            kinds::MEMCPY2 => self.peer_copy(bytes, writer)?,
            kinds::MEMSET => self.memset(bytes, writer)?,
            kinds::GRAPH_TRACE => self.graph(bytes, writer)?,
            kinds::RUNTIME | kinds::DRIVER => {
                let it = records::ApiCall::read(bytes)?;
                if let Some(span) = self.span(it.start, it.end) {
                    self.host.call(kind, &it, span, writer);
                }
            }
            kinds::SYNCHRONIZATION => return self.sync(bytes, writer),
            kinds::OVERHEAD => self.overhead(bytes, writer)?,
            kinds::MEMORY2 => return self.memory(bytes, writer),
            kinds::CUDA_EVENT => self.event(bytes, writer)?,
            kinds::MARKER => self.marker(bytes, writer)?,
            // Its range says all that is shown.
            kinds::MARKER_DATA => {}
            kinds::NAME => self.name(bytes, writer)?,
            kinds::DEVICE => device(&records::Device::read(bytes)?, writer),
            kinds::CONTEXT => self.context(bytes, writer)?,
            kinds::STREAM => self.stream(bytes, writer)?,
            _ => return Some(Decoded::Unknown),
        }
        Some(Decoded::Kept)
    }

    fn kernel(&mut self, bytes: &[u8], writer: &mut Writer) -> Option<()> {
        let it = records::Kernel::read(bytes)?;
        let Some(span) = self.span(it.start, it.end) else {
            self.timeless_nodes += u64::from(it.graph != 0 && (it.start == 0 || it.end == 0));
            return Some(());
        };
        let name = name_of(it.name, writer);
        let shape = writer.shape(&LaunchShape {
            name,
            grid: it.grid,
            block: it.block,
            registers: u32::from(it.registers),
            static_shared: it.static_shared,
            dynamic_shared: it.dynamic_shared,
            local: it.local,
            cluster: it.cluster,
            collective: 0,
        });
        let what = What::Kernel(Kernel {
            place: Place::new(it.device, it.context, it.stream),
            shape,
            graph: it.graph,
            node: it.graph_node,
        });
        writer.record(&Activity::new(span, it.correlation, what));
        Some(())
    }

    fn peer_copy(&mut self, bytes: &[u8], writer: &mut Writer) -> Option<()> {
        let it = records::Memcpy::read(bytes)?;
        let ends = records::PeerCopy::read(bytes)?;
        let peer = match it.device == ends.source_device {
            true => ends.target_device,
            false => ends.source_device,
        };
        let it = records::Memcpy {
            copy_kind: kinds::copy::PTOP,
            correlation: ends.correlation,
            graph_node: ends.graph_node,
            graph: ends.graph,
            ..it
        };
        self.copy(&it, peer, writer)
    }

    fn copy(&mut self, it: &records::Memcpy, peer: u32, writer: &mut Writer) -> Option<()> {
        let what = What::Copy(Copy {
            place: Place::new(it.device, it.context, it.stream),
            direction: direction(it.copy_kind),
            from: memory_kind(u32::from(it.source_kind)),
            to: memory_kind(u32::from(it.target_kind)),
            is_async: u32::from(it.flags) & kinds::copy::FLAG_ASYNC != 0,
            bytes: it.bytes,
            peer,
            graph: it.graph,
            node: node_number(it.graph_node),
        });
        self.put((it.start, it.end), it.correlation, what, writer)
    }

    fn memset(&mut self, bytes: &[u8], writer: &mut Writer) -> Option<()> {
        let it = records::Memset::read(bytes)?;
        let what = What::Memset(Memset {
            place: Place::new(it.device, it.context, it.stream),
            bytes: it.bytes,
            graph: it.graph,
            node: node_number(it.graph_node),
        });
        self.put((it.start, it.end), it.correlation, what, writer)
    }

    fn graph(&mut self, bytes: &[u8], writer: &mut Writer) -> Option<()> {
        let it = records::GraphTrace::read(bytes)?;
        let what = What::Graph(Graph {
            place: Place::new(it.device, it.context, it.stream),
            graph: it.graph,
        });
        self.put((it.start, it.end), it.correlation, what, writer)
    }

    fn sync(&mut self, bytes: &[u8], writer: &mut Writer) -> Option<Decoded> {
        let it = records::Sync::read(bytes)?;
        let Some(kind) = sync_kind(it.sync_kind) else {
            return Some(Decoded::Unknown);
        };
        let valid = |id: u32| Some(id).filter(|id| *id != kinds::sync::INVALID);
        let what = What::Sync(Sync {
            kind,
            context: it.context,
            stream: valid(it.stream),
            event: valid(it.event),
        });
        self.put((it.start, it.end), it.correlation, what, writer)?;
        Some(Decoded::Kept)
    }

    fn overhead(&mut self, bytes: &[u8], writer: &mut Writer) -> Option<()> {
        let it = records::Overhead::read(bytes)?;
        let thread = match it.object_kind {
            kinds::object::THREAD => it.object[1],
            _ => 0,
        };
        let name = writer.name(kinds::overhead_name(it.overhead_kind).as_bytes());
        let what = What::Overhead(Overhead { name, thread });
        let id = it.correlation.unwrap_or(0);
        self.put((it.start, it.end), id, what, writer)
    }

    fn event(&mut self, bytes: &[u8], writer: &mut Writer) -> Option<()> {
        let it = records::CudaEvent::read(bytes)?;
        let known = || self.contexts.get(&it.context).copied();
        let device = it.device.or_else(known).unwrap_or(0);
        let place = Place::new(device, it.context, it.stream);
        self.health.lost += self.host.event(it.correlation, place, it.event, writer);
        Some(())
    }

    fn marker(&mut self, bytes: &[u8], writer: &mut Writer) -> Option<()> {
        let it = records::Marker::read(bytes)?;
        if let Some(Span { start: time, .. }) = self.span(it.time, it.time) {
            // SAFETY: the record came from this process's library just now.
            let name = unsafe { records::text(it.name) };
            self.health.lost += self.marks.marker(&it, name, time, writer);
        }
        Some(())
    }

    fn context(&mut self, bytes: &[u8], writer: &mut Writer) -> Option<()> {
        let it = records::Context::read(bytes)?;
        self.contexts.insert(it.id, it.device);
        writer.add(&Entry::Stream(StreamInfo {
            is_default: true,
            ..StreamInfo::at(Place::new(it.device, it.id, u32::from(it.null_stream)))
        }));
        Some(())
    }

    fn stream(&mut self, bytes: &[u8], writer: &mut Writer) -> Option<()> {
        // CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL
        const NULL_STREAM: u32 = 3;
        let it = records::Stream::read(bytes)?;
        writer.add(&Entry::Stream(StreamInfo {
            priority: it.priority,
            is_default: it.flag == NULL_STREAM,
            ..StreamInfo::at(self.place_of(it.context, it.id))
        }));
        Some(())
    }

    fn memory(&mut self, bytes: &[u8], writer: &mut Writer) -> Option<Decoded> {
        let it = records::Memory::read(bytes)?;
        let action = match it.operation {
            kinds::memory::OPERATION_ALLOCATION => MemoryAction::Alloc,
            kinds::memory::OPERATION_RELEASE => MemoryAction::Free,
            _ => return Some(Decoded::Unknown),
        };
        let what = What::Memory(MemoryOp {
            action,
            kind: memory_kind(it.memory_kind),
            place: Place::new(it.device, it.context, it.stream),
            bytes: it.bytes,
            address: it.address,
            is_async: it.is_async != 0,
        });
        self.put((it.time, it.time), it.correlation, what, writer)?;
        Some(Decoded::Kept)
    }

    fn name(&mut self, bytes: &[u8], writer: &mut Writer) -> Option<()> {
        let it = records::Name::read(bytes)?;
        // SAFETY: the record came from this process's library just now.
        let text = unsafe { records::text(it.name) };
        match it.object_kind {
            kinds::object::THREAD => writer.add(&Entry::Thread(it.object[1], text)),
            kinds::object::STREAM => writer.add(&Entry::Stream(StreamInfo {
                name: lossy(text),
                ..StreamInfo::at(Place::new(it.object[0], it.object[1], it.object[2]))
            })),
            _ => {}
        }
        Some(())
    }

    fn put(&mut self, times: (u64, u64), id: u32, what: What, writer: &mut Writer) -> Option<()> {
        if let Some(span) = self.span(times.0, times.1) {
            writer.record(&Activity::new(span, id, what));
        }
        Some(())
    }

    /// The times, or `None` with the reason counted.
    fn span(&mut self, start: u64, end: u64) -> Option<Span> {
        if start == 0 || end == 0 {
            self.health.no_timestamp += 1;
            return None;
        }
        let steady = |time: u64| i64::try_from(time).ok().map(|it| self.clock.steady(it));
        let (first, last) = (self.earliest, self.clock.now() + AFTER);
        match (steady(start), steady(end)) {
            (Some(start), Some(end)) if end < start => self.health.end_before_start += 1,
            (Some(start), Some(end)) if first <= start && end <= last => {
                return Some(Span { start, end });
            }
            _ => self.health.bad_clock += 1,
        }
        None
    }

    pub(crate) fn place_of(&self, context: u32, stream: u32) -> Place {
        let device = self.contexts.get(&context).copied().unwrap_or(0);
        Place::new(device, context, stream)
    }

    /// Nothing more will come: writes the ranges that were never closed, and counts what waited in vain.
    pub(crate) fn end(&mut self, writer: &mut Writer) {
        self.marks.end(writer);
        self.health.no_timestamp += self.host.end();
    }
}

fn name_of(text: Text, writer: &mut Writer) -> u32 {
    // SAFETY: the record came from this process's library just now.
    writer.name(unsafe { records::text(text) })
}

fn device(it: &records::Device, writer: &mut Writer) {
    if it.visible == 0 {
        // Its ordinal may be another, visible one's.
        return;
    }
    let link = crate::link::describe(&it.uuid);
    writer.add(&Entry::Device(DeviceInfo {
        id: it.id,
        // SAFETY: the record came from this process's library just now.
        name: lossy(unsafe { records::text(it.name) }),
        link,
        capability: (it.major, it.minor),
        multiprocessors: it.multiprocessors,
        clock_khz: it.clock,
        memory: it.memory,
        memory_bandwidth: it.memory_bandwidth.saturating_mul(1000),
        copy_engines: it.copy_engines,
        max_warps_per_sm: it.max_warps,
        max_blocks_per_sm: it.max_blocks,
        shared_per_sm: it.shared,
        registers_per_sm: it.registers,
        warp_size: it.warp,
        uuid: Some(it.uuid),
        alike: 0,
    }));
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// The direction of CUPTI's copy kinds. An array is device memory.
fn direction(kind: u8) -> Direction {
    use kinds::copy::{ATOA, ATOD, ATOH, DTOA, DTOD, DTOH, HTOA, HTOD, PTOP};
    match kind {
        HTOD | HTOA => Direction::H2D,
        DTOH | ATOH => Direction::D2H,
        DTOD | ATOA | ATOD | DTOA => Direction::D2D,
        PTOP => Direction::P2P,
        _ => Direction::Other,
    }
}

fn memory_kind(kind: u32) -> MemoryKind {
    use kinds::memory::{ARRAY, DEVICE, DEVICE_STATIC, MANAGED, MANAGED_STATIC, PAGEABLE, PINNED};
    match kind {
        PAGEABLE => MemoryKind::Pageable,
        PINNED => MemoryKind::Pinned,
        DEVICE | DEVICE_STATIC => MemoryKind::Device,
        ARRAY => MemoryKind::Array,
        MANAGED | MANAGED_STATIC => MemoryKind::Managed,
        _ => MemoryKind::Unknown,
    }
}

fn sync_kind(kind: u32) -> Option<SyncKind> {
    use kinds::sync::{
        CONTEXT_SYNCHRONIZE, EVENT_SYNCHRONIZE, STREAM_SYNCHRONIZE, STREAM_WAIT_EVENT,
    };
    match kind {
        EVENT_SYNCHRONIZE => Some(SyncKind::Event),
        STREAM_WAIT_EVENT => Some(SyncKind::StreamWaitEvent),
        STREAM_SYNCHRONIZE => Some(SyncKind::Stream),
        CONTEXT_SYNCHRONIZE => Some(SyncKind::Context),
        _ => None,
    }
}
