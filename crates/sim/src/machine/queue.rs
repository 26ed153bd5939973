//! Streams and devices: what stands at the head of a queue, whether its turn has come, and what its end sets free.

use super::{Machine, SimEvent};
use crate::device::{Active, Owner};
use crate::program::{EventKey, Item, Operation, StreamConfig, StreamKey};
use crate::stream::{GraphRun, Queued, Stream};
use activity::{Correlation, Ns, Span, What};

impl Machine {
    pub(super) fn open(&mut self, key: StreamKey, config: StreamConfig) {
        let index = key as usize;
        while self.streams.len() <= index {
            self.streams.push(Stream::new(config));
        }
        self.streams[index] = Stream::new(config);
    }

    pub(super) fn is_full(&self, stream: StreamKey) -> bool {
        self.streams[stream as usize].queue.len() >= self.api.queue_depth as usize
    }

    pub(super) fn enqueue(
        &mut self,
        key: StreamKey,
        item: Item,
        correlation: Correlation,
        arrival: Ns,
        event_turn: u64,
    ) -> u64 {
        let stream = &mut self.streams[key as usize];
        stream.submitted += 1;
        let ticket = stream.submitted;
        stream.queue.push_back(Queued {
            item,
            correlation,
            arrival,
            event_turn,
        });
        if stream.queue.len() == 1 {
            self.at(arrival, SimEvent::Stream(key));
        }
        ticket
    }

    /// Moves a stream on as far as it goes now.
    pub(super) fn pump(&mut self, key: StreamKey) {
        while let Some((turn, correlation)) = self.ready_head(key) {
            let stream = &self.streams[key as usize];
            let Some(head) = stream.queue.front() else {
                return;
            };
            match &head.item {
                Item::Record(event, record) => {
                    let (event, record) = (*event, *record);
                    self.record(Span::at(self.now), correlation, What::Event(record));
                    self.reach(event, turn);
                    self.complete_head(key);
                }
                Item::Wait(event, _) => {
                    let state = self.event(*event);
                    if !state.has_reached(turn) {
                        if !state.waiting.contains(&key) {
                            state.waiting.push(key);
                        }
                        return;
                    }
                    self.complete_head(key);
                }
                Item::Run(op) => {
                    let (op, arrival) = (*op, head.arrival);
                    if self.is_ready_for(key, op, arrival) {
                        let stream = &mut self.streams[key as usize];
                        stream.is_head_running = true;
                        self.request(key, None, op, correlation);
                    }
                    return;
                }
                Item::Pause(ns) => {
                    let ns = *ns;
                    self.streams[key as usize].pause += ns;
                    self.complete_head(key);
                }
                Item::Graph(graph, upload) => {
                    let (graph, upload) = (graph.clone(), *upload);
                    let arrival = head.arrival;
                    let first = graph.nodes.iter().find_map(|n| n.op);
                    if first.is_some_and(|op| !self.is_ready_for(key, op, arrival)) {
                        return;
                    }
                    let run = GraphRun::new(graph, correlation, arrival, upload);
                    let roots = run.roots();
                    let stream = &mut self.streams[key as usize];
                    stream.is_head_running = true;
                    stream.graph = Some(run);
                    if roots.is_empty() {
                        self.complete_head(key);
                        continue;
                    }
                    for node in roots {
                        self.start_node(key, node);
                    }
                    return;
                }
            }
        }
    }

    /// The event's turn and the correlation of a stream's head, when it can be looked at now. When not,
    /// the stream will be pumped again.
    fn ready_head(&mut self, key: StreamKey) -> Option<(u64, Correlation)> {
        let stream = &self.streams[key as usize];
        if stream.is_head_running {
            return None;
        }
        let head = stream.queue.front()?;
        if head.arrival > self.now {
            self.at(head.arrival, SimEvent::Stream(key));
            return None;
        }
        Some((head.event_turn, head.correlation))
    }

    /// Whether the stream lets an operation start now. When not, it will be pumped again.
    fn is_ready_for(&mut self, key: StreamKey, op: Operation, arrival: Ns) -> bool {
        let ready = self.streams[key as usize].ready_time(op.what, arrival, &self.latency);
        if ready > self.now {
            self.at(ready, SimEvent::Stream(key));
        }
        ready <= self.now
    }

    fn request(
        &mut self,
        key: StreamKey,
        node: Option<u32>,
        op: Operation,
        correlation: Correlation,
    ) {
        let stream = &self.streams[key as usize];
        let (device, priority) = (stream.device(), stream.config.priority);
        let owner = Owner { stream: key, node };
        self.devices[device].request(op, owner, correlation, priority);
        self.turn(device);
    }

    /// The head of a stream is done.
    fn complete_head(&mut self, key: StreamKey) {
        let stream = &mut self.streams[key as usize];
        stream.queue.pop_front();
        stream.is_head_running = false;
        stream.graph = None;
        stream.completed += 1;
        self.wake_thread();
    }

    /// An event was recorded for the `turn`th time.
    fn reach(&mut self, event: EventKey, turn: u64) {
        let now = self.now;
        let state = self.event(event);
        state.reach(turn);
        for key in std::mem::take(&mut state.waiting) {
            // Only who really had to wait sees the delay; an event reached before costs nothing.
            let stream = &mut self.streams[key as usize];
            stream.not_before = stream.not_before.max(now + self.latency.event_ns);
            self.at(now, SimEvent::Stream(key));
        }
    }

    pub(super) fn start_node(&mut self, key: StreamKey, node: u32) {
        let Some(run) = &self.streams[key as usize].graph else {
            return;
        };
        let correlation = run.correlation;
        let ready = run.handed_over(node) + self.latency.launch_ns;
        if ready > self.now {
            self.at(ready, SimEvent::Node(key, node));
            return;
        }
        match run.graph.nodes[node as usize].op {
            Some(op) => self.request(key, Some(node), op, correlation),
            None => self.node_done(key, node),
        }
    }

    fn node_done(&mut self, key: StreamKey, node: u32) {
        let Some(run) = &mut self.streams[key as usize].graph else {
            return;
        };
        let ready = run.finish(node);
        let is_over = run.is_over();
        let start = self.now + self.latency.graph_node_ns;
        for next in ready {
            self.at(start, SimEvent::Node(key, next));
        }
        if is_over {
            self.complete_head(key);
            self.at(self.now, SimEvent::Stream(key));
        }
    }

    /// Brings a device to now and tells those whose operations ended.
    pub(super) fn turn(&mut self, device: usize) {
        let mut done: Vec<Active> = Vec::new();
        if let Some(next) = self.devices[device].turn(self.now, &mut done) {
            let generation = self.devices[device].generation;
            self.at(next, SimEvent::Device(device, generation));
        }
        for active in done {
            let span = Span::new(active.start, self.now);
            self.record(span, active.correlation, active.op.what);
            let key = active.owner.stream;
            self.streams[key as usize].ended(active.op.what, self.now);
            match active.owner.node {
                Some(node) => self.node_done(key, node),
                None => {
                    self.complete_head(key);
                    self.at(self.now, SimEvent::Stream(key));
                }
            }
        }
    }
}
