//! The plan's operations, one by one.

use super::Lowering;
use super::tables::context_of;
use crate::cost::{self, CopyCost, transfer_ns};
use crate::program::{EventKey, Item, Operation, Returns, Step, StreamKey, Target};
use activity::{
    Copy, Direction, EventRecord, MemoryAction, MemoryKind, MemoryOp, Memset, Ns, Overhead, Place,
    RangeKind, Sync, SyncKind, What,
};
use scenario::plan::{
    BufferId, BufferSpec, CopySpec, EventId, HostMemory, HostWork, LaunchId, OpKind, Pieces,
    StreamId, SyncTarget, VariantPlan, copy_call, copy_waits,
};

/// A copy of which some pieces are still to come.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingCopy {
    template: Copy,
    pieces: Pieces,
    stream: StreamKey,
}

impl Lowering {
    pub(super) fn lower_op(&mut self, spec: &VariantPlan, kind: OpKind) {
        match kind {
            OpKind::Copy(copy) => {
                let template = self.copy_template(spec, &copy);
                let stream = self.current.streams[copy.stream];
                self.lower_piece(PendingCopy {
                    template,
                    pieces: kind.pieces(),
                    stream,
                });
            }
            OpKind::Memset { bytes, stream, .. } => {
                let op = self.memset(bytes, self.stream_place(stream));
                let call_ns = cost::memset_call_ns(&self.profile, bytes);
                self.submit("cuMemsetD8Async", call_ns, stream, Item::Run(op));
            }
            OpKind::Launch { launch, stream } => self.launch(spec, launch, stream),
            OpKind::Record { event, stream } => self.record(event, stream),
            OpKind::Wait { event, stream } => self.wait(event, stream),
            OpKind::Sync(target) => self.sync(target),
            OpKind::Alloc { buffer, stream } => {
                self.allocate_on(buffer, &spec.buffers[buffer], stream);
            }
            OpKind::Free { buffer, stream } => {
                self.free_on(buffer, &spec.buffers[buffer], stream);
            }
            OpKind::Capture { graph, stream } => self.capture(spec, graph, stream),
            OpKind::GraphLaunch { graph, stream } => self.launch_graph(graph, stream),
            OpKind::Host(work) => {
                self.current.cache.work(spec, work);
                let time = self.host_time(work);
                self.push(Step::Work(time));
            }
            OpKind::RangeBegin(phase) => {
                let index = self.current.phases[phase];
                self.current.phases[phase] += 1;
                self.begin_range(RangeKind::Phase, &spec.phases[phase], index);
            }
            OpKind::RangeEnd => self.push(Step::End),
        }
    }

    fn record(&mut self, event: EventId, stream: StreamId) {
        let (key, place) = (self.event_key(event), self.stream_place(stream));
        self.current.event_context[event] = place.context;
        let record = EventRecord {
            place,
            event: key + 1,
        };
        let cost = self.profile.api.event_record_ns;
        self.submit("cuEventRecord", cost, stream, Item::Record(key, record));
    }

    fn wait(&mut self, event: EventId, stream: StreamId) {
        let (key, place) = (self.event_key(event), self.stream_place(stream));
        let record = Sync {
            kind: SyncKind::StreamWaitEvent,
            context: place.context,
            stream: Some(place.stream),
            event: Some(key + 1),
        };
        let cost = self.profile.api.event_wait_ns;
        self.submit("cuStreamWaitEvent", cost, stream, Item::Wait(key, record));
    }

    fn allocate_on(&mut self, buffer: BufferId, of: &BufferSpec, stream: Option<StreamId>) {
        match stream {
            None => self.allocate(buffer, of),
            Some(stream) => {
                if let Some(address) = self.take_memory(buffer, of) {
                    self.pool(MemoryAction::Alloc, of.bytes, address, stream);
                }
            }
        }
    }

