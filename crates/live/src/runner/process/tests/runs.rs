//! Plans that run.

use super::*;

#[test]
fn a_pass_copies_computes_and_brings_back() {
    let fake = Fake::new();
    let mut v = variant(&[
        copy(Direction::H2D, 0, 1024, 400, 0),
        launch(0, 0),
        launch(0, 0),
        copy(Direction::D2H, 0, 1024, 0, 0),
        OpKind::Sync(SyncTarget::Stream(0)),
    ]);
    v.warmup = 1;
    v.repeat = 2;
    let (result, marks, events) = fake.run(&plan(vec![v]));
    let issued = result.expect("it runs");
    // Three passes of three pieces, two kernels and one copy back; one copy to fill the buffer.
    assert_eq!(issued.0[..3], [6, 10, 3]);
    let log = fake.log();
    let pass = [
        "h2d 400 async stream 1 first 1",
        "h2d 400 async stream 1 first 1",
        "h2d 224 async stream 1 first 1",
        "launch add_one 4x1x1 64x1x1 shared 0 stream 1",
        "launch add_one 4x1x1 64x1x1 shared 0 stream 1",
        "d2h 1024 async stream 1 first 3",
        "sync stream 1",
        "sync",
    ];
    assert_eq!(from(&log, "h2d 400")[..8], pass);
    // The second pass uploads what the first brought back: ones had become threes.
    assert!(log.contains(&"d2h 1024 async stream 1 first 5".to_owned()));
    let ranges = marks.ranges.borrow();
    let kinds: Vec<(RangeKind, u32)> = ranges.iter().map(|r| (r.0, r.2)).collect();
    assert_eq!(
        kinds,
        [
            (RangeKind::Warmup, 0),
            (RangeKind::Repeat, 0),
            (RangeKind::Repeat, 1),
            (RangeKind::Variant, 0),
        ]
    );
    let (_, _, _, start, end) = ranges[3];
    assert!(
        ranges
            .iter()
            .all(|r| start <= r.3 && r.3 <= r.4 && r.4 <= end)
    );
    assert_eq!(*marks.streams.borrow(), ["main", "side"]);
    let is_pass = |e: &&Event| matches!(e, Event::Progress { total: 3, .. });
    assert_eq!(events.iter().filter(is_pass).count(), 3);
    assert_eq!(fake.live(), 0, "everything is given back");
}

#[test]
fn a_graph_is_captured_across_streams_and_launched() {
    let fake = Fake::new();
    let mut v = variant(&[
        OpKind::Capture {
            graph: 0,
            stream: 0,
        },
        OpKind::GraphLaunch {
            graph: 0,
            stream: 0,
        },
    ]);
    v.repeat = 2;
    v.graphs = vec![GraphSpec {
        name: "g".to_owned(),
        ops: ops(&[
            launch(0, 0),
            OpKind::Record {
                event: 0,
                stream: 0,
            },
            OpKind::Wait {
                event: 0,
                stream: 1,
            },
            launch(2, 1),
            OpKind::Record {
                event: 1,
                stream: 1,
            },
            OpKind::Wait {
                event: 1,
                stream: 0,
            },
        ]),
    }];
    let (result, _, _) = fake.run(&plan(vec![v]));
    assert_eq!(result.expect("it runs").0[0], 4);
    let log = fake.log();
    assert_eq!(
        from(&log, "capture begins")[..10],
        [
            "capture begins on stream 1",
            "captured launch add_one 4x1x1 64x1x1 shared 0 stream 1",
            "event 3 on stream 1",
            "stream 2 waits for event 3",
            "captured launch empty 4x1x1 64x1x1 shared 0 stream 2",
            "event 4 on stream 2",
            "stream 1 waits for event 4",
            "capture ends on stream 1",
            "graph on stream 1",
            "sync",
        ]
    );
    assert_eq!(fake.live(), 0, "the replaced graph is given back too");
}

#[test]
fn large_shared_memory_is_asked_for() {
    let fake = Fake::new();
    let mut v = variant(&[launch(2, 0)]);
    v.launches[2].shared = 100_000;
    fake.run(&plan(vec![v])).0.expect("it runs");
    assert!(
        fake.log()
            .contains(&"attribute 8 of empty is 100000".to_owned())
    );
}

#[test]
fn a_cold_variant_makes_everything_in_each_pass() {
    let fake = Fake::new();
    let mut v = variant(&[launch(0, 0)]);
    v.cold = true;
    v.repeat = 2;
    let (result, marks, _) = fake.run(&plan(vec![v]));
    result.expect("it runs");
    let log = fake.log();
    let count = |what: &str| log.iter().filter(|line| line.starts_with(what)).count();
    assert_eq!(count("context on 0"), 2);
    assert_eq!(count("context gone"), 2);
    assert_eq!(count("module"), 2);
    assert_eq!(count("retain"), 0, "no primary context warms it up");
    let ranges = marks.ranges.borrow();
    let repeat = ranges
        .iter()
        .find(|r| r.0 == RangeKind::Repeat)
        .expect("a repeat");
    let made = ranges
        .iter()
        .find(|r| r.1 == "make the context")
        .expect("a phase");
    assert!(repeat.3 <= made.3 && made.4 <= repeat.4);
    assert_eq!(fake.live(), 0);
}

