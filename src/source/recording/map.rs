//! The recording's entries and the activities of a timeline: one to the other, and back.

use std::collections::HashMap;

use collector::recording::{self as disk, Body, Entry};

use crate::activity::{
    Activity, Batch, Copy, Def, DeviceInfo, Direction, EventRecord, Health, HostCall, Kernel,
    LaunchShape, MemoryAction, MemoryKind, MemoryOp, Memset, Overhead, Place, ProcessInfo, Range,
    RangeKind, Span, StreamInfo, Sync, SyncKind, What,
};

/// The recording's numbers are positions in these tables.
const DIRECTIONS: [Direction; 5] = [
    Direction::H2D,
    Direction::D2H,
    Direction::D2D,
    Direction::P2P,
    Direction::Other,
];
const MEMORY: [MemoryKind; 6] = [
    MemoryKind::Unknown,
    MemoryKind::Pageable,
    MemoryKind::Pinned,
    MemoryKind::Device,
    MemoryKind::Array,
    MemoryKind::Managed,
];
const SYNCS: [SyncKind; 4] = [
    SyncKind::Event,
    SyncKind::StreamWaitEvent,
    SyncKind::Stream,
    SyncKind::Context,
];
const RANGES: [RangeKind; 5] = [
    RangeKind::Variant,
    RangeKind::Warmup,
    RangeKind::Repeat,
    RangeKind::Phase,
    RangeKind::Nvtx,
];

/// A stream or event that does not apply.
const NONE: u32 = u32::MAX;

/// The recording's number for a kind of range.
#[must_use]
pub(super) fn range_code(kind: RangeKind) -> u8 {
    code(&RANGES, kind)
}

fn code<T: PartialEq>(table: &[T], value: T) -> u8 {
    let at = table.iter().position(|it| *it == value).unwrap_or(0);
    u8::try_from(at).unwrap_or(0)
}

fn memory(code: u8) -> MemoryKind {
    MEMORY.get(usize::from(code)).copied().unwrap_or_default()
}

/// What became of an entry.
pub(super) enum Taken {
    /// It is in the batch.
    Yes,
    /// It told something about the process.
    Process,
    /// It is a word for the user.
    Notice(bool, String),
    /// It makes no sense.
    No,
}

/// What the earlier parts of a recording came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    /// Names that they defined.
    pub(super) names: u32,
    /// Shapes that they defined.
    pub(super) shapes: u32,
    /// Records that could not be read.
    pub(super) lost: u64,
    /// Records of unknown kinds.
    pub(super) unknown: u64,
}

impl Before {
    /// The entry with its ids counted on from those of the earlier parts: each part counts from 1.
    pub(super) fn shift<'a>(&self, entry: &Entry<'a>) -> Entry<'a> {
        let mut entry = *entry;
        match &mut entry {
            Entry::Name(id, _) => *id = id.saturating_add(self.names),
            Entry::Shape(id, shape) => {
                *id = id.saturating_add(self.shapes);
                shape.name = shape.name.saturating_add(self.names);
            }
            Entry::Record(record) => match &mut record.body {
                Body::Kernel { shape, .. } => *shape = shape.saturating_add(self.shapes),
                Body::Call { name, .. }
                | Body::Overhead { name, .. }
                | Body::Range { name, .. } => {
                    *name = name.saturating_add(self.names);
                }
                _ => {}
            },
            _ => {}
        }
        entry
    }
}

/// Puts an entry into a batch.
pub(super) fn entry_into(
    entry: &Entry<'_>,
    batch: &mut Batch,
    info: &mut ProcessInfo,
    streams: &mut HashMap<(u32, u32, u32), StreamInfo>,
) -> Taken {
    match *entry {
        Entry::Record(record) => match what(&record.body) {
            Some(what) => batch.items.push(Activity {
                span: Span::new(record.start, record.end),
                correlation: record.correlation,
                what,
            }),
            None => return Taken::No,
        },
        Entry::Name(id, name) => batch.defs.push(Def::Name {
            id,
            text: text(name),
        }),
        Entry::Shape(id, shape) => batch.defs.push(Def::Shape {
            id,
            shape: LaunchShape {
                name: shape.name,
                grid: shape.grid,
                block: shape.block,
                registers: shape.registers,
                static_shared: shape.static_shared,
                dynamic_shared: shape.dynamic_shared,
                local: shape.local,
                cluster: shape.cluster,
            },
        }),
        Entry::Device(device) => batch.defs.push(Def::Device(device_info(&device))),
        Entry::Stream(stream) => batch.defs.push(Def::Stream(merge_stream(&stream, streams))),
        Entry::Thread(thread, name) => batch.defs.push(Def::Thread {
            thread,
            name: text(name),
        }),
        Entry::Process(process) => {
            info.pid = process.pid;
            info.rank = process.rank;
            info.command = text(process.command);
            if !process.versions.is_empty() {
                info.versions = text(process.versions);
            }
            return Taken::Process;
        }
        Entry::Notice(is_warning, words) => return Taken::Notice(is_warning, text(words)),
    }
    Taken::Yes
}