    fn free_on(&mut self, buffer: BufferId, of: &BufferSpec, stream: Option<StreamId>) {
        match stream {
            None => self.free(buffer, of),
            Some(stream) => {
                let address = self.give_memory_back(buffer, of);
                self.pool(MemoryAction::Free, of.bytes, address, stream);
            }
        }
    }

    /// Lowers one piece of a copy and keeps the rest for later.
    pub(super) fn lower_piece(&mut self, mut copy: PendingCopy) {
        if let Some(piece) = copy.pieces.next() {
            let again = self.current.cache.copy(&copy.template, &piece);
            self.push_copy(copy.template, piece.bytes, again, copy.stream);
            self.copy = Some(copy);
        }
    }

    /// One call that copies; `again` as [`cost::copy`] takes it.
    pub(super) fn push_copy(
        &mut self,
        template: Copy,
        bytes: u64,
        again: Option<u64>,
        stream: StreamKey,
    ) {
        let (direction, is_async) = (template.direction, template.is_async);
        let (op, cost) = self.copy_operation(template, bytes, again);
        let call = self.name(copy_call(direction, is_async));
        let first_use = self.first_copy(template.place.device, direction);
        self.push(Step::Submit {
            call,
            cost: cost.call_ns,
            stream,
            item: Item::Run(op),
            returns: returns(&template, cost, is_async),
            first_use,
        });
    }

    /// What a call that copies puts on its stream, and what it costs.
    pub(super) fn copy_operation(
        &self,
        of: Copy,
        bytes: u64,
        again: Option<u64>,
    ) -> (Operation, CopyCost) {
        let cost = cost::copy(&self.profile, of.direction, of.from, of.to, bytes, again);
        let what = What::Copy(Copy { bytes, ..of });
        let (engine, ns) = (cost.engine, cost.ns);
        (Operation { what, engine, ns }, cost)
    }

    pub(super) fn copy_template(&self, spec: &VariantPlan, copy: &CopySpec) -> Copy {
        let source = &spec.buffers[copy.from.buffer];
        let target = &spec.buffers[copy.to.buffer];
        let place = self.stream_place(copy.stream);
        let peer = match copy.direction {
            Direction::P2P => (source.device.into_iter().chain(target.device))
                .find(|device| *device != place.device)
                .unwrap_or(place.device),
            _ => place.device,
        };
        Copy {
            place,
            direction: copy.direction,
            from: memory_kind(source.host, copy.direction == Direction::H2D),
            to: memory_kind(target.host, copy.direction == Direction::D2H),
            is_async: copy.is_async,
            bytes: 0,
            peer,
            graph: 0,
            node: 0,
        }
    }

    pub(super) fn memset(&self, bytes: u64, place: Place) -> Operation {
        let (engine, ns) = cost::memset(&self.profile, bytes);
        let what = What::Memset(Memset {
            place,
            bytes,
            graph: 0,
            node: 0,
        });
        Operation { what, engine, ns }
    }

    /// The operation of a launch on a stream.
    pub(super) fn kernel(&self, launch: LaunchId, stream: StreamId) -> Operation {
        let mut op = self.current.launches[launch];
        if let What::Kernel(kernel) = &mut op.what {
            kernel.place = self.stream_place(stream);
        }
        op
    }

    fn launch(&mut self, spec: &VariantPlan, launch: LaunchId, stream: StreamId) {
        let op = self.kernel(launch, stream);
        let entry = &spec.kernels[spec.launches[launch].kernel].entry;
        let first_use = self.first_launch(self.stream_place(stream).device, entry);
        let (cost, stream) = (self.profile.api.launch_ns, self.current.streams[stream]);
        self.submit_first("cuLaunchKernel", cost, stream, Item::Run(op), first_use);
    }

    pub(super) fn submit(&mut self, call: &str, cost: Ns, stream: StreamId, item: Item) {
        self.submit_first(call, cost, self.current.streams[stream], item, None);
    }

