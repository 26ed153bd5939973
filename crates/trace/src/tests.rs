//! The store as a whole: definitions, places, losses.

use super::*;
use activity::{Batch, Def, HostCall, Kernel, MemoryKind, Place};
use proptest::prelude::*;

fn kernel(start: Ns, end: Ns, device: u32, stream: u32, correlation: u32) -> Activity {
    Activity {
        span: Span::new(start, end),
        correlation,
        what: What::Kernel(Kernel {
            place: Place {
                device,
                context: 1,
                stream,
            },
            shape: 0,
            graph: 0,
            node: 0,
        }),
    }
}

fn copy(start: Ns, end: Ns, stream: u32, bytes: u64) -> Activity {
    Activity {
        span: Span::new(start, end),
        correlation: 0,
        what: What::Copy(activity::Copy {
            place: Place {
                device: 0,
                context: 1,
                stream,
            },
            direction: Direction::H2D,
            from: MemoryKind::Pinned,
            to: MemoryKind::Device,
            is_async: true,
            bytes,
            peer: 0,
            graph: 0,
            node: 0,
        }),
    }
}

fn named(process: u32, text: &str, items: Vec<Activity>) -> Batch {
    Batch {
        process,
        defs: vec![
            Def::Name {
                id: 0,
                text: text.to_owned(),
            },
            Def::Shape {
                id: 0,
                shape: LaunchShape::default(),
            },
        ],
        items,
        ..Batch::default()
    }
}

