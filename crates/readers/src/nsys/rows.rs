//! Converts rows of an export's tables to activities. Columns are numbered as in [`super::schema`].

use rusqlite::Row;
use rustc_hash::{FxHashMap, FxHashSet};

use super::kinds::Kinds;
use super::tables::{Tables, int, large, small, text};
use crate::gather::{Gather, stream_id};
use activity::{
    Copy, Direction, EventRecord, Graph, HostCall, Kernel, LaunchShape, MemoryOp, Memset, NameId,
    Overhead, Place, Range, RangeKind, Sync, SyncKind, What,
};

/// Processes that one export may have; records of further ones count as lost.
const PROCESSES_MAX: usize = 4096;

/// Why a page moved: the program asked for it (`cudaMemPrefetchAsync`).
const ASKED_FOR: i64 = 1;

/// And of a page that left the GPU, as others needed its room.
const MAKES_ROOM: i64 = 4;

/// Calls of the operating system that take less say little, and are many.
const OS_CALL_MIN: i64 = 1_000_000;
const MPI_CALL_MIN: i64 = 20_000;

/// Types of NVTX events that are ranges (push/pop and start/end, of both kinds of NVTX), and marks.
const NVTX_RANGES: [i64; 4] = [59, 60, 70, 71];
const NVTX_MARKS: [i64; 2] = [34, 65];

/// Takes rows in and keeps activities.
pub(super) struct RowReader<'a> {
    tables: &'a Tables,
    kinds: Kinds,
    pub(super) gather: Gather,
    /// Index of a process by its part of the global ids.
    pub(super) processes: FxHashMap<i64, u32>,
    /// Threads that did something, with the name that the export gives them.
    pub(super) threads: FxHashSet<(u32, i64)>,
    /// Streams that something ran on.
    pub(super) streams: FxHashSet<(u32, Place)>,
    strings: FxHashMap<(u32, i64), NameId>,
    /// Names of API functions, by string id.
    pub(super) functions: FxHashMap<i64, Box<str>>,
    pub(super) operations: u64,
    /// Launches of graphs that were recorded as a whole.
    pub(super) graphs: u64,
    pub(super) left_out: u64,
}

impl<'a> RowReader<'a> {
    pub(super) fn new(tables: &'a Tables) -> rusqlite::Result<Self> {
        Ok(RowReader {
            tables,
            kinds: Kinds::of(tables)?,
            gather: Gather::default(),
            processes: FxHashMap::default(),
            threads: FxHashSet::default(),
            streams: FxHashSet::default(),
            strings: FxHashMap::default(),
            functions: FxHashMap::default(),
            operations: 0,
            graphs: 0,
            left_out: 0,
        })
    }

    /// The process that a `globalPid` or `globalTid` belongs to; the first one where the row has none.
    fn process(&mut self, global: Option<i64>) -> Option<u32> {
        let key = match global {
            Some(global) => global >> 24,
            None if !self.processes.is_empty() => return Some(0),
            None => 0,
        };
        let index = self.processes.len();
        if let Some(&index) = self.processes.get(&key) {
            return Some(index);
        }
        if index >= PROCESSES_MAX {
            self.gather.damaged(0);
            return None;
        }
        self.processes.insert(key, index as u32);
        Some(index as u32)
    }

    /// The process and the thread of a `globalTid`.
    fn thread(&mut self, global: Option<i64>) -> Option<(u32, u32)> {
        let process = self.process(global)?;
        let global = global.unwrap_or(0);
        self.threads.insert((process, global));
        Some((process, (global & 0xff_ffff) as u32))
    }

    fn string(&mut self, process: u32, id: Option<i64>) -> rusqlite::Result<NameId> {
        let Some(id) = id else {
            return Ok(self.gather.name(process, "?"));
        };
        if let Some(&name) = self.strings.get(&(process, id)) {
            return Ok(name);
        }
        let text = self.tables.string(id)?;
        let text = text.as_deref().unwrap_or("?");
        let name = self.gather.name(process, text);
        self.strings.insert((process, id), name);
        Ok(name)
    }

    /// Where an operation ran; columns 4 to 6 of every table that has them.
    fn place(&mut self, process: u32, row: &Row<'_>) -> Place {
        let stream = int(row, 6).map_or(0, stream_id);
        self.place_on(stream, process, row)
    }

    fn place_on(&mut self, stream: u32, process: u32, row: &Row<'_>) -> Place {
        let place = Place {
            device: int(row, 4).map_or(u32::MAX, |d| u32::try_from(d).unwrap_or(u32::MAX)),
            context: small(row, 5),
            stream,
        };
        self.streams.insert((process, place));
        place
    }

