//! `sync`: the host waits.

use super::super::plan::SyncTarget;
use super::super::unroll::MAX_DEVICES;
use super::common::only;
use super::*;

/// What to wait for; each is also the key that says which.
const TARGETS: &[&str] = &["stream", "event", "device"];

pub(super) const FORM: Form = Form {
    check,
    ..Form::new(
        key!(required "sync" OneOf(TARGETS), "The host waits."),
        &[
            key!("stream" Name, "For \"stream\": which. Default: \"default\"."),
            key!("event" Name, "For \"event\": which."),
            key!("device" Number, "For \"device\": which. Default: 0."),
        ],
        lower,
    )
};

fn check(step: &Step, fields: &Fields<'_>, reader: &mut Reader<'_>) {
    let word = step.word();
    only(reader, fields, word, &[word], TARGETS);
    if word == "event" && !fields.has("event") {
        reader.error(fields.loc, "sync = \"event\" needs `event`");
    }
}

fn lower<'f>(step: &'f Step, unroll: &mut Unroll<'_, 'f>) -> Option<()> {
    unroll.not_captured("a sync", step.loc)?;
    let target = match step.word() {
        "stream" => {
            let stream = unroll.stream(step.stream(), None)?;
            unroll.mention(stream, step.loc, "waited for");
            SyncTarget::Stream(stream)
        }
        "event" => SyncTarget::Event(unroll.recorded_event(step.name("event")?)?),
        _ => {
            let device = step.expr("device");
            let device = unroll.amount(device, MAX_DEVICES - 1, "a device's number")?;
            let device = device.unwrap_or(0) as u32;
            unroll.device_used(device);
            SyncTarget::Device(device)
        }
    };
    unroll.emit(OpKind::Sync(target), step.loc)
}
