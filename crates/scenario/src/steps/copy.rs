//! Copies: `h2d`, `d2h`, `d2d` and `p2p`.

use super::super::diagnostics::quoted;
use super::super::expr::Expr;
use super::super::expr::parse::Template;
use super::super::plan::{BufferId, CopySpec, HostMemory, MemRef, OpKind};
use super::super::syntax::decl::BufferRef;
use super::super::syntax::keys::key;
use super::common::{BYTES, OFFSET, STREAM, stream};
use super::{Field, Fields, Form, Key, Loc, Names, Reader, StepKind, Unroll};
use activity::Direction;

pub(super) const H2D: Form = Form {
    head: key!(required "h2d" Buffer, "Copies a buffer from its host side to its device side."),
    keys: KEYS,
    read: |reader, fields, head| read(reader, fields, head, Direction::H2D),
};

pub(super) const D2H: Form = Form {
    head: key!(required "d2h" Buffer, "Copies a buffer from its device side to its host side."),
    keys: KEYS,
    read: |reader, fields, head| read(reader, fields, head, Direction::D2H),
};

pub(super) const D2D: Form = Form {
    head: key!(required "d2d" Buffer, "Copies between two buffers of one device."),
    keys: KEYS_WITH_TO,
    read: |reader, fields, head| read(reader, fields, head, Direction::D2D),
};

pub(super) const P2P: Form = Form {
    head: key!(required "p2p" Buffer, "Copies between buffers of two devices."),
    keys: KEYS_WITH_TO,
    read: |reader, fields, head| read(reader, fields, head, Direction::P2P),
};

const KEYS: &[Key] = &[
    key!("to" Buffer, "Another buffer to write to. Default: the other side of the same buffer."),
    STREAM,
    SYNC,
    OFFSET,
    TO_OFFSET,
    BYTES,
    CHUNK,
];
const KEYS_WITH_TO: &[Key] = &[
    key!(required "to" Buffer, "The buffer to write to."),
    STREAM,
    SYNC,
    OFFSET,
    TO_OFFSET,
    BYTES,
    CHUNK,
];
const TO_OFFSET: Key = key!("to_offset" Size, "Bytes from the start of `to`. Default: 0, without `to` the same as `offset`.");
const CHUNK: Key = key!("chunk" Size, "Copies in pieces of this size, each a call of its own. Default: one piece.");
const SYNC: Key = key!("sync" Bool, "The synchronous call, on the default stream. Default: false.");

struct CopyStep {
    direction: Direction,
    from: BufferRef,
    to: Option<BufferRef>,
    offset: Option<Expr>,
    to_offset: Option<Expr>,
    bytes: Option<Expr>,
    chunk: Option<Expr>,
    stream: Option<Template>,
    is_sync: bool,
}

fn read(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    head: Field<'_>,
    direction: Direction,
) -> Option<Box<dyn StepKind>> {
    let is_sync = fields
        .read("sync", reader, Reader::boolean)
        .unwrap_or(false);
    if is_sync && let Some(stream) = fields.get("stream") {
        let help = "take out `stream`, or `sync = true`";
        reader.error_help(
            stream.key_loc,
            "a synchronous copy runs on the default stream",
            help,
        );
    }
    Some(Box::new(CopyStep {
        direction,
        from: reader.buffer(head)?,
        to: fields.get("to").and_then(|field| reader.buffer(field)),
        offset: reader.optional(fields, "offset"),
        to_offset: reader.optional(fields, "to_offset"),
        bytes: reader.optional(fields, "bytes"),
        chunk: reader.optional(fields, "chunk"),
        stream: stream(reader, fields),
        is_sync,
    }))
}

