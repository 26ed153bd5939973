//! Common code of trace readers: they gather records, then send them in order of time.
//!
//! Trace files are not sorted: Kineto writes the host's records before the GPU's, Nsight Systems one table after the
//! other. The store is fastest, and counts no record as late, when records come in order. So a file is read to its end,
//! or to where it breaks, before its activities are sent. A gathered record takes less room than its text did in the
//! file.

mod merge;

use std::borrow::Cow;

use recording::file::shortened;
use rustc_hash::{FxHashMap, FxHashSet};

use activity::TIME_MAX;
use activity::feed::{Gone, Message, Outlet, Progress};
use activity::text::printable;
use activity::{
    Activity, Batch, Collective, Correlation, Def, Direction, Health, LaunchShape, NameId, Ns,
    ShapeId, Span, What, units,
};
use merge::Merge;

/// Activities that are sorted at once.
const RUN: usize = 64 * 1024;
/// Activities that one message carries.
const BATCH: usize = 16 * 1024;
/// Activities that one file may hold: 64 M of them take some 5 GB. It counts further ones as lost.
const ACTIVITIES_MAX: usize = 64 << 20;
/// Operations of a GPU whose launches tell how far its clock is behind the host's.
const TOLD_BY: usize = 4096;
/// Fewer tell nothing.
const TELL_MIN: usize = 16;
/// The least from a launch to its start: see `causes::graph::LATENCY_MIN`.
const LATENCY_MIN: Ns = 3_000;
/// The greatest device ordinal that can be right.
const DEVICE_MAX: u32 = 4095;

/// The records of one file, by process.
#[derive(Debug, Default)]
pub(super) struct Gather {
    processes: Vec<Process>,
    /// Activities so far.
    pub(super) total: usize,
}

#[derive(Debug, Default)]
struct Process {
    names: FxHashMap<Box<str>, NameId>,
    shapes: FxHashMap<LaunchShape, ShapeId>,
    /// Numbered from 1 on.
    collectives: Vec<Collective>,
    collective_ids: FxHashMap<Collective, u32>,
    defs: Vec<Def>,
    /// Records that were not yet sorted, and runs of those that were, in the order of the file.
    items: Vec<Activity>,
    runs: Vec<Vec<Activity>>,
    health: Health,
    /// By name: whether a call of this name copies and returns when the copy is done.
    copiers: Vec<Option<bool>>,
    /// Such calls.
    synchronous: FxHashSet<Correlation>,
    devices: FxHashSet<u32>,
}

impl Gather {
    /// How many processes have been mentioned.
    pub(super) fn processes(&self) -> u32 {
        self.processes.len() as u32
    }

    /// The devices that operations of a process ran on.
    pub(super) fn devices(&self, process: u32) -> Vec<u32> {
        let known = self.processes.get(process as usize);
        let known = known.map(|p| p.devices.iter().copied().collect());
        let mut devices: Vec<u32> = known.unwrap_or_default();
        devices.sort_unstable();
        devices
    }

    fn process(&mut self, process: u32) -> &mut Process {
        let index = process as usize;
        while self.processes.len() <= index {
            self.processes.push(Process::default());
        }
        &mut self.processes[index]
    }

    /// The id of a string.
    pub(super) fn name(&mut self, process: u32, text: &str) -> NameId {
        let long;
        let text = match shortened(text.as_bytes()) {
            Cow::Borrowed(_) => text,
            Cow::Owned(bytes) => {
                long = String::from_utf8_lossy(&bytes).into_owned();
                &long
            }
        };
        let process = self.process(process);
        if let Some(&id) = process.names.get(text) {
            return id;
        }
        let id = process.names.len() as NameId;
        process.names.insert(text.into(), id);
        let text = text.to_owned();
        process.defs.push(Def::Name { id, text });
        id
    }

    /// The number of a collective, for [`LaunchShape::collective`].
    pub(super) fn collective(&mut self, process: u32, collective: Collective) -> u32 {
        let process = self.process(process);
        if let Some(&id) = process.collective_ids.get(&collective) {
            return id;
        }
        process.collectives.push(collective.clone());
        let id = process.collectives.len() as u32;
        process.collective_ids.insert(collective, id);
        id
    }

