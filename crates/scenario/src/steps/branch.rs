//! `if`: steps only where a condition holds.

use super::common::DO;
use super::*;

const KEY: Key = key!(required "if" Condition, "Does steps only where a condition holds.");
pub(super) const FORM: Form = Form::new(
    KEY,
    &[DO, key!("else" Steps, "The steps where it does not.")],
    lower,
);

fn lower<'f>(step: &'f Step, unroll: &mut Unroll<'_, 'f>) -> Option<()> {
    let holds = unroll.eval(step.expr("if")?)?.is_true();
    super::lower(step.steps(if holds { "do" } else { "else" }), unroll);
    Some(())
}
