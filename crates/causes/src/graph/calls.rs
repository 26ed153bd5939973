//! The host's side: calls by thread, and what kind of call each is.

use rustc_hash::FxHashMap;

use super::{CallId, HANDOVER_MIN, NONE, OpId};
use activity::{NameId, Ns, Span, Sync};
use trace::{LaneId, Names};

/// What a host call does, by its name, and by the record of its wait where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CallKind {
    /// Hands a kernel to a stream.
    Launch,
    /// Hands a graph to a stream.
    GraphLaunch,
    /// Makes a graph fit to be launched, or brings it to the device.
    GraphSetup,
    /// Copies or sets memory, or prefetches it.
    Copy,
    /// Waits for the device.
    WaitDevice,
    /// Waits for a stream.
    WaitStream,
    /// Waits for an event.
    WaitEvent,
    /// Takes or gives back memory in a way that may wait for the device.
    Memory,
    /// Loads or compiles GPU code.
    Load,
    /// Begins to record what is launched into a graph instead of running it.
    CaptureBegin,
    /// Ends that.
    CaptureEnd,
    /// Anything else.
    Other,
}

impl CallKind {
    /// By the function's name: CUDA's runtime or driver, or HIP's.
    pub fn of(name: &str) -> CallKind {
        let bare = ["cuda", "hip", "cu"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix))
            .unwrap_or(name);
        let has = |words: &str| words.split(' ').any(|word| bare.contains(word));
        if has("Synchronize") {
            return match (has("Stream"), has("Event")) {
                (true, _) => CallKind::WaitStream,
                (_, true) => CallKind::WaitEvent,
                _ => CallKind::WaitDevice,
            };
        }
        // In this order: some words are parts of others' names.
        let kinds = [
            ("BeginCapture", CallKind::CaptureBegin),
            ("EndCapture", CallKind::CaptureEnd),
            ("GraphLaunch", CallKind::GraphLaunch),
            (
                "GraphInstantiate GraphUpload GraphExecUpdate",
                CallKind::GraphSetup,
            ),
            ("Launch", CallKind::Launch),
            ("GetLoadingMode Unload", CallKind::Other),
            ("Module Library Link FuncLoad nvrtc", CallKind::Load),
            ("Memcpy Memset Prefetch", CallKind::Copy),
            (
                "Malloc Free MemAlloc HostAlloc HostRegister HostUnregister MemPool",
                CallKind::Memory,
            ),
        ];
        let kind = kinds.into_iter().find(|(words, _)| has(words));
        kind.map_or(CallKind::Other, |(_, kind)| kind)
    }

    /// Whether it launches a kernel or a graph.
    pub fn is_launch(self) -> bool {
        matches!(self, CallKind::Launch | CallKind::GraphLaunch)
    }

    /// Whether the call is there to wait.
    pub fn is_wait(self) -> bool {
        matches!(
            self,
            CallKind::WaitDevice | CallKind::WaitStream | CallKind::WaitEvent
        )
    }
}

/// Makes room in columns: what grows bit by bit leaves holes in memory.
macro_rules! reserve {
    ($of:expr, $more:expr, $($column:ident),*) => {
        $($of.$column.reserve($more);)*
    };
}
pub(super) use reserve;

/// Puts lists of what ended in order.
pub(super) fn sort_by_end(lists: &mut [Vec<u32>], ends: &[Ns]) {
    for list in lists {
        list.sort_by_key(|&it| (ends[it as usize], it));
    }
}

