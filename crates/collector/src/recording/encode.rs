//! Entries to bytes, as the tables of [`super::entry`] say.

use super::entry::{Body, Entry, NONE, Place, Record};
use super::{LONGEST, UNIT};

/// Entries are put together in here.
struct Out<'a> {
    bytes: &'a mut Vec<u8>,
    at: usize,
}

impl Out<'_> {
    fn u8(&mut self, at: usize, value: u8) {
        self.bytes[self.at + at] = value;
    }
    fn u32(&mut self, at: usize, value: u32) {
        self.bytes[self.at + at..self.at + at + 4].copy_from_slice(&value.to_le_bytes());
    }
    fn u64(&mut self, at: usize, value: u64) {
        self.bytes[self.at + at..self.at + at + 8].copy_from_slice(&value.to_le_bytes());
    }
    fn place(&mut self, place: Place) {
        self.u32(24, place.device);
        self.u32(28, place.context);
        self.u32(32, place.stream);
    }
    fn three(&mut self, at: usize, values: [u32; 3]) {
        for (index, value) in values.into_iter().enumerate() {
            self.u32(at + index * 4, value);
        }
    }
}

/// Appends room for an entry of `tag` with `length` bytes, rounded up to whole units.
fn begin(bytes: &mut Vec<u8>, tag: u8, length: usize) -> Out<'_> {
    let at = bytes.len();
    let units = length.div_ceil(UNIT).max(1);
    bytes.resize(at + units * UNIT, 0);
    bytes[at] = tag;
    let units = u16::try_from(units).unwrap_or(u16::MAX);
    bytes[at + 2..at + 4].copy_from_slice(&units.to_le_bytes());
    Out { bytes, at }
}

/// Appends texts after the fixed part that ends at `fixed`, with their lengths at `lengths`. What would not fit into
/// the longest entry is cut off.
fn texts(bytes: &mut Vec<u8>, tag: u8, fixed: usize, lengths: &[usize], texts: &[&[u8]]) -> usize {
    let mut room = LONGEST - fixed;
    let cut: Vec<&[u8]> = texts
        .iter()
        .map(|text| {
            let kept = &text[..text.len().min(room)];
            room -= kept.len();
            kept
        })
        .collect();
    let total: usize = cut.iter().map(|text| text.len()).sum();
    let mut out = begin(bytes, tag, fixed + total);
    let start = out.at;
    let mut at = start + fixed;
    for (text, length) in cut.iter().zip(lengths) {
        out.u32(*length, u32::try_from(text.len()).unwrap_or(0));
        out.bytes[at..at + text.len()].copy_from_slice(text);
        at += text.len();
    }
    start
}

impl Record {
    /// Appends the record's 64 bytes.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let tag = match self.body {
            Body::Kernel { .. } => 1,
            Body::Copy { .. } => 2,
            Body::Memset { .. } => 3,
            Body::Call { .. } => 4,
            Body::Sync { .. } => 5,
            Body::Overhead { .. } => 6,
            Body::Memory { .. } => 7,
            Body::Event { .. } => 8,
            Body::Range { .. } => 9,
        };
        let mut out = begin(bytes, tag, UNIT);
        out.u32(4, self.correlation);
        out.u64(8, self.start.cast_unsigned());
        out.u64(16, self.end.cast_unsigned());
        match self.body {
            Body::Kernel {
                place,
                shape,
                graph,
                channel,
                node,
            } => {
                out.place(place);
                out.u32(36, shape);
                out.u32(40, graph);
                out.u32(44, channel);
                out.u64(48, node);
            }
            Body::Copy {
                place,
                peer,
                graph,
                channel,
                bytes,
                direction,
                from,
                to,
                is_async,
            } => {
                out.place(place);
                out.u32(36, peer);
                out.u32(40, graph);
                out.u32(44, channel);
                out.u64(48, bytes);
                out.u8(56, direction);
                out.u8(57, from);
                out.u8(58, to);
                out.u8(59, u8::from(is_async));
            }
            Body::Memset {
                place,
                graph,
                channel,
                bytes,
            } => {
                out.place(place);
                out.u32(40, graph);
                out.u32(44, channel);
                out.u64(48, bytes);
            }
            Body::Call { thread, name, code } => {
                out.u32(24, thread);
                out.u32(28, name);
                out.u32(32, code.cast_unsigned());
            }
            Body::Sync {
                kind,
                context,
                stream,
                event,
            } => {
                out.u8(24, kind);
                out.u32(28, context);
                out.u32(32, stream);
                out.u32(36, event);
            }
            Body::Overhead { thread, name } => {
                out.u32(24, thread);
                out.u32(28, name);
            }
            Body::Memory {
                place,
                address,
                bytes,
                action,
                kind,
                is_async,
            } => {
                out.place(place);
                out.u64(40, address);
                out.u64(48, bytes);
                out.u8(56, action);
                out.u8(57, kind);
                out.u8(59, u8::from(is_async));
            }
            Body::Event { place, event } => {
                out.place(place);
                out.u32(36, event);
            }
            Body::Range {
                thread,
                name,
                index,
                kind,
            } => {
                out.u32(24, thread);
                out.u32(28, name);
                out.u32(32, index);
                out.u8(36, kind);
            }
        }
    }
}