    fn push(&mut self, process: u32, row: &Row<'_>, correlation: u32, what: What) {
        let (Some(start), Some(end)) = (int(row, 0), int(row, 1)) else {
            return self.gather.timeless(process);
        };
        self.operations += u64::from(what.is_operation());
        self.gather.push(process, (start, end), correlation, what);
    }

    pub(super) fn call(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let Some((process, thread)) = self.thread(int(row, 2)) else {
            return Ok(());
        };
        let correlation = small(row, 3);
        let id = int(row, 4).unwrap_or(i64::MIN);
        if !self.functions.contains_key(&id) {
            let text = self.tables.string(id)?.unwrap_or_else(|| "?".to_owned());
            self.functions.insert(id, without_version(&text).into());
        }
        let text = &self.functions[&id];
        let name = self.gather.name(process, text);
        self.gather.call_named(process, correlation, name, text);
        let code = int(row, 5).and_then(|c| i32::try_from(c).ok()).unwrap_or(0);
        let what = What::Call(HostCall { thread, name, code });
        self.push(process, row, correlation, what);
        Ok(())
    }

    /// Takes a row in that has its process in column 2 and a correlation in column 3.
    pub(super) fn operation(
        &mut self,
        row: &Row<'_>,
        what: fn(&mut Self, u32, &Row<'_>) -> rusqlite::Result<Option<What>>,
    ) -> rusqlite::Result<()> {
        if let Some(process) = self.process(int(row, 2))
            && let Some(what) = what(self, process, row)?
        {
            self.push(process, row, small(row, 3), what);
        }
        Ok(())
    }

    pub(super) fn kernel(&mut self, process: u32, row: &Row<'_>) -> rusqlite::Result<Option<What>> {
        // Where no name was recorded the id is 0.
        let ids = [7, 8, 24].map(|column| int(row, column));
        let known = ids.into_iter().flatten().find(|&id| id != 0);
        let name = self.string(process, known.or(ids[0]))?;
        let triple = |from: usize| [small(row, from), small(row, from + 1), small(row, from + 2)];
        let shape = LaunchShape {
            name,
            grid: triple(9),
            block: triple(12),
            registers: small(row, 15),
            static_shared: small(row, 16),
            dynamic_shared: small(row, 17),
            local: small(row, 18),
            cluster: triple(19),
            collective: 0,
        };
        Ok(Some(What::Kernel(Kernel {
            place: self.place(process, row),
            shape: self.gather.shape(process, shape),
            graph: match int(row, 22) {
                Some(_) => small(row, 22),
                None => graph_of(int(row, 23)),
            },
            node: large(row, 23),
        })))
    }

    pub(super) fn copy(&mut self, process: u32, row: &Row<'_>) -> rusqlite::Result<Option<What>> {
        let (direction, is_migration) = self.kinds.direction(int(row, 8));
        // Its stream is 0 or nothing, which is no stream of the program's.
        let moved = match int(row, 14) {
            Some(ASKED_FOR) => Place::PREFETCHED,
            Some(MAKES_ROOM) => Place::EVICTED,
            _ => Place::NO_STREAM,
        };
        let place = match is_migration {
            true => self.place_on(moved, process, row),
            false => self.place(process, row),
        };
        let peer = [11, 12]
            .into_iter()
            .filter_map(|column| u32::try_from(int(row, column)?).ok())
            .find(|&device| device != place.device);
        let is_peer = direction == Direction::P2P;
        Ok(Some(What::Copy(Copy {
            place,
            direction,
            from: self.kinds.memory(int(row, 9)),
            to: self.kinds.memory(int(row, 10)),
            // Corrected when all calls are known.
            is_async: true,
            bytes: large(row, 7),
            peer: peer.filter(|_| is_peer).unwrap_or(place.device),
            graph: graph_of(int(row, 13)),
            node: activity::node_number(large(row, 13)),
        })))
    }

    pub(super) fn memset(&mut self, process: u32, row: &Row<'_>) -> rusqlite::Result<Option<What>> {
        Ok(Some(What::Memset(Memset {
            place: self.place(process, row),
            bytes: large(row, 7),
            graph: graph_of(int(row, 8)),
            node: activity::node_number(large(row, 8)),
        })))
    }

    pub(super) fn graph(&mut self, process: u32, row: &Row<'_>) -> rusqlite::Result<Option<What>> {
        self.graphs += 1;
        Ok(Some(What::Graph(Graph {
            place: self.place(process, row),
            graph: small(row, 7),
        })))
    }

    pub(super) fn sync(&mut self, _: u32, row: &Row<'_>) -> rusqlite::Result<Option<What>> {
        // 0xffffffff stands for none.
        let known = |column| {
            let value = u32::try_from(int(row, column)?).ok()?;
            (value != u32::MAX).then_some(value)
        };
        let (stream, event) = (known(5), known(6));
        Ok(Some(What::Sync(Sync {
            // Versions of Nsight number the types differently, and not as their own table of names says.
            kind: match (stream, event) {
                (None, None) => SyncKind::Context,
                (None, Some(_)) => SyncKind::Event,
                (Some(_), None) => SyncKind::Stream,
                (Some(_), Some(_)) => SyncKind::StreamWaitEvent,
            },
            context: small(row, 4),
            stream,
            event,
        })))
    }

    pub(super) fn event(&mut self, process: u32, row: &Row<'_>) -> rusqlite::Result<Option<What>> {
        if int(row, 0).unwrap_or(0) == 0 {
            // "0 if not collected".
            self.left_out += 1;
            return Ok(None);
        }
        Ok(Some(What::Event(EventRecord {
            place: self.place(process, row),
            event: small(row, 7),
        })))
    }

    pub(super) fn memory(&mut self, _: u32, row: &Row<'_>) -> rusqlite::Result<Option<What>> {
        let Some(action) = self.kinds.action(int(row, 9)) else {
            self.left_out += 1;
            return Ok(None);
        };
        Ok(Some(What::Memory(MemoryOp {
            action,
            kind: self.kinds.memory(int(row, 8)),
            place: Place::new(small(row, 4), small(row, 5), small(row, 6)),
            bytes: large(row, 7),
            address: large(row, 10),
            // Only memory from a pool is ordered on a stream.
            is_async: int(row, 11).is_some_and(|pool| pool != 0),
        })))
    }

    pub(super) fn overhead(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let Some((process, thread)) = self.thread(int(row, 2)) else {
            return Ok(());
        };
        // CUPTI has a kind that is called undefined: the name beside it says more.
        let kind = self.kinds.overhead(int(row, 4));
        let name = match kind.filter(|kind| kind != "undefined") {
            Some(kind) => self.gather.name(process, &kind),
            None => self.string(process, int(row, 3))?,
        };
        self.push(process, row, 0, What::Overhead(Overhead { name, thread }));
        Ok(())
    }

    /// Long calls of the operating system name what a thread that calls CUDA was at; a poll every 100 ms is no step.
    pub(super) fn os_call(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        self.waiting(row, OS_CALL_MIN)
    }

    /// So do calls of MPI, which exchange data with other processes.
    pub(super) fn mpi_call(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        self.waiting(row, MPI_CALL_MIN)
    }

    fn waiting(&mut self, row: &Row<'_>, least: i64) -> rusqlite::Result<()> {
        let length = int(row, 1)
            .unwrap_or(0)
            .saturating_sub(int(row, 0).unwrap_or(0));
        let global = int(row, 2).unwrap_or(0);
        let process = self.processes.get(&(global >> 24)).copied();
        let is_ours = |process: &u32| self.threads.contains(&(*process, global));
        if let Some(process) = process.filter(is_ours)
            && length >= least
        {
            let what = What::Range(Range {
                kind: RangeKind::CpuOp,
                name: self.string(process, int(row, 3))?,
                thread: (global & 0xff_ffff) as u32,
                index: 0,
            });
            self.push(process, row, 0, what);
        }
        Ok(())
    }

    pub(super) fn nvtx(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let kind = int(row, 3).unwrap_or(-1);
        let is_mark = NVTX_MARKS.contains(&kind);
        if !is_mark && (!NVTX_RANGES.contains(&kind) || int(row, 1).is_none()) {
            // Names of domains, categories and threads are no events; ranges without an end are.
            self.left_out += u64::from(NVTX_RANGES.contains(&kind));
            return Ok(());
        }
        let Some((process, thread)) = self.thread(int(row, 2)) else {
            return Ok(());
        };
        let name = match text(row, 4) {
            empty if empty.is_empty() => self.string(process, int(row, 5))?,
            text => self.gather.name(process, &text),
        };
        let what = What::Range(Range {
            kind: RangeKind::Nvtx,
            name,
            thread,
            index: 0,
        });
        match int(row, 0) {
            Some(at) if is_mark => self.gather.push(process, (at, at), 0, what),
            _ => self.push(process, row, 0, what),
        }
        Ok(())
    }
}

/// The graph of a node: the upper half of its id, which is how CUPTI numbers nodes.
fn graph_of(node: Option<i64>) -> u32 {
    node.map_or(0, |node| (node.cast_unsigned() >> 32) as u32)
}

/// "cudaLaunchKernel" of "cudaLaunchKernel_v7000".
fn without_version(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((front, version))
            if !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit()) =>
        {
            front
        }
        _ => name,
    }
}
