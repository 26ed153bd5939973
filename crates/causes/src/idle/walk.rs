//! The walk back from the operation that ends a gap, along the edges that bound each start.

mod calls;

use super::limits::{changes_engine, stages_first};
use super::{Cause, Causes, Certainty, Culprit, Gap, LeftOut, Piece};
use crate::graph::{CallId, CallKind, EdgeKind, Engine, LATENCY_MAX, NONE, OpId};
use activity::{Copy, MemoryKind, Ns, Span, What};
use trace::Measure;

/// Where the walk stands: at the start of an operation or of a call.
#[derive(Clone, Copy)]
enum At {
    Op(OpId),
    Call(CallId),
}

/// A walk under way. Pieces are put down from the gap's end to its start.
struct Walk<'w, 'a> {
    of: &'w Causes<'a>,
    gap: Gap,
    /// The call that launched what ends the gap, or [`NONE`].
    launch: CallId,
    /// What lies behind this moment has its cause.
    time: Ns,
    pieces: &'w mut Vec<Piece>,
    /// Pieces before this one have their root.
    rooted: usize,
}

impl Causes<'_> {
    /// Adds the pieces of a gap in order of time.
    pub(super) fn walk(&self, gap: Gap, pieces: &mut Vec<Piece>) {
        let first = pieces.len();
        let mut walk = Walk {
            of: self,
            gap,
            launch: self.graph.ops.call[gap.next as usize],
            time: gap.span.end,
            pieces,
            rooted: first,
        };
        if let Some(&call) = self.ready.missing.get(&gap.next) {
            let culprit = Culprit::Call(call);
            walk.put(gap.span.start, Cause::Missing, culprit, Certainty::Likely);
        } else if self.left_out(gap.next).is_some() {
            walk.put(
                gap.span.start,
                Cause::Missing,
                Culprit::Nobody,
                Certainty::Fact,
            );
        } else {
            walk.go(gap.next);
        }
        pieces[first..].reverse();
    }

    /// The device that an operation ran on.
    pub fn device(&self, op: OpId) -> Option<usize> {
        let lane = &self.trace.lanes()[self.graph.ops.place(op).0];
        lane.key().kind.device()
    }

    /// Where next to all calls of an operation's process were left out of the file, how many there are of how many.
    pub(super) fn left_out(&self, op: OpId) -> Option<&LeftOut> {
        let all = &self.ready.left_out;
        all.iter().find(|it| it.process == self.process(op))
    }

    /// The process that an operation is of.
    pub fn process(&self, op: OpId) -> usize {
        self.trace.lanes()[self.graph.ops.place(op).0].key().process
    }

    /// Whether an operation copies pageable memory, and more than goes with the command.
    pub fn is_staged(&self, op: OpId) -> bool {
        matches!(self.graph.what(self.trace, op), What::Copy(it) if it.is_staged())
    }

    /// Whether an operation copies pinned memory, which nothing stages.
    fn is_pinned(&self, op: OpId) -> bool {
        let kinds = |it: Copy| [it.from, it.to].contains(&MemoryKind::Pinned);
        matches!(self.graph.what(self.trace, op), What::Copy(it) if kinds(it))
    }

    /// Whether an operation is a page of managed memory that the CPU touched, so that it came back.
    pub fn comes_back(&self, op: OpId) -> bool {
        self.graph.what(self.trace, op).comes_back()
    }

    /// What of a gap is due to a wait: without it the host would be ahead by what it took, and no more. What the device
    /// idled since, it has made up for.
    fn due_to(&self, wait: CallId, gap: Gap) -> Ns {
        let (calls, ops) = (&self.graph.calls, &self.graph.ops);
        let Some(device) = self.device(gap.next) else {
            return 0;
        };
        let end = ops.end[calls.waited[wait as usize] as usize];
        let since = Span::new(end.min(gap.span.start), gap.span.start);
        let usage = &self.trace.devices()[device].usage;
        calls.span(wait).len() + usage.time(Measure::Busy, since) - since.len()
    }
}

fn certain(is_fact: bool) -> Certainty {
    if is_fact {
        Certainty::Fact
    } else {
        Certainty::Likely
    }
}

impl Walk<'_, '_> {
    fn is_over(&self) -> bool {
        self.time <= self.gap.span.start
    }

    /// The stretch from `from` to where the walk stands has this cause.
    fn put(&mut self, from: Ns, cause: Cause, culprit: Culprit, certainty: Certainty) {
        let from = from.max(self.gap.span.start);
        if from < self.time {
            self.pieces.push(Piece {
                span: Span::new(from, self.time),
                cause,
                culprit,
                certainty,
                root: None,
            });
            self.time = from;
        }
    }