fn what(body: &Body) -> Option<What> {
    Some(match *body {
        Body::Kernel {
            place,
            shape,
            graph,
            node,
            ..
        } => What::Kernel(Kernel {
            place: from_disk(place),
            shape,
            graph,
            node,
        }),
        Body::Copy {
            place,
            peer,
            graph,
            bytes,
            direction,
            from,
            to,
            is_async,
            ..
        } => What::Copy(Copy {
            place: from_disk(place),
            direction: DIRECTIONS
                .get(usize::from(direction))
                .copied()
                .unwrap_or(Direction::Other),
            from: memory(from),
            to: memory(to),
            is_async,
            bytes,
            peer,
            graph,
        }),
        Body::Memset {
            place,
            graph,
            bytes,
            ..
        } => What::Memset(Memset {
            place: from_disk(place),
            bytes,
            graph,
        }),
        Body::Call { thread, name, code } => What::Call(HostCall { thread, name, code }),
        Body::Sync {
            kind,
            context,
            stream,
            event,
        } => What::Sync(Sync {
            kind: *SYNCS.get(usize::from(kind))?,
            context,
            stream: Some(stream).filter(|it| *it != NONE),
            event: Some(event).filter(|it| *it != NONE),
        }),
        Body::Overhead { thread, name } => What::Overhead(Overhead { name, thread }),
        Body::Memory {
            place,
            address,
            bytes,
            action,
            kind,
            is_async,
        } => What::Memory(MemoryOp {
            action: match action {
                0 => MemoryAction::Alloc,
                1 => MemoryAction::Free,
                _ => return None,
            },
            kind: memory(kind),
            place: from_disk(place),
            bytes,
            address,
            is_async,
        }),
        Body::Event { place, event } => What::Event(EventRecord {
            place: from_disk(place),
            event,
        }),
        Body::Range {
            thread,
            name,
            index,
            kind,
        } => What::Range(Range {
            kind: *RANGES.get(usize::from(kind))?,
            name,
            thread,
            index,
        }),
    })
}

/// An activity's body in the recording, with the recording's own ids for its name and shape.
pub(super) fn body(
    what: &What,
    name: impl FnOnce(u32) -> u32,
    shape: impl FnOnce(u32) -> u32,
) -> Body {
    match *what {
        What::Kernel(it) => Body::Kernel {
            place: to_disk(it.place),
            shape: shape(it.shape),
            graph: it.graph,
            channel: 0,
            node: it.node,
        },
        What::Copy(it) => Body::Copy {
            place: to_disk(it.place),
            peer: it.peer,
            graph: it.graph,
            channel: 0,
            bytes: it.bytes,
            direction: code(&DIRECTIONS, it.direction),
            from: code(&MEMORY, it.from),
            to: code(&MEMORY, it.to),
            is_async: it.is_async,
        },
        What::Memset(it) => Body::Memset {
            place: to_disk(it.place),
            graph: it.graph,
            channel: 0,
            bytes: it.bytes,
        },
        What::Call(it) => Body::Call {
            thread: it.thread,
            name: name(it.name),
            code: it.code,
        },
        What::Sync(it) => Body::Sync {
            kind: code(&SYNCS, it.kind),
            context: it.context,
            stream: it.stream.unwrap_or(NONE),
            event: it.event.unwrap_or(NONE),
        },
        What::Overhead(it) => Body::Overhead {
            thread: it.thread,
            name: name(it.name),
        },
        What::Memory(it) => Body::Memory {
            place: to_disk(it.place),
            address: it.address,
            bytes: it.bytes,
            action: match it.action {
                MemoryAction::Alloc => 0,
                MemoryAction::Free => 1,
            },
            kind: code(&MEMORY, it.kind),
            is_async: it.is_async,
        },
        What::Event(it) => Body::Event {
            place: to_disk(it.place),
            event: it.event,
        },
        What::Range(it) => Body::Range {
            thread: it.thread,
            name: name(it.name),
            index: it.index,
            kind: range_code(it.kind),
        },
    }
}

