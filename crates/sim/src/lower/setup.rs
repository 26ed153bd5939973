//! What the runner does around a variant: contexts, modules, streams, events, buffers.

use std::collections::HashSet;

use super::cache::HostCache;
use super::{Current, Lowering};
use crate::cost::{self, transfer_ns};
use crate::lower::tables::context_of;
use crate::program::{Operation, Step, THREAD};
use activity::feed::{Failure, FailureKind};
use activity::units;
use activity::{
    Direction, Kernel, LaunchShape, MemoryAction, MemoryKind, MemoryOp, Ns, Overhead, Place, What,
};
use scenario::plan::{BufferSpec, HostMemory, LaunchSpec, VariantPlan};

/// What the contexts that exist have loaded and used.
#[derive(Default)]
pub(super) struct Contexts {
    /// Devices that have one.
    open: HashSet<u32>,
    /// Source files whose modules are loaded.
    modules: HashSet<String>,
    /// Kernels that were launched, by device and entry point.
    launched: HashSet<(u32, String)>,
    /// Devices on which a stream was created.
    streamed: HashSet<u32>,
    /// Directions in which something was copied, by device.
    copied: HashSet<(u32, Direction)>,
    /// Devices on which memory was set.
    pub(super) cleared: HashSet<u32>,
}

/// The block that allocations below the granule share. It is gone when the last of them is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SmallBlock {
    room: u64,
    live: u32,
}

impl SmallBlock {
    /// Takes a small allocation in. Returns whether there was room.
    fn take(&mut self, bytes: u64, granule: u64) -> bool {
        self.live += 1;
        let had_room = bytes <= self.room;
        self.room = if had_room { self.room } else { granule } - bytes;
        had_room
    }

    fn give_back(&mut self) {
        self.live = self.live.saturating_sub(1);
        if self.live == 0 {
            self.room = 0;
        }
    }
}

impl Lowering {
    /// Makes the tables of a variant.
    pub(super) fn prepare(&mut self, spec: &VariantPlan) {
        let streams = spec.streams.iter().map(|s| self.stream(s)).collect();
        let launches = spec.launches.iter();
        let launches = launches.map(|l| self.launch_operation(spec, l)).collect();
        let first_event = self.tables.next_event;
        self.tables.next_event += spec.events.len() as u32;
        self.current = Current {
            streams,
            first_event,
            launches,
            device_address: vec![0; spec.buffers.len()],
            host_address: vec![0; spec.buffers.len()],
            graphs: vec![None; spec.graphs.len()],
            event_context: vec![context_of(0); spec.events.len()],
            phases: vec![0; spec.phases.len()],
            cache: HostCache::default(),
        };
    }

    /// Makes the contexts that are missing: new ones for a cold pass, else the devices' primary ones.
    pub(super) fn make_contexts(&mut self, spec: &VariantPlan) {
        let call = if spec.cold {
            "cuCtxCreate"
        } else {
            "cuDevicePrimaryCtxRetain"
        };
        if spec.cold {
            self.primary = std::mem::take(&mut self.contexts);
        }
        for device in 0..spec.devices.max(1) {
            if self.contexts.open.insert(device) {
                self.call(call, self.profile.cold.context_ns);
            }
        }
    }

    /// Creates what the variant needs in its contexts before its first operation, as the runner does:
    /// buffers with what is in them, modules, streams, events.
    pub(super) fn set_up(&mut self, spec: &VariantPlan) {
        let api = self.profile.api.clone();
        for (index, buffer) in spec.buffers.iter().enumerate() {
            self.allocate_host(index, buffer);
            let has_device_side = has_device_side(buffer) && buffer.preallocated;
            if has_device_side {
                self.allocate(index, buffer);
            }
            self.fill(buffer, has_device_side, spec.cold);
        }
        for kernel in &spec.kernels {
            if self.contexts.modules.insert(kernel.file.clone()) {
                let overhead = self.overhead("module loading");
                let call = self.name("cuModuleLoadData");
                let cost = self.profile.cold.module_load_ns;
                self.push(Step::Call {
                    call,
                    cost,
                    overhead: Some(overhead),
                });
            }
        }
        for stream in &spec.streams {
            if !stream.is_default() {
                let is_first = self.contexts.streamed.insert(stream.device);
                let first = Ns::from(is_first) * self.profile.cold.first_stream_ns;
                self.call("cuStreamCreateWithPriority", api.stream_create_ns + first);
            }
        }
        for _ in &spec.events {
            self.call("cuEventCreate", api.event_create_ns);
        }
    }

