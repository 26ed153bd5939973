//! One event of `traceEvents`, as serde reads it: only the needed keys, borrowed from the text.
//!
//! Types are lenient. Traces in the wild have numbers in quotes, and threads with names in place of ids. Keys appear
//! twice (the last one counts, as in Python). None of that costs an event.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::{RawValue, Value};

use super::repair::repair;
use activity::text::fingerprint;

/// An event. A missing key is `None` or empty.
#[derive(Debug, Default)]
pub(super) struct Event<'a> {
    /// `ph`: X is a span, M is metadata.
    pub(super) phase: Text<'a>,
    pub(super) category: Text<'a>,
    pub(super) name: Text<'a>,
    pub(super) pid: Option<i64>,
    pub(super) tid: Option<i64>,
    /// Microseconds, as written.
    pub(super) ts: Option<&'a [u8]>,
    /// Microseconds, as written.
    pub(super) dur: Option<&'a [u8]>,
    /// Read only once the category turns out to be of use.
    pub(super) args: Option<&'a RawValue>,
    /// The arguments that are read already, where `args` is none.
    pub(super) read: Args<'a>,
}

impl Event<'_> {
    /// Whether nobody needs the rest of it: of a flow arrow, or of a range that is drawn again on the GPU. Many of a
    /// trace's events are such.
    pub(super) fn is_passed_over(&self) -> bool {
        match self.phase.0.as_ref() {
            "s" | "t" | "f" => true,
            "X" => self.category.0 == "gpu_user_annotation",
            _ => false,
        }
    }
}

/// Whether a JSON value looks like an event: it has a phase.
pub(super) fn is_event(text: &[u8]) -> bool {
    let read = |text| Event::parse(text).is_ok_and(|event| !event.phase.0.is_empty());
    read(text) || read(repair(text).as_bytes())
}

macro_rules! keys {
    ($name:ident { $($key:ident = $text:literal $(| $other:literal)*),* $(,)? }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $name {
            $($key,)*
            Other,
        }
        impl $name {
            /// The key with this spelling.
            pub(super) fn of(key: &[u8]) -> Self {
                match key {
                    $(_ if key == $text.as_bytes() $(|| key == $other.as_bytes())* => $name::$key,)*
                    _ => $name::Other,
                }
            }
        }
    };
}

keys!(EventKey {
    Phase = "ph",
    Category = "cat",
    Name = "name",
    Pid = "pid",
    Tid = "tid",
    Ts = "ts",
    Dur = "dur",
    Args = "args",
});

/// Where the value of an argument belongs.
pub(super) enum Place<'p, 'a> {
    Number(&'p mut Option<i64>),
    Sizes(&'p mut [u32; 3]),
    Text(&'p mut Text<'a>),
    /// It is of no use.
    Nowhere,
}

macro_rules! arguments {
    ($($field:ident: $type:ty = $kind:ident $key:ident $text:literal $(| $other:literal)*;)*) => {
        keys!(ArgsKey { $($key = $text $(| $other)*,)* });

        /// `args` of the events that cuptop shows.
        #[derive(Clone, Debug, Default)]
        pub(super) struct Args<'a> {
            $(pub(super) $field: $type,)*
        }

        impl<'a> Args<'a> {
            /// Where the value of a key belongs.
            pub(super) fn place(&mut self, key: ArgsKey) -> Place<'_, 'a> {
                match key {
                    $(ArgsKey::$key => Place::$kind(&mut self.$field),)*
                    ArgsKey::Other => Place::Nowhere,
                }
            }
        }
    };
}

arguments! {
    device: Option<i64> = Number Device "device";
    context: Option<i64> = Number Context "context";
    stream: Option<i64> = Number Stream "stream";
    correlation: Option<i64> = Number Correlation "correlation" | "correlation_id";
    external: Option<i64> = Number External "External id";
    bytes: Option<i64> = Number Bytes "bytes";
    registers: Option<i64> = Number Registers "registers per thread";
    shared: Option<i64> = Number Shared "shared memory";
    graph: Option<i64> = Number Graph "graph id";
    node: Option<i64> = Number Node "graph node id";
    from_device: Option<i64> = Number FromDevice "fromDevice";
    to_device: Option<i64> = Number ToDevice "toDevice";
    event: Option<i64> = Number Event "wait_on_cuda_event_id" | "event_id";
    process: Option<i64> = Number Process "cuptop process";
    code: Option<i64> = Number Code "return value";
    grid: [u32; 3] = Sizes Grid "grid";
    block: [u32; 3] = Sizes Block "block";
    elements_in: Option<i64> = Number ElementsIn "In msg nelems";
    elements_out: Option<i64> = Number ElementsOut "Out msg nelems";
    group_size: Option<i64> = Number GroupSize "Group size";
    device_type: Option<i64> = Number DeviceType "Device Type";
    peer: Option<i64> = Number Peer "Dst Rank" | "Src Rank";
    collective: Text<'a> = Text Collective "Collective name";
    group_name: Text<'a> = Text GroupName "Process Group Name";
    group_ranks: Text<'a> = Text GroupRanks "Process Group Ranks";
    element: Text<'a> = Text Element "dtype";
    sync_kind: Text<'a> = Text SyncKind "cuda_sync_kind";
    range_kind: Text<'a> = Text RangeKind "cuptop range";
    index: Option<i64> = Number Index "index";
    name: Text<'a> = Text Name "name";
    op: Text<'a> = Text Op "op_name";
    provider: Text<'a> = Text Provider "provider";
    details: Text<'a> = Text Details "kernel_details" | "memcpy_details" | "memset_details";
}

impl<'a> Args<'a> {
    /// Reads `args`; the result is empty when there are none.
    pub(super) fn read<'e>(event: &'e Event<'a>) -> Cow<'e, Args<'a>> {
        match event.args {
            Some(raw) => Cow::Owned(Args::parse(raw.get()).unwrap_or_default()),
            None => Cow::Borrowed(&event.read),
        }
    }

