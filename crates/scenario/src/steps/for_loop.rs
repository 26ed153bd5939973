//! `for`: repeats steps.

use super::super::diagnostics::quoted;
use super::super::expr::Expr;
use super::super::expr::parse::{self, is_identifier};
use super::super::expr::value::{Unit, Value};
use super::super::file::decl::Named;
use super::super::file::keys::key;
use super::super::plan::MAX_OPS;
use super::common::{DO, body};
use super::count::{self, TooMany};
use super::{Field, Fields, Form, Loc, Names, Reader, Step, StepKind, Unroll};

pub(super) const FORM: Form = Form {
    head: key!(required "for" Loop, "Repeats steps: \"i in 0..n\" or \"i in 0..n step 2\"."),
    keys: &[DO],
    read: |reader, fields, head| Some(Box::new(read(reader, fields, head)?)),
};

struct For {
    variable: Named,
    from: Expr,
    to: Expr,
    step: Option<Expr>,
    body: Vec<Step>,
}

/// "i in 0..n" or "i in 0..n step 2".
fn read(reader: &mut Reader<'_>, fields: &Fields<'_>, head: Field<'_>) -> Option<For> {
    const SHAPE: &str = "a loop is \"i in 0..n\" or \"i in 0..n step 2\"";
    let piece = reader.piece(head, SHAPE)?;
    let text = piece.text;
    let parts = text.find(" in ").zip(text.find(".."));
    let Some((name_end, dots)) = parts.filter(|(name_end, dots)| name_end + 4 <= *dots) else {
        reader.error_help(head.loc, format!("{} is not a loop", quoted(text)), SHAPE);
        return None;
    };
    let name = text[..name_end].trim();
    if !is_identifier(name) {
        reader.error_help(
            piece.loc(0, name_end),
            format!("{} cannot be a loop variable", quoted(name)),
            SHAPE,
        );
        return None;
    }
    let (to_end, step) = match text[dots..].find(" step ") {
        Some(found) => (
            dots + found,
            Some(piece.slice(dots + found + 6, text.len())),
        ),
        None => (text.len(), None),
    };
    let from = reader.parsed(parse::expression(piece.slice(name_end + 4, dots)));
    let to = reader.parsed(parse::expression(piece.slice(dots + 2, to_end)));
    let step = match step {
        Some(step) => Some(reader.parsed(parse::expression(step))?),
        None => None,
    };
    let start = text.len() - text.trim_start().len();
    Some(For {
        variable: Named {
            text: name.to_owned(),
            loc: piece.loc(start, start + name.len()),
        },
        from: from?,
        to: to?,
        step,
        body: body(reader, fields, "do"),
    })
}

impl StepKind for For {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        names.expr(&self.from);
        names.expr(&self.to);
        names.optional(self.step.as_ref());
        names.variable(&self.variable.text, self.variable.loc);
        names.loops.push(&self.variable.text);
        super::resolve(&self.body, names);
        names.loops.pop();
    }

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, _loc: Loc) -> Option<()> {
        let from = unroll.whole(&self.from, "the start of a loop")?;
        let to = unroll.whole(&self.to, "the end of a loop")?;
        let step = match &self.step {
            Some(expr) => {
                let step = unroll.whole(expr, "the step of a loop")?;
                if step == 0 {
                    unroll.error(expr.loc, "this loop never ends: its step is 0")?;
                }
                step
            }
            None => 1,
        };
        let name = self.variable.text.as_str();
        let mut value = from;
        for _ in 0..iterations(from, to, step) {
            unroll.scope.push((name, Value::Int(value, Unit::None)));
            super::lower(&self.body, unroll);
            unroll.scope.pop();
            if unroll.has_stopped {
                return None;
            }
            value = value.saturating_add(step);
        }
        Some(())
    }

    fn count<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Result<u64, TooMany> {
        let whole = |value| match value {
            Value::Int(value, _) => Some(value),
            Value::Float(..) => None,
        };
        let from = unroll.quiet(&self.from).and_then(whole);
        let to = unroll.quiet(&self.to).and_then(whole);
        let step = match &self.step {
            Some(step) => unroll.quiet(step).and_then(whole),
            None => Some(1),
        };
        let (Some(from), Some(to), Some(step)) = (from, to, step) else {
            return Ok(0);
        };
        let iterations = iterations(from, to, step);
        let name = self.variable.text.as_str();
        let limit = MAX_OPS as u64;
        let mut total = 0u64;
        let mut once = |value| {
            unroll.scope.push((name, Value::Int(value, Unit::None)));
            let once = count::count(&self.body, unroll);
            unroll.scope.pop();
            // An empty iteration costs time, too.
            once.map(|count| count.max(1))
        };
        if count::depends_on(&self.body, name) {
            let mut value = from;
            for _ in 0..iterations {
                total = total.saturating_add(once(value)?);
                if total > limit {
                    return Err(TooMany { loc, count: total });
                }
                value = value.saturating_add(step);
            }
        } else if iterations > 0 {
            total = iterations.saturating_mul(once(from)?);
        }
        if total > limit {
            return Err(TooMany { loc, count: total });
        }
        Ok(total)
    }

    fn count_depends_on(&self, variable: &str) -> bool {
        self.from.uses(variable)
            || self.to.uses(variable)
            || self.step.as_ref().is_some_and(|step| step.uses(variable))
            || count::depends_on(&self.body, variable)
    }
}

/// How often a loop runs; a step of 0 counts as never, and is an error elsewhere.
fn iterations(from: i64, to: i64, step: i64) -> u64 {
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
