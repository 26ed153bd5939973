//! Takes batches in: it replaces a process's ids by the store's own, and puts records into their lanes.

use super::clock::retime_batch;
use super::rows::Row;
use super::{By, Device, Engine, Lane, LaneId, LaneKey, LaneKind, NEAR, Process, Route, Trace};
use activity::text::printable;
use activity::{
    Activity, Batch, Collective, Def, DeviceInfo, Direction, GpuIdentity, Hardware, LaunchShape,
    NameId, RangeKind, ShapeId, TIME_MAX, What,
};
use rustc_hash::FxHashSet;

/// How many distinct things of a process it remembers. Beyond it (unique addresses, sizes) remembering costs more than
/// it saves.
const KNOWN_MAX: usize = 1 << 16;
/// GPUs of a timeline: more than any job has.
const DEVICES_MAX: usize = 1 << 12;

impl Trace {
    /// Takes in a batch. A reference to something undefined gets the name "?".
    pub fn apply(&mut self, mut batch: Batch) {
        self.revision += 1;
        let process = batch.process as usize;
        while self.processes.len() <= process {
            self.processes.push(Process::default());
        }
        if !batch.defs.is_empty() {
            // What ids mean may have changed.
            self.processes[process].routes.clear();
        }
        self.join_host(process, &batch.defs);
        let clock = self.processes[process].clock;
        if !clock.is_same() {
            retime_batch(&mut batch, &clock);
        }
        self.source.simulated |= batch.simulated;
        for def in batch.defs {
            self.define(process, def);
        }
        let mut touched: Vec<LaneId> = Vec::new();
        for item in &batch.items {
            self.take(process, item, &mut touched);
        }
        for lane in touched {
            self.late += self.lanes[lane].settle() as u64;
        }
        for device in &mut self.devices {
            // Each of thousands of processes would have the same time added up again.
            if !batch.is_part {
                device.settle();
            }
            device.off.take();
        }
        let mut taken = batch.items.len() + batch.hardware.len() + batch.off_cpu.len();
        for it in batch.hardware {
            match it {
                Hardware::Gpu(gpu) => self.define_gpu(gpu),
                Hardware::Stalls(it) => {
                    let kernel = self.names.intern(&it.kernel);
                    self.hardware.take_stalls(kernel, it);
                }
                other => {
                    let mut hardware = std::mem::take(&mut self.hardware);
                    hardware.take(process, other, |uuid| self.clock_of_gpu(uuid, process));
                    self.hardware = hardware;
                }
            }
        }
        for it in batch.off_cpu {
            self.processes[process].off_cpu.take(it);
        }
        if let Some(samples) = batch.samples {
            taken += samples.looks.len();
            self.sample(process, samples);
        }
        if let Some(health) = batch.health {
            self.processes[process].health = health;
        }
        self.unchecked += taken;
        if !batch.is_part {
            self.keep_within_limit();
        }
    }

    fn take(&mut self, process: usize, item: &Activity, touched: &mut Vec<LaneId>) {
        let bytes = match item.what {
            What::Copy(copy) => copy.bytes,
            What::Memset(memset) => memset.bytes,
            _ => 0,
        };
        let time = self.claimed.0.saturating_add(item.span.len());
        let bytes = self.claimed.1.saturating_add(bytes);
        if time > TIME_MAX || bytes > TIME_MAX.unsigned_abs() {
            self.unbelievable += 1;
            return;
        }
        self.claimed = (time, bytes);
        let route = self.processes[process].routes.get(&item.what).copied();
        let route = route.unwrap_or_else(|| self.find_route(process, item.what));
        let lane = &mut self.lanes[route.lane];
        if lane.pending.is_empty() {
            touched.push(route.lane);
        }
        lane.queue(Row {
            span: item.span,
            correlation: item.correlation,
            detail: route.detail,
        });
        if route.is_far && item.correlation != 0 {
            let key = (process, item.correlation);
            self.far_calls.entry(key).or_insert(route.lane);
        }
        if let Some((device, engine)) = route.engine {
            let device = &mut self.devices[device];
            device.pending.push((item.span, engine));
            if let What::Copy(copy) = item.what
                && let Some(slot) = slot(copy.direction)
            {
                device.copied[slot].push((item.span, copy.bytes));
            }
        }
        self.extent = Some(match self.extent {
            Some(extent) => extent.hull(item.span),
            None => item.span,
        });
    }

