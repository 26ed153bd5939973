//! The finder of races against a brute-force happens-before check: every operation is a node, every
//! rule of order an edge, order is reachability, and all pairs of accesses are compared.

mod order;

use activity::Direction;
use order::brute_force;
use proptest::prelude::*;
use scenario::hazards::find;
use scenario::plan::*;

pub(crate) const STREAMS: usize = 3;
pub(crate) const EVENTS: usize = 3;
/// Two pinned buffers, a pageable one, a managed one.
const HOSTS: [HostMemory; 4] = [
    HostMemory::Pinned,
    HostMemory::Pinned,
    HostMemory::Pageable,
    HostMemory::Managed,
];
const BYTES: u64 = 8;

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
            OpKind::Copy(CopySpec {
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
            })
        });
    let memset = (stream.clone(), buffer, part()).prop_map(|(stream, buffer, (offset, bytes))| {
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

/// Puts work on the stream that is captured.
fn graph_ops(work: &[OpKind]) -> Vec<OpKind> {
    let on_first = |mut kind: OpKind| {
        match &mut kind {
            OpKind::Copy(CopySpec {
                stream, is_async, ..
            }) => (*stream, *is_async) = (0, true),
            OpKind::Memset { stream, .. } | OpKind::Launch { stream, .. } => *stream = 0,
            _ => {}
        }
        kind
    };
    work.iter().copied().map(on_first).collect()
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
