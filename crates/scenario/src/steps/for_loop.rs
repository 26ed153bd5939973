//! `for`: repeats steps.

use super::super::diagnostics::quoted;
use super::super::expr::Expr;
use super::super::expr::parse::{self, is_identifier};
use super::super::expr::value::{Unit, Value};
use super::super::plan::MAX_OPS;
use super::super::syntax::decl::Named;
use super::super::syntax::keys::key;
use super::common::{DO, body};
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

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Option<()> {
        let from = unroll.whole_number(&self.from, "the start of a loop")?;
        let to = unroll.whole_number(&self.to, "the end of a loop")?;
        let step = match &self.step {
            Some(expr) => {
                let step = unroll.whole_number(expr, "the step of a loop")?;
                if step == 0 {
                    unroll.error(expr.loc, "this loop never ends: its step is 0")?;
                }
                step
            }
            None => 1,
        };
        let iterations = iterations(from, to, step);
        if iterations > MAX_OPS as u64 {
            unroll.has_stopped = true;
            let message = format!(
                "this loop makes at least {iterations} operations; a variant may have {MAX_OPS}"
            );
            let help =
                "fewer iterations, or one step with `chunk` in the place of a loop of copies";
            unroll.error_help(loc, message, help)?;
        }
        let name = self.variable.text.as_str();
        let mut value = from;
        for _ in 0..iterations {
            let left = unroll.ops_left;
            unroll.scope.push((name, Value::Int(value, Unit::None)));
            super::lower(&self.body, unroll);
            unroll.scope.pop();
            if unroll.ops_left == left {
                // An empty iteration costs time, too.
                unroll.spend(1, loc);
            }
            if unroll.has_stopped {
                return None;
            }
            value = value.saturating_add(step);
        }
        Some(())
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
