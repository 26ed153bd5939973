//! The finder of races against a brute-force happens-before check: every operation is a node, every
//! rule of order an edge, order is reachability, and all pairs of accesses are compared.

use std::ops::Range;

use cuptop::activity::Direction;
use cuptop::scenario::hazards::{Side, find};
use cuptop::scenario::plan::*;
use proptest::prelude::*;

const STREAMS: usize = 3;
const EVENTS: usize = 3;
/// Two pinned buffers, a pageable one, a managed one.
const HOSTS: [HostMemory; 4] = [
    HostMemory::Pinned,
    HostMemory::Pinned,
    HostMemory::Pageable,
    HostMemory::Managed,
];
const BYTES: u64 = 8;

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
        at: MemRef,
        bytes: u64,
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
            MemRef { buffer, offset: 0 },
            variant.buffers[buffer].bytes,
            side,
            writes,
            site,
        );
    }

    /// What an operation on a stream touches, at a node.
    fn work(&mut self, node: usize, variant: &VariantPlan, op: &Op) {
        match op.kind {
            OpKind::Copy {
                direction,
                from,
                to,
                bytes,
                ..
            } => {
                let (read, written) = match direction {
                    Direction::H2D => (Side::Host, Side::Device),
                    Direction::D2H => (Side::Device, Side::Host),
                    _ => (Side::Device, Side::Device),
                };
                self.touch(node, variant, from, bytes, read, false, op.site);
                self.touch(node, variant, to, bytes, written, true, op.site);
            }
            OpKind::Memset { to, bytes, .. } => {
                self.touch(node, variant, to, bytes, Side::Device, true, op.site)
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
                self.touch(node, variant, at, bytes, Side::Host, false, op.site);
            }
            OpKind::Host(HostWork::Sin(at, bytes)) => {
                let node = self.host(&[]);
                self.touch(node, variant, at, bytes, Side::Host, true, op.site);
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
            OpKind::Copy {
                direction,
                from,
                stream,
                is_async: false,
                ..
            } => {
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
            OpKind::Copy { stream, .. }
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
                | OpKind::Copy { stream, .. } => (stream, None),
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
                for far in 0..count {
                    reach[node][far] |= reach[*next][far];
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

fn brute_force(variant: &VariantPlan) -> Vec<(SiteId, SiteId)> {
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

/// A part of a buffer: offset and length within [`BYTES`].
fn part() -> impl Strategy<Value = (u64, u64)> {
    prop_oneof![Just((0, BYTES)), Just((0, 4)), Just((4, 4)), Just((2, 4))]
}

/// Work on a stream that a graph can hold, too.
fn stream_work() -> impl Strategy<Value = OpKind> {
    let stream = 0..STREAMS;
    let buffer = 0..HOSTS.len();
    let copy = (
        stream.clone(),
        0..3usize,
        0..3usize,
        part(),
        0..4u8,
        any::<bool>(),
    )
        .prop_map(|(stream, from, other, (offset, bytes), way, is_async)| {
            let direction = [
                Direction::H2D,
                Direction::D2H,
                Direction::D2D,
                Direction::D2H,
            ][usize::from(way)];
            let to = if direction == Direction::D2D && from == other {
                (from + 1) % 3
            } else {
                other
            };
            let stream = if is_async { stream } else { 0 };
            OpKind::Copy {
                direction,
                from: MemRef {
                    buffer: from,
                    offset,
                },
                to: MemRef { buffer: to, offset },
                bytes,
                chunk: 0,
                stream,
                is_async,
            }
        });
    let memset =
        (stream.clone(), buffer.clone(), part()).prop_map(|(stream, buffer, (offset, bytes))| {
            OpKind::Memset {
                to: MemRef { buffer, offset },
                bytes,
                value: 0,
                stream,
            }
        });
    let launch = (stream, 0..HOSTS.len() * HOSTS.len())
        .prop_map(|(stream, launch)| OpKind::Launch { launch, stream });
    prop_oneof![copy, memset, launch]
}

fn step() -> impl Strategy<Value = OpKind> {
    let stream = 0..STREAMS;
    let event = 0..EVENTS;
    let buffer = 0..HOSTS.len();
    let whole = |buffer| MemRef { buffer, offset: 0 };
    prop_oneof![
        6 => stream_work(),
        2 => (event.clone(), stream.clone()).prop_map(|(event, stream)| OpKind::Record { event, stream }),
        2 => (event.clone(), stream.clone()).prop_map(|(event, stream)| OpKind::Wait { event, stream }),
        1 => stream.clone().prop_map(|stream| OpKind::Sync(SyncTarget::Stream(stream))),
        1 => event.prop_map(|event| OpKind::Sync(SyncTarget::Event(event))),
        1 => Just(OpKind::Sync(SyncTarget::Device(0))),
        1 => buffer.clone().prop_map(move |buffer| OpKind::Host(HostWork::Sum(whole(buffer), BYTES))),
        1 => buffer.clone().prop_map(move |buffer| OpKind::Host(HostWork::Sin(whole(buffer), BYTES))),
        1 => (buffer.clone(), proptest::option::of(stream.clone()))
            .prop_map(|(buffer, stream)| OpKind::Alloc { buffer, stream }),
        1 => (buffer, proptest::option::of(stream.clone())).prop_map(|(buffer, stream)| OpKind::Free { buffer, stream }),
        2 => stream.prop_map(|stream| OpKind::GraphLaunch { graph: 0, stream }),
    ]
}

/// Puts work on the streams that a fork allows: 0, then 0 and 1 side by side, then 0 again.
fn graph_ops(work: &[OpKind]) -> Vec<OpKind> {
    let on = |kind: OpKind, new: StreamId| {
        let mut kind = kind;
        match &mut kind {
            OpKind::Copy {
                stream, is_async, ..
            } => {
                *stream = new;
                *is_async = true;
            }
            OpKind::Memset { stream, .. } | OpKind::Launch { stream, .. } => *stream = new,
            _ => {}
        }
        kind
    };
    let third = work.len() / 3;
    let mut ops: Vec<OpKind> = work[..third].iter().map(|kind| on(*kind, 0)).collect();
    ops.push(OpKind::Record {
        event: 0,
        stream: 0,
    });
    ops.push(OpKind::Wait {
        event: 0,
        stream: 1,
    });
    ops.extend(
        work[third..2 * third]
            .iter()
            .enumerate()
            .map(|(at, kind)| on(*kind, at % 2)),
    );
    ops.push(OpKind::Record {
        event: 1,
        stream: 1,
    });
    ops.push(OpKind::Wait {
        event: 1,
        stream: 0,
    });
    ops.extend(work[2 * third..].iter().map(|kind| on(*kind, 0)));
    ops
}

fn numbered(kinds: Vec<OpKind>, first: usize) -> Vec<Op> {
    let number = |(at, kind)| Op {
        kind,
        site: (first + at) as SiteId,
    };
    kinds.into_iter().enumerate().map(number).collect()
}

fn variant(steps: Vec<OpKind>, graph: &[OpKind]) -> VariantPlan {
    let mut kinds = vec![OpKind::Capture {
        graph: 0,
        stream: 0,
    }];
    kinds.extend(steps);
    let buffer = |(at, host): (usize, &HostMemory)| BufferSpec {
        name: format!("b{at}"),
        bytes: BYTES,
        host: *host,
        device: Some(0),
        ..BufferSpec::default()
    };
    let argument = |buffer| Arg::Device(MemRef { buffer, offset: 0 });
    let launch = |at: usize| LaunchSpec {
        kernel: 0,
        grid: [1; 3],
        block: [1; 3],
        shared: 0,
        args: vec![argument(at / HOSTS.len()), argument(at % HOSTS.len())],
        flops: None,
        bytes: None,
        time: None,
    };
    VariantPlan {
        name: "random".to_owned(),
        repeat: 1,
        devices: 1,
        streams: (0..STREAMS)
            .map(|at| StreamSpec {
                name: format!("s{at}"),
                ..StreamSpec::default()
            })
            .collect(),
        events: (0..EVENTS).map(|at| format!("e{at}")).collect(),
        buffers: HOSTS.iter().enumerate().map(buffer).collect(),
        kernels: vec![KernelSpec {
            name: "k".to_owned(),
            file: "k.cu".to_owned(),
            source: "extern \"C\" __global__ void k(const float* in, float* out) {}".into(),
            entry: "k".to_owned(),
            site: 0,
        }],
        launches: (0..HOSTS.len() * HOSTS.len()).map(launch).collect(),
        graphs: vec![GraphSpec {
            name: "g".to_owned(),
            ops: numbered(graph_ops(graph), 1000),
        }],
        ops: numbered(kinds, 0),
        ..VariantPlan::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn finder_agrees_with_brute_force(
        steps in proptest::collection::vec(step(), 0..12),
        graph in proptest::collection::vec(stream_work(), 0..6),
    ) {
        let variant = variant(steps, &graph);
        let races = brute_force(&variant);
        let found = find(&variant, &mut 1_000_000);
        prop_assert!(found.is_complete);
        for hazard in &found.hazards {
            let pair = (hazard.first.site, hazard.second.site);
            prop_assert!(races.contains(&pair), "{pair:?} is ordered");
        }
        prop_assert_eq!(found.hazards.is_empty(), races.is_empty(), "all races: {:?}", races);
    }
}

/// Random plans of which none or all race would compare nothing.
#[test]
fn random_plans_are_of_both_kinds() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let strategy = (
        proptest::collection::vec(step(), 0..12),
        proptest::collection::vec(stream_work(), 0..6),
    );
    let mut racing = 0;
    for _ in 0..300 {
        let (steps, graph) = strategy.new_tree(&mut runner).expect("a value").current();
        racing += usize::from(!brute_force(&variant(steps, &graph)).is_empty());
    }
    assert!((50..250).contains(&racing), "{racing} of 300 race");
}
