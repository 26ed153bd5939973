//! Happens-before by brute force: operations are nodes, rules of order are edges, order is
//! reachability. Written from the rules in CUDA's documentation, not from the finder.

use std::ops::Range;

use activity::Direction;
use scenario::hazards::Side;
use scenario::plan::*;

use crate::{EVENTS, STREAMS};

/// All pairs of sites that race, each pair in both orders.
pub(crate) fn brute_force(variant: &VariantPlan) -> Vec<(SiteId, SiteId)> {
    let mut order = Order {
        graph_end: vec![None; variant.graphs.len()],
        graph_origin: vec![0; variant.graphs.len()],
        ..Order::default()
    };
    order.host = order.node(&[]);
    for op in &variant.ops {
        order.op(variant, op);
    }
    order.races()
}

/// A brute-force access: node of the order, memory, bytes, whether it writes, the operation's site.
struct Touch {
    node: usize,
    memory: (BufferId, Side),
    bytes: Range<u64>,
    writes: bool,
    site: SiteId,
}

/// The order as a graph.
#[derive(Default)]
struct Order {
    edges: Vec<Vec<usize>>,
    touches: Vec<Touch>,
    host: usize,
    last: [Option<usize>; STREAMS],
    events: [Option<usize>; EVENTS],
    graph_end: Vec<Option<usize>>,
    graph_origin: Vec<usize>,
}

impl Order {
    fn node(&mut self, after: &[usize]) -> usize {
        self.edges.push(Vec::new());
        let new = self.edges.len() - 1;
        for earlier in after {
            self.edges[*earlier].push(new);
        }
        new
    }

    /// A point of the host's own time.
    fn host(&mut self, after: &[usize]) -> usize {
        let mut after = after.to_vec();
        after.push(self.host);
        self.host = self.node(&after);
        self.host
    }

    /// A point of a stream, after the host's point of now.
    fn on(&mut self, stream: usize, after: &[usize]) -> usize {
        let mut after = after.to_vec();
        after.extend(self.last[stream]);
        let node = self.node(&after);
        self.last[stream] = Some(node);
        node
    }

    fn touch(
        &mut self,
        node: usize,
        variant: &VariantPlan,
        (at, bytes): (MemRef, u64),
        side: Side,
        writes: bool,
        site: SiteId,
    ) {
        let is_managed = variant.buffers[at.buffer].host == HostMemory::Managed;
        let side = if is_managed { Side::Device } else { side };
        self.touches.push(Touch {
            node,
            memory: (at.buffer, side),
            bytes: at.offset..at.offset + bytes,
            writes,
            site,
        });
    }

    fn whole(
        &mut self,
        node: usize,
        variant: &VariantPlan,
        buffer: BufferId,
        side: Side,
        writes: bool,
        site: SiteId,
    ) {
        self.touch(
            node,
            variant,
            (MemRef { buffer, offset: 0 }, variant.buffers[buffer].bytes),
            side,
            writes,
            site,
        );
    }

    /// What an operation on a stream touches, at a node.
    fn work(&mut self, node: usize, variant: &VariantPlan, op: &Op) {
        match op.kind {
            OpKind::Copy(CopySpec {
                direction,
                from,
                to,
                bytes,
                ..
            }) => {
                let (read, written) = match direction {
                    Direction::H2D => (Side::Host, Side::Device),
                    Direction::D2H => (Side::Device, Side::Host),
                    _ => (Side::Device, Side::Device),
                };
                self.touch(node, variant, (from, bytes), read, false, op.site);
                self.touch(node, variant, (to, bytes), written, true, op.site);
            }
            OpKind::Memset { to, bytes, .. } => {
                self.touch(node, variant, (to, bytes), Side::Device, true, op.site);
            }
            OpKind::Launch { launch, .. } => {
                // The kernel of these plans is `k(const float*, float*)`.
                for (arg, writes) in variant.launches[launch].args.iter().zip([false, true]) {
                    if let Arg::Device(at) = arg {
                        self.whole(node, variant, at.buffer, Side::Device, writes, op.site);
                    }
                }
            }
            OpKind::Alloc { buffer, .. } | OpKind::Free { buffer, .. } => {
                self.whole(node, variant, buffer, Side::Device, true, op.site);
            }
            _ => {}
        }
    }