    /// The walk came to a wait: it is why what follows was not launched before, as far as that is due to it.
    fn root(&mut self, call: CallId) {
        let rooted = std::mem::replace(&mut self.rooted, self.pieces.len());
        // Nobody launches a page that moves by itself.
        if self.launch == NONE {
            return;
        }
        let mut left = self.of.due_to(call, self.gap);
        for at in (rooted..self.pieces.len()).rev() {
            let piece = &mut self.pieces[at];
            let length = piece.span.len();
            match piece.cause {
                _ if piece.culprit == Culprit::Call(call) => left -= length,
                // What an allocation or loading takes is to be saved, not the wait before it. Another program's turn
                // has no sync to blame.
                Cause::Unknown
                | Cause::LateStart
                | Cause::Memory
                | Cause::Load
                | Cause::HostFunction
                | Cause::Process => {}
                _ if left <= 0 => return,
                cause => {
                    piece.root = Some(call);
                    // Another wait takes its own time.
                    left -= if cause.is_wait() { 0 } else { length };
                    if left < 0 {
                        let span = Span::new(piece.span.end + left, piece.span.end);
                        let rest = Piece {
                            span,
                            root: None,
                            ..*piece
                        };
                        piece.span.end = span.start;
                        self.pieces.insert(at, rest);
                        self.rooted += 1;
                    }
                }
            }
        }
    }

    fn go(&mut self, next: OpId) {
        let graph = self.of.graph;
        let mut at = At::Op(next);
        let mut left = self.of.ready.steps;
        while !self.is_over() && left > 0 {
            left -= 1;
            at = match at {
                At::Op(op) => match self.before_op(op) {
                    Some(at) => at,
                    None => break,
                },
                At::Call(call) => match self.before_call(call) {
                    Some(at) => at,
                    None => break,
                },
            };
        }
        let start = self.gap.span.start;
        self.put(start, Cause::Unknown, Culprit::Nobody, Certainty::Unknown);
        // Beyond the gap: a call leads back to a wait, an operation is where the walk ends.
        if let At::Call(call) = at
            && left > 0
        {
            let root = graph.calls.root[call as usize];
            if root != NONE && graph.calls.end[root as usize] <= self.gap.span.end {
                self.root(root);
            }
        }
    }

    /// What bound an operation's start.
    fn before_op(&mut self, op: OpId) -> Option<At> {
        let graph = self.of.graph;
        let (i, source) = (op as usize, graph.ops.bind[op as usize]);
        if let Some(before) = self.moved_by(op) {
            let cause = match self.before().is_some_and(|it| self.of.comes_back(it)) {
                true => Cause::Pages,
                false => Cause::Host,
            };
            let from = graph.calls.end[before as usize];
            // Pages that go to the GPU were asked for by a prefetch.
            match self.of.comes_back(op) {
                true => self.thinking(before, from, (cause, Certainty::Likely)),
                false => self.put(
                    from,
                    Cause::Latency,
                    Culprit::Call(before),
                    Certainty::Likely,
                ),
            }
            if !self.is_over() {
                self.called(before);
            }
            return Some(At::Call(before));
        }
        match graph.ops.edge[i] {
            EdgeKind::None => {
                self.brought(op, self.gap.span.start);
                None
            }
            EdgeKind::Launch => {
                self.launched(op, source);
                Some(At::Call(source))
            }
            kind => {
                self.queued(op, kind, source);
                if self.is_over() {
                    return Some(At::Op(source));
                }
                // Only on another stream or device: there it ran.
                let (cause, certainty) = self.held(kind, op, source);
                self.put(
                    graph.ops.start[source as usize],
                    cause,
                    Culprit::Op(source),
                    certainty,
                );
                Some(At::Op(source))
            }
        }
    }

    /// From the end of what an operation depended on to its start.
    fn queued(&mut self, op: OpId, kind: EdgeKind, source: OpId) {
        let graph = self.of.graph;
        let from = graph.ops.end[source as usize];
        let begun = graph.ops.start[op as usize];
        // A launch that was recorded after its kernel began tells of clocks or records, not of causes.
        let call = match graph.ops.call[op as usize] {
            call if call != NONE && graph.calls.start[call as usize] <= begun => call,
            _ => NONE,
        };
        let is_other = changes_engine(graph, op);
        let culprit = Culprit::Op(source);
        let limits = &self.of.ready.limits;
        let latency = limits.latency(graph.ops.engine[op as usize]);
        // A later node of a graph waits for the node before it, and not for the launch of both.
        let is_node = call != NONE
            && graph.calls.kind[call as usize] == CallKind::GraphLaunch
            && graph.ops.call[source as usize] == call;
        if !is_node && call != NONE && begun - graph.calls.start[call as usize] <= latency {
            let culprit = Culprit::Call(call);
            return self.put(from, Cause::Latency, culprit, Certainty::Fact);
        }
        let (cause, certainty) = match kind {
            EdgeKind::Event => (Cause::Event, Certainty::Fact),
            EdgeKind::EventLikely => (Cause::Event, Certainty::Likely),
            EdgeKind::DefaultLikely | EdgeKind::OtherLikely => self.held(kind, op, source),
            // Without its call nobody knows that it was queued.
            _ if is_other => (Cause::EngineChange, certain(call != NONE)),
            _ => (Cause::Queued, certain(call != NONE)),
        };
        // The launch of a graph that took most of the pause is why its first node came late.
        let end = graph.calls.end.get(call as usize).copied().unwrap_or(from);
        let is_launching = call != NONE
            && graph.calls.kind[call as usize] == CallKind::GraphLaunch
            && graph.calls.first_op[call as usize] == op
            && 2 * (end - from) >= begun - from;
        let bound = if is_launching { end } else { from };
        // The host brought the bytes along meanwhile, wherever the call began.
        let is_staging = end > from && stages_first(graph, op) && self.of.is_staged(op);
        if begun - bound <= limits.queued[usize::from(is_other)] && !is_staging {
            self.put(bound, cause, culprit, certainty);
        }
        if self.time <= from.max(self.gap.span.start) {
            return;
        }
        // It was launched when what it depended on had ended, or its call was still under way.
        if end > from {
            return self.own_call(op, call, from.max(graph.calls.start[call as usize]), end);
        }
        if begun - from <= LATENCY_MAX {
            return self.put(from, cause, culprit, Certainty::Likely);
        }
        match call {
            NONE => {
                self.brought(op, from);
                self.put(from, Cause::Unknown, culprit, Certainty::Unknown);
            }
            call => self.host(call, from, None),
        }
    }

