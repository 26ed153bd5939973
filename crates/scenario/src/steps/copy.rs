//! Copies: `h2d`, `d2h`, `d2d` and `p2p`.

use super::super::plan::{BufferId, CopySpec, HostMemory, MemRef};
use super::common::{BYTES, OFFSET, STREAM};
use super::read::Given;
use super::*;
use activity::Direction;

const KEY_H2D: Key =
    key!(required "h2d" Buffer, "Copies a buffer from its host side to its device side.");
pub(super) const H2D: Form = copy(KEY_H2D, KEYS);
const KEY_D2H: Key =
    key!(required "d2h" Buffer, "Copies a buffer from its device side to its host side.");
pub(super) const D2H: Form = copy(KEY_D2H, KEYS);
const KEY_D2D: Key = key!(required "d2d" Buffer, "Copies between two buffers of one device.");
pub(super) const D2D: Form = copy(KEY_D2D, KEYS_WITH_TO);
const KEY_P2P: Key = key!(required "p2p" Buffer, "Copies between buffers of two devices.");
pub(super) const P2P: Form = copy(KEY_P2P, KEYS_WITH_TO);

const KEYS: &[Key] = &keys(
    key!("to" Buffer, "Another buffer to write to. Default: the other side of the same buffer."),
);
const KEYS_WITH_TO: &[Key] = &keys(key!(required "to" Buffer, "The buffer to write to."));

const SYNC: Key = key!("sync" Bool, "The synchronous call, on the default stream. Default: false.");
const TO_OFFSET: Key = key!("to_offset" Size, "Bytes from the start of `to`. Default: 0, without `to` the same as `offset`.");
const CHUNK: Key = key!("chunk" Size, "Copies in pieces of this size, each a call of its own. Default: one piece.");

const fn keys(to: Key) -> [Key; 7] {
    [to, STREAM, SYNC, OFFSET, TO_OFFSET, BYTES, CHUNK]
}

const fn copy(head: Key, keys: &'static [Key]) -> Form {
    Form {
        check,
        ..Form::new(head, keys, lower)
    }
}

fn is_sync(step: &Step) -> bool {
    matches!(step.get("sync"), Some(Given::Is(true)))
}

fn check(step: &Step, fields: &Fields<'_>, reader: &mut Reader<'_>) {
    if is_sync(step)
        && let Some(stream) = fields.get("stream")
    {
        let message = "a synchronous copy runs on the default stream";
        let help = "take out `stream`, or `sync = true`";
        reader.error_help(stream.key_loc, message, help);
    }
}

fn lower<'f>(step: &'f Step, unroll: &mut Unroll<'_, 'f>) -> Option<()> {
    let direction = match step.form.head.name {
        "h2d" => Direction::H2D,
        "d2h" => Direction::D2H,
        "d2d" => Direction::D2D,
        _ => Direction::P2P,
    };
    if is_sync(step) {
        unroll.not_captured("a synchronous copy", step.loc)?;
    }
    let (source, other) = (step.buffer()?, step.buffers("to").first());
    let target = other.unwrap_or(source);
    let from = unroll.buffer(source)?;
    let to = match other {
        Some(to) => unroll.buffer(to)?,
        None => from,
    };
    let device = sides(unroll, direction, (from, source.loc), (to, target.loc))?;
    let (start, bytes) = unroll.part(step, from)?;
    let to_start = unroll.optional_bytes(step.expr("to_offset"), 0)?;
    let to_start = to_start.unwrap_or(if other.is_some() { 0 } else { start });
    let of_bytes = step.expr("bytes");
    let at = (of_bytes.or(step.expr("offset"))).map_or(source.loc, |it| it.loc);
    unroll.inside(from, start, bytes, at, "copy")?;
    let at = (step.expr("to_offset").or(of_bytes)).map_or(target.loc, |it| it.loc);
    unroll.inside(to, to_start, bytes, at, "copy")?;
    let overlaps = start < to_start + bytes && to_start < start + bytes;
    if direction == Direction::D2D && from == to && overlaps {
        let name = quoted(&unroll.plan.buffers[from].name);
        return unroll.error(target.loc, format!("this copies {name} onto itself"));
    }
    let chunk = unroll.optional_bytes(step.expr("chunk"), 1)?.unwrap_or(0);
    let place = |buffer, offset| MemRef { buffer, offset };
    let kind = OpKind::Copy(CopySpec {
        direction,
        from: place(from, start),
        to: place(to, to_start),
        bytes,
        chunk: if chunk >= bytes { 0 } else { chunk },
        stream: unroll.fed_stream(step, Some(device))?,
        is_async: !is_sync(step),
    });
    unroll.emit_many(kind, step.loc, kind.pieces().left())
}

/// Checks that both ends exist and lie where the direction says; the device whose stream it runs on.
fn sides(
    unroll: &mut Unroll<'_, '_>,
    direction: Direction,
    (from, from_loc): (BufferId, Loc),
    (to, to_loc): (BufferId, Loc),
) -> Option<u32> {
    if from == to && unroll.plan.buffers[from].host == HostMemory::Managed {
        let name = quoted(&unroll.plan.buffers[from].name);
        let message = format!("{name} is managed memory: its two sides are one");
        let help = "say where to copy to: to = \"another_buffer\"";
        return unroll.error_help(from_loc, message, help);
    }
    if direction == Direction::H2D {
        unroll.host_side(from, from_loc)?;
        return unroll.device_side(to, to_loc);
    }
    let source = unroll.device_side(from, from_loc)?;
    if direction == Direction::D2H {
        unroll.host_side(to, to_loc)?;
        return Some(source);
    }
    let target = unroll.device_side(to, to_loc)?;
    let (message, help) = match (source == target, direction == Direction::D2D) {
        (true, false) => (
            format!("both buffers are on device {source}"),
            "copy within a device with d2d",
        ),
        (false, true) => (
            format!("the buffers are on devices {source} and {target}"),
            "copy between devices with p2p",
        ),
        _ => return Some(source),
    };
    unroll.error_help(from_loc.span_to(to_loc), message, help)
}
