//! The trace store: lanes, columns and names. Plain data: no threads, no screen, no CUDA.
//!
//! One owner applies batches ([`Trace::apply`]) and asks questions; there is no lock. Ids that are
//! local to a process (names, launch shapes) become the store's own on the way in, and process-local
//! device ordinals become indices of physical devices, so everything that comes out of a [`Trace`]
//! speaks of one timeline.
//!
//! A row costs 24 bytes of columns, 4 of the forest that finds the longest row of a range, and 3 of
//! prefix sums; an operation costs about 18 more in its device's [`Usage`]. What rows have in common
//! (kernel, configuration, stream, direction, size) is stored once, in a table of distinct [`What`]s.

mod forest;
mod lane;
mod names;
mod usage;

use rustc_hash::FxHashMap;

pub use lane::{Lane, LaneKey, LaneKind};
pub use names::{Names, printable};
pub use usage::{Engine, Measure, Usage};

use crate::activity::{
    Activity, Batch, Def, DeviceInfo, Direction, Health, LaunchShape, NameId, Ns, Place,
    ProcessInfo, ShapeId, Span, StreamInfo, What,
};
use lane::Row;

/// Index into [`Trace::lanes`].
pub type LaneId = usize;

/// What kind of source a timeline is from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceKind {
    /// The simulator.
    #[default]
    Simulator,
    /// A scenario on a real GPU.
    Cuda,
    /// A program that was traced.
    Traced,
    /// A saved recording.
    Recording,
    /// A Kineto or Chrome JSON trace.
    Kineto,
    /// An Nsight Systems SQLite export.
    Nsys,
}

impl SourceKind {
    /// Its word in reports.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            SourceKind::Simulator => "simulator",
            SourceKind::Cuda => "cuda",
            SourceKind::Traced => "traced",
            SourceKind::Recording => "recording",
            SourceKind::Kineto => "kineto",
            SourceKind::Nsys => "nsys",
        }
    }
}

/// Where a timeline is from.
#[derive(Clone, Debug, Default)]
pub struct SourceInfo {
    /// What kind of source.
    pub kind: SourceKind,
    /// What to call it: the scenario, the command, the file.
    pub title: String,
    /// The file or directory, where there is one.
    pub path: Option<std::path::PathBuf>,
    /// Whether no GPU was involved. Then the screen and every export say so.
    pub simulated: bool,
}

/// A physical device.
#[derive(Clone, Debug, Default)]
pub struct Device {
    /// What is known of it. `info.id` is unique in the timeline.
    pub info: DeviceInfo,
    /// What it was doing at each moment.
    pub usage: Usage,
    pending: Vec<(Span, Engine)>,
}

/// A process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// What is known of it.
    pub info: ProcessInfo,
    /// Its counters.
    pub health: Health,
    /// The streams that it named or described.
    pub streams: Vec<StreamInfo>,
    /// Names of its threads.
    pub threads: FxHashMap<u32, String>,
    names: Vec<NameId>,
    shapes: Vec<ShapeId>,
    /// Its device ordinals, as indices into [`Trace::devices`].
    devices: FxHashMap<u32, usize>,
}

/// A timeline.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Where it is from.
    pub source: SourceInfo,
    names: Names,
    shapes: Vec<LaunchShape>,
    shape_ids: FxHashMap<LaunchShape, ShapeId>,
    details: Vec<What>,
    detail_ids: FxHashMap<What, u32>,
    lanes: Vec<Lane>,
    lane_ids: FxHashMap<LaneKey, LaneId>,
    devices: Vec<Device>,
    processes: Vec<Process>,
    extent: Option<Span>,
    late: u64,
    revision: u64,
}

impl Trace {
    /// An empty timeline.
    #[must_use]
    pub fn new(source: SourceInfo) -> Self {
        Trace {
            source,
            ..Trace::default()
        }
    }

    /// Takes in a batch. Whatever it refers to and did not define is kept under the name "?".
    pub fn apply(&mut self, batch: Batch) {
        self.revision += 1;
        let process = batch.process as usize;
        while self.processes.len() <= process {
            self.processes.push(Process::default());
        }
        for def in batch.defs {
            self.define(process, def);
        }
        let mut touched: Vec<LaneId> = Vec::new();
        for item in &batch.items {
            let what = self.globalize(process, item.what);
            let lane = self.lane_for(process, &what);
            let detail = self.intern(what);
            if !self.lanes[lane].has_queued() {
                touched.push(lane);
            }
            self.lanes[lane].queue(Row {
                span: item.span,
                correlation: item.correlation,
                detail,
            });
            if let Some((device, engine)) = engine_of(&what) {
                self.devices[device].pending.push((item.span, engine));
            }
            self.extent = Some(match self.extent {
                Some(extent) => extent.hull(item.span),
                None => item.span,
            });
        }
        for lane in touched {
            self.late += self.lanes[lane].settle(&self.details) as u64;
        }
        for device in &mut self.devices {
            device.usage.add(&mut device.pending);
            device.pending.clear();
        }
        if let Some(health) = batch.health {
            self.processes[process].health = health;
        }
    }

