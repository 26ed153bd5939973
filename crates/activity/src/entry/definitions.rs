//! Definitions to bytes and back, as the table of [`super`] says.

use super::{Entry, Field, LONGEST, UNIT, Unreadable};
use crate::{Collective, DeviceInfo, LaunchShape, Mode, ProcessInfo, StreamInfo};

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
            shape.name.put(out, 8);
            shape.grid.put(out, 12);
            shape.block.put(out, 24);
            shape.registers.put(out, 36);
            shape.static_shared.put(out, 40);
            shape.dynamic_shared.put(out, 44);
            shape.local.put(out, 48);
            shape.cluster.put(out, 52);
        }
        Entry::Device(device) => {
            let texts = [(8, device.name.as_bytes()), (12, device.link.as_bytes())];
            let out = begin(bytes, 66, 88, &texts);
            device.id.put(out, 4);
            device.capability.0.put(out, 16);
            device.capability.1.put(out, 20);
            device.multiprocessors.put(out, 24);
            device.clock_khz.put(out, 28);
            device.memory.put(out, 32);
            device.memory_bandwidth.put(out, 40);
            device.copy_engines.put(out, 48);
            device.max_warps_per_sm.put(out, 52);
            device.max_blocks_per_sm.put(out, 56);
            device.shared_per_sm.put(out, 60);
            device.registers_per_sm.put(out, 64);
            device.warp_size.put(out, 68);
            device.uuid.unwrap_or_default().put(out, 72);
        }
        Entry::Stream(stream) => {
            let out = begin(bytes, 67, 28, &[(24, stream.name.as_bytes())]);
            stream.device.put(out, 4);
            stream.context.put(out, 8);
            stream.stream.put(out, 12);
            stream.priority.put(out, 16);
            stream.is_default.put(out, 20);
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
            process.pid.put(out, 4);
            process.rank.put(out, 16);
            process.local_rank.put(out, 20);
        }
        Entry::Mode(mode) => {
            let out = begin(bytes, 71, UNIT, &[]);
            mode.recording.put(out, 4);
            mode.waits.put(out, 5);
            mode.from.put(out, 8);
        }
        Entry::Collective(shape, it) => {
            let texts = [
                (8, it.operation.as_bytes()),
                (12, it.group.as_bytes()),
                (16, it.element.as_bytes()),
            ];
            let out = begin(bytes, 72, 40, &texts);
            shape.put(out, 4);
            it.size.put(out, 20);
            it.elements[0].put(out, 24);
            it.elements[1].put(out, 32);
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
        71 => mode(bytes).map(Entry::Mode),
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
    let shape = LaunchShape {
        name: Field::get(bytes, 8)?,
        grid: Field::get(bytes, 12)?,
        block: Field::get(bytes, 24)?,
        registers: Field::get(bytes, 36)?,
        static_shared: Field::get(bytes, 40)?,
        dynamic_shared: Field::get(bytes, 44)?,
        local: Field::get(bytes, 48)?,
        cluster: Field::get(bytes, 52)?,
        collective: 0,
    };
    Some(Entry::Shape(Field::get(bytes, 4)?, shape))
}

fn device(bytes: &[u8]) -> Option<DeviceInfo> {
    let name = text(bytes, 88, 8)?;
    let uuid: [u8; 16] = Field::get(bytes, 72)?;
    Some(DeviceInfo {
        id: Field::get(bytes, 4)?,
        uuid: Some(uuid).filter(|uuid| *uuid != [0; 16]),
        name: lossy(name),
        capability: (Field::get(bytes, 16)?, Field::get(bytes, 20)?),
        multiprocessors: Field::get(bytes, 24)?,
        memory: Field::get(bytes, 32)?,
        memory_bandwidth: Field::get(bytes, 40)?,
        clock_khz: Field::get(bytes, 28)?,
        copy_engines: Field::get(bytes, 48)?,
        max_warps_per_sm: Field::get(bytes, 52)?,
        max_blocks_per_sm: Field::get(bytes, 56)?,
        shared_per_sm: Field::get(bytes, 60)?,
        registers_per_sm: Field::get(bytes, 64)?,
        warp_size: Field::get(bytes, 68)?,
        link: lossy(text(bytes, 88 + name.len(), 12)?),
    })
}

fn stream(bytes: &[u8]) -> Option<StreamInfo> {
    Some(StreamInfo {
        device: Field::get(bytes, 4)?,
        context: Field::get(bytes, 8)?,
        stream: Field::get(bytes, 12)?,
        name: lossy(text(bytes, 28, 24)?),
        priority: Field::get(bytes, 16)?,
        is_default: Field::get(bytes, 20)?,
    })
}

fn process(bytes: &[u8]) -> Option<ProcessInfo> {
    let command = text(bytes, 24, 8)?;
    let versions = text(bytes, 24 + command.len(), 12)?;
    let (world, host) = behind(bytes, 24 + command.len() + versions.len()).unwrap_or_default();
    Some(ProcessInfo {
        pid: Field::get(bytes, 4)?,
        command: lossy(command),
        rank: Field::get(bytes, 16)?,
        local_rank: Field::get(bytes, 20)?,
        world,
        host,
        versions: lossy(versions),
        ended_well: None,
    })
}

fn mode(bytes: &[u8]) -> Option<Mode> {
    Some(Mode {
        from: Field::get(bytes, 8)?,
        recording: Field::get(bytes, 4)?,
        waits: Field::get(bytes, 5)?,
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
    let element = text(bytes, 40 + operation.len() + group.len(), 16)?;
    let it = Collective {
        operation: lossy(operation),
        group: lossy(group),
        size: Field::get(bytes, 20)?,
        elements: [Field::get(bytes, 24)?, Field::get(bytes, 32)?],
        element: lossy(element),
    };
    Some(Entry::Collective(Field::get(bytes, 4)?, it))
}

pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
