//! What several kinds of step have in common: keys, and how they are read.

use super::super::diagnostics::{list, quoted};
use super::super::expr::parse::Template;
use super::super::syntax::keys::key;
use super::{Field, Fields, Key, Loc, Names, Reader, Step, StepKind, Unroll, read};

pub(super) const STREAM: Key =
    key!("stream" Name, "The stream. Default: \"default\", the device's legacy default stream.");
pub(super) const OFFSET: Key =
    key!("offset" Size, "Bytes from the start of the buffer. Default: 0.");
pub(super) const BYTES: Key =
    key!("bytes" Size, "How many bytes. Default: to the end of the buffer.");
pub(super) const DO: Key = key!(required "do" Steps, "The steps inside.");

pub(super) fn stream(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Template> {
    fields.read("stream", reader, Reader::template)
}

/// The steps inside.
pub(super) fn body(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> Vec<Step> {
    fields.read(key, reader, read)
}

/// A step that does something with what has a name, on a stream.
pub(super) struct NamedStep {
    pub(super) name: Template,
    pub(super) stream: Option<Template>,
    lower: fn(&NamedStep, &mut Unroll<'_, '_>, Loc) -> Option<()>,
}

impl NamedStep {
    pub(super) fn read(
        reader: &mut Reader<'_>,
        fields: &Fields<'_>,
        head: Field<'_>,
        lower: fn(&NamedStep, &mut Unroll<'_, '_>, Loc) -> Option<()>,
    ) -> Option<Box<dyn StepKind>> {
        Some(Box::new(NamedStep {
            name: reader.template(head)?,
            stream: stream(reader, fields),
            lower,
        }))
    }
}

impl StepKind for NamedStep {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        names.template(&self.name);
        names.stream(self.stream.as_ref());
    }

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Option<()> {
        (self.lower)(self, unroll, loc)
    }
}

/// Reports keys that the step's word has no use for.
pub(super) fn only(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    word: &str,
    allowed: &[&str],
    all: &[&str],
) {
    for key in all.iter().filter(|key| !allowed.contains(key)) {
        if let Some(field) = fields.get(key) {
            let takes = if allowed.is_empty() {
                "nothing".to_owned()
            } else {
                list(allowed.iter().copied())
            };
            let message = format!("{} has no use for {}", quoted(word), quoted(key));
            reader.error_help(field.key_loc, message, format!("it takes {takes}"));
        }
    }
}
