//! What bound an operation's start: of everything it depended on, what was fulfilled last.

use rustc_hash::FxHashSet;

use super::events::Wait;
use super::kind::EdgeKind;
use super::ops::Engine;
use super::{Graph, LATENCY_MAX, LATENCY_MIN, NONE, OpId};
use activity::Ns;
use trace::{Lane, LaneId, LaneKind, Trace};

/// How far back to look among the operations before it for one that had ended. More run at once only where streams or
/// engines are not in order, and then the ones before say little.
pub(super) const BACK: usize = 8;

/// An operation that nothing recorded explains for this long may have waited for what ended just before.
/// Measured: what follows an operation of another engine on its stream starts up to 9 us late.
const UNEXPLAINED: Ns = 15_000;

/// … which it follows no later than this.
const JUST_BEFORE: Ns = 5_000;

impl Graph {
    /// Finds what bound each operation.
    pub(super) fn bind(&mut self, trace: &Trace) {
        let mut at = vec![[0; Engine::COUNT]; self.ops.by_engine.len()];
        let defaults = default_streams(trace);
        for op in 0..self.ops.len() as OpId {
            let i = op as usize;
            let lane = self.ops.lane[i] as LaneId;
            let LaneKind::Stream { device, .. } = trace.lanes()[lane].key().kind else {
                continue;
            };
            let slot = &mut at[device][self.ops.engine[i] as usize];
            let (kind, source) = self.strongest(trace, op, lane, device, *slot, &defaults);
            *slot += 1;
            self.ops.edge[i] = kind;
            self.ops.bind[i] = source;
        }
    }

    fn strongest(
        &self,
        trace: &Trace,
        op: OpId,
        lane: LaneId,
        device: usize,
        on_engine: usize,
        defaults: &FxHashSet<LaneId>,
    ) -> (EdgeKind, u32) {
        let i = op as usize;
        let start = self.ops.start[i];
        let mut best = (Ns::MIN, EdgeKind::None, NONE);
        let mut offer = |time: Ns, kind: EdgeKind, source: u32| {
            if time > best.0 {
                best = (time, kind, source);
            }
        };
        let before = self.ops.before_on_lane(op);
        if let Some(y) = self.last_ended(before, start) {
            offer(self.ops.end[y as usize], EdgeKind::Stream, y);
        }
        let call = self.ops.call[i];
        if call != NONE && self.calls.start[call as usize] <= start {
            let ready = self.calls.start[call as usize] + LATENCY_MIN;
            offer(ready.min(start), EdgeKind::Launch, call);
        }
        let engine = self.ops.engine[i];
        if engine.is_serial() {
            let list = &self.ops.by_engine[device][engine as usize][..on_engine];
            if let Some(y) = self.last_ended(list, start) {
                offer(self.ops.end[y as usize], EdgeKind::Engine, y);
            }
        }
        self.between_streams(trace, op, |kind, y| {
            offer(self.ops.end[y as usize], kind, y);
        });
        let (time, kind, source) = best;
        let is_launched_just_now =
            kind == EdgeKind::Launch && start - (time - LATENCY_MIN).min(start) <= LATENCY_MAX;
        if kind == EdgeKind::None || is_launched_just_now || start - time <= UNEXPLAINED {
            return (kind, source);
        }
        let other = self
            .ops
            .ended(device, start)
            .take(BACK)
            .find(|&y| self.ops.lane[y as usize] != self.ops.lane[i] && y < op)
            .filter(|&y| {
                let end = self.ops.end[y as usize];
                end > time && start - end <= JUST_BEFORE
            });
        let Some(y) = other else {
            return (kind, source);
        };
        let pair = [lane, self.ops.lane[y as usize] as LaneId];
        if pair.iter().any(|lane| defaults.contains(lane)) {
            (EdgeKind::DefaultLikely, y)
        } else {
            (EdgeKind::OtherLikely, y)
        }
    }

