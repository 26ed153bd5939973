//! Streams, events, phases and buffers of a variant: made when first used, known by id from then on.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::diagnostics::{Diagnostic, did_you_mean, quoted};
use super::super::expr::parse::Template;
use super::super::expr::value::{Unit, Value};
use super::super::expr::{Expr, Loc};
use super::super::plan::{
    BufferId, BufferSpec, DEFAULT_STREAM, EventId, GraphId, HostMemory, LaunchId, LaunchSpec,
    OpKind, StreamId, StreamSpec,
};
use super::super::syntax::decl::{BufferDecl, BufferRef};
use super::Unroll;

/// Devices of one machine.
pub(crate) const MAX_DEVICES: i64 = 16;
const MAX_STREAMS: usize = 512;
const MAX_EVENTS: usize = 16_384;
const MAX_BUFFERS: usize = 65_536;
const MAX_PHASES: usize = 4096;
/// Bytes of one buffer.
const MAX_BYTES: u64 = 1 << 40;

/// What exists so far.
#[derive(Default)]
pub(crate) struct Objects {
    streams: HashMap<String, StreamId>,
    default_streams: HashMap<u32, StreamId>,
    pub(crate) stream_use: Vec<StreamUse>,
    events: HashMap<String, EventId>,
    /// Events that have been recorded, outside of captures, and where each was first.
    pub(crate) recorded: BTreeMap<EventId, Loc>,
    buffers: HashMap<(usize, u64), BufferId>,
    /// Buffers that steps have allocated, with the place; and those they have freed.
    pub(crate) alive: BTreeMap<BufferId, Loc>,
    pub(crate) freed: HashSet<BufferId>,
    pub(crate) launches: HashMap<LaunchSpec, LaunchId>,
    pub(crate) graphs: HashMap<String, GraphId>,
    phases: HashMap<String, usize>,
}

/// What a stream was used for.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamUse {
    /// Whether its device is known.
    has_device: bool,
    /// Whether it was given work.
    pub(crate) is_fed: bool,
    /// Where it was waited for, or told to wait.
    pub(crate) mention: Option<(Loc, &'static str)>,
}

