//! What several kinds of step have in common.

use super::super::diagnostics::{list, quoted};
use super::super::plan::{BufferId, StreamId};
use super::super::syntax::keys::key;
use super::{Fields, Key, Reader, Step, Unroll};

pub(super) const STREAM: Key =
    key!("stream" Name, "The stream. Default: \"default\", the device's legacy default stream.");
pub(super) const OFFSET: Key =
    key!("offset" Size, "Bytes from the start of the buffer. Default: 0.");
pub(super) const BYTES: Key =
    key!("bytes" Size, "How many bytes. Default: to the end of the buffer.");
pub(super) const DO: Key = key!(required "do" Steps, "The steps inside.");

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
            let takes = list(allowed.iter().copied());
            let message = format!("{} has no use for {}", quoted(word), quoted(key));
            reader.error_help(field.key_loc, message, format!("it takes {takes}"));
        }
    }
}

impl Unroll<'_, '_> {
    /// The stream that a step puts its work on.
    pub(super) fn fed_stream(&mut self, step: &Step, device: Option<u32>) -> Option<StreamId> {
        let stream = self.stream(step.stream(), device)?;
        self.captured_use(stream, step.loc)?;
        self.feed(stream);
        Some(stream)
    }

    /// The part of a buffer that a step's `offset` and `bytes` say: where it begins, and how long it is.
    pub(super) fn part(&mut self, step: &Step, buffer: BufferId) -> Option<(u64, u64)> {
        let start = self.optional_bytes(step.expr("offset"), 0)?.unwrap_or(0);
        let rest = self.plan.buffers[buffer].bytes.saturating_sub(start);
        let given = self.optional_bytes(step.expr("bytes"), 1)?;
        Some((start, given.unwrap_or(rest.max(1))))
    }
}