impl Entry<'_> {
    /// Appends the entry's bytes. Texts that are longer than an entry may be are cut off.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        match *self {
            Entry::Record(record) => record.encode(bytes),
            Entry::Name(id, text) => {
                let at = texts(bytes, 64, 16, &[8], &[text]);
                Out { bytes, at }.u32(4, id);
            }
            Entry::Shape(id, shape) => {
                let mut out = begin(bytes, 65, UNIT);
                out.u32(4, id);
                out.u32(8, shape.name);
                out.three(12, shape.grid);
                out.three(24, shape.block);
                out.u32(36, shape.registers);
                out.u32(40, shape.static_shared);
                out.u32(44, shape.dynamic_shared);
                out.u32(48, shape.local);
                out.three(52, shape.cluster);
            }
            Entry::Device(device) => {
                let at = texts(bytes, 66, 88, &[8, 12], &[device.name, device.link]);
                let mut out = Out { bytes, at };
                out.u32(4, device.id);
                out.u32(16, device.capability[0]);
                out.u32(20, device.capability[1]);
                out.u32(24, device.multiprocessors);
                out.u32(28, device.clock_khz);
                out.u64(32, device.memory);
                out.u64(40, device.memory_bandwidth);
                out.u32(48, device.copy_engines);
                out.u32(52, device.max_warps_per_sm);
                out.u32(56, device.max_blocks_per_sm);
                out.u32(60, device.shared_per_sm);
                out.u32(64, device.registers_per_sm);
                out.u32(68, device.warp_size);
                let uuid = at + 72..at + 88;
                out.bytes[uuid].copy_from_slice(&device.uuid.unwrap_or_default());
            }
            Entry::Stream(stream) => {
                let at = texts(bytes, 67, 28, &[24], &[stream.name]);
                let mut out = Out { bytes, at };
                out.u32(4, stream.place.device);
                out.u32(8, stream.place.context);
                out.u32(12, stream.place.stream);
                out.u32(16, stream.priority.cast_unsigned());
                out.u8(20, u8::from(stream.is_default));
            }
            Entry::Thread(thread, name) => {
                let at = texts(bytes, 68, 16, &[8], &[name]);
                Out { bytes, at }.u32(4, thread);
            }
            Entry::Process(process) => {
                let at = texts(
                    bytes,
                    69,
                    24,
                    &[8, 12],
                    &[process.command, process.versions],
                );
                let mut out = Out { bytes, at };
                out.u32(4, process.pid);
                out.u32(16, process.rank.unwrap_or(NONE));
                out.u32(20, process.local_rank.unwrap_or(NONE));
            }
            Entry::Notice(is_warning, text) => {
                let at = texts(bytes, 70, 16, &[8], &[text]);
                Out { bytes, at }.u8(4, u8::from(is_warning));
            }
        }
    }
}