impl<'f> Unroll<'_, 'f> {
    /// The stream of a step. `device` is where the step's memory is, when it has any.
    pub(crate) fn stream(
        &mut self,
        name: Option<&Template>,
        device: Option<u32>,
    ) -> Option<StreamId> {
        let Some(template) = name else {
            return Some(self.default_stream(device.unwrap_or(0)));
        };
        let name = self.name(template)?;
        if name == DEFAULT_STREAM {
            return Some(self.default_stream(device.unwrap_or(0)));
        }
        let id = match self.objects.streams.get(&name) {
            Some(id) => *id,
            None => self.new_stream(&name, template.loc)?,
        };
        let Some(device) = device else {
            return Some(id);
        };
        if !std::mem::replace(&mut self.objects.stream_use[id].has_device, true) {
            self.plan.streams[id].device = device;
            self.device_used(device);
        }
        let own = self.plan.streams[id].device;
        if own != device {
            let of = format!("belongs to device {own}, and this memory to device {device}");
            let message = format!("the stream {} {of}", quoted(&name));
            let help = "use a stream of that device, or copy between the devices with p2p";
            return self.error_help(template.loc, message, help);
        }
        Some(id)
    }

    /// The legacy default stream of a device.
    pub(crate) fn default_stream(&mut self, device: u32) -> StreamId {
        if let Some(id) = self.objects.default_streams.get(&device) {
            return *id;
        }
        let id = self.add_stream(DEFAULT_STREAM, Some(device), 0);
        self.objects.default_streams.insert(device, id);
        id
    }

    fn add_stream(&mut self, name: &str, device: Option<u32>, priority: i32) -> StreamId {
        if let Some(device) = device {
            self.device_used(device);
        }
        self.plan.streams.push(StreamSpec {
            name: name.to_owned(),
            device: device.unwrap_or(0),
            priority,
        });
        self.objects.stream_use.push(StreamUse {
            has_device: device.is_some(),
            ..StreamUse::default()
        });
        self.plan.streams.len() - 1
    }

    fn new_stream(&mut self, name: &str, loc: Loc) -> Option<StreamId> {
        self.room(self.plan.streams.len(), MAX_STREAMS, "streams", loc)?;
        let mut declared = self.shared.declared.streams.iter();
        let declared = declared.find(|stream| stream.name.text == name);
        let device = declared.and_then(|it| it.device.as_ref());
        let device = self.amount(device, MAX_DEVICES - 1, "a device's number")?;
        let priority = match declared.and_then(|it| it.priority.as_ref()) {
            Some(priority) => self.integer(priority, -10..=10, "a stream's priority")? as i32,
            None => 0,
        };
        let id = self.add_stream(name, device.map(|it| it as u32), priority);
        self.objects.streams.insert(name.to_owned(), id);
        Some(id)
    }

    /// Whether another one may come to `count` of these. If not, it says so and unrolling stops.
    fn room(&mut self, count: usize, most: usize, what: &str, loc: Loc) -> Option<()> {
        if count < most {
            return Some(());
        }
        self.has_stopped = true;
        self.error(loc, format!("a variant may have {most} {what}"))
    }

    pub(crate) fn device_used(&mut self, device: u32) {
        self.plan.devices = self.plan.devices.max(device + 1);
    }

    /// Notes that a stream was given work.
    pub(crate) fn feed(&mut self, stream: StreamId) {
        self.objects.stream_use[stream].is_fed = true;
    }

    /// Notes that a stream was mentioned without giving it work.
    pub(crate) fn mention(&mut self, stream: StreamId, loc: Loc, how: &'static str) {
        let known = &mut self.objects.stream_use[stream].mention;
        *known = known.or(Some((loc, how)));
    }

    /// An event by name.
    pub(crate) fn event(&mut self, name: &Template) -> Option<EventId> {
        let text = self.name(name)?;
        if let Some(id) = self.objects.events.get(&text) {
            return Some(*id);
        }
        let id = self.plan.events.len();
        self.room(id, MAX_EVENTS, "events", name.loc)?;
        self.plan.events.push(text.clone());
        self.objects.events.insert(text, id);
        Some(id)
    }

    /// An event that must have been recorded.
    pub(crate) fn recorded_event(&mut self, name: &Template) -> Option<EventId> {
        let event = self.event(name)?;
        if self.objects.recorded.contains_key(&event) {
            return Some(event);
        }
        let written = |loc: &Loc| {
            let text = self.shared.diagnostics.written(loc.range());
            text.trim_matches(['"', '\''])
        };
        let (text, recorded) = (written(&name.loc), self.objects.recorded.values());
        let help = did_you_mean(text, recorded.map(written)).unwrap_or_else(|| {
            format!("a step {{ record = \"{text}\", stream = … }} must come before")
        });
        let text = quoted(&self.plan.events[event]);
        let message = format!("the event {text} has not been recorded before this");
        self.error_help(name.loc, message, help)
    }

    /// A phase by name.
    pub(crate) fn phase(&mut self, name: &Template) -> Option<usize> {
        let text = self.name(name)?;
        if let Some(id) = self.objects.phases.get(&text) {
            return Some(*id);
        }
        let id = self.plan.phases.len();
        self.room(id, MAX_PHASES, "names of ranges", name.loc)?;
        self.plan.phases.push(text.clone());
        self.objects.phases.insert(text, id);
        Some(id)
    }

    /// The buffer that a reference means.
    pub(crate) fn buffer(&mut self, reference: &'f BufferRef) -> Option<BufferId> {
        let at = self.declared(&reference.name)?;
        let decl = &self.shared.declared.buffers[at];
        let count = self.count(decl)?;
        let name = quoted(&reference.name);
        let element = match (&decl.count, &reference.index) {
            (Some(_), Some(index)) => self.element(decl, index, count.unsigned_abs())?,
            (None, None) => 0,
            (None, Some(index)) => {
                let message = format!("{name} is one buffer, not an array");
                let help = "give it a `count`, or leave out the index";
                return self.error_help(index.loc, message, help);
            }
            (Some(_), None) => {
                let message = format!("{name} is an array of {count}: which of them?");
                let help = format!("write \"{}\"", self.an_element(&reference.name));
                return self.error_help(reference.loc, message, help);
            }
        };
        self.element_of(at, element)
    }

    /// How many a declaration makes.
    pub(crate) fn count(&mut self, decl: &BufferDecl) -> Option<i64> {
        let count = decl.count.as_ref();
        count.map_or(Some(1), |count| {
            self.integer(count, 1..=MAX_BUFFERS as i64, "the count of an array")
        })
    }

    /// One of an array, as it would be written here: that of the innermost loop.
    pub(crate) fn an_element(&self, array: &str) -> String {
        let loops = &self.scope[self.shared.declared.params.len()..];
        format!("{array}[{}]", loops.last().map_or("0", |(name, ..)| name))
    }

    /// Where a buffer of this name is declared.
    fn declared(&self, name: &str) -> Option<usize> {
        let mut declared = self.shared.declared.buffers.iter();
        declared.position(|buffer| buffer.name.text == name)
    }

    fn element_of(&mut self, at: usize, element: u64) -> Option<BufferId> {
        if let Some(id) = self.objects.buffers.get(&(at, element)) {
            return Some(*id);
        }
        let id = self.new_buffer(&self.shared.declared.buffers[at], element)?;
        self.objects.buffers.insert((at, element), id);
        Some(id)
    }

    /// A buffer that is not an array, by name.
    pub(crate) fn whole_buffer(&mut self, name: &str) -> Option<BufferId> {
        self.element_of(self.declared(name)?, 0)
    }

    /// The index of an element of an array.
    fn element(&mut self, decl: &BufferDecl, index: &Expr, count: u64) -> Option<u64> {
        let value = self.whole_number(index, "an index")?;
        if let Some(element) = u64::try_from(value).ok().filter(|element| *element < count) {
            return Some(element);
        }
        let (name, plural) = (quoted(&decl.name.text), if count == 1 { "" } else { "s" });
        let has = format!("{name} has {count} element{plural}, 0 to {}", count - 1);
        let message = format!("index {value} is out of range: {has}");
        let diagnostic = Diagnostic::error(index.loc.range(), message);
        self.report(match &decl.count {
            Some(count) => diagnostic.related(count.loc.range(), "its count"),
            None => diagnostic,
        });
        None
    }

    fn new_buffer(&mut self, decl: &'f BufferDecl, element: u64) -> Option<BufferId> {
        let count = self.plan.buffers.len();
        self.room(count, MAX_BUFFERS, "buffers", decl.name.loc)?;
        // The declaration knows the parameters and `index`, not the loops around the step.
        let loops = self.scope.split_off(self.shared.declared.params.len());
        let index = Value::Int(element as i64, Unit::None);
        self.scope.push(("index", index, element == 0));
        let bytes = self.bytes(&decl.bytes, 1);
        let most = MAX_DEVICES - 1;
        let device = self.amount(decl.device.as_ref(), most, "a device's number");
        self.scope.pop();
        self.scope.extend(loops);
        let (bytes, device) = (bytes?, device?.map(|it| it as u32));
        if bytes > MAX_BYTES {
            return self.error(decl.bytes.loc, "a buffer may have 1 TiB");
        }
        if let Some(device) = device {
            self.device_used(device);
        }
        self.plan.buffers.push(BufferSpec {
            name: match decl.count {
                Some(_) => format!("{}[{element}]", decl.name.text),
                None => decl.name.text.clone(),
            },
            bytes,
            host: decl.host,
            device,
            fill: decl.fill,
            preallocated: device.is_some() && !decl.is_allocated_by_steps,
        });
        Some(self.plan.buffers.len() - 1)
    }

    /// The device of a buffer's device side, which must exist and be allocated at this point.
    pub(crate) fn device_side(&mut self, buffer: BufferId, loc: Loc) -> Option<u32> {
        let spec = &self.plan.buffers[buffer];
        let name = quoted(&spec.name);
        let Some(device) = spec.device else {
            let help = "it says device = false; give it a device";
            return self.error_help(loc, format!("{name} has no device side"), help);
        };
        if spec.preallocated || self.objects.alive.contains_key(&buffer) {
            return Some(device);
        }
        if self.objects.freed.contains(&buffer) {
            return self.error(loc, format!("{name} is used after it was freed"));
        }
        let written = name.replace('`', "\"");
        let help = format!("a step {{ alloc = {written} }} must come before");
        self.error_help(loc, format!("{name} is used before it is allocated"), help)
    }

    /// Checks that a buffer has a host side.
    pub(crate) fn host_side(&mut self, buffer: BufferId, loc: Loc) -> Option<()> {
        let spec = &self.plan.buffers[buffer];
        if spec.host != HostMemory::None {
            return Some(());
        }
        let message = format!("{} has no host side", quoted(&spec.name));
        let help = format!(
            "set host = \"pinned\" (or \"pageable\") in [buffers.{}]",
            spec.name
        );
        self.error_help(loc, message, help)
    }

    /// Checks that bytes lie in a buffer.
    pub(crate) fn inside(
        &mut self,
        buffer: BufferId,
        start: u64,
        bytes: u64,
        loc: Loc,
        what: &str,
    ) -> Option<()> {
        let spec = &self.plan.buffers[buffer];
        let end = start.checked_add(bytes);
        if end.is_some_and(|end| end <= spec.bytes) {
            return Some(());
        }
        let of = format!("{}, which has {} B", quoted(&spec.name), spec.bytes);
        let message = format!("this {what} of {bytes} B at byte {start} goes beyond {of}");
        self.error(loc, message)
    }

    /// Marks each event's device, and reports one that is recorded on two.
    pub(crate) fn events_have_one_device(&mut self) {
        let mut devices: HashMap<EventId, u32> = HashMap::new();
        for op in &self.plan.ops {
            if let OpKind::Record { event, stream } = op.kind {
                let device = self.plan.streams[stream].device;
                let first = *devices.entry(event).or_insert(device);
                if first != device {
                    let site = self.shared.sites.get(op.site);
                    let name = quoted(&self.plan.events[event]);
                    let message = format!(
                        "the event {name} is recorded on device {first} and on device {device}"
                    );
                    let diagnostic = Diagnostic::error(site.span.clone(), message);
                    self.report(diagnostic.help("an event belongs to one device; use two events"));
                    return;
                }
            }
        }
    }
}