    fn op(&mut self, variant: &VariantPlan, op: &Op) {
        let all: Vec<usize> = self.last.iter().flatten().copied().collect();
        match op.kind {
            OpKind::Sync(SyncTarget::Stream(stream)) => {
                let after: Vec<usize> = self.last[stream].into_iter().collect();
                self.host(&after);
            }
            OpKind::Sync(SyncTarget::Event(event)) => {
                let after: Vec<usize> = self.events[event].into_iter().collect();
                self.host(&after);
            }
            OpKind::Sync(SyncTarget::Device(_)) => {
                self.host(&all);
            }
            OpKind::Host(HostWork::Sum(at, bytes)) => {
                let node = self.host(&[]);
                self.touch(node, variant, (at, bytes), Side::Host, false, op.site);
            }
            OpKind::Host(HostWork::Sin(at, bytes)) => {
                let node = self.host(&[]);
                self.touch(node, variant, (at, bytes), Side::Host, true, op.site);
            }
            OpKind::Alloc {
                buffer,
                stream: None,
            } => {
                let node = self.host(&[]);
                self.whole(node, variant, buffer, Side::Device, true, op.site);
            }
            OpKind::Free {
                buffer,
                stream: None,
            } => {
                let node = self.host(&all);
                self.whole(node, variant, buffer, Side::Device, true, op.site);
            }
            OpKind::Record { event, stream } => {
                let issue = self.host(&[]);
                self.events[event] = Some(self.on(stream, &[issue]));
            }
            OpKind::Wait { event, stream } => {
                let mut after = vec![self.host(&[])];
                after.extend(self.events[event]);
                self.on(stream, &after);
            }
            OpKind::Copy(CopySpec {
                direction,
                from,
                stream,
                is_async: false,
                ..
            }) => {
                let issue = self.host(&[]);
                let is_pageable = variant.buffers[from.buffer].host == HostMemory::Pageable;
                if direction == Direction::H2D && is_pageable {
                    // The host's side is read before the call returns, the device's side written later.
                    let returned = self.host(&[]);
                    let node = self.on(stream, &[issue]);
                    let first = self.touches.len();
                    self.work(node, variant, op);
                    self.touches[first].node = returned;
                } else {
                    let node = self.on(stream, &[issue]);
                    self.work(node, variant, op);
                    if matches!(direction, Direction::H2D | Direction::D2H) {
                        self.host(&[node]);
                    }
                }
            }
            OpKind::Capture { graph, stream } => self.graph_origin[graph] = stream,
            OpKind::GraphLaunch { graph, stream } => self.graph(variant, graph, stream),
            OpKind::Copy(CopySpec { stream, .. })
            | OpKind::Memset { stream, .. }
            | OpKind::Launch { stream, .. }
            | OpKind::Alloc {
                stream: Some(stream),
                ..
            }
            | OpKind::Free {
                stream: Some(stream),
                ..
            } => {
                let issue = self.host(&[]);
                let node = self.on(stream, &[issue]);
                self.work(node, variant, op);
            }
            _ => {}
        }
    }

    fn graph(&mut self, variant: &VariantPlan, graph: GraphId, stream: StreamId) {
        let mut after = vec![self.host(&[])];
        after.extend(self.graph_end[graph]);
        let start = self.on(stream, &after);
        let mut last = [None; STREAMS];
        last[self.graph_origin[graph]] = Some(start);
        let mut events = [None; EVENTS];
        for op in &variant.graphs[graph].ops {
            let (on, event) = match op.kind {
                OpKind::Wait { event, stream } => (stream, events[event]),
                OpKind::Record { stream, .. }
                | OpKind::Launch { stream, .. }
                | OpKind::Memset { stream, .. }
                | OpKind::Copy(CopySpec { stream, .. }) => (stream, None),
                _ => continue,
            };
            let after: Vec<usize> = [event, last[on]].into_iter().flatten().collect();
            let node = self.node(&after);
            last[on] = Some(node);
            if let OpKind::Record { event, .. } = op.kind {
                events[event] = Some(node);
            }
            self.work(node, variant, op);
        }
        let end: Vec<usize> = last.into_iter().flatten().collect();
        self.graph_end[graph] = Some(self.on(stream, &end));
    }

    /// All pairs of sites that race.
    fn races(&self) -> Vec<(SiteId, SiteId)> {
        // Edges lead from lower to higher numbers, so one sweep from the back closes them.
        let count = self.edges.len();
        let mut reach = vec![vec![false; count]; count];
        for node in (0..count).rev() {
            for next in &self.edges[node] {
                reach[node][*next] = true;
                let beyond = reach[*next].clone();
                for (own, far) in reach[node].iter_mut().zip(beyond) {
                    *own |= far;
                }
            }
        }
        let mut pairs = Vec::new();
        for (at, a) in self.touches.iter().enumerate() {
            for b in &self.touches[at + 1..] {
                let meets = a.memory == b.memory
                    && a.bytes.start < b.bytes.end
                    && b.bytes.start < a.bytes.end;
                let ordered = a.node == b.node || reach[a.node][b.node] || reach[b.node][a.node];
                if meets && (a.writes || b.writes) && !ordered {
                    pairs.push((a.site, b.site));
                    pairs.push((b.site, a.site));
                }
            }
        }
        pairs
    }
}
