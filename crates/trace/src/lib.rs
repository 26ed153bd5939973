//! The trace store: lanes, columns and names. Plain data: no threads, no screen, no CUDA.
//!
//! One owner applies batches ([`Trace::apply`]) and asks questions; there is no lock. Intake replaces ids that are
//! local to a process (names, launch shapes) by the store's own. It replaces process-local device ordinals by indices
//! of physical devices. So everything that comes out of a [`Trace`] speaks of one timeline.
//!
//! Columns stand in chunks behind reference counts. [`Trace::snapshot`] shares them with another thread, which reads
//! the timeline as it was then. Its owner goes on; a late record rebuilds the chunk that it falls into.
//!
//! A row costs 16 bytes of columns, or 24 in a chunk with times more than 4 s apart. Prefix sums and the indices of
//! times and longest rows add about 3. An operation costs up to 21 more in its device's [`Usage`], less where
//! operations touch or overlap. A copy costs 26 more in the table of bytes moved. What rows have in common (kernel,
//! configuration, stream, direction, size) is stored once, in a table of distinct [`What`]s.

mod calls;
mod clock;
mod copied_bytes;
pub mod describe;
mod evict;
mod hardware;
mod intake;
mod key;
mod lane;
mod names;
mod nodes;
mod off_cpu;
pub mod parallel;
mod pool;
mod recording_windows;
mod retime;
mod rollup;
mod rows;
pub mod samples;
mod series;
pub mod short;
mod snapshot;
#[cfg(feature = "testing")]
pub mod testing;
mod usage;
mod windows;

use std::ops::Range;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

pub use calls::CallIndex;
pub use clock::{Clock, Clocks};
pub use evict::Evicted;
pub use hardware::{GpuReadings, GpuWindow, HardwareReadings, StallReasons};
pub use intake::engine_of;
pub use key::{LaneKey, LaneKind};
pub use lane::{Cursor, Lane};
pub use names::Names;
pub use off_cpu::{ProcessOffCpu, ThreadTime, Throttling};
pub use recording_windows::RecordingWindows;
pub use samples::{ProcessSamples, Stacks};
pub use usage::{Engine, Measure, Usage};

use activity::{
    Activity, Collective, DeviceInfo, Direction, Health, LaunchShape, NameId, Ns, ProcessInfo,
    ShapeId, Span, StreamInfo, What,
};
use copied_bytes::CopiedBytes;
use pool::Interned;
use rows::Row;

#[cfg(feature = "testing")]
pub use testing::made;

/// Counts what is made of a timeline, for tests.
#[cfg(not(feature = "testing"))]
#[inline]
pub fn made(_what: &'static str) {}

/// Index into [`Trace::lanes`].
pub type LaneId = usize;

/// What kind of source a timeline is from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceKind {
    #[default]
    Simulator,
    /// A scenario on a real GPU.
    Cuda,
    /// A program that was traced.
    Traced,
    /// A program that was running already, and was only sampled from outside.
    Attached,
    /// A saved recording.
    Recording,
    /// A Kineto or Chrome JSON trace.
    Kineto,
    /// An Nsight Systems SQLite export.
    Nsys,
}

impl SourceKind {
    /// The word for it in reports.
    pub fn label(self) -> &'static str {
        [
            "simulator",
            "cuda",
            "traced",
            "attached",
            "recording",
            "kineto",
            "nsys",
        ][self as usize]
    }
}

/// Where a timeline comes from.
#[derive(Clone, Debug, Default)]
pub struct SourceInfo {
    /// What kind of source.
    pub kind: SourceKind,
    /// Its title: the scenario, the command, the file.
    pub title: String,
    /// The file or directory, where there is one.
    pub path: Option<std::path::PathBuf>,
    /// Whether no GPU was involved. Then the screen and every export say so.
    pub simulated: bool,
    /// What the user or the file says about its processes' clocks.
    pub clocks: Clocks,
}

