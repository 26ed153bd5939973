//! `memset`: fills the device side of a buffer.

use super::super::expr::Expr;
use super::super::expr::parse::Template;
use super::super::plan::{MemRef, OpKind};
use super::super::syntax::decl::BufferRef;
use super::super::syntax::keys::key;
use super::common::{BYTES, OFFSET, STREAM, stream};
use super::{Form, Loc, Names, StepKind, Unroll};

pub(super) const FORM: Form = Form {
    head: key!(required "memset" Buffer, "Fills the device side with a byte."),
    keys: &[
        key!("value" Number, "The byte. Default: 0."),
        STREAM,
        OFFSET,
        BYTES,
    ],
    read: |reader, fields, head| {
        Some(Box::new(Memset {
            to: reader.buffer(head)?,
            value: reader.optional(fields, "value"),
            offset: reader.optional(fields, "offset"),
            bytes: reader.optional(fields, "bytes"),
            stream: stream(reader, fields),
        }))
    },
};

struct Memset {
    to: BufferRef,
    value: Option<Expr>,
    offset: Option<Expr>,
    bytes: Option<Expr>,
    stream: Option<Template>,
}

impl StepKind for Memset {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        names.buffer(&self.to);
        for expr in [&self.value, &self.offset, &self.bytes] {
            names.optional(expr.as_ref());
        }
        names.stream(self.stream.as_ref());
    }

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Option<()> {
        let (offset, bytes) = (self.offset.as_ref(), self.bytes.as_ref());
        let buffer = unroll.buffer(&self.to)?;
        let device = unroll.device_side(buffer, self.to.loc)?;
        let start = unroll.optional_bytes(offset, 0)?.unwrap_or(0);
        let rest = unroll.plan.buffers[buffer].bytes.saturating_sub(start);
        let at = bytes.or(offset).map_or(self.to.loc, |expr| expr.loc);
        let bytes = unroll.optional_bytes(bytes, 1)?.unwrap_or(rest.max(1));
        unroll.inside(buffer, start, bytes, at, "memset")?;
        let value = unroll.amount(self.value.as_ref(), 255, "a byte")?;
        let stream = unroll.stream(self.stream.as_ref(), Some(device))?;
        unroll.captured_use(stream, loc)?;
        unroll.feed(stream);
        let to = MemRef {
            buffer,
            offset: start,
        };
        let kind = OpKind::Memset {
            to,
            bytes,
            value: value.unwrap_or(0) as u8,
            stream,
        };
        unroll.emit(kind, loc)
    }
}
