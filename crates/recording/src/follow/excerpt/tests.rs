use crate::file::{Clocks, Entry, Writer};

use super::super::{Follower, Saver};
use super::excerpt;
use activity::{
    Activity, Batch, Def, Frame, Hardware, HostCall, Kernel, LaunchShape, MemoryAction, MemoryKind,
    MemoryOp, Metric, Place, ProcessInfo, Range, RangeKind, Reading, SampleDef, SampledThread,
    Samples, Sampling, Span, StackSample, Sync, SyncKind, What,
};

fn at(start: i64, end: i64, correlation: u32, what: What) -> Activity {
    Activity {
        span: Span::new(start, end),
        correlation,
        what,
    }
}

fn kernel() -> What {
    What::Kernel(Kernel {
        place: Place::default(),
        shape: 0,
        graph: 0,
        node: 0,
    })
}

fn call() -> What {
    What::Call(HostCall {
        thread: 42,
        name: 0,
        code: 0,
    })
}

fn memory(action: MemoryAction, address: u64) -> What {
    What::Memory(MemoryOp {
        action,
        kind: MemoryKind::Device,
        place: Place::default(),
        bytes: 1000 * address,
        address,
        is_async: false,
    })
}

fn process(index: u32, pid: u32, items: Vec<Activity>) -> Batch {
    let info = ProcessInfo {
        pid,
        ..ProcessInfo::default()
    };
    let text = "k".to_owned();
    Batch {
        process: index,
        defs: vec![
            Def::Process(info),
            Def::Name { id: 0, text },
            Def::Shape {
                id: 0,
                shape: LaunchShape::default(),
            },
        ],
        items,
        ..Batch::default()
    }
}

fn samples() -> Samples {
    let frame = |line| Frame {
        file: "train.py".to_owned(),
        function: "f".to_owned(),
        line,
    };
    let defs = [1, 2].into_iter().flat_map(|id| {
        let frame = frame(id);
        let (caller, of) = (0, id);
        [
            SampleDef::Frame { id, frame },
            SampleDef::Stack {
                id,
                caller,
                frame: of,
            },
        ]
    });
    let look = |time, stack: Option<u32>| StackSample {
        time,
        changed: stack
            .map(|stack| SampledThread {
                thread: 42,
                stack,
                is_running: true,
            })
            .into_iter()
            .collect(),
    };
    Samples {
        series: 0,
        defs: defs.collect(),
        looks: vec![
            look(200, Some(1)),
            look(240, None),
            look(300, None),
            look(500, Some(2)),
            look(650, Some(1)),
        ],
        sampling: Sampling {
            hz: 100,
            looks: 5,
            ..Sampling::default()
        },
    }
}

fn recorded(directory: &std::path::Path) {
    let mut saver = Saver::create(directory, false).expect("made");
    let range = Range {
        kind: RangeKind::Nvtx,
        name: 0,
        thread: 42,
        index: 0,
    };
    let sync = Sync {
        kind: SyncKind::Stream,
        context: 0,
        stream: Some(0),
        event: None,
    };
    let mut batch = process(
        0,
        42,
        vec![
            at(0, 1000, 0, What::Range(range)),
            at(50, 51, 0, memory(MemoryAction::Alloc, 1)),
            at(60, 61, 0, memory(MemoryAction::Alloc, 2)),
            at(100, 110, 1, call()),
            at(120, 130, 2, call()),
            at(150, 151, 0, memory(MemoryAction::Free, 2)),
            at(160, 170, 9, call()),
            at(200, 300, 1, kernel()),
            at(290, 310, 0, What::Sync(sync)),
            at(400, 500, 2, kernel()),
            at(420, 430, 3, call()),
            at(450, 451, 0, memory(MemoryAction::Alloc, 3)),
            at(700, 800, 3, kernel()),
        ],
    );
    batch.samples = Some(samples());
    saver.save(&batch).expect("saved");
    let late = process(1, 43, vec![at(900, 950, 1, kernel())]);
    saver.save(&late).expect("saved");
    saver.finish();
    let reading = |start, end| {
        Hardware::Reading(Reading {
            uuid: [1; 16],
            span: Span::new(start, end),
            values: vec![(Metric::Sm, 0.5)],
            reasons: 0,
        })
    };
    let all = [reading(200, 310), reading(310, 420), reading(610, 700)];
    let start = Clocks {
        realtime: 200,
        ..Clocks::default()
    };
    let mut file = Writer::outside(directory, 0, start).expect("made");
    for it in all {
        file.add(&Entry::Hardware(it));
    }
    file.finish();
}

/// From 250 to 600, told by hand: what touches it, the calls of its kernels, and the allocation that stood when it began.
#[test]
fn a_stretch_is_kept_with_what_it_cannot_be_read_without() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("all"), folder.path().join("part"));
    recorded(&from);
    let window = Span::new(250, 600);
    assert_eq!(excerpt(&from, &to, window).expect("kept"), 9);

    let batches = Follower::open(&to).expect("opens").finish();
    let mut found: Vec<(i64, i64, u32)> = batches
        .iter()
        .flat_map(|batch| &batch.items)
        .map(|it| (it.span.start, it.span.end, it.correlation))
        .collect();
    found.sort_unstable();
    let expected = [
        (0, 1000, 0),
        (100, 110, 1),
        (120, 130, 2),
        (200, 300, 1),
        (250, 250, 0),
        (290, 310, 0),
        (400, 500, 2),
        (420, 430, 3),
        (450, 451, 0),
    ];
    assert_eq!(found, expected);
    let held = batches.iter().flat_map(|batch| &batch.items);
    let held: Vec<u64> = held
        .filter_map(|it| match it.what {
            What::Memory(it) => Some(it.bytes),
            _ => None,
        })
        .collect();
    assert_eq!(held.iter().sum::<u64>(), 4000);
    // The process that only did something later is not there.
    let last = batches.iter().map(|batch| batch.process).max();
    assert_eq!(last, Some(0));

    let samples: Vec<&Samples> = batches
        .iter()
        .filter_map(|it| it.samples.as_ref())
        .collect();
    let looks: Vec<(i64, usize)> = samples
        .iter()
        .flat_map(|it| &it.looks)
        .map(|look| (look.time, look.changed.len()))
        .collect();
    // What was seen at 200 still held at 300, which is the first look.
    assert_eq!(looks, [(300, 1), (500, 1)]);
    assert_eq!(samples.last().map(|it| it.sampling.looks), Some(2));
    let windows = batches.iter().flat_map(|batch| &batch.hardware);
    assert_eq!(windows.count(), 2);
}

#[test]
fn a_stretch_without_anything_and_a_place_that_is_taken_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let from = folder.path().join("all");
    recorded(&from);
    let nothing = folder.path().join("nothing");
    let error = excerpt(&from, &nothing, Span::new(2000, 3000)).expect_err("nothing there");
    assert!(
        error.to_string().contains("nothing was recorded"),
        "{error}"
    );
    assert!(!nothing.exists());
    let error = excerpt(&from, &from, Span::new(0, 3000)).expect_err("taken");
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
}
