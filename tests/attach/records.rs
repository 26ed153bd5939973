//! What arrives: every record, in whatever way the library delivers it, and what is wrong is counted.

use activity::feed::{Message, Outcome};
use activity::{Activity, Def, Direction, MemoryAction, RangeKind, SyncKind, What};

use live::attach::Graphs;

use crate::harness::{fakes, trace, trace_with};

#[test]
fn a_program_that_returns_is_traced_whole() {
    let made = fakes();
    let seen = trace(made, &["return", "5000"], &[]);
    assert_eq!(seen.outcome, Outcome::Complete, "{:?}", seen.notices);
    assert_eq!(seen.processes(), 1);
    seen.has_kernels(0, 5000);
    let calls: Vec<_> = seen
        .items(0)
        .into_iter()
        .filter(|item| matches!(item.what, What::Call(_)))
        .collect();
    assert_eq!(calls.len(), 5000);
    assert!(
        seen.names()
            .values()
            .any(|name| *name == "cudaLaunchKernel")
    );
    let health = seen.health(0);
    assert_eq!((health.received, health.losses()), (10_000, 0));
    assert_eq!(seen.ended_well(0), Some(true));
    for item in seen.items(0) {
        if let What::Kernel(_) = item.what {
            // The program makes the n-th kernel 999 + n ns long.
            assert_eq!(item.span.len(), 999 + i64::from(item.correlation));
        }
    }
}

#[test]
fn buffers_that_come_late_from_other_threads_lose_nothing() {
    let made = fakes();
    let variables = [("FAKE_LATE", "1"), ("FAKE_ROOM", "100")];
    let seen = trace(made, &["return", "2000"], &variables);
    seen.has_kernels(0, 2000);
    assert_eq!(seen.health(0).losses(), 0);
}

#[test]
fn records_longer_than_any_known_are_walked_by_the_librarys_sizes() {
    let made = fakes();
    let variables = [("FAKE_EXTRA", "16"), ("FAKE_VERSION", "130900")];
    let seen = trace(made, &["return", "3000"], &variables);
    seen.has_kernels(0, 3000);
    assert_eq!(seen.health(0).losses(), 0);
    assert!(
        seen.notices.iter().any(|text| text.contains("expected")),
        "sizes that differ from those known are mentioned: {:?}",
        seen.notices
    );
}