#[test]
fn names_of_two_processes_do_not_mix() {
    let mut trace = Trace::default();
    trace.apply(named(0, "first", vec![kernel(0, 10, 0, 7, 1)]));
    trace.apply(named(1, "second", vec![kernel(5, 15, 0, 7, 1)]));
    let name = |lane: LaneId| match trace.activity(lane, 0).what {
        What::Kernel(k) => trace.names().full(trace.shape(k.shape).name).to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!((name(0).as_str(), name(1).as_str()), ("first", "second"));
    // Both processes call it device 0 and neither says more: one device, whose kernels overlap.
    assert_eq!(trace.devices().len(), 1);
    assert_eq!(trace.devices()[0].usage.total(Measure::Busy), 15);
}

#[test]
fn parts_of_one_time_are_added_up_with_the_last() {
    let mut trace = Trace::default();
    for (process, is_part, busy) in [(0, true, 0), (1, true, 0), (2, false, 20)] {
        let start = 5 * Ns::from(process);
        let batch = named(process, "k", vec![kernel(start, start + 10, 0, 7, 1)]);
        trace.apply(Batch { is_part, ..batch });
        assert_eq!(trace.devices()[0].usage.total(Measure::Busy), busy);
    }
}

#[test]
fn devices_with_one_ordinal_and_two_uuids_are_two_devices() {
    let mut trace = Trace::default();
    for process in 0..2u32 {
        let mut batch = named(process, "k", vec![kernel(0, 10, 0, 7, 1)]);
        batch.defs.push(Def::Device(DeviceInfo {
            uuid: Some([process as u8; 16]),
            name: format!("GPU {process}"),
            ..DeviceInfo::default()
        }));
        trace.apply(batch);
    }
    let ids: Vec<_> = trace
        .devices()
        .iter()
        .map(|d| (d.info.id, d.info.name.as_str()))
        .collect();
    assert_eq!(ids, [(0, "GPU 0"), (1, "GPU 1")]);
    assert_eq!(trace.devices()[0].usage.total(Measure::Busy), 10);
}

#[test]
fn what_was_never_defined_is_a_question_mark() {
    let mut trace = Trace::default();
    trace.apply(Batch {
        items: vec![
            kernel(0, 1, 0, 7, 1),
            Activity {
                span: Span::at(0),
                correlation: 1,
                what: What::Call(HostCall {
                    thread: 1,
                    name: 4_000_000_000,
                    code: 0,
                }),
            },
        ],
        ..Batch::default()
    });
    assert_eq!(trace.lanes().len(), 2);
    for lane in 0..2 {
        let id = match trace.activity(lane, 0).what {
            What::Kernel(k) => trace.shape(k.shape).name,
            What::Call(c) => c.name,
            other => panic!("{other:?}"),
        };
        assert_eq!(trace.names().full(id), "?");
    }
}

#[test]
fn an_operation_and_its_call_find_each_other() {
    let mut trace = Trace::default();
    let call_of = |thread, correlation| Activity {
        span: Span::new(0, 5),
        correlation,
        what: What::Call(HostCall {
            thread,
            name: 0,
            code: 0,
        }),
    };
    let call = |correlation| call_of(1, correlation);
    trace.apply(named(
        0,
        "cudaLaunchKernel",
        vec![call(1), call(2), kernel(9, 10, 0, 7, 2)],
    ));
    let (lane, row) = trace.operation(0, 2).expect("the operation");
    assert_eq!(trace.activity(lane, row).span, Span::new(9, 10));
    let (lane, row) = trace.call(0, 2).expect("the call");
    assert_eq!(trace.activity(lane, row).correlation, 2);
    assert_eq!(trace.operation(0, 1), None);
    assert_eq!(trace.call(1, 2), None);
    // However many threads there are.
    let calls = (1..1000).map(|thread| call_of(thread, 10 * thread));
    trace.apply(named(0, "cudaLaunchKernel", calls.collect()));
    for thread in 1..1000 {
        let (lane, row) = trace.call(0, 10 * thread).expect("the call");
        assert_eq!(trace.activity(lane, row).what, call_of(thread, 0).what);
    }
    assert_eq!(trace.call(0, 11), None);
}

#[test]
fn bytes_of_two_streams_add_up_in_any_window() {
    let mut trace = Trace::default();
    trace.apply(named(
        0,
        "",
        vec![copy(0, 100, 1, 1000), copy(50, 150, 2, 2000)],
    ));
    let moved = |a, b| trace.bytes_moved(0, Direction::H2D, Span::new(a, b));
    assert!((moved(0, 150) - 3000.0).abs() < 1e-9);
    assert!((moved(0, 50) - 500.0).abs() < 1e-9);
    assert!((moved(50, 100) - 1500.0).abs() < 1e-9);
    assert_eq!(trace.operations_extent(), Some(Span::new(0, 150)));
}

#[test]
fn counters_of_all_processes_add_up() {
    let mut trace = Trace::default();
    for process in 0..2 {
        trace.apply(Batch {
            process,
            health: Some(Health {
                received: 10,
                dropped: 1,
                no_timestamp: 2,
                ..Health::default()
            }),
            ..Batch::default()
        });
    }
    assert_eq!(trace.health().received, 20);
    assert_eq!(trace.health().losses(), 6);
}

#[test]
fn more_devices_than_any_job_has_are_told_as_one() {
    let device = |id: u32| {
        Def::Device(DeviceInfo {
            id,
            uuid: Some(u128::from(id).to_le_bytes()),
            ..Default::default()
        })
    };
    let mut trace = Trace::default();
    trace.apply(Batch {
        defs: (0..5_000).map(device).collect(),
        ..Batch::default()
    });
    assert_eq!(trace.devices().len(), 4_096);
    assert_eq!(trace.health().bad_clock, 5_000 - 4_096);
}

#[test]
fn records_that_claim_more_than_can_be_summed_up_are_counted_and_left_out() {
    let copy = |bytes, end| {
        let copy = activity::Copy {
            place: Place::new(0, 1, 7),
            peer: 0,
            graph: 0,
            node: 0,
            bytes,
            direction: Direction::H2D,
            from: MemoryKind::Pinned,
            to: MemoryKind::Device,
            is_async: true,
        };
        Activity::new(Span::new(0, end), 1, What::Copy(copy))
    };
    let set = |bytes| {
        let memset = activity::Memset {
            place: Place::new(0, 1, 7),
            graph: 0,
            node: 0,
            bytes,
        };
        Activity::new(Span::new(0, 10), 1, What::Memset(memset))
    };
    let longest = activity::TIME_MAX;
    let items = vec![
        copy(1 << 60, 10),
        copy(u64::MAX, 10),
        copy(1 << 61, 10),
        set(1 << 62),
        set(u64::MAX),
        copy(5, longest - 20),
        copy(5, longest - 20),
        copy(5, 10),
    ];
    let mut trace = Trace::default();
    trace.apply(Batch {
        items,
        ..Batch::default()
    });
    assert_eq!(trace.health().bad_clock, 5);
    let rows: usize = trace.lanes().iter().map(Lane::len).sum();
    assert_eq!(rows, 3);
}

#[test]
fn an_id_that_is_defined_anew_means_the_new_thing_from_then_on() {
    let mut trace = Trace::default();
    trace.apply(named(0, "first", vec![kernel(0, 10, 0, 7, 1)]));
    trace.apply(named(0, "second", vec![kernel(20, 30, 0, 7, 2)]));
    let name = |row: usize| match trace.activity(0, row).what {
        What::Kernel(k) => trace.names().full(trace.shape(k.shape).name).to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!((name(0).as_str(), name(1).as_str()), ("first", "second"));
}

#[test]
fn a_snapshot_stays_as_it_was_while_its_timeline_goes_on() {
    fn shared<T: Send + Sync>(of: T) -> T {
        of
    }
    let mut trace = Trace::default();
    let kernels = |from: Ns| (from..from + 100).map(|i| kernel(i * 10, i * 10 + 5, 0, 7, 1));
    trace.apply(named(0, "first", kernels(0).collect()));
    trace.apply(named(0, "first", vec![copy(3, 8, 9, 100)]));
    let snapshot = shared(trace.snapshot());
    // Later, late, into a new lane, under a new name.
    trace.apply(named(0, "second", kernels(100).collect()));
    trace.apply(named(
        0,
        "third",
        vec![kernel(7, 9, 0, 7, 2), copy(4, 6, 11, 50)],
    ));

    let reader = std::thread::spawn(move || {
        let all = Span::new(0, 10_000);
        assert_eq!(snapshot.lanes().len(), 2);
        assert_eq!(snapshot.lanes()[0].len(), 100);
        assert_eq!(snapshot.lanes()[0].busy(all), 500);
        assert_eq!(snapshot.lanes()[0].span(1), Span::new(10, 15));
        let usage = &snapshot.devices()[0].usage;
        assert_eq!(usage.time(Measure::Compute, all), 500);
        assert_eq!(usage.total(Measure::Overlap), 2);
        assert!((snapshot.bytes_moved(0, Direction::H2D, all) - 100.0).abs() < 1e-9);
        let What::Kernel(k) = snapshot.activity(0, 99).what else {
            panic!("a kernel");
        };
        assert_eq!(snapshot.names().full(snapshot.shape(k.shape).name), "first");
        assert_eq!(snapshot.names().len(), 1);
    });
    reader.join().expect("the reader");

    assert_eq!(trace.lanes()[0].len(), 201);
    assert_eq!(trace.lanes()[0].span(1), Span::new(7, 9));
    assert_eq!(trace.devices()[0].usage.total(Measure::Compute), 1002);
    assert_eq!(trace.late(), 1);
}

proptest! {
    /// Beside a timeline that never forgets: whole runs agree, and so do windows behind what was forgotten.
    #[test]
    fn what_was_forgotten_still_adds_up(
        batches in prop::collection::vec(
            prop::collection::vec((0i64..60, 0i64..90, any::<bool>(), 1u32..4), 1..120), 1..8),
        cuts in prop::collection::vec(0i64..8000, 1..8),
        a in 0i64..8000,
        b in 0i64..8000,
    ) {
        const UNIT: Ns = 1 << 17;
        let mut whole = Trace::default();
        let mut short = Trace::default();
        let mut start = 0;
        for (i, batch) in batches.into_iter().enumerate() {
            let mut items = Vec::new();
            for (step, length, is_copy, stream) in batch {
                start += step * UNIT / 7;
                let end = start + length * UNIT / 7;
                items.push(if is_copy {
                    copy(start, end, stream, 1000)
                } else {
                    kernel(start, end, 0, stream, 1)
                });
            }
            whole.apply(named(0, "k", items.clone()));
            short.apply(named(0, "k", items));
            // What starts in the evicted stretch later on is summarised in proportion only.
            if let Some(&cut) = cuts.get(i) {
                short.evict_before((cut * UNIT).min(start));
            }
        }
        let before = short.evicted().map_or(0, |evicted| evicted.before);
        if before > 0 {
            prop_assert!(short.lanes().iter().all(|lane| lane.first_row() < lane.len()));
        }
        prop_assert_eq!(short.operations_extent(), whole.operations_extent());
        let at = |t: Ns| (t * UNIT).max(before);
        let all = Span::new(-5, Ns::MAX / 4);
        for window in [all, Span::new(at(a.min(b)), at(a.max(b)))] {
            for (one, other) in short.lanes().iter().zip(whole.lanes()) {
                prop_assert_eq!(one.len(), other.len());
                prop_assert_eq!(one.extent(), other.extent());
                prop_assert_eq!(one.busy(window), other.busy(window));
                for row in one.first_row()..one.len() {
                    prop_assert_eq!(one.span(row), other.span(row));
                }
            }
            let (one, other) = (&short.devices()[0].usage, &whole.devices()[0].usage);
            for measure in [Measure::Busy, Measure::Compute, Measure::Copy, Measure::Overlap] {
                prop_assert_eq!(one.time(measure, window), other.time(measure, window));
                prop_assert_eq!(one.total(measure), other.total(measure));
            }
            let moved = |trace: &Trace| trace.bytes_moved(0, Direction::H2D, window);
            prop_assert!((moved(&short) - moved(&whole)).abs() < 1e-3);
        }
    }
}
