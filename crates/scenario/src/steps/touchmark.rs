//! `touchmark`: records an event on a stream.

use super::super::expr::parse::Template;
use super::super::file::keys::key;
use super::super::plan::OpKind;
use super::common::{STREAM, stream};
use super::{Form, Loc, Names, StepKind, Unroll};

pub(super) const FORM: Form = Form {
    head: key!(required "touchmark" Name, "Records an event on a stream."),
    keys: &[STREAM],
    read: |reader, fields, head| {
        Some(Box::new(Record {
            event: reader.template(head)?,
            stream: stream(reader, fields),
        }))
    },
};

struct Record {
    event: Template,
    stream: Option<Template>,
}

impl StepKind for Record {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        names.template(&self.event);
        names.stream(self.stream.as_ref());
    }

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Option<()> {
        let event = unroll.event(&self.event)?;
        let stream = unroll.stream(self.stream.as_ref(), None)?;
        unroll.mention(stream, loc, "recorded on");
        if unroll.is_capturing() {
            unroll.captured_record(event, stream, loc)?;
        } else {
            unroll.objects.recorded.insert(event);
        }
        unroll.emit(OpKind::Touch { event, stream }, loc)
    }
}
