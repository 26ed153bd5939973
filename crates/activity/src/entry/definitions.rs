//! Definitions to bytes and back, as the table of [`super`] says.

use super::Fields;
use super::{Entry, Field, LONGEST, UNIT, Unreadable};
use crate::{Collective, DeviceInfo, LaunchShape, Mode, ProcessInfo, StreamInfo, fields};

fields! {
    LaunchShape {
        name @ 8, grid @ 12, block @ 24, registers @ 36, static_shared @ 40, dynamic_shared @ 44, local @ 48,
        cluster @ 52
    }
    DeviceInfo {
        id @ 4, capability.0 @ 16, capability.1 @ 20, multiprocessors @ 24, clock_khz @ 28, memory @ 32,
        memory_bandwidth @ 40, copy_engines @ 48, max_warps_per_sm @ 52, max_blocks_per_sm @ 56,
        shared_per_sm @ 60, registers_per_sm @ 64, warp_size @ 68, uuid @ 72
    }
    StreamInfo { device @ 4, context @ 8, stream @ 12, priority @ 16, is_default @ 20 }
    ProcessInfo { pid @ 4, rank @ 16, local_rank @ 20 }
    Mode { recording @ 4, waits @ 5, from @ 8 }
    Collective { size @ 20, elements @ 24 }
}

/// Appends an entry of `tag` whose `fixed` bytes are followed by `texts`, with the length of each at its offset.
/// What would not fit into the longest entry is cut off. Returns the entry's bytes.
pub(super) fn begin<'b>(
    bytes: &'b mut Vec<u8>,
    tag: u8,
    fixed: usize,
    texts: &[(usize, &[u8])],
) -> &'b mut [u8] {
    let start = bytes.len();
    let total = fixed + texts.iter().map(|(_, text)| text.len()).sum::<usize>();
    let units = total.min(LONGEST).div_ceil(UNIT).max(1);
    bytes.resize(start + units * UNIT, 0);
    let entry = &mut bytes[start..];
    entry[0] = tag;
    // At most 1024, by the limit above.
    (units as u16).put(entry, 2);
    let mut at = fixed;
    for &(length_at, text) in texts {
        let kept = &text[..text.len().min(LONGEST - at)];
        (kept.len() as u32).put(entry, length_at);
        entry[at..at + kept.len()].copy_from_slice(kept);
        at += kept.len();
    }
    entry
}

pub(super) fn encode(entry: &Entry<'_>, bytes: &mut Vec<u8>) {
    match entry {
        Entry::Name(id, text) => id.put(begin(bytes, 64, 16, &[(8, text)]), 4),
        Entry::Shape(id, shape) => {
            let out = begin(bytes, 65, UNIT, &[]);
            id.put(out, 4);
            shape.put_fields(out);
        }
        Entry::Device(device) => {
            let texts = [(8, device.name.as_bytes()), (12, device.link.as_bytes())];
            device.put_fields(begin(bytes, 66, 88, &texts));
        }
        Entry::Stream(stream) => {
            stream.put_fields(begin(bytes, 67, 28, &[(24, stream.name.as_bytes())]));
        }
        Entry::Thread(thread, name) => thread.put(begin(bytes, 68, 16, &[(8, name)]), 4),
        Entry::Process(process) => {
            // What came later stands behind the texts, where readers of before do not look.
            let versions = process.versions.as_bytes();
            let host = process.host.as_bytes();
            let mut behind = vec![0; 8];
            process.world.put(&mut behind, 0);
            (host.len() as u32).put(&mut behind, 4);
            let texts = [versions, &behind, host].concat();
            let texts = [(8, process.command.as_bytes()), (12, &texts[..])];
            let out = begin(bytes, 69, 24, &texts);
            let kept = u32::get(out, 12).unwrap_or(0);
            (versions.len() as u32).min(kept).put(out, 12);
            process.put_fields(out);
        }
        Entry::Mode(mode) => mode.put_fields(begin(bytes, 71, UNIT, &[])),
        Entry::Collective(shape, it) => {
            // It came later and stands behind the texts: 0 for none, as in files of before.
            let peer = it.peer.map_or(0, |rank| rank.saturating_add(1));
            let texts = [
                (8, it.operation.as_bytes()),
                (12, it.group.as_bytes()),
                (16, it.element.as_bytes()),
                // Where its length would stand is the shape.
                (4, &peer.to_le_bytes()[..]),
            ];
            let out = begin(bytes, 72, 40, &texts);
            shape.put(out, 4);
            it.put_fields(out);
        }
        Entry::Notice(is_warning, text) => {
            is_warning.put(begin(bytes, 70, 16, &[(8, text)]), 4);
        }
        // Records and what was seen from outside are encoded where they are read.
        _ => {}
    }
}

