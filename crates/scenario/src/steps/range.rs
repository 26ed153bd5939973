//! `range`: a named phase of the host's time.

use super::super::expr::parse::Template;
use super::super::plan::OpKind;
use super::super::syntax::keys::key;
use super::common::{DO, body};
use super::{Form, Loc, Names, Step, StepKind, Unroll};

pub(super) const FORM: Form = Form {
    head: key!(required "range" Name, "Names a phase of the host's time."),
    keys: &[DO],
    read: |reader, fields, head| {
        Some(Box::new(Range {
            name: reader.template(head)?,
            body: body(reader, fields, "do"),
        }))
    },
};

struct Range {
    name: Template,
    body: Vec<Step>,
}

impl StepKind for Range {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        names.template(&self.name);
        super::resolve(&self.body, names);
    }

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Option<()> {
        unroll.not_captured("a range of host time", loc)?;
        let phase = unroll.phase(&self.name)?;
        unroll.emit(OpKind::RangeBegin(phase), loc)?;
        super::lower(&self.body, unroll);
        unroll.emit(OpKind::RangeEnd, loc)
    }
}
