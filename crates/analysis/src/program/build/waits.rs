//! What calls wait for.

use rustc_hash::FxHashMap;

use super::{Build, INLINE};
use crate::graph::{CallKind, EdgeKind, OpId};
use crate::program::{Call, Class, Dep, NONE};
use activity::stats::lower_median;
use activity::{Ns, What};
use trace::LaneId;

/// How far back one that had been issued is looked for among operations of a stream.
const BACK: usize = 8;

impl Build<'_> {
    /// What calls wait for.
    pub(super) fn waits(&mut self) {
        let bases = self.bases();
        let mut streams: FxHashMap<usize, Vec<LaneId>> = FxHashMap::default();
        for (id, lane) in self.trace.streams() {
            streams.entry(lane.key().process).or_default().push(id);
        }
        for c in 0..self.program.calls.len() {
            let (id, kind, span, lane) = {
                let call = &self.program.calls[c];
                let id = self.program.call_id(c as u32);
                (id, call.kind, call.span, call.lane as LaneId)
            };
            // A wait may last until after what lies within the window.
            let waited = self.program.op_of(self.graph.calls.waited[id as usize]);
            let mut waits = Vec::new();
            if let Some(op) = waited {
                let end = self.program.ops[op as usize].span.end;
                let delay = span.end - end;
                let class = Class::Wake(kind);
                self.program.delays.see(class, delay);
                waits.push(Dep::on_end(op, delay, class));
                let call = &mut self.program.calls[c];
                call.own = match kind {
                    // What is left to do after the wait is the call's own.
                    CallKind::Memory => delay,
                    _ => bases.get(&kind).copied().unwrap_or(0),
                }
                .min(span.len());
            } else if kind == CallKind::Copy {
                self.staged(c, &bases, &mut waits);
            }
            if kind.is_wait() {
                for op in self.covered(kind, c, lane, &streams) {
                    let delay = span.end - self.program.ops[op as usize].span.end;
                    if delay >= 0 && waits.iter().all(|w| w.op != op) {
                        waits.push(Dep::on_end(op, delay, Class::Wake(kind)));
                    }
                }
            }
            self.program.calls[c].waits = self.program.lists.list(waits);
        }
    }

    /// A copy of pageable memory that ended after its call: the call returned when most was staged.
    fn staged(&mut self, c: usize, bases: &FxHashMap<CallKind, Ns>, waits: &mut Vec<Dep>) {
        let call = &self.program.calls[c];
        let first = self.graph.calls.first_op[self.program.call_id(c as u32) as usize];
        let Some(op) = self
            .program
            .op_of(first)
            .filter(|_| self.graph.ops.is_staged(first))
        else {
            return;
        };
        let start = self.program.ops[op as usize].span.start;
        let (lane, row) = self.graph.ops.place(first);
        let bytes = match self.trace.activity(lane, row).what {
            What::Copy(copy) => copy.bytes,
            _ => 0,
        };
        if bytes <= INLINE || start >= call.span.end {
            return;
        }
        let (delay, class) = (
            call.span.end - start,
            Class::Staged(self.program.ops[op as usize].engine),
        );
        let own = bases.get(&CallKind::Copy).copied().unwrap_or(0);
        waits.push(Dep {
            op,
            is_start: true,
            delay,
            class,
        });
        let call = &mut self.program.calls[c];
        call.own = own.min(call.span.len());
    }

    /// What a call that waits would have waited for, had it not ended before.
    fn covered(
        &self,
        kind: CallKind,
        c: usize,
        lane: LaneId,
        streams: &FxHashMap<usize, Vec<LaneId>>,
    ) -> Vec<u32> {
        let call = &self.program.calls[c];
        let process = self.trace.lanes()[lane].key().process;
        let last = |stream: LaneId| {
            let list = self.graph.ops.of_lane(stream);
            let to = list.partition_point(|&op| self.graph.ops.start[op as usize] <= call.span.end);
            let issued = |op: OpId| self.graph.issued(op) < call.span.start.max(1);
            list[..to]
                .iter()
                .rev()
                .take(BACK)
                .copied()
                .find(|&op| issued(op))
        };
        match kind {
            CallKind::WaitDevice => {
                let mine = streams.get(&process).into_iter().flatten();
                mine.filter_map(|&id| last(id))
                    .filter_map(|op| self.program.op_of(op))
                    .collect()
            }
            CallKind::WaitStream => {
                let mut before = call.previous;
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
                    before = self.program.calls[before as usize].previous;
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// How long a call waited for the GPU: until the operation that let it return could begin, and while that ran.
    fn waiting(&self, call: &Call, id: usize) -> Ns {
        let ops = &self.graph.ops;
        let waited = self.graph.calls.waited[id] as usize;
        let Some(&end) = ops.end.get(waited) else {
            return 0;
        };
        if call.kind != CallKind::Copy {
            return end.min(call.span.end) - call.span.start;
        }
        let held = match ops.edge[waited] {
            EdgeKind::None | EdgeKind::Launch => 0,
            _ => ops.end[ops.bind[waited] as usize] - call.span.start,
        };
        ops.span(waited as OpId).len() + held.max(0)
    }

    /// What calls of a kind take that wait for nothing: the median, else what is known, else the least without waiting.
    fn bases(&self) -> FxHashMap<CallKind, Ns> {
        let mut lists: FxHashMap<CallKind, Vec<Ns>> = FxHashMap::default();
        let mut least: FxHashMap<CallKind, Ns> = FxHashMap::default();
        for (call, id) in self
            .program
            .calls
            .iter()
            .zip(self.program.first_call as usize..)
        {
            let entry = least.entry(call.kind).or_insert(Ns::MAX);
            *entry = (*entry).min((call.span.len() - self.waiting(call, id)).max(0));
            let first = self.graph.calls.first_op[id];
            let is_staged = first != NONE && self.graph.ops.is_staged(first);
            if self.graph.calls.waited[id] == NONE && !is_staged {
                lists.entry(call.kind).or_default().push(call.span.len());
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
