//! The dependency graph of what was recorded: host calls, GPU operations, waits, and what held each back.
//!
//! Columns, not objects: a call and an operation are a row number each ([`CallId`], [`OpId`]), ordered by start. Every
//! operation has the one edge that *bound* its start, the dependency that was fulfilled last. What lies between that
//! moment and the start is its *residual*. Every call knows the call before it on its thread; the time between is the
//! thread's own, its think time. It also knows the call of another thread that handed over to it, and the operation
//! that its sync was for. `docs/ANSWERS.md` explains the whole.
//!
//! `fill` fills the columns: `calls` holds the CPU's and `ops` those of the operations. `edges` finds what bound an
//! operation, `events` matches waits of streams with event records, `waits` what a sync waited for.

mod around;
mod calls;
mod depends;
mod edges;
mod events;
mod fill;
mod kind;
mod ops;
#[cfg(test)]
mod tests;
mod waits;

pub use calls::{CallKind, Calls};
pub use kind::EdgeKind;
pub use ops::{Engine, Ops};

use activity::{Ns, Span, What};
use events::Events;
use rustc_hash::FxHashMap;
use trace::{LaneId, Trace, describe};

/// A host call: index into [`Graph::calls`].
pub type CallId = u32;
/// A GPU operation: index into [`Graph::ops`].
pub type OpId = u32;
/// No call, no operation.
pub const NONE: u32 = u32::MAX;

/// The longest that an ordinary launch takes from its call to its start on an idle device, whatever the timeline's own
/// latencies are. In traces of H100, H200, A100 and V100 half of the launches onto an idle device start 4 to 12 us
/// after their call. Of all, 99 % start within 39 us.
pub const LATENCY_MAX: Ns = 40_000;

/// The least that lies between a call and its operation. A dependency fulfilled later than this after the call is what
/// the operation waited for. In traces of H100, H200, A100 and V100 no operation on an idle device started less than
/// 3.9 us after its call began.
pub const LATENCY_MIN: Ns = 3_000;

/// A thread that did nothing for this long may have been waiting for another to hand over.
pub const HANDOVER_MIN: Ns = 20_000;

/// Captures that take so many times as long as all that runs are what a timeline shows. Graphs are captured once, and
/// launched later.
const CAPTURE_RUNS: Ns = 3;

/// The graph. See the module.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub ops: Ops,
    /// Host calls by start, without those inside another call.
    pub calls: Calls,
    events: Events,
}

impl Graph {
    /// What an operation records.
    pub fn what(&self, trace: &Trace, op: OpId) -> What {
        let (lane, row) = self.ops.place(op);
        trace.what(lane, row)
    }