    fn define(&mut self, process: usize, def: Def) {
        match def {
            Def::Name { id, text } => {
                let global = self.names.intern(&text);
                put(&mut self.processes[process].names, id, global);
            }
            Def::Shape { id, mut shape } => {
                shape.name = self.name_in(process, shape.name);
                let global = *self.shape_ids.entry(shape).or_insert_with(|| {
                    self.shapes.push(shape);
                    (self.shapes.len() - 1) as ShapeId
                });
                put(&mut self.processes[process].shapes, id, global);
            }
            Def::Device(info) => self.define_device(process, info),
            Def::Stream(mut info) => {
                info.device = self.device_in(process, info.device) as u32;
                let streams = &mut self.processes[process].streams;
                streams.retain(|s| (s.context, s.stream) != (info.context, info.stream));
                streams.push(info);
            }
            Def::Thread { thread, name } => {
                self.processes[process]
                    .threads
                    .insert(thread, printable(&name));
            }
            Def::Process(info) => self.processes[process].info = info,
        }
    }

    fn define_device(&mut self, process: usize, info: DeviceInfo) {
        let ordinal = info.id;
        let same = |d: &Device| match (d.info.uuid, info.uuid) {
            (Some(a), Some(b)) => a == b,
            _ => d.info.id == ordinal,
        };
        let known = self.processes[process].devices.get(&ordinal).copied();
        let index = known
            .or_else(|| self.devices.iter().position(same))
            .unwrap_or_else(|| self.add_device(ordinal));
        self.processes[process].devices.insert(ordinal, index);
        let id = self.devices[index].info.id;
        self.devices[index].info = DeviceInfo { id, ..info };
    }

    fn add_device(&mut self, ordinal: u32) -> usize {
        let is_taken = |id: u32| self.devices.iter().any(|d| d.info.id == id);
        let id = (ordinal..u32::MAX)
            .find(|&id| !is_taken(id))
            .unwrap_or(ordinal);
        self.devices.push(Device {
            info: DeviceInfo {
                id,
                ..DeviceInfo::default()
            },
            ..Device::default()
        });
        self.devices.len() - 1
    }

    fn device_in(&mut self, process: usize, ordinal: u32) -> usize {
        if let Some(&index) = self.processes[process].devices.get(&ordinal) {
            return index;
        }
        let index = self
            .devices
            .iter()
            .position(|d| d.info.id == ordinal)
            .unwrap_or_else(|| self.add_device(ordinal));
        self.processes[process].devices.insert(ordinal, index);
        index
    }

    fn name_in(&mut self, process: usize, id: NameId) -> NameId {
        match self.processes[process].names.get(id as usize) {
            Some(&global) if global != NameId::MAX => global,
            _ => self.names.intern("?"),
        }
    }

    fn shape_in(&mut self, process: usize, id: ShapeId) -> ShapeId {
        match self.processes[process].shapes.get(id as usize) {
            Some(&global) if global != ShapeId::MAX => global,
            _ => {
                let name = self.names.intern("?");
                let shape = LaunchShape {
                    name,
                    ..LaunchShape::default()
                };
                *self.shape_ids.entry(shape).or_insert_with(|| {
                    self.shapes.push(shape);
                    (self.shapes.len() - 1) as ShapeId
                })
            }
        }
    }

    /// The same thing with the store's ids in place of the process's.
    fn globalize(&mut self, process: usize, mut what: What) -> What {
        match &mut what {
            What::Kernel(k) => {
                k.shape = self.shape_in(process, k.shape);
                self.globalize_place(process, &mut k.place);
            }
            What::Copy(c) => {
                c.peer = self.device_in(process, c.peer) as u32;
                self.globalize_place(process, &mut c.place);
            }
            What::Memset(m) => self.globalize_place(process, &mut m.place),
            What::Memory(m) => self.globalize_place(process, &mut m.place),
            What::Event(e) => self.globalize_place(process, &mut e.place),
            What::Call(c) => c.name = self.name_in(process, c.name),
            What::Overhead(o) => o.name = self.name_in(process, o.name),
            What::Range(r) => r.name = self.name_in(process, r.name),
            What::Sync(_) => {}
        }
        what
    }

    fn globalize_place(&mut self, process: usize, place: &mut Place) {
        place.device = self.device_in(process, place.device) as u32;
    }

    fn lane_for(&mut self, process: usize, what: &What) -> LaneId {
        let stream = |p: &Place| LaneKind::Stream {
            device: p.device as usize,
            context: p.context,
            stream: p.stream,
        };
        let kind = match what {
            What::Kernel(k) => stream(&k.place),
            What::Copy(c) => stream(&c.place),
            What::Memset(m) => stream(&m.place),
            What::Call(c) => LaneKind::Thread { thread: c.thread },
            What::Range(r) => LaneKind::Range {
                kind: r.kind,
                thread: r.thread,
            },
            What::Overhead(_) => LaneKind::Overhead,
            What::Sync(_) => LaneKind::Sync,
            What::Event(_) => LaneKind::Event,
            What::Memory(m) => LaneKind::Memory {
                device: m.place.device as usize,
            },
        };
        let key = LaneKey { process, kind };
        *self.lane_ids.entry(key).or_insert_with(|| {
            self.lanes.push(Lane::new(key));
            self.lanes.len() - 1
        })
    }