#[test]
fn memory_from_a_pool_reaches_the_kernel_that_names_it() {
    let fake = Fake::new();
    let mut v = variant(&[
        OpKind::Alloc {
            buffer: 1,
            stream: Some(0),
        },
        OpKind::Memset {
            to: at(1),
            bytes: 1024,
            value: 0,
            stream: 0,
        },
        launch(3, 0),
        copy(Direction::D2H, 1, 1024, 0, 0),
        OpKind::Free {
            buffer: 1,
            stream: Some(0),
        },
        // Left behind: the next pass must not find it taken.
        OpKind::Alloc {
            buffer: 2,
            stream: None,
        },
    ]);
    v.repeat = 2;
    let late = |name| BufferSpec {
        preallocated: false,
        ..buffer(name, 1024, HostMemory::Pageable)
    };
    v.buffers.push(late("pool"));
    v.buffers.push(late("plain"));
    v.launches
        .push(launching(0, vec![Arg::Device(at(1)), Arg::U32(256)]));
    let (result, _, _) = fake.run(&plan(vec![v]));
    result.expect("it runs");
    let log = fake.log();
    assert!(log.contains(&"pool keeps all".to_owned()));
    let back = log
        .iter()
        .filter(|l| l.ends_with("d2h 1024 async stream 1 first 1"));
    assert_eq!(back.count(), 2);
    assert_eq!(fake.live(), 0);
}

#[test]
fn each_device_is_used_in_its_own_context() {
    let fake = Fake::new();
    fake.number(c"fake_set_devices", 2);
    let (result, _, events) = fake.run(&plan(vec![two_devices()]));
    assert_eq!(result.expect("it runs").0[4], 1);
    let log = fake.log();
    assert!(log.contains(&"peer 0".to_owned()) && log.contains(&"peer 1".to_owned()));
    assert!(log.contains(&"from 0 to 1".to_owned()));
    let warned = |e: &Event| matches!(e, Event::Notice { .. });
    assert!(!events.iter().any(warned));
    assert_eq!(fake.live(), 0);

    let apart = Fake::new();
    apart.number(c"fake_set_devices", 2);
    apart.number(c"fake_set_apart", 0);
    let (result, _, events) = apart.run(&plan(vec![two_devices()]));
    result.expect("it still runs");
    assert!(events.iter().any(warned));
}

#[test]
fn phases_are_marked_inside_their_pass() {
    let fake = Fake::new();
    let mut v = variant(&[
        OpKind::RangeBegin(0),
        OpKind::RangeBegin(1),
        launch(2, 0),
        OpKind::RangeEnd,
        OpKind::RangeEnd,
        OpKind::RangeBegin(1),
        OpKind::RangeEnd,
    ]);
    v.phases = vec!["outer".to_owned(), "inner".to_owned()];
    let (result, marks, _) = fake.run(&plan(vec![v]));
    result.expect("it runs");
    let ranges = marks.ranges.borrow();
    let phases: Vec<(&str, u32)> = ranges
        .iter()
        .filter(|r| r.0 == RangeKind::Phase)
        .map(|r| (r.1.as_str(), r.2))
        .collect();
    assert_eq!(phases, [("inner", 0), ("outer", 0), ("inner", 1)]);
}

#[test]
fn nothing_starts_after_a_stop() {
    let fake = Fake::new();
    let parent = Parent::default();
    parent.end.store(true, Ordering::Relaxed);
    let (result, marks, _) = fake.run_under(&plan(vec![variant(&[launch(0, 0)])]), &parent);
    assert_eq!(result.expect("stopping is no failure"), Issued::default());
    assert!(marks.ranges.borrow().is_empty());
}

#[test]
fn the_default_stream_is_cudas_own() {
    let fake = Fake::new();
    let mut v = variant(&[launch(2, 0)]);
    v.streams[0].name = "default".to_owned();
    v.streams[1].priority = -3;
    fake.run(&plan(vec![v])).0.expect("it runs");
    let log = fake.log();
    assert!(log.contains(&"launch empty 4x1x1 64x1x1 shared 0 stream 0".to_owned()));
    // CU_STREAM_NON_BLOCKING is 1.
    assert!(log.contains(&"stream 1 flags 1 priority -3".to_owned()));
}

#[test]
fn sources_are_shared_by_text() {
    let one: Arc<str> = SOURCE.into();
    let other: Arc<str> = SOURCE.into();
    let mut images = Images::default();
    images.insert(one, 90, vec![1]);
    images.insert(other, 90, vec![2]);
    let fake = Fake {
        images,
        ..Fake::new()
    };
    // The second image, which is no module, replaced the first: there is one for each text.
    assert!(fake.run(&plan(vec![variant(&[launch(2, 0)])])).0.is_err());
}

#[test]
fn repeats_end_when_the_median_is_known_as_well_as_is_asked() {
    let fake = Fake::new();
    let repeats = |until| {
        let mut v = variant(&[launch(0, 0)]);
        (v.repeat, v.until) = (20, Some(until));
        let (result, marks, _) = fake.run(&plan(vec![v]));
        result.expect("it runs");
        let ranges = marks.ranges.borrow();
        ranges.iter().filter(|it| it.0 == RangeKind::Repeat).count()
    };
    // Six tell of an interval; none is as short as nothing.
    assert_eq!((repeats(1e9), repeats(0.0)), (6, 20));
}
