//! Events between streams: which operation a stream's wait stands for.

use rustc_hash::FxHashMap;

use activity::{Ns, Sync, SyncKind};
use trace::{LaneId, LaneKind, Trace};

/// A stream that was told to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wait {
    /// When the host issued it.
    pub issued: Ns,
    /// For which event, where that is recorded.
    pub event: Option<u32>,
    pub context: u32,
}

/// An event that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    issued: Ns,
    /// The stream's lane, when anything ran on it.
    stream: Option<LaneId>,
    context: u32,
}

/// Waits by stream, records by event; both by the host's time of issue.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    waits: FxHashMap<LaneId, Vec<Wait>>,
    records: FxHashMap<(usize, u32), Vec<Record>>,
    /// Lanes of streams by process and stream id, each with its context.
    lanes: FxHashMap<(usize, u32), Vec<(u32, LaneId)>>,
}

impl Events {
    /// Takes the lanes of streams as the timeline has them now.
    pub(super) fn know_streams(&mut self, trace: &Trace) {
        for (id, lane) in trace.lanes().iter().enumerate() {
            let key = lane.key();
            if let LaneKind::Stream {
                context, stream, ..
            } = key.kind
            {
                let lanes = self.lanes.entry((key.process, stream)).or_default();
                lanes.push((context, id));
            }
        }
    }

    pub(super) fn wait(&mut self, process: usize, issued: Ns, of: &Sync) {
        let Some(stream) = of.stream.filter(|_| of.kind == SyncKind::StreamWaitEvent) else {
            return;
        };
        for &(context, lane) in self.lanes.get(&(process, stream)).into_iter().flatten() {
            if is_same(context, of.context) {
                self.waits.entry(lane).or_default().push(Wait {
                    issued,
                    event: of.event,
                    context: of.context,
                });
            }
        }
    }

    pub(super) fn record(
        &mut self,
        process: usize,
        issued: Ns,
        event: u32,
        context: u32,
        stream: Option<LaneId>,
    ) {
        let list = self.records.entry((process, event)).or_default();
        list.push(Record {
            issued,
            stream,
            context,
        });
    }

    /// The lanes of the streams of a process with this id, in whatever context.
    pub(super) fn lanes(
        &self,
        process: usize,
        stream: u32,
        context: u32,
    ) -> impl Iterator<Item = LaneId> + '_ {
        let lanes = self.lanes.get(&(process, stream)).into_iter().flatten();
        lanes
            .filter(move |lane| is_same(lane.0, context))
            .map(|lane| lane.1)
    }

    /// Puts everything in order.
    pub(super) fn settle(&mut self) {
        for list in self.waits.values_mut() {
            list.sort_unstable();
            list.dedup();
        }
        for list in self.records.values_mut() {
            list.sort_unstable();
            list.dedup();
        }
    }

    /// The waits of a stream that were issued after one moment and no later than another.
    pub(super) fn waits(&self, lane: LaneId, after: Ns, until: Ns) -> &[Wait] {
        let list = self.waits.get(&lane).map_or(&[][..], Vec::as_slice);
        let from = list.partition_point(|w| w.issued <= after);
        let to = list.partition_point(|w| w.issued <= until);
        &list[from.min(to)..to]
    }

    /// The stream on which an event was last recorded before `before`, and when. The outer `None` means
    /// that no such record is known, the inner that nothing ever ran on the stream. A stream of one GPU may wait for an
    /// event of another's context. That is taken where one context alone has an event of this number.
    pub(super) fn recorded(
        &self,
        process: usize,
        event: u32,
        context: u32,
        before: Ns,
    ) -> Option<(Option<LaneId>, Ns)> {
        let list = self.records.get(&(process, event))?;
        let to = list.partition_point(|r| r.issued < before);
        let mut near = list[..to].iter().rev().take(16);
        let last = near.clone().next()?;
        let is_one = near.clone().all(|r| is_same(r.context, last.context));
        near.find(|r| is_one || is_same(r.context, context))
            .map(|r| (r.stream, r.issued))
    }
}

/// Whether two contexts may be the same: 0 is one that the source did not say.
pub(super) fn is_same(a: u32, b: u32) -> bool {
    a == b || a == 0 || b == 0
}
