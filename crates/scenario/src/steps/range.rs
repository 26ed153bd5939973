//! `range`: a named phase of the host's time.

use super::common::DO;
use super::*;

const KEY: Key = key!(required "range" Name, "Names a phase of the host's time.");
pub(super) const FORM: Form = Form::new(KEY, &[DO], lower);

fn lower<'f>(step: &'f Step, unroll: &mut Unroll<'_, 'f>) -> Option<()> {
    unroll.not_captured("a range of host time", step.loc)?;
    let phase = unroll.phase(step.name("range")?)?;
    unroll.emit(OpKind::RangeBegin(phase), step.loc)?;
    super::lower(step.steps("do"), unroll);
    unroll.emit(OpKind::RangeEnd, step.loc)
}