#[test]
fn every_kind_of_record_arrives_and_what_is_wrong_is_counted() {
    let made = fakes();
    let seen = trace(made, &["everything"], &[]);
    let items = seen.items(0);
    let one = |wanted: &str, pick: &dyn Fn(&What) -> bool| -> Activity {
        let found: Vec<_> = items.iter().filter(|item| pick(&item.what)).collect();
        assert_eq!(found.len(), 1, "{wanted}: {found:?}");
        *found[0]
    };
    let kernel = one("kernel", &|what| matches!(what, What::Kernel(_)));
    assert_eq!((kernel.correlation, kernel.span.len()), (101, 20));
    let base = kernel.span.start - 10;
    let What::Kernel(details) = kernel.what else {
        unreachable!()
    };
    assert_eq!((details.graph, details.node), (5, 55));
    assert_eq!(
        (
            details.place.device,
            details.place.context,
            details.place.stream
        ),
        (0, 1, 7)
    );
    let shape = seen
        .batches
        .iter()
        .flat_map(|batch| &batch.defs)
        .find_map(|def| match def {
            Def::Shape { id, shape } if *id == details.shape => Some(*shape),
            _ => None,
        })
        .expect("defined");
    assert_eq!(
        (shape.grid, shape.block, shape.cluster),
        ([10, 11, 12], [20, 21, 22], [0, 1, 2])
    );
    assert_eq!(
        (
            shape.registers,
            shape.static_shared,
            shape.dynamic_shared,
            shape.local
        ),
        (32, 100, 200, 300)
    );
    let names = seen.names();
    assert_eq!(names[&shape.name], "_Z6matmulPf");

    let copy = one(
        "copy",
        &|what| matches!(what, What::Copy(it) if it.direction == Direction::H2D),
    );
    let What::Copy(details) = copy.what else {
        unreachable!()
    };
    assert_eq!(
        (details.bytes, details.is_async, details.place.stream),
        (4096, true, 13)
    );
    let peer = one(
        "peer copy",
        &|what| matches!(what, What::Copy(it) if it.direction == Direction::P2P),
    );
    let What::Copy(details) = peer.what else {
        unreachable!()
    };
    assert_eq!(
        (
            details.bytes,
            details.place.device,
            details.peer,
            peer.correlation
        ),
        (8192, 0, 1, 103)
    );
    let memset = one(
        "memset",
        &|what| matches!(what, What::Memset(it) if it.bytes == 512),
    );
    assert_eq!((memset.span.start - base, memset.span.end - base), (51, 60));

    let calls: Vec<_> = items
        .iter()
        .filter_map(|item| match item.what {
            What::Call(call) => Some((names[&call.name], item.correlation)),
            _ => None,
        })
        .collect();
    assert_eq!(
        calls,
        [
            ("cuLaunchKernel", 105),
            ("cudaEventRecord", 109),
            ("cudaEventRecord", 110)
        ]
    );
    let syncs: Vec<_> = items
        .iter()
        .filter_map(|item| match item.what {
            What::Sync(sync) => Some((sync.kind, sync.stream, sync.event)),
            _ => None,
        })
        .collect();
    assert_eq!(
        syncs,
        [
            (SyncKind::Event, Some(13), Some(21)),
            (SyncKind::StreamWaitEvent, Some(13), Some(21)),
            (SyncKind::Stream, Some(13), None),
            (SyncKind::Context, None, None),
        ]
    );
    let overhead = one("overhead", &|what| matches!(what, What::Overhead(_)));
    let What::Overhead(details) = overhead.what else {
        unreachable!()
    };
    assert_eq!(names[&details.name], "lazy function loading");
    let memory: Vec<_> = items
        .iter()
        .filter_map(|item| match item.what {
            What::Memory(it) => Some((it.action, it.bytes, it.address, it.is_async)),
            _ => None,
        })
        .collect();
    let (bytes, address) = (1 << 20, 0x7f00_0000_0000);
    assert_eq!(
        memory,
        [
            (MemoryAction::Alloc, bytes, address, true),
            (MemoryAction::Free, bytes, address, true)
        ]
    );
    // Events carry no time: they have the end of the call that recorded them.
    let events: Vec<_> = items
        .iter()
        .filter_map(|item| match item.what {
            What::Event(it) => Some((it.event, it.place.stream, item.span.start - base)),
            _ => None,
        })
        .collect();
    assert_eq!(events, [(21, 13, 91), (22, 13, 93)]);
    let range = one(
        "range",
        &|what| matches!(what, What::Range(it) if it.kind == RangeKind::Nvtx),
    );
    let What::Range(details) = range.what else {
        unreachable!()
    };
    assert_eq!(names[&details.name], "forward");
    assert_eq!((range.span.start - base, range.span.end - base), (100, 120));

    let defs: Vec<&Def> = seen.batches.iter().flat_map(|batch| &batch.defs).collect();
    assert!(defs.iter().any(
        |def| matches!(def, Def::Device(it) if it.name == "NVIDIA Fake" && it.multiprocessors == 132
        && it.capability == (9, 0) && it.memory == 1 << 37 && it.memory_bandwidth == 4_800_000_000)
    ));
    assert!(
        defs.iter()
            .any(|def| matches!(def, Def::Stream(it) if it.stream == 7 && it.is_default))
    );
    assert!(
        defs.iter()
            .any(|def| matches!(def, Def::Stream(it) if it.stream == 13 && it.name == "upload" && it.priority == -2))
    );
    assert!(
        defs.iter()
            .any(|def| matches!(def, Def::Thread { name, .. } if name == "the loop"))
    );
    assert!(
        defs.iter()
            .any(|def| matches!(def, Def::Process(it) if it.command.ends_with("program everything") && it.versions.contains("130001")))
    );

    // Of the rejects: two without time, one backwards, three outside the clock; one kind without a meaning here and one
    // without a size; and what CUPTI says that it dropped.
    let health = seen.health(0);
    assert_eq!(health.no_timestamp, 2);
    assert_eq!(health.end_before_start, 1);
    assert_eq!(health.bad_clock, 3);
    assert_eq!(health.unknown, 2);
    assert_eq!(health.dropped, 42);
    assert_eq!(health.lost, 0);
    // 23 records of everything, 7 rejects; the one without a size is not a record yet.
    assert_eq!(health.received, 23 + 7);
}

