//! Taking in what a timeline has got: the columns from the first changed moment on are made anew.

use super::calls::sort_by_end;
use super::kind::EdgeKind;
use super::ops::{Engine, GRAPH, STAGED};
use super::waits::HANDOVER_MIN;
use super::{CallId, Graph, NONE, OpId};
use activity::{Ns, Span, What};
use trace::{Lane, LaneId, LaneKey, LaneKind, Trace};

/// What was taken of each lane so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// By lane: after each extension, the last start and how many rows there were up to it.
    lanes: Vec<Vec<(Ns, usize)>>,
}

fn is_wanted(key: LaneKey) -> bool {
    matches!(
        key.kind,
        LaneKind::Stream { .. } | LaneKind::Thread { .. } | LaneKind::Sync | LaneKind::Event
    )
}

impl Progress {
    /// The start of the first row of a lane that is new since the last time; `None` when none is.
    fn first_new(&mut self, id: LaneId, lane: &Lane) -> Option<Ns> {
        if self.lanes.len() <= id {
            self.lanes.resize(id + 1, Vec::new());
        }
        let points = &mut self.lanes[id];
        if points.last().is_some_and(|&(_, rows)| rows == lane.len()) || lane.is_empty() {
            return None;
        }
        // Rows are never taken away, so where the count up to a moment is what it was, nothing came late.
        let up_to = |time: Ns| {
            lane.starting(Span::new(Ns::MIN, time.saturating_add(1)))
                .end
        };
        while points
            .last()
            .is_some_and(|&(time, rows)| up_to(time) != rows)
        {
            points.pop();
        }
        let known = points.last().map_or(0, |&(_, rows)| rows);
        let known = known.max(lane.kept().start);
        (known < lane.len()).then(|| lane.span(known).start)
    }

    fn note(&mut self, id: LaneId, lane: &Lane) {
        let Some(last) = lane.len().checked_sub(1) else {
            return;
        };
        let point = (lane.span(last).start, lane.len());
        let points = &mut self.lanes[id];
        if points.last() != Some(&point) {
            points.push(point);
        }
    }
}

impl Graph {
    /// Takes in what the timeline has got since the last time. Returns the moment from which on it redid things; `None`
    /// when nothing came.
    pub fn extend(&mut self, trace: &Trace) -> Option<Ns> {
        let mut from: Option<Ns> = None;
        for (id, lane) in trace.lanes().iter().enumerate() {
            if !is_wanted(lane.key()) {
                continue;
            }
            let Some(first) = self.taken.first_new(id, lane) else {
                continue;
            };
            let mut least = first;
            if !matches!(lane.key().kind, LaneKind::Thread { .. }) {
                // What came late belongs to a call that may be long known.
                for row in lane.starting(Span::new(first, Ns::MAX)) {
                    let call = self.calls.find(lane.key().process, lane.correlation(row));
                    if call != NONE {
                        least = least.min(self.calls.start[call as usize]);
                    }
                }
            }
            from = Some(from.map_or(least, |f| f.min(least)));
            self.taken.note(id, lane);
        }
        // Whether a thread handed over is told from what it did shortly after.
        let from = from?.saturating_sub(HANDOVER_MIN);
        // No activity starts in the last nanosecond of time.
        self.take(trace, Span::new(from, Ns::MAX));
        Some(from)
    }

    /// The graph of what starts at a moment or later, to be extended.
    pub fn beginning(trace: &Trace, from: Ns) -> Graph {
        let mut graph = Graph::default();
        graph.take(trace, Span::new(from, Ns::MAX));
        graph.taken.lanes.resize(trace.lanes().len(), Vec::new());
        for (id, lane) in trace.lanes().iter().enumerate() {
            if is_wanted(lane.key()) {
                graph.taken.note(id, lane);
            }
        }
        graph
    }

    /// Makes everything that starts within `window` anew, and forgets what started behind it.
    pub(super) fn take(&mut self, trace: &Trace, window: Span) {
        let cut_ops = self.ops.start.partition_point(|&s| s < window.start);
        let cut_calls = self.calls.start.partition_point(|&s| s < window.start);
        self.ops.truncate(cut_ops, window.start);
        self.calls.truncate(cut_calls, window.start);
        self.events.truncate(window.start);
        for first in &mut self.calls.first_op {
            if *first != NONE && *first >= cut_ops as OpId {
                *first = NONE;
            }
        }
        // Of two that start at once, that of the lane with the lesser key goes first, in whatever order lanes came.
        let mut order: Vec<LaneId> = (0..trace.lanes().len()).collect();
        order.sort_by_key(|&id| trace.lanes()[id].key());
        self.take_calls(trace, window, &order);
        self.take_waits(trace, window);
        self.take_ops(trace, window, &order);
        self.events.settle();
        self.bind(trace, cut_ops as OpId);
        self.connect(trace, window.start, cut_calls as CallId);
    }

