//! Names, launch shapes, streams and addresses, each given out once.

use std::collections::HashMap;

use super::Lowering;
use crate::program::{EventKey, Step, StreamConfig, StreamKey};
use activity::{Def, LaunchShape, NameId, Place, ShapeId, StreamInfo};
use scenario::plan::StreamSpec;

/// The stream id that CUPTI gives a context's default stream.
const DEFAULT_STREAM: u32 = 7;
/// The id of the first stream that a program creates.
const FIRST_STREAM: u32 = 13;
/// Where simulated device and host memory begins.
const FIRST_ADDRESS: u64 = 0x7f00_0000_0000;
/// Allocations begin at multiples of it.
const ALIGNMENT: u64 = 512;

/// What was given out so far.
#[derive(Default)]
pub(super) struct Tables {
    names: HashMap<String, NameId>,
    shapes: HashMap<LaunchShape, ShapeId>,
    /// A stream of one name, device and priority is one lane in all variants.
    streams: HashMap<(String, u32, i32), StreamKey>,
    /// By [`StreamKey`].
    pub places: Vec<Place>,
    pub next_event: EventKey,
    allocated: u64,
    pub graphs: u32,
}

impl Tables {
    /// A place in memory that was not given out before.
    pub(super) fn address(&mut self, bytes: u64) -> u64 {
        let address = FIRST_ADDRESS + self.allocated;
        self.allocated += bytes.max(1).div_ceil(ALIGNMENT) * ALIGNMENT;
        address
    }
}

impl Lowering {
    /// The id of a string, defined on first use.
    pub(super) fn name(&mut self, text: &str) -> NameId {
        if let Some(id) = self.tables.names.get(text) {
            return *id;
        }
        let id = self.tables.names.len() as NameId + 1;
        self.tables.names.insert(text.to_owned(), id);
        let text = text.to_owned();
        self.push(Step::Define(Def::Name { id, text }));
        id
    }

    /// The id of a launch shape, defined on first use.
    pub(super) fn shape(&mut self, shape: LaunchShape) -> ShapeId {
        if let Some(id) = self.tables.shapes.get(&shape) {
            return *id;
        }
        let id = self.tables.shapes.len() as ShapeId + 1;
        self.tables.shapes.insert(shape, id);
        self.push(Step::Define(Def::Shape { id, shape }));
        id
    }

    /// The model's stream for one of the plan's, opened on first use.
    pub(super) fn stream(&mut self, spec: &StreamSpec) -> StreamKey {
        let identity = (spec.name.clone(), spec.device, spec.priority);
        if let Some(key) = self.tables.streams.get(&identity) {
            return *key;
        }
        let key = self.tables.places.len() as StreamKey;
        let is_default = spec.is_default();
        let stream = match is_default {
            true => DEFAULT_STREAM,
            false => FIRST_STREAM + key,
        };
        let place = Place::new(spec.device, context_of(spec.device), stream);
        self.tables.places.push(place);
        self.tables.streams.insert(identity, key);
        let priority = spec.priority;
        let info = StreamInfo {
            name: spec.name.clone(),
            priority,
            is_default,
            ..StreamInfo::at(place)
        };
        self.push(Step::Define(Def::Stream(info)));
        self.push(Step::Open(key, StreamConfig { place, priority }));
        key
    }

    /// The place of one of the model's streams.
    pub(super) fn place(&self, stream: StreamKey) -> Place {
        self.tables.places[stream as usize]
    }
}

/// The context on a device. There is one for each, and cold passes that make a new one keep its number:
/// what ran in it belongs to the same lanes.
pub(super) fn context_of(device: u32) -> u32 {
    device + 1
}
