//! How many operations steps unroll to, found before anything is unrolled, so that a loop of 10^9 by
//! accident costs an error and not the machine's memory.

use super::super::diagnostics::Diagnostic;
use super::super::expr::value::{Unit, Value};
use super::super::expr::{Expr, Loc};
use super::super::file::{Loop, Step, StepKind};
use super::{MAX_OPS, Unroll};

/// A loop that is too long.
struct TooMany {
    loc: Loc,
    count: u64,
}

impl<'f> Unroll<'_, 'f> {
    /// Whether the steps unroll to as many operations as may be. Reports it when not.
    pub(super) fn fits(&mut self, steps: &'f [Step]) -> bool {
        match self.count(steps) {
            Ok(_) => true,
            Err(TooMany { loc, count }) => {
                let message = format!(
                    "this loop makes at least {count} operations; a variant may have {MAX_OPS}"
                );
                let help =
                    "fewer iterations, or one step with `chunk` in the place of a loop of copies";
                self.report(Diagnostic::error(loc.range(), message).help(help));
                false
            }
        }
    }

    /// Operations of steps. What cannot be evaluated counts as nothing here; unrolling reports it.
    fn count(&mut self, steps: &'f [Step]) -> Result<u64, TooMany> {
        let mut total = 0u64;
        for step in steps {
            total = total.saturating_add(match &step.kind {
                StepKind::For(inner) => self.count_loop(inner, step.loc)?,
                StepKind::If {
                    condition,
                    body,
                    otherwise,
                } => {
                    let holds = self.quiet(condition).is_some_and(Value::is_true);
                    self.count(if holds { body } else { otherwise })?
                }
                StepKind::Capture { body, .. } | StepKind::Range { body, .. } => {
                    self.count(body)?
                }
                _ => 1,
            });
        }
        Ok(total)
    }

    fn count_loop(&mut self, inner: &'f Loop, loc: Loc) -> Result<u64, TooMany> {
        let whole = |value| match value {
            Value::Int(value, _) => Some(value),
            Value::Float(..) => None,
        };
        let from = self.quiet(&inner.from).and_then(whole);
        let to = self.quiet(&inner.to).and_then(whole);
        let step = match &inner.step {
            Some(step) => self.quiet(step).and_then(whole),
            None => Some(1),
        };
        let (Some(from), Some(to), Some(step)) = (from, to, step) else {
            return Ok(0);
        };
        let iterations = iterations(from, to, step);
        let name = inner.variable.text.as_str();
        let limit = MAX_OPS as u64;
        let mut total = 0u64;
        if depends_on(&inner.body, name) {
            let mut value = from;
            for _ in 0..iterations {
                self.scope.push((name, Value::Int(value, Unit::None)));
                let once = self.count(&inner.body);
                self.scope.pop();
                total = total.saturating_add(once?.max(1));
                if total > limit {
                    return Err(TooMany { loc, count: total });
                }
                value = value.saturating_add(step);
            }
        } else if iterations > 0 {
            self.scope.push((name, Value::Int(from, Unit::None)));
            let once = self.count(&inner.body);
            self.scope.pop();
            // An empty iteration costs time, too.
            total = iterations.saturating_mul(once?.max(1));
        }
        if total > limit {
            return Err(TooMany { loc, count: total });
        }
        Ok(total)
    }

    /// A value, or nothing and no report.
    fn quiet(&self, expr: &Expr) -> Option<Value> {
        let lookup = |name: &str| {
            let found = self.scope.iter().rev().find(|(known, _)| *known == name);
            found.map(|(_, value)| *value)
        };
        expr.eval(&lookup).ok()
    }
}

/// How often a loop runs; a step of 0 counts as never, and is an error elsewhere.
pub(super) fn iterations(from: i64, to: i64, step: i64) -> u64 {
    let distance = if step > 0 {
        i128::from(to) - i128::from(from)
    } else {
        i128::from(from) - i128::from(to)
    };
    if step == 0 || distance <= 0 {
        return 0;
    }
    let by = i128::from(step).abs();
    u64::try_from((distance + by - 1) / by).unwrap_or(u64::MAX)
}

/// Whether the number of operations of steps can depend on a loop variable.
fn depends_on(steps: &[Step], name: &str) -> bool {
    let uses = |expr: &Expr| {
        let mut found = false;
        expr.names(&mut |used, _| found |= used == name);
        found
    };
    steps.iter().any(|step| match &step.kind {
        StepKind::For(inner) => {
            uses(&inner.from)
                || uses(&inner.to)
                || inner.step.as_ref().is_some_and(uses)
                || depends_on(&inner.body, name)
        }
        StepKind::If {
            condition,
            body,
            otherwise,
        } => uses(condition) || depends_on(body, name) || depends_on(otherwise, name),
        StepKind::Capture { body, .. } | StepKind::Range { body, .. } => depends_on(body, name),
        _ => false,
    })
}