    /// The function of a call.
    pub fn function<'t>(&self, trace: &'t Trace, call: CallId) -> &'t str {
        let (lane, row) = self.calls.at(call);
        let name = trace.what(lane, row).name();
        name.map_or("", |name| trace.names().full(name))
    }

    /// What an operation is called in a sentence. Of the first node of a CUDA graph it is the graph that the CPU launched.
    pub fn in_sentence(&self, trace: &Trace, op: OpId) -> String {
        let told = describe::in_sentence(trace, &self.what(trace, op));
        let call = self.ops.call[op as usize];
        let is_graph = call != NONE && self.calls.kind[call as usize] == CallKind::GraphLaunch;
        match is_graph && self.ops.is_graph(op) && self.calls.first_op[call as usize] == op {
            true => "a CUDA graph".to_owned(),
            false => told,
        }
    }

    /// The process that a call is of.
    pub fn process(&self, trace: &Trace, call: CallId) -> usize {
        trace.lanes()[self.calls.at(call).0].key().process
    }

    /// The graph of a whole timeline.
    pub fn new(trace: &Trace) -> Graph {
        trace::made("graph");
        // No activity starts in the last nanosecond of time.
        let mut graph = Graph::within(trace, Span::new(Ns::MIN, Ns::MAX));
        // What grew bit by bit, and stays.
        let (ops, calls) = (&mut graph.ops, &mut graph.calls);
        let by_device = ops.by_device.iter_mut().chain(&mut ops.by_end);
        let lists = by_device.chain(ops.by_engine.iter_mut().flatten());
        lists.chain(&mut calls.by_end).for_each(Vec::shrink_to_fit);
        graph
    }

    /// The operation in a row of a stream.
    pub fn op_at(&self, lane: LaneId, row: usize) -> Option<OpId> {
        self.ops.at(lane, row)
    }

    /// The call that launched the operation in a row of a stream; [`NONE`] where none is known.
    pub fn call_at(&self, (lane, row): (LaneId, usize)) -> CallId {
        let op = self.op_at(lane, row);
        op.map_or(NONE, |op| self.ops.call[op as usize])
    }

    /// When the host issued an operation: its call's start, or its own where no call is known.
    pub fn issued(&self, op: OpId) -> Ns {
        match self.ops.call[op as usize] {
            NONE => self.ops.start[op as usize],
            call => self.calls.start[call as usize],
        }
    }

    /// What bound an operation's start: the moment, never after the start. Its own start where nothing
    /// is known to have.
    pub fn bound(&self, op: OpId) -> Ns {
        let i = op as usize;
        let source = self.ops.bind[i];
        match self.ops.edge[i] {
            EdgeKind::None => self.ops.start[i],
            EdgeKind::Launch => {
                (self.calls.start[source as usize] + LATENCY_MIN).min(self.ops.start[i])
            }
            _ => self.ops.end[source as usize],
        }
    }

    /// What no edge explains of an operation's start.
    pub fn residual(&self, op: OpId) -> Ns {
        self.ops.start[op as usize] - self.bound(op)
    }

    /// How long calls went into CUDA graphs instead of running, within a window or in all. Beside it stands the time from
    /// the first call there to the last. It is told where that is most of it, and little runs beside: nobody looks for what
    /// bounds such a GPU.
    pub fn capture(&self, window: Option<Span>) -> Option<[Ns; 2]> {
        let calls = &self.calls;
        let captured = self.captures();
        if captured.is_empty() {
            return None;
        }
        let all = Span::new(*calls.start.first()?, *calls.end.iter().max()?);
        let window = window.unwrap_or(Span {
            start: Ns::MIN,
            end: Ns::MAX,
        });
        let all = all.intersect(window);
        let ops = (0..self.ops.len() as OpId).map(|op| self.ops.span(op));
        let ops = ops.filter(|span| window.contains(span.start));
        let ran: Ns = ops.clone().map(|span| span.len()).sum();
        // What comes before the first operation is told of nothing else, either.
        let stretches = [Some(all), ops.reduce(Span::hull)];
        let told = stretches.into_iter().flatten().find_map(|stretch| {
            // Ranks capture at the same time.
            let within = captured.iter().map(|it| it.intersect(stretch));
            let within = Span::merged(within.collect()).into_iter();
            let captured = within.map(Span::len).sum::<Ns>();
            (captured > 0 && 2 * captured >= stretch.len()).then_some([captured, stretch.len()])
        });
        told.filter(|[captured, _]| CAPTURE_RUNS * ran <= *captured)
    }

    /// When threads capture graphs. One capture that goes on is all of what follows.
    fn captures(&self) -> Vec<Span> {
        let calls = &self.calls;
        let mut begun: FxHashMap<u32, Ns> = FxHashMap::default();
        let mut captured: Vec<Span> = Vec::new();
        for call in 0..calls.len() {
            match calls.kind[call] {
                CallKind::CaptureBegin => {
                    begun.insert(calls.lane[call], calls.start[call]);
                }
                CallKind::CaptureEnd => {
                    let start = begun.remove(&calls.lane[call]);
                    captured.extend(start.map(|start| Span::new(start, calls.end[call])));
                }
                _ => {}
            }
        }
        let end = calls.end.iter().max().copied().unwrap_or(Ns::MAX);
        captured.extend(begun.values().map(|&start| Span::new(start, end)));
        captured
    }

    /// How long CUDA graphs are captured and made ready within a stretch.
    pub fn making_graphs(&self, within: Span) -> Ns {
        let is_set_up = |it: &usize| self.calls.kind[*it] == CallKind::GraphSetup;
        let calls = (0..self.calls.len()).filter(is_set_up);
        let calls = calls.map(|it| self.calls.span(it as CallId));
        let all = self.captures().into_iter().chain(calls);
        let all = all.map(|it| it.intersect(within));
        Span::union_len(all.filter(|it| !it.is_empty()).collect())
    }

    /// How far the clocks of CPU and GPU are apart at least, where syncs end before the copies begin that they wait for.
    /// None of them may fit.
    pub fn clocks_apart(&self) -> Option<Ns> {
        let (calls, at_once) = (&self.calls, 1_000_000);
        let late = |wait: usize| {
            let before = calls.previous[wait];
            let is_one = matches!(
                calls.kind[wait],
                CallKind::WaitStream | CallKind::WaitDevice
            ) && before != NONE
                && calls.kind[before as usize] == CallKind::Copy;
            let copy = is_one.then(|| calls.first_op[before as usize])?;
            (copy != NONE).then(|| self.ops.start[copy as usize] - calls.end[wait])
        };
        let all: Vec<Ns> = (0..calls.len()).filter_map(late).collect();
        let is_so = all.iter().all(|it| *it > at_once);
        let told = cases::LOOP_MIN.is_reached_by(all.len()) && is_so;
        told.then(|| all.into_iter().max()).flatten()
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.ops.memory() + self.calls.memory()
    }
}