    /// What TensorFlow's ops on the CPU did before an operation that no call is known of.
    fn brought(&mut self, op: OpId, from: Ns) {
        let from = from.max(self.gap.span.start);
        if from >= self.time || self.of.graph.ops.call[op as usize] != NONE {
            return;
        }
        let (trace, host) = (self.of.trace, &self.of.ready.host);
        let span = Span::new(from, self.time);
        for (part, row) in host.brought(trace, self.of.process(op), span) {
            let (cause, culprit, certainty) = match row {
                Some(row) => (Cause::Host, Culprit::row(row), Certainty::Likely),
                None => (Cause::Unknown, Culprit::Nobody, Certainty::Unknown),
            };
            self.put(part.start, cause, culprit, certainty);
        }
    }

    /// What an operation of another stream that ran in the gap stands for.
    fn held(&self, kind: EdgeKind, op: OpId, source: OpId) -> (Cause, Certainty) {
        let engine = |op: OpId| self.of.graph.ops.engine[op as usize];
        match kind {
            EdgeKind::Engine => (Cause::Engine, Certainty::Fact),
            EdgeKind::Event => (Cause::Event, Certainty::Fact),
            EdgeKind::EventLikely => (Cause::Event, Certainty::Likely),
            EdgeKind::OtherLikely
                if engine(op) == engine(source) && engine(op) == Engine::Compute =>
            {
                (Cause::Engine, Certainty::Likely)
            }
            EdgeKind::OtherLikely | EdgeKind::DefaultLikely => (Cause::Stream, Certainty::Likely),
            _ => (Cause::Queued, Certainty::Fact),
        }
    }

    /// What the host did before a call.
    fn before_call(&mut self, call: CallId) -> Option<At> {
        let graph = self.of.graph;
        let i = call as usize;
        let before = match graph.calls.handed[i] {
            NONE => graph.calls.previous[i],
            other => other,
        };
        let certainty = match graph.calls.handed[i] {
            NONE => Certainty::Fact,
            _ => Certainty::Likely,
        };
        let from = match before {
            NONE => self.gap.span.start,
            before => graph.calls.end[before as usize],
        };
        self.thinking(call, from, (Cause::Host, certainty));
        if before == NONE {
            return None;
        }
        if !self.is_over() {
            self.called(before);
        }
        Some(At::Call(before))
    }

    /// From `from` on the thread of `call` was not in a call: at its own work, named by the ranges it was in.
    fn thinking(&mut self, call: CallId, from: Ns, (cause, certainty): (Cause, Certainty)) {
        let graph = self.of.graph;
        let i = call as usize;
        let from = from.max(self.gap.span.start);
        if from < self.time {
            let span = Span::new(from, self.time);
            for (part, row) in self.ranges(call, span) {
                // What this thread does not name may be named by the one that handed over, or by the one that launched:
                // it waited meanwhile.
                let others = [
                    (graph.calls.handed[i], certainty),
                    (self.launch, Certainty::Likely),
                ];
                let named = others
                    .into_iter()
                    .filter(|other| row.is_none() && other.0 != NONE);
                let named = named.map(|(other, sure)| (self.ranges(other, part), sure));
                let mut named = named.filter(|(parts, _)| parts.iter().any(|it| it.1.is_some()));
                let (parts, certainty) = named.next().unwrap_or((vec![(part, row)], certainty));
                for (part, row) in parts {
                    let culprit = row.map_or(Culprit::Nobody, Culprit::row);
                    self.host(call, part.start, Some((cause, culprit, certainty)));
                }
            }
        }
    }
}
