//! From a plan to the timeline: what the simulator's source sends.

use std::sync::Arc;

use activity::feed::{FailureKind, Message, Outcome};
use activity::{Activity, Def, Direction, MemoryAction, MemoryKind, RangeKind, What};
use scenario::plan::{
    Arg, BufferSpec, CopySpec, GraphSpec, HostMemory, KernelSpec, LaunchSpec, MemRef, Op, OpKind,
    Plan, StreamSpec, SyncTarget, VariantPlan,
};
use sim::{Pace, Profile, run};

const MIB: u64 = 1 << 20;

fn op(kind: OpKind) -> Op {
    Op { kind, site: 0 }
}

fn copy(direction: Direction, buffer: usize, bytes: u64, chunk: u64, is_async: bool) -> Op {
    let place = MemRef { buffer, offset: 0 };
    let (from, to) = (place, place);
    op(OpKind::Copy(CopySpec {
        direction,
        from,
        to,
        bytes,
        chunk,
        stream: 0,
        is_async,
    }))
}

fn buffer(host: HostMemory, bytes: u64) -> BufferSpec {
    BufferSpec {
        name: "data".to_owned(),
        bytes,
        host,
        device: Some(0),
        preallocated: true,
        ..BufferSpec::default()
    }
}

fn launch(time: i64) -> LaunchSpec {
    LaunchSpec {
        kernel: 0,
        grid: [1, 1, 1],
        block: [1, 1, 1],
        shared: 0,
        args: vec![Arg::U64(0)],
        flops: None,
        bytes: None,
        time: Some(time),
    }
}

/// One variant with a pinned and a pageable buffer, a spin kernel of 50 us, and one stream.
fn variant(ops: Vec<Op>) -> VariantPlan {
    VariantPlan {
        name: "only".to_owned(),
        repeat: 1,
        devices: 1,
        streams: vec![StreamSpec {
            name: "main".to_owned(),
            ..StreamSpec::default()
        }],
        buffers: vec![
            buffer(HostMemory::Pinned, 16 * MIB),
            buffer(HostMemory::Pageable, 16 * MIB),
        ],
        kernels: vec![KernelSpec {
            name: "spin".to_owned(),
            file: "spin.cu".to_owned(),
            source: "".into(),
            entry: "spin".to_owned(),
            site: 0,
        }],
        launches: vec![launch(50_000)],
        ops,
        ..VariantPlan::default()
    }
}

fn plan(variants: Vec<VariantPlan>) -> Arc<Plan> {
    Arc::new(Plan {
        pairs: Vec::new(),
        name: "test".to_owned(),
        about: String::new(),
        look_for: String::new(),
        sweep: None,
        variants,
        runs: 0,
        sites: Vec::new(),
        expectations: Vec::new(),
    })
}

/// Everything a run sends.
#[derive(Debug, Default, PartialEq)]
struct Sent {
    defs: Vec<Def>,
    items: Vec<Activity>,
    received: u64,
    outcome: Option<Outcome>,
}

fn simulate(variants: Vec<VariantPlan>) -> Sent {
    let profile = Profile::bundled();
    let feed = run(plan(variants), &profile, Pace::AsFastAsPossible, None).expect("a thread");
    let mut sent = Sent::default();
    for message in feed.receiver() {
        match message {
            Message::Batch(batch) => {
                sent.defs.extend(batch.defs);
                sent.items.extend(batch.items);
                sent.received = batch.health.map_or(sent.received, |h| h.received);
            }
            Message::Finished(outcome) => sent.outcome = Some(outcome),
            other => panic!("unexpected {other:?}"),
        }
    }
    sent
}

impl Sent {
    fn name(&self, id: u32) -> &str {
        (self.defs.iter())
            .find_map(|d| match d {
                Def::Name { id: found, text } if *found == id => Some(text.as_str()),
                _ => None,
            })
            .expect("a defined name")
    }

