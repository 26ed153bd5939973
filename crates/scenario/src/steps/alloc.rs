//! `alloc` and `free`: the device side of a buffer, plainly or from the device's pool.

use super::super::diagnostics::{Diagnostic, quoted};
use super::super::expr::parse::Template;
use super::super::file::decl::BufferRef;
use super::super::file::keys::key;
use super::super::plan::{BufferId, OpKind, StreamId};
use super::common::stream;
use super::{Field, Fields, Form, Key, Loc, Names, Reader, StepKind, Unroll};

pub(super) const ALLOC: Form = Form {
    head: key!(required "alloc" Buffer, "Allocates the device side of a buffer with alloc = \"step\"."),
    keys: KEYS,
    read: |reader, fields, head| Some(Box::new(Alloc(memory(reader, fields, head)?))),
};

pub(super) const FREE: Form = Form {
    head: key!(required "free" Buffer, "Frees it."),
    keys: KEYS,
    read: |reader, fields, head| Some(Box::new(Free(memory(reader, fields, head)?))),
};

const KEYS: &[Key] = &[
    key!("stream" Name, "Makes it stream-ordered, from the device's pool. Default: the plain call, which is not."),
];

struct Alloc(Memory);

struct Free(Memory);

/// Which buffer, and in the order of which stream.
struct Memory {
    buffer: BufferRef,
    stream: Option<Template>,
}

fn memory(reader: &mut Reader<'_>, fields: &Fields<'_>, head: Field<'_>) -> Option<Memory> {
    Some(Memory {
        buffer: reader.buffer(head)?,
        stream: stream(reader, fields),
    })
}

impl StepKind for Alloc {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        self.0.resolve(names);
    }

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Option<()> {
        unroll.not_captured("an allocation", loc)?;
        let (buffer, stream) = self.0.ids(unroll, loc)?;
        if let Some(first) = unroll.objects.alive.insert(buffer, loc) {
            let message = format!(
                "{} is allocated already",
                quoted(&unroll.plan.buffers[buffer].name)
            );
            unroll.report(
                Diagnostic::error(loc.range(), message)
                    .related(first.range(), "it is allocated here"),
            )?;
        }
        unroll.objects.freed.remove(&buffer);
        unroll.emit(OpKind::Alloc { buffer, stream }, loc)
    }
}

impl StepKind for Free {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        self.0.resolve(names);
    }

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Option<()> {
        unroll.not_captured("freeing memory", loc)?;
        let (buffer, stream) = self.0.ids(unroll, loc)?;
        if unroll.objects.alive.remove(&buffer).is_none() {
            let name = quoted(&unroll.plan.buffers[buffer].name);
            let when = if unroll.objects.freed.contains(&buffer) {
                "freed already"
            } else {
                "not allocated yet"
            };
            unroll.error(loc, format!("{name} is {when}"))?;
        }
        unroll.objects.freed.insert(buffer);
        unroll.emit(OpKind::Free { buffer, stream }, loc)
    }
}

impl Memory {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        names.buffer(&self.buffer);
        names.stream(self.stream.as_ref());
    }

    fn ids<'f>(
        &'f self,
        unroll: &mut Unroll<'_, 'f>,
        loc: Loc,
    ) -> Option<(BufferId, Option<StreamId>)> {
        let buffer = unroll.buffer(&self.buffer)?;
        let spec = &unroll.plan.buffers[buffer];
        let (device, is_before) = (spec.device, spec.preallocated || spec.device.is_none());
        if is_before {
            let message = format!("{} is allocated before the first pass", quoted(&spec.name));
            unroll.error_help(loc, message, "set alloc = \"step\" in its [buffers] table")?;
        }
        let stream = match &self.stream {
            Some(stream) => {
                let stream = unroll.stream(Some(stream), device)?;
                unroll.feed(stream);
                Some(stream)
            }
            None => None,
        };
        Some((buffer, stream))
    }
}
