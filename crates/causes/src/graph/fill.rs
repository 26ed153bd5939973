//! Fills the columns with what a timeline has.

use super::calls::CallKind;
use super::calls::sort_by_end;
use super::kind::EdgeKind;
use super::ops::{Engine, GRAPH, STAGED};
use super::{CallId, Graph, NONE, OpId};
use activity::{HostCall, Ns, Span, What};
use trace::{LaneId, LaneKey, LaneKind, Trace};

impl Graph {
    /// The graph of what starts within `window`, for a question about one moment of a long timeline.
    pub fn within(trace: &Trace, window: Span) -> Graph {
        let mut graph = Graph::default();
        // Of two that start at once, that of the lane with the lesser key goes first, in whatever order lanes came.
        let mut order: Vec<LaneId> = (0..trace.lanes().len()).collect();
        order.sort_by_key(|&id| trace.lanes()[id].key());
        graph.take_calls(trace, window, &order);
        graph.take_waits(trace, window);
        graph.take_ops(trace, window, &order);
        graph.events.settle();
        graph.bind(trace);
        graph.connect(trace);
        graph
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
        let mut open: Vec<CallId> = vec![NONE; lanes.len()];
        for (start, rank, row) in new {
            let id = order[rank as usize];
            let process = lanes[id].key().process;
            let activity = trace.activity(id, row as usize);
            let What::Call(what) = activity.what else {
                continue;
            };
            let outer = open[id];
            let call = if outer != NONE && start < self.calls.end[outer as usize] {
                self.fail_within(trace, outer, what);
                outer
            } else {
                let call = self.calls.len() as CallId;
                let kind = self.calls.kind_of(trace.names(), what.name);
                let calls = &mut self.calls;
                calls.has_failed |= what.code != 0;
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
                self.calls.by_correlation[process].push((activity.correlation, call));
            }
        }
        let calls = &mut self.calls;
        sort_by_end(&mut calls.by_end, &calls.end);
        for list in &mut calls.by_correlation {
            list.sort_unstable();
        }
    }

    /// Keeps the error of a call within one of the same function.
    fn fail_within(&mut self, trace: &Trace, outer: CallId, inner: HostCall) {
        let name = trace.names().full(inner.name);
        if inner.code != 0 && name.starts_with(self.function(trace, outer)) {
            self.calls.has_failed = true;
            self.calls.failed_within.insert(outer, inner.code);
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
                self.ops.by_lane[id].0 = rows.start as u32;
                self.ops.by_lane[id].1.reserve(rows.len());
                let spans = lane.spans(rows);
                new.extend(spans.map(|(row, span)| (span.start, rank, row as u32)));
            }
        }
        self.ops.reserve(new.len());
        new.sort();
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
            let is_node = call != NONE && self.calls.kind[call as usize] == CallKind::GraphLaunch;
            ops.flags.push(flags(&activity.what, is_node));
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
        sort_by_end(&mut self.ops.by_end, &self.ops.end);
    }
}

/// Sources without ids of graphs (old Kineto) have nodes by the launch alone.
fn flags(what: &What, is_node: bool) -> u8 {
    let in_graph = if is_node || what.graph() != 0 {
        GRAPH
    } else {
        0
    };
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