    /// The id of a launch configuration.
    pub(super) fn shape(&mut self, process: u32, shape: LaunchShape) -> ShapeId {
        let process = self.process(process);
        if let Some(&id) = process.shapes.get(&shape) {
            return id;
        }
        let id = process.shapes.len() as ShapeId;
        process.shapes.insert(shape, id);
        process.defs.push(Def::Shape { id, shape });
        let number = (shape.collective as usize).wrapping_sub(1);
        if let Some(collective) = process.collectives.get(number).cloned() {
            process.defs.push(Def::Collective {
                shape: id,
                collective,
            });
        }
        id
    }

    /// Adds a definition.
    pub(super) fn define(&mut self, process: u32, def: Def) {
        self.process(process).defs.push(def);
    }

    /// Calls all processes by one name.
    pub(super) fn call(&mut self, name: &str) {
        let defs = self.processes.iter_mut().flat_map(|it| &mut it.defs);
        for def in defs {
            if let Def::Process(info) = def {
                name.clone_into(&mut info.command);
            }
        }
    }

    /// Counts a record that could not be read.
    pub(super) fn damaged(&mut self, process: u32) {
        let health = self.health(process);
        health.received += 1;
        health.lost += 1;
    }

    /// The counters of a process.
    pub(super) fn health(&mut self, process: u32) -> &mut Health {
        &mut self.process(process).health
    }

    /// Counts a record without a possible time.
    pub(super) fn timeless(&mut self, process: u32) {
        let health = self.health(process);
        health.received += 1;
        health.no_timestamp += 1;
    }

    /// Remembers that the host call `correlation` copies synchronously, if its name says so.
    pub(super) fn call_named(
        &mut self,
        process: u32,
        correlation: Correlation,
        id: NameId,
        name: &str,
    ) {
        let process = self.process(process);
        if process.copiers.len() <= id as usize {
            process.copiers.resize(id as usize + 1, None);
        }
        let is_copier = &mut process.copiers[id as usize];
        let is_copier = *is_copier.get_or_insert_with(|| {
            name.contains("emcpy") && !name.contains("Async") && !name.contains("Peer")
        });
        if is_copier {
            process.synchronous.insert(correlation);
        }
    }

    /// Adds an activity, if its values are possible.
    pub(super) fn push(
        &mut self,
        process: u32,
        (start, end): (Ns, Ns),
        correlation: Correlation,
        what: What,
    ) {
        let activity = Activity::new(Span { start, end }, correlation, what);
        let is_full = self.total >= ACTIVITIES_MAX;
        let into = self.process(process);
        into.health.received += 1;
        let is_operation = activity.is_operation();
        if is_operation && start == 0 && end == 0 {
            // CUPTI writes this when it could not take the time.
            into.health.no_timestamp += 1;
        } else if end < start {
            into.health.end_before_start += 1;
        } else if start < -TIME_MAX || end > TIME_MAX {
            into.health.bad_clock += 1;
        } else if is_full || device_of(&activity.what).is_some_and(|d| d > DEVICE_MAX) {
            into.health.lost += 1;
        } else {
            if let Some(place) = activity.place() {
                into.devices.insert(place.device);
            }
            if let What::Copy(copy) = activity.what {
                into.devices.insert(copy.peer);
            }
            into.items.push(activity);
            if into.items.len() == RUN {
                into.seal();
            }
            self.total += 1;
        }
    }

    /// Sorts what has been added since the last time.
    pub(super) fn seal(&mut self) {
        for process in &mut self.processes {
            process.seal();
        }
    }

