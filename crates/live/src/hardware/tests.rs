use std::time::Duration;

use recording::file::{Entry, Reader, State};

use super::*;
use activity::{Activity, DeviceInfo, HostCall, Kernel, Place, ProcessInfo, Span};

fn batch(items: Vec<Activity>) -> Message {
    let device = DeviceInfo {
        id: 0,
        uuid: Some([3; 16]),
        ..DeviceInfo::default()
    };
    let idle = DeviceInfo {
        id: 1,
        uuid: Some([4; 16]),
        ..DeviceInfo::default()
    };
    let process = ProcessInfo {
        pid: std::process::id(),
        ..ProcessInfo::default()
    };
    Message::Batch(Batch {
        defs: vec![
            Def::Process(process),
            Def::Device(device),
            Def::Device(idle),
        ],
        items,
        ..Batch::default()
    })
}

fn activity(what: What) -> Activity {
    Activity {
        span: Span::new(1, 2),
        correlation: 1,
        what,
    }
}

fn call(thread: u32) -> Activity {
    activity(What::Call(HostCall {
        thread,
        name: 0,
        code: 0,
    }))
}

/// Only what is used is looked at: of eight GPUs in a machine a program may use one.
#[test]
fn what_is_worth_a_look_is_learned_from_records() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut watch = HardwareWatch::start(directory.path(), Pause::default(), Counters::Off, None)
        .expect("a thread");
    assert_eq!(watch.note(&batch(vec![])), None);
    assert!(watch.known.gpus.is_empty() && watch.known.threads.is_empty());
    let kernel = activity(What::Kernel(Kernel {
        place: Place::default(),
        shape: 0,
        graph: 0,
        node: 0,
    }));
    watch.note(&batch(vec![call(77), kernel]));
    assert_eq!(watch.known.gpus, BTreeSet::from([[3; 16]]));
    let pid = std::process::id();
    assert_eq!(watch.known.threads, BTreeSet::from([(pid, 77)]));
}

/// The first operation among two thousand calls, and what may use one GPU only: counters would begin seconds late.
#[test]
fn a_gpu_is_known_by_its_first_operation_or_as_the_only_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let start = || {
        HardwareWatch::start(directory.path(), Pause::default(), Counters::Off, None)
            .expect("a thread")
    };
    let kernel = activity(What::Kernel(Kernel {
        place: Place::default(),
        shape: 0,
        graph: 0,
        node: 0,
    }));
    for at in [0, 77, 1_999] {
        let mut items = vec![call(77); 2_000];
        items[at] = kernel;
        let mut watch = start();
        watch.note(&batch(items));
        assert_eq!(watch.known.gpus, BTreeSet::from([[3; 16]]), "{at}");
    }
    let Message::Batch(mut one) = batch(vec![call(77)]) else {
        panic!("a batch");
    };
    one.defs.pop();
    let mut watch = start();
    watch.note(&Message::Batch(one));
    assert_eq!(watch.known.gpus, BTreeSet::from([[3; 16]]));
}

#[test]
fn a_program_that_recorded_nothing_leaves_no_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let watch = HardwareWatch::start(directory.path(), Pause::default(), Counters::Off, None)
        .expect("a thread");
    std::thread::sleep(3 * PERIOD);
    drop(watch);
    assert_eq!(
        std::fs::read_dir(directory.path()).expect("read").count(),
        0
    );
}

/// This machine may have NVML or not, schedstat or not: what there is, is in the files, and they end well.
#[test]
fn what_was_seen_lies_beside_the_recording() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut watch = HardwareWatch::start(directory.path(), Pause::default(), Counters::Off, None)
        .expect("a thread");
    let thread = rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs();
    watch.note(&batch(vec![call(thread)]));
    std::thread::sleep(6 * PERIOD + Duration::from_millis(50));
    drop(watch);
    let mut costs = 0;
    for file in std::fs::read_dir(directory.path()).expect("read") {
        let mut reader = Reader::open(&file.expect("a file").path()).expect("sound");
        let identity = reader.identity;
        assert!(identity.outside);
        let (mut others, mut cost) = (0, 0);
        let mut each = |entry: Entry<'_>| match entry {
            Entry::Hardware(Hardware::Cost(_)) => cost += 1,
            Entry::Hardware(_) => assert_eq!(identity.pid, 0),
            Entry::OffCpu(_) if identity.pid != 0 => others += 1,
            other => panic!("{other:?}"),
        };
        while reader.read(&mut each).expect("read") {}
        assert_eq!(reader.status.state, State::Closed);
        assert!(others + cost > 0 && reader.damage().is_none() && reader.is_at_end());
        costs += u32::from(cost > 0);
    }
    // What it took is always told.
    assert_eq!(costs, 1);
}
