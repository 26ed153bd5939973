//! The head of a loop.

use super::super::expr::parse::{self, is_identifier};
use super::super::syntax::decl::Named;
use super::super::syntax::reader::Field;
use super::*;

/// "i in 0..n" or "i in 0..n step 2".
pub(super) struct Loop {
    pub(super) variable: Named,
    pub(super) from: Expr,
    pub(super) to: Expr,
    pub(super) step: Option<Expr>,
}

impl Loop {
    pub(super) fn read(reader: &mut Reader<'_>, head: Field<'_>) -> Option<Loop> {
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
            let message = format!("{} cannot be a loop variable", quoted(name));
            reader.error_help(piece.loc(0, name_end), message, SHAPE);
            return None;
        }
        let step = text[dots..].find(" step ").map(|found| dots + found);
        let mut part = |from, to| reader.parsed(parse::expression(piece.slice(from, to)));
        let from = part(name_end + 4, dots);
        let to = part(dots + 2, step.unwrap_or(text.len()));
        let step = match step {
            Some(step) => Some(part(step + 6, text.len())?),
            None => None,
        };
        let start = text.len() - text.trim_start().len();
        Some(Loop {
            variable: Named {
                text: name.to_owned(),
                loc: piece.loc(start, start + name.len()),
            },
            from: from?,
            to: to?,
            step,
        })
    }

    /// Checks its names. Its variable is known from then on.
    pub(super) fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        names.expr(&self.from);
        names.expr(&self.to);
        names.optional(self.step.as_ref());
        names.variable(&self.variable.text, self.variable.loc);
        names.loops.push(&self.variable.text);
    }
}
