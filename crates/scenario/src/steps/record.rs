//! `record`: records an event on a stream.

use super::common::STREAM;
use super::*;

const KEY: Key = key!(required "record" Name, "Records an event on a stream.");
pub(super) const FORM: Form = Form::new(KEY, &[STREAM], lower);

fn lower<'f>(step: &'f Step, unroll: &mut Unroll<'_, 'f>) -> Option<()> {
    let name = step.name("record")?;
    let event = unroll.event(name)?;
    let stream = unroll.stream(step.stream(), None)?;
    unroll.mention(stream, step.loc, "recorded on");
    if unroll.is_capturing() {
        unroll.captured_record(event, stream, step.loc)?;
    } else {
        unroll.objects.recorded.entry(event).or_insert(name.loc);
    }
    unroll.emit(OpKind::Record { event, stream }, step.loc)
}