pub(super) fn decode(tag: u8, bytes: &[u8]) -> Result<Entry<'_>, Unreadable> {
    let entry = match tag {
        64 => name(bytes).map(|(id, text)| Entry::Name(id, text)),
        65 => shape(bytes),
        66 => device(bytes).map(Entry::Device),
        67 => stream(bytes).map(Entry::Stream),
        68 => name(bytes).map(|(thread, name)| Entry::Thread(thread, name)),
        69 => process(bytes).map(Entry::Process),
        70 => text(bytes, 16, 8).map(|text| Entry::Notice(bytes[4] != 0, text)),
        71 => Mode::fields(bytes).map(Entry::Mode),
        72 => collective(bytes),
        _ => return Err(Unreadable::UnknownDefinition),
    };
    entry.ok_or(Unreadable::Damaged)
}

/// The text at `from` whose length stands at `length_at`.
pub(super) fn text(bytes: &[u8], from: usize, length_at: usize) -> Option<&[u8]> {
    let length = u32::get(bytes, length_at)? as usize;
    bytes.get(from..from.checked_add(length)?)
}

fn name(bytes: &[u8]) -> Option<(u32, &[u8])> {
    Some((Field::get(bytes, 4)?, text(bytes, 16, 8)?))
}

fn shape<'a>(bytes: &[u8]) -> Option<Entry<'a>> {
    let shape = LaunchShape::fields(bytes)?;
    Some(Entry::Shape(Field::get(bytes, 4)?, shape))
}

fn device(bytes: &[u8]) -> Option<DeviceInfo> {
    let name = text(bytes, 88, 8)?;
    Some(DeviceInfo {
        name: lossy(name),
        link: lossy(text(bytes, 88 + name.len(), 12)?),
        ..Fields::fields(bytes)?
    })
}

fn stream(bytes: &[u8]) -> Option<StreamInfo> {
    Some(StreamInfo {
        name: lossy(text(bytes, 28, 24)?),
        ..Fields::fields(bytes)?
    })
}

fn process(bytes: &[u8]) -> Option<ProcessInfo> {
    let command = text(bytes, 24, 8)?;
    let versions = text(bytes, 24 + command.len(), 12)?;
    let (world, host) = behind(bytes, 24 + command.len() + versions.len()).unwrap_or_default();
    Some(ProcessInfo {
        command: lossy(command),
        world,
        host,
        versions: lossy(versions),
        ..Fields::fields(bytes)?
    })
}

/// World and host. A writer of before wrote nothing there, or zeros up to the entry's end.
fn behind(bytes: &[u8], at: usize) -> Option<(Option<u32>, String)> {
    let world: Option<u32> = Field::get(bytes, at)?;
    let host = lossy(text(bytes, at + 8, at + 4)?);
    Some((world.filter(|&ranks| ranks > 0), host))
}

fn collective<'a>(bytes: &[u8]) -> Option<Entry<'a>> {
    let operation = text(bytes, 40, 8)?;
    let group = text(bytes, 40 + operation.len(), 12)?;
    let at = 40 + operation.len() + group.len();
    let element = text(bytes, at, 16)?;
    let it = Collective {
        operation: lossy(operation),
        group: lossy(group),
        element: lossy(element),
        peer: u32::get(bytes, at + element.len())
            .unwrap_or(0)
            .checked_sub(1),
        ..Fields::fields(bytes)?
    };
    Some(Entry::Collective(Field::get(bytes, 4)?, it))
}

pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
