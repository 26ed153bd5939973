//! `wait`: makes a stream wait for an event.

use super::super::expr::parse::Template;
use super::super::file::keys::key;
use super::super::plan::OpKind;
use super::common::{STREAM, stream};
use super::{Form, Loc, Names, StepKind, Unroll};

pub(super) const FORM: Form = Form {
    head: key!(required "wait" Name, "Makes a stream wait for an event."),
    keys: &[STREAM],
    read: |reader, fields, head| {
        Some(Box::new(Wait {
            event: reader.template(head)?,
            stream: stream(reader, fields),
        }))
    },
};

struct Wait {
    event: Template,
    stream: Option<Template>,
}

impl StepKind for Wait {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        names.template(&self.event);
        names.stream(self.stream.as_ref());
    }

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Option<()> {
        let is_capturing = unroll.is_capturing();
        let event = if is_capturing {
            unroll.event(&self.event)?
        } else {
            unroll.recorded_event(&self.event)?
        };
        let stream = unroll.stream(self.stream.as_ref(), None)?;
        unroll.mention(stream, loc, "told to wait");
        if is_capturing {
            unroll.captured_wait(event, stream, loc)?;
        }
        unroll.emit(OpKind::Wait { event, stream }, loc)
    }
}