    fn parse(json: &str) -> serde_json::Result<Args<'a>> {
        let mut args = Args::default();
        for (key, raw) in serde_json::from_str::<Members<'_>>(json)? {
            let key = ArgsKey::of(key.as_bytes());
            match args.place(key) {
                Place::Number(it) if key == ArgsKey::Stream => *it = id(&value(raw)?),
                Place::Number(it) => *it = number(&value(raw)?),
                Place::Sizes(it) => *it = sizes(&value(raw)?),
                Place::Text(it) => *it = text(value(raw)?),
                Place::Nowhere => {}
            }
        }
        Ok(args)
    }
}

impl<'a> Event<'a> {
    /// Reads an event whatever its JSON looks like.
    pub(super) fn parse(json: &'a [u8]) -> serde_json::Result<Event<'a>> {
        let mut event = Event::default();
        for (key, raw) in serde_json::from_slice::<Members<'a>>(json)? {
            match EventKey::of(key.as_bytes()) {
                EventKey::Phase => event.phase = text(value(raw)?),
                EventKey::Category => event.category = text(value(raw)?),
                EventKey::Name => event.name = text(value(raw)?),
                EventKey::Pid => {
                    let pid = value(raw)?;
                    event.pid =
                        number(&pid).or_else(|| id(&pid).filter(|it| *it == id_of(OLD_GPU)));
                }
                EventKey::Tid => event.tid = number(&value(raw)?),
                EventKey::Ts => event.ts = Some(digits(raw)),
                EventKey::Dur => event.dur = Some(digits(raw)),
                EventKey::Args => event.args = Some(raw),
                EventKey::Other => {}
            }
        }
        Ok(event)
    }
}

/// The members of an object, each as it is written. Of a key that comes twice the last one counts.
type Members<'a> = BTreeMap<String, &'a RawValue>;

fn value(raw: &RawValue) -> serde_json::Result<Value> {
    serde_json::from_str(raw.get())
}

/// A number as it is written, without quotes.
fn digits(raw: &RawValue) -> &[u8] {
    raw.get().trim_matches('"').as_bytes()
}

/// A string; empty where something else stands.
fn text<'a>(value: Value) -> Text<'a> {
    match value {
        Value::String(text) => Text(text.into()),
        _ => Text::default(),
    }
}

/// An integer, quoted or not; none where something else stands.
fn number(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        Value::Number(number) => number
            .as_i64()
            .or_else(|| whole(number.as_f64().filter(|_| number.is_f64())?)),
        _ => None,
    }
}

/// A number that only identifies something. A word, or a number beyond 64 bits, gets a number of its own. That is
/// below zero, where no profiler counts.
fn id(value: &Value) -> Option<i64> {
    let word = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) if number.is_f64() => number.as_f64()?.to_string(),
        Value::Number(number) => return number.as_u64().map(u64::cast_signed).or(number.as_i64()),
        _ => return None,
    };
    number(value).or(Some(id_of(&word)))
}

/// What PyTorch called the GPU in place of a process before it had Kineto.
pub(super) const OLD_GPU: &str = "CUDA functions";

/// The number that a word gets.
pub(super) fn id_of(word: &str) -> i64 {
    (fingerprint(word.as_bytes()) | 1 << 63).cast_signed()
}

/// Three sizes; a missing one is 0, further ones are ignored.
fn sizes(value: &Value) -> [u32; 3] {
    let size = |at| u32::try_from(number(value.get(at)?)?).ok();
    [0, 1, 2].map(|at| size(at).unwrap_or(0))
}

/// A float that is a whole number.
fn whole(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i64)
}

/// A text of an event.
#[derive(Clone, Debug, Default)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);