/// A physical device.
#[derive(Clone, Debug, Default)]
pub struct Device {
    /// Its model and limits. `info.id` is unique in the timeline.
    pub info: DeviceInfo,
    /// Which engines were busy at each moment.
    pub usage: Usage,
    /// Bytes that copies have moved, by direction.
    copied_bytes: [CopiedBytes; 4],
    /// The processes that have operations on it, as far as known.
    processes: Vec<usize>,
    /// When recording of one of them was off, once somebody asked.
    off: OnceLock<Vec<Span>>,
    pending: Vec<(Span, Engine)>,
    copied: [Vec<(Span, u64)>; 4],
}

#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Its identity: host, process id, command, rank.
    pub info: ProcessInfo,
    /// Its counters.
    pub health: Health,
    /// When it was recorded, and when not.
    recorded: RecordingWindows,
    /// The streams that it named or described, by context and stream.
    pub streams: FxHashMap<(u32, u32), StreamInfo>,
    /// Names of its threads.
    pub threads: FxHashMap<u32, String>,
    /// When its launching threads were on and off their processors.
    pub off_cpu: ProcessOffCpu,
    /// Its stack samples.
    pub sampled: ProcessSamples,
    /// The nodes of its CUDA graphs.
    graphs: nodes::Graphs,
    /// Converts its times to those of the timeline.
    clock: Clock,
    names: Vec<NameId>,
    shapes: Vec<ShapeId>,
    /// Its device ordinals, as indices into [`Trace::devices`].
    devices: FxHashMap<u32, usize>,
    /// What it has sent, in its own ids, and where that goes.
    routes: FxHashMap<What, Route>,
}

/// Where a record goes. One look-up a record finds it, instead of one for each part.
#[derive(Clone, Copy, Debug)]
struct Route {
    lane: LaneId,
    detail: u32,
    engine: Option<(usize, Engine)>,
    /// Whether it is the lane of a thread beyond the first [`NEAR`].
    is_far: bool,
}

/// What lanes are found by: their process or their device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum By {
    Streams,
    StreamsOf(usize),
    StreamsIn(usize),
    Calls,
    CallsIn(usize),
    OthersIn(usize),
}

/// A timeline.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Where it comes from.
    pub source: SourceInfo,
    names: Names,
    shapes: Interned<LaunchShape>,
    collectives: Interned<Collective>,
    details: Interned<What>,
    lanes: Vec<Lane>,
    lane_ids: FxHashMap<LaneKey, LaneId>,
    /// A job may have lanes by the thousand, and processes and devices, too.
    lanes_by: FxHashMap<By, Vec<LaneId>>,
    /// Calls of threads beyond the first [`NEAR`] of a process, by process and correlation id.
    far_calls: FxHashMap<(usize, u32), LaneId>,
    devices: Vec<Device>,
    processes: Vec<Process>,
    stacks: Stacks,
    /// How many more frames of stacks may be drawn than at the beginning.
    room_for_frames: i64,
    extent: Option<Span>,
    late: u64,
    /// What all records claim together, in ns and bytes of copies: sums of any of them fit.
    claimed: (Ns, u64),
    /// Records that claim more than that.
    unbelievable: u64,
    evicted: Option<Evicted>,
    /// Bytes of memory beyond which old records are evicted.
    limit: Option<usize>,
    /// Records since the last check of memory.
    unchecked: usize,
    hardware: HardwareReadings,
    /// Whether alignment put the processes' clocks on one, as far as they are known.
    is_on_one_clock: bool,
    revision: u64,
}

impl Trace {
    /// An empty timeline.
    pub fn new(source: SourceInfo) -> Self {
        let mut trace = Trace {
            source,
            ..Trace::default()
        };
        if let Clocks::Set(clocks) = &trace.source.clocks {
            let clocks = clocks.clone();
            trace.retime(&clocks);
        }
        trace
    }

    /// Changes whenever a batch was applied, records were evicted or clocks were set.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// First start to last end of everything.
    pub fn extent(&self) -> Option<Span> {
        self.extent
    }

    /// First operation's start to the last one's end, over all devices.
    pub fn operations_extent(&self) -> Option<Span> {
        let spans = self.devices.iter().filter_map(|d| d.usage.span());
        spans.reduce(Span::hull)
    }

    /// All lanes, in order of first appearance.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// The lane with this key.
    pub fn lane_id(&self, key: LaneKey) -> Option<LaneId> {
        self.lane_ids.get(&key).copied()
    }