    /// Adds the records of a later part of the same file.
    pub(super) fn absorb(&mut self, later: Gather) {
        for (index, part) in later.processes.into_iter().enumerate() {
            let index = index as u32;
            self.process(index);
            let (mut names, mut shapes) = (Vec::new(), Vec::new());
            for def in part.defs {
                match def {
                    Def::Name { text, .. } => names.push(self.name(index, &text)),
                    Def::Shape { mut shape, .. } => {
                        shape.name = names[shape.name as usize];
                        let number = (shape.collective as usize).wrapping_sub(1);
                        if let Some(collective) = part.collectives.get(number) {
                            shape.collective = self.collective(index, collective.clone());
                        }
                        shapes.push(self.shape(index, shape));
                    }
                    // It is defined with its shape.
                    Def::Collective { .. } => {}
                    other => self.define(index, other),
                }
            }
            let mut room = ACTIVITIES_MAX - self.total;
            let process = self.process(index);
            for mut run in part.runs.into_iter().chain([part.items]) {
                if run.len() > room {
                    process.health.lost += (run.len() - room) as u64;
                    run.truncate(room);
                }
                room -= run.len();
                for item in &mut run {
                    if let Some(name) = item.what.name_mut() {
                        *name = names[*name as usize];
                    }
                    if let Some(shape) = item.what.shape_mut() {
                        *shape = shapes[*shape as usize];
                    }
                }
                process.go_on(run);
            }
            process.health.add(&part.health);
            process.synchronous.extend(part.synchronous);
            process.devices.extend(part.devices);
            self.total = ACTIVITIES_MAX - room;
        }
    }

    /// Sends everything, moved by `shift` ns, as the processes from `first` on.
    ///
    /// # Errors
    /// When the consumer is gone.
    pub(super) fn send(mut self, outlet: &Outlet, first: u32, shift: Ns) -> Result<(), Gone> {
        self.seal();
        for (index, process) in self.processes.iter_mut().enumerate() {
            if let Some(behind) = process.align() {
                let by = units::duration(behind);
                let text = format!(
                    "the GPU's clock is {by} behind the CPU's in this file: operations are shown so much later"
                );
                notice(outlet, false, text)?;
            }
            outlet.send(Message::Batch(Batch {
                process: first + index as u32,
                defs: std::mem::take(&mut process.defs),
                items: Vec::new(),
                health: Some(process.health),
                ..Batch::default()
            }))?;
        }
        let runs = self
            .processes
            .iter_mut()
            .map(|process| std::mem::take(&mut process.runs));
        let mut merge = Merge::new(runs);
        let mut ready: Vec<Vec<Activity>> = vec![Vec::new(); self.processes.len()];
        loop {
            let is_more = merge.take(BATCH, |process, mut item| {
                let moved = |time: Ns| time.saturating_add(shift);
                item.span = Span::new(moved(item.span.start), moved(item.span.end));
                if let What::Copy(copy) = &mut item.what {
                    copy.is_async = !self.processes[process]
                        .synchronous
                        .contains(&item.correlation);
                }
                ready[process].push(item);
            });
            let last = ready.iter().rposition(|items| !items.is_empty());
            for (index, items) in ready.iter_mut().enumerate() {
                if !items.is_empty() {
                    outlet.send(Message::Batch(Batch {
                        process: first + index as u32,
                        is_part: Some(index) != last,
                        items: std::mem::take(items),
                        ..Batch::default()
                    }))?;
                }
            }
            // A user who stops reading still wants what was read. A consumer that is gone is reported above.
            if !is_more {
                return Ok(());
            }
        }
    }
}

impl Process {
    /// Moves the operations to the host's clock where some begin before their own launch. Returns by how much.
    fn align(&mut self) -> Option<Ns> {
        let all = || self.runs.iter().flatten();
        let ops = all().filter(|it| it.is_operation() && it.correlation != 0);
        let each = ops.clone().count() / TOLD_BY + 1;
        let starts = ops.step_by(each).map(|it| (it.correlation, it.span.start));
        let starts: FxHashMap<Correlation, Ns> = starts.collect();
        let calls = all().filter(|it| matches!(it.what, What::Call(_)));
        let delays = calls.filter_map(|it| Some(starts.get(&it.correlation)? - it.span.start));
        let mut delays: Vec<Ns> = delays.collect();
        // One record in a hundred may be wrong.
        let at = delays.len() / 100;
        let is_told = delays.len() >= TELL_MIN;
        let least = is_told.then(|| *delays.select_nth_unstable(at).1)?;
        let by = (least < 0).then_some(LATENCY_MIN - least)?;
        for run in &mut self.runs {
            for op in run.iter_mut().filter(|it| it.is_operation()) {
                let moved = |time: Ns| time.saturating_add(by);
                op.span = Span::new(moved(op.span.start), moved(op.span.end));
            }
            merge::sort(run);
        }
        Some(by)
    }