    /// The operations of other streams that an operation had to wait for, as records show. They are nodes of its own
    /// graph launch, and what the events stand for that its stream waited for. All had ended.
    pub(crate) fn between_streams(
        &self,
        trace: &Trace,
        op: OpId,
        mut found: impl FnMut(EdgeKind, OpId),
    ) {
        let i = op as usize;
        let (lane, start) = (self.ops.lane[i] as LaneId, self.ops.start[i]);
        let key = trace.lanes()[lane].key();
        let LaneKind::Stream { device, .. } = key.kind else {
            return;
        };
        let mut offer = |kind: EdgeKind, y: OpId| {
            if self.ops.end[y as usize] <= start && self.ops.lane[y as usize] != self.ops.lane[i] {
                found(kind, y);
            }
        };
        let call = self.ops.call[i];
        if self.ops.is_graph(op) && call != NONE {
            let by_start = &self.ops.by_device[device];
            let to = by_start.partition_point(|&o| o < op);
            let near = by_start[..to].iter().rev().take(BACK);
            for &y in near.filter(|&&y| self.ops.call[y as usize] == call) {
                offer(EdgeKind::GraphNode, y);
            }
        }
        for (wait, record) in self.event_waits(trace, op) {
            match record {
                Some((stream, recorded)) => {
                    if let Some(y) = stream.and_then(|s| self.last_issued(s, recorded)) {
                        offer(EdgeKind::Event, y);
                    }
                }
                None => {
                    let mut near = self.ops.ended(device, start).take(BACK);
                    let y = near.find(|&y| {
                        self.ops.lane[y as usize] != self.ops.lane[i]
                            && self.issued(y) <= wait.issued
                    });
                    if let Some(y) = y.filter(|&y| start - self.ops.end[y as usize] <= JUST_BEFORE)
                    {
                        offer(EdgeKind::EventLikely, y);
                    }
                }
            }
        }
    }

    /// What an operation's stream had to wait for since the operation before it was issued. Each has the stream and the
    /// time of the event's record, where they are known.
    pub(super) fn event_waits<'g>(
        &'g self,
        trace: &'g Trace,
        op: OpId,
    ) -> impl Iterator<Item = (&'g Wait, Option<(Option<LaneId>, Ns)>)> + 'g {
        let i = op as usize;
        let lane = self.ops.lane[i] as LaneId;
        let process = trace.lanes()[lane].key().process;
        let before = self.ops.before_on_lane(op);
        let after = before.last().map_or(Ns::MIN, |&y| self.issued(y));
        let waits = self.events.waits(lane, after, self.issued(op)).iter();
        waits.map(move |wait| {
            let record = wait.event.and_then(|e| {
                self.events
                    .recorded(process, e, wait.context, wait.issued)
                    .filter(|&(_, at)| trace.recorded(process).knows_waits(at, wait.issued))
            });
            (wait, record)
        })
    }

    /// Of the last few of `list` the one that ended latest, no later than `time`.
    pub fn last_ended(&self, list: &[OpId], time: Ns) -> Option<OpId> {
        list.iter()
            .rev()
            .take(BACK)
            .copied()
            .filter(|&op| self.ops.end[op as usize] <= time)
            .max_by_key(|&op| self.ops.end[op as usize])
    }

    /// The last operation of a stream that was issued before `time`.
    pub(super) fn last_issued(&self, lane: LaneId, time: Ns) -> Option<OpId> {
        let list = self.ops.of_lane(lane);
        let to = list.partition_point(|&op| self.issued(op) < time);
        list[..to].last().copied()
    }
}

/// The lanes of streams that are their context's default stream, as far as the source says.
fn default_streams(trace: &Trace) -> FxHashSet<LaneId> {
    let is_default = |lane: &Lane| {
        let info = trace::describe::stream_info(trace, lane.key());
        info.is_some_and(|it| it.is_default)
    };
    let lanes = trace.streams();
    lanes.filter(|it| is_default(it.1)).map(|it| it.0).collect()
}