    /// The lanes of all streams, in order of first appearance.
    pub fn streams(&self) -> impl Iterator<Item = (LaneId, &Lane)> {
        self.lanes_by(By::Streams)
    }

    /// The lanes of the streams of a device, in order of first appearance.
    pub fn streams_of(&self, device: usize) -> impl Iterator<Item = (LaneId, &Lane)> {
        self.lanes_by(By::StreamsOf(device))
    }

    /// The same of a process.
    pub fn streams_in(&self, process: usize) -> impl Iterator<Item = (LaneId, &Lane)> {
        self.lanes_by(By::StreamsIn(process))
    }

    /// The lanes of calls, each with its thread.
    pub fn threads(&self) -> impl Iterator<Item = (LaneId, &Lane, u32)> {
        with_thread(self.lanes_by(By::Calls))
    }

    /// The same of a process.
    pub fn threads_in(&self, process: usize) -> impl Iterator<Item = (LaneId, &Lane, u32)> {
        with_thread(self.lanes_by(By::CallsIn(process)))
    }

    /// The lanes of a process that hold neither operations nor calls.
    pub fn others_in(&self, process: usize) -> impl Iterator<Item = (LaneId, &Lane)> {
        self.lanes_by(By::OthersIn(process))
    }

    fn lanes_by(&self, by: By) -> impl Iterator<Item = (LaneId, &Lane)> {
        let ids = self.lanes_by.get(&by).into_iter().flatten();
        ids.map(|&id| (id, &self.lanes[id]))
    }

    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// What a row records. Ids in it are the store's own, devices are indices into [`Trace::devices`].
    pub fn activity(&self, lane: LaneId, row: usize) -> Activity {
        self.told(self.lanes[lane].row(row))
    }

