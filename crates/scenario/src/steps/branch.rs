//! `if`: steps only where a condition holds.

use super::super::expr::Expr;
use super::super::syntax::keys::key;
use super::common::{DO, body};
use super::{Form, Loc, Names, Step, StepKind, Unroll};

pub(super) const FORM: Form = Form {
    head: key!(required "if" Condition, "Does steps only where a condition holds."),
    keys: &[DO, key!("else" Steps, "The steps where it does not.")],
    read: |reader, fields, head| {
        Some(Box::new(If {
            condition: reader.expr(head)?,
            body: body(reader, fields, "do"),
            otherwise: body(reader, fields, "else"),
        }))
    },
};

struct If {
    condition: Expr,
    body: Vec<Step>,
    otherwise: Vec<Step>,
}

impl If {
    fn steps(&self, holds: bool) -> &[Step] {
        if holds { &self.body } else { &self.otherwise }
    }
}

impl StepKind for If {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        names.expr(&self.condition);
        super::resolve(&self.body, names);
        super::resolve(&self.otherwise, names);
    }

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, _loc: Loc) -> Option<()> {
        let holds = unroll.eval(&self.condition)?.is_true();
        super::lower(self.steps(holds), unroll);
        Some(())
    }
}
