//! Bytes to entries, as the tables of [`super::entry`] say.

use super::entry::{Body, DEFINITIONS, Device, Entry, NONE, Place, Process, Record, Shape, Stream};
use super::{LONGEST, UNIT};

/// What the bytes of an entry turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded<'a> {
    /// An entry.
    Entry(Entry<'a>),
    /// A record with a tag of another time.
    UnknownRecord,
    /// A definition with a tag of another time.
    UnknownDefinition,
    /// Bytes that no writer writes.
    Damaged,
}

/// The length in bytes that an entry's first bytes claim; `None` when no entry can begin so.
#[must_use]
pub(super) fn length(head: &[u8]) -> Option<usize> {
    let units = u16::from_le_bytes(head.get(2..4)?.try_into().ok()?);
    let length = usize::from(units) * UNIT;
    (head[0] != 0 && (UNIT..=LONGEST).contains(&length)).then_some(length)
}

/// Reads from the bytes of exactly one entry.
struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn u8(&self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or(0)
    }
    fn u32(&self, at: usize) -> u32 {
        self.0
            .get(at..at + 4)
            .and_then(|it| it.try_into().ok())
            .map_or(0, u32::from_le_bytes)
    }
    fn u64(&self, at: usize) -> u64 {
        self.0
            .get(at..at + 8)
            .and_then(|it| it.try_into().ok())
            .map_or(0, u64::from_le_bytes)
    }
    fn three(&self, at: usize) -> [u32; 3] {
        [self.u32(at), self.u32(at + 4), self.u32(at + 8)]
    }
    fn place(&self) -> Place {
        let [device, context, stream] = self.three(24);
        Place {
            device,
            context,
            stream,
        }
    }
    fn text(&self, from: usize, length: usize) -> Option<&'a [u8]> {
        self.0.get(from..from.checked_add(length)?)
    }
    fn count(&self, at: usize) -> usize {
        self.u32(at) as usize
    }
    fn optional(&self, at: usize) -> Option<u32> {
        Some(self.u32(at)).filter(|value| *value != NONE)
    }
}

/// Decodes the bytes of one entry, of the length that [`length`] gave.
#[must_use]
pub(super) fn decode(bytes: &[u8]) -> Decoded<'_> {
    let input = In(bytes);
    let tag = input.u8(0);
    if tag < DEFINITIONS {
        return match decode_body(tag, &input) {
            None => Decoded::UnknownRecord,
            Some(body) => {
                let start = input.u64(8).cast_signed();
                let end = input.u64(16).cast_signed();
                if start > end || start < 0 {
                    return Decoded::Damaged;
                }
                Decoded::Entry(Entry::Record(Record {
                    start,
                    end,
                    correlation: input.u32(4),
                    body,
                }))
            }
        };
    }
    let entry = match tag {
        64 => input
            .text(16, input.count(8))
            .map(|text| Entry::Name(input.u32(4), text)),
        65 => Some(Entry::Shape(
            input.u32(4),
            Shape {
                name: input.u32(8),
                grid: input.three(12),
                block: input.three(24),
                registers: input.u32(36),
                static_shared: input.u32(40),
                dynamic_shared: input.u32(44),
                local: input.u32(48),
                cluster: input.three(52),
            },
        )),
        66 => decode_device(&input).map(Entry::Device),
        67 => input.text(28, input.count(24)).map(|name| {
            Entry::Stream(Stream {
                place: Place {
                    device: input.u32(4),
                    context: input.u32(8),
                    stream: input.u32(12),
                },
                priority: input.u32(16).cast_signed(),
                is_default: input.u8(20) != 0,
                name,
            })
        }),
        68 => input
            .text(16, input.count(8))
            .map(|name| Entry::Thread(input.u32(4), name)),
        69 => decode_process(&input).map(Entry::Process),
        70 => input
            .text(16, input.count(8))
            .map(|text| Entry::Notice(input.u8(4) != 0, text)),
        _ => return Decoded::UnknownDefinition,
    };
    entry.map_or(Decoded::Damaged, Decoded::Entry)
}

fn decode_body(tag: u8, input: &In<'_>) -> Option<Body> {
    let place = input.place();
    let (graph, channel) = (input.u32(40), input.u32(44));
    Some(match tag {
        1 => Body::Kernel {
            place,
            shape: input.u32(36),
            graph,
            channel,
            node: input.u64(48),
        },
        2 => Body::Copy {
            place,
            peer: input.u32(36),
            graph,
            channel,
            bytes: input.u64(48),
            direction: input.u8(56),
            from: input.u8(57),
            to: input.u8(58),
            is_async: input.u8(59) != 0,
        },
        3 => Body::Memset {
            place,
            graph,
            channel,
            bytes: input.u64(48),
        },
        4 => Body::Call {
            thread: input.u32(24),
            name: input.u32(28),
            code: input.u32(32).cast_signed(),
        },
        5 => Body::Sync {
            kind: input.u8(24),
            context: input.u32(28),
            stream: input.u32(32),
            event: input.u32(36),
        },
        6 => Body::Overhead {
            thread: input.u32(24),
            name: input.u32(28),
        },
        7 => Body::Memory {
            place,
            address: input.u64(40),
            bytes: input.u64(48),
            action: input.u8(56),
            kind: input.u8(57),
            is_async: input.u8(59) != 0,
        },
        8 => Body::Event {
            place,
            event: input.u32(36),
        },
        9 => Body::Range {
            thread: input.u32(24),
            name: input.u32(28),
            index: input.u32(32),
            kind: input.u8(36),
        },
        _ => return None,
    })
}

fn decode_device<'a>(input: &In<'a>) -> Option<Device<'a>> {
    let (name, link) = (input.count(8), input.count(12));
    Some(Device {
        id: input.u32(4),
        name: input.text(88, name)?,
        link: input.text(88_usize.checked_add(name)?, link)?,
        capability: [input.u32(16), input.u32(20)],
        multiprocessors: input.u32(24),
        clock_khz: input.u32(28),
        memory: input.u64(32),
        memory_bandwidth: input.u64(40),
        copy_engines: input.u32(48),
        max_warps_per_sm: input.u32(52),
        max_blocks_per_sm: input.u32(56),
        shared_per_sm: input.u32(60),
        registers_per_sm: input.u32(64),
        warp_size: input.u32(68),
        uuid: input
            .text(72, 16)?
            .try_into()
            .ok()
            .filter(|uuid| *uuid != [0; 16]),
    })
}

fn decode_process<'a>(input: &In<'a>) -> Option<Process<'a>> {
    let (command, versions) = (input.count(8), input.count(12));
    Some(Process {
        pid: input.u32(4),
        rank: input.optional(16),
        local_rank: input.optional(20),
        command: input.text(24, command)?,
        versions: input.text(24_usize.checked_add(command)?, versions)?,
    })
}