    fn calls(&self) -> Vec<&str> {
        (self.items.iter())
            .filter_map(|a| match a.what {
                What::Call(call) => Some(self.name(call.name)),
                _ => None,
            })
            .collect()
    }

    /// Operations, without those that fill buffers before the first pass.
    fn operations(&self) -> Vec<Activity> {
        (self.items.iter())
            .filter(|a| a.is_operation() && !matches!(a.what, What::Memset(_)))
            .copied()
            .collect()
    }

    fn ranges(&self) -> Vec<(RangeKind, &str, u32)> {
        (self.items.iter())
            .filter_map(|a| match a.what {
                What::Range(r) => Some((r.kind, self.name(r.name), r.index)),
                _ => None,
            })
            .collect()
    }
}

#[test]
fn passes_are_marked_and_hold_their_operations() {
    let mut spec = variant(vec![op(OpKind::Launch {
        launch: 0,
        stream: 0,
    })]);
    (spec.warmup, spec.repeat) = (2, 3);
    let sent = simulate(vec![spec]);
    assert_eq!(sent.outcome, Some(Outcome::Complete));
    let name = "only";
    assert_eq!(
        sent.ranges(),
        [
            (RangeKind::Warmup, name, 0),
            (RangeKind::Warmup, name, 1),
            (RangeKind::Repeat, name, 0),
            (RangeKind::Repeat, name, 1),
            (RangeKind::Repeat, name, 2),
            (RangeKind::Variant, name, 0),
        ]
    );
    let passes: Vec<_> = (sent.items.iter())
        .filter(|a| matches!(a.what, What::Range(r) if r.kind != RangeKind::Variant))
        .map(|a| a.span)
        .collect();
    let operations = sent.operations();
    assert_eq!(operations.len(), 5);
    for (pass, operation) in passes.iter().zip(operations) {
        assert!(pass.start <= operation.span.start && operation.span.end <= pass.end);
    }
    assert_eq!(sent.received, sent.items.len() as u64);
}

#[test]
fn pinned_copies_run_at_the_measured_bandwidth_and_pageable_ones_block() {
    let sent = simulate(vec![variant(vec![
        copy(Direction::H2D, 0, 16 * MIB, 0, true),
        op(OpKind::Sync(SyncTarget::Stream(0))),
        copy(Direction::H2D, 1, 16 * MIB, 0, true),
    ])]);
    let [pinned, pageable] = sent.operations()[..] else {
        panic!("two copies");
    };
    // Recorded on an H200: 304.2 us for 16 MiB pinned; 1513 to 1517 us for 16 MiB pageable, while the call
    // took 1597 us: the record begins when the first piece is staged.
    let close = |ns: i64, measured: f64| ((ns as f64 - measured) / measured).abs() < 0.01;
    assert!(close(pinned.span.len(), 304_200.0), "{pinned:?}");
    assert!(close(pageable.span.len(), 1_515_000.0), "{pageable:?}");
    let call_of = |correlation| {
        (sent.items.iter())
            .find(|a| a.correlation == correlation && matches!(a.what, What::Call(_)))
            .expect("a call")
            .span
    };
    assert!(call_of(pinned.correlation).end <= pinned.span.start);
    // It ends when the last piece is staged, while that is still copied.
    let call = call_of(pageable.correlation);
    assert!(close(call.len(), 1_597_000.0), "{call:?}");
    assert!(call.end < pageable.span.end);
}

#[test]
fn a_copy_in_pieces_is_as_many_copies() {
    let sent = simulate(vec![variant(vec![copy(
        Direction::D2H,
        0,
        10 * MIB,
        4 * MIB,
        true,
    )])]);
    let bytes: Vec<_> = (sent.operations().iter())
        .filter_map(|a| match a.what {
            What::Copy(copy) => Some(copy.bytes),
            _ => None,
        })
        .collect();
    assert_eq!(bytes, [4 * MIB, 4 * MIB, 2 * MIB]);
}

