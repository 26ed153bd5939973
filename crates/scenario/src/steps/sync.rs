//! `sync`: the host waits.

use super::super::expr::Expr;
use super::super::expr::parse::Template;
use super::super::plan::{OpKind, SyncTarget};
use super::super::syntax::keys::key;
use super::super::unroll::MAX_DEVICES;
use super::common::{only, stream};
use super::{Field, Fields, Form, Loc, Names, Reader, StepKind, Unroll};

/// What to wait for; each is also the key that says which.
const TARGETS: &[&str] = &["stream", "event", "device"];

pub(super) const FORM: Form = Form {
    head: key!(required "sync" OneOf(TARGETS), "The host waits."),
    keys: &[
        key!("stream" Name, "For \"stream\": which. Default: \"default\"."),
        key!("event" Name, "For \"event\": which."),
        key!("device" Number, "For \"device\": which. Default: 0."),
    ],
    read: |reader, fields, head| Some(Box::new(read(reader, fields, head)?)),
};

enum Sync {
    Stream(Option<Template>),
    Event(Template),
    Device(Option<Expr>),
}

fn read(reader: &mut Reader<'_>, fields: &Fields<'_>, head: Field<'_>) -> Option<Sync> {
    let word = reader.one_of(head, TARGETS)?;
    only(reader, fields, word, &[word], TARGETS);
    match word {
        "stream" => Some(Sync::Stream(stream(reader, fields))),
        "device" => Some(Sync::Device(reader.optional(fields, "device"))),
        _ => {
            let Some(event) = fields.get("event") else {
                reader.error(fields.loc, "sync = \"event\" needs `event`");
                return None;
            };
            reader.template(event).map(Sync::Event)
        }
    }
}

impl StepKind for Sync {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        match self {
            Sync::Stream(stream) => names.stream(stream.as_ref()),
            Sync::Event(event) => names.template(event),
            Sync::Device(device) => names.optional(device.as_ref()),
        }
    }

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Option<()> {
        unroll.not_captured("a sync", loc)?;
        let target = match self {
            Sync::Stream(stream) => {
                let stream = unroll.stream(stream.as_ref(), None)?;
                unroll.mention(stream, loc, "waited for");
                SyncTarget::Stream(stream)
            }
            Sync::Event(event) => SyncTarget::Event(unroll.recorded_event(event)?),
            Sync::Device(device) => {
                let most = MAX_DEVICES - 1;
                let device = unroll.amount(device.as_ref(), most, "a device's number")?;
                let device = device.unwrap_or(0) as u32;
                unroll.device_used(device);
                SyncTarget::Device(device)
            }
        };
        unroll.emit(OpKind::Sync(target), loc)
    }
}