    fn take_calls(&mut self, trace: &Trace, window: Span, order: &[LaneId]) {
        let lanes = trace.lanes();
        self.calls.by_lane.resize(lanes.len(), Vec::new());
        self.calls
            .by_end
            .resize(trace.processes().len(), Vec::new());
        self.calls
            .by_correlation
            .resize(trace.processes().len(), Vec::new());
        let mut new: Vec<(Ns, u32, u32)> = Vec::new();
        for (&id, rank) in order.iter().zip(0..) {
            let lane = &lanes[id];
            if matches!(lane.key().kind, LaneKind::Thread { .. }) {
                let rows = lane.starting(window);
                self.calls.by_lane[id].reserve(rows.len());
                self.calls.by_correlation[lane.key().process].reserve(rows.len());
                let spans = lane.spans(rows);
                new.extend(spans.map(|(row, span)| (span.start, rank, row as u32)));
            }
        }
        self.calls.reserve(new.len());
        // Lanes are sorted: a sort that finds such runs only merges them.
        new.sort();
        // The last outermost call of each lane.
        let mut open: Vec<CallId> = self
            .calls
            .by_lane
            .iter()
            .map(|list| list.last().copied().unwrap_or(NONE))
            .collect();
        let from = self.calls.len() as CallId;
        let mut late = vec![false; trace.processes().len()];
        for (start, rank, row) in new {
            let id = order[rank as usize];
            let process = lanes[id].key().process;
            let activity = trace.activity(id, row as usize);
            let What::Call(what) = activity.what else {
                continue;
            };
            let outer = open[id];
            let call = if outer != NONE && start < self.calls.end[outer as usize] {
                outer
            } else {
                let call = self.calls.len() as CallId;
                let kind = self.calls.kind_of(trace.names(), what.name);
                let calls = &mut self.calls;
                calls.lane.push(id as u32);
                calls.row.push(row);
                calls.start.push(start);
                calls.end.push(activity.span.end);
                calls.kind.push(kind);
                calls.previous.push(outer);
                calls.handed.push(NONE);
                calls.waited.push(NONE);
                calls.root.push(NONE);
                calls.first_op.push(NONE);
                calls.by_lane[id].push(call);
                calls.by_end[process].push(call);
                open[id] = call;
                call
            };
            if activity.correlation != 0 {
                let list = &mut self.calls.by_correlation[process];
                let entry = (activity.correlation, call);
                late[process] |= list.last().is_some_and(|last| *last > entry);
                list.push(entry);
            }
        }
        let calls = &mut self.calls;
        if from < calls.start.len() as CallId {
            sort_by_end(&mut calls.by_end, &calls.end, window.start);
        }
        for (list, late) in calls.by_correlation.iter_mut().zip(late) {
            if late {
                list.sort_unstable();
            }
        }
    }

    /// Waits of the host and of streams, and event records.
    fn take_waits(&mut self, trace: &Trace, window: Span) {
        self.events.know_streams(trace);
        for (id, lane) in trace.lanes().iter().enumerate() {
            let process = lane.key().process;
            if !matches!(lane.key().kind, LaneKind::Sync | LaneKind::Event) {
                continue;
            }
            for row in lane.starting(window) {
                let activity = trace.activity(id, row);
                let call = self.calls.find(process, activity.correlation);
                let issued = match call {
                    NONE => activity.span.start,
                    call => self.calls.start[call as usize],
                };
                match activity.what {
                    What::Sync(sync) => {
                        if call != NONE {
                            self.calls.awaited.insert(call, sync);
                        }
                        self.events.wait(process, issued, &sync);
                    }
                    What::Event(event) => {
                        let key = LaneKind::Stream {
                            device: event.place.device as usize,
                            context: event.place.context,
                            stream: event.place.stream,
                        };
                        let stream = trace.lane_id(LaneKey { process, kind: key });
                        self.events.record(
                            process,
                            issued,
                            event.event,
                            event.place.context,
                            stream,
                        );
                    }
                    _ => {}
                }
            }
        }
    }

    fn take_ops(&mut self, trace: &Trace, window: Span, order: &[LaneId]) {
        let lanes = trace.lanes();
        self.ops.by_lane.resize(lanes.len(), (0, Vec::new()));
        let devices = trace.devices().len();
        self.ops.by_engine.resize_with(devices, Default::default);
        self.ops.by_device.resize(devices, Vec::new());
        self.ops.by_end.resize(devices, Vec::new());
        let mut new: Vec<(Ns, u32, u32)> = Vec::new();
        for (&id, rank) in order.iter().zip(0..) {
            let lane = &lanes[id];
            if matches!(lane.key().kind, LaneKind::Stream { .. }) {
                let rows = lane.starting(window);
                if self.ops.by_lane[id].1.is_empty() {
                    self.ops.by_lane[id].0 = rows.start as u32;
                }
                self.ops.by_lane[id].1.reserve(rows.len());
                let spans = lane.spans(rows);
                new.extend(spans.map(|(row, span)| (span.start, rank, row as u32)));
            }
        }
        self.ops.reserve(new.len());
        new.sort();
        let is_empty = new.is_empty();
        for (start, rank, row) in new {
            let id = order[rank as usize];
            let key = lanes[id].key();
            let LaneKind::Stream { device, .. } = key.kind else {
                continue;
            };
            let activity = trace.activity(id, row as usize);
            let Some(engine) = Engine::of(&activity.what) else {
                continue;
            };
            let op = self.ops.len() as OpId;
            let call = self.calls.find(key.process, activity.correlation);
            let ops = &mut self.ops;
            ops.lane.push(id as u32);
            ops.row.push(row);
            ops.start.push(start);
            ops.end.push(activity.span.end);
            ops.engine.push(engine);
            ops.flags.push(flags(&activity.what));
            ops.call.push(call);
            ops.edge.push(EdgeKind::None);
            ops.bind.push(NONE);
            ops.by_lane[id].1.push(op);
            ops.by_engine[device][engine as usize].push(op);
            ops.by_device[device].push(op);
            ops.by_end[device].push(op);
            if call != NONE && self.calls.first_op[call as usize] == NONE {
                self.calls.first_op[call as usize] = op;
            }
        }
        if !is_empty {
            sort_by_end(&mut self.ops.by_end, &self.ops.end, window.start);
        }
    }
}

fn flags(what: &What) -> u8 {
    let in_graph = if what.graph() != 0 { GRAPH } else { 0 };
    match what {
        What::Copy(copy) => {
            let staged = if copy.is_pageable() || !copy.is_async {
                STAGED
            } else {
                0
            };
            in_graph | staged
        }
        _ => in_graph,
    }
}