#[test]
fn synchronous_copies_and_graphs_have_their_own_calls() {
    let mut spec = variant(vec![
        copy(Direction::H2D, 0, MIB, 0, false),
        op(OpKind::Capture {
            graph: 0,
            stream: 0,
        }),
        op(OpKind::GraphLaunch {
            graph: 0,
            stream: 0,
        }),
        op(OpKind::GraphLaunch {
            graph: 0,
            stream: 0,
        }),
    ]);
    spec.graphs = vec![GraphSpec {
        name: "g".to_owned(),
        ops: vec![
            op(OpKind::Launch {
                launch: 0,
                stream: 0
            });
            3
        ],
    }];
    let sent = simulate(vec![spec]);
    let calls = sent.calls();
    let count = |name: &str| calls.iter().filter(|c| **c == name).count();
    assert_eq!(count("cuMemcpyHtoD"), 1);
    assert_eq!(count("cuStreamBeginCapture"), 1);
    assert_eq!(count("cuLaunchKernel"), 3, "captured once");
    assert_eq!(count("cuGraphLaunch"), 2);
    let nodes: Vec<_> = (sent.operations().iter())
        .filter_map(|a| match a.what {
            What::Kernel(kernel) => Some((kernel.graph, kernel.node)),
            _ => None,
        })
        .collect();
    assert_eq!(nodes, [(1, 1), (1, 2), (1, 3), (1, 1), (1, 2), (1, 3)]);
}

#[test]
fn every_allocation_is_freed_at_its_address() {
    let sent = simulate(vec![variant(Vec::new())]);
    let mut open: Vec<(u64, u64, MemoryKind)> = Vec::new();
    let mut allocations = 0;
    for activity in &sent.items {
        if let What::Memory(m) = activity.what {
            let key = (m.address, m.bytes, m.kind);
            match m.action {
                MemoryAction::Alloc => {
                    assert!(open.iter().all(|(address, ..)| *address != m.address));
                    allocations += 1;
                    open.push(key);
                }
                MemoryAction::Free => {
                    let at = open
                        .iter()
                        .position(|o| *o == key)
                        .expect("allocated before");
                    open.remove(at);
                }
            }
        }
    }
    // Two device sides and one pinned host side.
    assert_eq!(allocations, 3);
    assert!(open.is_empty());
}

#[test]
fn a_cold_variant_makes_its_context_inside_the_measured_pass() {
    let warm = variant(vec![op(OpKind::Launch {
        launch: 0,
        stream: 0,
    })]);
    let mut cold = warm.clone();
    cold.cold = true;
    cold.repeat = 2;
    let sent = simulate(vec![warm.clone(), cold, warm]);
    let repeats: Vec<_> = (sent.items.iter())
        .filter(|a| matches!(a.what, What::Range(r) if r.kind == RangeKind::Repeat))
        .map(|a| a.span)
        .collect();
    let contexts: Vec<_> = (sent.items.iter())
        .filter(|a| matches!(a.what, What::Call(c) if sent.name(c.name) == "cuCtxCreate"))
        .map(|a| a.span)
        .collect();
    assert_eq!((repeats.len(), contexts.len()), (4, 2));
    for (repeat, context) in repeats[1..3].iter().zip(contexts) {
        assert!(repeat.start <= context.start && context.end <= repeat.end);
    }
    let loads = |within: &dyn Fn(&Activity) -> bool| {
        (sent.items.iter())
            .filter(|a| matches!(a.what, What::Call(c) if sent.name(c.name) == "cuModuleLoadData"))
            .filter(|a| within(a))
            .count()
    };
    // Each cold pass loads its module, and each warm variant before its passes.
    assert_eq!(loads(&|_| true), 4);
    let in_cold = |a: &Activity| repeats[1..3].iter().any(|r| r.contains(a.span.start));
    assert_eq!(loads(&in_cold), 2);
}