    /// A call that returns when it has queued something, with what its first use costs on top.
    pub(super) fn submit_first(
        &mut self,
        call: &str,
        cost: Ns,
        stream: StreamKey,
        item: Item,
        first_use: Option<(Overhead, Ns)>,
    ) {
        let call = self.name(call);
        self.push(Step::Submit {
            call,
            cost,
            stream,
            item,
            returns: Returns::AtOnce,
            first_use,
        });
    }

    pub(super) fn sync(&mut self, target: SyncTarget) {
        let record = |kind, context| Sync {
            kind,
            context,
            stream: None,
            event: None,
        };
        let (call, target, record) = match target {
            SyncTarget::Device(device) => {
                let record = record(SyncKind::Context, context_of(device));
                ("cuCtxSynchronize", Target::Device(device), record)
            }
            SyncTarget::Stream(stream) => {
                let place = self.stream_place(stream);
                let record = Sync {
                    stream: Some(place.stream),
                    ..record(SyncKind::Stream, place.context)
                };
                let target = Target::Stream(self.current.streams[stream]);
                ("cuStreamSynchronize", target, record)
            }
            SyncTarget::Event(event) => {
                let key = self.event_key(event);
                let record = Sync {
                    event: Some(key + 1),
                    ..record(SyncKind::Event, self.current.event_context[event])
                };
                ("cuEventSynchronize", Target::Event(key), record)
            }
        };
        let call = self.name(call);
        self.push(Step::Sync {
            call,
            target,
            record,
        });
    }

    /// An allocation or a free in the order of a stream, from the device's pool.
    fn pool(&mut self, action: MemoryAction, bytes: u64, address: u64, stream: StreamId) {
        let m = &self.profile.memory;
        let (call, cost) = match action {
            MemoryAction::Alloc => ("cuMemAllocAsync", m.pool_alloc_ns),
            MemoryAction::Free => ("cuMemFreeAsync", m.pool_free_ns),
        };
        let op = MemoryOp {
            action,
            kind: MemoryKind::Device,
            place: self.stream_place(stream),
            bytes,
            address,
            is_async: true,
        };
        self.memory_call(call, cost, op, None);
        // A pair costs the stream something; which half does, the records do not tell.
        if action == MemoryAction::Free {
            let pause = Item::Pause(self.profile.memory.pool_stream_ns);
            self.push(Step::Queue(self.current.streams[stream], pause));
        }
    }

    fn host_time(&self, work: HostWork) -> Ns {
        let host = &self.profile.host;
        match work {
            HostWork::Busy(ns) => ns,
            HostWork::Sum(_, bytes) => transfer_ns(bytes, host.sum_gbps),
            HostWork::Sin(_, bytes) => transfer_ns(bytes, host.sin_gbps),
            HostWork::Matmul(_, _, _, n) => {
                let flops = 2.0 * f64::from(n).powi(3);
                (flops / host.matmul_gflops).round() as Ns
            }
        }
    }

    pub(super) fn stream_place(&self, stream: StreamId) -> Place {
        self.place(self.current.streams[stream])
    }

    fn event_key(&self, event: EventId) -> EventKey {
        self.current.first_event + event as EventKey
    }
}

/// When the call returns. Pageable memory needs the host for staging. The synchronous calls wait for the host's side of
/// a copy, but not for copies between devices.
fn returns(copy: &Copy, cost: CopyCost, is_async: bool) -> Returns {
    let is_pageable = copy.from == MemoryKind::Pageable;
    if cost.returns == Returns::AtOnce && copy_waits(copy.direction, is_async, is_pageable) {
        return Returns::After(0);
    }
    cost.returns
}

pub(super) fn memory_kind(host: HostMemory, is_host_side: bool) -> MemoryKind {
    match (host, is_host_side) {
        (HostMemory::Managed, _) => MemoryKind::Managed,
        (HostMemory::Pinned, true) => MemoryKind::Pinned,
        (HostMemory::Pageable | HostMemory::None, true) => MemoryKind::Pageable,
        (_, false) => MemoryKind::Device,
    }
}
