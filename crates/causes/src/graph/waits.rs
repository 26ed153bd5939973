//! The host's edges: what a waiting call waited for, which thread handed over to which, and the last wait
//! before each call.

use super::edges::BACK;
use super::events::is_same;
use super::{CallId, CallKind, Graph, HANDOVER_MIN, NONE, OpId};
use activity::{Ns, SyncKind};
use trace::{LaneId, LaneKind, Trace, parallel};

/// Calls that a thread looks at before it asks for more.
const AT_ONCE: usize = 4_096;

/// How many calls back the stream that a thread last gave work to is looked for.
const CALLS_BACK: usize = 64;

/// Launches that a stream's queue takes before the next has to wait: "about 1024"; a trace of a V100
/// shows up to 1022 waiting.
const QUEUE: usize = 1_000;

/// A call that allocates or frees and takes no longer has not waited.
const MEMORY_WAIT_MIN: Ns = 5_000;

impl Graph {
    /// Finds the edges of each call.
    pub(super) fn connect(&mut self, trace: &Trace) {
        let calls = Vec::from_iter(0..self.calls.len() as CallId);
        let some: Vec<&[CallId]> = calls.chunks(AT_ONCE).collect();
        let of = |&call: &CallId| {
            let handed = self.handed(trace, call).unwrap_or(NONE);
            (call, handed, self.waited(trace, call).unwrap_or(NONE))
        };
        let found = parallel::map(calls.len(), &some, |some| {
            Vec::from_iter(some.iter().map(of))
        });
        for (call, handed, waited) in found.into_iter().flatten() {
            let i = call as usize;
            (self.calls.handed[i], self.calls.waited[i]) = (handed, waited);
            let before = match self.calls.handed[i] {
                NONE => self.calls.previous[i],
                other => other,
            };
            self.calls.root[i] = if self.calls.waited[i] != NONE {
                call
            } else if before != NONE {
                self.calls.root[before as usize]
            } else {
                NONE
            };
        }
    }

    /// The last call of another thread, where that one went quiet when this one, quiet until then, began.
    fn handed(&self, trace: &Trace, call: CallId) -> Option<CallId> {
        let i = call as usize;
        let start = self.calls.start[i];
        let previous = self.calls.previous[i];
        if previous != NONE && start - self.calls.end[previous as usize] < HANDOVER_MIN {
            return None;
        }
        let ended = self.calls.ended(self.process(trace, call), start);
        let other = ended.last().copied().filter(|&c| c != call)?;
        // A call before this one in the columns: root and walk go backwards.
        if self.calls.lane[other as usize] == self.calls.lane[i] || other > call {
            return None;
        }
        // Who only asks, as a watchdog does, hands nothing over; nor does who worked on it while this thread was in calls.
        let mut before = other;
        for _ in 0..CALLS_BACK {
            if before == NONE || !self.is_question(trace, before) {
                break;
            }
            before = self.calls.previous[before as usize];
        }
        if before == NONE {
            return None;
        }
        if before == other {
            before = self.calls.previous[other as usize];
        }
        let end = |call: CallId| self.calls.end[call as usize];
        if before != NONE && previous != NONE && end(before) < end(previous) {
            return None;
        }
        let is_quiet = self
            .calls
            .next(other)
            .is_none_or(|next| self.calls.start[next as usize] >= start + HANDOVER_MIN);
        is_quiet.then_some(other)
    }

    /// Whether a call only asks, as a watchdog does again and again (`cudaEventQuery`, `cudaGetLastError`).
    fn is_question(&self, trace: &Trace, call: CallId) -> bool {
        let name = self.function(trace, call);
        name.contains("Query") || name.contains("LastError")
    }

