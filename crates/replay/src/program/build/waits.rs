//! What calls wait for.

use rustc_hash::FxHashMap;

use super::{Build, INLINE, STREAMS_MAX};
use crate::program::{Class, Dep, NONE};
use activity::stats::lower_median;
use activity::{Ns, What};
use causes::graph::{CallId, CallKind, EdgeKind, OpId};
use trace::LaneId;

/// How far back one that had been issued is looked for among operations of a stream.
const BACK: usize = 8;

/// Of many streams those count that were launched into last.
fn launch_into(streams: &mut Vec<LaneId>, stream: LaneId) {
    if streams.len() == STREAMS_MAX {
        let known = streams.iter().rposition(|it| *it == stream);
        streams.remove(known.unwrap_or(0));
        streams.push(stream);
    }
}

impl Build<'_, '_> {
    /// What calls wait for.
    pub(super) fn waits(&mut self) {
        let bases = self.bases();
        let mut streams: FxHashMap<usize, Vec<LaneId>> = FxHashMap::default();
        for (id, lane) in self.trace.streams() {
            let list = streams.entry(lane.key().process).or_default();
            // Waits for each of many would be as many dependencies as the square of a file's length.
            if list.len() < STREAMS_MAX {
                list.push(id);
            }
        }
        for c in 0..self.program.calls.len() as u32 {
            let (id, kind) = (self.program.call_id(c), self.program.kind(c));
            let first = self.graph.calls.first_op[id as usize];
            if let Some(&lane) = self.graph.ops.lane.get(first as usize) {
                let process = self.trace.lanes()[lane as LaneId].key().process;
                launch_into(streams.entry(process).or_default(), lane as LaneId);
            }
            let span = self.program.call_span(c);
            // A wait may last until after what lies within the window.
            let waited = self.program.op_of(self.graph.calls.waited[id as usize]);
            let mut waits = Vec::new();
            if let Some(op) = waited {
                let delay = span.end - self.program.op_span(op).end;
                let class = Class::Wake(kind);
                self.program.delays.see(class, delay);
                waits.push(Dep::on_end(op, delay, class));
                self.program.calls[c as usize].own = match kind {
                    // What is left to do after the wait is the call's own.
                    CallKind::Memory => delay,
                    _ => bases.get(&kind).copied().unwrap_or(0),
                }
                .min(span.len());
            } else if kind == CallKind::Copy {
                self.staged(c, &bases, &mut waits);
            }
            if kind.is_wait() {
                for op in self.covered(kind, c, &streams) {
                    let delay = span.end - self.program.op_span(op).end;
                    if delay >= 0 && waits.iter().all(|w| w.op != op) {
                        waits.push(Dep::on_end(op, delay, Class::Wake(kind)));
                    }
                }
            }
            self.program.calls[c as usize].waits = self.program.lists.list(waits);
        }
    }

    /// A copy of pageable memory that ended after its call: the call returned when most was staged.
    fn staged(&mut self, c: u32, bases: &FxHashMap<CallKind, Ns>, waits: &mut Vec<Dep>) {
        let span = self.program.call_span(c);
        let first = self.graph.calls.first_op[self.program.call_id(c) as usize];
        let Some(op) = self
            .program
            .op_of(first)
            .filter(|_| self.graph.ops.is_staged(first))
        else {
            return;
        };
        let start = self.program.op_span(op).start;
        let (lane, row) = self.graph.ops.place(first);
        let bytes = match self.trace.what(lane, row) {
            What::Copy(copy) => copy.bytes,
            _ => 0,
        };
        if bytes <= INLINE || start >= span.end {
            return;
        }
        let (delay, class) = (
            span.end - start,
            Class::Staged(self.program.ops[op as usize].engine),
        );
        let own = bases.get(&CallKind::Copy).copied().unwrap_or(0);
        waits.push(Dep {
            op,
            is_start: true,
            delay,
            class,
        });
        self.program.calls[c as usize].own = own.min(span.len());
    }

    /// What a call that waits would have waited for, had it not ended before.
    fn covered(&self, kind: CallKind, c: u32, streams: &FxHashMap<usize, Vec<LaneId>>) -> Vec<u32> {
        let span = self.program.call_span(c);
        let lane = self.program.lane(c) as LaneId;
        let process = self.trace.lanes()[lane].key().process;
        let last = |stream: LaneId| {
            let list = self.graph.ops.of_lane(stream);
            let to = list.partition_point(|&op| self.graph.ops.start[op as usize] <= span.end);
            let issued = |op: OpId| self.graph.issued(op) < span.start.max(1);
            let mut before = list[..to].iter().rev().take(BACK).copied();
            before.find(|&op| issued(op))
        };
        match kind {
            CallKind::WaitDevice => {
                let mine = streams.get(&process).into_iter().flatten();
                mine.filter_map(|&id| last(id))
                    .filter_map(|op| self.program.op_of(op))
                    .collect()
            }
            CallKind::WaitStream => {
                let mut before = self.program.previous(c);
                for _ in 0..64 {
                    if before == NONE {
                        break;
                    }
                    let first = self.graph.calls.first_op[self.program.call_id(before) as usize];
                    if first != NONE {
                        let stream = self.graph.ops.lane[first as usize] as LaneId;
                        return last(stream)
                            .and_then(|op| self.program.op_of(op))
                            .into_iter()
                            .collect();
                    }
                    before = self.program.previous(before);
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// How long a call waited for the GPU: until the operation that let it return could begin, and while that ran.
    fn waiting(&self, id: usize) -> Ns {
        let (ops, span) = (&self.graph.ops, self.graph.calls.span(id as CallId));
        let waited = self.graph.calls.waited[id] as usize;
        let Some(&end) = ops.end.get(waited) else {
            return 0;
        };
        if self.graph.calls.kind[id] != CallKind::Copy {
            return end.min(span.end) - span.start;
        }
        let held = match ops.edge[waited] {
            EdgeKind::None | EdgeKind::Launch => 0,
            _ => ops.end[ops.bind[waited] as usize] - span.start,
        };
        ops.span(waited as OpId).len() + held.max(0)
    }

    /// What calls of a kind take that wait for nothing: the median, else what is known, else the least without waiting.
    fn bases(&self) -> FxHashMap<CallKind, Ns> {
        let mut lists: FxHashMap<CallKind, Vec<Ns>> = FxHashMap::default();
        let mut least: FxHashMap<CallKind, Ns> = FxHashMap::default();
        let calls = self.program.first_call as usize..;
        for id in calls.take(self.program.calls.len()) {
            let kind = self.graph.calls.kind[id];
            let length = self.graph.calls.span(id as CallId).len();
            let entry = least.entry(kind).or_insert(Ns::MAX);
            *entry = (*entry).min((length - self.waiting(id)).max(0));
            let first = self.graph.calls.first_op[id];
            let is_staged = first != NONE && self.graph.ops.is_staged(first);
            if self.graph.calls.waited[id] == NONE && !is_staged {
                lists.entry(kind).or_default().push(length);
            }
        }
        let known = &self.program.known;
        for (kind, base) in &mut least {
            let of_known = match kind {
                CallKind::Copy => known.copy_call,
                CallKind::Launch => known.launch_call,
                kind if kind.is_wait() => known.sync_call,
                _ => None,
            };
            let median = lists.get_mut(kind).and_then(|list| lower_median(list));
            if let Some(median) = median {
                *base = median;
            } else if let Some(known) = of_known {
                *base = known.min(*base);
            }
        }
        least
    }
}