#[test]
fn records_that_are_withheld_are_announced_and_come_in_the_end() {
    let made = fakes();
    let seen = trace(made, &["wait", "20"], &[("FAKE_WITHHOLD", "1")]);
    seen.has_kernels(0, 20);
    let told: Vec<i64> = seen
        .batches
        .iter()
        .filter(|batch| batch.items.is_empty())
        .filter_map(|batch| batch.health?.oldest_open)
        .collect();
    let first = seen
        .items(0)
        .iter()
        .map(|item| item.span.start)
        .min()
        .expect("items");
    // The program makes its records at once, 1 ms after the time it gives them, and nothing before.
    assert!(!told.is_empty(), "nothing was announced");
    assert!(
        told.iter().all(|time| (time - first).abs() < 1_000_000_000),
        "{told:?} {first}"
    );
    assert_eq!(seen.health(0).oldest_open, None);
}

#[test]
fn graphs_without_times_are_counted_and_explained() {
    let made = fakes();
    let seen = trace(made, &["graph", "500"], &[]);
    assert_eq!(seen.health(0).no_timestamp, 500);
    assert!(
        seen.notices
            .iter()
            .any(|text| text.contains("CUDA graphs without times")),
        "{:?}",
        seen.notices
    );
}

#[test]
fn nvtx_is_passed_on_to_the_libcupti_of_the_collector() {
    let made = fakes();
    let seen = trace(made, &["nvtx", "5"], &[]);
    assert_eq!(seen.outcome, Outcome::Complete, "{:?}", seen.notices);
    seen.has_kernels(0, 5);
}

#[test]
fn the_recording_opens_again_as_it_was_seen_live() {
    let made = fakes();
    let seen = trace(made, &["return", "1000"], &[]);
    let feed = recording::open(&[seen.directory.path().join("run")]).expect("opens");
    let mut kernels = 0;
    for message in feed.receiver() {
        match message {
            Message::Batch(batch) => {
                kernels += batch
                    .items
                    .iter()
                    .filter(|item| matches!(item.what, What::Kernel(_)))
                    .count();
            }
            Message::Finished(outcome) => assert_eq!(outcome, Outcome::Complete),
            _ => {}
        }
    }
    assert_eq!(kernels, 1000);
}

#[test]
fn graphs_are_recorded_by_their_nodes_or_as_a_whole() {
    let made = fakes();
    trace(made, &["graphs", "3"], &[]).has_kernels(0, 3);

    let whole = trace_with(made, &["graphs", "3"], &[], |request| {
        request.collect.graphs = Graphs::Whole;
    });
    let items = whole.items(0);
    let seen: Vec<_> = items
        .iter()
        .map(|item| match item.what {
            What::Graph(it) => (it.graph, it.place.stream, item.correlation, item.span.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    // The library makes the n-th launch 1000 + n ns long.
    assert_eq!(seen, [(9, 13, 1, 1001), (9, 13, 2, 1002), (9, 13, 3, 1003)]);
    assert_eq!((whole.health(0).received, whole.health(0).losses()), (3, 0));
}
