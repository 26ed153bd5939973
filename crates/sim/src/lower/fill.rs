//! What buffers hold at first, and what it takes to put it there.

use super::Lowering;
use super::ops::memory_kind;
use crate::cost::{memset_call_ns, transfer_ns};
use crate::program::{Item, Step};
use activity::{Copy, Direction, MemoryKind, Ns};
use scenario::plan::{BufferSpec, DEFAULT_STREAM, Fill, HostMemory, StreamSpec, SyncTarget};

impl Lowering {
    /// Writes what a buffer holds at first: its host side, then its device side, and waits for that. No record tells of
    /// the host's part, so it only takes time where a pass holds it.
    pub(super) fn fill(&mut self, buffer: &BufferSpec, has_device_side: bool, is_cold: bool) {
        if is_cold {
            let time = self.filling(buffer, has_device_side);
            self.push(Step::Work(time));
        }
        if !has_device_side {
            return;
        }
        let device = buffer.device.unwrap_or(0);
        let default = self.stream(&StreamSpec {
            name: DEFAULT_STREAM.to_owned(),
            device,
            priority: 0,
        });
        let place = self.place(default);
        if buffer.fill == Fill::Zero {
            let item = Item::Run(self.memset(buffer.bytes, place));
            let is_first = is_cold && self.contexts.cleared.insert(device);
            let first = Ns::from(is_first) * self.profile.cold.first_memset_ns;
            let cost = memset_call_ns(&self.profile, buffer.bytes) + first;
            self.submit_first("cuMemsetD8Async", cost, default, item, None);
        } else {
            let template = Copy {
                place,
                direction: Direction::H2D,
                from: memory_kind(buffer.host, true),
                to: MemoryKind::Device,
                is_async: false,
                bytes: 0,
                peer: device,
                graph: 0,
                node: 0,
            };
            self.push_copy(template, buffer.bytes, None, default);
        }
        self.sync(SyncTarget::Device(device));
    }

    /// The host's time for it. The host makes what the device side gets unless that is zero, with or without memory of
    /// the buffer's own there.
    fn filling(&self, buffer: &BufferSpec, has_device_side: bool) -> Ns {
        let host = &self.profile.host;
        let is_made = has_device_side && buffer.fill != Fill::Zero;
        match buffer.fill {
            _ if buffer.host == HostMemory::None && !is_made => 0,
            Fill::Random => transfer_ns(buffer.bytes, host.random_gbps),
            Fill::Zero | Fill::One | Fill::Iota => transfer_ns(buffer.bytes, host.zero_gbps),
        }
    }
}