    /// Adds a sorted run of a later part: to the last one, where most of it comes behind that. Long runs are quick to merge,
    /// and the C library gives their memory back when they are freed, which of many short ones it keeps.
    fn go_on(&mut self, run: Vec<Activity>) {
        let Some(first) = run.first() else { return };
        if let Some(last) = self.runs.last_mut() {
            let sorted = last.partition_point(|it| merge::key(it) <= merge::key(first));
            if last.len() + run.len() <= RUN && last.len() - sorted <= run.len() {
                last.extend(run);
                last[sorted..].sort_by_key(merge::key);
                return;
            }
        }
        self.runs.push(run);
    }

    fn seal(&mut self) {
        if self.items.is_empty() {
            return;
        }
        let mut run = std::mem::take(&mut self.items);
        run.shrink_to_fit();
        merge::sort(&mut run);
        self.runs.push(run);
    }
}

/// A shift that can be right: 0 when the file's is beyond all clocks.
pub(super) fn believable(shift: Ns) -> Ns {
    if (-TIME_MAX..=TIME_MAX).contains(&shift) {
        shift
    } else {
        0
    }
}

/// Reports how far reading has come, each time another 1/200 of the file is done.
#[derive(Debug)]
pub(super) struct Meter {
    what: String,
    total: u64,
    next: u64,
}

impl Meter {
    /// Makes a meter for work called `what`, of `total` units.
    pub(super) fn new(what: String, total: u64) -> Self {
        Meter {
            what: printable(&what),
            total,
            next: 0,
        }
    }

    /// Reports that `done` units are done.
    ///
    /// # Errors
    /// When the consumer is gone.
    pub(super) fn report(&mut self, outlet: &Outlet, done: u64) -> Result<(), Gone> {
        if done < self.next && done < self.total {
            return Ok(());
        }
        self.next = done + self.total / 200 + 1;
        outlet.send(Message::Progress(Progress {
            what: self.what.clone(),
            done,
            total: self.total,
        }))
    }
}

/// Why reading ended before the file did.
pub(super) enum Stop<E> {
    Broken(E),
    Asked,
    Gone,
}

impl<E: std::error::Error> From<E> for Stop<E> {
    fn from(error: E) -> Self {
        Stop::Broken(error)
    }
}

/// What a failure says of the records that were read before it.
pub(super) fn kept(records: usize) -> String {
    match records {
        0 => String::new(),
        n => format!(
            " The {} records before that are on the timeline.",
            units::count(n as u64)
        ),
    }
}

/// Sends the user a remark on the file.
pub(super) fn notice(outlet: &Outlet, is_warning: bool, text: String) -> Result<(), Gone> {
    outlet.notice(is_warning, printable(&text))
}

/// The direction of a copy by CUDA's short name: "HtoD", "DTOA". An array is device memory. `None` for any other word.
pub(super) fn direction(kind: &str) -> Option<Direction> {
    Some(match kind.to_ascii_uppercase().as_str() {
        "HTOD" | "HTOA" => Direction::H2D,
        "DTOH" | "ATOH" => Direction::D2H,
        "DTOD" | "ATOA" | "ATOD" | "DTOA" => Direction::D2D,
        "PTOP" => Direction::P2P,
        "HTOH" => Direction::Other,
        _ => return None,
    })
}

/// A stream's id in 32 bits. Some profilers give longer ones, which must not become another stream's.
pub(super) fn stream_id(id: i64) -> u32 {
    u32::try_from(id).unwrap_or_else(|_| {
        let bits = id.cast_unsigned();
        (bits ^ bits >> 32) as u32 | 1 << 31
    })
}

fn device_of(what: &What) -> Option<u32> {
    match what {
        What::Copy(c) => Some(c.place.device.max(c.peer)),
        _ => what.place().map(|place| place.device),
    }
}