    /// Frees what a pass allocated and left behind.
    pub(super) fn free_leftovers(&mut self, spec: &VariantPlan) {
        for (index, buffer) in spec.buffers.iter().enumerate() {
            if !buffer.preallocated && self.current.device_address[index] != 0 {
                self.free(index, buffer);
            }
        }
    }

    /// Frees what [`Lowering::set_up`] allocated and unloads what it loaded: each variant loads its own.
    pub(super) fn tear_down(&mut self, spec: &VariantPlan) {
        self.contexts.modules.clear();
        self.contexts.launched.clear();
        for (index, buffer) in spec.buffers.iter().enumerate() {
            if self.current.device_address[index] != 0 {
                self.free(index, buffer);
            }
            self.free_host(index, buffer);
        }
    }

    /// Ends the contexts of a cold pass.
    pub(super) fn destroy_contexts(&mut self, spec: &VariantPlan) {
        for _ in 0..spec.devices.max(1) {
            self.call("cuCtxDestroy", self.profile.cold.context_destroy_ns);
        }
        self.contexts = std::mem::take(&mut self.primary);
    }

    /// The device side of a buffer, plainly allocated.
    pub(super) fn allocate(&mut self, index: usize, buffer: &BufferSpec) {
        let m = &self.profile.memory;
        let block = &mut self.small_device[buffer.device.unwrap_or(0) as usize];
        let is_shared = buffer.bytes < m.granule && block.take(buffer.bytes, m.granule);
        let cost = if is_shared {
            m.alloc_small_ns
        } else {
            m.alloc_ns + transfer_ns(buffer.bytes, m.alloc_gbps)
        };
        let Some(address) = self.take_memory(index, buffer) else {
            return;
        };
        let (call, kind) = match buffer.host {
            HostMemory::Managed => ("cuMemAllocManaged", MemoryKind::Managed),
            _ => ("cuMemAlloc", MemoryKind::Device),
        };
        let op = memory_op(MemoryAction::Alloc, kind, buffer, address);
        self.memory_call(call, cost, op, None);
    }

    /// Frees the device side of a buffer, plainly: the driver waits for the device first.
    pub(super) fn free(&mut self, index: usize, buffer: &BufferSpec) {
        let m = &self.profile.memory;
        let cost = if buffer.bytes < m.granule {
            self.small_device[buffer.device.unwrap_or(0) as usize].give_back();
            m.alloc_small_ns
        } else {
            m.free_ns + transfer_ns(buffer.bytes, m.free_gbps)
        };
        let address = self.give_memory_back(index, buffer);
        let kind = match buffer.host {
            HostMemory::Managed => MemoryKind::Managed,
            _ => MemoryKind::Device,
        };
        let op = memory_op(MemoryAction::Free, kind, buffer, address);
        self.memory_call("cuMemFree", cost, op, buffer.device);
    }

    /// A call that allocates or frees, and may wait for a device first.
    pub(super) fn memory_call(
        &mut self,
        call: &str,
        cost: Ns,
        op: MemoryOp,
        waits_for: Option<u32>,
    ) {
        let call = self.name(call);
        self.push(Step::Memory {
            call,
            cost,
            op,
            waits_for,
        });
    }

    /// Finds room for a buffer on its device. Without room the program fails, as it would on the GPU.
    pub(super) fn take_memory(&mut self, index: usize, buffer: &BufferSpec) -> Option<u64> {
        let device = buffer.device.unwrap_or(0);
        let memory = self.profile.device.memory;
        let in_use = &mut self.in_use[device as usize];
        if buffer.bytes > memory.saturating_sub(*in_use) {
            let [bytes, used, memory] = [buffer.bytes, *in_use, memory].map(units::bytes);
            let message = format!(
                "allocating {bytes} for buffer `{}`: out of memory; {used} of the {memory} that simulated device \
                 {device} has are in use",
                buffer.name
            );
            let help = "make the buffers smaller with --set";
            // Only the first failure counts.
            let _ = (self.failure).set(Failure::new(FailureKind::Machine, message, help));
            return None;
        }
        *in_use += buffer.bytes;
        let address = self.tables.address(buffer.bytes);
        self.current.device_address[index] = address;
        Some(address)
    }

