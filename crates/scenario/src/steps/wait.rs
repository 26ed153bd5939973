//! `wait`: makes a stream wait for an event.

use super::common::STREAM;
use super::*;

const KEY: Key = key!(required "wait" Name, "Makes a stream wait for an event.");
pub(super) const FORM: Form = Form::new(KEY, &[STREAM], lower);

fn lower<'f>(step: &'f Step, unroll: &mut Unroll<'_, 'f>) -> Option<()> {
    let is_capturing = unroll.is_capturing();
    let name = step.name("wait")?;
    let event = if is_capturing {
        unroll.event(name)?
    } else {
        unroll.recorded_event(name)?
    };
    let stream = unroll.stream(step.stream(), None)?;
    unroll.mention(stream, step.loc, "told to wait");
    if is_capturing {
        unroll.captured_wait(event, stream, step.loc)?;
    }
    unroll.emit(OpKind::Wait { event, stream }, step.loc)
}
