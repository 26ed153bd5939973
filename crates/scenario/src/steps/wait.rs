//! `wait`: makes a stream wait for an event.

use super::super::plan::OpKind;
use super::super::syntax::keys::key;
use super::common::{NamedStep, STREAM};
use super::{Form, Loc, Unroll};

pub(super) const FORM: Form = Form {
    head: key!(required "wait" Name, "Makes a stream wait for an event."),
    keys: &[STREAM],
    read: |reader, fields, head| NamedStep::read(reader, fields, head, lower),
};

fn lower(step: &NamedStep, unroll: &mut Unroll<'_, '_>, loc: Loc) -> Option<()> {
    let is_capturing = unroll.is_capturing();
    let event = if is_capturing {
        unroll.event(&step.name)?
    } else {
        unroll.recorded_event(&step.name)?
    };
    let stream = unroll.stream(step.stream.as_ref(), None)?;
    unroll.mention(stream, loc, "told to wait");
    if is_capturing {
        unroll.captured_wait(event, stream, loc)?;
    }
    unroll.emit(OpKind::Wait { event, stream }, loc)
}