    /// Where records of this kind go; it holds until something is defined anew.
    fn find_route(&mut self, process: usize, raw: What) -> Route {
        let what = self.globalize(process, raw);
        let lane = self.lane_for(process, &what);
        let calls = || self.lanes_by.get(&By::CallsIn(process));
        let route = Route {
            lane,
            is_far: matches!(what, What::Call(_))
                && calls().is_some_and(|all| all.len() > NEAR && lane > all[NEAR - 1]),
            detail: self.details.id(what),
            engine: what
                .place()
                .map(|place| place.device as usize)
                .zip(engine_of(&what)),
        };
        self.processes[process].graphs.see(&what, route.detail);
        let table = &mut self.processes[process].routes;
        if table.len() >= KNOWN_MAX {
            table.clear();
        }
        table.insert(raw, route);
        route
    }

    fn define(&mut self, process: usize, def: Def) {
        match def {
            Def::Name { id, text } => {
                let global = self.names.intern(&text);
                put(&mut self.processes[process].names, id, global, u32::MAX);
            }
            Def::Shape { id, mut shape } => {
                shape.name = self.name_in(process, shape.name);
                shape.collective = 0;
                let global = self.shapes.id(shape);
                put(&mut self.processes[process].shapes, id, global, u32::MAX);
            }
            Def::Collective { shape, collective } => {
                self.define_collective(process, shape, collective);
            }
            Def::Device(info) => self.define_device(process, info),
            Def::Stream(mut info) => {
                info.device = self.device_in(process, info.device) as u32;
                info.name = printable(&info.name);
                let streams = &mut self.processes[process].streams;
                streams.insert((info.context, info.stream), info);
            }
            Def::Thread { thread, name } => {
                self.processes[process]
                    .threads
                    .insert(thread, printable(&name));
            }
            Def::Mode(mode) => self.processes[process].recorded.take(mode),
            Def::Process(mut info) => {
                info.host = printable(&info.host);
                info.command = printable(&info.command);
                info.versions = printable(&info.versions);
                self.processes[process].info.add(info);
            }
        }
    }

    /// Marks kernels of this shape, from here on, as those of the collective.
    fn define_collective(&mut self, process: usize, shape: ShapeId, collective: Collective) {
        let Collective {
            operation,
            group,
            element,
            ..
        } = &collective;
        let collective = Collective {
            operation: printable(operation),
            group: printable(group),
            element: printable(element),
            ..collective
        };
        let known = self.shape_in(process, shape);
        let mut of_it = self.shape(known);
        of_it.collective = self.collectives.id(collective) + 1;
        let global = self.shapes.id(of_it);
        put(&mut self.processes[process].shapes, shape, global, u32::MAX);
    }

    fn define_device(&mut self, process: usize, info: DeviceInfo) {
        let (ordinal, said) = (info.id, printable(&info.name));
        let same = |d: &Device| match (d.info.uuid, info.uuid) {
            (Some(a), Some(b)) => a == b,
            // Nothing tells whether it is the same machine; another model is another GPU for sure.
            _ => {
                let known = &d.info.name;
                let is_other = !known.is_empty() && !said.is_empty() && *known != said;
                d.info.id == ordinal && !is_other
            }
        };
        let known = self.processes[process].devices.get(&ordinal).copied();
        let index = known
            .or_else(|| self.devices.iter().position(same))
            .unwrap_or_else(|| self.add_device(ordinal));
        self.processes[process].devices.insert(ordinal, index);
        let id = self.devices[index].info.id;
        self.devices[index].info = DeviceInfo {
            id,
            name: said,
            link: printable(&info.link),
            ..info
        };
    }

    /// Defines a GPU that somebody read and that no process's records name (yet).
    fn define_gpu(&mut self, gpu: GpuIdentity) {
        let is_same = |it: &Device| it.info.uuid == Some(gpu.uuid);
        if self.devices.iter().any(is_same) {
            return;
        }
        let index = self.add_device(gpu.index);
        self.devices[index].info = DeviceInfo {
            id: self.devices[index].info.id,
            uuid: Some(gpu.uuid),
            name: printable(&gpu.name),
            ..DeviceInfo::default()
        };
    }