    fn intern(&mut self, what: What) -> u32 {
        *self.detail_ids.entry(what).or_insert_with(|| {
            self.details.push(what);
            (self.details.len() - 1) as u32
        })
    }

    /// Changes whenever a batch was applied.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// First start to last end of everything.
    #[must_use]
    pub fn extent(&self) -> Option<Span> {
        self.extent
    }

    /// First operation's start to the last one's end, over all devices.
    #[must_use]
    pub fn operations_extent(&self) -> Option<Span> {
        self.devices
            .iter()
            .filter_map(|d| d.usage.span())
            .reduce(Span::hull)
    }

    /// All lanes, in order of first appearance.
    #[must_use]
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// The lane with this key.
    #[must_use]
    pub fn lane_id(&self, key: LaneKey) -> Option<LaneId> {
        self.lane_ids.get(&key).copied()
    }

    /// The lanes of the streams of a device, in order of first appearance.
    pub fn streams_of(&self, device: usize) -> impl Iterator<Item = (LaneId, &Lane)> {
        self.lanes.iter().enumerate().filter(
            move |(_, lane)| matches!(lane.key().kind, LaneKind::Stream { device: d, .. } if d == device),
        )
    }

    /// The devices.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The processes.
    #[must_use]
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// What stands in a row. Ids in it are the store's own, devices are indices into [`Trace::devices`].
    #[must_use]
    pub fn activity(&self, lane: LaneId, row: usize) -> Activity {
        let lane = &self.lanes[lane];
        Activity {
            span: lane.span(row),
            correlation: lane.correlation(row),
            what: self.details[lane.detail(row)],
        }
    }

    /// All strings.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// A launch configuration; its `name` is the store's own.
    #[must_use]
    pub fn shape(&self, id: ShapeId) -> LaunchShape {
        self.shapes.get(id as usize).copied().unwrap_or_default()
    }

    /// Bytes that copies of one direction moved within `window` on a device; a copy across its edge
    /// counts in proportion.
    #[must_use]
    pub fn bytes_moved(&self, device: usize, direction: Direction, window: Span) -> f64 {
        self.streams_of(device)
            .map(|(_, lane)| lane.bytes(direction, window, &self.details))
            .sum()
    }

    /// The host call with this correlation id: its lane and row.
    #[must_use]
    pub fn call(&self, process: usize, correlation: u32) -> Option<(LaneId, usize)> {
        self.find(process, correlation, |kind| {
            matches!(kind, LaneKind::Thread { .. })
        })
    }

    /// The first operation with this correlation id: its lane and row.
    #[must_use]
    pub fn operation(&self, process: usize, correlation: u32) -> Option<(LaneId, usize)> {
        self.find(process, correlation, |kind| {
            matches!(kind, LaneKind::Stream { .. })
        })
    }

    fn find(
        &self,
        process: usize,
        correlation: u32,
        is_wanted: impl Fn(LaneKind) -> bool,
    ) -> Option<(LaneId, usize)> {
        self.lanes
            .iter()
            .enumerate()
            .filter(|(_, lane)| lane.key().process == process && is_wanted(lane.key().kind))
            .find_map(|(id, lane)| Some((id, lane.find_correlation(correlation)?)))
    }

    /// The counters of all processes together.
    #[must_use]
    pub fn health(&self) -> Health {
        let mut health = Health::default();
        for process in &self.processes {
            health.add(&process.health);
        }
        health
    }

    /// Records that arrived after one that started later on the same lane. They stand where they belong.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Bytes of memory that columns and tables take, without the allocator's slack.
    #[must_use]
    pub fn memory(&self) -> usize {
        let lanes: usize = self.lanes.iter().map(Lane::memory).sum();
        let usage: usize = self.devices.iter().map(|d| d.usage.memory()).sum();
        lanes + usage + self.details.len() * 2 * size_of::<What>()
    }

    /// How far apart, in ns, two neighbouring operations of a device may be without it being called
    /// idle: anything shorter is launch overhead that the hardware itself has between two operations.
    pub const GAP_MIN: Ns = 1_000;
}

/// Which engine of which device an operation keeps busy.
fn engine_of(what: &What) -> Option<(usize, Engine)> {
    match what {
        What::Kernel(k) => Some((k.place.device as usize, Engine::Compute)),
        What::Copy(c) => Some((c.place.device as usize, Engine::Copy(c.direction))),
        What::Memset(m) => Some((m.place.device as usize, Engine::Memset)),
        _ => None,
    }
}

/// Puts `value` at `index`, filling what lies before with "not defined". Ids are dense, so a huge one
/// is a damaged record: it is ignored, and what refers to it is called "?".
fn put(table: &mut Vec<u32>, index: u32, value: u32) {
    const FAR: usize = 1 << 20;
    let index = index as usize;
    if index >= table.len() + FAR {
        return;
    }
    if table.len() <= index {
        table.resize(index + 1, u32::MAX);
    }
    table[index] = value;
}

#[cfg(test)]
mod tests;