/// Host calls by start; calls inside another call of their thread belong to it and are not here.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// The lane of its thread.
    pub lane: Vec<u32>,
    /// Its row there.
    pub row: Vec<u32>,
    pub start: Vec<Ns>,
    pub end: Vec<Ns>,
    pub kind: Vec<CallKind>,
    /// The call before it on its thread, or [`NONE`].
    pub previous: Vec<CallId>,
    /// The last call of another thread of the process before it, where that thread handed over to this
    /// one, or [`NONE`].
    pub handed: Vec<CallId>,
    /// The operation that it waited for: the call returned because that had ended. [`NONE`] where it
    /// waited for none.
    pub waited: Vec<OpId>,
    /// The last call at or before this one, along threads and hand-overs, that waited for an operation.
    pub root: Vec<CallId>,
    /// Its first operation, or [`NONE`].
    pub first_op: Vec<OpId>,
    /// By lane: its calls.
    pub(super) by_lane: Vec<Vec<CallId>>,
    /// By process: calls by their end.
    pub(super) by_end: Vec<Vec<CallId>>,
    /// By process: outermost calls by correlation id.
    pub(crate) by_correlation: Vec<Vec<(u32, CallId)>>,
    /// What waits are for.
    pub(super) awaited: FxHashMap<CallId, Sync>,
    /// Whether any returned something other than 0.
    pub has_failed: bool,
    /// Errors that a call's record leaves to one of the same function within it.
    pub failed_within: FxHashMap<CallId, i32>,
    /// Kinds by name.
    pub(super) kinds: Vec<Option<CallKind>>,
}

impl Calls {
    /// A copy that its call waited for and the wait right behind it are one wait: that of the copy.
    pub fn with_copy(&self, wait: CallId) -> CallId {
        let before = self.previous[wait as usize];
        let is_copy = before != NONE
            && self.kind[wait as usize].is_wait()
            && self.kind[before as usize] == CallKind::Copy
            && self.waited[before as usize] != NONE
            && self.start[wait as usize] - self.end[before as usize] < HANDOVER_MIN;
        if is_copy { before } else { wait }
    }

    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// When a call ran.
    pub fn span(&self, call: CallId) -> Span {
        Span {
            start: self.start[call as usize],
            end: self.end[call as usize],
        }
    }

    /// Where a call stands on the timeline.
    pub fn at(&self, call: CallId) -> (LaneId, usize) {
        (
            self.lane[call as usize] as LaneId,
            self.row[call as usize] as usize,
        )
    }

    /// The call with this correlation id, or the one around it.
    pub fn find(&self, process: usize, correlation: u32) -> CallId {
        if correlation == 0 {
            return NONE;
        }
        let Some(list) = self.by_correlation.get(process) else {
            return NONE;
        };
        let at = list.partition_point(|entry| entry.0 < correlation);
        list.get(at)
            .filter(|entry| entry.0 == correlation)
            .map_or(NONE, |entry| entry.1)
    }

    pub(super) fn kind_of(&mut self, names: &Names, name: NameId) -> CallKind {
        let at = name as usize;
        if self.kinds.len() <= at {
            self.kinds.resize(at + 1, None);
        }
        *self.kinds[at].get_or_insert_with(|| CallKind::of(names.full(name)))
    }

    /// The calls of a process that had returned by a moment, in the order of their returns.
    pub fn ended(&self, process: usize, time: Ns) -> &[CallId] {
        let list = self.by_end.get(process).map_or(&[][..], Vec::as_slice);
        &list[..list.partition_point(|&c| self.end[c as usize] <= time)]
    }

    /// The calls of a thread, by its lane.
    pub fn of_lane(&self, lane: LaneId) -> &[CallId] {
        self.by_lane.get(lane).map_or(&[], Vec::as_slice)
    }

    /// The first call of this thread after `call`.
    pub fn next(&self, call: CallId) -> Option<CallId> {
        let list = self.of_lane(self.at(call).0);
        list.get(list.partition_point(|&c| c <= call)).copied()
    }

    /// Makes room for so many more.
    pub(super) fn reserve(&mut self, more: usize) {
        reserve!(
            self, more, lane, row, start, end, kind, previous, handed, waited, root, first_op
        );
    }

    pub(super) fn memory(&self) -> usize {
        self.len() * (7 * 4 + 2 * 8 + 1 + 2 * 4 + 8)
    }
}