impl StepKind for CopyStep {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        names.buffer(&self.from);
        if let Some(to) = &self.to {
            names.buffer(to);
        }
        for expr in [&self.offset, &self.to_offset, &self.bytes, &self.chunk] {
            names.optional(expr.as_ref());
        }
        names.stream(self.stream.as_ref());
    }

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Option<()> {
        if self.is_sync {
            unroll.not_captured("a synchronous copy", loc)?;
        }
        let from = unroll.buffer(&self.from)?;
        let to = match &self.to {
            Some(to) => unroll.buffer(to)?,
            None => from,
        };
        let to_loc = self.to.as_ref().map_or(self.from.loc, |to| to.loc);
        let device = self.sides(unroll, from, to, to_loc)?;
        let start = unroll.optional_bytes(self.offset.as_ref(), 0)?.unwrap_or(0);
        let to_start = unroll.optional_bytes(self.to_offset.as_ref(), 0)?;
        let to_start = to_start.unwrap_or(if self.to.is_some() { 0 } else { start });
        let rest = unroll.plan.buffers[from].bytes.saturating_sub(start);
        let given = unroll.optional_bytes(self.bytes.as_ref(), 1)?;
        let bytes = given.unwrap_or(rest.max(1));
        let at = self
            .bytes
            .as_ref()
            .or(self.offset.as_ref())
            .map_or(self.from.loc, |expr| expr.loc);
        unroll.inside(from, start, bytes, at, "copy")?;
        let at = self
            .to_offset
            .as_ref()
            .or(self.bytes.as_ref())
            .map_or(to_loc, |expr| expr.loc);
        unroll.inside(to, to_start, bytes, at, "copy")?;
        let overlaps = start < to_start + bytes && to_start < start + bytes;
        if self.direction == Direction::D2D && from == to && overlaps {
            unroll.error(
                to_loc,
                format!(
                    "this copies {} onto itself",
                    quoted(&unroll.plan.buffers[from].name)
                ),
            )?;
        }
        let chunk = unroll.optional_bytes(self.chunk.as_ref(), 1)?.unwrap_or(0);
        let chunk = if chunk >= bytes { 0 } else { chunk };
        let stream = unroll.stream(self.stream.as_ref(), Some(device))?;
        unroll.captured_use(stream, loc)?;
        unroll.feed(stream);
        let kind = OpKind::Copy(CopySpec {
            direction: self.direction,
            from: MemRef {
                buffer: from,
                offset: start,
            },
            to: MemRef {
                buffer: to,
                offset: to_start,
            },
            bytes,
            chunk,
            stream,
            is_async: !self.is_sync,
        });
        unroll.emit_many(kind, loc, kind.pieces().left())
    }
}

impl CopyStep {
    /// Checks that both ends exist and lie where the direction says; the device whose stream it runs on.
    fn sides(
        &self,
        unroll: &mut Unroll<'_, '_>,
        from: BufferId,
        to: BufferId,
        to_loc: Loc,
    ) -> Option<u32> {
        let is_one_managed = from == to && unroll.plan.buffers[from].host == HostMemory::Managed;
        let from_loc = self.from.loc;
        if is_one_managed {
            let message = format!(
                "{} is managed memory: its two sides are one",
                quoted(&unroll.plan.buffers[from].name)
            );
            unroll.error_help(
                from_loc,
                message,
                "say where to copy to: to = \"another_buffer\"",
            )?;
        }
        match self.direction {
            Direction::H2D => {
                unroll.host_side(from, from_loc)?;
                unroll.device_side(to, to_loc)
            }
            Direction::D2H => {
                let device = unroll.device_side(from, from_loc)?;
                unroll.host_side(to, to_loc)?;
                Some(device)
            }
            direction => {
                let (source, target) = (
                    unroll.device_side(from, from_loc)?,
                    unroll.device_side(to, to_loc)?,
                );
                if (source == target) == (direction == Direction::D2D) {
                    return Some(source);
                }
                let (message, help) = if source == target {
                    (
                        format!("both buffers are on device {source}"),
                        "copy within a device with d2d",
                    )
                } else {
                    (
                        format!("the buffers are on devices {source} and {target}"),
                        "copy between devices with p2p",
                    )
                };
                unroll.error_help(from_loc.span_to(to_loc), message, help);
                None
            }
        }
    }
}
