//! `record`: records an event on a stream.

use super::super::plan::OpKind;
use super::super::syntax::keys::key;
use super::common::{NamedStep, STREAM};
use super::{Form, Loc, Unroll};

pub(super) const FORM: Form = Form {
    head: key!(required "record" Name, "Records an event on a stream."),
    keys: &[STREAM],
    read: |reader, fields, head| NamedStep::read(reader, fields, head, lower),
};

fn lower(step: &NamedStep, unroll: &mut Unroll<'_, '_>, loc: Loc) -> Option<()> {
    let event = unroll.event(&step.name)?;
    let stream = unroll.stream(step.stream.as_ref(), None)?;
    unroll.mention(stream, loc, "recorded on");
    if unroll.is_capturing() {
        unroll.captured_record(event, stream, loc)?;
    } else {
        unroll.objects.recorded.insert(event);
    }
    unroll.emit(OpKind::Record { event, stream }, loc)
}