#[test]
fn definitions_come_before_use_and_devices_are_known() {
    let sent = simulate(vec![variant(vec![op(OpKind::Launch {
        launch: 0,
        stream: 0,
    })])]);
    let device = (sent.defs.iter())
        .find_map(|d| match d {
            Def::Device(info) => Some(info),
            _ => None,
        })
        .expect("a device");
    assert_eq!(device.name, "NVIDIA H200");
    let stream = (sent.defs.iter())
        .find_map(|d| match d {
            Def::Stream(info) => Some(info),
            _ => None,
        })
        .expect("a stream");
    assert_eq!(stream.name, "main");
    let place = sent.operations()[0].place().expect("an operation");
    assert_eq!(
        (place.context, place.stream),
        (stream.context, stream.stream)
    );
}

#[test]
fn a_plan_that_does_not_fit_the_device_fails_as_it_would_there() {
    let mut spec = variant(Vec::new());
    spec.buffers[0].bytes = 200 << 30;
    let sent = simulate(vec![spec]);
    let Some(Outcome::Failed(failure)) = sent.outcome else {
        panic!("200 GiB do not fit: {:?}", sent.outcome);
    };
    assert_eq!(failure.kind, FailureKind::Machine);
    assert!(
        failure.message.contains("200 GiB for buffer `data`"),
        "{}",
        failure.message
    );

    // Freed memory can be used again.
    let mut spec = variant(vec![
        op(OpKind::Alloc {
            buffer: 0,
            stream: None,
        }),
        op(OpKind::Free {
            buffer: 0,
            stream: None,
        }),
        op(OpKind::Alloc {
            buffer: 0,
            stream: Some(0),
        }),
        op(OpKind::Free {
            buffer: 0,
            stream: Some(0),
        }),
    ]);
    spec.buffers[0] = BufferSpec {
        bytes: 100 << 30,
        host: HostMemory::None,
        preallocated: false,
        ..spec.buffers[0].clone()
    };
    spec.repeat = 2;
    assert_eq!(simulate(vec![spec]).outcome, Some(Outcome::Complete));
}

#[test]
fn two_runs_at_full_speed_are_equal() {
    let ops = vec![
        copy(Direction::H2D, 0, 16 * MIB, MIB, true),
        op(OpKind::Launch {
            launch: 0,
            stream: 0,
        }),
        copy(Direction::D2H, 1, 16 * MIB, 0, true),
    ];
    let first = simulate(vec![variant(ops.clone())]);
    assert_eq!(first, simulate(vec![variant(ops)]));
}

#[test]
fn a_run_in_real_time_stops_when_asked() {
    // An hour of host work: only the request to stop can end it.
    let hour = op(OpKind::Host(scenario::plan::HostWork::Busy(
        3_600_000_000_000,
    )));
    let profile = Profile::bundled();
    let feed = run(
        plan(vec![variant(vec![hour])]),
        &profile,
        Pace::RealTime,
        None,
    )
    .expect("a thread");
    feed.stop.stop();
    let last = feed.receiver().iter().last();
    assert!(
        matches!(last, Some(Message::Finished(Outcome::Stopped))),
        "{last:?}"
    );
}

#[test]
fn profiles_survive_being_written_and_nonsense_is_refused() {
    let profile = Profile::bundled();
    let text = profile.to_toml().expect("TOML");
    assert_eq!(
        Profile::parse(&text, "copy").expect("its own text"),
        profile
    );

    let zero = text.replace("h2d_gbps = 55.55", "h2d_gbps = 0.0");
    assert_ne!(zero, text);
    let error = Profile::parse(&zero, "bad.toml").expect_err("a copy that never ends");
    assert!(
        error
            .to_string()
            .contains("copy.h2d_gbps must be more than 0"),
        "{error}"
    );

    let unknown = text.replace("[cold]", "[cold]\ncontext_us = 1");
    let error = Profile::parse(&unknown, "bad.toml").expect_err("an unknown key");
    assert!(error.to_string().contains("context_us"), "{error}");
}
