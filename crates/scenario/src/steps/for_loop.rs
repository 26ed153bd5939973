//! `for`: repeats steps.

use super::super::expr::value::{Unit, Value};
use super::super::plan::MAX_OPS;
use super::common::DO;
use super::read::Given;
use super::*;

const KEY: Key = key!(required "for" Loop, "Repeats steps: \"i in 0..n\" or \"i in 0..n step 2\".");
pub(super) const FORM: Form = Form::new(KEY, &[DO], lower);

fn lower<'f>(step: &'f Step, unroll: &mut Unroll<'_, 'f>) -> Option<()> {
    let Some(Given::Loop(head)) = step.get("for") else {
        return None;
    };
    let from = unroll.whole_number(&head.from, "the start of a loop")?;
    let to = unroll.whole_number(&head.to, "the end of a loop")?;
    let by = match &head.step {
        Some(expr) => {
            let by = unroll.whole_number(expr, "the step of a loop")?;
            if by == 0 {
                return unroll.error(expr.loc, "this loop never ends: its step is 0");
            }
            by
        }
        None => 1,
    };
    let iterations = iterations(from, to, by);
    if iterations == 0 && from != to && !unroll.shared.diagnostics.has_errors() {
        let message = format!("this loop never runs: it goes from {from} to {to}");
        unroll.report(Diagnostic::warning(head.to.loc.range(), message));
    }
    if iterations > MAX_OPS as u64 {
        unroll.has_stopped = true;
        let message = format!(
            "this loop makes at least {iterations} operations; a variant may have {MAX_OPS}"
        );
        let help = "fewer iterations, or one step with `chunk` in the place of a loop of copies";
        return unroll.error_help(step.loc, message, help);
    }
    let mut value = from;
    for _ in 0..iterations {
        let left = unroll.ops_left;
        let variable = Value::Int(value, Unit::None);
        unroll
            .scope
            .push((&head.variable.text, variable, value == from));
        super::lower(step.steps("do"), unroll);
        unroll.scope.pop();
        if unroll.ops_left == left {
            // An empty iteration costs time, too.
            unroll.spend(1, step.loc);
        }
        if unroll.has_stopped {
            return None;
        }
        value = value.saturating_add(by);
    }
    Some(())
}

/// How often a loop runs; a step of 0 counts as never, and is an error elsewhere.
fn iterations(from: i64, to: i64, step: i64) -> u64 {
    let distance = i128::from(to) - i128::from(from);
    let (distance, by) = (distance * i128::from(step.signum()), i128::from(step).abs());
    if distance <= 0 {
        return 0;
    }
    u64::try_from((distance + by - 1) / by).unwrap_or(u64::MAX)
}
