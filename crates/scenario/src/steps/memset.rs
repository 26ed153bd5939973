//! `memset`: fills the device side of a buffer.

use super::super::plan::MemRef;
use super::common::{BYTES, OFFSET, STREAM};
use super::*;

pub(super) const FORM: Form = Form::new(
    key!(required "memset" Buffer, "Fills the device side with a byte."),
    &[
        key!("value" Number, "The byte. Default: 0."),
        STREAM,
        OFFSET,
        BYTES,
    ],
    lower,
);

fn lower<'f>(step: &'f Step, unroll: &mut Unroll<'_, 'f>) -> Option<()> {
    let to = step.buffer()?;
    let buffer = unroll.buffer(to)?;
    let device = unroll.device_side(buffer, to.loc)?;
    let (offset, bytes) = unroll.part(step, buffer)?;
    let (of_bytes, of_offset) = (step.expr("bytes"), step.expr("offset"));
    let at = of_bytes.or(of_offset).map_or(to.loc, |expr| expr.loc);
    unroll.inside(buffer, offset, bytes, at, "memset")?;
    let value = unroll.amount(step.expr("value"), 255, "a byte")?;
    let stream = unroll.fed_stream(step, Some(device))?;
    let kind = OpKind::Memset {
        to: MemRef { buffer, offset },
        bytes,
        value: value.unwrap_or(0) as u8,
        stream,
    };
    unroll.emit(kind, step.loc)
}
