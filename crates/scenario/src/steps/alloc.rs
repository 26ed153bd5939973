//! `alloc` and `free`: the device side of a buffer, plainly or from the device's pool.

use super::super::plan::{BufferId, StreamId};
use super::*;

const KEY: Key =
    key!(required "alloc" Buffer, "Allocates the device side of a buffer with alloc = \"step\".");
pub(super) const ALLOC: Form = Form::new(KEY, KEYS, alloc);

pub(super) const FREE: Form = Form::new(key!(required "free" Buffer, "Frees it."), KEYS, free);

const KEYS: &[Key] = &[
    key!("stream" Name, "Makes it stream-ordered, from the device's pool. Default: the plain call, which is not."),
];

fn alloc<'f>(step: &'f Step, unroll: &mut Unroll<'_, 'f>) -> Option<()> {
    let (buffer, name, stream) = place(step, unroll, "an allocation")?;
    if let Some(first) = unroll.objects.alive.insert(buffer, step.loc) {
        let error = Diagnostic::error(step.loc.range(), format!("{name} is allocated already"));
        unroll.report(error.related(first.range(), "it is allocated here"));
        return None;
    }
    unroll.objects.freed.remove(&buffer);
    unroll.emit(OpKind::Alloc { buffer, stream }, step.loc)
}

fn free<'f>(step: &'f Step, unroll: &mut Unroll<'_, 'f>) -> Option<()> {
    let (buffer, name, stream) = place(step, unroll, "freeing memory")?;
    if unroll.objects.alive.remove(&buffer).is_none() {
        let was_freed = unroll.objects.freed.contains(&buffer);
        let when = ["not allocated yet", "freed already"][usize::from(was_freed)];
        return unroll.error(step.loc, format!("{name} is {when}"));
    }
    unroll.objects.freed.insert(buffer);
    unroll.emit(OpKind::Free { buffer, stream }, step.loc)
}

/// The buffer, its name in quotes, and the stream in whose order it happens, where the step names one.
fn place<'f>(
    step: &'f Step,
    unroll: &mut Unroll<'_, 'f>,
    what: &str,
) -> Option<(BufferId, String, Option<StreamId>)> {
    unroll.not_captured(what, step.loc)?;
    let buffer = unroll.buffer(step.buffer()?)?;
    let spec = &unroll.plan.buffers[buffer];
    let (name, device) = (quoted(&spec.name), spec.device);
    if spec.preallocated || device.is_none() {
        let message = format!("{name} is allocated before the first pass");
        let help = format!("set alloc = \"step\" in [buffers.{}]", spec.name);
        return unroll.error_help(step.loc, message, help);
    }
    let stream = match step.stream() {
        Some(stream) => Some(unroll.stream(Some(stream), device)?),
        None => None,
    };
    stream.into_iter().for_each(|stream| unroll.feed(stream));
    Some((buffer, name, stream))
}