    /// Ends the use of a buffer's device side and returns where it lay.
    pub(super) fn give_memory_back(&mut self, index: usize, buffer: &BufferSpec) -> u64 {
        let in_use = &mut self.in_use[buffer.device.unwrap_or(0) as usize];
        *in_use = in_use.saturating_sub(buffer.bytes);
        std::mem::take(&mut self.current.device_address[index])
    }

    fn allocate_host(&mut self, index: usize, buffer: &BufferSpec) {
        if buffer.host == HostMemory::Managed {
            self.allocate(index, buffer);
        }
        if buffer.host == HostMemory::Pinned {
            let m = &self.profile.memory;
            let is_shared =
                buffer.bytes < m.granule && self.small_pinned.take(buffer.bytes, m.granule);
            let cost = if is_shared {
                m.alloc_small_ns
            } else {
                m.pinned_alloc_ns + transfer_ns(buffer.bytes, m.pinned_alloc_gbps)
            };
            let address = self.tables.address(buffer.bytes);
            self.current.host_address[index] = address;
            let op = memory_op(MemoryAction::Alloc, MemoryKind::Pinned, buffer, address);
            self.memory_call("cuMemHostAlloc", cost, op, None);
        }
    }

    fn free_host(&mut self, index: usize, buffer: &BufferSpec) {
        if buffer.host == HostMemory::Pinned {
            let m = &self.profile.memory;
            let cost = if buffer.bytes < m.granule {
                self.small_pinned.give_back();
                m.alloc_small_ns
            } else {
                m.pinned_free_ns + transfer_ns(buffer.bytes, m.pinned_free_gbps)
            };
            let address = self.current.host_address[index];
            let op = memory_op(MemoryAction::Free, MemoryKind::Pinned, buffer, address);
            self.memory_call("cuMemFreeHost", cost, op, None);
        }
    }

    /// The operation of a launch; its place is filled in when its stream is known.
    fn launch_operation(&mut self, spec: &VariantPlan, launch: &LaunchSpec) -> Operation {
        let entry = &spec.kernels[launch.kernel].entry;
        let known = self.profile.entry.get(entry).cloned().unwrap_or_default();
        let name = self.name(entry);
        let shape = self.shape(LaunchShape {
            name,
            grid: launch.grid,
            block: launch.block,
            registers: known.registers.unwrap_or(0),
            static_shared: known.static_shared.unwrap_or(0),
            dynamic_shared: launch.shared,
            ..LaunchShape::default()
        });
        let (engine, ns) = cost::kernel(&self.profile, entry, launch);
        Operation {
            what: What::Kernel(Kernel {
                place: Place::default(),
                shape,
                graph: 0,
                node: 0,
            }),
            engine,
            ns,
        }
    }

    /// What the first launch of a kernel in its context costs on top.
    pub(super) fn first_launch(&mut self, device: u32, entry: &str) -> Option<(Overhead, Ns)> {
        let is_first = self.contexts.launched.insert((device, entry.to_owned()));
        let overhead = is_first.then(|| self.overhead("lazy function loading"))?;
        Some((overhead, self.profile.cold.first_launch_ns))
    }

    /// What the first copy of a direction in its context costs on top.
    pub(super) fn first_copy(
        &mut self,
        device: u32,
        direction: Direction,
    ) -> Option<(Overhead, Ns)> {
        let is_first = self.contexts.copied.insert((device, direction));
        let overhead = is_first.then(|| self.overhead("copy engine set-up"))?;
        Some((overhead, self.profile.cold.first_copy_ns))
    }

    pub(super) fn overhead(&mut self, what: &str) -> Overhead {
        Overhead {
            name: self.name(what),
            thread: THREAD,
        }
    }
}

/// The record of a plain allocation or free.
fn memory_op(
    action: MemoryAction,
    kind: MemoryKind,
    buffer: &BufferSpec,
    address: u64,
) -> MemoryOp {
    let device = buffer.device.unwrap_or(0);
    MemoryOp {
        action,
        kind,
        place: Place::new(device, context_of(device), 0),
        bytes: buffer.bytes,
        address,
        is_async: false,
    }
}

/// Whether a buffer has a device allocation of its own. A managed one serves both sides.
fn has_device_side(buffer: &BufferSpec) -> bool {
    buffer.device.is_some() && buffer.host != HostMemory::Managed
}
