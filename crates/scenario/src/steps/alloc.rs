//! `alloc` and `free`: the device side of a buffer, plainly or from the device's pool.

use super::super::diagnostics::{Diagnostic, quoted};
use super::super::expr::parse::Template;
use super::super::plan::OpKind;
use super::super::syntax::decl::BufferRef;
use super::super::syntax::keys::key;
use super::common::stream;
use super::{Field, Fields, Form, Key, Loc, Names, Reader, StepKind, Unroll};

pub(super) const ALLOC: Form = Form {
    head: key!(required "alloc" Buffer, "Allocates the device side of a buffer with alloc = \"step\"."),
    keys: KEYS,
    read: |reader, fields, head| read(reader, fields, head, true),
};

pub(super) const FREE: Form = Form {
    head: key!(required "free" Buffer, "Frees it."),
    keys: KEYS,
    read: |reader, fields, head| read(reader, fields, head, false),
};

const KEYS: &[Key] = &[
    key!("stream" Name, "Makes it stream-ordered, from the device's pool. Default: the plain call, which is not."),
];

/// Allocates or frees a buffer, in the order of a stream where it names one.
struct Memory {
    is_alloc: bool,
    buffer: BufferRef,
    stream: Option<Template>,
}

fn read(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    head: Field<'_>,
    is_alloc: bool,
) -> Option<Box<dyn StepKind>> {
    Some(Box::new(Memory {
        is_alloc,
        buffer: reader.buffer(head)?,
        stream: stream(reader, fields),
    }))
}

impl StepKind for Memory {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        names.buffer(&self.buffer);
        names.stream(self.stream.as_ref());
    }

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Option<()> {
        let what = ["freeing memory", "an allocation"][usize::from(self.is_alloc)];
        unroll.not_captured(what, loc)?;
        let buffer = unroll.buffer(&self.buffer)?;
        let spec = &unroll.plan.buffers[buffer];
        let (name, device) = (quoted(&spec.name), spec.device);
        if spec.preallocated || device.is_none() {
            let message = format!("{name} is allocated before the first pass");
            unroll.error_help(loc, message, "set alloc = \"step\" in its [buffers] table")?;
        }
        let stream = match &self.stream {
            Some(stream) => Some(unroll.stream(Some(stream), device)?),
            None => None,
        };
        stream.into_iter().for_each(|stream| unroll.feed(stream));
        if self.is_alloc {
            if let Some(first) = unroll.objects.alive.insert(buffer, loc) {
                unroll.report(
                    Diagnostic::error(loc.range(), format!("{name} is allocated already"))
                        .related(first.range(), "it is allocated here"),
                )?;
            }
            unroll.objects.freed.remove(&buffer);
            return unroll.emit(OpKind::Alloc { buffer, stream }, loc);
        }
        if unroll.objects.alive.remove(&buffer).is_none() {
            let was_freed = unroll.objects.freed.contains(&buffer);
            let when = ["not allocated yet", "freed already"][usize::from(was_freed)];
            unroll.error(loc, format!("{name} is {when}"))?;
        }
        unroll.objects.freed.insert(buffer);
        unroll.emit(OpKind::Free { buffer, stream }, loc)
    }
}