    /// What these rows record, one after the other: [`Trace::activity`] looks for the place of each.
    pub fn activities(
        &self,
        lane: LaneId,
        rows: Range<usize>,
    ) -> impl Iterator<Item = (usize, Activity)> + '_ {
        let rows = self.lanes[lane].entries(rows);
        rows.map(|(at, row)| (at, self.told(row)))
    }

    fn told(&self, row: Row) -> Activity {
        Activity {
            span: row.span,
            correlation: row.correlation,
            what: self.detail(row.detail),
        }
    }

    /// What a row records, without its time: [`Trace::activity`] reads three times as much memory.
    #[inline]
    pub fn what(&self, lane: LaneId, row: usize) -> What {
        self.detail(self.what_id(lane, row))
    }

    /// A number that rows with the same [`Trace::what`] share, for callers that cache by it.
    #[inline]
    pub fn what_id(&self, lane: LaneId, row: usize) -> u32 {
        self.lanes[lane].detail(row)
    }

    /// Visits the rows of a lane whose [`Trace::what`] is one of these, evicted rows left out. It asks about each
    /// distinct one once, and reads no more of a row than its index. `each` returns whether to go on.
    pub fn rows_of(
        &self,
        lane: LaneId,
        known: &mut Vec<Option<bool>>,
        is_one: impl Fn(&What) -> bool,
        mut each: impl FnMut(usize, bool) -> bool,
    ) {
        known.resize(self.details.entries.len(), None);
        let lane = &self.lanes[lane];
        for (row, detail) in lane.details_from(lane.kept().start) {
            let known = &mut known[detail as usize];
            let is_one = *known.get_or_insert_with(|| is_one(&self.detail(detail)));
            if !each(row, is_one) {
                return;
            }
        }
    }

    #[inline]
    fn detail(&self, detail: u32) -> What {
        // A row is queued only with a detail that is interned.
        let known = self.details.entries.get(detail as usize);
        *known.expect("interned")
    }

    /// All strings.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// A launch configuration; its `name` is the store's own.
    #[inline]
    pub fn shape(&self, id: ShapeId) -> LaunchShape {
        let known = self.shapes.entries.get(id as usize);
        known.copied().unwrap_or_default()
    }

    /// The collective to which a launch configuration belongs.
    pub fn collective(&self, shape: &LaunchShape) -> Option<&Collective> {
        let index = shape.collective.checked_sub(1)?;
        self.collectives.entries.get(index as usize)
    }

    /// Bytes that copies of one direction moved within `window` on a device; a copy across its edge
    /// counts in proportion.
    pub fn bytes_moved(&self, device: usize, direction: Direction, window: Span) -> f64 {
        intake::slot(direction)
            .and_then(|slot| Some(self.devices.get(device)?.copied_bytes[slot].within(window)))
            .unwrap_or(0.0)
    }

    /// Bytes that copies of a direction moved between each of these moments, which ascend, and the next.
    pub fn bytes_moved_each(&self, device: usize, direction: Direction, edges: &[Ns]) -> Vec<f64> {
        intake::slot(direction)
            .and_then(|slot| Some(self.devices.get(device)?.copied_bytes[slot].within_each(edges)))
            .unwrap_or_else(|| vec![0.0; edges.len().saturating_sub(1)])
    }

    /// The host call with this correlation id: its lane and row.
    pub fn call(&self, process: usize, correlation: u32) -> Option<(LaneId, usize)> {
        let far = self.far_calls.get(&(process, correlation));
        let far = far.map(|&id| (id, &self.lanes[id]));
        let near = self.lanes_by(By::CallsIn(process)).take(NEAR);
        find(far.into_iter().chain(near), correlation)
    }

    /// The first operation with this correlation id: its lane and row.
    pub fn operation(&self, process: usize, correlation: u32) -> Option<(LaneId, usize)> {
        find(self.streams_in(process), correlation)
    }

    /// What GPUs' counters and sensors reported.
    pub fn hardware(&self) -> &HardwareReadings {
        &self.hardware
    }

    /// What the counters and sensors of a device reported; `None` where nobody read them.
    pub fn readings(&self, device: usize) -> Option<&GpuReadings> {
        self.hardware.find(self.devices.get(device)?.info.uuid?)
    }

    /// Whether the counters of a device were sampled.
    pub fn is_sampled(&self) -> bool {
        let of = |index| self.readings(index).is_some_and(GpuReadings::is_sampled);
        (0..self.devices.len()).any(of)
    }

    /// The counters of all processes together.
    pub fn health(&self) -> Health {
        let mut health = Health::default();
        for process in &self.processes {
            health.add(&process.health);
        }
        health.bad_clock += self.unbelievable;
        health
    }

    /// Records that arrived after one that started later on the same lane. They stand where they belong.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Bytes of memory that columns and tables take, without the allocator's slack.
    pub fn memory(&self) -> usize {
        let lanes: usize = self.lanes.iter().map(Lane::memory).sum();
        let copies = |d: &Device| {
            d.copied_bytes
                .iter()
                .map(CopiedBytes::memory)
                .sum::<usize>()
        };
        let of_device = |d: &Device| d.usage.memory() + copies(d);
        let devices: usize = self.devices.iter().map(of_device).sum();
        let processes = self.processes.iter();
        let beside =
            processes.map(|it| it.sampled.memory() + it.off_cpu.memory() + it.graphs.memory());
        let beside: usize = beside.sum();
        let details = self.details.entries.len() * 2 * size_of::<What>();
        let details = details + self.far_calls.len() * size_of::<((usize, u32), LaneId)>();
        lanes + devices + details + beside + self.hardware.memory()
    }

    /// The least distance, in ns, between two neighbouring operations of a device that counts as idle. A shorter one is
    /// launch overhead that the hardware itself has between two operations.
    pub const GAP_MIN: Ns = 1_000;
}

/// Threads of a process that are searched for a call one after another.
const NEAR: usize = 256;

fn with_thread<'t>(
    lanes: impl Iterator<Item = (LaneId, &'t Lane)>,
) -> impl Iterator<Item = (LaneId, &'t Lane, u32)> {
    lanes.filter_map(|(id, lane)| match lane.key().kind {
        LaneKind::Thread { thread } => Some((id, lane, thread)),
        _ => None,
    })
}

fn find<'t>(
    mut lanes: impl Iterator<Item = (LaneId, &'t Lane)>,
    correlation: u32,
) -> Option<(LaneId, usize)> {
    lanes.find_map(|(id, lane)| Some((id, lane.find_correlation(correlation)?)))
}

#[cfg(test)]
mod tests;
