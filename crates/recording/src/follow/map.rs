//! What of a recording's entries is not an activity's already: parts counted on, texts, pieces put together.

use std::collections::HashMap;

use crate::file::Entry;

use activity::TIME_MAX;
use activity::{
    Activity, Batch, Def, Hardware, NameId, Place, ProcessInfo, Samples, Sampling, ShapeId,
    StreamInfo, WatchCost, What,
};

/// What became of an entry.
pub(super) enum Mapped {
    /// It is in the batch.
    Yes,
    /// It told something about the process.
    Process,
    /// It is a message for the user.
    Notice(bool, String),
    /// It is at a time that no clock shows, and so left out.
    BadClock,
}

/// What the earlier parts of a recording came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    /// Names that they defined.
    pub(super) names: u32,
    /// Shapes that they defined.
    pub(super) shapes: u32,
    /// Records that could not be read.
    pub(super) lost: u64,
    /// Records of unknown kinds.
    pub(super) unknown: u64,
    /// Records at times that no clock shows, those of the present part among them.
    pub(super) bad_clock: u64,
}

impl Before {
    /// Counts ids on from those of the earlier parts: each part counts from 1.
    fn name(&self, id: NameId) -> NameId {
        id.saturating_add(self.names)
    }

    fn shape(&self, id: ShapeId) -> ShapeId {
        id.saturating_add(self.shapes)
    }
}

/// Totals of what was seen from outside, as a recording has them so far.
#[derive(Debug, Default)]
pub(super) struct Totals {
    sampling: Sampling,
    cost: Option<WatchCost>,
    /// Whether they have changed since they were told, and what was lost then.
    changed: bool,
    lost: u64,
}

impl Totals {
    /// Puts them into a batch that they are new for, with what was `lost` on the way here. Ids are those of `series`.
    pub(super) fn complete(&mut self, batch: &mut Batch, series: u32, lost: u64) {
        self.changed |= std::mem::replace(&mut self.lost, lost) != lost;
        let has_samples = self.sampling != Sampling::default();
        if batch.samples.is_some() || (self.changed && has_samples) {
            let samples = batch.samples.get_or_insert_default();
            samples.series = series;
            samples.sampling = Sampling {
                lost: self.sampling.lost.saturating_add(lost),
                ..self.sampling
            };
        }
        if let Some(cost) = self.cost.filter(|_| self.changed) {
            let lost = cost.lost.saturating_add(lost);
            let cost = Hardware::Cost(WatchCost { lost, ..cost });
            batch.hardware.push(cost);
        }
        self.changed = false;
    }
}

/// The same thing with other ids for its name and its shape.
pub(super) fn with_ids(
    mut what: What,
    name: impl FnOnce(NameId) -> NameId,
    shape: impl FnOnce(ShapeId) -> ShapeId,
) -> What {
    if let Some(id) = what.name_mut() {
        *id = name(*id);
    } else if let Some(id) = what.shape_mut() {
        *id = shape(*id);
    }
    what
}

/// Puts an entry into a batch.
pub(super) fn entry_into(
    entry: Entry<'_>,
    before: &Before,
    batch: &mut Batch,
    info: &mut ProcessInfo,
    streams: &mut HashMap<Place, StreamInfo>,
    totals: &mut Totals,
) -> Mapped {
    let span = entry.span();
    if span.is_some_and(|span| span.start < -TIME_MAX || span.end > TIME_MAX) {
        return Mapped::BadClock;
    }
    match entry {
        Entry::Record(record) => batch.items.push(Activity {
            what: with_ids(record.what, |id| before.name(id), |id| before.shape(id)),
            ..record
        }),
        Entry::Name(id, name) => batch.defs.push(Def::Name {
            id: before.name(id),
            text: text(name),
        }),
        Entry::Shape(id, mut shape) => {
            shape.name = before.name(shape.name);
            let id = before.shape(id);
            batch.defs.push(Def::Shape { id, shape });
        }
        Entry::Collective(shape, collective) => batch.defs.push(Def::Collective {
            shape: before.shape(shape),
            collective,
        }),
        Entry::Device(device) => batch.defs.push(Def::Device(device)),
        Entry::Stream(stream) => batch.defs.push(Def::Stream(merge_stream(stream, streams))),
        Entry::Thread(thread, name) => batch.defs.push(Def::Thread {
            thread,
            name: text(name),
        }),
        Entry::Process(process) => {
            let versions = match process.versions.is_empty() {
                true => std::mem::take(&mut info.versions),
                false => process.versions,
            };
            *info = ProcessInfo {
                versions,
                ended_well: info.ended_well,
                ..process
            };
            return Mapped::Process;
        }
        Entry::Mode(mode) => batch.defs.push(Def::Mode(mode)),
        Entry::SampleDef(def) => samples(batch).defs.push(def),
        Entry::StackSample(look) => {
            totals.sampling.looks += 1;
            samples(batch).looks.push(look);
        }
        Entry::Sampling(sampling) => {
            let looks = totals.sampling.looks;
            totals.sampling = Sampling { looks, ..sampling };
            totals.changed = true;
        }
        Entry::Hardware(Hardware::Cost(cost)) => {
            totals.cost = Some(cost);
            totals.changed = true;
        }
        Entry::Hardware(hardware) => batch.hardware.push(hardware),
        Entry::OffCpu(it) => batch.off_cpu.push(it),
        Entry::Notice(is_warning, words) => return Mapped::Notice(is_warning, text(words)),
    }
    Mapped::Yes
}

fn samples(batch: &mut Batch) -> &mut Samples {
    batch.samples.get_or_insert_default()
}

/// What is known of a stream comes in pieces: its creation tells the priority, NVTX or the runner its name.
fn merge_stream(stream: StreamInfo, streams: &mut HashMap<Place, StreamInfo>) -> StreamInfo {
    let place = Place::new(stream.device, stream.context, stream.stream);
    let known = streams.entry(place);
    let known = known.or_insert_with(|| StreamInfo::at(place));
    if !stream.name.is_empty() {
        known.name = stream.name;
    }
    if stream.priority != 0 {
        known.priority = stream.priority;
    }
    known.is_default |= stream.is_default;
    known.clone()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