    /// Makes another device. Where there are more than any job has, the rest is told as of the last.
    fn add_device(&mut self, ordinal: u32) -> usize {
        if self.devices.len() >= DEVICES_MAX {
            self.unbelievable += 1;
            return DEVICES_MAX - 1;
        }
        let mut id = ordinal;
        if self.devices.iter().any(|it| it.info.id == ordinal) {
            let taken: FxHashSet<u32> = self.devices.iter().map(|d| d.info.id).collect();
            let free = (ordinal..u32::MAX).find(|id| !taken.contains(id));
            id = free.unwrap_or(ordinal);
        }
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
        let known = self.devices.iter().position(|d| d.info.id == ordinal);
        let index = known.unwrap_or_else(|| self.add_device(ordinal));
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
                self.shapes.id(LaunchShape {
                    name,
                    ..LaunchShape::default()
                })
            }
        }
    }

    /// Replaces the process's ids in it by the store's.
    fn globalize(&mut self, process: usize, mut what: What) -> What {
        if let What::Copy(copy) = &mut what {
            copy.peer = self.device_in(process, copy.peer) as u32;
        }
        if let Some(place) = what.place_mut() {
            place.device = self.device_in(process, place.device) as u32;
        }
        if let Some(name) = what.name_mut() {
            *name = self.name_in(process, *name);
        }
        if let Some(shape) = what.shape_mut() {
            *shape = self.shape_in(process, *shape);
        }
        what
    }

    fn lane_for(&mut self, process: usize, what: &What) -> LaneId {
        let kind = match what {
            What::Call(c) => LaneKind::Thread { thread: c.thread },
            What::Range(r) => LaneKind::Range {
                kind: match r.kind {
                    RangeKind::CpuOp => RangeKind::Nvtx,
                    kind => kind,
                },
                thread: r.thread,
            },
            What::Overhead(_) => LaneKind::Overhead,
            What::Sync(_) => LaneKind::Sync,
            What::Event(_) => LaneKind::Event,
            What::Memory(m) => LaneKind::Memory {
                device: m.place.device as usize,
            },
            operation => operation.place().unwrap_or_default().into(),
        };
        let key = LaneKey { process, kind };
        if let LaneKind::Stream { device, .. } = kind
            && let Some(device) = self.devices.get_mut(device)
            && !device.processes.contains(&process)
        {
            device.processes.push(process);
        }
        self.lane(key)
    }

    pub(super) fn lane(&mut self, key: LaneKey) -> LaneId {
        *self.lane_ids.entry(key).or_insert_with(|| {
            let id = self.lanes.len();
            self.lanes.push(Lane::new(key));
            let process = key.process;
            let places: &[By] = match key.kind {
                LaneKind::Stream { device, .. } => {
                    &[By::Streams, By::StreamsOf(device), By::StreamsIn(process)]
                }
                LaneKind::Thread { .. } => &[By::Calls, By::CallsIn(process)],
                _ => &[By::OthersIn(process)],
            };
            for by in places {
                self.lanes_by.entry(*by).or_default().push(id);
            }
            id
        })
    }
}

/// Which engine of its device an operation keeps busy. `None` for other records.
pub fn engine_of(what: &What) -> Option<Engine> {
    match what {
        // A graph's record does not tell what it holds besides kernels.
        What::Kernel(_) | What::Graph(_) => Some(Engine::Compute),
        What::Copy(c) => Some(Engine::Copy(c.direction)),
        What::Memset(_) => Some(Engine::Memset),
        _ => None,
    }
}

/// Puts `value` at `index`, and fills the entries before it with `missing`. Ids are dense, so a huge one is a
/// damaged record: it is ignored, and references to it get the name "?".
pub(super) fn put<T: Clone>(table: &mut Vec<T>, index: u32, value: T, missing: T) {
    const FAR: usize = 1 << 20;
    let index = index as usize;
    if index >= table.len() + FAR {
        return;
    }
    if table.len() <= index {
        table.resize(index + 1, missing);
    }
    table[index] = value;
}

/// The index of a direction in a device's tables; `None` for one without figures of its own.
pub(super) fn slot(direction: Direction) -> Option<usize> {
    Direction::NAMED.iter().position(|&d| d == direction)
}

impl Device {
    pub(super) fn settle(&mut self) {
        // Each of many processes sends its own, and thousands of devices have none of it.
        if self.pending.is_empty() {
            return;
        }
        self.usage.add(&mut self.pending);
        self.pending.clear();
        for (bytes, copied) in self.copied_bytes.iter_mut().zip(&mut self.copied) {
            bytes.add(copied);
        }
    }
}
