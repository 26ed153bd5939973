//! Copies and memsets.

use super::super::diagnostics::{Diagnostic, quoted};
use super::super::expr::parse::Template;
use super::super::expr::{Expr, Loc};
use super::super::file::{BufferRef, CopyStep};
use super::super::plan::{BufferId, HostMemory, MemRef, OpKind};
use super::Unroll;
use crate::activity::Direction;

impl<'f> Unroll<'_, 'f> {
    pub(super) fn copy(&mut self, copy: &'f CopyStep, loc: Loc) -> Option<()> {
        if copy.is_sync {
            self.not_captured("a synchronous copy", loc)?;
        }
        let from = self.buffer(&copy.from)?;
        let to = match &copy.to {
            Some(to) => self.buffer(to)?,
            None => from,
        };
        let to_loc = copy.to.as_ref().map_or(copy.from.loc, |to| to.loc);
        let device = self.sides(copy, from, to, to_loc)?;
        let start = self.optional_bytes(copy.offset.as_ref(), 0)?.unwrap_or(0);
        let to_start = self.optional_bytes(copy.to_offset.as_ref(), 0)?;
        let to_start = to_start.unwrap_or(if copy.to.is_some() { 0 } else { start });
        let rest = self.plan.buffers[from].bytes.saturating_sub(start);
        let given = self.optional_bytes(copy.bytes.as_ref(), 1)?;
        let bytes = given.unwrap_or(rest.max(1));
        let at = copy
            .bytes
            .as_ref()
            .or(copy.offset.as_ref())
            .map_or(copy.from.loc, |expr| expr.loc);
        self.inside(from, start, bytes, at, "copy")?;
        let at = copy
            .to_offset
            .as_ref()
            .or(copy.bytes.as_ref())
            .map_or(to_loc, |expr| expr.loc);
        self.inside(to, to_start, bytes, at, "copy")?;
        let overlaps = start < to_start + bytes && to_start < start + bytes;
        if copy.direction == Direction::D2D && from == to && overlaps {
            self.error(
                to_loc,
                format!(
                    "this copies {} onto itself",
                    quoted(&self.plan.buffers[from].name)
                ),
            );
            return None;
        }
        let chunk = self.optional_bytes(copy.chunk.as_ref(), 1)?.unwrap_or(0);
        let chunk = if chunk >= bytes { 0 } else { chunk };
        let stream = self.stream(copy.stream.as_ref(), Some(device))?;
        self.captured_use(stream, loc)?;
        self.feed(stream);
        let kind = OpKind::Copy {
            direction: copy.direction,
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
            is_async: !copy.is_sync,
        };
        self.emit_many(kind, loc, kind.pieces().left())
    }

    /// Checks that both ends exist and lie where the direction says; the device whose stream it runs on.
    fn sides(&mut self, copy: &CopyStep, from: BufferId, to: BufferId, to_loc: Loc) -> Option<u32> {
        let is_one_managed = from == to && self.plan.buffers[from].host == HostMemory::Managed;
        let from_loc = copy.from.loc;
        if is_one_managed {
            let message = format!(
                "{} is managed memory: its two sides are one",
                quoted(&self.plan.buffers[from].name)
            );
            self.report(
                Diagnostic::error(from_loc.range(), message)
                    .help("say where to copy to: to = \"another_buffer\""),
            );
            return None;
        }
        match copy.direction {
            Direction::H2D => {
                self.host_side(from, from_loc)?;
                self.device_side(to, to_loc)
            }
            Direction::D2H => {
                let device = self.device_side(from, from_loc)?;
                self.host_side(to, to_loc)?;
                Some(device)
            }
            direction => {
                let (source, target) = (
                    self.device_side(from, from_loc)?,
                    self.device_side(to, to_loc)?,
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
                self.report(Diagnostic::error(from_loc.to(to_loc).range(), message).help(help));
                None
            }
        }
    }

    /// Checks that bytes lie in a buffer.
    fn inside(
        &mut self,
        buffer: BufferId,
        start: u64,
        bytes: u64,
        loc: Loc,
        what: &str,
    ) -> Option<()> {
        let spec = &self.plan.buffers[buffer];
        let end = start.checked_add(bytes);
        if end.is_some_and(|end| end <= spec.bytes) {
            return Some(());
        }
        let message = format!(
            "this {what} of {bytes} B at byte {start} goes beyond {}, which has {} B",
            quoted(&spec.name),
            spec.bytes
        );
        self.error(loc, message);
        None
    }

    /// `numbers` are value, offset and bytes.
    pub(super) fn memset(
        &mut self,
        to: &'f BufferRef,
        numbers: [Option<&Expr>; 3],
        stream: Option<&Template>,
        loc: Loc,
    ) -> Option<()> {
        let [value, offset, bytes] = numbers;
        let buffer = self.buffer(to)?;
        let device = self.device_side(buffer, to.loc)?;
        let start = self.optional_bytes(offset, 0)?.unwrap_or(0);
        let rest = self.plan.buffers[buffer].bytes.saturating_sub(start);
        let at = bytes.or(offset).map_or(to.loc, |expr| expr.loc);
        let bytes = self.optional_bytes(bytes, 1)?.unwrap_or(rest.max(1));
        self.inside(buffer, start, bytes, at, "memset")?;
        let value = match value {
            Some(value) => self.integer(value, 0..=255, "a byte")? as u8,
            None => 0,
        };
        let stream = self.stream(stream, Some(device))?;
        self.captured_use(stream, loc)?;
        self.feed(stream);
        let to = MemRef {
            buffer,
            offset: start,
        };
        self.emit(
            OpKind::Memset {
                to,
                bytes,
                value,
                stream,
            },
            loc,
        )
    }
}