    /// The operation whose end let a call return.
    fn waited(&self, trace: &Trace, call: CallId) -> Option<OpId> {
        let i = call as usize;
        let span = self.calls.span(call);
        let awaited = self.calls.awaited.get(&call).copied();
        let awaited = awaited.filter(|a| a.kind != SyncKind::StreamWaitEvent);
        let process = self.process(trace, call);
        match (self.calls.kind[i], awaited) {
            (CallKind::Copy, None) => self.own_copy(call),
            (CallKind::Launch | CallKind::GraphLaunch, _) => self.queue(call),
            (CallKind::Memory, _) if span.len() >= MEMORY_WAIT_MIN => self.any(trace, call, 0),
            (_, Some(awaited)) => match awaited.kind {
                SyncKind::Stream => match awaited.stream {
                    Some(stream) => (self.events)
                        .lanes(process, stream, awaited.context)
                        .filter_map(|lane| self.on_stream(lane, call))
                        .max_by_key(|&op| self.ops.end[op as usize]),
                    None => self.some_stream(trace, call, awaited.context),
                },
                SyncKind::Event => {
                    let record = awaited.event.and_then(|event| {
                        self.events
                            .recorded(process, event, awaited.context, span.start)
                            .filter(|&(_, at)| trace.recorded(process).knows_waits(at, span.start))
                    });
                    match record {
                        Some((stream, recorded)) => {
                            let op = self.last_issued(stream?, recorded)?;
                            self.is_awaited(op, call).then_some(op)
                        }
                        None => self.any(trace, call, awaited.context),
                    }
                }
                _ => self.any(trace, call, awaited.context),
            },
            (CallKind::WaitDevice | CallKind::WaitEvent, None) => self.any(trace, call, 0),
            (CallKind::WaitStream, None) => self.some_stream(trace, call, 0),
            _ => None,
        }
    }

    /// Whether an operation that was issued before a call ended while it ran.
    fn is_awaited(&self, op: OpId, call: CallId) -> bool {
        let span = self.calls.span(call);
        let end = self.ops.end[op as usize];
        end > span.start && end <= span.end && self.issued(op) <= span.start
    }

    /// The last operation of one stream to end within the call.
    fn on_stream(&self, lane: LaneId, call: CallId) -> Option<OpId> {
        let end = self.calls.end[call as usize];
        let list = self.ops.of_lane(lane);
        let to = list.partition_point(|&op| self.ops.start[op as usize] <= end);
        let op = self.last_ended(&list[..to], end)?;
        self.is_awaited(op, call).then_some(op)
    }

    /// The stream is not recorded: that which the thread last gave work to, else any.
    fn some_stream(&self, trace: &Trace, call: CallId, context: u32) -> Option<OpId> {
        let mut before = self.calls.previous[call as usize];
        for _ in 0..CALLS_BACK {
            if before == NONE {
                break;
            }
            let op = self.calls.first_op[before as usize];
            if op != NONE {
                let lane = self.ops.lane[op as usize] as LaneId;
                if let Some(found) = self.on_stream(lane, call) {
                    return Some(found);
                }
                break;
            }
            before = self.calls.previous[before as usize];
        }
        self.any(trace, call, context)
    }

    /// The last operation of the process, on any device, to end within the call.
    fn any(&self, trace: &Trace, call: CallId, context: u32) -> Option<OpId> {
        let end = self.calls.end[call as usize];
        let process = self.process(trace, call);
        let is_mine = |op: OpId| {
            let key = trace.lanes()[self.ops.lane[op as usize] as LaneId].key();
            key.process == process
                && matches!(key.kind, LaneKind::Stream { context: c, .. } if is_same(c, context))
        };
        (0..trace.devices().len())
            .filter_map(|device| {
                let mut late = self.ops.ended(device, end).take(BACK * BACK);
                late.find(|&op| is_mine(op) && self.is_awaited(op, call))
            })
            .max_by_key(|&op| self.ops.end[op as usize])
    }

    /// A copy that blocks its caller: its call lasts until its operation has ended.
    fn own_copy(&self, call: CallId) -> Option<OpId> {
        let first = self.calls.first_op[call as usize];
        if first == NONE || !self.ops.is_staged(first) {
            return None;
        }
        let end = self.calls.end[call as usize];
        let list = self.ops.of_lane(self.ops.lane[first as usize] as LaneId);
        let from = list.partition_point(|&op| op < first);
        list[from..]
            .iter()
            .copied()
            .take_while(|&op| self.ops.call[op as usize] == call)
            .last()
            .filter(|&op| self.ops.end[op as usize] <= end)
    }

    /// A launch that waited for room in its stream's queue.
    fn queue(&self, call: CallId) -> Option<OpId> {
        let span = self.calls.span(call);
        let first = self.calls.first_op[call as usize];
        if first == NONE || span.len() < HANDOVER_MIN {
            return None;
        }
        let list = self.ops.of_lane(self.ops.lane[first as usize] as LaneId);
        let place = list.partition_point(|&op| op < first);
        let started = list.partition_point(|&op| self.ops.start[op as usize] <= span.start);
        if place < started + QUEUE {
            return None;
        }
        self.on_stream(self.ops.lane[first as usize] as LaneId, call)
    }
}