/// What is known of a stream comes in pieces: its creation tells the priority, NVTX or the runner its name.
fn merge_stream(
    stream: &disk::Stream<'_>,
    streams: &mut HashMap<(u32, u32, u32), StreamInfo>,
) -> StreamInfo {
    let place = stream.place;
    let known = streams
        .entry((place.device, place.context, place.stream))
        .or_insert_with(|| StreamInfo {
            device: place.device,
            context: place.context,
            stream: place.stream,
            ..StreamInfo::default()
        });
    if !stream.name.is_empty() {
        known.name = text(stream.name);
    }
    if stream.priority != 0 {
        known.priority = stream.priority;
    }
    known.is_default |= stream.is_default;
    known.clone()
}

fn device_info(device: &disk::Device<'_>) -> DeviceInfo {
    DeviceInfo {
        id: device.id,
        uuid: device.uuid,
        name: text(device.name),
        capability: (device.capability[0], device.capability[1]),
        multiprocessors: device.multiprocessors,
        memory: device.memory,
        memory_bandwidth: device.memory_bandwidth,
        clock_khz: device.clock_khz,
        copy_engines: device.copy_engines,
        max_warps_per_sm: device.max_warps_per_sm,
        max_blocks_per_sm: device.max_blocks_per_sm,
        shared_per_sm: device.shared_per_sm,
        registers_per_sm: device.registers_per_sm,
        warp_size: device.warp_size,
        link: text(device.link),
    }
}

/// A device in the recording.
pub(super) fn device(info: &DeviceInfo) -> disk::Device<'_> {
    disk::Device {
        id: info.id,
        uuid: info.uuid,
        name: info.name.as_bytes(),
        link: info.link.as_bytes(),
        capability: [info.capability.0, info.capability.1],
        multiprocessors: info.multiprocessors,
        clock_khz: info.clock_khz,
        memory: info.memory,
        memory_bandwidth: info.memory_bandwidth,
        copy_engines: info.copy_engines,
        max_warps_per_sm: info.max_warps_per_sm,
        max_blocks_per_sm: info.max_blocks_per_sm,
        shared_per_sm: info.shared_per_sm,
        registers_per_sm: info.registers_per_sm,
        warp_size: info.warp_size,
    }
}

/// The recording's counters as the timeline's.
pub(super) fn health(it: &disk::Health) -> Health {
    Health {
        received: it.received,
        dropped: it.dropped,
        lost: it.lost,
        no_timestamp: it.no_timestamp,
        end_before_start: it.end_before_start,
        bad_clock: it.bad_clock,
        unknown: it.unknown,
        oldest_open: Some(it.oldest_open).filter(|time| *time != 0),
    }
}

/// The timeline's counters as the recording's.
pub(super) fn health_to_disk(it: &Health) -> disk::Health {
    disk::Health {
        received: it.received,
        dropped: it.dropped,
        lost: it.lost,
        no_timestamp: it.no_timestamp,
        end_before_start: it.end_before_start,
        bad_clock: it.bad_clock,
        unknown: it.unknown,
        oldest_open: it.oldest_open.unwrap_or(0),
    }
}

/// A stream of the timeline in the recording.
pub(super) fn stream(info: &StreamInfo) -> disk::Stream<'_> {
    disk::Stream {
        place: disk::Place {
            device: info.device,
            context: info.context,
            stream: info.stream,
        },
        priority: info.priority,
        is_default: info.is_default,
        name: info.name.as_bytes(),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn from_disk(place: disk::Place) -> Place {
    Place {
        device: place.device,
        context: place.context,
        stream: place.stream,
    }
}

fn to_disk(place: Place) -> disk::Place {
    disk::Place {
        device: place.device,
        context: place.context,
        stream: place.stream,
    }
}
